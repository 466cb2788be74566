"""The views that mirror nsys's reports, against plain SQL and plain loops on the SQLite files themselves."""

from __future__ import annotations

import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.analyses import nvtx_gpu_projection, nvtx_gpu_projection_trace
from nsightlens.analyses.nvtx_gpu_projection_trace import project
from nsightlens.intervals.disjoint import non_overlapping_layers
from nsightlens.pipeline.ingest import ingest
from nsightlens.store.store import Store
from tests.catalogs import asking, catalog, rows_of
from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data"
real = pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")
CAPTURES = [
    "GindaChen__nsys-ai__mfu_2gpu_before", "GindaChen__nsys-ai__mfu_2gpu_after", "hpcgroup__pipit__perlmutter-cloverleaf-cuda",
    "hpcgroup__pipit__saxpy-mpi-cuda_nsys_perlmutter0", "brycelelbach__nsightful__power_iteration__baseline",
    "NTHU-SC__ISC25-ICON-C__gpu", "bwyogatama__Mordred-Deprecated__report1_2021-12",
]
PID = -16777216
"""The bits of globalTid that are those of globalPid."""


class Capture:
    """One report in a store, and its SQLite file."""

    def __init__(self, path: Path, store: Path) -> None:
        ingest([path], store)
        self.store: Store = nl.open(store)
        self._file = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        self.tables = {row[0] for row in self.ask("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def ask(self, query: str) -> list[Any]:
        return self._file.execute(query).fetchall()

    def has(self, *tables: str) -> bool:
        return set(tables) <= self.tables

    def gpu_work(self) -> str:
        """Return a query of start, end, process, correlation id, device and whether it is a kernel, of all work of the GPUs."""
        parts = [f"SELECT start, \"end\" AS stop, globalPid AS process, correlationId AS correlation, deviceId AS device, "
                 f"'{table}' = 'KERNEL' AS kernel FROM CUPTI_ACTIVITY_KIND_{table}"
                 for table in ("KERNEL", "MEMCPY", "MEMSET") if self.has(f"CUPTI_ACTIVITY_KIND_{table}")]
        return " UNION ALL ".join(parts)


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    path = DATA / "nsys" / f"{request.param}.sqlite"
    if not path.is_file():
        pytest.skip("this capture is not here")
    return Capture(path, tmp_path_factory.mktemp("reports") / "store")


def summed(values: Sequence[int]) -> tuple[int, int, float, float, int, int, float]:
    """Return what nsys prints of many values: total, number, mean, median, minimum, maximum and sample deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    middle = float(statistics.median(values))
    return sum(values), len(values), round(statistics.fmean(values), 1), middle, min(values), max(values), round(deviation, 1)


def approximately(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    """Means and deviations are rounded to one decimal by either side: they may differ in that digit, and nothing else."""
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, abs=0.11, rel=1e-12)


def listed(capture: Capture, view: str, keys: Sequence[str], unit: str, number: str) -> dict[Any, Any]:
    columns = [f"total_{unit}", number, f"avg_{unit}", f"median_{unit}", f"min_{unit}", f"max_{unit}", f"stddev_{unit}"]
    return {tuple(row[key] for key in keys): tuple(row[column] for column in columns)
            for row in capture.store.view(view).to_pylist()}


@pytest.mark.captures
@real
def test_api_calls_are_those_of_cuda_api_sum(capture: Capture) -> None:
    if not capture.has("CUPTI_ACTIVITY_KIND_RUNTIME"):
        pytest.skip("no API calls were recorded")
    calls = defaultdict(list)
    for name, duration in capture.ask("SELECT s.value, r.\"end\" - r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r "
                                      "JOIN StringIds AS s ON r.nameId = s.id WHERE r.eventClass IN (0, 1)"):
        stem, _, version = name.rpartition("_v")
        calls[(stem if stem and version.isdigit() else name,)].append(duration)
    found = listed(capture, "cuda_api_summary", ["name"], "ns", "calls")
    approximately(found, {key: summed(values) for key, values in calls.items()})


@pytest.mark.captures
@real
def test_sizes_are_those_of_cuda_gpu_mem_size_sum(capture: Capture) -> None:
    sizes: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    if capture.has("CUPTI_ACTIVITY_KIND_MEMCPY"):
        names = {1: ("memcpy", "HtoD"), 2: ("memcpy", "DtoH"), 8: ("memcpy", "DtoD"), 9: ("memcpy", "HtoH"),
                 10: ("memcpy", "PtoP"), 11: ("migration", "HtoD"), 12: ("migration", "DtoH")}
        for kind, size in capture.ask("SELECT copyKind, bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY"):
            sizes[names[kind]].append(size)
    if capture.has("CUPTI_ACTIVITY_KIND_MEMSET"):
        for (size,) in capture.ask("SELECT bytes FROM CUPTI_ACTIVITY_KIND_MEMSET"):
            sizes["memset", None].append(size)
    found = listed(capture, "memory_op_size_summary", ["kind", "direction"], "bytes", "operations")
    approximately(found, {key: summed(values) for key, values in sizes.items()})


@pytest.mark.captures
@real
def test_ranges_are_those_of_nvtx_sum(capture: Capture) -> None:
    if not capture.has("NVTX_EVENTS"):
        pytest.skip("no NVTX was recorded")
    texts = defaultdict(list)
    for text, duration in capture.ask(
            "SELECT coalesce(n.text, s.value), n.\"end\" - n.start FROM NVTX_EVENTS AS n "
            "LEFT JOIN StringIds AS s ON n.textId = s.id WHERE n.eventType IN (59, 60, 70, 71) AND n.\"end\" IS NOT NULL"):
        texts[text.partition(", op_id = ")[0].partition(", seq = ")[0]].append(duration)
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in capture.store.view("nvtx_summary").to_pylist():
        found[row["name"]][0] += row["total_ns"]
        found[row["name"]][1] += row["instances"]
    assert dict(found) == {name: [sum(values), len(values)] for name, values in texts.items()}


@pytest.mark.captures
@real
def test_launches_are_those_of_cuda_kern_exec_trace(capture: Capture) -> None:
    expected = capture.ask(f"""
        SELECT r.start, r."end" - r.start, CASE WHEN k.start >= r."end" THEN k.start - r."end" END, k.start, k."end" - k.start,
            max(r."end", k."end") - r.start, r.globalTid & 16777215, k.deviceId
        FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
            ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid & {PID} AND r.eventClass IN (0, 1)
    """)
    keys = ("api_start_ns", "api_ns", "queue_ns", "start_ns", "kernel_ns", "total_ns", "thread", "device")
    rows = capture.store.view("kernel_launch_trace").to_pylist()

    def order(row: Any) -> tuple[tuple[bool, int], ...]:
        return tuple((value is None, value or 0) for value in row)

    assert sorted((tuple(row[key] for key in keys) for row in rows), key=order) == sorted(expected, key=order)
    sums = capture.store.view("kernel_launch_summary").to_pylist()
    assert sum(row["instances"] for row in sums) == len(rows)
    assert sum(row["kernel_ns"] for row in sums) == sum(row["kernel_ns"] for row in rows)


@pytest.mark.captures
@real
def test_gaps_are_those_of_gpu_gaps_and_sum_to_idle_time(capture: Capture) -> None:
    expected = []
    for process, device in capture.ask(f"SELECT DISTINCT process, device FROM ({capture.gpu_work()})"):
        work = capture.ask(f"SELECT start, stop FROM ({capture.gpu_work()}) "
                           f"WHERE process IS {process} AND device = {device} ORDER BY start")
        reach = work[0][1]
        for start, stop in work:
            if start > reach:
                expected.append((reach, start - reach))
            reach = max(reach, stop)
    rows = capture.store.view("gpu_gaps", per="process_device", min_gap_ns=1).to_pylist()
    assert sorted((row["start_ns"], row["gap_ns"]) for row in rows) == sorted(expected)
    together: dict[str, int] = defaultdict(int)
    for row in capture.store.view("gpu_gaps", min_gap_ns=1).to_pylist():
        together[row["device_id"]] += row["gap_ns"]
    idle = {row["device_id"]: row["idle_ns"] for row in capture.store.view("busy_time").to_pylist() if row["idle_ns"]}
    assert dict(together) == idle


@pytest.mark.captures
@real
def test_work_is_projected_on_ranges_as_in_nvtx_gpu_proj_trace(capture: Capture) -> None:
    if not capture.has("NVTX_EVENTS"):
        pytest.skip("no NVTX was recorded")
    capture.ask("CREATE TEMP TABLE IF NOT EXISTS launches AS "
                "SELECT r.globalTid AS tid, r.start, r.\"end\" AS stop, r.correlationId AS correlation, w.start AS first, "
                f"w.stop AS last FROM ({capture.gpu_work()}) AS w JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r "
                f"ON w.correlation = r.correlationId AND w.process = r.globalTid & {PID} AND r.eventClass IN (0, 1)")
    capture.ask("CREATE INDEX IF NOT EXISTS temp.by_start ON launches (tid, start)")
    expected = capture.ask("""
        SELECT n.start, n."end" - n.start, n.globalTid & 16777215, min(l.first), max(l.last) - min(l.first),
            sum(l.last - l.first), count(DISTINCT l.correlation), count(*)
        FROM NVTX_EVENTS AS n
        CROSS JOIN launches AS l ON l.tid = n.globalTid AND l.start BETWEEN n.start AND n."end" AND l.stop <= n."end"
        WHERE n.eventType IN (59, 60, 70, 71) AND n."end" IS NOT NULL AND n.endGlobalTid IS NULL
        GROUP BY n.rowid
    """)
    keys = ("range_start_ns", "range_ns", "thread", "start_ns", "projected_ns", "gpu_ns", "launches", "operations")
    rows = capture.store.view("nvtx_gpu_projection_trace").to_pylist()
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(expected)
    by_name = defaultdict(list)
    for row in rows:
        by_name[row["kind"], row["domain"], row["name"]].append(row["projected_ns"])
    found = listed(capture, "nvtx_gpu_projection", ["kind", "domain", "name"], "ns", "instances")
    approximately(found, {key: summed(values) for key, values in by_name.items()})


@pytest.mark.captures
@real
def test_the_captures_hold_what_the_tests_need(tmp_path: Path) -> None:
    """Were these tables empty everywhere, the tests above would hold for nothing."""
    path = DATA / "nsys" / f"{CAPTURES[0]}.sqlite"
    if not path.is_file():
        pytest.skip("this capture is not here")
    capture = Capture(path, tmp_path / "store")
    for view in ("nvtx_gpu_projection_trace", "kernel_launch_trace", "nccl_overlap", "cuda_api_summary"):
        assert capture.store.view(view).num_rows > 0


@pytest.mark.captures
@real
@pytest.mark.parametrize("name", [
    "kineto/facebookresearch__HolisticTraceAnalysis__nccl_data_rank0.json.gz", f"nsys/{CAPTURES[0]}.sqlite"])
def test_overlap_is_that_of_a_plain_sweep(tmp_path: Path, name: str) -> None:
    if not (DATA / name).is_file():
        pytest.skip("this capture is not here")
    ingest([DATA / name], tmp_path / "store")
    with nl.open(tmp_path / "store") as store:
        kernels = store.sql("SELECT process_id, device_id, name, start_ns, start_ns + duration_ns AS end_ns, "
                            "family = 'collective' AS communicates FROM kernels ORDER BY start_ns").to_pylist()
        rows = store.view("nccl_overlap").to_pylist()
    expected: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    together: dict[Any, list[Any]] = defaultdict(list)
    for kernel in kernels:
        together[kernel["process_id"], kernel["device_id"]].append(kernel)
    for kernel in kernels:
        others = [other for other in together[kernel["process_id"], kernel["device_id"]] if other is not kernel
                  and other["start_ns"] < kernel["end_ns"] and other["end_ns"] > kernel["start_ns"]]
        total = expected[kernel["process_id"], kernel["device_id"], kernel["name"]]
        for which, communicates in enumerate((True, False)):
            total[which] += _united([(max(o["start_ns"], kernel["start_ns"]), min(o["end_ns"], kernel["end_ns"]))
                                     for o in others if o["communicates"] == communicates])
    found = {(row["process_id"], row["device_id"], row["name"]): [row["communication_overlap_ns"], row["compute_overlap_ns"]]
             for row in rows}
    assert found == dict(expected) and any(sum(value) for value in found.values())


def _united(intervals: list[tuple[int, int]]) -> int:
    total, reach = 0, min(intervals, default=(0, 0))[0]
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def projected(text: str, **tables: str) -> list[tuple[Any, ...]]:
    """Return range, projection, durations and counts for rows given as CSV without their common columns."""
    where = {"run": "base", "tool": "nsys", "profile_id": "P", "process_id": "p"}
    given = {name: [row | where for row in rows_of(name, csv)] for name, csv in {"ranges": text, **tables}.items()}
    connection = catalog(**given)
    ask = asking(connection)
    rows = nvtx_gpu_projection_trace.analyse(ask).to_pylist()
    assert sum(row["instances"] for row in nvtx_gpu_projection.analyse(ask).to_pylist()) == len(rows)
    keys = ("range_id", "start_ns", "projected_ns", "gpu_ns", "launches", "operations")
    return [tuple(row[key] for key in keys) for row in rows]


CALLS = """launch_id,thread,start_ns,duration_ns
1,1,10,5
2,1,20,5
3,1,40,5
4,2,12,5"""
KERNELS = """kernel_id,launch_id,start_ns,duration_ns
1,1,100,10
2,2,105,10
3,2,130,10
4,3,200,50
5,4,300,10
6,,400,10"""


def test_a_range_projects_all_that_was_launched_within_it_on_its_thread() -> None:
    """Nested ranges count for themselves and for those around them; crossing ones each count what lies within them."""
    ranges = """range_id,thread,end_thread,start_ns,duration_ns,kind,name
1,1,,0,100,nvtx_push_pop,outer
2,1,,18,10,nvtx_push_pop,inner
3,1,,0,42,nvtx_push_pop,the third call ends after it
4,1,,15,40,nvtx_start_end,crosses the one before
5,1,,26,5,nvtx_push_pop,no launch within
6,1,2,0,100,nvtx_start_end,ended elsewhere
7,1,,0,,nvtx_push_pop,never closed
8,1,,20,5,operator,just the call
9,3,,0,100,nvtx_push_pop,no calls on its thread
10,2,,0,100,gpu_annotation,of the GPU"""
    assert projected(ranges, api_calls=CALLS, kernels=KERNELS) == [
        (1, 100, 150, 80, 3, 4), (3, 100, 40, 30, 2, 3), (6, 100, 150, 80, 3, 4), (4, 105, 145, 70, 2, 3),
        (2, 105, 35, 20, 1, 2), (8, 105, 35, 20, 1, 2)]


def test_copies_count_and_calls_within_calls_do_too() -> None:
    ranges = "range_id,thread,start_ns,duration_ns,kind,name\n1,1,0,30,annotation,a\n2,1,0,14,annotation,ends first"
    calls = "launch_id,thread,start_ns,duration_ns\n1,1,5,20\n2,1,10,2\n3,1,13,1"
    kernels = "kernel_id,launch_id,start_ns,duration_ns\n1,1,50,5\n2,2,40,5"
    copies = "memory_op_id,launch_id,start_ns,duration_ns\n1,3,60,7"
    assert projected(ranges, api_calls=calls, kernels=kernels, memory_ops=copies) == [
        (1, 40, 27, 17, 3, 3), (2, 40, 27, 12, 2, 2)]


def test_nothing_launched_is_no_row() -> None:
    assert projected("range_id,thread,start_ns,duration_ns,kind,name\n1,1,0,30,annotation,a") == []


def test_projection_is_that_of_a_plain_loop() -> None:
    """Random calls, some of them within others, and random ranges, nested and crossing."""
    generator = np.random.default_rng(7)
    start = np.sort(generator.integers(0, 3000, 400))
    end = start + generator.integers(0, 12, 400)
    first = generator.integers(0, 10**6, 400)
    last = first + generator.integers(1, 50, 400)
    calls = pa.table({"start_ns": start, "end_ns": end, "first_ns": first, "last_ns": last, "gpu_ns": last - first,
                      "operations": generator.integers(1, 4, 400)})
    begin = generator.integers(0, 3000, 300)
    stop = begin + generator.integers(0, 900, 300)
    work = project(calls, begin, stop)
    assert len(non_overlapping_layers(start, end)) > 1
    for place, (one, other) in enumerate(pairwise(np.stack([begin, stop]).T.ravel())):
        if place % 2:
            continue
        inside = (start >= one) & (end <= other)
        at = place // 2
        assert work.launches[at] == inside.sum()
        assert work.operations[at] == calls["operations"].to_numpy()[inside].sum()
        assert work.total[at] == (last - first)[inside].sum()
        if inside.any():
            assert (work.first[at], work.last[at]) == (first[inside].min(), last[inside].max())
