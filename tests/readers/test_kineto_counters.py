"""Counter events of traces: values over time. No public trace holds any: these are written as PyTorch's own code writes them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from nsightlens.errors import UnknownFormatError
from tests.readers.kineto_text import codes, event, kernel, read, trace

LAST = event(None, "Record Window End", "99.0", None, pid="", tid="", ph="i")


def counter(name: str, ts: float, args: Any, pid: Any = "GPU 0 Counters", cat: str | None = None) -> str:
    return event(cat, name, ts, None, args, pid=pid, ph="C")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.pt.trace.json"


def test_samples_of_a_gpu(path: Path) -> None:
    found = read(path, trace(
        kernel(), counter("SM Active (%)", 2000002.5, {"": 80.5}), counter("GPC Clock (MHz)", 2000003, {"": 1980}),
        counter("SM Active (%)", 2000004.5, {"": 7}, pid="GPU 1 Counters"), LAST))
    samples = [(row["at_ns"], row["device"], row["metric"], row["value"], row["unit"]) for row in found["device_samples"]]
    assert samples == [
        (2_500, 0, "SM Active", 80.5, "%"), (3_000, 0, "GPC Clock", 1.98e9, "hz"), (4_500, 1, "SM Active", 7.0, "%")]
    assert [row["device"] for row in found["devices"]] == [0, 1]
    assert len(found["kernels"]) == 1
    assert "events_not_stored" not in codes(found)


def test_series_and_tracks_of_other_writers(path: Path) -> None:
    """A counter of an accelerator has the device for a pid; TensorBoard's plugin names the GPU; a process has none."""
    found = read(path, trace(
        event("cpu_op", "aten::mm", "2000001.0", pid=100), kernel(),
        counter("HBM", 2000002, {"read": 3, "write": 4}, pid=2, cat="mtia_counters"),
        counter("GPU 3 Est. SM Efficiency", 2000002, {"Est. SM Efficiency": 0.5}, pid=0),
        counter("Queue Length", 2000002, {"7": 2, "note": "many"}, pid=100), LAST))
    assert [(row["device"], row["metric"], row["value"]) for row in found["device_samples"]] == [
        (2, "HBM read", 3.0), (2, "HBM write", 4.0), (3, "GPU 3 Est. SM Efficiency", 0.5), (None, "Queue Length 7", 2.0),
        (None, "Queue Length note", None)]


@pytest.mark.parametrize("args", ["{}", "[]", "null", "3"])
def test_a_counter_without_a_series_is_none(path: Path, args: str) -> None:
    found = read(path, trace(kernel(), counter("SM Active (%)", 2000002, args), LAST))
    assert not found["device_samples"] and len(found["kernels"]) == 1


def test_counters_in_a_damaged_trace(path: Path) -> None:
    """Events that are read one by one: behind a quote that is missing, and before the end of a file that is cut."""
    whole = trace(kernel(), '{"ph": "X", "cat": "kernel", "name": "odd}', counter("SM Active (%)", 2000002, {"": 80}),
                  counter("SM Active (%)", 2000003, {"": 81}), kernel())
    found = read(path, whole[:-60])
    assert [row["value"] for row in found["device_samples"]] == [80.0, 81.0]


def test_a_trace_of_counters_alone_is_no_trace_of_pytorch(path: Path) -> None:
    with pytest.raises(UnknownFormatError):
        read(path, '{"traceEvents": [' + counter("load", 5, {"a": 1}) + "]}")


def test_counters_in_many_pieces(path: Path) -> None:
    pairs = ((kernel(ts=f"{2000001 + i}.500"), counter("SM Active (%)", 2000001 + i, {"": i})) for i in range(3000))
    found = read(path, trace(*chain.from_iterable(pairs), LAST), piece_bytes=100_000)
    assert [row["value"] for row in found["device_samples"]] == list(map(float, range(3000)))
    assert len(found["kernels"]) == 3000
