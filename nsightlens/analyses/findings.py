"""What deserves attention, and why: a row per process and rule that fires, in each run stragglers first, then the largest share.

Times are those of execution_summary: exclusive categories that sum to the steps (without steps, to the capture), so each
moment has one cause, and a GPU busy with copies is busy. Rules, each with its limit as a share of that time: straggler (5 %):
a rank that the others wait for in collectives (straggler), as a share of the time of all ranks, and what it does longer than
they do. slow_link (2 %): a process group whose collectives take longer than those of its peers (communicator_summary);
likewise. pipeline (10 %): pipeline stages wait for one another (pipeline_bubbles); likewise. communication (10 %): collectives
not hidden by other work, and host calls of NCCL or MPI while the GPU idles, without waits for stragglers and pipeline stages.
copies (10 %): copies not hidden by kernels. data_loader (5 %): the GPU idles while the host waits for input. api_call (10 %):
the GPU idles during calls of one function. tiny_kernels (10 %): the GPU idles until the launch of a kernel that is shorter
than the time between launches (at most 0.1 ms). host (20 %): the GPU idles, and no other rule explains it; ranges that hold
half of its gaps, and 1.5 times as much of them as of the time, are named. Rules of kernels count at most their time on the
critical path to the last GPU work. fusion (15 %): elementwise, normalization and reduction kernels that follow one another in
a stream, without the longest of each chain. tensor_cores (10 %): products and convolutions on CUDA cores, less the time that
the GPU's tensor cores would take by the datasheet. headroom (5 %): kernels below half of their roof, by headroom. Rules of the
capture: warm_up (5 %): first steps of 1.5 times the median or more, of at least four. clock (2 %): at least 80 % of a rank's
kernels take longer than on the median rank of three or more, or in the last third of its capture than in the first, by 5 % or
more. profiler (5 %): it held up threads (profiler_share), or steps take longer under it (profiler_overhead). capture: lost
events or missing ranks, which make shares and absences uncertain. memory, ddp_without_nccl and data_parallel are the
TensorBoard plugin's rules, from recommendations, which has its other rules unchanged; they and capture come last. A run in
which no rule fires has one row, nothing. A process without recorded GPU work has no row: whether its GPU idled is unknown.
@scope run
@topic steps
@requires execution_summary, memory_ops, _gpu_work, _idle_by_call, _waits, _plugin_rules, _collective_kernels
@requires _profile_executions, profiles
@requires _bounded_kernels, api_calls, devices, gpu_peaks, processes, ranges, step_breakdown, profiler_share, profiler_overhead
@requires kernels, _kernel_time, diagnostics, _process_groups, pipeline_bubbles
@optional headroom, idle_by_range
@assumes Each process has a GPU of its own: where several share one, the work of the others counts as idle time.
@assumes The limits are rules of thumb; no row means only that no limit is exceeded; headroom shows what kernels could gain.
@assumes The tool recorded all GPU work and the calls of the host; what it lost, and what it adds to calls, counts as idle.
@assumes Rules of single kernels (tiny_kernels, fusion, tensor_cores, headroom, clock) judge runs of at most 200,000 kernels.
@assumes A rank's delay is its lag behind the second last: two ranks that are late together hide each other (straggler).
@first rule, who, what, total_ns, share_pct
@column run           Run (one workload in one configuration).
@column tool          nsys or kineto. Never add them up: they saw the same work.
@column rule          The rule, by the names above, or nothing.
@column rank          Rank of the process; NULL where unknown, or for the run as a whole.
@column profile_id    Profile; NULL for a straggler, a process group and the run as a whole.
@column process_id    OS process, as above.
@column window_index  Capture window of the process, as above.
@column who           The rank, process group, process or GPU, as people call it; all ranks, or all, for the run as a whole.
@column subject       What it is about beside a process: the function, kernel, process group or profiler; NULL elsewhere.
@column what          What was seen.
@column evidence      Of a straggler: how it is late, as part of what; NULL elsewhere.
@column why           The likely cause, and what can be done.
@column total_ns      How long; NULL where the rule is not about time.
@column of_ns         The whole for share_pct: the steps or the capture of the process, or of all ranks.
@column share_pct     total_ns as a share of of_ns, to one decimal; for rules of the plugin their own figure.
@column limit_pct     Share above which the rule fires.
@column confidence    high, medium or low: whether the time was seen, or a gain is estimated; lower where the tool adds to it.
@column against       What speaks against it.
@column more          The command that shows more.
@column command       The same for programs: its name, then its words, then its options as --name=value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask, _capture_rules, _group_rules, _kernel_rules, communicator_summary, straggler
from nsightlens.analyses._advice import PLUGIN, of_call, of_launches
from nsightlens.analyses._finding import (
    NOBODY,
    SCHEMA,
    Key,
    Process,
    Row,
    against,
    exceeds,
    fired,
    key,
    lengths_of,
    of_run,
    pct,
    span,
    told,
    who,
)
from nsightlens.analyses._group_rules import Groups
from nsightlens.analyses.collective_match import Compared, compared
from nsightlens.columns.arrays import split
from nsightlens.terminal.command import Command

_FIRST, _LAST = ("straggler",), ("capture", *PLUGIN)
_PARTS = """
SELECT run, tool, rank, profile_id, process_id, window_index, steps_ns,
    map_from_entries(list((category, coalesce(total_ns, 0)))) AS parts
