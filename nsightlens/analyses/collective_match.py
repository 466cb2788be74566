"""Each collective across its ranks: when each rank arrived, which was last, how long the others waited, how long the transfer
took. A row is one collective on one rank of one execution. Only ranks with known numbers take part. Point-to-point calls
(send, recv) are not collectives, but unnamed sends and receives that end together on all ranks count as an all-to-all.
collective_coverage shows what could not be matched. Times of different ranks are compared on the clock of the lowest rank (see
rank_clock); ranks that name no two hosts and whose clocks agree within the uncertainty share a clock. last_rank is known only
if that rank came later than the second last by more than the clocks' error; else it is NULL: cannot tell.
@scope rows
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A rank whose previous collective was another call than that of the second last, and ended later, was delayed by it.
@assumes Each of several ranks that the clocks cannot tell apart may be the second last: their difference is undecided.
@assumes Such delay is followed back over calls of one kind (operation, payload, ranks; all known) of two groups, 1,000 at most.
@assumes A rank is charged the time by which the call would have begun earlier without it; what is left, or within the clocks'
    error, is charged to no rank.
@assumes Captures without an execution_id belong to one execution per run and tool. A rank that two processes claim is left out.
@assumes Equal host names are one host, and processes of one host read one clock.
@assumes clock := 'recorded' takes the files' clocks for one clock: right on one host only.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@first rank, step, collective, wait_ns, transfer_ns, last_rank, lag_ns
@column run               Run.
@column tool              nsys or kineto.
@column execution_id      Start of the job, from a sidecar; NULL without one.
@column group_name        Process group, where the trace names it.
@column group_size        Ranks of that group; NULL where unknown.
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
@column undecided_ns      Part of lag_ns that it may have had from there: it depends on who came second last, which is not known.
@column propagated_wait_ns Waits of all ranks in later collectives that come from the last rank's own lateness in this one.
@column ranks             Ranks whose part of the call is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask, once
from nsightlens.columns.arrays import MISSING, Int, Mask, distinct, encoded, integers, nullable, numbered, split, sums
from nsightlens.errors import not_a_choice
from nsightlens.matching.collectives import Calls, Clock, Matched, clocks, match
from nsightlens.matching.propagation import Arrivals, after, propagated
from nsightlens.names.collectives import POINT_TO_POINT, UNEVEN, operation

_CALLS = """
SELECT
    k.run, k.tool, p.execution_id, k.rank, k.process_id, k.host, k.kernel_id, k.stream,
    k.start_ns + coalesce(p.origin_epoch_ns, 0) AS start_ns, p.origin_epoch_ns IS NOT NULL AS has_epoch,
    k.duration_ns - coalesce(k.overrun_ns, 0) AS duration_ns, coalesce(k.overrun_ns, 0) = 0 AS is_possible,
    k.group_name, k.group_size, k.group_seq, coalesce(nullif(k.collective, ''), k.short_name) AS collective,
    k.short_name, k.message_bytes, k.step
