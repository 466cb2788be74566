"""Waits, event records, OS calls and overhead of small nsys reports, and how many there are in every real one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.pipeline.ingest import ingest
from nsightlens.readers import nsys
from tests.places import sqlite_captures
from tests.readers.nsys_report import Row, base, call, global_pid, report, strings, write

NONE = (1 << 32) - 1
NAMES = ("void gemm<float>(float*)", "gemm", "cudaLaunchKernel_v7000", "_Z4gemmIfEvPT_", "cudaStreamSynchronize_v3020", "poll",
         "CUPTI: Buffer flush", "TLS allocation", "Command Buffer Full")


def wait(kind: int, correlation: int = 7, **others: Any) -> Row:
    row: Row = {
        "start": 2000, "end": 2600, "deviceId": 0, "contextId": 1, "streamId": NONE, "correlationId": correlation,
        "globalPid": global_pid(7), "syncType": kind, "eventId": NONE, "eventSyncId": 0,
    }
    return row | others


def test_what_was_waited_for(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=[
        wait(1, eventId=29, eventSyncId=16836), wait(2, streamId=22, eventId=31, eventSyncId=16837),
        wait(3, streamId=7), wait(4), wait(0), wait(9, streamId=0), wait(0, streamId=7)])["synchronizations"]
    own = {"process_index": 0, "device": 0, "context": 1, "correlation_id": 7, "start_ns": 2000, "duration_ns": 600}
    assert found == [
        own | {"kind": "event", "event_id": 29, "event_record_id": 16836},
        own | {"kind": "stream_wait_event", "stream": 22, "event_id": 31, "event_record_id": 16837},
        own | {"kind": "stream", "stream": 7},
        own | {"kind": "context"},
        own | {"kind": "unknown"},
        own | {"kind": "type 9", "stream": 0},
        own | {"kind": "unknown", "stream": 7},
    ]


def test_what_was_waited_for_before_2025(tmp_path: Path) -> None:
    """Older exporters count the types otherwise: what the wait names, a stream or an event, says what it is for."""
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=[
        wait(1), wait(2, eventId=2), wait(2, streamId=7), wait(3, streamId=7), wait(3, streamId=8, eventId=2),
    ])["synchronizations"]
    assert [row["kind"] for row in found] == ["context", "event", "stream", "stream", "stream_wait_event"]
    assert [(row.get("stream"), row.get("event_id")) for row in found] == [(None, None), (None, 2), (7, None), (7, None), (8, 2)]


def test_without_streams_and_events_the_type_says_it(tmp_path: Path) -> None:
    row = {name: value for name, value in wait(3).items() if name not in ("streamId", "eventId", "eventSyncId")}
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=[row, row | {"syncType": 4}])["synchronizations"]
    assert [row["kind"] for row in found] == ["stream", "context"]


def test_records_of_events(tmp_path: Path) -> None:
    record = {"timestamp": 5000, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 3, "globalPid": global_pid(7),
              "eventId": 29, "eventSyncId": 16836}
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_CUDA_EVENT=[record, record | {"timestamp": 0, "eventSyncId": 0},
                                                             record | {"timestamp": -(1 << 63)}])["cuda_events"]
    own = {"process_index": 0, "device": 0, "context": 1, "stream": 7, "correlation_id": 3, "event_id": 29}
    assert found == [own | {"at_ns": 5000, "event_record_id": 16836}, own, own | {"event_record_id": 16836}]


def test_events_of_exports_before_2025_have_no_time(tmp_path: Path) -> None:
    record = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 3, "globalPid": global_pid(7), "eventId": 29}
    (found,) = report(tmp_path, CUPTI_ACTIVITY_KIND_CUDA_EVENT=[record])["cuda_events"]
    assert found == {"process_index": 0, "device": 0, "context": 1, "stream": 7, "correlation_id": 3, "event_id": 29}


def test_os_calls(tmp_path: Path) -> None:
    row = {"start": 100, "end": 300, "eventClass": 27, "globalTid": global_pid(9) + 90, "nameId": 6, "returnValue": -1,
           "nestingLevel": 0, "callchainId": 4}
    found = report(tmp_path, StringIds=strings(*NAMES), OSRT_API=[
        row, row | {"end": 100, "eventClass": 31, "nestingLevel": None}, row | {"eventClass": 99, "nameId": 1000}])
    own = {"process_index": 1, "thread": 90, "start_ns": 100, "duration_ns": 200, "return_value": -1, "nesting_level": 0,
           "name": "poll", "kind": "call"}
    second = {key: value for key, value in own.items() if key != "nesting_level"} | {"kind": "started", "duration_ns": 0}
    third = {key: value for key, value in own.items() if key != "name"} | {"kind": "class 99"}
    assert found["os_calls"] == [own, second, third]
    assert [row["pid"] for row in found["processes"]] == [7, 9]


def test_overhead_by_its_type(tmp_path: Path) -> None:
    """CUPTI's own table has a type; so has that of nsys since 2025, where 0 is nsys itself."""
    cuda = {"start": 100, "end": 300, "eventClass": 103, "globalTid": global_pid(7) + 70, "correlationId": 100, "nameId": 9,
            "overheadType": 8}
    own = {"start": 10, "end": 30, "globalTid": global_pid(7) + 70, "nameId": 8, "overheadType": 0}
    found = report(tmp_path, StringIds=strings(*NAMES), CUPTI_ACTIVITY_KIND_OVERHEAD=[
        cuda, cuda | {"overheadType": 3}, cuda | {"overheadType": 0}, cuda | {"overheadType": 12}],
        PROFILER_OVERHEAD=[own, own | {"overheadType": 3}, own | {"overheadType": 1}])["overheads"]
    assert [(row.get("source"), row["kind"], row["name"], row.get("correlation_id")) for row in found] == [
        ("cuda", "command_buffer_full", "Command Buffer Full", 100), ("profiler", "buffer_flush", "Command Buffer Full", 100),
        (None, "unknown", "Command Buffer Full", 100), (None, "type 12", "Command Buffer Full", 100),
        ("profiler", "own", "TLS allocation", None), ("profiler", "buffer_flush", "TLS allocation", None),
        ("profiler", "unknown", "TLS allocation", None)]
    assert {(row["thread"], row["start_ns"], row["duration_ns"]) for row in found} == {(70, 100, 200), (70, 10, 20)}


