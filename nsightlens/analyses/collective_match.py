"""Each collective over its ranks: who arrived when, who was last, how long the others waited, how long the data took.
A row is one collective on one rank of one execution. Ranks need a known rank number; point-to-point calls (send, recv)
are no collectives. Times of different ranks are compared on the clock of the lowest rank (see rank_clock); ranks that
name one host and whose clocks agree within the uncertainty share a clock. The last rank is named only where it came
later than the second last by more than the clocks can be wrong; else last_rank is NULL: cannot tell.
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes Captures that name no execution are of the only one of run and tool. A rank that two processes claim is left out.
@assumes Equal host names are one host, and processes of one host read one clock.
@assumes clock := 'recorded' takes the files' clocks for one clock: right on one host only.
@param  clock          'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  gate           Lead in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@column run            Run.
@column tool           nsys or kineto.
@column execution_id   Start of the job, where a sidecar tells.
@column group_name     Process group, where the trace names it.
@column method         How calls were matched: name and number, name and order, order on the stream.
@column call_index     Number of the call within its group, from 0.
@column step           Training step of the call on the lowest of its ranks.
@column collective     Operation as the trace names it, else the kernel's short name.
@column message_bytes  Payload on this rank.
@column rank           Rank.
@column kernel_id      The kernel; key of `kernels`.
@column arrival_ns     Start after the first rank's start.
@column wait_ns        From its own start to the last rank's start: time that it waited.
@column transfer_ns    From the last rank's start to its own end: time that the data took.
@column last_rank      The rank that all others waited for; NULL: cannot tell.
@column lead_ns        How much later the last rank came than the second last.
@column gate_ns        Lead above which the last rank is named; NULL where it cannot be told: then none is named.
@column ranks          Ranks whose part of the call is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.collectives import Call, Clock, Matched, clocks, match
from nsightlens.errors import UsageError

_CALLS = """
SELECT
    k.run, k.tool, p.execution_id, k.rank, k.process_id, k.host, k.kernel_id, k.stream,
    k.start_ns + coalesce(p.origin_epoch_ns, 0) AS start_ns, k.duration_ns,
    k.group_name, k.group_size, k.group_seq, coalesce(k.collective, k.short_name) AS collective, k.message_bytes, k.step
FROM kernels AS k
JOIN profiles AS p ON k.profile_id = p.profile_id
WHERE k.family = 'collective' AND k.tool <> 'ncu' AND k.rank IS NOT NULL AND k.start_ns IS NOT NULL AND k.duration_ns IS NOT NULL
    AND NOT regexp_matches(coalesce(k.collective, k.short_name), '(?i)^(send|recv)$|send_?recv')
ORDER BY k.run, k.tool, p.execution_id, k.rank, k.start_ns, k.kernel_id
"""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("group_name", pa.string()),
    ("method", pa.string()), ("call_index", pa.int64()), ("step", pa.int64()), ("collective", pa.string()),
    ("message_bytes", pa.int64()), ("rank", pa.int32()), ("kernel_id", pa.int64()), ("arrival_ns", pa.int64()),
    ("wait_ns", pa.int64()), ("transfer_ns", pa.int64()), ("last_rank", pa.int32()), ("lead_ns", pa.int64()),
    ("gate_ns", pa.int64()), ("ranks", pa.int32()),
])


@dataclass(frozen=True, slots=True)
class Execution:
    """The matched collectives of one execution under one tool, and the clocks that follow from them."""

    run: str
    tool: str
    execution_id: str | None
    hosts: dict[int, str | None]
    rows: list[dict[str, Any]]
    matched: list[Matched]
    clocks: dict[int, Clock]

    def shares_clock(self, rank: int) -> bool:
        """Return whether a rank names the host of its reference, and the fitted clocks do not speak against it."""
        clock = self.clocks[rank]
        host = self.hosts[rank]
        return host is not None and host == self.hosts[clock.reference] and abs(clock.offset) <= clock.uncertainty

    def corrected(self, rank: int, time: int) -> int | None:
        """Return a rank's time on the clock of its reference; None where nothing ties the two."""
        clock = self.clocks.get(rank)
        if clock is None:
            return None
        return time if self.shares_clock(rank) else time - round(clock.offset + clock.drift * (time - clock.at))