FROM _collective_kernels AS k
JOIN profiles AS p ON k.profile_id = p.profile_id
"""
_UNNAMED = re.compile(r"(?i)send_?recv|^coalesced$")
"""Operations and kernels that may be any exchange: of two ranks, or of all."""
_US = 1000
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("group_name", pa.string()),
    ("group_size", pa.int32()), ("method", pa.string()), ("call_index", pa.int64()), ("step", pa.int64()),
    ("collective", pa.string()), ("message_bytes", pa.int64()), ("rank", pa.int32()), ("kernel_id", pa.int64()),
    ("arrival_ns", pa.int64()), ("wait_ns", pa.int64()), ("transfer_ns", pa.int64()), ("last_rank", pa.int32()),
    ("lag_ns", pa.int64()), ("lag_threshold_ns", pa.int64()), ("inherited_ns", pa.int64()),
    ("undecided_ns", pa.int64()), ("propagated_wait_ns", pa.int64()), ("ranks", pa.int32()),
])


@dataclass(frozen=True, slots=True)
class Execution:
    """The communication kernels of one execution under one tool, what could be matched of them, and the clocks that follow.

    rows: the kernels, their texts as dictionaries. unsized: of each, whether its payload says nothing of the call. calls: those
    that may be collectives, of ranks that take part; row: where each of them is in rows.
    left_out: ranks that take no part, and why.
    """

    run: str
    tool: str
    execution_id: str | None
    hosts: dict[int, str | None]
    rows: pa.Table
    unsized: Mask
    row: Int
    calls: Calls
    matched: list[Matched]
    clocks: dict[int, Clock]
    left_out: dict[int, str]

    def shares_clock(self, rank: int) -> bool:
        """Return whether a rank and its reference name no two hosts, and the fitted clocks do not speak against one clock."""
        clock = self.clocks[rank]
        hosts = {self.hosts[rank], self.hosts[clock.reference]} - {None}
        return len(hosts) < 2 and clock.drift == 0 and abs(clock.offset) <= clock.uncertainty

    def corrected(self, ranks: Int, times: Int) -> Int:
        """Return times of ranks on the clock of their reference; MISSING where nothing ties the two."""
        found = np.full(len(times), MISSING)
        for rank, mine in split(np.arange(len(times)), ranks):
            clock = self.clocks.get(rank)
            if clock is not None:
                shift = 0 if self.shares_clock(rank) else np.rint(clock.offset + clock.drift * (times[mine] - clock.at))
                found[mine] = times[mine] - np.asarray(shift, dtype=np.int64)
        return found

    def recorded(self, times: Int, row: Int) -> Int:
        """Return times as the files have them; MISSING for a file without an epoch, where others have one."""
        has_epoch = self.rows["has_epoch"].to_numpy()[row]
        return np.where(has_epoch | ~np.any(has_epoch), times, MISSING)

    def uncertainty(self, ranks: Int) -> Int:
        """Return by how many ns times of each of the ranks may be misplaced; MISSING where its clock could not be fitted."""
        known, which = np.unique(ranks, return_inverse=True)
        clocks = [self.clocks.get(rank) for rank in known.tolist()]
        return np.array([MISSING if clock is None else round(clock.uncertainty) for clock in clocks], dtype=np.int64)[which]


def executions(ask: Ask) -> list[Execution]:
    """Return every execution with communication kernels. A rank that two processes claim takes no part."""
    return once(ask, _executions)


def _executions(ask: Ask) -> list[Execution]:
    return [_execution(*key, rows) for key, rows in _by_execution(encoded(ask(_CALLS, [])))]


def _by_execution(rows: pa.Table) -> Iterator[tuple[tuple[str, str, str | None], pa.Table]]:
    """Yield the rows of each execution. Rows that name none belong to the only one that their run and tool have."""
    columns = [distinct(rows[name]) for name in ("run", "tool", "execution_id")]
    parts: dict[tuple[str, str], dict[str | None, Int]] = {}
    for _, mine in split(np.arange(rows.num_rows), numbered(*(codes for codes, _ in columns))):
        run, tool, execution = (values[codes[mine[0]]] for codes, values in columns)
        parts.setdefault((str(run), str(tool)), {})[execution] = mine
    for (run, tool), found in sorted(parts.items(), key=lambda item: item[0]):
        if None in found and len(found) == 2:
            found = {next(filter(None, found)): np.sort(np.concatenate([*found.values()]))}
        for execution, mine in sorted(found.items(), key=lambda item: (item[0] is None, item[0])):
            yield (run, tool, execution), rows if len(mine) == rows.num_rows else rows.take(pa.array(mine))


def _execution(run: str, tool: str, execution_id: str | None, rows: pa.Table) -> Execution:
    rank, (process, _), (host, hosts) = integers(rows["rank"]), distinct(rows["process_id"]), distinct(rows["host"])
    order = np.lexsort((integers(rows["kernel_id"]), integers(rows["start_ns"])))
    by_rank = {number: mine for number, mine in split(order, rank[order]) if number != MISSING}
    owners = {number: len(np.unique(process[mine])) for number, mine in by_rank.items()}
    own = [mine for number, mine in by_rank.items() if owners[number] == 1]
    kind = _kinds(rows)
    row, calls = _calls(rows, kind, np.concatenate(own) if own else np.zeros(0, dtype=np.int64))
    matched = match(calls)
    fitted = clocks(calls, matched)
    placed = {number for group in matched for number in np.unique(calls.rank[group.place]).tolist()}
    of_ranks = {number: hosts[host[mine[-1]]] for number, mine in by_rank.items()}
    return Execution(run, tool, execution_id, of_ranks, rows, kind.unsized, row, calls, matched, fitted,
                     _left_out(owners, placed, fitted))


def _calls(rows: pa.Table, kind: _Kinds, chosen: Int) -> tuple[Int, Calls]:
    """Return the calls among the chosen rows (sorted by rank and start), those of two ranks left out, and their rows."""
    rank, start, duration = (integers(rows[name]) for name in ("rank", "start_ns", "duration_ns"))
    resolution = np.ones(rows.num_rows, dtype=np.int64)
    for _, mine in split(chosen, rank[chosen]):
        resolution[mine] = 1 if np.any(start[mine] % _US) or np.any(duration[mine] % _US) else _US
    chosen = chosen[~kind.two_ranks[chosen]]
    group, names = distinct(rows["group_name"])
    payload = np.where(kind.uneven, MISSING, integers(rows["message_bytes"]))
    kernel = np.where(group < 0, distinct(rows["short_name"])[0], -1)
    size, number = integers(rows["group_size"]), integers(rows["group_seq"])
    columns = {
        "rank": rank, "start": start, "end": start + duration, "token": numbered(kind.name, kernel, payload),
        "stream": distinct(rows["stream"])[0], "group": group, "group_size": np.maximum(size, 0),
        "number": np.maximum(number, -1), "resolution": resolution, "paired": kind.paired,
        "is_possible": rows["is_possible"].to_numpy(),
    }
    return chosen, Calls(**{name: column[chosen] for name, column in columns.items()}, groups=[str(name) for name in names])


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What the kernels are by their names: name (a number for the operation, else for the name), and four kinds of them.

    unsized: whose payload says nothing of the call: uneven ones and barriers.
    """

    name: Int
    two_ranks: Mask
    paired: Mask
    uneven: Mask
    unsized: Mask


