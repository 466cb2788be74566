"""What a long command says meanwhile: lines where there is no terminal, with bytes, rate and time left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from nsightlens.cli import progress
from nsightlens.errors import UsageError
from nsightlens.pipeline.ingest import ingest
from nsightlens.pipeline.meter import Meter, Progress, counter
from nsightlens.readers.measure import bytes_read, count_into, counted
from tests.captures import kineto
from tests.cli.command_line import run
from tests.places import ROOT

MB = 1_000_000


@pytest.mark.parametrize(("step", "seconds", "text"), [
    (Progress(0, 2, "", 0, 298 * MB), 4, "0/2 0 of 298 MB"),
    (Progress(0, 1, "", 120 * MB, 298 * MB, (("rank0.json", 120 * MB, 298 * MB),)), 3,
     "0/1 rank0.json 40 %; 120 of 298 MB, 40 MB/s, 4 s left"),
    (Progress(1, 9, "", 100 * MB, 10_000 * MB, tuple((f"{n}.json", MB, 4 * MB) for n in range(3))), 10,
     "1/9 0.json 25 %, 1.json 25 % and 1 more; 100 of 10,000 MB, 10 MB/s, 16 min left"),
    (Progress(0, 1, "", 5 * MB, 5 * MB, (("a.csv", 5 * MB, 5 * MB),)), 3, "0/1 a.csv 100 %; 5 of 5 MB read; linking and writing"),
    (Progress(0, 2, "", 12, 58, (("base", 12, 29),), "answers"), 4, "0/2 base 41 %; 12 of 58 answers, 3 answers/s, 15 s left"),
    (Progress(1, 2, "", 58, 58, (), "answers"), 4, "1/2 58 of 58 answers computed"),
    (Progress(2, 6, "run_waterfall"), 3, "2/6 run_waterfall; 3 s so far, about 6 s left"),
    (Progress(0, 6, "findings"), 3, "0/6 findings; 3 s so far"),
    (Progress(0, 0, ""), 12, "12 s so far"),
])
def test_how_far_it_is(step: Progress, seconds: float, text: str) -> None:
    assert progress.progress_text(step, seconds) == text


def test_lines_come_when_a_profile_is_done_and_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    now = iter([1, 4, 11, 12, 20, 22.5])
    monkeypatch.setattr("nsightlens.cli.progress.time.monotonic", lambda: next(now))
    lines = progress._Lines(0)
    for _ in range(3):
        lines.say(Progress(0, 2, "", 50 * MB, 100 * MB))
    lines.say(Progress(1, 2, "a.json", 60 * MB, 100 * MB))
    for _ in range(2):
        lines.say(Progress(1, 2, "", 60 * MB, 100 * MB))
    assert capsys.readouterr().err.splitlines() == [
        "[0/2] 50 of 100 MB, 5 MB/s, 11 s left", "[1/2] a.json", "[1/2] 60 of 100 MB, 3 MB/s, 15 s left"]


def test_bytes_are_counted_while_a_capture_is_read_and_the_counter_goes_again(tmp_path: Path) -> None:
    with count_into(counter(tmp_path, "one")):
        counted(5)
        counted(7)
        assert bytes_read(counter(tmp_path, "one")) == 12
    counted(3)
    assert bytes_read(counter(tmp_path, "one")) == 0 and not list(tmp_path.iterdir())


def test_a_meter_tells_of_the_files_begun(tmp_path: Path) -> None:
    steps: list[Progress] = []
    counter(tmp_path, "b").write_bytes((30).to_bytes(8, "little"))
    with Meter(tmp_path, {"a": ("a.json", 100), "b": ("b.json", 20)}, steps.append) as meter:
        meter.finished("a", "a.json")
    assert Progress(1, 2, "a.json", 120, 120, (("b.json", 20, 20),)) in steps, "never more than a file has"


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("tool", ["nsys", "torch", "ncu"])
def test_every_reader_counts(tmp_path: Path, tool: str, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a trace and a CSV (and a few bytes twice), and of a SQLite file what is not left to SQLite."""
    if jobs > 1 and tool != "torch":
        pytest.skip("one is enough of what does not depend on it")
    seen: list[int] = []

    @contextmanager
    def kept(path: Path) -> Iterator[None]:
        with count_into(path):
            yield
            seen.append(bytes_read(path))

    monkeypatch.setattr("nsightlens.pipeline.plan.count_into", kept)
    folder = ROOT / "fixtures" / "simulated_resnet18_ddp" / tool
    pattern = {"nsys": "rank0.sqlite", "torch": "rank0.pt.trace.json.gz", "ncu": "rank0.details.csv"}[tool]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / pattern).symlink_to(folder / pattern)
    ingest([tmp_path / "run"], tmp_path / "store", jobs=jobs)
    whole = (folder / pattern).stat().st_size
    assert len(seen) == 1 and (whole / 4 if tool == "nsys" else whole) <= seen[0] <= whole + 64