FROM execution_summary() GROUP BY ALL ORDER BY ALL
"""
_WORKED = "SELECT DISTINCT profile_id, process_id, window_index FROM _gpu_work ORDER BY ALL"
_COLLECTIVES = """
SELECT DISTINCT profile_id, process_id, window_index FROM kernels WHERE tool <> 'ncu' AND family = 'collective' ORDER BY ALL
"""
_COPIES = """
SELECT profile_id, process_id, window_index, coalesce(direction, kind) AS direction, sum(duration_ns)::BIGINT AS total_ns,
    sum(bytes)::BIGINT AS bytes,
    coalesce(sum(duration_ns) FILTER (source_memory = 'pageable' OR destination_memory = 'pageable'), 0)::BIGINT AS pageable_ns
FROM memory_ops
WHERE tool <> 'ncu' AND kind <> 'memset' AND duration_ns > 0 AND profile_id IN (SELECT unnest(?)) GROUP BY ALL ORDER BY ALL
"""
_CALLS = "SELECT * FROM _idle_by_call WHERE profile_id IN (SELECT unnest(?)) ORDER BY idle_ns DESC, name"
_BEFORE = """
WITH began AS (
    SELECT profile_id, process_id, window_index, min(start_ns) AS first_ns FROM _gpu_work
    WHERE profile_id IN (SELECT unnest(?)) GROUP BY ALL
)
SELECT b.profile_id, b.process_id, b.window_index, a.name,
    TRY_CAST(sum(least(a.start_ns + a.duration_ns, b.first_ns) - a.start_ns) AS BIGINT) AS before_ns
FROM began AS b JOIN api_calls AS a ON a.profile_id = b.profile_id AND a.process_id IS NOT DISTINCT FROM b.process_id
    AND a.window_index IS NOT DISTINCT FROM b.window_index AND a.start_ns < b.first_ns
