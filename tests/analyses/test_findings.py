"""findings: a made case that must fire each rule, near misses that must not, and real captures with their cause."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nsightlens as nl
from nsightlens.analyses._advice import ADVICE, of_call, of_launches
from nsightlens.analyses._finding import span
from nsightlens.analyses._group_rules import Groups
from nsightlens.analyses.findings import _groups, analyse
from nsightlens.columns.arrays import MISSING
from nsightlens.views.finding import findings_of
from tests.captures import kineto
from tests.catalogs import asking, catalog
from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WHERE = {"run": "r", "tool": "nsys", "profile_id": "p", "process_id": "p:0", "window_index": 0}
Piece = tuple[str, int, int]
"""What runs, its start and its end, in a step from 0 to 1000: compute, HtoD, collective, or a loader, op or call of a name."""


def tables(pieces: list[Piece], **tensor: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a process with one step and those pieces."""
    rows: dict[str, list[dict[str, Any]]] = {"kernels": [], "memory_ops": [], "api_calls": [], "processes": [WHERE_OF_PROCESS],
                                             "ranges": [WHERE | {"range_id": 0, "kind": "step", "step": 1, "name": "step",
                                                                 "start_ns": 0, "duration_ns": 1000}]}
    for number, (what, start, end) in enumerate(pieces, 1):
        row = WHERE | {"start_ns": start, "duration_ns": end - start}
        if what in ("compute", "collective"):
            family = "gemm" if what == "compute" else what
            rows["kernels"].append(row | {"kernel_id": number, "name": what, "family": family, "device_id": "g"} | tensor)
        elif what == "HtoD":
            rows["memory_ops"].append(row | {
                "memory_op_id": number, "kind": "memcpy", "direction": what, "bytes": 8 * (end - start), "device_id": "g",
                "source_memory": "pageable"})
        elif what.startswith("cu"):
            rows["api_calls"].append(row | {"launch_id": number, "name": what, "thread": 1})
        else:
            kind = "annotation" if what == LOADER else "operator"
            rows["ranges"].append(row | {"range_id": number, "kind": kind, "name": what, "thread": 1})
    return rows


WHERE_OF_PROCESS = {name: WHERE[name] for name in ("run", "tool", "profile_id", "process_id")} | {"rank": 3}



def test_a_gpu_that_idled_with_one_kernel_is_judged_by_the_longer_of_both() -> None:
    """Launching explains 0.1 ms per kernel at most."""
    (short, advice), (_, beyond) = (of_launches({"kernels": 1, "total_ns": 50_000}, idle) for idle in (100_000, 100_001))
    assert "1 kernel of 50.00 µs" in short and "100.0 µs of idle time" in short
    assert advice != beyond == of_launches({"kernels": 1, "total_ns": 100_001}, 0)[1]
    assert advice == of_launches({"kernels": 2, "total_ns": 200_000}, 200_000)[1], "of each kernel, not of all"
    assert of_launches(None, 100_000) == ("", {})


