"""A run or a capture taken out of a store: what goes, what stays, who keeps what, and a kill in the middle."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import StoreError, UsageError
from nsightlens.schema import TABLES
from nsightlens.store import journal
from nsightlens.store.store import CATALOG
from tests.captures import GEMM, kineto
from tests.cli.command_line import run
from tests.cli.test_completion import completed
from tests.conftest import Shared
from tests.places import ROOT

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"
NAME = SIMULATED.name


@pytest.fixture(scope="module")
def two_runs(shared: Shared, bundled_store: Path) -> Path:
    """A folder with the captures `other`, and a store of the bundled run and of these; to be read only."""
    def make(folder: Path) -> None:
        kineto(folder / "other" / "a.json", rank=0)
        kineto(folder / "other" / "b.json", [(GEMM, 1000.0, 8.0)], rank=1)
        shutil.copytree(bundled_store, folder / "store")
        nl.ingest(folder / "other", folder / "store", jobs=1).close()

    return shared("two-runs", make)


@pytest.fixture
def other(two_runs: Path) -> Path:
    """The two small captures of the other run."""
    return two_runs / "other"


@pytest.fixture
def store(two_runs: Path, tmp_path: Path) -> Path:
    """The bundled run and another one of two small captures, in a store of the test's own."""
    return Path(shutil.copytree(two_runs / "store", tmp_path / "store"))


def _rows(store: Path, but: str = "") -> dict[str, list[Any]]:
    """Return all rows of all tables but those of a run."""
    with nl.open(store) as opened:
        return {name: opened.sql(f"FROM {name} WHERE run <> ? ORDER BY ALL", [but]).to_pylist()
                for name, table in TABLES.items() if "run" in table.schema.names}


def _parts(store: Path) -> set[str]:
    return {str(part.relative_to(store)) for part in store.rglob("*.parquet")}


def _alone(other: Path, place: Path) -> Path:
    """Return a store into which only the run `other` was ever ingested."""
    nl.ingest(other, place, jobs=1).close()
    return place


def test_a_removed_run_leaves_no_row_and_the_other_run_as_it_was(store: Path, other: Path, tmp_path: Path) -> None:
    before = _rows(store, but=NAME)
    removed = nl.remove(store, run=NAME)
    assert str(removed) == f"removed run {NAME}: 6 files, 5 profiles (kineto, ncu, nsys), ranks 0-1, 4,688 kernels"
    assert (removed.whole_run, removed.ranks, removed.kernels) == (True, (0, 1), 4688)
    assert _rows(store) == before
    assert not any(f"run={NAME}" in part for part in _parts(store))
    with nl.open(store) as opened, nl.open(_alone(other, tmp_path / "alone")) as alone:
        for view in ("kernel_summary", "busy_time", "findings", "match_report", "diagnostic_summary"):
            assert opened.view(view).to_pylist() == alone.view(view).to_pylist(), view
        for private in ("_runs", "_signatures"):
            assert opened.sql(f"FROM {private} ORDER BY ALL").to_pylist() == alone.sql(f"FROM {private} ORDER BY ALL").to_pylist()
        assert {row["profile_id"] for row in opened.sql("FROM _answers").to_pylist()} <= {
            row["profile_id"] for row in alone.sql("FROM profiles").to_pylist()}


@pytest.mark.parametrize("materialise", [True, False])
def test_a_later_ingest_brings_it_back(tmp_path: Path, materialise: bool) -> None:
    for name in ("one", "two"):
        kineto(tmp_path / name / "a.json", [(GEMM, 1000.0, 8.0)], rank=0, pid=len(name))
    place = tmp_path / "store"
    nl.ingest([tmp_path / "one", tmp_path / "two"], place, jobs=1, materialise=materialise).close()
    before = _rows(place)
    nl.remove(place, run="one")
    assert {row["run"] for row in _rows(place)["kernels"]} == {"two"}
    nl.ingest(tmp_path / "one", place, jobs=1).close()
    assert _rows(place) == before
    for name in ("one", "two"):
        nl.remove(place, run=name)
    assert not any(_rows(place).values()) and not _parts(place)
    nl.ingest([tmp_path / "one", tmp_path / "two"], place, jobs=1).close()
    assert _rows(place) == before