@pytest.mark.parametrize(("asked", "slow", "heard"), [
    (["compare", "runs", "a", "b"], "nsightlens.analyses._compared_runs.tools", r"comparing: 0/3 trees; \d+ s so far"),
    (["report", "--output", "report.html"], "nsightlens.html_report.contents.Contents.facts", "writing the report: "),
    (["compare", "ranks"], "nsightlens.pages.ranks_page.balance", r"comparing: 6/8 balance; \d+ s so far, about \d+ s left"),
    (["summary"], "nsightlens.pages.sections.ordered", r"summing up: \d+ s so far"),
], ids=["runs", "report", "ranks", "summary"])
def test_a_long_command_says_how_far_it_is(
    asked: list[str], slow: str, heard: str, bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.02)

    def answer(*_: object, **__: object) -> NoReturn:
        time.sleep(0.5)
        raise UsageError("slow")

    monkeypatch.setattr("nsightlens.analyses._runs.named", lambda _, *runs: runs)  # the store has one run
    answer.__name__ = slow.rpartition(".")[2]
    monkeypatch.setattr(slow, answer)
    done = run(*asked, "--store", str(bundled_store))
    assert done.returncode == 2 and re.search(heard, done.stderr)


def test_a_short_command_says_nothing_of_it(bundled_store: Path) -> None:
    assert "so far" not in run("compare", "ranks", "--store", str(bundled_store)).stderr


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let children be interrupted: `nohup make test &` would pass SIGINT on to them as ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _content(store: Path) -> dict[Path, int]:
    """Return when each file of a store was written, but for the lock."""
    return {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file() and path.name != "lock"}


@pytest.mark.long
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """Sent to the whole group, as a terminal does, while workers read."""
    kineto(tmp_path / "first" / "a.json", rank=0)
    ingest([tmp_path / "first"], tmp_path / "store", jobs=1)
    before = _content(tmp_path / "store")
    for rank in range(2):
        kineto(tmp_path / "run" / f"{rank}.json", [(f"k{i}", 1000.0 + 20 * i, 10.0) for i in range(250_000)], rank=rank)
    command = [sys.executable, "-m", "nsightlens", "ingest", str(tmp_path / "run"), "--store", str(tmp_path / "store"),
               "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "store").glob(".nsightlens-scratch-*/*.read")) and time.monotonic() < deadline:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130 and said.splitlines()[-1] == "interrupted; the store is unchanged"
    assert "Traceback" not in said and _content(tmp_path / "store") == before


ENDLESS = "SELECT count(*) AS n FROM range(1000000000) a, range(100000) b WHERE (a.range * b.range) % 7 = 3"


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("command", [["sql", ENDLESS], ["show", "endless", "--views", "VIEWS"]])
def test_ctrl_c_ends_a_query_that_would_never_end(bundled_store: Path, tmp_path: Path, command: list[str]) -> None:
    """DuckDB, in several threads, does not look for signals."""
    (tmp_path / "endless.sql").write_text(f"-- Doc.\n-- @scope run\n-- @column n  N.\nCREATE VIEW endless AS {ENDLESS};\n")
    words = [str(tmp_path) if word == "VIEWS" else word for word in command]
    log = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-m", "nsightlens", "--log-file", str(log), *words, "--store", str(bundled_store)],
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while "SQL: " not in (log.read_text() if log.exists() else "") and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        try:
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    # click puts an empty line before it where Python's interrupt comes before that of DuckDB
    assert process.returncode == 130 and said.strip("\n") == "interrupted; the store is unchanged"


def test_ctrl_c_during_a_query_is_said_like_any_other(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB makes a RuntimeError of it."""
    def asked(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("nsightlens.analyses._runs.named", asked)
    done = run("compare", "runs", "a", "b", "--store", str(bundled_store))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "interrupted; the store is unchanged")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.usefixtures("interruptible")
def test_a_signal_that_asks_to_end_ends_in_order(bundled_store: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    tidied: list[str] = []

    def asked(*_: object, **__: object) -> NoReturn:
        try:
            signal.raise_signal(number)
            raise AssertionError("nothing ended it")
        finally:
            tidied.append("temporary files")

    monkeypatch.setattr("nsightlens.analyses._runs.named", asked)
    done = run("compare", "runs", "a", "b", "--store", str(bundled_store))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (128 + number, "interrupted; the store is unchanged")
    assert tidied and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interrupt_after_a_commit_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    kineto(tmp_path / "run" / "a.json")
    monkeypatch.setattr("nsightlens.cli.ingest.contents", printed)
    done = run("ingest", tmp_path / "run", "--store", tmp_path / "store", "--jobs", "1")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "interrupted; the store has what was asked for")