def of(**rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    connection = catalog(**rows)
    findings: list[dict[str, Any]] = analyse(
        asking(connection)).to_pylist()
    return findings


def found(*pieces: Piece, **tensor: Any) -> list[dict[str, Any]]:
    return of(**tables(list(pieces), **tensor))


@pytest.mark.parametrize(("rule", "total", "pieces"), [
    ("copies", 101, [("compute", 0, 899), ("HtoD", 899, 1000)]),
    ("communication", 101, [("compute", 0, 899), ("collective", 899, 1000)]),
    ("data_loader", 51, [(LOADER, 0, 51), ("compute", 51, 1000)]),
    ("api_call", 101, [("cudaMalloc", 0, 101), ("compute", 101, 1000)]),
    ("host", 201, [("aten::mm", 0, 201), ("compute", 201, 1000)]),
])
def test_a_rule_fires_above_its_limit_and_not_on_it(rule: str, total: int, pieces: list[Piece]) -> None:
    (row,) = found(*pieces)
    assert [row[name] for name in ("rule", "total_ns", "of_ns", "share_pct", "rank", "who")] == [
        rule, total, 1000, total / 10, 3, "rank 3"]
    assert 100 * (total - 1) == row["limit_pct"] * 1000
    edge = min((end for _, _, end in pieces if end < 1000))
    closer = edge + 1 if pieces[0][0] == "compute" else edge - 1
    moved = [(what, closer if start == edge else start, closer if end == edge else end) for what, start, end in pieces]
    assert [row["rule"] for row in found(*moved)] == ["nothing"]


@pytest.mark.parametrize("hidden", [("HtoD", 0, 900), ("collective", 0, 900), (LOADER, 0, 900), ("cudaMalloc", 0, 900),
                                    ("aten::mm", 0, 900)])
def test_what_the_gpus_work_hides_is_no_finding(hidden: Piece) -> None:
    (row,) = found(("compute", 0, 1000), hidden)
    assert (row["rule"], row["rank"], row["total_ns"], row["of_ns"], row["who"]) == ("nothing", None, 0, 1000, "all")
    assert row["what"].startswith("nothing is worth doing")


def test_copies_that_keep_the_gpu_busy_are_no_wait_for_the_host() -> None:
    """Kernels run 3.9 % of the time, and copies nearly all the rest."""
    (row,) = found(("compute", 0, 39), ("HtoD", 39, 997), ("cudaMemcpy", 30, 1000))
    assert (row["rule"], row["total_ns"]) == ("copies", 958)
    assert "HtoD 100 %, 8.0 GB/s, pageable memory" in row["what"] and "batch" not in row["why"]


def test_the_function_is_named_whose_calls_the_gpu_waits_for() -> None:
    """The call in another call is part of it; what lies beside a kernel is not waited for."""
    (row,) = found(("cudaMalloc", 0, 300), ("cuMemAlloc", 10, 290), ("compute", 250, 1000), ("cudaMalloc", 400, 500))
    assert (row["rule"], row["total_ns"]) == ("api_call", 250)
    assert row["what"].endswith("during cudaMalloc (2 calls, the longest 0.3 µs; 0.2 µs before the first work on the GPU)")
    assert "reuse it" in row["why"]


def test_a_call_that_mostly_delays_later_work_is_not_said_to_come_before_the_first() -> None:
    (row,) = found(("compute", 100, 400), ("cudaMalloc", 0, 100), ("cudaMalloc", 400, 700), ("compute", 700, 1000))
    assert (row["rule"], row["total_ns"]) == ("api_call", 400)
    assert row["what"] == "the GPU idles during cudaMalloc (2 calls, the longest 0.3 µs)"


def test_a_call_that_waits_for_the_gpu_says_for_what() -> None:
    rows = tables([("compute", 0, 600), ("cudaStreamSynchronize", 10, 1000)])
    rows["synchronizations"] = [WHERE | {"synchronization_id": 1, "launch_id": 2, "kind": "stream", "stream": 7, "start_ns": 12,
                                         "duration_ns": 900}]
    connection = catalog(**rows)
    (row,) = analyse(asking(connection)).to_pylist()
    assert row["what"] == ("the GPU idles during cudaStreamSynchronize (one call of 1.0 µs), where the host waits for a stream")
    assert (row["total_ns"], row["more"]) == (400, "nsightlens show idle_causes")


@pytest.mark.parametrize(("rule", "pieces"), [
    ("data_loader", [(LOADER, 0, 300), ("compute", 300, 1000)]), ("api_call", [("cudaMalloc", 0, 300), ("compute", 300, 1000)]),
    ("host", [("aten::mm", 0, 300), ("compute", 300, 1000)])])
def test_where_the_host_is_slow_kineto_may_be_the_reason(rule: str, pieces: list[Piece]) -> None:
    for tool, is_said in (("nsys", False), ("kineto", True)):
        (row,) = of(**{name: [row | {"tool": tool} for row in some] for name, some in tables(pieces).items()})
        assert (row["rule"], row["against"].endswith("Kineto slows the host.")) == (rule, is_said)


def test_what_the_host_does_is_shown_where_the_finding_points() -> None:
    """Operators are named on the critical path, calls among the causes of idle time."""
    for host, more in (("aten::mm", "nsightlens show critical_path --rank 3 --sort=-duration_ns"),
                       ("cudaMalloc", "nsightlens show idle_causes")):
        calls = [(f"{host}_{place}", 90 * place, 90 * (place + 1)) for place in range(3)]
        (row,) = found(*calls, ("compute", 270, 1000))
        assert (row["rule"], row["more"]) == ("host", more)


MORE = "nsightlens show idle_by_range alike=true"
IN_WRITE = ("; 100.0 % of its gaps lie in 2 ranges write #", MORE)


@pytest.mark.parametrize(("ranges", "said"), [
    ([("loop", 0, 1000), ("write 1", 100, 300), ("write 2", 500, 700)], IN_WRITE),
    ([("write 1", 100, 400), ("write 2", 500, 900)], None),  # little more idle time than elsewhere
    ([("write 1", 100, 200), ("read", 200, 300), ("send", 500, 700)], ("; 50.0 % of its gaps lie in the range send", MORE)),
    ([("write 1", 100, 200), ("read", 200, 300), ("send", 500, 600)], None),  # none holds half
])
def test_the_range_that_holds_most_of_the_idle_time_is_named(ranges: list[Piece], said: tuple[str, str] | None) -> None:
    pieces = [("compute", 0, 100), ("compute", 300, 500), ("compute", 700, 1000)]
    rows = tables(pieces)
    rows["ranges"] += [WHERE | {"range_id": 10 + start, "kind": "nvtx_push_pop", "name": name, "thread": 1, "start_ns": start,
                                "duration_ns": end - start} for name, start, end in ranges]
    (row,) = of(**rows)
    what, more = said or ("", "nsightlens show idle_causes")
    assert (row["rule"], row["total_ns"], row["more"]) == ("host", 400, more)
    assert row["what"] == ("the GPU idles while the host is in other code: 3 kernels of 200 ns on average, and 133.3 ns of idle "
                           f"time for each{what}")
    two = {name: [row | {"window_index": window} for row in some for window in ((0, 1) if "window_index" in row else (0,))]
           for name, some in rows.items() if name != "processes"} | {"processes": rows["processes"]}
    assert not [row for row in of(**two) if "gaps" in row["what"]], "the view has no figure for a window alone"


def test_communication_of_the_host_is_shown_where_the_finding_points() -> None:
    """comm_compute_overlap has kernels only: calls that are NVTX ranges are in nvtx_summary."""
    rows = tables([("compute", 0, 800)])
    rows["ranges"].append(WHERE | {"range_id": 9, "kind": "nvtx_push_pop", "domain": "MPI", "name": "MPI_Send", "thread": 1,
                                   "start_ns": 800, "duration_ns": 200})
    (row,) = of(**rows)
    assert (row["rule"], row["total_ns"], row["more"]) == ("communication", 200, "nsightlens show idle_by_range")
    (row,) = found(("compute", 0, 800), ("collective", 800, 1000))
    assert (row["rule"], row["more"]) == ("communication", "nsightlens show comm_compute_overlap")


def test_advice_suits_gpus_of_every_vendor() -> None:
    said = [text for advice in ADVICE.values() for text in (advice.what, advice.why, advice.against)]
    said += [str(text) for name in ("hipFree", "hipModuleLoad", "hipMemcpy") for text in of_call(name).values()]
    assert not [text for text in said if "cudaMalloc" in text or "CUDA call" in text]


@pytest.mark.parametrize("name", ["cudaHostRegister", "cudaMallocHost", "cuMemAllocHost_v2", "hipHostMalloc", "cudaFreeHost"])
def test_pinning_is_not_taken_for_memory_of_the_gpu(name: str) -> None:
    assert "pinned" in of_call(name)["why"] and "pinned" not in of_call("cudaMalloc")["why"]


def test_time_of_all_ranks_is_told_from_that_of_one() -> None:
    rows = tables([("compute", 0, 1000)])
    other = {"profile_id": "q", "process_id": "q:0"}
    both = {name: [*some, *(row | other for row in some)] for name, some in rows.items()}
    both["processes"][1]["rank"] = 4
    assert [(row["who"], row["of_ns"]) for row in of(**both)] == [("all ranks", 2000)]
    assert [(row["who"], row["of_ns"]) for row in of(**rows)] == [("all", 1000)]


def test_times_are_said_in_milliseconds_from_one_on() -> None:
    assert [span(ns) for ns in (1_500, 999_900, 1_000_000, 9_999_945_000, 35_630_000_000)] == [
        "1.5 µs", "999.9 µs", "1.0 ms", "9,999.9 ms", "35.6 s"]


def test_many_functions_that_each_take_little_are_not_named() -> None:
    assert [row["rule"] for row in found(("cudaMalloc", 0, 90), ("cudaFree", 90, 180), ("compute", 180, 1000))] == ["nothing"]
    (row,) = found(("cudaMalloc", 0, 90), ("cudaFree", 90, 180), ("cudaHostAlloc", 180, 270), ("compute", 270, 1000))
    assert (row["rule"], row["total_ns"]) == ("host", 270) and "the host is in API calls: " in row["what"]


def test_the_wait_for_the_host_yields_to_what_is_known_better() -> None:
    rows = found((LOADER, 0, 300), ("cudaMalloc", 300, 500), ("aten::mm", 500, 600), ("compute", 600, 1000))
    assert [(row["rule"], row["total_ns"]) for row in rows] == [("data_loader", 300), ("api_call", 200)]


def test_a_process_without_gpu_work_was_not_seen_to_idle() -> None:
    assert found(("aten::mm", 0, 900), ("cudaMalloc", 900, 1000)) == []


def exchange(path: Path, rank: int, late_us: float) -> None:
    """Write a rank of ten collectives that all ranks leave together."""
    ends = [1000.0 * k for k in range(1, 11)]
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    kineto(path, [(name, end - 400 + late_us, 400 - late_us) for end in ends], rank=rank, pid=70 + rank, world_size=3)


@pytest.mark.parametrize(("late_us", "waited", "communication"), [
    (0.0, None, [4_000_000] * 3), (20.0, None, [4_000_000, 4_000_000, 3_800_000]), (150.0, 3_000_000, [2_500_000] * 3),
])
def test_the_late_rank_is_named_and_waiting_for_it_is_not_communication(
    tmp_path: Path, late_us: float, waited: int | None, communication: list[int],
) -> None:
    """Rank 2 is late in ten collectives; the two others wait for it, 1.4 % or 10 % of the time of all."""
    for rank in range(3):
        exchange(tmp_path / "run" / f"{rank}.json", rank, late_us if rank == 2 else 0.0)
    rows = nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).view("findings").to_pylist()
    late = [(row["rank"], row["total_ns"]) for row in rows if row["rule"] == "straggler"]
    assert late == ([] if waited is None else [(2, waited)])
    by_rank = {row["rank"]: row["total_ns"] for row in rows if row["rule"] == "communication"}
    assert [by_rank[rank] for rank in range(3)] == communication
    if waited is not None:
        first = findings_of(rows, ["run"])[0]
        assert (first.cause, first.who, first.amount.split(" of ")[0]) == ("straggler", "rank 2", "3.000 ms")