def _kinds(rows: pa.Table) -> _Kinds:
    (said, collectives), (short, kernels) = distinct(rows["collective"]), distinct(rows["short_name"])
    pair = numbered(said, short)
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    names: list[tuple[str | None, str]] = []
    for place in first.tolist():
        collective, kernel = collectives[said[place]] or "", kernels[short[place]] or ""
        names.append((operation(collective) or operation(kernel), collective))
    codes: dict[str, int] = {}
    name = np.array([codes.setdefault(named or collective, len(codes)) for named, collective in names], dtype=np.int64)
    kinds = [[named in POINT_TO_POINT, named is None and bool(_UNNAMED.search(collective)), named in UNEVEN,
              named in UNEVEN or named == "barrier"]
             for named, collective in names]
    two_ranks, paired, uneven, unsized = np.array(kinds, dtype=bool).reshape(-1, 4)[which].T
    return _Kinds(name[which], two_ranks, paired, uneven, unsized)


def _left_out(owners: Mapping[int, int], placed: set[int], fitted: Mapping[int, Clock]) -> dict[int, str]:
    """Return why ranks with communication kernels take no part."""
    found: dict[int, str] = {}
    for rank, processes in sorted(owners.items()):
        if processes > 1:
            found[rank] = f"{processes} processes claim it"
        elif len(owners) == 1:
            found[rank] = "no other rank was captured"
        elif rank not in placed:
            found[rank] = "none of its calls could be matched with another rank's"
        elif rank not in fitted:
            found[rank] = "too few of its calls could be matched to set its clock"
    return found


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per collective and rank."""
    if clock not in ("fitted", "recorded"):
        raise not_a_choice("collective_match", "clock", clock, ("fitted", "recorded"))
    tables = [_table(execution, clock == "fitted", lag_threshold_ns) for execution in executions(ask) if execution.matched]
    return pa.concat_tables([_SCHEMA.empty_table(), *tables])


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of all matched calls, sorted by call and rank: columns. Times on one clock; MISSING where they are on none.

    call: number of the call over all communicators. kind: of operation, payload and number of ranks (those
    matched, where the group's size is unknown); -1 where the payload is unknown and the operation has one.
    released: the part that its rank's previous collective is, -1 for none.
    """

    group: Int
    kind: Int
    call: Int
    place: Int
    rank: Int
    start: Int
    end: Int
    duration: Int
    released: Int


def _parts(execution: Execution, fitted: bool) -> _Parts:
    matched, calls = execution.matched, execution.calls
    before = np.cumsum([0, *(group.calls for group in matched)])
    call = np.concatenate([group.call + first for group, first in zip(matched, before[:-1], strict=True)])
    place = np.concatenate([group.place for group in matched])
    rank, start, end = calls.rank[place], calls.start[place], calls.end[place]
    row = execution.row[place]
    shown = [execution.corrected(rank, time) if fitted else execution.recorded(time, row) for time in (start, end)]
    which = np.repeat(np.arange(len(matched)), [len(group.call) for group in matched])
    size = np.where(calls.group_size[place] > 0, calls.group_size[place], np.bincount(call)[call])
    is_known = (integers(execution.rows["message_bytes"])[row] != MISSING) | execution.unsized[row]
    kind = np.where(is_known, numbered(calls.token[place], size), -1).astype(np.int64)
    return _Parts(which, kind, call, place, rank, shown[0], shown[1], end - start, _released(rank, start, end, call))


