"""What is worth a look, with its cause: a row per rule that fires and process; of a run stragglers first, then the largest share.

Time is that of execution_summary: exclusive categories that sum to the steps (without steps, to what was captured), so that each
moment has one cause, and a GPU that is busy with copies is busy. Rules, each with its limit as a share of that time:
straggler (5 %): a rank that the others wait for in collectives, by straggler; share of the time of all ranks.
slow_link (2 %): a process group whose collectives take longer than those of its peers, by communicator_summary; likewise.
communication (10 %): collectives that no other work hides, and host calls of NCCL or MPI while the GPU idles, without what the
rank waited for stragglers. copies (10 %): copies that no kernel hides. data_loader (5 %): the GPU idles while the host waits for
input. api_call (10 %): the GPU idles during calls of one function. host (20 %): the GPU idles, and none of these explains it.
memory, tensor_cores (10 % of the kernel time), ddp_without_nccl and data_parallel are the TensorBoard plugin's, from
recommendations, which has its other rules as they are; they come last. A run in which no rule fires has one row, nothing. A
process without GPU work on record has none: whether its GPU was idle is not known.
@scope run
@topic steps
@requires execution_summary, memory_ops, _gpu_work, _idle_by_call, _waits, _plugin_rules, _collective_kernels, profiles
@assumes A process has the GPU for itself: where several share one, the work of the others counts as idle time.
@assumes The limits are rules of thumb; nothing says only that no limit is exceeded, and what kernels could gain is in headroom.
@assumes The tool recorded all GPU work and the calls of the host; what it lost, and what it adds to calls, counts as idle.
@assumes A rank's delay is its lag behind the second last: two ranks that are late together hide each other (straggler).
@first rule, who, what, total_ns, share_pct
@column run           Run (one workload in one configuration).
@column tool          nsys or kineto. Never add them up: they saw the same work.
@column rule          straggler, slow_link, communication, copies, data_loader, api_call, host, a rule of the plugin, or nothing.
@column rank          Rank of the process; NULL where unknown, or for the run as a whole.
@column profile_id    Profile; NULL for a straggler, a process group and the run as a whole.
@column process_id    OS process; likewise.
@column window_index  Capture window of the process; likewise.
@column who           The rank, process group, process or GPU, as people call it.
@column what          What was seen: the cause.
@column why           What it comes from, and what can be done.
@column total_ns      How long; NULL where the rule is not about time.
@column of_ns         Time that it is a share of: the steps or the capture of the process, or of all ranks.
@column share_pct     total_ns as a share of of_ns, to one decimal; for rules of the plugin their own figure.
@column limit_pct     Share above which the rule fires.
@column against       What speaks against it.
@column more          The command that shows more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask, collective_match, communicator_summary, straggler
from nsightlens.analyses._advice import ADVICE, PLUGIN, of_call

_FIRST, _LAST = ("straggler",), tuple(PLUGIN)
_PARTS = """
SELECT run, tool, rank, profile_id, process_id, window_index, steps_ns,
    map_from_entries(list((category, coalesce(total_ns, 0)))) AS parts
FROM execution_summary() GROUP BY ALL ORDER BY ALL
"""
_WORKED = "SELECT DISTINCT profile_id, process_id, window_index FROM _gpu_work ORDER BY ALL"
_COPIES = """
SELECT profile_id, process_id, window_index, coalesce(direction, kind) AS direction, sum(duration_ns)::BIGINT AS total_ns,
    sum(bytes)::BIGINT AS bytes,
    coalesce(sum(duration_ns) FILTER (source_memory = 'pageable' OR destination_memory = 'pageable'), 0)::BIGINT AS pageable_ns