GROUP BY ALL ORDER BY ALL
"""
_LAUNCHES = """
SELECT profile_id, process_id, window_index, sum(kernels)::BIGINT AS kernels, sum(total_ns)::BIGINT AS total_ns FROM _kernel_time
WHERE profile_id IN (SELECT unnest(?)) GROUP BY ALL ORDER BY ALL
"""
_WAITED = """
SELECT w.profile_id, w.process_id, w.window_index, w.name, string_agg(DISTINCT w.kind, ', ' ORDER BY w.kind) AS kinds
FROM _waits AS w WHERE w.profile_id IN (SELECT unnest(?)) AND w.name IS NOT NULL AND w.kind IN ('event', 'stream', 'context')
GROUP BY ALL
"""
_WITH_RANGES = """
SELECT 1 FROM ranges WHERE profile_id IN (SELECT unnest(?)) AND kind IN ('nvtx_push_pop', 'nvtx_start_end', 'annotation') LIMIT 1
"""
_RANGES = """
SELECT profile_id, process_id, name, idle_ns, gpu_idle_ns, inside_ns, ranges
FROM (
    SELECT *, min(device_id) OVER of_process = max(device_id) OVER of_process AS has_one_gpu FROM idle_by_range(alike := true)
    WHERE profile_id IN (SELECT unnest(?)) WINDOW of_process AS (PARTITION BY profile_id, process_id)
) WHERE has_one_gpu AND kind IN ('nvtx_push_pop', 'nvtx_start_end', 'annotation') AND 2 * idle_ns >= gpu_idle_ns
ORDER BY inside_ns, idle_ns DESC, name
"""
_LIFT = 1.5
"""By how much a range's share of the gaps must exceed its share of the time before it is said to explain them."""
_WAITED_FOR = {"event": "an event", "stream": "a stream", "context": "all work of the device"}
_OF_PLUGIN = f"""
SELECT * FROM _plugin_rules
WHERE rule IN ({", ".join(f"'{rule}'" for rule in PLUGIN)}) ORDER BY ALL
"""
_CAUSES: Mapping[str, Callable[[Process], int]] = {
    "its host is late and its GPU idles": lambda process: process.waits_for_host,
    "it waits for its data loader": lambda process: process.parts["data_loader"],
    "it computes longer, with more work or a slower GPU": lambda process: process.parts["kernel"],
    "it copies longer": lambda process: process.parts["memcpy"],
}
"""Why a rank is late, and the time of its process that says so; ns."""


def analyse(ask: Ask) -> pa.Table:
    """Return a row per finding; runs in the order of their names, and in a run the largest share first."""
    worked = {key(row) for row in ask(_WORKED, []).to_pylist()}
    processes = [Process(row, row["steps_ns"], dict(row["parts"])) for row in ask(_PARTS, []).to_pylist()
                 if row["steps_ns"] and key(row) in worked]
    few = _kernel_rules.few(ask, processes)
    crossing = _matched(ask, processes)
    groups = _group_rules.Groups(ask)
    late, waited = _stragglers(crossing, processes, groups)
    stages, bubbles = _group_rules.pipelines(ask, processes)
    rows = [*late, *_group_rules.slow_links(communicator_summary.judged(crossing), processes, groups), *stages,
            *_communication(ask, processes, waited, bubbles), *_copies(ask, processes),
            *_data_loader(processes), *_host(ask, processes, few), *_kernel_rules.rules(ask, few),
            *_capture_rules.rules(ask, processes, few), *_of_plugin(ask)]
    found = {(row["run"], row["tool"]) for row in rows if row["rule"] != "capture"}
    doubtful = {(row["run"], row["tool"]) for row in rows if row["rule"] == "capture"}
    rows += [_nothing(run, [process for process in processes if process.run == run], run in doubtful)
             for run in dict.fromkeys(process.run for process in processes) if run not in found]
    rows.sort(key=lambda row: (
        row["run"], row["tool"], row["rule"] in _LAST, row["rule"] not in _FIRST, -(row["share_pct"] or 0), row["rule"],
        row["rank"] is None, row["rank"] or 0, row["process_id"] or "", row["window_index"] or 0, row["who"], row["what"]))
    return pa.Table.from_pylist([told(row) for row in rows], schema=SCHEMA)


def _nothing(run: tuple[str, str], processes: Sequence[Process], is_doubtful: bool) -> Row:
    """Return that no rule fired, with what could be gained outside the kernels at most. is_doubtful: the capture has defects."""
    length = sum(process.length for process in processes)
    outside = length - sum(process.parts["kernel"] for process in processes)
    verdict = "no rule exceeds its limit" if is_doubtful else "nothing is worth doing: no rule exceeds its limit"
    whole = "all ranks" if len({process.row["rank"] for process in processes} - {None}) > 1 else "all"
    return of_run(run, "nothing", whole, verdict, outside, length)


def _matched(ask: Ask, processes: Iterable[Process]) -> list[Compared]:
    """Return the executions whose ranks are compared; none where no run has several ranks."""
    ranks: dict[tuple[str, str], set[int | None]] = defaultdict(set)
    for process in processes:
        ranks[process.row["run"], process.row["tool"]].add(process.row["rank"])
    return compared(ask) if any(len(those) > 1 for those in ranks.values()) else []


