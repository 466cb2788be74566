"""Each collective over its ranks: who arrived when, who was last, how long the others waited, how long the data took.
A row is one collective on one rank of one execution. Ranks need a known rank number; point-to-point calls (send, recv)
are no collectives, but sends and receives that nothing names and that end together on all ranks are: an all-to-all.
collective_coverage says what could not be matched. Times of different ranks are compared on the clock of the lowest rank
(see rank_clock); ranks that name no two hosts and whose clocks agree within the uncertainty share a clock. The last rank
is named only where it came later than the second last by more than the clocks can be wrong; else last_rank is NULL: cannot tell.
@scope rows
@requires _collective_kernels, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A rank that its previous collective, of another group, released later than the second last came late for that.
@assumes Captures that name no execution are of the only one of run and tool. A rank that two processes claim is left out.
@assumes Equal host names are one host, and processes of one host read one clock.
@assumes clock := 'recorded' takes the files' clocks for one clock: right on one host only.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@column run               Run.
@column tool              nsys or kineto.
@column execution_id      Start of the job, from a sidecar; NULL without one.
@column group_name        Process group, where the trace names it.
@column method            How calls were matched: name and number, name and order, order on the stream.
@column call_index        Number of the call within its group, from 0.
@column step              Training step of the call on the lowest of its ranks.
@column collective        Operation as the trace names it, else the kernel's short name.
@column message_bytes     Payload on this rank.
@column rank              Rank.
@column kernel_id         The kernel; key of `kernels`.
@column arrival_ns        Start after the first rank's start.
@column wait_ns           From its own start to the last rank's start: time that it waited.
@column transfer_ns       From the last rank's start to its own end: time that the data took.
@column last_rank         The rank that all others waited for; NULL: cannot tell.
@column lag_ns            How much later the last rank came than the second last.
@column lag_threshold_ns  Lag above which the last rank is named; NULL where unknown: then no rank is named.
@column inherited_ns      Part of lag_ns that the last rank had from its previous collective, which released it later.
@column ranks             Ranks whose part of the call is known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.errors import UsageError
from nsightlens.matching.collectives import Call, Clock, Matched, clocks, match
from nsightlens.names.collectives import POINT_TO_POINT, UNEVEN, operation

_CALLS = """
SELECT
    k.run, k.tool, p.execution_id, k.rank, k.process_id, k.host, k.kernel_id, k.stream,
    k.start_ns + coalesce(p.origin_epoch_ns, 0) AS start_ns,
    k.duration_ns - coalesce(k.overrun_ns, 0) AS duration_ns, coalesce(k.overrun_ns, 0) = 0 AS is_possible,
    k.group_name, k.group_size, k.group_seq, k.collective, k.short_name, k.message_bytes, k.step
FROM _collective_kernels AS k
JOIN profiles AS p ON k.profile_id = p.profile_id
ORDER BY k.run, k.tool, p.execution_id, k.rank, k.start_ns, k.kernel_id
"""
_UNNAMED = re.compile(r"(?i)send_?recv|^coalesced$")
"""Operations and kernels that may be any exchange: of two ranks, or of all."""
_US = 1000
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("group_name", pa.string()),
    ("method", pa.string()), ("call_index", pa.int64()), ("step", pa.int64()), ("collective", pa.string()),
    ("message_bytes", pa.int64()), ("rank", pa.int32()), ("kernel_id", pa.int64()), ("arrival_ns", pa.int64()),
    ("wait_ns", pa.int64()), ("transfer_ns", pa.int64()), ("last_rank", pa.int32()), ("lag_ns", pa.int64()),
    ("lag_threshold_ns", pa.int64()), ("inherited_ns", pa.int64()), ("ranks", pa.int32()),
])

_Release = tuple[int, tuple[int, int]]
"""When a rank's last collective before a call released it, in ns of its own clock, and which one that was (group, call)."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The communication kernels of one execution under one tool, what could be matched of them, and the clocks that follow.

    left_out: ranks that take no part, and why.
    """

    run: str
    tool: str
    execution_id: str | None
    hosts: dict[int, str | None]
    rows: list[dict[str, Any]]
    matched: list[Matched]
    clocks: dict[int, Clock]
    left_out: dict[int, str]

    def shares_clock(self, rank: int) -> bool:
        """Return whether a rank and its reference name no two hosts, and the fitted clocks do not speak against one clock."""
        clock = self.clocks[rank]
        hosts = {self.hosts[rank], self.hosts[clock.reference]} - {None}
        return len(hosts) < 2 and clock.drift == 0 and abs(clock.offset) <= clock.uncertainty

    def corrected(self, rank: int, time: int) -> int | None:
        """Return a rank's time on the clock of its reference; None where nothing ties the two."""
        clock = self.clocks.get(rank)
        if clock is None:
            return None
        return time if self.shares_clock(rank) else time - round(clock.offset + clock.drift * (time - clock.at))


