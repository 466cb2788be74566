"""What is worth most beside the verdict: the leaves of the trees that can be acted upon, the largest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.counters import SM, Counters, Measured
from nsightlens.diagnosis.exchanges import SlowLink
from nsightlens.diagnosis.idle import Leaf, alike
from nsightlens.diagnosis.issuers import issuer
from nsightlens.diagnosis.os_calls import MESSAGES, PROGRAMS, READS, SLEEPS, THREADS, by_sort
from nsightlens.diagnosis.queue_drains import ALLOCATES
from nsightlens.diagnosis.timeline import LONG_NS, OF_LAUNCHES
from nsightlens.diagnosis.verdict import COMMUNICATION, COMPUTING, COPIES, IDLE, START_UP, Sums, Verdict, sums_of

_WORTH_PCT = 2
"""Share of the window from which on a leaf is a finding."""
_MOST_PCT = 95
"""Share from which on who issues something is not said to issue most of it."""
_TWO = 2
"""Who is named of those that issue the same."""
_LARGE_PCT = 30
_SMALL_PCT = 50
OF_CALLS, _CALLS = ("API calls", "waiting"), 3
"""Leaves of idle time whose calls are findings of their own, and how many of them."""
_OS_ACTIONS = {READS: "read", SLEEPS: "sleep", THREADS: "awaited", MESSAGES: "awaited", PROGRAMS: "awaited"}
"""What cures calls of the operating system, by what they are for."""
_ONCE = ("first use", "context creation", "compiling", "recording graphs")
"""Causes of start-up that come once in a process, whenever the capture began."""
_HIDDEN_TIMES = 4
"""Copies of which kernels hide a quarter of what is exposed, or more, have a stream of their own."""
_FIRST_TF32 = 8.0
"""Compute capability from which on tensor cores take TF32."""


@dataclass(frozen=True, slots=True)
class Issuers:
    """Who issues half of something: an operator, range or module, or two with and; '' where more do. most: all but a little."""

    names: str = ""
    most: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that can be acted upon: what it is about, its ns in all trees, and which action fits (a key of words.ACTIONS)."""

    cause: str
    subject: str
    ns: int
    action: str
    winnable_ns: int | None = None
    others: int = 0
    """How many more it is about than the subject."""
    owed_ns: int = 0
    """Of it, idle time behind calls that wait, in which the host launches what it could have launched before
    (queue_drains.py)."""
    blocks: int = 0
    """Of the largest grid, where a kernel has too few; sms: of the GPU."""
    sms: int = 0
    issuer: Issuers = Issuers()
    """Who issues the calls or the work that hold half of it."""
    few: int = 0
    """1 to 3 gaps that hold half of it; few_ns: how much."""
    few_ns: int = 0
    sampled: str = ""
    """Where CPU samples found the host meanwhile."""
    os_calls: str = ""
    """What the calls of the operating system that it is about are for (os_calls.py)."""
    ranks: tuple[int, ...] = ()
    """Those that are late, ascending; the subject names them."""
    units: str = "SMs"
    """What the GPU's maker calls what sms counts."""
    link: SlowLink | None = None
    """Where large messages use less than half of their link."""


def findings(verdict: Verdict) -> list[Finding]:
    """Return all findings of a run: those of which it is known what curing them wins by that, the others by their size."""
    whole_ns = verdict.sums.whole_ns
    worthwhile = [finding for finding in _all(verdict) if 100 * finding.ns >= _WORTH_PCT * whole_ns]
    worthwhile.sort(key=lambda finding: (-_worth(verdict, finding), finding.winnable_ns is None, finding.cause, finding.subject))
    return worthwhile


def issuer_of(issued: Iterable[tuple[str, int]], ns: int) -> Issuers:
    """Return who issues half of it, or the two that do."""
    sums: dict[str, int] = defaultdict(int)
    for name, amount in issued:
        sums[alike(issuer(name))] += amount
    named = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:_TWO]
    for count in range(1, len(named) + 1):
        theirs = sum(amount for _, amount in named[:count])
        if 2 * theirs >= ns > 0:
            return Issuers(" and ".join(name for name, _ in named[:count]), 100 * theirs >= _MOST_PCT * ns)
    return Issuers()


