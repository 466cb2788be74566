"""Runs that share a path: an ingest changes the runs that it names, and every other run keeps its rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsightlens as nl
from nsightlens.errors import StoreError, UsageError
from nsightlens.pipeline.ingest import IngestReport, ingest
from nsightlens.pipeline.refresh import refresh
from nsightlens.store import rules
from tests.captures import GEMM, kineto, ncu

pytestmark = pytest.mark.long

NAMES = "SELECT run, name FROM kernels ORDER BY ALL"
FILES = "SELECT run, outcome FROM files ORDER BY ALL"


@pytest.fixture()
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture()
def job(tmp_path: Path) -> Path:
    """Provide a folder whose capture was ingested as `before`, and then recorded over."""
    kineto(tmp_path / "job" / "a.json", rank=0)
    ingest([tmp_path / "job"], tmp_path / "store", run="before")
    kineto(tmp_path / "job" / "a.json", [("relu", 5.0, 1.0)], rank=0)
    return tmp_path / "job"


def _rows(store: Path, query: str = NAMES) -> list[tuple[Any, ...]]:
    with nl.open(store) as opened:
        return [tuple(row.values()) for row in opened.sql(query).to_pylist()]


def _states(report: IngestReport) -> list[tuple[str, str]]:
    return sorted((o.run, o.state) for o in report.outcomes)


def test_a_run_keeps_its_rows_when_its_capture_is_recorded_over_and_ingested_as_another(job: Path, store: Path) -> None:
    report = ingest([job], store, run="after")
    assert _states(report) == [("after", "new")]
    assert report.kept == [("before", job / "a.json")]
    assert _rows(store) == [("after", "relu"), ("before", GEMM)]
    assert _rows(store, FILES) == [("after", "read"), ("before", "replaced")]
    assert _rows(store, "SELECT reason FROM files WHERE run = 'before'") == [
        ("another capture was recorded over it (run after); the rows of this one are kept",)]
    with nl.open(store) as opened:
        summary = opened.view("kernel_summary").to_pylist()
    assert sorted((row["run"], row["name"], row["instances"]) for row in summary) == [("after", "relu", 1), ("before", GEMM, 1)]


@pytest.mark.parametrize("name", ["after", None])
def test_to_ingest_it_again_changes_nothing(job: Path, store: Path, name: str | None) -> None:
    """Without a name, the folder is the run that holds what lies there now."""
    ingest([job], store, run="after")
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.suffix in {".duckdb", ".parquet"}}
    report = ingest([job], store, run=name)
    assert (_states(report), report.kept) == ([("after", "unchanged")], [])
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.suffix in {".duckdb", ".parquet"}} == before


def test_a_third_recording_without_a_name_belongs_to_the_last_run(job: Path, store: Path) -> None:
    ingest([job], store, run="after")
    kineto(job / "a.json", [("tanh", 5.0, 1.0)], rank=0)
    assert _states(ingest([job], store)) == [("after", "replaced")]
    assert _rows(store) == [("after", "tanh"), ("before", GEMM)]


def test_recorded_over_again_and_again_every_named_run_stays(job: Path, store: Path) -> None:
    for number in range(3):
        kineto(job / "a.json", [(f"kernel_{number}", 5.0, 1.0)], rank=0)
        ingest([job], store, run=f"run{number}")
    assert _rows(store) == [("before", GEMM), *((f"run{n}", f"kernel_{n}") for n in range(3))]


def test_to_name_the_old_run_again_replaces_its_rows(job: Path, store: Path) -> None:
    """Whoever says that the folder is `before` gets what lies there now as `before`; `after` has the same."""
    ingest([job], store, run="after")
    assert _states(ingest([job], store, run="before")) == [("before", "replaced")]
    assert _rows(store) == [("after", "relu"), ("before", "relu")]
    assert _rows(store, FILES) == [("after", "read"), ("before", "read")]


def test_the_same_capture_under_two_names_is_in_both_runs_and_once_in_each(tmp_path: Path, store: Path) -> None:
    path = kineto(tmp_path / "job" / "a.json", rank=0)
    (tmp_path / "job" / "copy.json").write_bytes(path.read_bytes())
    for name in ("one", "two", "one", "two"):
        ingest([tmp_path / "job"], store, run=name)
    assert _rows(store) == [("one", GEMM), ("two", GEMM)]
    assert _rows(store, FILES) == [(run, outcome) for run in ("one", "two") for outcome in ("duplicate", "read")]
    assert _states(ingest([tmp_path / "job"], store, run="one")) == [("one", "unchanged")]


def test_a_folder_of_several_names_wants_one(tmp_path: Path, store: Path) -> None:
    kineto(tmp_path / "job" / "a.json", rank=0)
    for name in ("one", "two"):
        ingest([tmp_path / "job"], store, run=name)
    with pytest.raises(UsageError, match=r"one, two.*--run"):
        ingest([tmp_path / "job"], store)
    assert _rows(store) == [("one", GEMM), ("two", GEMM)]


def test_the_folder_above_takes_nothing_from_a_named_run(tmp_path: Path, store: Path) -> None:
    kineto(tmp_path / "jobs" / "job" / "a.json", rank=0)
    ingest([tmp_path / "jobs" / "job"], store, run="before")
    ingest([tmp_path / "jobs"], store)
    assert _rows(store) == [("before", GEMM), ("jobs", GEMM)]


def test_one_page_recorded_over_leaves_the_others_of_its_report(tmp_path: Path, store: Path) -> None:
    """Two pages of one ncu report; one is recorded over. A late file of the old run brings back none of the new page."""
    job = tmp_path / "job"
    ncu(job / "k.csv", {"gpu__time_duration.sum": ("ns", "7")})
    ncu(job / "l.csv", {"dram__bytes.sum": ("byte", "100")})
    ingest([job], store, run="before")
    ncu(job / "l.csv", {"dram__bytes.sum": ("byte", "200")})
    ingest([job], store, run="after")
    bytes_of = "SELECT run, metrics['dram__bytes.sum'] FROM kernels WHERE tool = 'ncu' ORDER BY ALL"
    assert _rows(store, bytes_of) == [("after", 200.0), ("before", 100.0)]
    late = kineto(tmp_path / "late" / "b.json", rank=0)
    assert _states(ingest([late], store, run="before")) == [("before", "new"), ("before", "unchanged")]
    assert _rows(store, bytes_of) == [("after", 200.0), ("before", 100.0)]
    assert ("before", "replaced") in _rows(store, FILES)


def test_a_file_that_comes_back_is_read_again(tmp_path: Path, store: Path) -> None:
    """Two pages; one is gone at the second ingest, and back at the third."""
    ncu(tmp_path / "job" / "k.csv", {"gpu__time_duration.sum": ("ns", "7")})
    page = ncu(tmp_path / "job" / "l.csv", {"dram__bytes.sum": ("byte", "100")})
    ingest([tmp_path / "job"], store)
    content = page.read_bytes()
    page.unlink()
    ingest([tmp_path / "job"], store)
    assert _rows(store, FILES) == [("job", "missing"), ("job", "read")]
    page.write_bytes(content)
    ingest([tmp_path / "job"], store)
    assert _rows(store, FILES) == [("job", "read"), ("job", "read")]


def test_the_command_line_says_which_run_keeps_its_rows(job: Path, store: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "nsightlens", "ingest", str(job), "--run", "after", "--store", str(store)],
                          capture_output=True, text=True, check=True)
    assert "run before keeps its rows of 1 capture overwritten since (a.json)" in done.stderr


def test_refresh_reads_what_each_run_holds_and_keeps_the_rest(
    job: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Newer rules: two runs that hold one capture are both read again; a capture that was recorded over cannot be."""
    ingest([job], store, run="after")
    ingest([job], store, run="again")
    copy = tmp_path / "elsewhere" / "a.json"
    copy.parent.mkdir()
    copy.write_bytes((job / "a.json").read_bytes())
    ingest([job, copy], store, run="again")
    monkeypatch.setitem(rules.VERSIONS, "names", 99)
    done = refresh(store)
    assert _states(done.report) == [("after", "replaced"), ("again", "replaced")]
    assert done.gone == [str(job / "a.json")]
    assert _rows(store) == [("after", "relu"), ("again", "relu"), ("before", GEMM)]
    assert _rows(store, FILES) == [("after", "read"), ("again", "duplicate"), ("again", "read"), ("before", "replaced")]
    with nl.open(store) as opened:
        assert opened.older_than_the_rules() == []


def test_a_rank_pattern_that_does_not_compile_is_named(job: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store from elsewhere may hold any."""
    ingest([job], store, rank_pattern=r"rank(\d+)", jobs=1)
    with duckdb.connect(str(store / "nsightlens.duckdb")) as catalog:
        catalog.execute("UPDATE _runs SET rank_pattern = '(('")
    monkeypatch.setattr(rules, "is_read_by_older", lambda *_: True)
    with pytest.raises(StoreError, match=r"rank pattern.*\(\("):
        refresh(store, jobs=1)
