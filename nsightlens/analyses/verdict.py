"""What bounds each run, and by how much: the verdict, at most three findings, and what kept parts of it from being judged.

The verdict is read off the tree of time_tree: the largest of computing, exposed communication, exposed copies, idle and not
recorded, start-up or wind-down where the window is no steady steps; below 70 % the second is named beside it. Findings are
leaves of the tree that can be acted upon, at least 2 % of the window: by what curing them wins where that is known (late
ranks), else by their size. Conditions are what a capture must fulfil for its times to be judged, where it does not.
@scope run
@topic steps
@requires _bounded_kernels, _collective_kernels, _gpu_work, _profile_executions, _serving_names, api_calls, devices, kernels
@requires memory_ops
@requires _process_groups, advice, diagnostics, synchronizations, _ncu_by_config, _tensor_core_counters, speed_of_light
@requires _device_links, collective_summary, cpu_samples, frames, sampled_frames
@requires mpi_calls, os_calls, overheads, page_faults, processes, profiles, range_projections, ranges
@assumes The tool put host and GPU on one clock, and a call launched the work that has its correlation id.
@assumes Kernels of communication are those of NCCL, RCCL, MSCCL, DeepEP, NVSHMEM and of custom collectives, by their names.
@first kind, cause, text, total_ns, share_pct
@column run          Run (one workload in one configuration).
@column tool         nsys, kineto or ncu. Never add them up: they saw the same work.
@column place        0 for the verdict; findings and conditions from 1 on.
@column kind         verdict, finding or condition.
@column cause        computing, input, host, communication, late rank, copies, start-up, wind-down, not recorded, cpu (no GPU
    work), kernel (ncu alone) or none (nothing to judge); of a finding the leaf, of a condition what fails.
@column subject      The kernel, call, range, direction or ranks that it is about; NULL where there is none.
@column total_ns     How long, over all ranks, GPUs and steps; NULL where unknown.
@column of_ns        The whole: the windows of all trees; NULL for what is no part of them (start-up, wind-down).
@column share_pct    total_ns as a share of of_ns, to one decimal; of a condition the share that fails.
@column winnable_ns  What the job would gain by curing it, where that is known.
@column text         The same as a sentence.
@column command      The command that goes with it: its name, then its words, then its options as --name=value; NULL without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._run_judgements import judgements
from nsightlens.diagnosis import capture_words, words
from nsightlens.diagnosis.findings import counter_findings, findings
from nsightlens.diagnosis.judgement import RunJudgement

_MOST = 3
"""Findings that stand with a verdict; the view findings has all."""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("place", pa.int32()), ("kind", pa.string()), ("cause", pa.string()),
    ("subject", pa.string()), ("total_ns", pa.int64()), ("of_ns", pa.int64()), ("share_pct", pa.float64()),
    ("winnable_ns", pa.int64()), ("text", pa.string()), ("command", pa.list_(pa.string()))])


def analyse(ask: Ask) -> pa.Table:
    """Return the rows of all runs and tools."""
    return pa.Table.from_pylist([row for found in judgements(ask) for row in _rows(found)], schema=_SCHEMA)


def _rows(found: RunJudgement) -> Iterator[dict[str, Any]]:
    where = {"run": found.run, "tool": found.tool}
    ns, of_ns = _lead(found)
    yield where | {
        "place": 0, "kind": "verdict", "cause": found.cause, "subject": _subject(found), "total_ns": ns, "of_ns": of_ns,
        "share_pct": _rounded(100 * ns / of_ns if ns is not None and of_ns else None), "winnable_ns": None,
        "text": words.first(found)}
    said = (findings(found.verdict) if found.verdict else counter_findings(found.counters) if found.counters else [])[:_MOST]
    whole = found.sums.whole_ns if found.sums else found.counters.timed_ns if found.counters else None
    for place, finding in enumerate(said, 1):
        inside = whole if finding.cause != "start-up" else None
        yield where | {
            "place": place, "kind": "finding", "cause": finding.cause, "subject": finding.subject or None, "total_ns": finding.ns,
            "of_ns": inside, "share_pct": _rounded(100 * finding.ns / inside if inside else None),
            "winnable_ns": finding.winnable_ns, "text": words.finding(finding),
            "command": words.COMMANDS[finding.action].fields if finding.action in words.COMMANDS else None}
    for place, condition in enumerate(found.conditions, len(said) + 1):
        yield where | {
            "place": place, "kind": "condition", "cause": condition.code, "subject": None, "total_ns": condition.ns or None,
            "of_ns": None, "share_pct": _rounded(condition.share_pct), "winnable_ns": None,
            "text": capture_words.condition(condition)}


def _lead(found: RunJudgement) -> tuple[int | None, int | None]:
    """Return the time that the verdict is about, and of what it is a part."""
    if found.verdict:
        return found.verdict.lead.ns, found.verdict.lead.of_ns
    return (found.counters.kernels[0].ns, found.counters.timed_ns) if found.counters else (None, None)


def _rounded(pct: float | None) -> float | None:
    return None if pct is None else round(pct, 1)


def _subject(found: RunJudgement) -> str | None:
    if found.counters:
        return found.counters.name
    if found.host:
        return found.host.name or None
    if found.verdict and found.verdict.waiting and found.verdict.waiting.late:
        return ", ".join(map(str, sorted(found.verdict.waiting.late)))
    return None