def _stragglers(
    matched: Sequence[Compared], processes: Sequence[Process], named: Groups,
) -> tuple[list[Row], Mapping[tuple[str, str, int | None], int]]:
    """Return the ranks that others wait for, and how long each rank of their runs waited."""
    lengths = lengths_of(processes)
    seen = straggler.judged(matched).to_pylist()
    groups = _groups(matched, named)
    late = [_late(row, lengths[row["run"], row["tool"]], groups.get((row["run"], row["tool"], row["rank"]), ""),
                  _cause(row, processes)) for row in seen if row["verdict"] == "straggler"]
    late = [row for row in late if row["share_pct"] is not None and row["share_pct"] > row["limit_pct"]]
    runs = {(row["run"], row["tool"]) for row in late}
    waited: dict[tuple[str, str, int | None], int] = defaultdict(int)
    for row in seen:
        if row["rank"] is not None and (row["run"], row["tool"]) in runs:
            waited[row["run"], row["tool"], row["rank"]] += row["wait_ns"] or 0
    return late, waited


def _late(row: Row, length: int, group: str, cause: str) -> Row:
    last = (f"it arrived last in {row['times_last']} of {row['collectives']} matched collectives{group}, which would have begun "
            f"{span(row['caused_delay_ns'])} earlier in total without it")
    later = row["propagated_wait_ns"]
    on = f"; {span(later)} of that wait is knock-on delay in later collectives" if later else ""
    evidence = f"{last}{cause}{on}"
    return of_run((row["run"], row["tool"]), "straggler", f"rank {row['rank']}", f"the other ranks wait for it: {evidence}",
                  row["others_wait_ns"], length) | {"rank": row["rank"], "evidence": evidence}


def _groups(matched: Sequence[Compared], named: Groups) -> dict[tuple[str, str, int], str]:
    """Return of each rank the process group that it is late in by itself for longest, where a run names several."""
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    late: dict[tuple[str, str, int, str], list[int]] = defaultdict(list)
    for found in matched:
        where = found.execution.run, found.execution.tool
        own_ns = found.arrivals.lag - found.inherited - found.undecided
        for place, calls in split(np.arange(len(found.group)), found.group):
            group = found.execution.matched[place].group or ""
            names[where].add(group)
            last = calls[found.arrivals.is_named[calls]]
            for rank, mine in split(last, found.last_rank[last]):
                late[*where, rank, group] += own_ns[mine].tolist()
    several = {where for where, those in names.items() if len(those) > 1}
    rows = sorted((sum(own), group, run, tool, rank, len(own)) for (run, tool, rank, group), own in late.items())
    said: dict[tuple[str, str, int], str] = {}
    for _, group, run, tool, rank, times in rows:
        if group and (run, tool) in several:
            name = named.name({"run": run, "tool": tool, "group_name": group})
            said[run, tool, rank] = f", {times} time{'s' * (times > 1)} in {name}"
    return said


def _cause(row: Row, processes: Sequence[Process]) -> str:
    """Return what a late rank does for longer than the median of the others, if that is half of the delay it caused."""
    those = [process for process in processes if process.run == (row["run"], row["tool"])]
    mine = [process for process in those if process.row["rank"] == row["rank"]]
    others = [process for process in those if process.row["rank"] != row["rank"]]
    if not mine or not others:
        return ""
    more = {name: sum(map(spent, mine)) - median(map(spent, others)) for name, spent in _CAUSES.items()}
    most = max(more, key=lambda name: more[name])
    return f"; {most}: {span(more[most])} more than the other ranks' median" if 2 * more[most] >= row["caused_delay_ns"] else ""


def _communication(
    ask: Ask, processes: list[Process], waited: Mapping[tuple[str, str, int | None], int], bubbles: Mapping[Key, int],
) -> Iterator[Row]:
    with_kernels = {key(row) for row in ask(_COLLECTIVES, []).to_pylist()}
    for process in processes:
        exposed = process.parts["communication"]
        waits = {"stragglers": waited.get((process.row["run"], process.row["tool"], process.row["rank"]), 0),
                 "pipeline stages": bubbles.get(process.key, 0)}
        left_out = " and ".join(name for name, ns in waits.items() if ns)
        calls_only = process.row["tool"] == "nsys" and process.key not in with_kernels
        for found in fired(process, "communication", "communication not hidden by other work"
                           + (f", waiting for {left_out} left out" if left_out else ""), max(exposed - sum(waits.values()), 0)):
            more = "idle_by_range" if calls_only else "distributed_overview" if waits["stragglers"] else ""
            yield found | ({"command": Command("show", (more,))} if more else {})


