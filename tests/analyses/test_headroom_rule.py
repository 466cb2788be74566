"""The rule of findings about kernels far below their roof: a made case that must fire it, and a near miss."""

from __future__ import annotations

from tests.analyses.test_findings import WHERE, WHERE_OF_PROCESS
from tests.analyses.test_kernel_rules import Rows, rules


def product(length: int) -> Rows:
    """Return a product of 1024 x 1024 matrices in bfloat16, whose roof on an A100 is 6883 ns."""
    who = WHERE | {"tool": "kineto"}
    kernel = {"kernel_id": 0, "start_ns": 0, "duration_ns": length, "name": "mm", "kernel_key": "mm", "family": "gemm",
              "stream": 7, "tensor_cores": True, "device_id": "g", "gpu": "NVIDIA A100-SXM4-40GB", "op": "aten::mm",
              "op_range_id": 0}
    shapes = {"shapes": "[[1024, 1024], [1024, 1024]]", "types": '["c10::BFloat16", "c10::BFloat16"]'}
    return {"kernels": [who | kernel], "processes": [WHERE_OF_PROCESS | {"tool": "kineto"}],
            "ranges": [who | {"range_id": 0, "kind": "operator", "name": "aten::mm"} | shapes]}


def test_a_kernel_below_half_of_its_roof_is_named() -> None:
    row = rules(product(20_000))["headroom"]
    assert (row["total_ns"], row["of_ns"], row["confidence"]) == (20_000 - 6883, 20_000, "low")
    assert row["what"].startswith("the kernel mm runs at 34 % of its compute roof (1 launches")
    assert "headroom" not in rules(product(13_700))


def test_its_share_of_the_roof_is_rounded() -> None:
    assert "runs at 28 % of its compute roof" in rules(product(24_900))["headroom"]["what"], "27.6 %"
