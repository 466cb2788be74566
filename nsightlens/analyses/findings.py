"""What a job could win, and where: the leaves of time_tree that can be acted upon, a row for each, what wins most first.

The view verdict has the first three of each run. A finding is at least 2 % of the judged window, over all its ranks and GPUs;
its rank is the time that curing it wins, where that is known (late ranks: what the job gains once all of them are on time), else
its size, which is the most that it could. Causes are those of time_tree; where only ncu measured, what limits the kernels.
A run with nothing to judge has no row, and verdict says why; what only a part of a run is about, such as a slow process group or
pipeline stage, is in communicator_summary and pipeline_bubbles, and the rules of other tools are in recommendations.
@scope run
@topic steps
@requires _bounded_kernels, _collective_kernels, _gpu_work, _profile_executions, _serving_names, api_calls, devices, kernels
@requires memory_ops
@requires _process_groups, advice, diagnostics, synchronizations, _ncu_by_config, _tensor_core_counters, speed_of_light
@requires _device_links, collective_summary, cpu_samples, frames, sampled_frames
@requires mpi_calls, os_calls, overheads, page_faults, processes, profiles, range_projections, ranges
@assumes The tool put host and GPU on one clock, and a call launched the work that has its correlation id.
@assumes Kernels of communication are those of NCCL, RCCL, MSCCL, DeepEP, NVSHMEM and of custom collectives, by their names.
@assumes An action wins at most the time of its finding; how much, and whether another cause takes its place, is not known.
@first cause, subject, who, total_ns, share_pct, what
@column run          Run (one workload in one configuration).
@column tool         nsys, kineto or ncu. Never add them up: they saw the same work.
@column place        From 1 on, in each run and tool.
@column cause        late rank, communication, copies, computing, FP32 (products that use no tensor cores), low fill (fewer blocks
    than half of the SMs), start-up, or a cause of idle time: data loader, API calls, waiting, launching, first use, …
@column subject      The kernel, call, range, direction or ranks that it is about; NULL where there is none.
@column issuer       In which operator, range or module most of its calls were made, or its work was launched, of two the one that
    takes more at the front; NULL where none was recorded, where several share it, or where it is not about calls or work.
@column about        What it is about and where, in words; names are shortened.
@column rank         The rank that alone has it; NULL where several do, or where it is unknown.
@column who          The ranks or GPUs in whose window it is 2 %, too; NULL where one GPU without a rank is all.
@column total_ns     How long, over all ranks, GPUs and steps. Of a call that waited until the GPU had nothing to do, with the
    idle time behind it that would be gone if its thread had launched on instead (`what` says how much): in time_tree that stands
    under what the thread did, and no other finding has it where it is most of a leaf.
@column of_ns        The whole: the windows of all trees; NULL for start-up, which is no part of them.
@column share_pct    total_ns as a share of of_ns, to one decimal.
@column winnable_ns  What the job would gain by curing it; NULL where that is not known.
@column confidence   high, medium or low: whether the time was seen under this cause, or the cause is inferred; lower where the
    profiler slows the host, or where launches and GPU work do not fit each other.
@column what         What was seen; NULL where that is the time alone.
@column action       What can be done.
@column against      What speaks against it; NULL where nothing is known to.
@column more         The command that shows more.
@column command      The same for programs: its name, then its words, then its options as --name=value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._run_judgements import judgements
from nsightlens.diagnosis import words
from nsightlens.diagnosis.evidence import Evidence, evidence
from nsightlens.diagnosis.judgement import RunJudgement
from nsightlens.diagnosis.verdict import START_UP

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("place", pa.int32()), ("cause", pa.string()), ("subject", pa.string()),
    ("issuer", pa.string()), ("about", pa.string()), ("rank", pa.int32()), ("who", pa.string()), ("total_ns", pa.int64()),
    ("of_ns", pa.int64()), ("share_pct", pa.float64()),
    ("winnable_ns", pa.int64()), ("confidence", pa.string()), ("what", pa.string()), ("action", pa.string()),
    ("against", pa.string()), ("more", pa.string()), ("command", pa.list_(pa.string()))])


def analyse(ask: Ask) -> pa.Table:
    """Return the findings of all runs and tools."""
    return pa.Table.from_pylist([row for judged in judgements(ask) for row in _rows(judged)], schema=_SCHEMA)


def _rows(judged: RunJudgement) -> Iterator[dict[str, Any]]:
    whole = judged.sums.whole_ns if judged.sums else judged.counters.timed_ns if judged.counters else None
    for place, each in enumerate(evidence(judged), 1):
        yield {"run": judged.run, "tool": judged.tool, "place": place, **_row(each, whole)}


def _row(each: Evidence, whole: int | None) -> dict[str, Any]:
    finding = each.finding
    inside = whole if finding.cause != START_UP else None
    return {
        "cause": finding.cause, "subject": finding.subject or None, "issuer": finding.issuer.names or None,
        "about": words.about(finding),
        "rank": each.ranks[0] if len(each.ranks) == 1 else None, "who": each.who or None, "total_ns": finding.ns, "of_ns": inside,
        "share_pct": round(100 * finding.ns / inside, 1) if inside else None, "winnable_ns": finding.winnable_ns,
        "confidence": each.confidence, "what": each.seen or None, "action": words.action(finding),
        "against": each.against or None, "more": each.command.shell(), "command": each.command.fields}