def _copies(ask: Ask, processes: list[Process]) -> Iterator[Row]:
    busy = [p for p in processes if exceeds(p, "copies", p.parts["memcpy"])]
    copies: dict[Key, list[Row]] = defaultdict(list)
    for row in ask(_COPIES, [sorted({p.row["profile_id"] for p in busy})]).to_pylist() if busy else ():
        copies[key(row)].append(row)
    for process in busy:
        kinds = sorted(copies[process.key], key=lambda row: (-row["total_ns"], row["direction"]))
        total = sum(row["total_ns"] for row in kinds)
        named = "; ".join(_copied(row, total) for row in kinds[:2] if 100 * row["total_ns"] >= total)
        yield from fired(process, "copies", f"copies not hidden by kernels ({named})", process.parts["memcpy"])


def _copied(row: Row, total: int) -> str:
    """Return one direction of copies: its share, bandwidth, and whether most of it is from or to pageable memory."""
    rate = f", {row['bytes'] / row['total_ns']:.1f} GB/s" if row["bytes"] else ""
    return f"{row['direction']} {pct(row['total_ns'], total):.0f} %{rate}" + (
        ", pageable memory" if 2 * row["pageable_ns"] > row["total_ns"] else "")


def _data_loader(processes: list[Process]) -> Iterator[Row]:
    for process in processes:
        yield from fired(process, "data_loader", "the GPU idles while the host waits for the data loader",
                          process.parts["data_loader"])


def _host(ask: Ask, processes: list[Process], few: list[Process]) -> Iterator[Row]:
    """Yield what the host did while the GPU idled: one function of the API, launches of tiny kernels, else the rest."""
    calling = [p for p in processes if exceeds(p, "api_call", p.parts["runtime"])]
    profiles = [sorted({p.row["profile_id"] for p in calling})]
    calls: dict[Key, list[Row]] = defaultdict(list)
    for row in ask(_CALLS, profiles).to_pylist() if calling else ():
        calls[key(row)].append(row)
    waited = {(key(row), row["name"]): row["kinds"] for row in (ask(_WAITED, profiles).to_pylist() if calling else ())}
    before = {(key(row), row["name"]): row["before_ns"] for row in (ask(_BEFORE, profiles).to_pylist() if calling else ())}
    late = [p for p in processes if exceeds(p, "host", p.waits_for_host)]
    launches, ranges = _launches(ask, late), _ranges(ask, late)
    tiny = _kernel_rules.tiny(ask, [p for p in few if exceeds(p, "tiny_kernels", p.waits_for_host)])
    for process in processes:
        slow = tiny.get(process.key)
        between = slow["idle_ns"] if slow and exceeds(process, "tiny_kernels", slow["idle_ns"]) else 0
        named = 0
        for row in calls[process.key]:
            idle = min(row["idle_ns"], process.parts["runtime"] - named)
            is_tiny = "LaunchKernel" in row["name"] and idle <= between  # the time until the next launch holds that of its call
            if not is_tiny and exceeds(process, "api_call", idle):
                named += idle
                at = process.key, row["name"]
                yield from _call(process, row, idle, waited.get(at, ""), min(before.get(at) or 0, idle))
        rest = {"operators": process.parts["cpu_exec"], "API calls": process.parts["runtime"] - named,
                "other code": process.parts["other"]}
        left, between = sum(rest.values()), min(between, sum(rest.values()))
        if slow and exceeds(process, "tiny_kernels", between):
            left -= between
            yield from _kernel_rules.tiny_kernels(process, slow, between)
        most = max(rest, key=lambda name: rest[name])
        figures, advice = of_launches(launches.get(process.key), left)
        within = ranges.get(process.key, "")
        shown = {"command": Command("show", ("idle_by_range", "alike=true")) if within else _operators(process)}
        for found in fired(process, "host", f"the GPU idles while the host is in {_split(rest)}{figures}{within}", left):
            yield found | advice | (shown if within or most == "operators" else {})