def test_a_capture_goes_alone_and_the_matches_of_its_run_are_made_again(store: Path, tmp_path: Path) -> None:
    removed = nl.remove(store, file="nsys/rank0.sqlite")
    assert (removed.run, removed.whole_run, removed.profiles, removed.kernels) == (NAME, False, 1, 1325)
    assert removed.files == (str(SIMULATED / "nsys/rank0.sqlite"),)
    without = tmp_path / NAME
    shutil.copytree(SIMULATED, without, ignore=lambda folder, _: ["rank0.sqlite"] if folder.endswith("nsys") else [])
    nl.ingest([without], tmp_path / "fresh", jobs=1).close()
    with nl.open(store) as opened, nl.open(tmp_path / "fresh") as fresh:
        for query in ("SELECT tool, rank, count(*), sum(duration_ns) FROM kernels WHERE run = ? GROUP BY ALL ORDER BY ALL",
                      "SELECT tool, other_tool, evidence, count(*) FROM matches WHERE run = ? GROUP BY ALL ORDER BY ALL"):
            assert opened.sql(query, [NAME]).to_pylist() == fresh.sql(query, [NAME]).to_pylist()
    assert "1 new" in run("ingest", SIMULATED, "--store", store).stderr


def test_what_was_read_with_a_capture_goes_with_it_and_the_last_one_takes_the_run(store: Path, other: Path) -> None:
    assert len(nl.remove(store, file="ncu/rank0.raw.csv").files) == 2
    assert not nl.remove(store, file=other / "a.json").whole_run
    assert nl.remove(store, file="b.json", run="other").whole_run
    assert "other" not in {row["run"] for row in _rows(store)["files"]}


def test_a_duplicate_goes_with_the_file_that_was_read_for_it(tmp_path: Path) -> None:
    capture = kineto(tmp_path / "job" / "a.json")
    shutil.copy(capture, tmp_path / "job" / "copy.json")
    kineto(tmp_path / "job" / "b.json", [(GEMM, 1000.0, 8.0)], pid=9)
    nl.ingest(tmp_path / "job", tmp_path / "store", jobs=1).close()
    (read,) = (row["path"] for row in _rows(tmp_path / "store")["files"] if (row["outcome"], Path(row["path"]).name) in
               {("read", "a.json"), ("read", "copy.json")})
    assert len(nl.remove(tmp_path / "store", file=read).files) == 2
    assert [row["path"] for row in _rows(tmp_path / "store")["files"]] == [str(tmp_path / "job" / "b.json")]


def test_what_is_not_there_is_a_usage_error_with_what_is(store: Path, other: Path, tmp_path: Path) -> None:
    with nl.open(store) as opened:
        with pytest.raises(UsageError) as error:
            nl.remove(opened, run="nope")
        assert (error.value.subject, error.value.value, error.value.choices) == ("run", "nope", ("other", NAME))
        with pytest.raises(UsageError, match="a run or a file") as error:
            nl.remove(opened)
        assert error.value.choices == ("other", NAME)
        nl.ingest(other, store, run="again", jobs=1).close()
        with pytest.raises(UsageError, match="name one of them") as error:
            nl.remove(opened, file="a.json")
        assert set(error.value.choices) == {"again", "other"}
        nl.ingest(kineto(tmp_path / "third" / "b.json", pid=7), store, jobs=1).close()
        with pytest.raises(UsageError, match="could be") as error:
            nl.remove(opened, file="b.json")
        assert str(tmp_path / "third" / "b.json") in error.value.choices
    with pytest.raises(StoreError, match="no store here"):
        nl.remove(tmp_path / "none", run="x")


def test_a_dry_run_changes_nothing(store: Path) -> None:
    content = (store / CATALOG).read_bytes()
    assert str(nl.remove(store, run="other", dry_run=True)).startswith("would remove run other: 2 files, 2 profiles (kineto)")
    assert (store / CATALOG).read_bytes() == content


