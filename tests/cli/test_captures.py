"""Captures given to commands that also read a store: what is said of refused, missing and cut ones, and what comes next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.captures import kineto, ncu
from tests.cli.command_line import Done, run

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
REFUSED = {"cut.sqlite": b"SQLite format 3\0" + b"x" * 3000, "cut.ncu-rep": b"NVR\0" + b"x" * 60, "lfs.sqlite": LFS.encode(),
           "prices.csv": b"date,open,close\n1,2,3\n"}
COMMANDS = (
    ["summary"], ["summary", "-f", "json"], ["report", "-o", "report.html"],
    ["roofline"],
)


def _lines(done: Done) -> list[str]:
    """Return the lines on standard error that name refused files."""
    return [line for line in done.stderr.splitlines() if line.startswith("  refused ")]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_file_is_an_error_with_the_reason_that_ingest_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(REFUSED[name])
    ingested = _lines(run("ingest", name, "--store", "store"))
    assert len(ingested) == 1 and name in ingested[0]
    for command in COMMANDS if name == "cut.sqlite" else COMMANDS[:1]:
        done = run(*command, name)
        assert (done.returncode, done.stdout) == (1, "") and not Path("report.html").exists()
        assert _lines(done) == ingested
        assert done.stderr.splitlines()[-1] == f"nsightlens: {name}: nothing was read", "the reason comes first"
        of_store = run(*command, "--store", "store")
        assert (of_store.returncode, of_store.stdout) == (1, "") and _lines(of_store) == ingested
        assert "store: no capture was read into this store" in of_store.stderr


def test_what_was_refused_beside_what_was_read_is_said(tmp_path: Path) -> None:
    kineto(tmp_path / "base" / "trace.json")
    (tmp_path / "base" / "cut.sqlite").write_bytes(REFUSED["cut.sqlite"])
    done = run("summary", tmp_path / "base")
    assert done.returncode == 0 and "Top kernels" in done.stdout and ["cut.sqlite" in line for line in _lines(done)] == [True]


@pytest.mark.parametrize("files", [[], ["notes.txt"]], ids=["empty", "notes"])
def test_a_folder_without_captures_says_what_ingest_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in files:
        (tmp_path / "folder" / name).write_text("hello\n")
    said = run("ingest", "folder", "--store", "store").stderr.splitlines()[-1]
    assert said == "no captures here: nothing was read. nsightlens scan shows what each file is"
    for command in COMMANDS:
        done = run(*command, "folder")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"nsightlens: folder: {said}\n")


def test_an_ingest_of_nothing_into_a_store_says_why_and_names_no_next_step(tmp_path: Path) -> None:
    kineto(tmp_path / "base" / "trace.json")
    (tmp_path / "empty").mkdir()
    run("ingest", tmp_path / "base", "--store", tmp_path / "store")
    done = run("ingest", tmp_path / "empty", "--store", tmp_path / "store")
    assert done.returncode == 1 and done.stderr.endswith("nothing was read. nsightlens scan shows what each file is\n")
    quiet = run("--quiet", "ingest", tmp_path / "empty", "--store", tmp_path / "store")
    assert quiet.returncode == 1 and "no captures here" in quiet.stderr and len(quiet.stderr.splitlines()) == 1


def test_the_last_line_names_what_can_be_asked_next(tmp_path: Path) -> None:
    timeline = kineto(tmp_path / "a run" / "trace.json")
    counters = ncu(tmp_path / "ncu.csv", {"gpu__time_duration.sum": ("ns", "9")})
    of_timeline, of_counters = (" ".join(run("summary", path).stderr.split()) for path in (timeline, counters))
    assert f"nsightlens report '{timeline}' --open" in of_timeline and f"nsightlens report {counters} --open" in of_counters
    assert f"nsightlens ingest '{timeline}' {counters}" in " ".join(run("summary", timeline, counters).stderr.split())
    of_timelines = (
        "show headroom",
        "plot step_breakdown",
    )
    for path, has in ((counters, False), (timeline, True)):
        run("ingest", path, "--store", tmp_path / "store", "--no-answers")
        of_store = run("summary", "--store", tmp_path / "store").stderr
        for command in of_timelines:
            assert (command in of_store) == has
    assert f"show NAME --store {tmp_path / 'store'}" in of_store


@pytest.mark.parametrize("cut", [True, False])
def test_that_a_capture_is_cut_stands_beside_the_verdict(tmp_path: Path, cut: bool) -> None:
    trace = kineto(tmp_path / "trace.json", [(f"kernel_{number}", 1000.0 + 20 * number, 10.0) for number in range(40)])
    if cut:
        trace.write_text(trace.read_text()[: trace.stat().st_size // 2])
    first = " ".join(run("summary", trace).stdout.split("\nWhat to look at first")[0].split("\nThe judged window")[0].split())
    assert ("trace.json is cut short" in first) == cut
    assert json.loads(run("summary", trace, "-f", "json").stdout)["tables"]["profile_overview"][0]["truncated"] == cut
