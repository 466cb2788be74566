"""Waits for the GPU, records of CUDA events and overhead in traces of PyTorch, and how many there are in every real one."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.readers import kineto
from tests.places import ROOT
from tests.readers.kineto_text import codes, event, kernel, read, trace

LAST = event(None, "Record Window End", "99.0", None, pid="", tid="", ph="i")
TABLES = {"cuda_sync": "synchronizations", "overhead": "overheads"}
NAMES = ("kind", "device", "context", "stream", "event_id", "event_record_id", "correlation_id", "start_ns", "duration_ns")


def wait(name: str, ts: Any = 2000005, dur: Any = 4, stream: int = -1, **args: Any) -> str:
    said = {"cuda_sync_kind": name, "stream": stream, "correlation": 31, "device": 0, "context": 1, **args}
    return event("cuda_sync", name, ts, dur, said, pid=0, tid=stream)


def on(stream: int, record: int, cuda_event: int = 5) -> dict[str, int]:
    return {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": cuda_event}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.pt.trace.json"


def test_each_kind_of_wait(path: Path) -> None:
    found = read(path, trace(
        kernel(), wait("Stream Sync", "2000005.250", "4.500", stream=7), wait("Context Sync", stream=(1 << 32) - 1),
        wait("Event Sync", **on(-1, -1)), wait("Stream Wait Event", stream=20, **on(7, 12)), wait("<unknown>"), LAST))
    assert [tuple(row[name] for name in NAMES) for row in found["synchronizations"]] == [
        ("stream", 0, 1, 7, None, None, 31, 5_250, 4_500), ("context", 0, 1, None, None, None, 31, 5_000, 4_000),
        ("event", 0, 1, None, 5, None, 31, 5_000, 4_000), ("stream_wait_event", 0, 1, 20, 5, 12, 31, 5_000, 4_000),
        ("unknown", 0, 1, None, None, None, 31, 5_000, 4_000)]
    assert len(found["kernels"]) == 1, "a wait is no work of the GPU"
    assert "events_not_stored" not in codes(found)


def test_the_stream_is_the_argument_and_not_the_lane(path: Path) -> None:
    """Kineto of 2026 draws waits for a stream on a lane of their own, stream + 1000000."""
    lane = event("cuda_sync", "Stream Sync", 2000005, 4, {"stream": 7, "correlation": 0}, pid=0, tid=1000007)
    (row,) = read(path, trace(lane, LAST))["synchronizations"]
    assert (row["kind"], row["stream"], row["device"], row["correlation_id"]) == ("stream", 7, 0, None)


def test_the_records_that_waits_name_are_there_once(path: Path) -> None:
    """In one piece or in many; an event of its own for the same record adds nothing, one that no wait names does."""
    own = [event("cuda_event", "cudaEvent", 2000001, 0, {"event_id": 5, "stream": 7, "correlation": number, "device": 0,
                                                         "context": 1}, pid=0, tid=7) for number in (12, 99)]
    waits = [wait("Stream Wait Event", stream=20 + i % 2, **on(7, 12 + i // 2 % 3)) for i in range(600)]
    for piece in (None, 20_000):
        found = read(path, trace(*waits, *own, LAST), **({"piece_bytes": piece} if piece else {}))
        records = [tuple(row[name] for name in ("event_id", "event_record_id", "correlation_id", "context", "stream", "at_ns"))
                   for row in found["cuda_events"]]
        assert sorted(records) == [(5, number, number, 1, 7, None) for number in (12, 13, 14, 99)]
        assert len(found["synchronizations"]) == 600


def test_overhead_by_its_name(path: Path) -> None:
    names = ("Buffer Flush", "Activity Buffer Request", "Lazy Function Loading", "Something New")
    found = read(path, trace(event("cpu_op", "aten::mm", 2000001), *(
        event("overhead", name, 2000002, 3, pid=-1, tid=0) for name in names), event("overhead", "Resource", 2000002, 3, tid=44),
        LAST))
    assert [(row["source"], row["kind"], row["name"], row["thread"]) for row in found["overheads"]] == [
        ("profiler", "buffer_flush", "Buffer Flush", None), ("profiler", "buffer_request", "Activity Buffer Request", None),
        ("cuda", "function_loading", "Lazy Function Loading", None), (None, "unknown", "Something New", None),
        ("profiler", "resource", "Resource", 44)]
    assert {(row["start_ns"], row["duration_ns"]) for row in found["overheads"]} == {(2_000, 3_000)}


def test_waits_lead_to_their_calls_and_to_the_stream_that_is_awaited(path: Path, tmp_path: Path) -> None:
    calls = [event("cuda_runtime", name, 2000001 + i, 1, {"correlation": 11 + i}) for i, name in enumerate(
        ("cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamSynchronize"))]
    path.write_text(trace(kernel(), *calls, wait("Stream Wait Event", correlation=12, stream=20, **on(7, 11)),
                          wait("Stream Sync", correlation=13, stream=7),
                          event("overhead", "Buffer Flush", 2000002, 3, pid=-1, tid=0), LAST))
    with nl.ingest(path, store=tmp_path / "store", jobs=1) as store:
        waits = store.view("synchronization_trace").to_pylist()
        assert [(row["kind"], row["name"], row["awaited_stream"], row["waiting_stream"]) for row in waits] == [
            ("stream_wait_event", "cudaStreamWaitEvent", 7, 20), ("stream", "cudaStreamSynchronize", 7, None)]
        assert store.view("overhead_summary").to_pylist()[0]["total_ns"] == 3_000
        (share,) = store.view("profiler_share").to_pylist()
        assert (share["tool"], share["profiler_ns"], share["cuda_ns"]) == ("kineto", 3_000, 0)


def traces() -> list[Path]:
    found = (ROOT.parent / "shared" / "data" / "kineto").rglob("*")
    return sorted(path for path in found if path.name.endswith((".json", ".json.gz")) and path.parent.name != "derived"
                  and not path.name.startswith("notkineto"))


def events_of(path: Path) -> list[Any]:
    data = path.read_bytes()
    whole = json.loads(gzip.decompress(data) if path.name.endswith(".gz") else data, strict=False)
    events = whole.get("traceEvents", []) if isinstance(whole, dict) else whole
    return [one for one in events if isinstance(one, dict) and one.get("ph") == "X"]


@pytest.mark.captures
@pytest.mark.parametrize("path", traces(), ids=[path.name for path in traces()])
def test_every_wait_and_overhead_of_every_trace_is_read(path: Path) -> None:
    events = events_of(path)
    if not events:
        pytest.skip("no trace of PyTorch")
    expected = Counter(TABLES[one["cat"]] for one in events if one.get("cat") in TABLES)
    waits = [one["args"] for one in events if one.get("cat") == "cuda_sync"]
    records = {args["wait_on_cuda_event_record_corr_id"] for args in waits if args.get("wait_on_stream", -1) >= 0}
    rows: Counter[str] = Counter()
    for table, batch in kineto.read([path]):
        rows[table] += batch.num_rows
    assert {table: rows[table] for table in TABLES.values()} == {table: expected[table] for table in TABLES.values()}
    assert rows["cuda_events"] == len(records)