def executions(ask: Ask) -> list[Execution]:
    """Return every execution whose collectives could be matched. A rank that two processes claim takes no part."""
    grouped = _by_execution(ask(_CALLS, []).to_pylist())
    found = []
    for (run, tool, execution), mine in grouped.items():
        calls: dict[int, list[Call]] = {}
        owners: dict[int, set[str]] = {}
        for place, row in enumerate(mine):
            owners.setdefault(row["rank"], set()).add(row["process_id"])
            calls.setdefault(row["rank"], []).append(_call(place, row))
        matched = match({rank: some for rank, some in calls.items() if len(owners[rank]) == 1})
        hosts = {row["rank"]: row["host"] for row in mine}
        found.append(Execution(run, tool, execution, hosts, mine, matched, clocks(matched)))
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


def _call(place: int, row: Mapping[str, Any]) -> Call:
    return Call(
        row=place, start=row["start_ns"], end=row["start_ns"] + row["duration_ns"],
        token=(row["collective"], row["message_bytes"]), stream=row["stream"], group=row["group_name"],
        group_size=row["group_size"], number=row["group_seq"],
    )


def analyse(ask: Ask, *, clock: str = "fitted", gate: int | None = None) -> pa.Table:
    """Return a row per collective and rank."""
    if clock not in ("fitted", "recorded"):
        raise UsageError(f"clock is fitted or recorded, not {clock!r}")
    found: list[dict[str, Any]] = []
    for execution in executions(ask):
        for group in execution.matched:
            for index, calls in enumerate(group.calls):
                found += _rows(execution, group, index, calls, clock == "fitted", gate)
    return pa.Table.from_pylist(found, schema=_SCHEMA)


def _rows(
    execution: Execution, group: Matched, index: int, calls: Mapping[int, Call], fitted: bool, gate: int | None,
) -> list[dict[str, Any]]:
    shifts = {rank: execution.corrected(rank, call.start) if fitted else call.start for rank, call in calls.items()}
    starts = {rank: start for rank, start in shifts.items() if start is not None}
    order = sorted(starts, key=lambda rank: (starts[rank], rank))
    lead = limit = last = None
    if len(order) > 1:
        lead = starts[order[-1]] - starts[order[-2]]
        limit = gate if gate is not None else _uncertainty(execution, order[-1], order[-2])
        last = order[-1] if limit is not None and lead > limit else None
    step = execution.rows[calls[min(calls)].row]["step"]
    rows = []
    for rank, call in sorted(calls.items()):
        row, start = execution.rows[call.row], starts.get(rank)
        end = None if start is None else start + call.end - call.start
        rows.append({
            "run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id, "group_name": group.group,
            "method": group.method, "call_index": index, "step": step, "collective": row["collective"],
            "message_bytes": row["message_bytes"], "rank": rank, "kernel_id": row["kernel_id"],
            "arrival_ns": None if start is None else start - starts[order[0]],
            "wait_ns": None if start is None else starts[order[-1]] - start,
            "transfer_ns": None if end is None else end - starts[order[-1]],
            "last_rank": last, "lead_ns": lead, "gate_ns": limit, "ranks": len(calls),
        })
    return rows


def _uncertainty(execution: Execution, *ranks: int) -> int | None:
    """Return by how many ns the ranks' times may be misplaced against each other; None where a clock could not be fitted."""
    clocks = [execution.clocks[rank] for rank in ranks if rank in execution.clocks]
    return sum(round(clock.uncertainty) for clock in clocks) if len(clocks) == len(ranks) else None