FROM memory_ops
WHERE tool <> 'ncu' AND kind <> 'memset' AND duration_ns > 0 AND profile_id IN (SELECT unnest(?)) GROUP BY ALL ORDER BY ALL
"""
_CALLS = "SELECT * FROM _idle_by_call WHERE profile_id IN (SELECT unnest(?)) ORDER BY idle_ns DESC, name"
_WAITED = """
SELECT w.profile_id, w.process_id, w.window_index, w.name, string_agg(DISTINCT w.kind, ', ' ORDER BY w.kind) AS kinds
FROM _waits AS w WHERE w.profile_id IN (SELECT unnest(?)) AND w.name IS NOT NULL AND w.kind IN ('event', 'stream', 'context')
GROUP BY ALL
"""
_WAITED_FOR = {"event": "an event", "stream": "a stream", "context": "all work of the device"}
_OF_PLUGIN = """
SELECT * FROM _plugin_rules
WHERE rule IN (SELECT unnest(?)) AND (rule <> 'tensor_cores' OR value_pct > ?) ORDER BY ALL
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rule", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()),
    ("process_id", pa.string()), ("window_index", pa.int32()), ("who", pa.string()), ("what", pa.string()), ("why", pa.string()),
    ("total_ns", pa.int64()), ("of_ns", pa.int64()), ("share_pct", pa.float64()), ("limit_pct", pa.float64()),
    ("against", pa.string()), ("more", pa.string()),
])
Key = tuple[str, str | None, int | None]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Process:
    """Where the time of one process (and window) went: ns per category of execution_summary, which sum to length."""

    row: Row
    length: int
    parts: Mapping[str, int]

    @property
    def key(self) -> Key:
        """Return what the rows of a view that are about this process share."""
        return _key(self.row)


def analyse(ask: Ask) -> pa.Table:
    """Return a row per finding; runs in the order of their names, and in a run the largest share first."""
    worked = {_key(row) for row in ask(_WORKED, []).to_pylist()}
    processes = [Process(row, row["steps_ns"], dict(row["parts"])) for row in ask(_PARTS, []).to_pylist()
                 if row["steps_ns"] and _key(row) in worked]
    crossing = _matched(ask, processes)
    late, waited = _stragglers(crossing, processes)
    rows = [*late, *_slow_links(crossing, processes), *_communication(processes, waited), *_copies(ask, processes),
            *_data_loader(processes), *_host(ask, processes), *_of_plugin(ask)]
    found = {(row["run"], row["tool"]) for row in rows}
    rows += [_row(process, "nothing", "no rule finds more than its limit") | {"rank": None, "who": "all"}
             for process in {(p.row["run"], p.row["tool"]): p for p in processes}.values()
             if (process.row["run"], process.row["tool"]) not in found]
    rows.sort(key=lambda row: (
        row["run"], row["tool"], row["rule"] in _LAST, row["rule"] not in _FIRST, -(row["share_pct"] or 0), row["rule"],
        row["rank"] is None, row["rank"] or 0, row["process_id"] or "", row["window_index"] or 0, row["who"], row["what"]))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _matched(ask: Ask, processes: Iterable[Process]) -> pa.Table | None:
    """Return collective_match; None where no run has several ranks."""
    ranks: dict[tuple[str, str], set[int | None]] = defaultdict(set)
    for process in processes:
        ranks[process.row["run"], process.row["tool"]].add(process.row["rank"])
    return collective_match.analyse(ask) if any(len(those) > 1 for those in ranks.values()) else None


def _lengths(processes: Iterable[Process]) -> Mapping[tuple[str, str], int]:
    """Return the time of all ranks, by run and tool."""
    lengths: dict[tuple[str, str], int] = defaultdict(int)
    for process in processes:
        lengths[process.row["run"], process.row["tool"]] += process.length
    return lengths


def _slow_links(matched: pa.Table | None, processes: Iterable[Process]) -> Iterator[Row]:
    """Yield the process groups that take longer than their peers, with what all their operations cost their ranks."""
    if matched is None:
        return
    lengths, advice = _lengths(processes), ADVICE["slow_link"]
    slow: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in communicator_summary.summary(matched).to_pylist():
        if row["verdict"] in (communicator_summary.SLOW, communicator_summary.WAITING):
            slow[tuple(row[name] for name in ("run", "tool", "execution_id", "group_name", "members"))].append(row)
    for (run, tool, *_), rows in slow.items():
        first, total = rows[0], sum(row["excess_ns"] * row["ranks"] for row in rows)
        if 100 * total > advice.limit_pct * lengths[run, tool]:
            missing = (first["group_size"] or 0) - first["ranks"] if first["verdict"] == communicator_summary.WAITING else 0
            yield dict.fromkeys(("rank", "profile_id", "process_id", "window_index")) | {
                "run": run, "tool": tool, "rule": "slow_link", "who": _group(first),
                "what": f"its {first['collective']} takes {first['transfer_ns'] / max(first['peers_ns'], 1):.1f} times as long "
                        f"as that of the {first['peers']} other groups of its size"
                        + (f", or waits for {missing} of its ranks, not captured" if missing else ""),
                "total_ns": total, "of_ns": lengths[run, tool], "share_pct": _pct(total, lengths[run, tool]),
                "limit_pct": advice.limit_pct, "why": advice.why, "against": advice.against, "more": advice.more}