@pytest.mark.parametrize("materialise", [True, False])
def test_readers_keep_what_they_opened_and_the_store_that_asked_does_not(tmp_path: Path, materialise: bool) -> None:
    for name in ("one", "two"):
        kineto(tmp_path / name / "a.json", pid=len(name))
    place = tmp_path / "store"
    asking = nl.ingest([tmp_path / "one", tmp_path / "two"], place, jobs=1, materialise=materialise)
    with nl.open(place) as reader:
        assert asking.values_of("run") == ["one", "two"]
        nl.remove(asking, run="one")
        assert asking.values_of("run") == ["two"]
        assert {*asking.sql("SELECT run FROM kernels")["run"].to_pylist()} == {"two"}
        if materialise:
            assert {*reader.sql("SELECT run FROM kernels")["run"].to_pylist()} == {"one", "two"}
        else:
            with pytest.raises(StoreError, match=r"store\.reopen\(\)"):
                reader.sql("SELECT run FROM kernels")
        reader.reopen()
        assert reader.values_of("run") == ["two"]
    asking.close()


def test_exports_of_reports_that_no_run_has_go_too(store: Path) -> None:
    with nl.open(store) as opened:
        prints = opened.sql("SELECT fingerprint FROM files WHERE run = 'other' ORDER BY path").to_pylist()
    (store / "converted").mkdir()
    exports = [store / "converted" / f"{row['fingerprint']}.sqlite" for row in prints]
    for export in exports:
        export.touch()
    nl.remove(store, file="a.json", run="other")
    assert [export.exists() for export in exports] == [False, True]


KILLED = """
import os, signal, sys
from nsightlens.pipeline.remove import remove
from nsightlens.store import catalog, journal, writer

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

owner, name = sys.argv[2].rsplit(".", 1)
setattr({"catalog": catalog, "writer": writer, "journal.Journal": journal.Journal}[owner], name, die)
remove(sys.argv[1], run="other")
"""


def _killed(store: Path, at: str) -> None:
    """Kill a removal of `other` where it calls a function."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(store), at], check=False)
    assert killed.returncode == -signal.SIGKILL


@pytest.mark.parametrize("at", ["catalog.apply", "catalog.renew_matches", "writer._sync"])
def test_a_killed_removal_leaves_the_store_as_it_was(store: Path, at: str) -> None:
    before, parts = _rows(store), _parts(store)
    _killed(store, at)
    assert (store / journal.FILE).exists(), "it died before it had made anything"
    assert (_rows(store), _parts(store)) == (before, parts)
    nl.remove(store, run="other")
    assert _rows(store) == {name: [row for row in rows if row["run"] != "other"] for name, rows in before.items()}
    assert not [path for path in store.iterdir() if path.name.startswith(".")]


def test_one_that_is_killed_after_its_commit_has_removed_the_run(store: Path) -> None:
    _killed(store, "journal.Journal.remove")
    assert {row["run"] for row in _rows(store)["kernels"]} == {NAME}
    assert any("run=other" in part for part in _parts(store))
    run("compact", "--store", store)
    assert not any("run=other" in part for part in _parts(store))


def test_the_command(store: Path) -> None:
    missing = run("remove", "--run", "nope", "--store", store)
    assert missing.returncode == 2 and f"the store has other, {NAME}" in missing.stderr
    assert run("remove", "--store", store).returncode == 2
    dry = run("remove", "--run", "other", "--dry-run", "--store", store)
    assert (dry.returncode, dry.stdout) == (0, "") and "would remove run other: 2 files" in dry.stderr
    done = run("remove", "--file", "a.json", "--store", store)
    assert done.returncode == 0 and "removed captures of run other: 1 file" in done.stderr and "/other/a.json\n" in done.stderr
    assert "removed run other: 1 file" in run("remove", "--run", "other", "--store", store).stderr
    assert run("remove", "--run", NAME, "--store", store).returncode == 0
    empty = run("summary", "--store", store)
    assert empty.returncode == 1 and "no capture" in empty.stderr


@pytest.mark.parametrize(("answer", "code", "runs"), [("n\n", 130, {"other", NAME}), ("y\n", 0, {NAME})])
def test_at_a_terminal_it_asks(store: Path, answer: str, code: int, runs: set[str]) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "nsightlens", "remove", "--run", "other", "--store", str(store)])
    os.write(terminal, answer.encode())
    said = b""
    try:
        while block := os.read(terminal, 4096):
            said += block
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert b"would remove run other" in said and b"Remove?" in said
    assert {row["run"] for row in _rows(store)["profiles"]} == runs


def test_runs_and_captures_are_completed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTLENS_STORE", str(store))
    assert completed(["remove", "--run"], "o") == ["other"]
    assert [Path(path).name for path in completed(["remove", "--run", "other", "--file"], "")] == ["a.json", "b.json"]
