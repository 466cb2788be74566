"""Tables that `nsys stats --report nvtx_gpu_proj_trace` prints: in all units and locales, damaged, and against their reports."""

from __future__ import annotations

import csv
import gzip
import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError, ReadError
from nsightlens.readers import nsys
from tests.places import ROOT, sqlite_captures
from tests.readers import nsys_csv
from tests.readers.nsys_csv import codes, of, read
from tests.readers.nsys_report import report

TIMES = ("Projected Start", "Projected Duration", "Orig Start", "Orig Duration")
OTHERS = ("Style", "PID", "TID", "NumGPUOps", "Lvl", "NumChild", "RangeId", "ParentId", "RangeStack")
HEADER = ("Name", *(f"{name} (ns)" for name in TIMES), *OTHERS)
STEP = (":step 4", "2000", "900", "1000", "500", "PushPop", "70", "71", "3", "0", "1", "9", "", ":9")
INNER = ("NCCL:ncclAllReduce", "2100", "300", "1100", "50", "PushPop", "70", "71", "1", "1", "0", "10", "9", ":9:10")
OTHER = (":load: 2", "5000", "10", "4000", "20", "StartEnd", "80", "81", "1", "", "", "11", "", "")
OUTSIDE = ("None", "7000", "40", "None", "None", "None", "70", "75", "5", "None", "0", "None", "None", "None")
UNITS = {"ns": 1, "usec": 10**3, "ms": 10**6, "s": 10**9}
CAPTURE = ROOT.parent / "shared" / "data" / "nsys" / "mingxu1067__GPU-Perf-Analyzer__demo_nvtx_gpu_proj_trace.csv"


def printed(rows: list[tuple[str, ...]], head: tuple[str, ...] = HEADER, delimiter: str = ",") -> str:
    return nsys_csv.printed(rows, head, delimiter)