def _worth(verdict: Verdict, finding: Finding) -> int:
    """Return what a finding is worth, summed over the trees, as the times of leaves are."""
    return finding.ns if finding.winnable_ns is None else finding.winnable_ns * len(verdict.sums.trees)


def _all(verdict: Verdict) -> Iterator[Finding]:
    sums = verdict.sums
    yield from _rank_findings(verdict)
    for leaf in sums.leaves[IDLE]:
        yield from _idle_findings(verdict, leaf)
    yield from _launch_findings(sums)
    yield from _compute_findings(sums)
    for piece in sums.pieces[COPIES]:
        yield Finding(COPIES, piece.key, piece.ns, _copy_action(piece, sums.branches[COMPUTING]),
                      issuer=issuer_of(piece.issued, piece.ns))
    if 2 * sums.start_up_ns > max(sums.branches.values()):
        for leaf in sums.leaves[START_UP][:1]:
            name = ", ".join(name for name, _ in leaf.main) or (leaf.sampled.where if leaf.sampled else "")
            ns = sum(ns for _, ns in leaf.main) or leaf.ns
            action = "context" if leaf.cause == "context creation" else "start-up" if is_of_process(sums, leaf) else "before"
            yield Finding(START_UP, name or leaf.cause, ns, action)


def is_of_process(sums: Sums, leaf: Leaf) -> bool:
    """Return whether a cause of start-up comes with the start of a process, not of a capture that began in mid-run."""
    return leaf.cause in _ONCE or any(tree.start_up.begins for tree in sums.trees)


def _copy_action(piece: BusyItem, computing_ns: int) -> str:
    """Return what cures copies: computing hides no more of them than it takes itself, and what it hides has a stream already."""
    if "migration" in piece.key:
        return "migrate"
    if piece.key in ("DtoD", "memset"):
        return "in place"
    has_room = piece.ns < computing_ns - piece.hidden_ns
    if piece.memory == "pageable":
        return "pin" if has_room else "pin and stay"
    if piece.ns < _HIDDEN_TIMES * piece.hidden_ns:
        return "earlier" if has_room else "stay"
    return "overlap copies" if has_room else "stay"


def _rank_findings(verdict: Verdict) -> Iterator[Finding]:
    waiting = verdict.waiting
    if waiting and waiting.late:
        late = tuple(sorted(waiting.late))
        yield Finding("late rank", ", ".join(map(str, late)), waiting.for_late_ns, "late", waiting.winnable_ns, ranks=late)
    exposed = verdict.sums.branches[COMMUNICATION]
    other_ns = exposed - (waiting.for_late_ns if waiting and waiting.late and not waiting.in_mpi else 0)
    pieces = verdict.sums.pieces[COMMUNICATION]
    for whom, ns in sums_of(each for piece in pieces for each in piece.awaited):
        yield Finding("other end", str(whom), ns, "stages" if whom.kind == "stage" else "late")
        other_ns -= ns
    if other_ns > 0 and pieces:
        name = pieces[0].name if 2 * pieces[0].ns >= exposed else ""
        yield Finding(COMMUNICATION, name, other_ns, "link" if verdict.slow_link else "overlap", link=verdict.slow_link)


