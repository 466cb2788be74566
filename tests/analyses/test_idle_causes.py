"""The causes of idle time: of small processes made by hand, and of all real nsys reports in plain loops over their files."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.analyses import idle_causes
from nsightlens.analyses._host_functions import functions
from nsightlens.columns import arrays
from nsightlens.errors import UsageError
from tests.catalogs import asking, catalog, fill, rows_of
from tests.places import sqlite_captures
from tests.sql.test_nsys_reports import PID, Capture
from tests.sql.test_nsys_rules import calls as calls_of

WHO = "run,tool,profile_id,process_id,window_index"
HERE = "base,nsys,P,p,0"
KERNELS = "kernel_id,device_id,context,stream,start_ns,duration_ns,launch_id,name"
CALLS = "launch_id,thread,start_ns,duration_ns,name"
WAITS = "synchronization_id,launch_id,context,stream,start_ns,duration_ns,kind,event_id"
AWAITING = ("DeviceSynchronize", "CtxSynchronize", "StreamSynchronize", "EventSynchronize", "ThreadSynchronize")


@pytest.fixture(scope="module", params=[None, 1], ids=["all gaps at once", "gap by gap"])
def empty(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    with pytest.MonkeyPatch.context() as patched:
        if request.param:
            patched.setattr(arrays, "CHUNK_ROWS", request.param)
        yield catalog()


def _rows(table: str, names: str, text: str) -> list[dict[str, Any]]:
    return rows_of(table, "\n".join([f"{WHO},{names}", *(f"{HERE},{line.strip()}" for line in text.strip().splitlines())]))


def _causes(connection: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], **parameters: Any) -> list[Any]:
    return [(row["cause"], row["name"], row["began_in"], row["idle_ns"], row["gaps"])
            for row in _all(connection, tables, **parameters)]


def _all(connection: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], **parameters: Any) -> list[Any]:
    ask = asking(connection)

    connection.execute("BEGIN")
    try:
        fill(connection, **tables)
        rows: list[dict[str, Any]] = idle_causes.analyse(ask, **parameters).to_pylist()
    finally:
        connection.execute("ROLLBACK")
    assert all(sum(row["idle_ns"] for row in rows if row["stream"] == each["stream"]) == each["gaps_ns"] for each in rows)
    return rows


def test_a_gap_that_a_synchronisation_began(empty: duckdb.DuckDBPyConnection) -> None:
    """The GPU is done at 100; the call returns at 120, the next launch begins at 170 after a malloc, its kernel at 190."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,5,cudaLaunchKernel
            2,1,20,100,cudaDeviceSynchronize
            3,1,130,30,cudaMalloc
            4,1,170,8,cudaLaunchKernel
            5,2,100,90,cudaStreamSynchronize"""),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,90,1,k1\n2,g,1,7,190,10,4,k2"),
    }
    sync = "cudaDeviceSynchronize"
    assert _causes(empty, tables) == [
        ("call", "cudaMalloc", sync, 30, 1), ("cpu", None, sync, 20, 1), ("launch", "cudaLaunchKernel", sync, 20, 1),
        ("synchronisation", sync, sync, 20, 1)]


def test_work_that_was_launched_in_time_or_from_nowhere(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, "1,1,0,5,cudaLaunchKernel\n2,1,10,5,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,10,1,k\n2,g,1,7,22,10,2,k\n3,g,1,7,40,10,99,k\n4,g,1,7,55,1,,k"),
    }
    assert _causes(empty, tables) == [("unlinked", None, None, 13, 2), ("queue", None, None, 2, 1)]


def test_a_call_that_cupti_saw_wait_and_one_that_only_asks(empty: duckdb.DuckDBPyConnection) -> None:
    """cudaFree waits for the GPU by CUPTI's word; cudaEventQuery has a row of the same kind, and returns at once."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,5,cudaLaunchKernel
            2,1,20,30,cudaFree
            3,1,60,10,cudaEventQuery
            4,1,80,5,cudaLaunchKernel"""),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,30,1,k1\n2,g,1,7,90,10,4,k2"),
        "synchronizations": _rows("synchronizations", WAITS, "1,2,1,,20,30,context,\n2,3,1,,60,10,event,5"),
    }
    assert _causes(empty, tables) == [
        ("cpu", None, "cudaFree", 20, 1), ("call", "cudaEventQuery", "cudaFree", 10, 1),
        ("launch", "cudaLaunchKernel", "cudaFree", 10, 1),
        ("synchronisation", "cudaFree", "cudaFree", 10, 1)]


def test_a_stream_that_waits_for_an_event(empty: duckdb.DuckDBPyConnection) -> None:
    """Stream 8 was told to wait before its second kernel, not before its third; the device is busy all the while."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,2,cudaLaunchKernel
            2,1,2,2,cudaLaunchKernel
            3,1,4,1,cudaStreamWaitEvent
            4,1,6,2,cudaLaunchKernel
            5,1,8,2,cudaLaunchKernel"""),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,100,1,a\n2,g,1,8,10,10,2,b\n3,g,1,8,110,5,4,c\n4,g,1,8,118,5,5,d"),
        "synchronizations": _rows("synchronizations", WAITS, "1,3,1,8,4,1,stream_wait_event,31"),
    }
    assert _causes(empty, tables, per="stream") == [("event", None, None, 90, 1), ("queue", None, None, 3, 1)]
    assert _causes(empty, tables) == [("queue", None, None, 3, 1)]


def test_a_long_kernel_hides_the_time_between_short_ones(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, "\n".join(f"{n},1,{n},1,cudaLaunchKernel" for n in range(1, 5))),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,100,1,long\n2,g,1,8,20,10,2,a\n3,g,1,8,60,10,3,b\n4,g,1,7,120,5,4,c"),
    }
    assert _causes(empty, tables) == [("queue", None, None, 10, 1)]
    assert _causes(empty, tables, per="stream") == [("queue", None, None, 10, 1), ("queue", None, None, 30, 1)]


def test_one_kernel_leaves_no_gap(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {"api_calls": _rows("api_calls", CALLS, "1,1,0,5,cudaLaunchKernel"),
              "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,10,1,k")}
    assert _causes(empty, tables) == [] == _causes(empty, tables, per="stream")


@pytest.mark.parametrize(("launched", "causes"), [
    (20, [("queue", None, None, 10, 1)]),
    (21, [("launch", "cudaLaunchKernel", None, 9, 1), ("cpu", None, None, 1, 1)]),
])
def test_work_launched_just_when_the_gap_began_waits_in_the_queue(
    launched: int, causes: list[Any], empty: duckdb.DuckDBPyConnection,
) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, f"1,1,0,5,cudaLaunchKernel\n2,1,{launched},4,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,10,1,k\n2,g,1,7,30,10,2,k"),
    }
    assert _causes(empty, tables) == causes


@pytest.mark.parametrize("function", ["cudaMemcpy", "cudaMemset", "cuMemsetD8_v2"])
def test_a_gap_that_a_copy_or_a_memset_began(function: str, empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, f"1,1,0,5,cudaLaunchKernel\n2,1,15,10,{function}\n3,1,30,5,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,10,1,k\n2,g,1,7,40,10,3,k"),
    }
    assert _causes(empty, tables) == [
        ("launch", "cudaLaunchKernel", function, 10, 1), ("call", function, function, 5, 1), ("cpu", None, function, 5, 1)]


def test_a_call_within_another_and_a_copy(empty: duckdb.DuckDBPyConnection) -> None:
    """The driver's call is part of the runtime's; the gap begins in a blocking copy."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,30,cudaMemcpy
            2,1,5,20,cuMemcpyDtoH
            3,1,40,10,cudaLaunchKernel
            4,1,42,5,cuLaunchKernel"""),
        "memory_ops": _rows("memory_ops", "memory_op_id,device_id,context,stream,start_ns,duration_ns,launch_id,kind,name",
                            "1,g,1,7,10,10,1,memcpy,copy"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,60,10,4,k"),
    }
    assert _causes(empty, tables) == [
        ("launch", "cuLaunchKernel", "cudaMemcpy", 18, 1), ("call", "cudaMemcpy", "cudaMemcpy", 10, 1),
        ("cpu", None, "cudaMemcpy", 10, 1), ("call", "cudaLaunchKernel", "cudaMemcpy", 2, 1)]


FUNCTIONS = "host_function_id,context,stream,start_ns,duration_ns,launch_id,kind"


def test_what_had_to_wait_for_a_function_of_the_host(empty: duckdb.DuckDBPyConnection) -> None:
    """Two functions of stream 7 overlap each other and the ends of its gap, from 100 to 190; that of stream 8 holds up nothing.
    The thread waits from 20 to 150, launches the next kernel from 160 on, the last before the gap in front of it began."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,5,cudaLaunchKernel
            2,1,6,2,cudaLaunchHostFunc
            3,1,20,130,cudaDeviceSynchronize
            4,1,160,8,cudaLaunchKernel
            5,1,170,8,cudaLaunchKernel"""),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,90,1,k1\n2,g,1,7,190,10,4,k2\n3,g,1,7,210,10,5,k3"),
        "host_functions": _rows("host_functions", FUNCTIONS, """1,1,7,90,30,2,launch
            2,1,7,110,25,,launch
            3,1,7,180,20,2,launch
            4,1,8,150,30,2,launch
            5,1,7,205,1,2,launch
            6,1,7,,,2,launch"""),
    }
    sync = "cudaDeviceSynchronize"
    expected = [
        ("host_function", "cudaLaunchHostFunc", None, 31, 2), ("launch", "cudaLaunchKernel", sync, 20, 1),
        ("host_function", None, None, 15, 1), ("synchronisation", sync, sync, 15, 1), ("cpu", None, sync, 10, 1),
        ("queue", None, None, 9, 1)]
    assert _causes(empty, tables) == expected
    assert _causes(empty, tables, per="stream") == expected


def test_it_is_per_device_or_per_stream(empty: duckdb.DuckDBPyConnection) -> None:
    assert _causes(empty, {}) == []
    with pytest.raises(UsageError, match="per is one of device, stream"):
        _causes(empty, {}, per="process")


CAPTURES = [path for path in sqlite_captures() if "healthy" not in path.name]


STATES = "thread_state_id,thread,start_ns,state"


@pytest.mark.parametrize(("states", "off"), [
    ("1,1,0,running", [0, 0, 0, 0]), ("1,1,0,off_cpu", [30, 20, 20, 20]), ("1,1,185,off_cpu", [0, 0, 5, 0]),
    ("1,1,185,running", [30, 20, 15, 20]), ("1,2,0,off_cpu", [None] * 4), ("", [None] * 4),
    ("4,1,165,running\n3,1,140,off_cpu\n2,1,115,running\n1,1,30,off_cpu", [20, 5, 0, 15]),
    ("1,1,30,off_cpu\n2,1,140,running\n3,1,140,off_cpu\n4,1,165,running", [30, 15, 0, 20])])
def test_how_long_the_thread_ran_on_no_cpu(empty: duckdb.DuckDBPyConnection, states: str, off: list[int | None]) -> None:
    """In the malloc from 130 to 160, outside of calls until 170, from there to the kernel at 190, in the wait from 100 to 120."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,5,cudaLaunchKernel
            2,1,20,100,cudaDeviceSynchronize
            3,1,130,30,cudaMalloc
            4,1,170,8,cudaLaunchKernel"""),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,90,1,k1\n2,g,1,7,190,10,4,k2\n3,g,1,7,205,10,,k3"),
        "thread_states": _rows("thread_states", STATES, states) if states else [],
    }
    rows = {row["cause"]: row["off_cpu_ns"] for row in _all(empty, tables)}
    assert rows == dict(zip(("call", "cpu", "launch", "synchronisation"), off, strict=True)) | {"unlinked": None}


def test_a_share_is_rounded_to_a_tenth_and_time_off_the_cpu_counts_from_where_a_part_begins(
        empty: duckdb.DuckDBPyConnection) -> None:
    """A gap of 300 ns: 100 in a call that began right behind the first kernel, 200 until the next launch returns."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, "1,1,0,5,cudaLaunchKernel\n2,1,10,100,cudaMalloc\n3,1,305,5,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,5,5,1,k1\n2,g,1,7,310,10,3,k2"),
        "thread_states": _rows("thread_states", STATES, "1,1,0,off_cpu"),
    }
    assert [(row["cause"], row["idle_ns"], row["idle_pct"], row["off_cpu_ns"]) for row in _all(empty, tables)] == [
        ("cpu", 195, 65.0, 195), ("call", 100, 33.3, 100), ("launch", 5, 1.7, 5)]