def _group(row: Row) -> str:
    return f"{'process group' if row['group_name'] is None else 'process group ' + row['group_name']} (ranks {row['members']})"


def _stragglers(
    matched: pa.Table | None, processes: Iterable[Process],
) -> tuple[list[Row], Mapping[tuple[str, str, int | None], int]]:
    """Return the ranks that others wait for, and how long each rank of their runs waited."""
    if matched is None:
        return [], {}
    lengths = _lengths(processes)
    seen = straggler.judged(matched).to_pylist()
    late = [_late(row, lengths[row["run"], row["tool"]]) for row in seen if row["verdict"] == "straggler"]
    late = [row for row in late if row["share_pct"] is not None and row["share_pct"] > row["limit_pct"]]
    runs = {(row["run"], row["tool"]) for row in late}
    waited: dict[tuple[str, str, int | None], int] = defaultdict(int)
    for row in seen:
        if row["rank"] is not None and (row["run"], row["tool"]) in runs:
            waited[row["run"], row["tool"], row["rank"]] += row["wait_ns"]
    return late, waited


def _late(row: Row, length: int) -> Row:
    advice = ADVICE["straggler"]
    return {
        "run": row["run"], "tool": row["tool"], "rule": "straggler", "rank": row["rank"], "profile_id": None, "process_id": None,
        "window_index": None, "who": f"rank {row['rank']}",
        "what": f"the other ranks wait for it: it is the last in {row['times_last']} of {row['collectives']} matched collectives",
        "total_ns": row["others_wait_ns"], "of_ns": length, "share_pct": _pct(row["others_wait_ns"], length),
        "limit_pct": advice.limit_pct, "why": advice.why, "against": advice.against, "more": advice.more,
    }


def _communication(processes: list[Process], waited: Mapping[tuple[str, str, int | None], int]) -> Iterator[Row]:
    for process in processes:
        exposed = process.parts["communication"]
        waits = min(exposed, waited.get((process.row["run"], process.row["tool"], process.row["rank"]), 0))
        yield from _fired(process, "communication", "communication that no other work hides"
                          + (", waiting for stragglers left out" if waits else ""), exposed - waits)


def _copies(ask: Ask, processes: list[Process]) -> Iterator[Row]:
    busy = [p for p in processes if _exceeds(p, "copies", p.parts["memcpy"])]
    copies: dict[Key, list[Row]] = defaultdict(list)
    for row in ask(_COPIES, [sorted({p.row["profile_id"] for p in busy})]).to_pylist() if busy else ():
        copies[_key(row)].append(row)
    for process in busy:
        kinds = sorted(copies[process.key], key=lambda row: (-row["total_ns"], row["direction"]))
        total = sum(row["total_ns"] for row in kinds)
        named = "; ".join(_copied(row, total) for row in kinds[:2] if 100 * row["total_ns"] >= total)
        yield from _fired(process, "copies", f"copies that no kernel hides ({named})", process.parts["memcpy"])


def _copied(row: Row, total: int) -> str:
    """Return one direction of copies: its share, bandwidth, and whether most of it is from or to pageable memory."""
    rate = f", {row['bytes'] / row['total_ns']:.1f} GB/s" if row["bytes"] else ""
    return f"{row['direction']} {_pct(row['total_ns'], total):.0f} %{rate}" + (
        ", pageable memory" if 2 * row["pageable_ns"] > row["total_ns"] else "")