def _idle_findings(verdict: Verdict, leaf: Leaf) -> Iterator[Finding]:
    name = next((name for name, _ in leaf.names if name), "")
    if leaf.cause == "data loader":
        yield Finding("data loader", name, leaf.ns, "workers" if "SingleProcess" in name else "prefetch")
    elif leaf.cause in OF_CALLS:
        yield from _call_findings(verdict.sums, leaf)
    elif leaf.cause in ("first use", "compiling", "recording graphs"):
        yield Finding(leaf.cause, name, leaf.ns, "warm")
    elif leaf.cause == "pause":
        yield Finding(leaf.cause, name, leaf.ns, "pause")
    elif leaf.cause == "profiler":
        names = {name for name, _ in leaf.names}
        behind = sum(part.ns for part in verdict.sums.owed if part.to in names)
        yield Finding(leaf.cause, name, leaf.ns + behind, "less tracing", owed_ns=behind)
    elif leaf.cause in ("ranges", "MPI"):
        several = len({rank for tree in verdict.sums.trees for rank in tree.ranks}) > 1
        action = "look" if leaf.cause == "ranges" else "last" if several else "nonblocking"
        for_late = verdict.waiting.for_late_ns if leaf.cause == "MPI" and verdict.waiting and verdict.waiting.in_mpi else 0
        main, ns = _main_part(verdict.sums, leaf)
        if for_late and len(leaf.names) > 1:  # of which calls it is part is not known
            main, ns = "", leaf.ns - _owed(verdict.sums, leaf.cause)
        yield Finding(leaf.cause, main, ns - for_late, action, sampled=leaf.sampled.where if leaf.sampled else "")
    elif leaf.cause == "OS calls":
        for sort, calls in by_sort(leaf.names):
            subject = ", ".join(call for call, _ in calls[:_TWO])
            yield Finding(leaf.cause, subject, sum(ns for _, ns in calls), _OS_ACTIONS.get(sort, "host"), os_calls=sort,
                          others=len(calls[_TWO:]))
    elif leaf.cause == "another GPU":
        least, most = spread_of(verdict.sums, COMPUTING)
        yield Finding(leaf.cause, "", leaf.ns, "uneven" if most > _TWO * least else "turns")
    elif leaf.cause == "no launches":
        pytorch = any(tree.tool == "kineto" for tree in verdict.sums.trees)
        yield Finding(leaf.cause, "", leaf.ns, "record host" if pytorch else "record calls")
    elif leaf.cause == "unknown":
        yield _code_finding(verdict.sums, leaf, leaf.ns - _owed(verdict.sums, leaf.cause))


def _code_finding(sums: Sums, leaf: Leaf, ns: int) -> Finding:
    """Return idle time in which the host was in no recorded call, by what CPU samples say of it.

    nsys takes these; the PyTorch profiler records the stacks of Python instead.
    """
    if leaf.sampled is None and any(tree.tool == "kineto" for tree in sums.trees):
        return Finding("host code", "", ns, "stacks" if any(tree.stacks for tree in sums.trees) else "record stacks")
    if leaf.sampled is None:
        return Finding("host code", "", ns, "sample")
    if leaf.sampled.where and leaf.sampled.is_profiler:
        return Finding("profiler", leaf.sampled.where, ns, "less tracing")
    if leaf.sampled.where:
        return Finding("sampled code", leaf.sampled.where, ns, "host")
    return Finding("host code", "", ns, "off CPU" if leaf.sampled.is_off_cpu else "mark")


def _main_part(sums: Sums, leaf: Leaf) -> tuple[str, int]:
    """Return the names that hold half of a leaf, with their time; '' with all of its time where none do. Without what is owed."""
    names = {name for name, _ in leaf.main}
    owed = sum(part.ns for part in sums.owed if part.cause == leaf.cause and (not names or part.name in names))
    return ", ".join(name for name, _ in leaf.main), sum(ns for _, ns in leaf.main or leaf.names) - owed


def _owed(sums: Sums, *causes: str) -> int:
    """Return what of leaves of idle time is owed to calls that emptied the queue."""
    return sum(part.ns for part in sums.owed if part.cause in causes)


def _call_findings(sums: Sums, leaf: Leaf) -> Iterator[Finding]:
    """Yield the calls in which the host was, with what is owed to them, and without what is owed to others."""
    cures: dict[tuple[str, str], list[tuple[str, int, int]]] = defaultdict(list)
    for call, ns in leaf.names:
        owed = sum(part.ns for part in sums.owed if part.to == call)
        action = "wait" if leaf.cause == "waiting" else _call_action(sums, call, empties=2 * owed > ns)
        own_ns = ns - sum(part.ns for part in sums.owed if (part.cause, part.name) == (leaf.cause, call))
        cures[action, "" if action == "allocate" else call].append((call, own_ns + owed, owed))  # reused buffers cure all calls
    findings_of_calls = []
    for (action, _), those in cures.items():
        ns, owed = sum(ns for _, ns, _ in those), sum(owed for *_, owed in those)
        if 100 * owed < _WORTH_PCT * ns:  # not worth a word: the finding is of the calls alone
            ns, owed = ns - owed, 0
        findings_of_calls.append(Finding(leaf.cause, ", ".join(call for call, *_ in those[:_TWO]), ns, action, owed_ns=owed,
                                         others=len(those[_TWO:]), issuer=_call_issuers(sums, leaf, those)))
    findings_of_calls.sort(key=lambda finding: -finding.ns)
    yield from (_once(finding, leaf) if not place else finding for place, finding in enumerate(findings_of_calls[:_CALLS]))


