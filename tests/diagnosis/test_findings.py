"""What stands in a finding, and what is advised: nothing that the capture shows not to be so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nsightlens as nl
from nsightlens.diagnosis import words
from nsightlens.diagnosis.busy_time import BusyItem as Part
from nsightlens.diagnosis.findings import Finding, findings
from nsightlens.diagnosis.host_only import host_only
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.profile_arrays import COPIES, MEMORY
from nsightlens.diagnosis.queue_drains import Owed
from nsightlens.diagnosis.sampled_functions import Sampled
from nsightlens.diagnosis.tree import Tree, trees
from nsightlens.diagnosis.verdict import Verdict, judge, sums
from tests.diagnosis.made import Piece, Range, recorded
from tests.readers.nsys_report import base, call, global_pid, kernel, write

_MS = 1_000_000


def _tree(idle: list[Leaf], **parts: object) -> Tree:
    """Return a tree of 100 ms, of which idle time is what its leaves say."""
    found, = trees(recorded([Piece(0, 100 * _MS)]), np.zeros(0, np.int64))
    ns = sum(leaf.ns for leaf in idle)
    lengths = found.lengths | {"idle": ns, "computing": 100 * _MS - ns}
    return replace(found, idle=idle, lengths=lengths, **parts)  # type: ignore[arg-type]


def _verdict(*every: Tree) -> Verdict:
    return judge(sums(every), None)


def _of(cause: str, *every: Tree) -> Finding:
    return next(found for found in findings(_verdict(*every)) if found.cause == cause)


@pytest.mark.parametrize(("leaf", "cause", "heading"), [
    (Leaf("API calls", 30 * _MS, (("cudaFree", 30 * _MS),), 9, 1, 20 * _MS), "API calls", "Idle during cudaFree: 30.00 ms"),
    (Leaf("operators", 30 * _MS, (("aten::mul", 30 * _MS),), 9, 1, 20 * _MS), "operators", "Idle while the host is in aten::mul"),
    (Leaf("launching", 30 * _MS, (("cudaLaunchKernel", 30 * _MS),), 9, 1, 20 * _MS), "launching", "Idle in cudaLaunchKernel"),
])
def test_what_few_gaps_hold_is_no_matter_of_each_call(leaf: Leaf, cause: str, heading: str) -> None:
    """Reused buffers, or fewer launches, cure what each call costs; not one that lasts for 20 ms."""
    found = _of(cause, _tree([leaf]))
    assert (found.action, found.few, found.few_ns) == ("once", 1, 20 * _MS)
    assert words.finding(found).startswith(heading) and "20.00 ms in one gap" in words.finding(found)


@pytest.mark.parametrize(("gaps", "few_ns"), [(0, 0), (1, 10 * _MS), (1, _MS // 2)])
def test_what_many_gaps_hold_is(gaps: int, few_ns: int) -> None:
    leaf = Leaf("API calls", 30 * _MS, (("cudaFree", 30 * _MS),), 900, gaps, few_ns)
    assert _of("API calls", _tree([leaf])).action == "allocate"


@pytest.mark.parametrize(("tool", "stacks", "action"), [
    ("nsys", False, "sample"), ("kineto", False, "record stacks"), ("kineto", True, "stacks"),
])
def test_what_the_tool_cannot_record_is_not_advised(tool: str, stacks: bool, action: str) -> None:
    """The PyTorch profiler takes no samples of the CPU; nor are stacks recorded again that are there."""
    assert _of("host code", _tree([Leaf("unknown", 30 * _MS, (), 900)], tool=tool, stacks=stacks)).action == action


def test_each_direction_of_copies_is_a_finding() -> None:
    copies = [Part("HtoD", "HtoD", 40 * _MS, 9, memory="pageable"), Part("DtoH", "DtoH", 30 * _MS, 9, memory="pageable"),
              Part("DtoD", "DtoD", 20 * _MS, 9)]
    tree = _tree([], copies=copies)
    tree.lengths.update(computing=10 * _MS, copies=90 * _MS)
    verdict = _verdict(tree)
    found = {each.subject: (each.ns, each.action) for each in findings(verdict) if each.cause == "copies"}
    assert found == {"HtoD": (40 * _MS, "pin and stay"), "DtoH": (30 * _MS, "pin and stay"), "DtoD": (20 * _MS, "in place")}
    assert "(host to device, device to host, pageable memory)" in words.sentence(verdict)


@pytest.mark.parametrize(("begins", "action"), [(0.6, "earlier"), (0.98, "overlap copies"), (1.0, "overlap copies")])
def test_copies_that_kernels_hide_in_part_have_a_stream_already(begins: float, action: str) -> None:
    """A kernel of 10 ms, and a copy of 8 ms that begins in it or at its end."""
    start = int(begins * 10 * _MS)
    pieces = [Piece(0, 10 * _MS), Piece(start, start + 8 * _MS, branch=COPIES, name="HtoD", kind=MEMORY)]
    tree, = trees(recorded(pieces), np.zeros(0, np.int64))
    copies, = tree.copies
    assert (copies.ns, copies.hidden_ns) == (start - 2 * _MS, 10 * _MS - start)
    found, = (each for each in findings(_verdict(tree)) if each.cause == "copies")
    assert found.action == action


@pytest.mark.parametrize(("names", "named"), [
    ((("a", 60), ("b", 40)), "(a)"), ((("a", 40), ("b", 20), ("c", 40)), "(a, b)"),
    ((("a", 20), *((f"op{n}", 10) for n in "bcdefghi")), "(a 20.0 % of that)"),
    (tuple((f"op{n}", 10) for n in "abcdefghij"), ""),
])
def test_names_that_hold_less_than_half_are_not_said_to_be_all(names: tuple[tuple[str, int], ...], named: str) -> None:
    leaf = Leaf("operators", 90 * _MS, tuple((name, ns * _MS * 9 // 10) for name, ns in names), 900)
    assert f"is in operators {named}".strip() + "." in words.sentence(_verdict(_tree([leaf])))


@pytest.mark.parametrize(("ranks", "said"), [
    ((4,), "rank 4:"), ((0, 6), "ranks 0 and 6:"), ((4, 5, 7), "ranks 4, 5 and 7:")])
def test_late_ranks_are_counted(ranks: tuple[int, ...], said: str) -> None:
    found = Finding("late rank", "whoever that is", 100, "late", 50, ranks=ranks)
    assert said in words.finding(found) and ("what its host" in words.action(found)) is (len(ranks) == 1)


def test_what_calls_of_the_system_are_for_is_not_read_out_of_their_names() -> None:
    said = words.finding(Finding("OS calls", "whatever they are", 100, "sleep", os_calls="sleeps"))
    assert said != words.finding(Finding("OS calls", "whatever they are", 100, "sleep", os_calls="reads"))
    assert "the host sleeps" in said


@pytest.mark.parametrize(("vendor", "units"), [("cuda", "SMs"), ("rocm", "CUs")])
def test_units_are_called_as_their_maker_does(vendor: str, units: str) -> None:
    tree = _tree([], low_fill=("k", 90 * _MS, 3), sms=104, vendor=vendor)
    assert f"3 blocks for 104 {units}" in words.finding(_of("low fill", tree))


@pytest.mark.parametrize(("blocks", "causes"), [
    (3, {"low fill"}), (104, {"low fill", "computing"}), (-1, {"low fill", "computing"}),
])
def test_the_limit_of_a_kernel_with_too_few_blocks_is_known(blocks: int, causes: set[str]) -> None:
    """Nothing is to be measured then; kernels of larger grids are another matter."""
    tree = _tree([], low_fill=("k", 90 * _MS, 3), sms=104, computing=[Part("k", "k", 90 * _MS, 9, blocks=blocks)])
    assert {each.cause for each in findings(_verdict(tree))} == causes


def test_the_limit_of_a_kernel_that_meets_page_faults_is_known() -> None:
    kernel = Part("k", "k", 90 * _MS, 9)
    tree = _tree([], computing=[kernel], faulting=[replace(kernel, ns=60 * _MS)])
    assert [each.cause for each in findings(_verdict(tree))] == ["page faults"]
    assert "66.7 % of that in page faults" in words.sentence(_verdict(tree))


def test_ranges_say_what_samples_say_of_them() -> None:
    leaf = Leaf("ranges", 50 * _MS, (("save", 50 * _MS),), 9, sampled=Sampled(((("zlib_deflate", "libz.so"), 40),), 45))
    assert "in save, by CPU samples in zlib_deflate:" in words.finding(_of("ranges", _tree([leaf])))


@pytest.mark.parametrize(("names", "subject", "ns"), [
    ((("save", 60), ("load", 30)), "save", 60), ((("a", 35), ("b", 25), ("c", 30)), "a, b", 60),
    ((("a", 20), ("b", 20), ("c", 20), ("d", 30)), "", 90),
])
def test_a_finding_has_the_time_of_the_ranges_that_it_names(names: tuple[tuple[str, int], ...], subject: str, ns: int) -> None:
    found = _of("ranges", _tree([Leaf("ranges", 90 * _MS, tuple((name, each * _MS) for name, each in names), 9)]))
    assert (found.subject, found.ns) == (subject, ns * _MS)


@pytest.mark.parametrize(("owed_ms", "said"), [(1, "Idle during cudaFree: 60.00 ms;"), (5, "during"), (70, "after")])
def test_what_a_call_leaves_behind_is_told_apart_from_the_time_in_it(owed_ms: int, said: str) -> None:
    """Below 2 % of the finding it is left out of it."""
    leaf = Leaf("API calls", 60 * _MS, (("cudaFree", 60 * _MS),), 900)
    found = _of("API calls", _tree([leaf], owed=[Owed("unknown", "", "cudaFree", "", owed_ms * _MS)]))
    assert found.ns == (60 + found.owed_ns // _MS) * _MS and found.owed_ns == (owed_ms > 1) * owed_ms * _MS
    assert said in words.finding(found)


def test_a_sum_over_ranks_is_said_to_be_one() -> None:
    """What stands before it is a mean: 90 of 100 ms would be 180 of 100."""
    leaf = Leaf("ranges", 90 * _MS, (("save", 90 * _MS),), 9)
    every = [_tree([leaf], rank=rank, ranks=(rank,)) for rank in range(2)]
    assert "Of 100.0 ms on 2 ranks, the GPUs idle 90.0 % (180.0 ms over all)" in words.sentence(_verdict(*every))


def test_a_range_that_waits_for_the_operators_of_another_thread_takes_no_time_itself() -> None:
    """As the range of a backward pass, whose operators run on autograd's own thread."""
    ranges = [Range(0, 100, "## backward ##"), Range(5, 65, "aten::mm", "operator"), Range(70, 90, "aten::mul", "operator"),
              Range(95, 98, "aten::zero_", "operator", 0, 1)]
    profile = recorded([], ranges=ranges)
    profile.ranges.spans.thread[1:3] += 1
    found = host_only(profile)
    assert (found.name, found.ns, found.of_ns) == ("aten::mm", 60, 100)