def _split(rest: Mapping[str, int]) -> str:
    """Return times by what the host was in as 'a (70 %), b (20 %) or c (10 %)', the longest first; less than 1 % is left out."""
    whole = sum(rest.values())
    shares = {name: pct(ns, whole) for name, ns in sorted(rest.items(), key=lambda part: -part[1])}
    first, *others = [name for number, (name, share) in enumerate(shares.items()) if not number or share >= 1]
    if not others:
        return first
    *before, last = [f"{name} ({shares[name]:.0f} %)" for name in (first, *others)]
    return f"{', '.join(before)} or {last}"


def _launches(ask: Ask, processes: Sequence[Process]) -> dict[Key, Row]:
    """Return how many kernels each process ran, and how long they took together."""
    profiles = sorted({process.row["profile_id"] for process in processes})
    return {key(row): row for row in ask(_LAUNCHES, [profiles]).to_pylist()} if profiles else {}


def _ranges(ask: Ask, processes: Sequence[Process]) -> dict[Key, str]:
    """Return of each process the shortest NVTX ranges or annotations of a name that hold half of the gaps of its GPU or more.

    Nothing of a process with several GPUs or capture windows: the view has one figure for all windows.
    """
    windows = Counter(process.key[:2] for process in processes)
    lengths = {process.key[:2]: process.length for process in processes if windows[process.key[:2]] == 1}
    said: dict[tuple[object, ...], str] = {}
    profiles = sorted({profile for profile, _ in lengths})
    named = profiles and _kernel_rules.are_few_in_all(ask) and ask(_WITH_RANGES, [profiles]).num_rows
    for row in ask(_RANGES, [profiles]).to_pylist() if named else []:
        at = row["profile_id"], row["process_id"]
        if row["idle_ns"] * lengths.get(at, 0) >= _LIFT * row["inside_ns"] * row["gpu_idle_ns"]:
            ranges = "the range" if row["ranges"] == 1 else f"{row['ranges']:,} ranges"
            said.setdefault(at, f"; {pct(row['idle_ns'], row['gpu_idle_ns']):.1f} % of its gaps lie in {ranges} {row['name']}")
    return {process.key: said[process.key[:2]] for process in processes if process.key[:2] in said}


def _operators(process: Process) -> Command:
    """Return the command that shows in which operators the host was, the longest first."""
    of_rank = () if process.row["rank"] is None else (("--rank", str(process.row["rank"])),)
    return Command("show", ("critical_path", *of_rank, ("--sort", "-duration_ns")))


def _call(process: Process, row: Row, idle: int, kinds: str, before: int) -> Iterator[Row]:
    """Yield that the GPU idles during the calls of one function. kinds: what the host waits for in them, where known. before:
    the part of the idle time that lies before the first work on the GPU; ns."""
    counted = f"{row['calls']:,} calls, the longest" if row["calls"] > 1 else "one call of"
    awaited = f", where the host waits for {_WAITED_FOR[kinds]}" if kinds in _WAITED_FOR else ""
    first = f"; {span(before)} before the first work on the GPU" if 2 * before > idle else ""
    what = f"the GPU idles during {row['name']} ({counted} {span(row['longest_ns'])}{first}){awaited}"
    for found in fired(process, "api_call", what, idle):
        texts = of_call(row["name"])
        yield found | texts | {"subject": row["name"], "against": against(process, "api_call", texts["against"])}


def _of_plugin(ask: Ask) -> Iterator[Row]:
    for row in ask(_OF_PLUGIN, []).to_pylist():
        advice = PLUGIN[row["rule"]]
        its = {name: row[name] for name in ("run", "tool", "rule", "rank", "profile_id", "process_id", "window_index")}
        yield NOBODY | its | {
            "who": row["subject"] or who(row), "what": advice.what, "why": row["advice"], "total_ns": None, "of_ns": None,
            "share_pct": row["value_pct"], "limit_pct": advice.limit_pct or row["limit_pct"], "confidence": advice.confidence,
            "against": advice.against, "command": advice.command,
        }
