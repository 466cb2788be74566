"""mfu: operations by shapes over the judged window and the datasheet's peak, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from tests.captures import GEMM, kineto

STEP_US, PRODUCT = 1000.0, 2 * 1000 * 2000 * 3000
DIMS = [[1000, 2000], [2000, 3000]]


def asked(folder: Path, products: int = 4, types: str = "c10::BFloat16", gpu: str = "NVIDIA A100-SXM4-80GB", **told: Any) -> Any:
    """Return the rows of mfu for a trace of a product in each step of 1 ms, each kernel of 100 us in its middle; the last of
    `products` is without shapes."""
    kernels = [(GEMM, 500.0 + STEP_US * number, 100.0) for number in range(4)]
    path = kineto(folder / "run" / "r.json", kernels)
    trace = json.loads(path.read_text())
    trace["deviceProperties"][0]["name"] = gpu
    for number, (_, start, _) in enumerate(kernels):
        steps = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 77, "tid": 77,
                 "ts": start - 400, "dur": STEP_US - 50, "args": {"External id": 100 + number}}
        shapes = {"Input Dims": DIMS, "Input type": [types, types]} if number < products else {}
        operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 77, "tid": 77, "ts": start - 6, "dur": 4.0,
                    "args": {"External id": number + 1} | shapes}
        trace["traceEvents"] += [steps, operator]
    path.write_text(json.dumps(trace))
    with nl.ingest(folder / "run", store=folder / "store", jobs=1) as store:
        return store.view("mfu", **told).to_pylist()


def test_the_operations_of_a_step_over_its_time_and_the_peak(tmp_path: Path) -> None:
    (row,) = asked(tmp_path)
    assert (row["steps"], row["window_ns"], row["calls"], row["kernel_ns"]) == (3, 3_000_000, 3, 300_000)
    assert (row["flop_per_step"], row["work_flop"], row["covered_pct"]) == (PRODUCT, 3 * PRODUCT, 100.0)
    assert (row["peak_key"], row["peak_flop_per_s"]) == ("tensor_bf16", 312e12)
    assert row["mfu_pct"] == pytest.approx(100 * PRODUCT / 1e-3 / 312e12)


def test_work_without_shapes_is_not_covered(tmp_path: Path) -> None:
    (row,) = asked(tmp_path, products=3)
    assert (row["work_flop"], row["flop_per_step"]) == (2 * PRODUCT, 2 * PRODUCT // 3)
    assert row["covered_pct"] == pytest.approx(100 * 2 / 3)


def test_a_gpu_without_a_datasheet_has_no_share(tmp_path: Path) -> None:
    (row,) = asked(tmp_path, gpu="Foo 3000")
    assert row["mfu_pct"] is None and row["achieved_flop_per_s"] == pytest.approx(PRODUCT / 1e-3)
    assert "Foo 3000" in row["reason"]
    (row,) = asked(tmp_path / "forced", gpu="Foo 3000", assume_gpu="A100 SXM4 80GB", force_gpu=True)
    assert row["mfu_pct"] == pytest.approx(100 * PRODUCT / 1e-3 / 312e12) and row["reason"] is None
