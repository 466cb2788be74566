"""Rules about kernels: made cases that must fire each, near misses that must not, and what the critical path leaves of them."""

from __future__ import annotations

from typing import Any

import pytest

from nsightlens.analyses import _kernel_rules
from tests.analyses.test_findings import WHERE, WHERE_OF_DEVICE, WHERE_OF_PROCESS, of

Rows = dict[str, list[dict[str, Any]]]
H100 = WHERE_OF_DEVICE | {"name": "NVIDIA H100 80GB HBM3"}
SGEMM = "ampere_sgemm_128x64_tn"


def launched(count: int, kernel_ns: int, interval_ns: int, call: str = "cudaLaunchKernel", **kernel: Any) -> Rows:
    """Return a process that launches kernels one by one, each run as soon as its call, of a tenth of the interval, is over."""
    calls = [WHERE | {"launch_id": n, "name": call, "thread": 1, "start_ns": n * interval_ns, "duration_ns": interval_ns // 10}
             for n in range(count)]
    kernels = [WHERE | {"kernel_id": n, "launch_id": n, "name": "k", "short_name": "k", "family": "elementwise", "device_id": "g",
                        "stream": 7, "start_ns": n * interval_ns + interval_ns // 10, "duration_ns": kernel_ns} | kernel
               for n in range(count)]
    return {"api_calls": calls, "kernels": kernels, "processes": [WHERE_OF_PROCESS], "ranges": [], "devices": [H100]}


def queued(*kernels: tuple[str, str, int], **columns: Any) -> Rows:
    """Return kernels (name, family, ns) that follow one another without a gap; nothing else happens."""
    rows, start = [], 0
    for number, (name, family, length) in enumerate(kernels):
        rows.append(WHERE | {"kernel_id": number, "name": name, "short_name": name, "family": family, "device_id": "g",
                             "stream": 7, "start_ns": start, "duration_ns": length} | columns)
        start += length
    return {"kernels": rows, "processes": [WHERE_OF_PROCESS], "devices": [H100]}


def rules(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in of(**rows)}


def test_kernels_shorter_than_the_time_between_launches_leave_the_gpu_idle() -> None:
    """20 kernels of 2 µs, launched every 10 µs: of 193 µs, each of 19 gaps is 8 µs, 1 µs of it in the call."""
    row = rules(launched(20, 2_000, 10_000))["tiny_kernels"]
    assert (row["total_ns"], row["of_ns"]) == (19 * 8_000, 193_000)
    assert "19 of 20 are shorter (median 2.0 µs)" in row["what"] and "(median 10.0 µs)" in row["what"]
    assert (row["rank"], row["confidence"]) == (3, "high")


@pytest.mark.parametrize("rows", [
    launched(20, 9_500, 10_000),  # the idle time is below the limit
    launched(20, 2_000, 200_000),  # between launches the host does something else
    launched(20, 2_000, 10_000, call="cudaGraphLaunch"),
])
def test_no_tiny_kernels(rows: Rows) -> None:
    assert "tiny_kernels" not in rules(rows)


def test_a_kernel_that_waited_in_its_queue_was_not_launched_too_slowly() -> None:
    rows = launched(20, 2_000, 10_000)
    for number, call in enumerate(rows["api_calls"]):
        call |= {"start_ns": number * 100, "duration_ns": 10}
    assert "tiny_kernels" not in rules(rows)


def test_what_tiny_kernels_explain_is_no_longer_the_hosts() -> None:
    assert "host" not in rules(launched(20, 2_000, 10_000))
    assert "host" in rules(launched(20, 2_000, 200_000))


def test_kernels_that_follow_one_another_are_worth_fusing() -> None:
    """Two chains; of each, the longest is left: 100 + 200, and 50."""
    row = rules(queued(("add", "elementwise", 100), ("norm", "normalization", 300), ("mul", "elementwise", 200),
                       ("mm", "gemm", 100), ("relu", "elementwise", 50), ("sum", "reduction", 60)))["fusion"]
    assert (row["total_ns"], row["of_ns"], row["confidence"]) == (350, 810, "low")
    assert row["what"].startswith("3 memory-bound kernels") and "mostly mul" in row["what"]


@pytest.mark.parametrize("kernels", [
    [("add", "elementwise", 100), ("mm", "gemm", 100), ("mul", "elementwise", 100)],
    [("triton_poi_add", "elementwise", 100), ("triton_poi_mul", "elementwise", 100)],
    [("add", "elementwise", 14), ("norm", "normalization", 14), ("mm", "gemm", 72)],
])
def test_nothing_to_fuse(kernels: list[tuple[str, str, int]]) -> None:
    assert "fusion" not in rules(queued(*kernels))


def test_kernels_of_two_streams_or_phases_are_no_chain() -> None:
    rows = queued(("add", "elementwise", 100), ("mul", "elementwise", 100))
    assert "fusion" in rules(rows)
    for column in ("stream", "phase"):
        apart = {column: 8 if column == "stream" else "backward"}
        rows["kernels"][1] = rows["kernels"][0] | {"kernel_id": 1, "start_ns": 100} | apart
        assert "fusion" not in rules(rows)


def test_what_is_not_on_the_critical_path_gains_nothing() -> None:
    """Beside a longer kernel of another stream, a chain is worth no more than the path holds of it."""
    rows = queued(("add", "elementwise", 400), ("mul", "elementwise", 300))
    rows["kernels"].append(rows["kernels"][0] | {"kernel_id": 9, "family": "gemm", "stream": 8, "duration_ns": 1000})
    assert "fusion" not in rules(rows)


def test_products_without_tensor_cores_gain_what_the_datasheet_allows() -> None:
    """H100: 67 TFLOP/s in FP32 against 495 in TF32."""
    row = rules(queued((SGEMM, "gemm", 1000), ("add", "elementwise", 500), tensor_cores=False))["tensor_cores"]
    assert (row["total_ns"], row["of_ns"]) == (864, 1500) and "ampere_sgemm" in row["what"]


@pytest.mark.parametrize(("name", "family", "columns", "device"), [
    (SGEMM, "gemm", {"tensor_cores": True}, H100),
    (SGEMM, "gemm", {"tensor_cores": None}, H100),
    ("ampere_dgemm_128x64_tn", "gemm", {"tensor_cores": False}, H100),
    ("gemvNSP_kernel", "gemm", {"tensor_cores": False}, H100),
    ("conv_depthwise2d_forward_kernel", "convolution", {"tensor_cores": False}, H100),
    ("vectorized_add", "elementwise", {"tensor_cores": False}, H100),
    (SGEMM, "gemm", {"tensor_cores": False}, H100 | {"compute_capability": "6.0", "name": "Tesla P100-SXM2-16GB"}),
])
def test_where_tensor_cores_could_not_help(name: str, family: str, columns: dict[str, Any], device: dict[str, Any]) -> None:
    assert "tensor_cores" not in rules(queued((name, family, 1000), **columns) | {"devices": [device]})


def test_what_a_thread_does_after_the_last_work_takes_nothing_off_the_gain() -> None:
    rows = queued((SGEMM, "gemm", 1000), tensor_cores=False)
    late = WHERE | {"launch_id": 1, "name": "cudaEventQuery", "thread": 2, "start_ns": 0, "duration_ns": 10}
    rows["api_calls"] = [late, late | {"launch_id": 2, "start_ns": 1100}]
    assert rules(rows)["tensor_cores"]["total_ns"] == 864


def test_of_a_gpu_without_a_datasheet_the_whole_time_is_the_bound() -> None:
    rows = queued((SGEMM, "gemm", 1000), tensor_cores=False) | {"devices": [H100 | {"name": "NVIDIA Z900"}]}
    assert rules(rows)["tensor_cores"]["total_ns"] == 1000


@pytest.mark.parametrize(("most", "fires"), [(20, True), (19, False)])
def test_single_kernels_are_judged_where_a_run_has_few(most: int, fires: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernel_rules, "LAUNCHES", most)
    assert ("tiny_kernels" in rules(launched(20, 2_000, 10_000))) is fires
