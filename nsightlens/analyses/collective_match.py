"""Each collective across its ranks: when each rank arrived, which was last, how long the others waited, how long the transfer
took. A row is one collective on one rank of one execution. Only ranks with known numbers take part. Point-to-point calls
(send, recv) are not collectives, but unnamed sends and receives that end together on all ranks count as an all-to-all.
collective_coverage shows what could not be matched. Times of different ranks are compared on the clock of the lowest rank (see
rank_clock); ranks that name no two hosts and whose clocks agree within the uncertainty share a clock. last_rank is known only
if that rank came later than the second last by more than the clocks' error; else it is NULL: cannot tell.
@scope rows
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, _profile_executions, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A rank whose previous collective was another call than that of the second last, and ended later, was delayed by it.
@assumes Each of several ranks that the clocks cannot tell apart may be the second last: their difference is undecided.
@assumes Such delay is followed back over calls of one kind (operation, payload, ranks; all known) of two groups, 1,000 at most.
@assumes A rank is charged the time by which the call would have begun earlier without it; what is left, or within the clocks'
    error, is charged to no rank.
@assumes Captures without an execution_id belong to one execution per run and tool, unless `recordings` shows several.
@assumes A rank that two processes claim is left out.
@assumes Equal host names are one host, and processes of one host read one clock.
@assumes clock := 'recorded' takes the files' clocks for one clock: right on one host only.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@first rank, step, collective, wait_ns, transfer_ns, last_rank, lag_ns
@column run               Run.
@column tool              nsys or kineto.
@column execution_id      Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.analyses import Ask, cached_per_store
from nsightlens.analyses._executions import Execution, executions
from nsightlens.columns.arrays import MISSING, Int, Places, integers, nullable, numbered, wide
from nsightlens.errors import not_a_choice
from nsightlens.matching.propagation import Arrivals, Several, after, propagated

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("group_name", pa.string()),
    ("group_size", pa.int32()), ("method", pa.string()), ("call_index", pa.int64()), ("step", pa.int64()),
    ("collective", pa.string()), ("message_bytes", pa.int64()), ("rank", pa.int32()), ("kernel_id", pa.int64()),
    ("arrival_ns", pa.int64()), ("wait_ns", pa.int64()), ("transfer_ns", pa.int64()), ("last_rank", pa.int32()),
    ("lag_ns", pa.int64()), ("lag_threshold_ns", pa.int64()), ("inherited_ns", pa.int64()),
    ("undecided_ns", pa.int64()), ("propagated_wait_ns", pa.int64()), ("ranks", pa.int32()),
])


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per collective and rank."""
    found = compared(ask, clock, lag_threshold_ns)
    return pa.concat_tables([_SCHEMA.empty_table(), *(table for execution in found for table in _tables(execution))])


def compared(ask: Ask, clock: str = "fitted", lag_threshold_ns: int | None = None) -> list[ComparedRanks]:
    """Return the executions with matched calls, their ranks compared."""
    if clock not in ("fitted", "recorded"):
        raise not_a_choice("collective_match", "clock", clock, ("fitted", "recorded"))
    if (clock, lag_threshold_ns) == ("fitted", None):
        return cached_per_store(ask, _compared)
    return _compared(ask, clock, lag_threshold_ns)


def _compared(ask: Ask, clock: str = "fitted", lag_threshold_ns: int | None = None) -> list[ComparedRanks]:
    return [ComparedRanks(execution, clock == "fitted", lag_threshold_ns) for execution in executions(ask) if execution.matched]