def _once(finding: Finding, leaf: Leaf) -> Finding:
    """Return a finding with the few gaps that hold half of it: they are no matter of each call, and such are not advised."""
    if leaf.few_ns < LONG_NS or 2 * leaf.few_ns < finding.ns or leaf.few_ns > finding.ns:
        return finding
    action = "wait" if finding.action == "wait" else "once"
    return replace(finding, few=leaf.few, few_ns=leaf.few_ns, action=action)


def _call_issuers(sums: Sums, leaf: Leaf, those: list[tuple[str, int, int]]) -> Issuers:
    """Return who issues calls, by their own time and what is owed to them."""
    calls = {call for call, *_ in those}
    issued = [(by, ns) for call, by, ns in leaf.issued if call in calls]
    issued += [(part.by, part.ns) for part in sums.owed if part.to in calls and part.by]
    return issuer_of(issued, sum(ns for _, ns, _ in those))


def _launch_findings(sums: Sums) -> Iterator[Finding]:
    """Yield what fewer and larger kernels would cure: the launches, what the host does for each, and the gaps between kernels."""
    parts = []
    for leaf in (leaf for leaf in sums.leaves[IDLE] if leaf.cause in OF_LAUNCHES):
        whole = Finding(leaf.cause, _main_part(sums, leaf)[0], leaf.ns - _owed(sums, leaf.cause), "")
        alone = _once(whole, leaf)
        if alone is whole:
            parts.append(leaf)
        else:
            yield alone
    if parts:
        pytorch = any(tree.tool == "kineto" for tree in sums.trees)
        ns = sum(leaf.ns for leaf in parts) - _owed(sums, *(leaf.cause for leaf in parts))
        yield Finding("launching", "", ns, "compile" if pytorch else "graphs")


def _call_action(sums: Sums, name: str, *, empties: bool) -> str:
    """Return what cures a call. empties: whether most of its time is idle time behind it, as it emptied the queue."""
    if ALLOCATES.search(name):
        return "allocate"
    if empties:
        return "wait"
    if "Memcpy" not in name:
        return "call"
    if "Async" in name:
        return "merge copies"
    return "copy" if any(piece.memory == "pageable" for piece in sums.pieces[COPIES]) else "asynchronous"


def plain_ns(sums: Sums) -> int:
    """Return how long products and convolutions took that use no tensor cores, on GPUs that have some."""
    return sum(piece.ns for tree in sums.trees if tree.tensor_cores for piece in tree.computing if piece.plain)


def spread_of(sums: Sums, branch: str) -> tuple[float, float]:
    """Return the least and the largest share of a branch in the windows of trees, in percent."""
    shares = [100 * tree.lengths[branch] / tree.window.length for tree in sums.trees]
    return min(shares), max(shares)


def units_of(sums: Sums) -> str:
    """Return what the maker of the GPUs calls what runs their blocks."""
    return "CUs" if all(tree.vendor == "rocm" for tree in sums.trees) else "SMs"


def _fill_findings(sums: Sums) -> Iterator[Finding]:
    """Yield the kernel that fills less than half of the SMs for longest, over all trees."""
    alike: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for tree in sums.trees:
        if tree.low_fill and tree.sms:
            name, ns, blocks = tree.low_fill
            alike[name].append((ns, blocks, tree.sms))
    if alike:
        name, those = max(alike.items(), key=lambda item: (sum(ns for ns, *_ in item[1]), item[0]))
        yield Finding("low fill", name, sum(ns for ns, *_ in those), "more blocks",
                      blocks=max(blocks for _, blocks, _ in those), sms=min(sms for *_, sms in those),
                      units=units_of(sums))