def test_a_late_rank_is_named_in_its_process_group() -> None:
    """Of two groups, rank 1 comes late to the one by itself, if not as often; of one group nothing needs to be said."""
    calls = [("tp", 1, 70), ("tp", 1, 90), *3 * [("dp", 1, 75)], ("dp", MISSING, MISSING)]

    def compared(some: list[tuple[str, int, int]]) -> Any:
        """Return calls whose last rank is late by 90: (group, last rank, what it inherited of that); in dp, 10 are undecided."""
        groups = [*dict.fromkeys(group for group, *_ in some)]
        last, had = (np.array([call[place] for call in some]) for place in (1, 2))
        return SimpleNamespace(
            execution=SimpleNamespace(run="r", tool="nsys", matched=[SimpleNamespace(group=group) for group in groups]),
            arrivals=SimpleNamespace(lag=np.full(len(some), 90), is_named=last != MISSING), last_rank=last, inherited=had,
            group=np.array([groups.index(group) for group, *_ in some]),
            undecided=np.array([10 * (group == "dp") for group, *_ in some]))

    named = Groups(asking(catalog()))
    assert _groups([compared(calls)], named) == {("r", "nsys", 1): ", 2 times in process group tp"}
    assert _groups([compared(calls[:2])], named) == {}


def test_rules_of_the_plugin_follow_ours_and_say_so() -> None:
    rows = tables([("aten::mm", 0, 300), ("compute", 300, 1000)])
    rows["ranges"].append(WHERE | {"range_id": 9, "kind": "operator", "name": "DistributedDataParallel.forward", "start_ns": 0,
                                   "duration_ns": 1, "thread": 1})
    rules = of(**rows, devices=[WHERE_OF_DEVICE])
    assert [row["rule"] for row in rules] == ["host", "ddp_without_nccl"]
    assert "TensorBoard plugin" in rules[1]["what"] and rules[1]["total_ns"] is None