def executions(ask: Ask) -> list[Execution]:
    """Return every execution with communication kernels. A rank that two processes claim takes no part."""
    return [_execution(*key, rows) for key, rows in _by_execution(ask(_CALLS, []).to_pylist()).items()]


def _execution(run: str, tool: str, execution_id: str | None, rows: list[dict[str, Any]]) -> Execution:
    owners: dict[int, set[str]] = {}
    for row in rows:
        if row["rank"] is not None:
            owners.setdefault(row["rank"], set()).add(row["process_id"])
    calls = _calls([(place, row) for place, row in enumerate(rows) if len(owners.get(row["rank"], ())) == 1])
    matched = match(calls)
    fitted = clocks(matched)
    hosts = {row["rank"]: row["host"] for row in rows}
    return Execution(run, tool, execution_id, hosts, rows, matched, fitted, _left_out(owners, matched, fitted))


def _calls(rows: list[tuple[int, dict[str, Any]]]) -> dict[int, list[Call]]:
    """Return the calls of each rank, those of two ranks left out."""
    found: dict[int, list[Call]] = {}
    whole: dict[int, bool] = {}
    for _, row in rows:
        whole[row["rank"]] = whole.get(row["rank"], True) and not (row["start_ns"] % _US or row["duration_ns"] % _US)
    for place, row in rows:
        said, short = row["collective"] or "", row["short_name"] or ""
        named = operation(said) or operation(short)
        if named not in POINT_TO_POINT:
            found.setdefault(row["rank"], []).append(_call(place, row, named, _US if whole[row["rank"]] else 1))
    return found


def _call(place: int, row: Mapping[str, Any], named: str | None, resolution: int) -> Call:
    paired = named is None and bool(_UNNAMED.search(row["collective"] or row["short_name"] or ""))
    payload = None if named in UNEVEN else row["message_bytes"]
    kernel = row["short_name"] if row["group_name"] is None else None
    return Call(
        row=place, start=row["start_ns"], end=row["start_ns"] + row["duration_ns"],
        token=(named or row["collective"] or row["short_name"], kernel, payload), stream=row["stream"], group=row["group_name"],
        group_size=row["group_size"], number=row["group_seq"], resolution=resolution, paired=paired,
        is_possible=row["is_possible"],
    )


def _left_out(owners: Mapping[int, set[str]], matched: list[Matched], fitted: Mapping[int, Clock]) -> dict[int, str]:
    """Return why ranks with communication kernels take no part."""
    placed = {rank for group in matched for calls in group.calls for rank in calls}
    found: dict[int, str] = {}
    for rank, processes in sorted(owners.items()):
        if len(processes) > 1:
            found[rank] = f"{len(processes)} processes claim it"
        elif len(owners) == 1:
            found[rank] = "no other rank was captured"
        elif rank not in placed:
            found[rank] = "none of its calls could be matched with another rank's"
        elif rank not in fitted:
            found[rank] = "too few of its calls could be matched to set its clock"
    return found