def test_ranges_with_the_times_of_their_work_are_no_job_without_gpu_work(tmp_path: Path) -> None:
    """That export holds neither launches nor kernels, though the GPU worked."""
    (tmp_path / "a.csv").write_text(
        "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration (ns),Style,PID,TID,NumGPUOps,Lvl,"
        "NumChild,RangeId,ParentId,RangeStack\nstep,1000,500,900,100,PushPop,7,7,3,0,0,1,,:1\n")
    with nl.ingest(tmp_path / "a.csv", store=tmp_path / "store", jobs=1) as store:
        row = store.view("verdict").to_pylist()[0]
    assert row["cause"] == "none" and "no GPU work" not in row["text"]


def _said(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    with nl.ingest(folder / name, store=folder / "store", jobs=1) as store:
        return str(store.view("verdict").to_pylist()[0]["text"])


def test_results_of_several_launches_at_once_are_no_lack_of_gpu_work(tmp_path: Path) -> None:
    """As ncu writes them in range replay: neither a grid nor a block."""
    head = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,Section Name,"
    row = '0,1,a,h,range,1,7,"(0, 0, 0)","(0, 0, 0)",0,9.0,Command line profiler metrics,gpu__time_duration.sum,ns,5000000\n'
    said = _said(tmp_path, "a.csv", f"{head}Metric Name,Metric Unit,Metric Value\n{row}")
    assert "1 range" in said and "5.000 ms" in said and "no GPU work" not in said


def test_pages_that_migrate_tell_of_faults_where_these_were_not_recorded(tmp_path: Path) -> None:
    """A prefetch beside a kernel does not hold it up. Of 900 us of kernels, faults make 500 migrate."""
    said = {}
    for cause in ("page_fault", "prefetch"):
        moved = {"deviceId": 0, "contextId": 0, "streamId": 0, "globalPid": global_pid(7), "bytes": 1 << 20, "copyKind": 11,
                 "srcKind": 4, "dstKind": 4, "migrationCause": 1 if cause == "prefetch" else 2}
        tables = base(
            CUPTI_ACTIVITY_KIND_KERNEL=[kernel(at, at + 90_000, correlationId=at) for at in range(1000, 1_000_000, 100_000)],
            CUPTI_ACTIVITY_KIND_RUNTIME=[call(at - 900, at - 500, correlationId=at) for at in range(1000, 1_000_000, 100_000)],
            CUPTI_ACTIVITY_KIND_MEMCPY=[moved | {"start": at, "end": at + 50_000, "correlationId": 0}
                                        for at in range(2000, 1_000_000, 100_000)],
            ENUM_CUDA_UNIF_MEM_MIGRATION=[{"id": 1, "name": "CUDA_UNIF_MEM_MIGRATION_CAUSE_PREFETCH", "label": "Prefetch"},
                                          {"id": 2, "name": "CUDA_UNIF_MEM_MIGRATION_CAUSE_PAGE_FAULT", "label": "Page fault"}])
        with nl.ingest(write(tmp_path / cause / "a.sqlite", tables), store=tmp_path / f"{cause}.store", jobs=1) as store:
            said[cause] = [(row["cause"], row["total_ns"]) for row in store.view("verdict").to_pylist()]
    assert ("page migration", 500_000) in said["page_fault"]
    assert "page migration" not in {cause for cause, _ in said["prefetch"]}


def test_launches_that_failed_are_said_to_have(tmp_path: Path) -> None:
    """Nor is it said that the program launched nothing."""
    tables = base(
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(at, at + 9, correlationId=at, returnValue=209) for at in range(100, 1000, 100)])
    del tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    with nl.ingest(write(tmp_path / "a.sqlite", tables), store=tmp_path / "store", jobs=1) as store:
        row = store.view("verdict").to_pylist()[0]
    assert row["cause"] == "none" and "9 of 9 launches failed" in row["text"]


def test_what_the_reader_lost_is_said_where_nothing_is_left(tmp_path: Path) -> None:
    """Nor is it said that the GPU did nothing, of a file whose events are not read."""
    events = [{"ph": ph, "cat": "kernel", "name": "k", "ts": ts, "pid": 0, "tid": 7} for ph, ts in (("B", 1), ("E", 5))]
    said = _said(tmp_path, "a.pt.trace.json", json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert "not read" in said and "no GPU work" not in said