def test_overhead_by_its_name_before_2025(tmp_path: Path) -> None:
    row = {"start": 10, "end": 30, "globalTid": global_pid(7) + 70, "nameId": 7, "returnValue": 0}
    found = report(tmp_path, StringIds=strings(*NAMES), PROFILER_OVERHEAD=[row, row | {"nameId": 8}])["overheads"]
    assert [(row["source"], row["kind"]) for row in found] == [("profiler", "buffer_flush"), ("profiler", "own")]


def test_they_belong_to_the_call_of_their_process(tmp_path: Path) -> None:
    """Two processes use one correlation id; a wait whose call was not recorded has none."""
    write(tmp_path / "run" / "report.sqlite", base(
        StringIds=strings(*NAMES),
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(900, 950), call(1990, 2700, correlationId=7, nameId=5),
                                     call(1980, 2710, pid=8, correlationId=7, nameId=5)],
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=[wait(3, streamId=7), wait(3, globalPid=global_pid(8)), wait(4, correlation=55)],
        CUPTI_ACTIVITY_KIND_CUDA_EVENT=[{"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 100,
                                         "globalPid": global_pid(7), "eventId": 1}],
        CUPTI_ACTIVITY_KIND_OVERHEAD=[{"start": 1, "end": 2, "globalTid": global_pid(8) + 3, "correlationId": 7, "nameId": 9,
                                       "overheadType": 8}]))
    ingest([tmp_path / "run"], tmp_path / "store", jobs=1)
    with nl.open(tmp_path / "store") as store:
        def starts(table: str, row_id: str) -> list[int | None]:
            found = store.sql(f"SELECT c.start_ns, c.process_id = t.process_id AS own FROM {table} AS t "
                              f"LEFT JOIN api_calls AS c USING (launch_id) ORDER BY t.{row_id}").to_pylist()
            assert all(row["own"] in (True, None) for row in found)
            return [row["start_ns"] for row in found]

        assert starts("synchronizations", "synchronization_id") == [1990, 1980, None]
        assert starts("cuda_events", "cuda_event_id") == [900]
        assert starts("overheads", "overhead_id") == [1980]


TABLES = {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "synchronizations", "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "cuda_events",
          "OSRT_API": "os_calls", "CUPTI_ACTIVITY_KIND_OVERHEAD": "overheads", "PROFILER_OVERHEAD": "overheads",
          "COMPOSITE_EVENTS": "cpu_samples", "SCHED_EVENTS": "thread_states"}


@pytest.mark.captures
@pytest.mark.parametrize("path", sqlite_captures(), ids=[path.stem for path in sqlite_captures()])
def test_every_row_of_every_capture_is_read(path: Path) -> None:
    expected: Counter[str] = Counter()
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            (count,) = database.execute(f'SELECT count(*) FROM "{name}"').fetchone()
            if name in TABLES:
                expected[TABLES[name]] += count
    rows: Counter[str] = Counter()
    for table, batch in nsys.read([path]):
        rows[table] += batch.num_rows
    assert {table: rows[table] for table in set(TABLES.values())} == {table: expected[table] for table in set(TABLES.values())}


@pytest.mark.captures
def test_the_captures_hold_all_of_these_tables() -> None:
    seen = set()
    for path in sqlite_captures():
        seen |= {table for table, batch in nsys.read([path]) if batch.num_rows}
    if not seen:
        pytest.skip("the captures are not here")
    assert seen >= set(TABLES.values())


@pytest.mark.captures
def test_no_capture_has_the_values_of_payloads() -> None:
    """Where one has, its message sizes are to be checked against it: then docs/limits.md is to change."""
    described = 0
    for path in sqlite_captures():
        with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            if "NVTX_PAYLOAD_SCHEMA_ENTRIES" in tables:
                described += 1
                assert database.execute("SELECT count(binaryData) FROM NVTX_EVENTS").fetchone() == (0,)
                found = [row for table, batch in nsys.read([path]) if table == "diagnostics" for row in batch.to_pylist()]
                assert "payloads_missing" in {row["code"] for row in found}
    if not sqlite_captures():
        pytest.skip("the captures are not here")
    assert described