def test_the_first_call_of_all_may_have_launched_what_the_gpu_waits_for(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {"api_calls": _rows("api_calls", CALLS, "1,1,8,4,cudaLaunchKernel"),
              "kernels": _rows("kernels", KERNELS, "1,g,1,7,0,5,,k1\n2,g,1,7,20,10,1,k2")}
    assert _causes(empty, tables) == [("launch", "cudaLaunchKernel", None, 12, 1), ("cpu", None, None, 3, 1)]


def test_of_threads_some_of_which_are_unknown_nothing_is_summed(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, "1,1,0,5,cudaLaunchKernel\n2,1,50,5,cudaLaunchKernel\n3,2,90,5,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,10,1,k\n2,g,1,7,60,10,2,k\n3,g,1,7,100,10,3,k"),
        "thread_states": _rows("thread_states", STATES, "1,1,0,running"),
    }
    assert {(row["cause"], row["off_cpu_ns"]) for row in _all(empty, tables)} == {("cpu", None), ("launch", None)}


@pytest.mark.captures
@pytest.mark.parametrize("path", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_every_gap_of_real_reports_in_a_plain_loop(path: Path, tmp_path: Path) -> None:
    capture = Capture(path, tmp_path / "store")
    assert _found(capture.store) == _expected(capture)


def _found(store: nl.Store) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for row in store.view("idle_causes").to_pylist():
        found[row["cause"], row["name"], row["began_in"]] += row["idle_ns"]
    return {key: total for key, total in found.items() if total}


def _expected(capture: Capture) -> dict[Any, int]:
    """Return the idle time by cause of the devices that one process each used: gap after gap, call after call."""
    by_process: dict[int, dict[int, Any]] = defaultdict(dict)
    by_thread: dict[Any, list[Any]] = defaultdict(list)
    waited = _waited(capture)
    for start, end, pid, thread, name, correlation, process in sorted(calls_of(capture), key=lambda call: (call[0], -call[1])):
        line = by_thread[pid, thread]
        waits = (process, correlation) in waited or any(name.endswith(part) for part in AWAITING)
        if line and line[-1][1] > start:  # within the call before it
            line[-1][3] |= waits
        else:
            line.append([start, end, name, waits])
        by_process[process].setdefault(correlation, (start, line, name))
    return _split(_gaps(capture), by_process, _behind_events(capture, by_process))


def _waited(capture: Capture) -> set[tuple[int, int]]:
    if not capture.has("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
        return set()
    return set(capture.ask(  # those of streams name a stream and an event
        "SELECT y.globalPid, y.correlationId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS y "
        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = y.correlationId AND "
        f"r.globalTid & {PID} = y.globalPid JOIN StringIds AS s ON s.id = r.nameId "
        "WHERE s.value NOT LIKE '%Query%' AND (y.streamId = 4294967295 OR y.eventId = 4294967295)"))


def _gaps(capture: Capture) -> list[tuple[int, int, int, int]]:
    """Return begin, end, process and correlation id of each gap, device after device."""
    if not capture.has("CUPTI_ACTIVITY_KIND_KERNEL"):
        return []
    work: dict[Any, list[Any]] = defaultdict(list)
    for number, table in enumerate(("KERNEL", "MEMCPY", "MEMSET")):
        if capture.has(f"CUPTI_ACTIVITY_KIND_{table}"):
            for row in capture.ask(f'SELECT start, "end", {number} > 0, globalPid, deviceId, correlationId FROM '
                                   f"CUPTI_ACTIVITY_KIND_{table} ORDER BY rowid"):
                work[row[3], row[4]].append(row)
    gaps = []
    for (process, _), rows in work.items():
        reach = None
        for start, end, _, _, _, correlation in sorted(rows, key=lambda row: row[:3]):
            if reach is not None and start > reach:
                gaps.append((reach, start, process, correlation))
            reach = end if reach is None else max(reach, end)
    return gaps


def _behind_events(capture: Capture, by_process: dict[int, dict[int, Any]]) -> set[tuple[int, int]]:
    """Return process and correlation id of the first launch into each stream after it was told to wait."""
    if not capture.has("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
        return set()
    launches: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        if capture.has(f"CUPTI_ACTIVITY_KIND_{table}"):
            for process, context, stream, correlation in capture.ask(
                    f"SELECT globalPid, contextId, streamId, correlationId FROM CUPTI_ACTIVITY_KIND_{table}"):
                if correlation in by_process[process]:
                    launches[process, context, stream].append((by_process[process][correlation][0], correlation))
    found = set()
    for process, context, stream, correlation in capture.ask(
            "SELECT globalPid, contextId, streamId, correlationId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION "
            "WHERE streamId <> 4294967295 AND eventId <> 4294967295"):
        if correlation in by_process[process]:
            after = [each for each in launches[process, context, stream] if each[0] > by_process[process][correlation][0]]
            if after:
                found.add((process, min(after)[1]))
    return found


def _split(gaps: list[tuple[int, int, int, int]], by_process: dict[int, dict[int, Any]], behind: set[Any]) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for begin, end, process, correlation in gaps:
        if correlation not in by_process[process]:
            found["unlinked", None, None] += end - begin
            continue
        launched, line, name = by_process[process][correlation]
        if launched <= begin:
            found["event" if (process, correlation) in behind else "queue", None, None] += end - begin
            continue
        until, began_in, covered = min(launched, end), None, 0
        inside = line[max(bisect.bisect_right(line, begin, key=lambda call: call[0]) - 1, 0):bisect.bisect_left(
            line, until, key=lambda call: call[0])]
        for start, stop, function, waits in inside:
            if start <= begin < stop and (waits or "Memcpy" in function or "Memset" in function):
                began_in = function
        for start, stop, function, waits in inside:
            length = max(min(stop, until) - max(start, begin), 0)
            found["synchronisation" if waits else "call", function, began_in] += length
            covered += length
        found["cpu", None, began_in] += until - begin - covered
        found["launch", name, began_in] += end - until
    return {key: total for key, total in found.items() if total}


@pytest.mark.captures
@pytest.mark.parametrize("path", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_it_refines_the_idle_breakdown(path: Path, tmp_path: Path) -> None:
    """HTA's causes, stream by stream: the host's are four of ours, those of work launched in time are two."""
    store = Capture(path, tmp_path / "store").store
    key = ("profile_id", "window_index", "process_id", "device_id", "context", "stream")
    found: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in store.view("idle_causes", per="stream").to_pylist():
        found[tuple(row[name] for name in key)][row["cause"]] += row["idle_ns"]
    for row in store.view("idle_breakdown").to_pylist():
        causes = found[tuple(row[name] for name in key)]
        assert row["unlinked_ns"] == causes["unlinked"]
        assert row["kernel_wait_ns"] + row["other_ns"] == causes["queue"] + causes["event"]
        assert row["host_wait_ns"] == sum(causes[cause] for cause in ("synchronisation", "call", "cpu", "launch"))


def test_a_function_of_a_lane_counts_from_where_those_before_it_end() -> None:
    rows = {"lane": [0, 1, 1, 1], "start_ns": [3, 10, 15, 12], "end_ns": [5, 20, 30, 18], "launch_id": [1, 2, 3, 4]}
    found = functions(pa.table(rows))
    assert [column.tolist() for column in (found.lane, found.start, found.end, found.launch_id)] == [
        [0, 1, 1], [3, 10, 20], [5, 20, 30], [1, 2, 3]]
