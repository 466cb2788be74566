"""Baselines: what is checked against one is what is checked against its captures, and a file that is none is refused."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from nsightlens.errors import NsightlensError
from nsightlens.gate import baselines
from nsightlens.gate.recordings import Recording
from tests.cli.command_line import run
from tests.gate.made import stepped, timed

ONE = Recording("run", "kineto", 0, None, None, 50, 1, 1e6, 1e6, 0.0, families={"gemm": 5e5}, kernels={"k": 5e5})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NSIGHTLENS_STORE", raising=False)
    monkeypatch.delenv("NSIGHTLENS_BASELINES", raising=False)


def _jobs(tmp_path: Path) -> None:
    """Three recordings of each side, the candidate's steps 10 % longer, under the profiler and without."""
    for name, factor in (("base", 1.0), ("candidate", 1.1)):
        for number in range(3):
            place = tmp_path / name / str(number)
            place.mkdir(parents=True)
            stepped(place / "trace.json", [factor * (100 + number / 10)] * 12, at=1000 + 10**7 * number, pid=number)
            timed(place / "rank0.steps.json", {"measure": [round(1000 * factor) + number] * 20}, f"{name}-{number}")


@pytest.mark.parametrize("only", ["", "trace.json", "rank0.steps.json"])
def test_a_baseline_gives_the_answers_of_its_captures(tmp_path: Path, only: str) -> None:
    _jobs(tmp_path)
    for path in tmp_path.glob("*/*/*"):
        if only and path.name != only:
            path.unlink()
    assert run("baseline", "set", "main", "base").returncode == 0
    wanted = run("check", "--base", "base", "--candidate", "candidate", "--max-regression", "gemm=5%", "-f", "json")
    found = run("check", "--baseline", "main", "--candidate", "candidate", "--max-regression", "gemm=5%", "-f", "json")
    if only == "rank0.steps.json":
        assert (wanted.returncode, found.returncode) == (2, 2), "steps alone have no families of kernels"
        wanted, found = (run("check", *base, "--candidate", "candidate", "-f", "json")
                         for base in (("--base", "base"), ("--baseline", "main")))
    tables, others = json.loads(wanted.stdout)["tables"], json.loads(found.stdout)["tables"]
    assert wanted.returncode == found.returncode == 3
    assert {name: others[name] for name in ("questions", "recordings", "kernels")} == {
        name: tables[name] for name in ("questions", "recordings", "kernels")}


def test_a_baseline_is_a_side_of_either_kind_and_adds_up(tmp_path: Path) -> None:
    _jobs(tmp_path)
    run("baseline", "set", "few", "base/0", "base/1")
    done = run("baseline", "set", "all", "nsightlens-baselines/few.json", "base/2")
    assert done.returncode == 0 and len(baselines.read(baselines.known("all")).best) == 3
    done = run("check", "--base", "candidate", "--candidate", "nsightlens-baselines/all.json")
    assert done.returncode == 0 and done.stdout.startswith("OK: "), "faster"


def test_other_work_is_told_by_kernels(tmp_path: Path) -> None:
    for name, kernel in (("one", "k"), ("other", "another")):
        saved = baselines.Saved({"kineto": [replace(ONE, number=n, trimmed_ns=1e6 + n, kernels={kernel: 1.0}) for n in range(3)]},
                                {"kineto": {"GPU": {"H100"}}})
        baselines.write(tmp_path / f"{name}.json", saved, "1")
    done = run("check", "--base", "one.json", "--candidate", "other.json")
    assert done.returncode == 5 and "other work" in done.stdout


def test_list_and_rm(tmp_path: Path) -> None:
    _jobs(tmp_path)
    for name in ("b", "a"):
        run("baseline", "set", name, "base")
    (tmp_path / baselines.FOLDER / "notes.json").write_text("{}")
    os.mkfifo(tmp_path / baselines.FOLDER / "pipe.json")
    rows = json.loads(run("baseline", "list", "-f", "json").stdout)["rows"]
    assert [(row["baseline"], row["runs"], row["recordings"]) for row in rows] == [("a", "base", 3), ("b", "base", 3)]
    assert run("baseline", "rm", "a").returncode == 0 and baselines.names() == ["b"]
    refused = run("baseline", "rm", "notes")
    assert refused.returncode == 2 and "b" in refused.stderr and (tmp_path / baselines.FOLDER / "notes.json").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "a\nb", "x" * 201, ""])
def test_a_name_is_a_plain_one(name: str) -> None:
    assert run("baseline", "set", name, "base").returncode == 2


def test_a_file_that_is_no_baseline_is_not_replaced(tmp_path: Path) -> None:
    _jobs(tmp_path)
    (tmp_path / baselines.FOLDER).mkdir()
    (tmp_path / baselines.FOLDER / "main.json").write_text("{}")
    assert run("baseline", "set", "main", "base").returncode == 2
    assert (tmp_path / baselines.FOLDER / "main.json").read_text() == "{}"


@pytest.mark.parametrize(("key", "value"), [
    ("version", 2), ("sha256", "0"), ("recordings", []), ("recordings", [{}]), ("properties", []), ("recordings", "x"),
])
def test_a_damaged_file_is_refused(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "x.json"
    baselines.write(path, baselines.Saved({"kineto": [ONE]}, {}), "1")
    assert baselines.read(path).best == [ONE]
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, key: value}))
    with pytest.raises(NsightlensError, match=r"x\.json"):
        baselines.read(path)


@pytest.mark.parametrize("figure", [{"trimmed_ns": 0}, {"trimmed_ns": "5"}, {"kernels": {"k": None, "l": "x"}}, {"run": 5},
                                    {"mean_ns": float("nan")}])
def test_figures_that_are_none_are_refused(tmp_path: Path, figure: dict[str, object]) -> None:
    path = tmp_path / "x.json"
    baselines.write(path, baselines.Saved({"kineto": [replace(ONE, **figure)]}, {})  # type: ignore[arg-type]
                    if "run" not in figure else baselines.Saved({"kineto": [replace(ONE, commit=5)]}, {}), "1")  # type: ignore[arg-type]
    with pytest.raises(NsightlensError, match="not a"):
        baselines.read(path)


def test_a_token_in_the_name_of_a_run_is_struck(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    token = "ghp_" + "a1B2" * 9
    baselines.write(path, baselines.Saved({"kineto": [replace(ONE, run=token)]}, {}), "1")
    assert token not in path.read_text()


def test_base_and_baseline_are_one_too_many() -> None:
    assert run("check", "--base", "a", "--baseline", "b", "--candidate", "c").returncode == 2