def _compute_findings(sums: Sums) -> Iterator[Finding]:
    slowed = sum(tree.slowed_ns for tree in sums.trees)
    if slowed:
        yield Finding("clock", "", slowed, "clock")
    plain = plain_ns(sums)
    if plain:
        capable = [tree.capability for tree in sums.trees if tree.tensor_cores and tree.capability]
        issued = (each for tree in sums.trees if tree.tensor_cores for piece in tree.computing if piece.plain
                  for each in piece.issued)
        yield Finding("FP32", "", plain, "tf32" if capable and min(capable) >= _FIRST_TF32 else "amp",
                      issuer=issuer_of(issued, plain))
    fill = list(_fill_findings(sums))
    yield from fill
    faulting = [piece for tree in sums.trees for piece in tree.faulting]
    if faulting:
        top, others = max(faulting, key=lambda piece: piece.ns), len({piece.key for piece in faulting}) - 1
        what = next(tree.faults for tree in sums.trees if tree.faulting)
        yield Finding(what, top.name, sum(piece.ns for piece in faulting), "migrate", others=others)
    for piece in sums.pieces[COMPUTING][:1]:
        is_large = 100 * piece.ns >= _LARGE_PCT * sums.branches[COMPUTING]
        is_small = all(0 < 2 * piece.blocks < (tree.sms or 0) for tree in sums.trees)
        known = sum(each.ns for each in faulting if each.key == piece.key) + sum(each.ns for each in fill if is_small)
        is_unknown = is_large and 2 * known < piece.ns
        if is_unknown and piece.family != "graph" and not piece.plain and all(tree.vendor == "cuda" for tree in sums.trees):
            yield Finding(COMPUTING, piece.name, piece.ns, "measure", issuer=issuer_of(piece.issued, piece.ns))


_MEMORY = {"DRAM": "fewer bytes", "memory": "memory parts", "L2": "reuse", "L1/TEX": "wider loads", "LSU": "wider loads"}
_SMS = {"FP64": "single precision", SM: "parts"}
"""What to do about a unit that is at its peak."""
_RESOURCES = {"registers": "registers", "shared memory": "shared memory", "blocks": "larger blocks"}
"""What to use less of where it keeps warps few."""


def counter_findings(counters: Counters) -> list[Finding]:
    """Return the findings of a run that only ncu measured: what limits its kernels, and what its rules would win."""
    whole_ns = counters.timed_ns or 0
    alike: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for kernel in counters.kernels:
        if kernel.ns and 100 * kernel.ns >= _WORTH_PCT * whole_ns:
            for finding in _kernel_findings(kernel, kernel.ns):
                alike[finding.cause, finding.action].append(finding)
    merged = [replace(those[0], ns=sum(finding.ns for finding in those), others=len(those) - 1) for those in alike.values()]
    top, rule = counters.kernels[0], counters.rule
    if rule and top.ns:
        merged.append(Finding("ncu rule", rule.name, top.ns, "rule", round(rule.speedup_pct * top.ns / 100)))
    merged.sort(key=lambda finding: -(finding.ns if finding.winnable_ns is None else finding.winnable_ns))
    return merged


def _kernel_findings(kernel: Measured, ns: int) -> Iterator[Finding]:
    if kernel.is_plain:
        has_tf32 = kernel.capability is not None and kernel.capability >= _FIRST_TF32
        yield Finding("tensor cores", kernel.name, ns, "tf32 or fp16" if has_tf32 else "fp16")
    if kernel.limit == "small grid":
        yield Finding("low fill", kernel.name, ns, "more blocks")
    elif kernel.limit == "small blocks":
        yield Finding("small blocks", kernel.name, ns, "larger blocks")
    elif kernel.limit == "latency":
        yield Finding("latency", kernel.name, ns, _against_latency(kernel))
    elif not kernel.limit:
        yield Finding("not measured", kernel.name, ns, "collect")
    elif kernel.unit in _MEMORY:
        yield Finding("memory", kernel.name, ns, _MEMORY[kernel.unit])
    else:
        yield Finding("compute" if kernel.unit != SM else "SM", kernel.name, ns, _SMS.get(kernel.unit, "fewer instructions"))


def _against_latency(kernel: Measured) -> str:
    """Return what hides latency: by what warps wait for, else by what keeps them few."""
    if kernel.stall == "barrier":
        return "barriers"
    if kernel.occupancy_limit in _RESOURCES and kernel.figures.get("max_occupancy_pct", 100) <= _SMALL_PCT:
        return _RESOURCES[kernel.occupancy_limit]
    return "hide" if kernel.stall else "stalls"
