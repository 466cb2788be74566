"""The sentences on captures: which conditions fail, and what is said where there is nothing to judge."""

from __future__ import annotations

from collections.abc import Iterable

from nsightlens.diagnosis.conditions import BEFORE_LAUNCH, BLOCKING, FRAGMENT, LOST, OVERHEAD, RANKS, UNLINKED, Condition
from nsightlens.diagnosis.host_only import HostOnly
from nsightlens.diagnosis.judgement import RunJudgement
from nsightlens.diagnosis.verdict import COMMUNICATION, COMPUTING, COPIES, NONE, NOT_RECORDED, Sums
from nsightlens.views.figures import counted, duration, number, share
from nsightlens.views.node_names import NODE_NAMES

_WORTH_PCT = 5
_NAME, _LINE = 40, 200
"""Characters of a name, and of a line of the program, in a sentence."""


def not_judged(found: RunJudgement) -> str:
    """Return what is said of a run without a verdict."""
    cut = [condition for condition in found.conditions if condition.code == FRAGMENT]
    if found.sums and cut:
        return _fragment(cut[0], found.sums)
    if found.sums and found.cause == NOT_RECORDED:
        return _hidden(found.conditions, found.sums)
    if found.projected:
        return ("Nothing to judge: ranges of the host and when the GPU did their work, but neither that work nor its launches. "
                "Export the report itself.")
    results, ns = found.ranges
    if results:
        took = "" if ns is None else f" ({duration(ns)})"
        return (f"Nothing to judge: ncu measured {counted(results, 'range')} of several launches{took}, and no single kernel. "
                "Measure kernels: ncu --replay-mode kernel.")
    if found.tool == "ncu":
        return "Nothing to judge: ncu measured no kernel."
    said = _not_timeline(found.cause, found.host, found.sums, found.loss)
    line = found.error if len(found.error) <= _LINE else f"{found.error[:_LINE - 1]}…"
    return f"{said} The program's last error line: {line}" if line else said


def short(name: str) -> str:
    """Return a name as it stands in a sentence."""
    return name if len(name) <= _NAME else f"{name[:_NAME - 1]}…"


def _not_timeline(judged_cause: str, host: HostOnly | None, sums: Sums | None, loss: str) -> str:
    """Return what is said of a run without a timeline to judge."""
    if sums is not None:
        works, gpu = sum(tree.works for tree in sums.trees), sum(tree.gpu_ns for tree in sums.trees)
        return f"Nothing to judge: {counted(works, 'GPU operation')} of {duration(gpu)} in all. Record more of the job."
    if host is None or not host.of_ns or judged_cause == NONE:
        if loss:
            return f"Nothing to judge: {loss[:1].lower()}{loss[1:].rstrip('.')}."
        calls = f"{counted(host.calls, 'API call')} and no kernel launched" if host and host.calls else "no GPU work was recorded"
        return f"Nothing to judge: {calls}. Record while the program uses the GPU."
    if host.launches:
        waits = "waits" if "Synchronize" in host.name else "is"
        return (f"Of {duration(host.of_ns)}, no kernel was recorded, of {number(host.launches)} launched; the host {waits} "
                f"{share(100 * host.ns / host.of_ns)} ({duration(host.ns)}) in {short(host.name)}.")
    return (f"No GPU work was recorded; on the host, {short(host.name)} takes {duration(host.ns)} of "
            f"{duration(host.of_ns)} ({share(100 * host.ns / host.of_ns)}).")


def _hidden(failed: Iterable[Condition], sums: Sums) -> str:
    """Return what is said where launches lack so many kernels that shares say nothing."""
    lost = [condition for condition in failed if condition.code == LOST]
    missing, launches = sum(each.count for each in lost), sum(each.of for each in lost)
    busy, gpus = sums.branches[COMPUTING], len(sums.trees)
    others = (f"{NODE_NAMES[branch]} {share(pct)}, " for branch in (COPIES, COMMUNICATION)
              if (pct := 100 * sums.branches[branch] / sums.whole_ns) >= _WORTH_PCT)
    of = f"{duration(sums.whole_ns)}{f' over {gpus} GPUs' if gpus > 1 else ''}"
    return (f"{number(missing)} of {number(launches)} launches have no kernel in the capture: computing was at least "
            f"{share(100 * busy / sums.whole_ns)} ({duration(busy)}) of {of}, {''.join(others)}and the rest is not recorded.")


def _fragment(cut: Condition, sums: Sums) -> str:
    """Return what is said of a capture that holds too little of a job."""
    gpu = sum(tree.gpu_ns for tree in sums.trees)
    return (f"Nothing to judge: a fragment of {counted(cut.of, 'kernel')} ({duration(gpu)} of GPU work), {number(cut.count)} of "
            "them launched before the capture. Record more of the job.")


_CONDITIONS = {
    LOST: "{0} of {1} launches have no kernel ({2}): idle time around them is not recorded",
    BEFORE_LAUNCH: "{0} of {1} pieces of GPU work start before their launch call ({2}): causes of idle time are uncertain",
    UNLINKED: "{0} of {1} kernels have no launch call in the capture ({2}): what the host did before them is unknown",
    FRAGMENT: "{0} of {1} kernels have no launch call in the capture ({2}): it is a fragment, of which shares say nothing",
    BLOCKING: "{0} of {1} launches last as long as their kernel, as under CUDA_LAUNCH_BLOCKING: idle time is not that of the job",
    RANKS: "{0} of {1} ranks were captured: a rank that was not may be late",
    OVERHEAD: "the profiler held threads for {3} between first and last GPU work: idle is an upper bound",
}


def condition(found: Condition) -> str:
    """Return a condition that failed in a line."""
    return _CONDITIONS[found.code].format(number(found.count), number(found.of), share(found.share_pct), duration(found.ns))