WHERE_OF_DEVICE = {name: WHERE[name] for name in ("run", "tool", "profile_id", "process_id")} | {
    "device_id": "g", "device": 0, "compute_capability": "9.0"}


def test_time_that_nothing_recorded_explains_is_called_so() -> None:
    """Ranges may cover it: it is outside calls and operators, which is not to say that nothing was recorded."""
    (row,) = found(("compute", 600, 1000))
    assert (row["rule"], row["total_ns"]) == ("host", 600)
    assert row["what"].startswith("the GPU idles while the host is in other code: 1 kernel of ")


@pytest.mark.parametrize(("scale", "kernels", "advised", "numbers"), [
    (1, 8, "larger kernels: CUDA or HIP graphs", "8 kernels of 50 ns on average, and 75 ns of idle time for each"),
    (1_000_000, 1, "what the CPU does meanwhile", "1 kernel of 400.0 ms on average, and 600.0 ms of idle time for each"),
    (100_000, 100, "what the CPU does meanwhile", "100 kernels of 400.0 µs on average, and 600.0 µs of idle time for each"),
])
def test_advice_on_a_late_host_depends_on_how_many_kernels_it_launches(
    scale: int, kernels: int, advised: str, numbers: str,
) -> None:
    length = 400 * scale // kernels
    rows = tables([("compute", 600 * scale + at * length, 600 * scale + (at + 1) * length) for at in range(kernels)])
    rows["ranges"][0]["duration_ns"] = 1000 * scale
    (row,) = (row for row in of(**rows) if row["rule"] == "host")
    assert row["total_ns"] == 600 * scale and row["what"].endswith(f": {numbers}") and advised in row["why"]


