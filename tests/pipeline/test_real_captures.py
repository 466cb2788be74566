"""Every real capture at hand, through the whole road, against figures that were computed without us.

The captures are not part of the project; where they are absent these tests skip.
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import ReadError
from nsightlens.pipeline.ingest import IngestReport, ingest
from tests.exact_intervals import exact_intervals
from tests.places import ROOT, sqlite_captures

DATA = ROOT.parent / "shared" / "data"
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")]
_INTERVALS = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "overlap_ns", "memory_ns")
_QUARTER_NS = 7_889_238 * 10**9
_NCU_HEADER = re.compile(r'^"?ID"?,"?Process ID"?')


class Ingested:
    """The store of all real captures, with the report of its ingest."""

    def __init__(self, store: Path) -> None:
        traces = [path for path in sorted((DATA / "kineto").iterdir()) if path.name != "derived"]
        self.report: IngestReport = ingest([*traces, DATA / "nsys", DATA / "ncu"], store)
        self.store = nl.open(store)
        self.files = {row["path"]: row for row in self.store.sql("SELECT * FROM files").to_pylist()}

    def row(self, path: Path) -> dict[str, Any]:
        """Return the row of `files`; of a copy, that of the file which is read instead: they hold the same."""
        instead = self.report.duplicates.get(path, (path, ""))[0]
        found: dict[str, Any] = self.files[str(instead)]
        return found


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    return Ingested(tmp_path_factory.mktemp("real") / "store")


def _traces() -> list[str]:
    path = DATA / "oracle" / "exact_intervals_ns.json"
    return list(json.loads(path.read_text())) if path.is_file() else []


@pytest.fixture(scope="module")
def oracle() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "oracle" / "exact_intervals_ns.json").read_text())
    return found


@pytest.fixture(scope="module")
def busy(real: Ingested) -> dict[tuple[str, int], dict[str, Any]]:
    table = real.store.view("busy_time", per="process", communication_pattern="^nccl.*Kernel")
    return {(row["profile_id"], row["window_index"]): row for row in table.to_pylist()}


@pytest.mark.parametrize("name", _traces())
def test_kineto_agrees_with_the_exact_intervals(
    real: Ingested, oracle: dict[str, Any], busy: dict[tuple[str, int], dict[str, Any]], name: str,
) -> None:
    truth, file = oracle[name], real.row(DATA / "kineto" / name)
    assert file["outcome"] == "read"
    where = f"profile_id = '{file['profile_id']}' AND window_index = {file['window_index']}"
    query = f"SELECT count(*) AS a, sum(duration_ns) AS b, count(DISTINCT name) AS c FROM kernels WHERE {where}"
    kernels, total, names = real.store.sql(query).to_pylist()[0].values()
    operations = real.store.sql(f"SELECT count(*) AS n FROM memory_ops WHERE {where}").to_pylist()[0]["n"]
    assert (kernels, int(total or 0), names) == (
        truth["n_kernels"], truth.get("sum_kernel_dur_ns", 0), truth.get("n_distinct_kernel_names", 0))
    assert kernels + operations == truth["n_gpu_events"]
    if not truth["n_gpu_events"]:
        return
    row = busy[file["profile_id"], file["window_index"]]
    truth = truth | exact_intervals(DATA / "kineto" / name)
    assert {k: row[k] for k in _INTERVALS} == {
        "span_ns": truth["span_ns"], "busy_ns": truth["union_gpu_ns"], "idle_ns": truth["idle_ns"],
        "compute_ns": truth["union_compute_kernel_ns"], "communication_ns": truth["union_nccl_ns"],
        "overlap_ns": truth["overlap_nccl_compute_ns"], "memory_ns": truth["union_memcpy_memset_ns"]}
    streams = real.store.sql(f"SELECT device || '/' || stream AS s FROM kernels WHERE {where} UNION ALL "
                             f"SELECT device || '/' || stream FROM memory_ops WHERE {where}")["s"].to_pylist()
    assert Counter(streams) == truth["streams"]


@pytest.mark.parametrize("name", _traces())
def test_kineto_epoch(real: Ingested, oracle: dict[str, Any], name: str) -> None:
    file = real.row(DATA / "kineto" / name)
    if "first_gpu_ts_ns" not in oracle[name] or not oracle[name]["n_gpu_events"]:
        return
    where = f"profile_id = '{file['profile_id']}' AND window_index = {file['window_index']}"
    first = real.store.sql(f"SELECT min(start_ns) AS s FROM (SELECT start_ns FROM kernels WHERE {where} UNION ALL "
                           f"SELECT start_ns FROM memory_ops WHERE {where})").to_pylist()[0]["s"]
    origin = real.store.sql("SELECT origin_epoch_ns AS o FROM profiles WHERE profile_id = ?",
                            [file["profile_id"]]).to_pylist()[0]["o"]
    assert origin is None or (origin + first - oracle[name]["first_gpu_ts_ns"]) % _QUARTER_NS == 0


@pytest.mark.parametrize("path", sqlite_captures(), ids=[path.stem for path in sqlite_captures()])
def test_nsys_agrees_with_sql_on_the_file(real: Ingested, path: Path) -> None:
    expected = {}
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        for kind in ("KERNEL", "MEMCPY", "MEMSET"):
            name = f"CUPTI_ACTIVITY_KIND_{kind}"
            expected[kind] = (0, 0)
            if name in tables:
                expected[kind] = database.execute(f'SELECT count(*), coalesce(sum("end" - start), 0) FROM {name}').fetchone()
    profile = real.row(path)["profile_id"]
    kernels = tuple(real.store.sql("SELECT count(*) AS n, coalesce(sum(duration_ns), 0)::BIGINT AS t FROM kernels "
                                   "WHERE profile_id = ?", [profile]).to_pylist()[0].values())
    memory = tuple(real.store.sql("SELECT count(*) AS n, coalesce(sum(duration_ns), 0)::BIGINT AS t FROM memory_ops "
                                  "WHERE profile_id = ?", [profile]).to_pylist()[0].values())
    assert kernels == expected["KERNEL"]
    assert memory == tuple(map(sum, zip(expected["MEMCPY"], expected["MEMSET"], strict=True)))


def test_what_is_only_named_sqlite_is_refused(real: Ingested) -> None:
    for path in {*(DATA / "nsys").glob("*.sqlite")} - {*sqlite_captures()}:
        assert path.read_bytes().startswith(b"version https://git-lfs"), path
        assert real.row(path)["outcome"] == "refused" and "git lfs pull" in real.row(path)["reason"]


def test_an_nsys_report_without_kernels_says_why(real: Ingested) -> None:
    profile = real.row(DATA / "nsys" / "NTHU-SC__ISC25-ICON-C__rank_.sqlite")["profile_id"]
    notes = real.store.sql("SELECT severity, message FROM diagnostics WHERE profile_id = ?", [profile]).to_pylist()
    assert any("kernel" in n["message"] and n["severity"] != "info" for n in notes)


def _ncu_launches(path: Path) -> set[tuple[str, str]] | None:
    """Return the (process, ID) pairs of an ncu table by a plain CSV walk; None for a file that holds no such table."""
    text = path.read_text(encoding="utf-8-sig")
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _NCU_HEADER.match(line)), None)
    if start is None:
        return None
    return {(row[1], row[0]) for row in csv.reader(lines[start + 1 :]) if len(row) > 11 and row[0].isdigit()}


NCU_PAGES = sorted((DATA / "ncu").glob("*.csv"))


@pytest.mark.parametrize("path", NCU_PAGES, ids=[path.stem[-60:] for path in NCU_PAGES])
def test_ncu_agrees_with_a_csv_walk(real: Ingested, path: Path) -> None:
    expected, file = _ncu_launches(path), real.row(path)
    if expected is None:
        summaries = real.store.sql("SELECT count(*) AS n FROM metric_summaries WHERE profile_id = ?", [file["profile_id"]])
        lines = sum(1 for row in csv.reader(path.open(encoding="utf-8-sig")) if "(" in "".join(row[4:6]))
        assert (file["outcome"], summaries.to_pylist()[0]["n"]) == (("read", lines) if "Invocations" in path.read_text(
            encoding="utf-8-sig")[:400] and "Average" in path.read_text()[:400] else ("refused", 0))
        return
    if file["outcome"] == "duplicate":
        return
    kernels = real.store.sql("SELECT count(*) AS n FROM kernels WHERE profile_id = ?", [file["profile_id"]]).to_pylist()[0]["n"]
    assert kernels == len(expected)


def test_four_pages_of_one_launch_are_one_row(real: Ingested) -> None:
    pages = [row for path, row in real.files.items() if "v2_kernel_0001_ncu" in path]
    assert len(pages) == 4 and len({row["profile_id"] for row in pages}) == 1


def test_two_files_of_one_process_are_its_windows(real: Ingested) -> None:
    rows = [row for path, row in real.files.items() if "Quentin-Anthony" in path]
    assert len({row["profile_id"] for row in rows}) == 1
    assert [row["window_index"] for row in sorted(rows, key=lambda r: str(r["path"]))] == [0, 1]
    steps = real.store.sql("SELECT window_index, list(DISTINCT step ORDER BY step) AS steps FROM ranges WHERE profile_id = ? "
                           "AND kind = 'step' GROUP BY 1 ORDER BY 1", [rows[0]["profile_id"]]).to_pylist()
    assert [row["steps"] for row in steps] == [[1, 2, 3], [6, 7, 8]]


def test_what_is_refused_can_be_acted_on(real: Ingested) -> None:
    for path, row in real.files.items():
        if row["outcome"] == "refused":
            assert "a bug in nsightlens" not in row["reason"], path
            assert len(row["reason"]) > 40 and ". " in row["reason"], path
    foreign = [p for p in real.files if Path(p).name.startswith("notkineto")]
    assert all(real.files[p]["outcome"] in ("refused", "ignored") for p in foreign)


def _expected() -> list[dict[str, str]]:
    path = DATA / "kineto" / "derived" / "EXPECTED.tsv"
    return list(csv.DictReader(path.open(), delimiter="\t")) if path.is_file() else []


@pytest.mark.parametrize("expected", _expected(), ids=[row["file"] for row in _expected()])
def test_broken_traces_give_what_is_expected(expected: dict[str, str]) -> None:
    path = DATA / "kineto" / "derived" / expected["file"]
    if expected["outcome"] == "refused":
        with pytest.raises(ReadError) as caught:
            nl.read(path)
        assert caught.value.code == expected["diagnostic"]
        return
    tables = nl.read(path)
    profile = tables["profiles"].to_pylist()[0]
    codes = set(tables["diagnostics"]["code"].to_pylist()) if "diagnostics" in tables else set()
    assert (profile["events"], profile["kernels"]) == (int(expected["complete_events"]), int(expected["kernels"]))
    assert (profile["events_lost"] is None) == (expected["lost_events"] == "unknown")
    assert expected["lost_events"] in ("unknown", str(profile["events_lost"]))
    offset = expected["first_bad_byte"].split()[0] if expected["first_bad_byte"] else None
    assert offset is None or profile["first_bad_byte"] == int(offset)
    assert not expected["diagnostic"] or expected["diagnostic"] in codes
    serious = {row["code"] for row in tables["diagnostics"].to_pylist() if row["severity"] != "info"} if codes else set()
    assert expected["diagnostic"] or not serious & {"malformed_json", "truncated", "text_replaced", "impossible_duration"}


def test_no_secret_of_a_capture_reaches_the_store(real: Ingested) -> None:
    """The captures' environments were reduced, but not their paths and user names; none of these may be stored."""
    blobs = b"".join(p.read_bytes() for p in real.store.path.rglob("*") if p.is_file() and p.suffix == ".duckdb")
    for secret in (b"PMI_SHARED_SECRET", b"LD_LIBRARY_PATH", b"HOME=/"):
        assert secret not in blobs