def _released(rank: Int, start: Int, end: Int, call: Int) -> Int:
    """Return, for each part, the last collective of its rank that had ended when it began; -1 for none."""
    found = np.full(len(rank), -1, dtype=np.int64)
    for _, mine in split(np.arange(len(rank)), rank):
        ended = mine[np.lexsort((call[mine], end[mine]))]
        before = np.searchsorted(end[ended], start[mine], side="right")
        found[mine[before > 0]] = ended[before[before > 0] - 1]
    return found


def _table(execution: Execution, fitted: bool, lag_threshold_ns: int | None) -> pa.Table:
    parts = _parts(execution, fitted)
    call, start, every = parts.call, parts.start, np.arange(len(parts.call))
    first, second, last = _arrivals(parts)
    lag = after(start, last, start, second)
    limits = partial(_limits, execution, parts, lag_threshold_ns)
    limit = np.where(lag == MISSING, MISSING, limits(second, last))
    is_named = (limit != MISSING) & (lag > limit)
    begins = np.flatnonzero(np.diff(call, prepend=-1))
    arrivals = Arrivals(call, start, parts.end, parts.released, second, last, lag, is_named, parts.group[begins],
                        parts.kind[begins], limits)
    inherited, most = arrivals.inherited
    wait = after(start, last[call], start, every)
    waited = sums(np.maximum(wait, 0), begins)
    row = execution.row[parts.place]
    of_call = {
        "last_rank": parts.rank[last], "inherited_ns": inherited, "undecided_ns": most - inherited,
        "propagated_wait_ns": propagated(arrivals, waited)}
    return _output(execution, parts, row, {
        "call_index": call - call[begins][np.searchsorted(parts.group[begins], parts.group)],
        "step": integers(execution.rows["step"])[row[begins]][call], "rank": parts.rank,
        "arrival_ns": after(start, every, start, first[call]), "wait_ns": wait,
        "transfer_ns": after(np.where(start == MISSING, MISSING, start + parts.duration), every, start, last[call]),
        "lag_ns": lag[call], "lag_threshold_ns": limit[call], "ranks": np.bincount(call)[call],
        **{name: np.where(is_named, values, MISSING)[call] for name, values in of_call.items()},
    })


def _arrivals(parts: _Parts) -> tuple[Int, Int, Int]:
    """Return, for each call, the parts that began first, second last and last; -1 where no so many are on one clock."""
    known = np.flatnonzero(parts.start != MISSING)
    known = known[np.lexsort((parts.rank[known], parts.start[known], parts.call[known]))]
    count = np.bincount(parts.call[known], minlength=int(parts.call[-1]) + 1)
    end = np.cumsum(count)
    found = []
    for place, fewest in ((end - count, 1), (end - 2, 2), (end - 1, 1)):
        which = np.full(len(count), -1, dtype=np.int64)
        which[count >= fewest] = known[place[count >= fewest]]
        found.append(which)
    return found[0], found[1], found[2]


def _limits(execution: Execution, parts: _Parts, threshold_ns: int | None, second: Int, last: Int) -> Int:
    """Return by how many ns two parts may be misplaced against each other, or the threshold; MISSING where unknown."""
    if threshold_ns is not None:
        return np.full(len(last), threshold_ns)
    one, other = (execution.uncertainty(parts.rank[which]) for which in (second, last))
    return np.where((one == MISSING) | (other == MISSING), MISSING, one + other)


def _output(execution: Execution, parts: _Parts, row: Int, figures: Mapping[str, Int]) -> pa.Table:
    """Return the table: figures, and what of each part stands in the rows of its execution."""
    groups = [(group.group, group.method) for group in execution.matched]
    taken = execution.rows.select(["collective", "group_size", "message_bytes", "kernel_id"]).take(pa.array(row))
    columns: dict[str, Any] = {name: nullable(values) for name, values in figures.items()}
    columns |= {name: taken[name] for name in taken.column_names}
    columns |= {name: pa.repeat(pa.scalar(getattr(execution, name), pa.string()), len(row))
                for name in ("run", "tool", "execution_id")}
    columns |= {name: pa.array([group[place] for group in groups], pa.string()).take(pa.array(parts.group))
                for place, name in enumerate(("group_name", "method"))}
    return pa.table([columns[name].cast(kind) for name, kind in zip(_SCHEMA.names, _SCHEMA.types, strict=True)], schema=_SCHEMA)