def _by_execution(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str | None], list[dict[str, Any]]]:
    """Return the rows of each execution. Rows that name none belong to the only one that their run and tool have."""
    named: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        if row["execution_id"] is not None:
            named.setdefault((row["run"], row["tool"]), set()).add(row["execution_id"])
    grouped: dict[tuple[str, str, str | None], list[dict[str, Any]]] = {}
    for row in rows:
        known = named.get((row["run"], row["tool"]), set())
        execution = next(iter(known)) if len(known) == 1 else row["execution_id"]
        grouped.setdefault((row["run"], row["tool"], execution), []).append(row)
    return grouped


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per collective and rank."""
    if clock not in ("fitted", "recorded"):
        raise UsageError(f"clock is fitted or recorded, not {clock!r}")
    found: list[dict[str, Any]] = []
    for execution in executions(ask):
        released = _releases(execution.matched)
        for group in execution.matched:
            for index, calls in enumerate(group.calls):
                found += _rows(execution, group, index, calls, released, clock == "fitted", lag_threshold_ns)
    return pa.Table.from_pylist(found, schema=_SCHEMA)


def _releases(matched: Sequence[Matched]) -> dict[int, _Release]:
    """Return, by the row of each call, the last matched collective of its rank that had ended when it began."""
    of_rank: dict[int, list[tuple[int, tuple[int, int], Call]]] = {}
    for number, group in enumerate(matched):
        for index, calls in enumerate(group.calls):
            for rank, call in calls.items():
                of_rank.setdefault(rank, []).append((call.end, (number, index), call))
    found: dict[int, _Release] = {}
    for ended in of_rank.values():
        ended.sort(key=lambda one: one[:2])
        for _, _, call in ended:
            before = bisect_right(ended, call.start, key=lambda one: one[0])
            if before:
                found[call.row] = ended[before - 1][:2]
    return found


def _rows(
    execution: Execution, group: Matched, index: int, calls: Mapping[int, Call], released: Mapping[int, _Release], fitted: bool,
    lag_threshold_ns: int | None,
) -> list[dict[str, Any]]:
    shifts = {rank: execution.corrected(rank, call.start) if fitted else call.start for rank, call in calls.items()}
    starts = {rank: start for rank, start in shifts.items() if start is not None}
    order = sorted(starts, key=lambda rank: (starts[rank], rank))
    lag = limit = last = None
    if len(order) > 1:
        lag = starts[order[-1]] - starts[order[-2]]
        limit = lag_threshold_ns if lag_threshold_ns is not None else _uncertainty(execution, order[-1], order[-2])
        last = order[-1] if limit is not None and lag > limit else None
    inherited = None if last is None or lag is None else min(lag, _inherited(execution, calls, released, fitted, *order[-2:]))
    step = execution.rows[calls[min(calls)].row]["step"]
    rows = []
    for rank, call in sorted(calls.items()):
        row, start = execution.rows[call.row], starts.get(rank)
        end = None if start is None else start + call.end - call.start
        rows.append({
            "run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id, "group_name": group.group,
            "method": group.method, "call_index": index, "step": step, "collective": row["collective"] or row["short_name"],
            "message_bytes": row["message_bytes"], "rank": rank, "kernel_id": row["kernel_id"],
            "arrival_ns": None if start is None else start - starts[order[0]],
            "wait_ns": None if start is None else starts[order[-1]] - start,
            "transfer_ns": None if end is None else end - starts[order[-1]],
            "last_rank": last, "lag_ns": lag, "lag_threshold_ns": limit, "inherited_ns": inherited, "ranks": len(calls),
        })
    return rows


def _inherited(
    execution: Execution, calls: Mapping[int, Call], released: Mapping[int, _Release], fitted: bool, second: int, last: int,
) -> int:
    """Return by how many ns the last rank was released later than the second last; 0 where the same collective released both."""
    releases = {rank: released[calls[rank].row] for rank in (second, last) if calls[rank].row in released}
    if len(releases) < 2 or releases[second][1] == releases[last][1]:
        return 0
    ends = [execution.corrected(rank, end) if fitted else end for rank, (end, _) in releases.items()]
    return 0 if ends[0] is None or ends[1] is None else max(0, ends[1] - ends[0])


def _uncertainty(execution: Execution, *ranks: int) -> int | None:
    """Return by how many ns the ranks' times may be misplaced against each other; None where a clock could not be fitted."""
    clocks = [execution.clocks[rank] for rank in ranks if rank in execution.clocks]
    return sum(round(clock.uncertainty) for clock in clocks) if len(clocks) == len(ranks) else None