@pytest.mark.captures
@pytest.mark.parametrize(("path", "rule", "rank", "total", "words"), [
    ("nsys/RajaATAli__SC23_Programming-Your-GPU-with-OpenMP_Tutorial__report3.sqlite", "copies", 0, 26_207_455_433, "pageable"),
    ("nsys/hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite", "api_call", 0, 240_447_988,
     "cudaMalloc (76 calls, the longest 234.3 ms"),
    ("kineto/astra-sim__astra-sim__megatron-tp8", "straggler", 0, 1_533_247_000, "in 32 of 84 matched collectives, which would"),
    ("kineto/pytorch__kineto__tb_plugin__resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz", "data_loader", None,
     355_571_000, "data loader"),
    ("kineto/facebookresearch__param__dlrm8", "straggler", 7, 35_552_000, "its host is late"),
    ("nsys/GindaChen__nsys-ai__healthy_1pct.sqlite", "nothing", None, 3_993_000, "nothing is worth doing"),
])
def test_real_captures_name_their_cause(path: str, rule: str, rank: int | None, total: int | None, words: str,
                                        tmp_path: Path) -> None:
    capture = DATA / path
    if not capture.exists():
        pytest.skip(f"needs {path}")
    rows = nl.ingest(capture, store=tmp_path / "store", jobs=1).view("findings").to_pylist()
    assert [rows[0][name] for name in ("rule", "rank", "total_ns")] == [rule, rank, total] and words in rows[0]["what"]
    assert not any("larger batches" in row["why"] or "accumulate" in row["why"] for row in rows)
    if "megatron" in path:
        assert [(row["rank"], row["total_ns"]) for row in rows if row["rule"] == rule][1:] == [(6, 1_216_693_000)]
        assert all(row["rule"] in ("straggler", "host") for row in rows)
