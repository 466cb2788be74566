"""findings: the rows of a capture made by hand, what makes them less sure, and what stands with a rank or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nsightlens as nl
from nsightlens.analyses.findings import analyse
from tests.captures import kineto
from tests.catalogs import asking, catalog

MS = 1_000_000
WHERE = {"run": "r", "tool": "nsys", "profile_id": "p", "process_id": "p:0", "window_index": 0}
PROCESS = ("run", "tool", "profile_id", "process_id")
NAMES = ("place", "cause", "subject", "rank", "who", "total_ns", "of_ns", "share_pct", "winnable_ns", "confidence")


def tables(tool: str = "nsys", rank: int = 3, overhead_ms: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Return 100 ms of a GPU: 40 of kernel a, 20 idle under cudaMalloc, 30 of kernel b, 10 of copies from pageable memory."""
    where = WHERE | {"tool": tool, "profile_id": f"p{rank}", "process_id": f"p{rank}:0"}
    process, of_rank = {name: where[name] for name in PROCESS}, where | {"rank": rank, "device_id": f"g{rank}"}
    calls = [(1, "cudaLaunchKernel", -3, 1), (2, "cudaLaunchKernel", -2, 1), (9, "cudaMalloc", 40, 19),
             (3, "cudaLaunchKernel", 59, 1), (4, "cudaMemcpy", 60, 40)]
    return {
        "kernels": [of_rank | _times(start, end - start) | {
            "kernel_id": launch, "launch_id": launch, "name": name, "short_name": name, "kernel_key": name, "family": "other",
        } for launch, name, start, end in ((1, "a", 0, 20), (2, "a", 20, 40), (3, "b", 60, 90))],
        "memory_ops": [of_rank | _times(90, 10) | {
            "memory_op_id": 1, "launch_id": 4, "kind": "memcpy", "direction": "HtoD", "bytes": 9, "source_memory": "pageable"}],
        "api_calls": [where | _times(start, length) | {"launch_id": launch, "name": name, "thread": 1}
                      for launch, name, start, length in calls],
        "profiles": [{name: where[name] for name in PROCESS[:3]} | {"vendor": "cuda", "origin_epoch_ns": 0}],
        "processes": [process | {"rank": rank}],
        "overheads": [process | _times(0, overhead_ms) | {"overhead_id": 1, "thread": 1}] if overhead_ms else []}


def _times(start: int, length: int) -> dict[str, int]:
    return {"start_ns": start * MS, "duration_ns": length * MS}