def test_host_times_are_ranges_and_gpu_times_are_projections(tmp_path: Path) -> None:
    found = of(tmp_path, printed([STEP, INNER, OTHER, OUTSIDE]))
    assert found["processes"] == [{"process_index": 0, "pid": 70}, {"process_index": 1, "pid": 80}]
    assert found["ranges"] == [
        {"process_index": 0, "thread": 71, "start_ns": 1000, "duration_ns": 500, "kind": "step", "name": "step 4", "step": 4},
        {"process_index": 0, "thread": 71, "start_ns": 1100, "duration_ns": 50, "kind": "nvtx_push_pop", "name": "ncclAllReduce",
         "domain": "NCCL"},
        {"process_index": 1, "thread": 81, "start_ns": 4000, "duration_ns": 20, "kind": "nvtx_start_end", "name": "load: 2"}]
    assert found["range_projections"] == [
        {"process_index": 0, "range_row": 0, "thread": 71, "start_ns": 2000, "duration_ns": 900, "launches": 3},
        {"process_index": 0, "range_row": 1, "thread": 71, "start_ns": 2100, "duration_ns": 300, "launches": 1},
        {"process_index": 1, "range_row": 2, "thread": 81, "start_ns": 5000, "duration_ns": 10, "launches": 1},
        {"process_index": 0, "thread": 75, "start_ns": 7000, "duration_ns": 40, "launches": 5}]
    assert "kernels" not in found and codes(found) == {"reduced_input": 1, "outside_of_ranges": 1}
    (profile,) = found["profiles"]
    assert (profile["format"], profile["events"]) == ("nsys nvtx_gpu_proj_trace csv", 4)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("delimiter", "decimal", "thousands"), [
    (",", ".", ""), (",", ".", ","), (";", ",", ""), (";", ",", "."), ("\t", ".", ""), (";", ".", ",")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_units_and_locales(tmp_path: Path, unit: str, delimiter: str, decimal: str, thousands: str, encoding: str) -> None:
    times = [(533_338_240, 1_367_644, 1_999_999_999, 2_000_000_001), (534_720_380, 9_018_333, 7, 1_234_567)]

    def number(ns: int) -> str:
        digits = len(str(UNITS[unit])) - 1
        text = f"{ns // UNITS[unit]:,}".replace(",", thousands)
        return text + (f"{decimal}{ns % UNITS[unit]:0{digits}}" if digits else "")

    head = ("Name", *(f"{name} ({unit})" for name in TIMES), *OTHERS)
    pid = f"{296983:,}".replace(",", thousands)
    rows = [(":a", *(number(ns) for ns in row), "PushPop", pid, pid, *STEP[8:]) for row in times]
    found = of(tmp_path, printed(rows, head, delimiter), encoding)
    read_back = [(there["start_ns"], there["duration_ns"], here["start_ns"], here["duration_ns"])
                 for here, there in zip(found["ranges"], found["range_projections"], strict=True)]
    assert read_back == times and set(codes(found)) == {"reduced_input"}
    assert [(row["pid"], found["ranges"][0]["thread"]) for row in found["processes"]] == [(296983, 296983)]


@pytest.mark.parametrize(("names", "expected", "unknown"), [
    ([":a", "X:b:c", ":d::e"], [(None, "a"), ("X", "b:c"), (None, "d::e")], 0),
    (["a", "NCCL:ncclSend", "aten::mm, seq = 5", "X:b"],
     [(None, "a"), ("NCCL", "ncclSend"), (None, "aten::mm"), (None, "X:b")], 2),
    (["X:b", "NCCL:other"], [(None, "X:b"), (None, "NCCL:other")], 2),
    (["a", ":b", "aten::mm"], [(None, "a"), (None, "b"), (None, "aten::mm")], 1),
    (["", ":", "None", "-"], [(None, ""), (None, ""), (None, "None"), (None, "-")], 0),
])
def test_a_domain_is_taken_off_only_where_it_is_sure(
    tmp_path: Path, names: list[str], expected: list[tuple[str | None, str]], unknown: int,
) -> None:
    """Older versions print nothing before ranges of the default domain: what stands before a colon may be of the name itself."""
    found = of(tmp_path, printed([(name, *STEP[1:]) for name in names]))
    assert [(row.get("domain"), row.get("name")) for row in found["ranges"]] == expected
    assert codes(found).get("domain_unknown", 0) == unknown


def test_damaged_rows_are_counted_and_named(tmp_path: Path) -> None:
    bad = [(":x", "?", *STEP[2:]), (":x", "1", "2", "?", *STEP[4:]), STEP[:6], (":y", "1", "-2", "3", "-4", *STEP[5:])]
    found = of(tmp_path, printed([STEP, *bad]) + "\nOther,Report\n")
    assert [row["name"] for row in found["ranges"]] == ["step 4", "y"]
    assert "duration_ns" not in found["ranges"][1] and "duration_ns" not in found["range_projections"][1]
    assert codes(found) == {"reduced_input": 1, "rows_damaged": 3, "bad_values": 4, "more_tables": 1}
    with pytest.raises(ReadError, match="nvtx_gpu_proj_trace"):
        of(tmp_path, printed([bad[0]]))


def test_cut_and_changed_bytes_give_rows_or_a_named_refusal(tmp_path: Path) -> None:
    whole = printed([(f":r{n}", str(1000 + 300 * n), *(STEP if n % 3 else OTHER)[2:]) for n in range(40)]).encode()
    packed = gzip.compress(whole)
    rng = random.Random(5)
    path = tmp_path / "t.csv"
    for number in range(300):
        data = bytearray(packed if number % 5 == 0 else whole)
        for _ in range(rng.randint(0, 6)):
            data[rng.randrange(len(data))] = rng.choice((0, 10, 34, 44, 59, 0xFF, rng.randrange(256)))
        path.write_bytes(data[:rng.randint(1, len(data))] if rng.random() < 0.6 else data)
        try:
            nsys.probe(path)
            found = read(path)
        except NsightlensError as exc:
            assert str(path) in str(exc)
            continue
        links = [row["range_row"] for row in found["range_projections"] if "range_row" in row]
        assert found["profiles"][0]["events"] == len(found["range_projections"]) > 0
        assert links == list(range(len(found["ranges"])))


def test_beside_its_report_it_is_not_counted_twice(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    report(run)
    (sqlite_file,) = run.glob("*.sqlite")
    (run / f"{sqlite_file.stem}_nvtx_gpu_proj_trace.csv").write_text(printed([STEP]))
    with nl.ingest(run, store=tmp_path / "store", jobs=1) as store:
        assert store.sql("SELECT outcome FROM files WHERE path LIKE '%.csv'").to_pylist() == [{"outcome": "duplicate"}]


def test_the_views_say_what_nsys_printed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "rank3_nvtx_gpu_proj_trace.csv").write_text(printed([STEP, INNER, INNER, OUTSIDE]))
    with nl.ingest(run, store=tmp_path / "store", jobs=1) as store:
        trace = store.view("nvtx_gpu_projection_trace").to_pylist()
        rows = {row["name"]: row for row in store.view("nvtx_gpu_projection").to_pylist()}
    assert [(row["rank"], row["start_ns"], row["projected_ns"], row["range_start_ns"], row["range_ns"], row["launches"],
             row["depth"], row["gpu_ns"], row["operations"]) for row in trace][:2] == [
        (3, 2000, 900, 1000, 500, 3, 0, None, None), (3, 2100, 300, 1100, 50, 1, 1, None, None)]
    assert trace[1]["parent_id"] == trace[0]["range_id"]
    expected = {"total_ns": 600, "instances": 2, "range_ns": 100, "launches": 2, "gpu_ns": None, "operations": None}
    assert {key: rows["ncclAllReduce"][key] for key in expected} == expected


PROJECTED = """
WITH work AS ({work}), launches AS (
    SELECT r.globalTid AS tid, r.start, r."end" AS stop, r.correlationId AS correlation, w.start AS first, w.stop AS last
    FROM work AS w JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON w.correlation = r.correlationId
        AND w.process = r.globalTid & -16777216 AND r.eventClass IN (0, 1)
)
SELECT coalesce(n.text, s.value), min(l.first), max(l.last) - min(l.first), n.start, n."end" - n.start,
    CASE WHEN n.eventType IN (59, 70) THEN 'PushPop' ELSE 'StartEnd' END, n.globalTid >> 24 & 16777215, n.globalTid & 16777215,
    count(DISTINCT l.correlation)
FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s ON s.id = n.textId
CROSS JOIN launches AS l ON l.tid = n.globalTid AND l.start BETWEEN n.start AND n."end" AND l.stop <= n."end"
WHERE n.eventType IN (59, 60, 70, 71) AND n."end" IS NOT NULL AND n.endGlobalTid IS NULL
GROUP BY n.rowid ORDER BY min(l.first), n.rowid"""
SAME = ("thread", "start_ns", "projected_ns", "range_start_ns", "range_ns", "launches", "depth")


def _projected(path: Path) -> list[Any]:
    """Return the rows that nsys prints of a report, up to the level, by plain SQL."""
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not {"NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"} <= tables:
            return []
        columns = {row[1] for row in database.execute("PRAGMA table_info(NVTX_EVENTS)")}
        if "textId" not in columns:
            return []
        work = " UNION ALL ".join(f'SELECT start, "end" AS stop, globalPid AS process, correlationId AS correlation '
                                  f"FROM CUPTI_ACTIVITY_KIND_{table}" for table in ("KERNEL", "MEMCPY", "MEMSET")
                                  if f"CUPTI_ACTIVITY_KIND_{table}" in tables)
        return database.execute(PROJECTED.format(work=work)).fetchall()


REPORTS = [path for path in sqlite_captures() if "healthy" not in path.name]


@pytest.mark.captures
@pytest.mark.parametrize("path", REPORTS, ids=[path.stem for path in REPORTS])
def test_the_table_of_a_real_report_says_what_the_view_of_the_report_says(path: Path, tmp_path: Path) -> None:
    """Printed here with plain SQL after nsys's columns, in us with decimal commas."""
    rows = _projected(path)
    if not rows:
        pytest.skip("no range launched work")
    head = ("Name", *(f"{name} (us)" for name in TIMES), *OTHERS)
    lines = [(f":{row[0]}", *(f"{time // 1000},{time % 1000:03}" for time in row[1:5]), *map(str, row[5:]), *[""] * 5)
             for row in rows]
    (tmp_path / "t_nvtx_gpu_proj_trace.csv").write_text(printed(lines, head, ";"))
    found = []
    for number, one in enumerate((path, tmp_path / "t_nvtx_gpu_proj_trace.csv")):
        with nl.ingest(one, store=tmp_path / f"store{number}", jobs=1) as store:
            projected = store.view("nvtx_gpu_projection_trace").to_pylist()
            found.append(Counter(tuple(row[key] for key in SAME) for row in projected))
            total = store.view("nvtx_gpu_projection").to_pylist()
            assert sum(row["total_ns"] for row in total) == sum(row[2] for row in rows)
    assert found[0] == found[1]


@pytest.mark.captures
@pytest.mark.skipif(not CAPTURE.is_file(), reason="the capture is not here")
def test_a_table_that_nsys_printed(tmp_path: Path) -> None:
    """The level, the parent and the times of all ranges are those in the file."""
    with CAPTURE.open(newline="") as file:
        rows = {int(row["RangeId"]): row for row in csv.DictReader(file) if row["RangeId"] != "None"}

    def times(row: dict[str, str]) -> tuple[int, ...]:
        return tuple(int(row[f"{name} (ns)"]) for name in TIMES)

    expected = Counter((*times(row), int(row["NumGPUOps"]), int(row["TID"]), int(row["Lvl"]),
                        times(rows[int(row["ParentId"])])[2] if row["ParentId"] != "None" else None) for row in rows.values())
    with nl.ingest(CAPTURE, store=tmp_path / "store", jobs=1) as store:
        trace = store.view("nvtx_gpu_projection_trace").to_pylist()
        outside = store.sql("SELECT launches FROM range_projections WHERE range_id IS NULL").to_pylist()
    start_of = {row["range_id"]: row["range_start_ns"] for row in trace}
    assert Counter((row["start_ns"], row["projected_ns"], row["range_start_ns"], row["range_ns"], row["launches"], row["thread"],
                    row["depth"], start_of.get(row["parent_id"])) for row in trace) == expected
    assert len(expected) > 28_000 and outside == [{"launches": 315}]
