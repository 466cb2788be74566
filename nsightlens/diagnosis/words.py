"""The sentences of a diagnosis: only the files `*words.py` make text of its values. At most 25 words each, numbers apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.capture_words import not_judged, short
from nsightlens.diagnosis.computing_words import issued_by, kernels, within
from nsightlens.diagnosis.conditions import BLOCKING
from nsightlens.diagnosis.counter_words import measured
from nsightlens.diagnosis.findings import OF_CALLS, Finding, is_of_process, spread_of
from nsightlens.diagnosis.host_words import OS_CALLS, during, outside
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.judgement import RunJudgement
from nsightlens.diagnosis.tree import Tree
from nsightlens.diagnosis.verdict import (
    COMMUNICATION,
    COMPUTING,
    COPIES,
    HOST,
    IDLE,
    INPUT,
    LATE,
    NOT_RECORDED,
    START_UP,
    WIND_DOWN,
    Sums,
    TimeShare,
    Verdict,
)
from nsightlens.diagnosis.window import is_far
from nsightlens.terminal.command import Command
from nsightlens.views.figures import counted, duration, rate, share, spans
from nsightlens.views.node_names import NODE_NAMES

_WORTH_PCT = 5
_APART_POINTS = 30
_DIRECTIONS = {"HtoD": "host to device", "DtoH": "device to host", "DtoD": "on the device", "PtoP": "between devices",
               "memset": "memset", "HtoD migration": "page migration to the device",
               "DtoH migration": "page migration to the host"}
ACTIONS = {
    "stages": "balance the stages, or use more micro-batches, so that fewer of them wait",
    "late": "find what their hosts do later than the others",
    "link": "see how its GPUs are connected and what NCCL chose (NCCL_DEBUG=INFO)",
    "overlap": "start it earlier or in larger buckets, so that computing hides it",
    "workers": "give it workers (num_workers above 0)",
    "prefetch": "give it more workers, or prefetch more batches",
    "wait": "let the host run ahead: wait only where a result is needed",
    "allocate": "reuse buffers instead of allocating and freeing in the loop",
    "copy": "make these copies asynchronous, from pinned memory",
    "asynchronous": "make these copies asynchronous",
    "merge copies": "merge small copies: each call takes time of the host",
    "call": "move it out of the loop, or to another thread",
    "compile": "launch less from Python: torch.compile, or graphs where shapes are fixed",
    "graphs": "launch fewer, larger kernels, or replay them as graphs",
    "less tracing": "record fewer kinds of events, or larger buffers",
    "warm": "it happens once: warm up before you measure",
    "pause": "long single calls: look for garbage collection or other processes on these CPUs",
    "host": "do this work on another thread while the GPU computes",
    "nonblocking": "use calls that do not block, and wait for them after the launches",
    "last": "find which rank comes last, and why",
    "look": "find what the host does there",
    "sample": "record CPU samples to see what the host does",
    "uneven": "divide the work evenly among the GPUs",
    "turns": "one thread feeds them in turn: let them work at once, on parts of a batch",
    "record calls": "record API calls (--trace=cuda) to see why",
    "record host": "record the host, too (ProfilerActivity.CPU), to see why",
    "record stacks": "record Python stacks (with_stack=True) to see what the host does",
    "stacks": "Python runs there: see which of its functions take time",
    "once": "see why it takes so long there",
    "mark": "CPU samples do not tell what it does: open ranges there",
    "off CPU": "its thread hardly ran: record what it waits for (--trace=osrt)",
    "read": "read ahead on another thread while the GPU computes",
    "sleep": "it sleeps: wait for what it waits for instead",
    "awaited": "find what keeps the other one",
    "pin": "pin the host's buffers, and copy while the GPU computes",
    "migrate": "prefetch managed memory before the kernels need it",
    "overlap copies": "copy on a stream of its own while the GPU computes",
    "earlier": "some run while the GPU computes: begin the others earlier",
    "in place": "work in place, or let kernels do it that run anyway",
    "stay": "the GPU computes too little to hide them: keep data on the GPU, or copy less",
    "pin and stay": "pin the host's buffers, and keep data on the GPU: it computes too little to hide them",
    **dict.fromkeys(("context", "start-up"), "it is paid once for each process"),
    "before": "it lies before the first GPU work of this capture, which began in mid-run",
    "tf32": "allow TF32, or use automatic mixed precision",
    "amp": "use automatic mixed precision (FP16)",
    "clock": "check clocks, temperature and power caps",
    "measure": "its limit is unknown; measure it",
    "more blocks": "split the work into more blocks",
    "larger blocks": "use blocks of several warps",
    "fewer bytes": "move fewer bytes: fuse kernels, keep data in caches, or use smaller types",
    "reuse": "reuse data in shared memory or registers",
    "wider loads": "load wider, and reuse data in shared memory or registers",
    "single precision": "use single precision where the result allows it",
    "fewer instructions": "execute fewer instructions",
    "barriers": "let fewer warps wait at a barrier: smaller blocks, or fewer barriers",
    "registers": "use fewer registers, so that more warps hide latency",
    "shared memory": "use less shared memory, so that more warps hide latency",
    "collect": "profile it with ncu --section SpeedOfLight, LaunchStats and Occupancy",
    "stalls": "what its warps wait for was not collected: ncu --section WarpStateStats",
    "parts": "which one was not collected: ncu --section ComputeWorkloadAnalysis",
    "memory parts": "which part of it was not collected: ncu --section MemoryWorkloadAnalysis",
    "hide": "hide it: more warps, or more independent instructions in each thread",
    "fp16": "use them where the numbers allow it: FP16",
    "tf32 or fp16": "use them where the numbers allow it: TF32, BF16 or FP16",
    "rule": "by ncu's own estimate; read what it advises"}
SUBJECTS = {
    "late rank": "Late: {0}", "other end": "Waiting for {0} in sends and receives",
    "communication": "Exposed communication ({0})", "computing": "Kernel {0}", "data loader": "The data loader",
    "FP32": "FP32 products and convolutions without tensor cores", "low fill": "Too few blocks in {0}",
    "profiler": "Idle while the profiler holds the host ({0})", "pause": "Pauses of the host ({0})",
    **dict.fromkeys(("ranges", "operators", "MPI"), "Idle while the host is in {0}"),
    "between kernels": "Idle between kernels launched in time",
    "sampled code": "Idle while the host is in {0}, by CPU samples", "waiting": "Waiting in {0}",
    "API calls": "Idle during {0}", "launching": "Kernels issued one by one", "no launches": "Idle for unknown reasons",
    "clock": "Kernels that take longer at the end of the window", "another GPU": "Idle while another GPU works",
    "host code": "Idle while the host is outside of recorded calls", "copies": "Copies, {0}", "start-up": "Start-up, {0}",
    "first use": "First launches of kernels",
    "small blocks": "Blocks of less than a warp in {0}",
    "memory": "Memory limits {0}", "latency": "Latency limits {0}", "compute": "Instructions limit {0}",
    "SM": "Some pipe of the SM limits {0}",
    "tensor cores": "Idle tensor cores in {0}", "ncu rule": "ncu's rule {0}",
    "page faults": "Page faults in {0}", "page migration": "Page migration in {0}", "not measured": "Unknown limit of {0}"}
"""What a finding is about, by its cause; others are named by their subject."""

RULES = Command("sql", ("SELECT DISTINCT rule, message FROM advice",))
COMMANDS = {"late": Command("compare ranks"), "last": Command("compare ranks"), "measure": Command("plan-ncu"),
            "look": Command("show", ("idle_by_range",)), "stacks": Command("show", ("stack_summary",)),
            "rule": RULES}
"""The command that goes with an action."""


def finding(found: Finding) -> str:
    """Return a finding in a line: what, its time, what to do."""
    amount = f"{duration(found.winnable_ns)} to win" if found.winnable_ns else duration(found.ns)
    if _WORTH_PCT * found.ns <= 100 * found.owed_ns:
        amount += f", of it {duration(found.owed_ns)} until the host is ahead again"
    elif found.few:
        amount += f", {duration(found.few_ns)} in {'one gap' if found.few == 1 else f'{found.few} gaps'}"
    return f"{about(found)}: {amount}; {action(found)}{':' if found.action in COMMANDS else '.'}"


def about(found: Finding) -> str:
    """Return what a finding is about, and where."""
    named = found.subject and (_DIRECTIONS.get(found.subject) or NODE_NAMES.get(found.subject) or short(found.subject))
    others = f" and {counted(found.others, 'other')}" if found.others else ""
    by = f" ({within(found.issuer)})" if found.issuer.names not in ("", found.subject) else ""
    if found.ranks:
        named = f"rank{'s' * (len(found.ranks) > 1)} {_ranks(found.ranks)}"
    by += f", by CPU samples in {short(found.sampled)}" if found.sampled else ""
    return _about(found).format(f"{named or found.cause}{others}") + by


def _about(found: Finding) -> str:
    if found.os_calls:
        return f"Idle while the host {OS_CALLS[found.os_calls]} ({{0}})"
    if found.cause == "launching" and found.few:
        return "Idle in {0}"
    if found.cause in OF_CALLS and 2 * found.owed_ns > found.ns:
        return "Idle after {0}"
    if found.cause == COMMUNICATION and not found.subject:
        return "Exposed communication"
    return SUBJECTS.get(found.cause, "{0}")


def action(found: Finding) -> str:
    """Return what can be done about a finding."""
    if found.action == "late" and len(found.ranks) < 2:
        return "find what its host does later than the others"
    few = f"grids of at most {counted(found.blocks, 'block')} for {found.sms} {found.units}: " if found.sms else ""
    link = found.link
    slow = f"{link.operation} reaches {rate(link.reached, 'B')} of the link's {rate(link.peak, 'B')}: " if link else ""
    return f"{few}{slow}{ACTIONS[found.action]}"


def sentence(verdict: Verdict) -> str:
    """Return what bounds a job: the whole, the cause with its share, what stands beside it, and who."""
    lead, sums = verdict.lead, verdict.sums
    beside = [_part(verdict, part, first=False) for part in verdict.beside]
    if beside and lead.cause == NOT_RECORDED and lead.of_ns is not None:
        beside[0] = f"of the rest, {beside[0]}"
    if beside and lead.cause in (START_UP, WIND_DOWN):
        beside[0] = f"of the window's {duration(sums.whole_ns / len(sums.trees))}, {beside[0]}"
    clauses = [_part(verdict, lead, first=True), *beside, *_dropped(sums)]
    return f"{_whole(verdict)}{'; '.join(clauses)}.{_what_is_missing(verdict)}" if sums.trees else ""


def _dropped(sums: Sums) -> list[str]:
    """Return how long the steps took that are left out before the steady ones, where they are slow and their time is long."""
    windows = [tree.window for tree in sums.trees]
    before, count = (sum(getattr(window, name) for window in windows) for name in ("dropped_ns", "dropped"))
    is_long = 2 * before > sums.whole_ns and all(window.steps for window in windows)
    if not is_long or before * sum(window.steps for window in windows) < 2 * count * sums.whole_ns:
        return []
    return [f"{counted(max(each.dropped for each in windows), windows[0].called)} before took {duration(before / len(windows))}"]


def _whole(verdict: Verdict) -> str:
    """Return of what the shares are: a step, the window, or with start-up from the first to the last call."""
    sums = verdict.sums
    if verdict.lead.cause in (START_UP, WIND_DOWN):
        whole = sums.whole_ns + sums.start_up_ns + sums.queued_ns + sums.wind_down_ns
        return f"Of {duration(whole / len(sums.trees))}{_each(sums)}, "
    steps = [tree.window.steps for tree in sums.trees]
    if all(steps):
        called = sums.trees[0].window.called
        mean = f"{duration(sums.whole_ns / sum(steps))}{_spread(sums)}{_each(sums)}"
        return f"{'An' if called[0] in 'aeiou' else 'A'} {called} takes {mean}: "
    if verdict.lead.cause == NOT_RECORDED and verdict.lead.of_ns is None:
        return f"Of {duration((sums.whole_ns + sums.queued_ns) / len(sums.trees))}{_each(sums)}, "
    return f"Of {duration(sums.whole_ns / len(sums.trees))}{_each(sums)}, "


def _spread(sums: Sums) -> str:
    """Return the shortest and the longest step, where one is far from their median: the mean is that of none then."""
    lengths = [end - start for tree in sums.trees for start, end in pairwise(tree.window.bounds)]
    return f" ({duration(min(lengths))} to {duration(max(lengths))})" if is_far(lengths) else ""


def _each(sums: Sums) -> str:
    """Return on how many ranks or GPUs the whole is a mean, or how many processes share the one."""
    count = len(sums.trees)
    ranks = {tree.rank for tree in sums.trees} - {None}
    if count == 1:
        processes = sums.trees[0].processes
        return f" of {processes} processes on one GPU" if processes > 1 else ""
    return f" on {count} ranks" if len(ranks) == count else f" on {len({tree.device_id for tree in sums.trees})} GPUs"


def _amount(verdict: Verdict, part: TimeShare) -> str:
    """Return a share and the time, of all steps and ranks: '56.2 % (492.9 ms in 5 steps)'."""
    pct = part.share_pct
    steps = sum(tree.window.steps for tree in verdict.sums.trees)
    several = f" in {steps} {verdict.sums.trees[0].window.called}s" if steps > 1 else _over(verdict.sums)
    return duration(part.ns) if pct is None else f"{share(pct)} ({duration(part.ns)}{several}{_uneven(verdict.sums, part)})"


def _over(sums: Sums) -> str:
    """Return that a time is a sum, where what stands before it is a mean."""
    return " over all" if len(sums.trees) > 1 else ""


def _uneven(sums: Sums, part: TimeShare) -> str:
    """Return the least and the largest share of a branch, where GPUs or ranks differ so much that the mean is that of none."""
    least, most = spread_of(sums, part.branch) if part.branch in sums.branches else (0.0, 0.0)
    return f"; {least:.1f} to {share(most)} each" if most - least > _APART_POINTS else ""


def _part(verdict: Verdict, part: TimeShare, first: bool) -> str:
    sums = verdict.sums
    how = _amount(verdict, part) if first or part.of_ns is None else share(part.share_pct)
    if part.cause in (START_UP, WIND_DOWN):
        where = "before" if part.cause == START_UP else "after"
        causes = sums.leaves[part.cause]
        leaf = outside(causes[0], is_named=first or len(verdict.beside) < 2) if causes else ""
        leaf += f": {duration(causes[0].ns)}" if leaf and 20 * causes[0].ns < 19 * part.ns else ""
        of = " of the capture" if part.cause == START_UP and causes and not is_of_process(sums, causes[0]) else ""
        return f"{part.cause}{of} {'takes ' if first else ''}{how}{'' if first else f' {where}'}{f' ({leaf})' if leaf else ''}"
    if part.cause == NOT_RECORDED:
        queued = " (launched before the capture)" if part.of_ns is None else ""
        return f"{how} was not recorded{queued}"
    if part.cause == COMPUTING:
        return f"computing {'takes ' if first else ''}{how}{kernels(sums, part, first)}"
    if part.cause == COPIES:
        return f"copies {'take ' if first else ''}{how}{_copies(sums.pieces[COPIES], first)}"
    if part.cause == LATE and verdict.waiting:
        return _late(verdict, first)
    if part.branch == COMMUNICATION:
        return f"exposed communication {'takes ' if first else ''}{how}{_collective(sums.pieces[COMMUNICATION])}"
    if part.cause == INPUT:
        return _input(verdict, part, first)
    return _host(verdict, part, how, first)


def _input(verdict: Verdict, part: TimeShare, first: bool) -> str:
    of_loader = TimeShare(INPUT, verdict.sums.loader_ns, part.of_ns, IDLE)
    amount = _amount(verdict, of_loader) if first else share(of_loader.share_pct)
    who = "the GPUs wait" if len(verdict.sums.trees) > 1 else "the GPU waits"
    return f"{who if first else 'waiting'} for the data loader {amount}"


def _host(verdict: Verdict, part: TimeShare, how: str, first: bool) -> str:
    leaves = verdict.sums.leaves[IDLE]
    leaf = leaves[0] if leaves else None
    who = "the GPUs idle" if len(verdict.sums.trees) > 1 else "the GPU idles"
    if leaf is None:
        return f"{who} {how}" if first else f"idle {how}"
    few = _few(leaf) if len(verdict.beside) < 2 else ""
    cause = f"{during(leaf)}{few}"
    return f"{who} {how}, {_mostly(leaf, part.ns)}{cause}" if first else f"idle {how}, {_mostly(leaf, part.ns)}{cause}"


def _mostly(leaf: Leaf, whole: int) -> str:
    return f"{share(100 * leaf.ns / whole)} of it " if 2 * leaf.ns < whole else "mostly " if 20 * leaf.ns < 19 * whole else ""


def _few(leaf: Leaf) -> str:
    """Return how few gaps hold half of a cause."""
    if not leaf.few or 1 < leaf.gaps <= leaf.few:
        return ""
    return f", {duration(leaf.few_ns)} in {'one gap' if leaf.few == 1 else f'{leaf.few} gaps'}"


def _copies(pieces: list[BusyItem], first: bool) -> str:
    if not pieces:
        return ""
    top = pieces[0]
    if not first:
        return f" ({' '.join(filter(None, (top.memory, top.key)))})"
    memory = f", {top.memory} memory" if top.memory in ("pageable", "pinned") else ""
    second = next((piece for piece in pieces if piece.key != top.key and 3 * piece.ns > top.ns), None)
    also = f", {_DIRECTIONS.get(second.key, second.key)}" if second else ""
    return f" ({_DIRECTIONS.get(top.key, top.key)}{also}{memory}{issued_by(top.issued, top.ns)})"


def _collective(pieces: list[BusyItem]) -> str:
    """Return what communication is: for whom its largest kernel waits, where that is most of it, else the kernel."""
    if not pieces:
        return ""
    waits = pieces[0].awaited
    return f" ({f'waiting for {waits[0][0]}' if waits and 2 * waits[0][1] >= pieces[0].ns else short(pieces[0].name)})"


def _late(verdict: Verdict, first: bool) -> str:
    waiting = verdict.waiting
    if waiting is None:
        return ""
    whole = verdict.sums.whole_ns
    late_ranks = f"late rank{'s' * (len(waiting.late) > 1)} {_ranks(waiting.late)}{' in MPI' * waiting.in_mpi}"
    amount = share(100 * waiting.for_late_ns / whole)
    won = f"on time {'they' if len(waiting.late) > 1 else 'it'} would save {duration(waiting.winnable_ns)}"
    if not first:
        return f"waiting for {late_ranks} {amount}"
    return f"waiting for {late_ranks} takes {amount} ({duration(waiting.for_late_ns)}{_over(verdict.sums)}); {won}"


def _ranks(ranks: Iterable[int]) -> str:
    ordered = sorted(ranks)
    if len(ordered) > 4:
        return spans(map(str, ordered))
    *before, last = map(str, ordered)
    return f"{', '.join(before)} and {last}" if before else last


def _what_is_missing(verdict: Verdict) -> str:
    """Return a second sentence where the capture does not show what the job does."""
    if verdict.cause == NOT_RECORDED:
        return " Launched work ran that the capture lacks: record again, over more steps."
    of = verdict.sums.leaves.get(IDLE if verdict.lead.branch == IDLE else verdict.lead.cause, [])
    if verdict.cause in (HOST, START_UP) and of and of[0].cause == "recording graphs":
        return " This capture records graphs; it does not run the job."
    if verdict.cause == COMPUTING and 2 * sum(tree.graphs_ns for tree in verdict.sums.trees) > verdict.lead.ns:
        return " Record with --cuda-graph-trace=node to see their kernels."
    return ""


def tree_of(trees: Iterable[Tree]) -> str:
    """Return what a tree is of."""
    grown = list(trees)
    steps = sum(tree.window.steps for tree in grown)
    return counted(steps, f"steady {grown[0].window.called}") if steps else "first to last GPU work"


def first(found: RunJudgement) -> str:
    """Return the verdict on a run."""
    if found.counters:
        return measured(found.counters)
    if found.verdict:
        return sentence(found.verdict) + _blocking(found)
    return not_judged(found)


def _blocking(found: RunJudgement) -> str:
    """Return that launches wait for their kernels, where the host's time leads or stands beside what does."""
    verdict = found.verdict
    causes = {part.cause for part in (verdict.lead, *verdict.beside)} if verdict else set()
    is_it = HOST in causes and any(each.code == BLOCKING for each in found.conditions)
    return " Each launch lasts as long as its kernel (CUDA_LAUNCH_BLOCKING)." if is_it else ""