@dataclass(frozen=True)
class ComparedRanks:
    """The matched calls of one execution, their ranks compared on one clock. A part of a call is a number: its kernel's place in
    the execution. Figures are columns by call, or are asked for of some parts; times in ns, MISSING for NULL.

    fitted: whether times are on the fitted clocks, else as the files have them. lag_threshold_ns: see above.
    """

    execution: Execution
    fitted: bool
    lag_threshold_ns: int | None

    @cached_property
    def parts(self) -> Several:
        """Return the parts of each call, sorted by rank."""
        size = np.concatenate([np.bincount(group.call) for group in self.execution.matched])
        return Several(np.concatenate([group.place for group in self.execution.matched]), np.cumsum(size) - size, size)

    @cached_property
    def call(self) -> Places:
        """Return the call of each kernel, -1 where it is not matched."""
        found = np.full(len(self.execution.calls.kind), -1, dtype=np.int32)
        found[self.parts.parts] = np.repeat(np.arange(len(self.parts.size), dtype=np.int32), self.parts.size)
        return found

    @property
    def first(self) -> Places:
        """Return the part of each call on the lowest of its ranks."""
        return self.parts.parts[self.parts.begin]

    @cached_property
    def by_rank(self) -> list[tuple[int, Places]]:
        """Return the parts of each rank, the lowest rank first."""
        parts = ((rank, np.flatnonzero(self.call[kernels] >= 0) + kernels.start) for rank, kernels in self.execution.ranks)
        return [(rank, mine.astype(np.int32)) for rank, mine in parts if len(mine)]

    @cached_property
    def arrivals(self) -> Arrivals:
        """Return who came when."""
        calls = self.execution.calls
        kind = calls.kind[self.first]
        members = np.where(calls.kinds.group_size[kind] > 0, calls.kinds.group_size[kind], self.parts.size)
        is_known = (integers(self.execution.kinds["message_bytes"]) != MISSING) | self.execution.unsized
        alike = np.where(is_known[kind], numbered(calls.kinds.token[kind], members), -1)
        start, end = (self.execution.corrected(times) if self.fitted else self.execution.recorded(times)
                      for times in (calls.start, calls.end))
        return Arrivals(self.parts, self.call, start, end, self._released(), self.group, alike, self._limits)

    def _released(self) -> Places:
        """Return, for each part, the last collective of its rank that had ended when it began; -1 for none."""
        found = np.full(len(self.call), -1, dtype=np.int32)
        start, end = self.execution.calls.start, self.execution.calls.end
        for _, mine in self.by_rank:
            ended = mine[np.argsort(end[mine], kind="stable")]
            ends = end[ended]
            if np.any(ends[1:] == ends[:-1]):
                ended = mine[np.lexsort((self.call[mine], end[mine]))]
            before = np.searchsorted(ends, start[mine], side="right")
            found[mine[before > 0]] = ended[before[before > 0] - 1]
        return found

    @cached_property
    def _uncertainty(self) -> Int:
        return self.execution.uncertainty()

    def _limits(self, one: Places, other: Places) -> Int:
        """Return by how many ns parts may be misplaced against each other, or the threshold; MISSING where unknown."""
        if self.lag_threshold_ns is not None:
            return np.full(len(other), self.lag_threshold_ns)
        first, second = (self._uncertainty[self.execution.calls.kind[parts]] for parts in (one, other))
        return np.where((first == MISSING) | (second == MISSING), MISSING, first + second)

    @cached_property
    def group(self) -> Places:
        """Return the communicator of each call: its place in the execution's `matched`."""
        matched = self.execution.matched
        return np.repeat(np.arange(len(matched), dtype=np.int32), [group.calls for group in matched])

    @cached_property
    def call_index(self) -> Int:
        """Return the number of each call within its communicator."""
        before = np.cumsum([0, *(group.calls for group in self.execution.matched)])
        index: Int = np.arange(len(self.group)) - before[self.group]
        return index

    @cached_property
    def step(self) -> Int:
        """Return the step of each call, on the lowest of its ranks."""
        return wide(self.execution.step[self.first])

    @cached_property
    def last_rank(self) -> Int:
        """Return the rank that all others waited for in each call; MISSING: cannot tell."""
        return self._named(wide(self.execution.calls.rank(self.arrivals.last)))

    @cached_property
    def inherited(self) -> Int:
        """Return what the last rank of each call had of its lag from its previous collective."""
        return self._named(self.arrivals.inherited[0])

    @cached_property
    def undecided(self) -> Int:
        """Return what it may have had from there."""
        least, most = self.arrivals.inherited
        return self._named(most - least)

    @cached_property
    def propagated_wait(self) -> Int:
        """Return what ranks waited in later calls because of the last rank of each."""
        return self._named(propagated(self.arrivals))

    def _named(self, values: Int) -> Int:
        return np.where(self.arrivals.is_named, values, MISSING)

    def arrival(self, parts: Places) -> Int:
        """Return by how much parts started after the first one of their call."""
        return after(self.arrivals.start, parts, self.arrivals.start, self.arrivals.first[self.call[parts]])

    def wait(self, parts: Places) -> Int:
        """Return by how much the last one of their call started after parts."""
        return after(self.arrivals.start, self.arrivals.last[self.call[parts]], self.arrivals.start, parts)

    def transfer(self, parts: Places) -> Int:
        """Return by how much parts ended after the last one of their call started; each takes as long as its own clock says."""
        start, last = self.arrivals.start[parts], self.arrivals.last[self.call[parts]]
        end = np.where(start == MISSING, MISSING, start + (self.execution.calls.end[parts] - self.execution.calls.start[parts]))
        return after(end, np.arange(len(parts)), self.arrivals.start, last)


def _tables(found: ComparedRanks) -> Iterator[pa.Table]:
    """Yield the rows of an execution, some calls after others."""
    execution, arrivals = found.execution, found.arrivals
    names = [pa.array([getattr(group, name) for group in execution.matched], pa.string()) for name in ("group", "method")]
    by_call: dict[str, npt.NDArray[Any]] = {
        "call_index": found.call_index, "step": found.step, "last_rank": found.last_rank, "lag_ns": arrivals.lag,
        "lag_threshold_ns": arrivals.lag_limit, "inherited_ns": found.inherited, "undecided_ns": found.undecided,
        "propagated_wait_ns": found.propagated_wait, "ranks": found.parts.size}
    for calls in arrivals.chunks():
        owner, parts = found.parts.of(calls)
        call = calls[owner]
        figures = {name: values[call] for name, values in by_call.items()} | {
            "rank": wide(execution.calls.rank(parts)), "kernel_id": wide(execution.kernel_id[parts]),
            "arrival_ns": found.arrival(parts), "wait_ns": found.wait(parts), "transfer_ns": found.transfer(parts)}
        columns: dict[str, Any] = {name: nullable(values) for name, values in figures.items()}
        columns |= {name: pa.repeat(pa.scalar(getattr(execution, name), pa.string()), len(parts))
                    for name in ("run", "tool", "execution_id")}
        group = pa.array(found.group[call])
        columns |= {name: values.take(group) for name, values in zip(("group_name", "method"), names, strict=True)}
        said = execution.kinds.select(["collective", "group_size", "message_bytes"]).take(pa.array(execution.calls.kind[parts]))
        columns |= {name: said[name] for name in said.column_names}
        yield pa.table([columns[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA)
