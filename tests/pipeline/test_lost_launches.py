"""Launches without a kernel are counted per process: not those of a stream capture, nor those cut off at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from tests.captures import GEMM, kineto


def _lost(tmp_path: Path, without: set[int], extra: list[dict[str, Any]] = []) -> dict[str, int]:  # noqa: B006
    path = kineto(tmp_path / "run" / "r.json", [(GEMM, 1000.0 + 100 * n, 20.0) for n in range(10)])
    trace = json.loads(path.read_text())
    trace["traceEvents"] = [*extra, *(event for event in trace["traceEvents"] if event.get("cat") != "kernel"
                                      or event["args"]["correlation"] not in without)]
    path.write_text(json.dumps(trace))
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1) as store:
        return {row["code"]: row["count"] for row in store.sql("SELECT code, count FROM diagnostics").to_pylist()}


def _call(name: str, start: float, number: int, thread: int = 77) -> dict[str, Any]:
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 77, "tid": thread, "ts": start, "dur": 1.0,
            "args": {"cbid": 1, "correlation": number}}


@pytest.mark.parametrize(("without", "count"), [(set(), 0), ({3}, 1), ({3, 4, 10}, 2), ({9, 10}, 0), (set(range(1, 11)), 10)])
def test_each_lost_kernel_is_one_launch(tmp_path: Path, without: set[int], count: int) -> None:
    assert _lost(tmp_path, without).get("launches_without_kernel", 0) == count


def test_launches_of_a_stream_capture_and_inner_calls_run_nothing(tmp_path: Path) -> None:
    capture = [_call("cudaStreamBeginCapture", 1010.0, 50), _call("cudaLaunchKernel", 1020.0, 51),
               _call("cudaStreamEndCapture", 1030.0, 52), _call("cudaLaunchKernel", 1022.0, 53, thread=78),
               _call("cuLaunchKernel", 1195.5, 54)]
    assert _lost(tmp_path, set(), capture)["launches_without_kernel"] == 1, "that of the other thread was lost"