def rows(*captures: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the findings of captures of one run."""
    together = {name: [row for each in captures for row in each[name]] for name in captures[0]}
    found: list[dict[str, Any]] = analyse(asking(catalog(**together))).to_pylist()
    return found


def test_the_rows_of_a_capture_made_by_hand() -> None:
    """Window: 0 to 100 ms. cudaMalloc holds 19 ms of the gap; the launch call the 20th, 1 % and so no finding."""
    found = rows(tables())
    assert [tuple(row[name] for name in NAMES) for row in found] == [
        (1, "computing", "a", 3, "rank 3", 40 * MS, 100 * MS, 40.0, None, "low"),
        (2, "API calls", "cudaMalloc", 3, "rank 3", 19 * MS, 100 * MS, 19.0, None, "high"),
        (3, "copies", "HtoD", 3, "rank 3", 10 * MS, 100 * MS, 10.0, None, "high")]
    assert [row["more"] for row in found] == ["nsightlens plan-ncu", "nsightlens show cuda_api_summary",
                                              "nsightlens show memory_op_summary"]
    assert [row["what"] for row in found] == [
        "2 kernels", "1 gap", "1 memory operation; pageable memory"]
    assert [row["about"] for row in found] == ["Kernel a", "Idle during cudaMalloc", "Copies, host to device"]


def test_a_profiler_that_slows_the_host_makes_what_the_host_does_less_sure() -> None:
    doubted = [("computing", "low", False), ("API calls", "medium", True), ("copies", "high", False)]
    for capture, said in ((tables("kineto"), "Kineto"), (tables(overhead_ms=6), "profiler's own")):
        found = rows(capture)
        assert [(row["cause"], row["confidence"], said in row["against"]) for row in found] == doubted


def test_what_was_seen_names_what_else_is_of_its_kind() -> None:
    """Of the 19 ms in calls, 4 are cudaFuncGetAttributes, which another action cures: two findings. cudaFree is not apart."""
    capture = tables()
    malloc = next(row for row in capture["api_calls"] if row["name"] == "cudaMalloc")
    capture["api_calls"].append(malloc | {"launch_id": 10, "name": "cudaFuncGetAttributes"} | _times(55, 4))
    malloc["duration_ns"] = 15 * MS

    def said() -> list[tuple[str, int, str]]:
        return [(row["subject"], row["total_ns"], row["what"]) for row in rows(capture) if row["cause"] == "API calls"]

    assert said() == [
        ("cudaMalloc", 15 * MS, "19.00 ms with others of its kind, in 1 gap; beside it cudaFuncGetAttributes"),
        ("cudaFuncGetAttributes", 4 * MS, "19.00 ms with others of its kind, in 1 gap; beside it cudaMalloc")]
    capture["api_calls"][-1]["name"] = "cudaFree"
    assert said() == [("cudaMalloc, cudaFree", 19 * MS, "1 gap")]


def test_who_has_it_is_told_from_who_has_not() -> None:
    """On rank 4 the gap lasts 1 ms, in the launch: 81 ms, 40 of them computing a, and copies of 10; both together, 181."""
    other = tables(rank=4)
    other["api_calls"] = [row | {"start_ns": row["start_ns"] - 19 * MS * (row["start_ns"] > 50 * MS)}
                          for row in other["api_calls"] if row["name"] != "cudaMalloc"]
    for table in ("kernels", "memory_ops"):
        other[table] = [row | {"start_ns": row["start_ns"] - 19 * MS * (row["start_ns"] > 50 * MS)} for row in other[table]]
    assert [(row["cause"], row["rank"], row["who"], row["total_ns"], row["of_ns"]) for row in rows(tables(), other)] == [
        ("computing", None, "all ranks", 80 * MS, 181 * MS), ("copies", None, "all ranks", 20 * MS, 181 * MS),
        ("API calls", 3, "rank 3", 19 * MS, 181 * MS)]


def test_a_late_rank_has_what_the_others_wait_and_what_the_job_would_win(tmp_path: Path) -> None:
    """Rank 2 comes 150 us late to ten all-reduces, for which the two others wait 3 ms, of 9.4, 9.4 and 9.25; on time it wins 1.5.

    Three times that is less than the 7.5 ms of the all-reduces themselves.
    """
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    for rank, late_us in enumerate((0.0, 0.0, 150.0)):
        calls = [(name, 1000.0 * call - 400 + late_us, 400 - late_us) for call in range(1, 11)]
        kineto(tmp_path / "run" / f"{rank}.json", calls, rank=rank, pid=70 + rank, world_size=3)
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1) as store:
        exchange, late = store.view("findings").to_pylist()[1:3]
    assert tuple(late[name] for name in NAMES) == (
        3, "late rank", "2", 2, "rank 2", 3_000_000, 28_050_000, 10.7, 1_500_000, "medium")
    assert (exchange["cause"], exchange["who"], exchange["total_ns"]) == ("communication", "all ranks", 7_500_000)
    assert late["more"] == "nsightlens compare ranks"


def test_a_run_without_a_timeline_has_no_row() -> None:
    assert rows(tables() | {"kernels": [], "memory_ops": []}) == []


def _exchanged(host: str | None, reduced_ms: int) -> list[dict[str, Any]]:
    """Return the findings of four ranks on H100s: 90 ms each, and then an allreduce of 2 GB."""
    together: dict[str, list[dict[str, Any]]] = {"devices": []}
    for rank in range(4):
        capture = tables(rank=rank)
        for name in ("memory_ops", "overheads"):
            capture[name] = []
        last = capture["kernels"][-1]
        capture["kernels"].append(last | _times(90, reduced_ms) | {
            "kernel_id": 7, "launch_id": 7, "name": "ncclDevKernel_AllReduce_Sum", "short_name": "ncclDevKernel_AllReduce_Sum",
            "kernel_key": "ncclDevKernel_AllReduce_Sum", "family": "collective", "collective": "allreduce", "host": host,
            "message_bytes": 2 * 10**9, "group_size": 4, "group_name": "0xa", "group_seq": 1})
        capture["api_calls"].append(capture["api_calls"][0] | {"launch_id": 7} | _times(88, 1))
        together["devices"].append({"profile_id": f"p{rank}", "device_id": f"g{rank}", "name": "NVIDIA H100 80GB HBM3"})
        for name, those in capture.items():
            together.setdefault(name, []).extend(those)
    return list(analyse(asking(catalog(**together))).to_pylist())


def test_communication_that_uses_less_than_half_of_its_link_is_said_to() -> None:
    """2 GB over 4 ranks are 3 GB on each link, of 450 GB/s: in 20 ms a third of its peak, in 13 ms 51 %."""
    slow, = (row for row in _exchanged("a", 20) if row["cause"] == "communication")
    assert "allreduce reaches 150.0 GB/s of the link's 450.0 GB/s" in slow["action"]
    assert slow["more"] == "nsightlens show collective_summary"
    for host, reduced_ms in (("a", 13), (None, 20)):
        found, = (row for row in _exchanged(host, reduced_ms) if row["cause"] == "communication")
        assert "link" not in found["action"]