def _data_loader(processes: list[Process]) -> Iterator[Row]:
    for process in processes:
        yield from _fired(process, "data_loader", "the GPU idles while the host waits for the data loader",
                          process.parts["data_loader"])


def _host(ask: Ask, processes: list[Process]) -> Iterator[Row]:
    """Yield what the host did while the GPU idled: one function of the API, else the rest."""
    calling = [p for p in processes if _exceeds(p, "api_call", p.parts["runtime"])]
    calls: dict[Key, list[Row]] = defaultdict(list)
    for row in ask(_CALLS, [sorted({p.row["profile_id"] for p in calling})]).to_pylist() if calling else ():
        calls[_key(row)].append(row)
    waited = {(_key(row), row["name"]): row["kinds"]
              for row in (ask(_WAITED, [sorted({p.row["profile_id"] for p in calling})]).to_pylist() if calling else ())}
    for process in processes:
        named = 0
        for row in calls[process.key]:
            idle = min(row["idle_ns"], process.parts["runtime"] - named)
            if _exceeds(process, "api_call", idle):
                named += idle
                counted = f"{row['calls']:,} calls, the longest of" if row["calls"] > 1 else "one call of"
                kind = _WAITED_FOR.get(waited.get((process.key, row["name"]), ""))
                awaited = f", where the host waits for {kind}" if kind else ""
                what = f"the GPU idles during {row['name']} ({counted} {_ms(row['longest_ns'])}){awaited}"
                for found in _fired(process, "api_call", what, idle):
                    told = of_call(row["name"])
                    yield found | told | {"against": _against(process, "api_call", told["against"])}
        rest = {"operators": process.parts["cpu_exec"], "CUDA calls": process.parts["runtime"] - named,
                "code that was not recorded": process.parts["other"]}
        most = max(rest, key=lambda name: rest[name])
        what = f"the GPU idles while the host is busy elsewhere, most of it in {most}"
        yield from _fired(process, "host", what, sum(rest.values()))


def _of_plugin(ask: Ask) -> Iterator[Row]:
    for row in ask(_OF_PLUGIN, [list(PLUGIN), PLUGIN["tensor_cores"].limit_pct]).to_pylist():
        advice = PLUGIN[row["rule"]]
        yield {name: row[name] for name in ("run", "tool", "rule", "rank", "profile_id", "process_id", "window_index")} | {
            "who": row["subject"] or _who(row), "what": advice.what, "why": row["advice"], "total_ns": None, "of_ns": None,
            "share_pct": row["value_pct"], "limit_pct": advice.limit_pct or row["limit_pct"], "against": advice.against,
            "more": advice.more,
        }


def _fired(process: Process, rule: str, what: str, total: int) -> Iterable[Row]:
    if _exceeds(process, rule, total):
        yield _row(process, rule, what) | {
            "total_ns": total, "of_ns": process.length, "share_pct": _pct(total, process.length),
            **{name: process.row[name] for name in ("profile_id", "process_id", "window_index")}}


def _exceeds(process: Process, rule: str, total: int) -> bool:
    return 100 * total > ADVICE[rule].limit_pct * process.length


def _row(process: Process, rule: str, what: str) -> Row:
    """Return a finding about a process, without its figures."""
    advice, row = ADVICE[rule], process.row
    return {
        "run": row["run"], "tool": row["tool"], "rule": rule, "rank": row["rank"], "profile_id": None, "process_id": None,
        "window_index": None, "who": _who(row), "what": what, "why": advice.why, "total_ns": None, "of_ns": None,
        "share_pct": None, "limit_pct": advice.limit_pct or None, "more": advice.more,
        "against": _against(process, rule, advice.against),
    }


def _against(process: Process, rule: str, text: str) -> str:
    return text + (" Kineto slows the host." if process.row["tool"] == "kineto" and ADVICE[rule].of_host else "")


def _who(row: Row) -> str:
    return f"process {row['process_id']}" if row["rank"] is None else f"rank {row['rank']}"


def _key(row: Row) -> Key:
    return row["profile_id"], row["process_id"], row["window_index"]


def _ms(ns: int) -> str:
    return f"{ns / 1e6:,.1f} ms" if ns >= 1_000_000 else f"{ns / 1e3:.1f} us"


def _pct(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
