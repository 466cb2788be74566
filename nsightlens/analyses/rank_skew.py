"""Per training step and rank: how late it came to the collectives, how long it waited, and how long the others waited for it.

A row is one rank in one step of one execution; step is NULL for collectives outside of steps. A rank counts as late only if
its lag exceeds the uncertainty of the clocks (see collective_match); the row with rank NULL holds the collectives whose last
rank is unknown. A wait lasts from a rank's own start to the last rank's start of the same call. It is charged once: to the
rank that came last, or to the ranks that had held it up, in the step in which they did. The wait_ns of all ranks exceeds
others_wait_ns by the waits of unknown cause (the last rank is unknown, slow transfers or several ranks at once delayed it, or
the cause is undecided).
@scope run
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, _profile_executions, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A step of a collective is that of its lowest rank; steps are numbered alike on all ranks.
@assumes Only collectives show lateness: a slow rank that others never wait for does not appear.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@first step, rank, caused_delay_ns, times_last, others_wait_ns, wait_ns
@column run                Run.
@column tool               nsys or kineto.
@column execution_id       Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
@column step               Training step; NULL outside of steps.
@column rank               Rank; NULL: the collectives whose last rank is unknown.
@column collectives        Matched collectives that the rank took part in (rank NULL: those whose last rank is unknown).
@column times_last         Collectives in which all others waited for this rank.
@column caused_delay_ns    How much earlier these would have begun without it: its lags, less what was or may be inherited.
@column inherited_delay_ns Its lags because its previous collective released it later than the second last (see collective_match).
@column others_wait_ns     Waits of all others up to its start where it was last, less the share it inherited, and in later ones.
@column propagated_wait_ns What ranks waited in later collectives of any group because this one was late in these by itself.
@column wait_ns            How long this rank waited for others, over all its collectives.
@column median_arrival_ns  Median of its starts after the first rank's start.
@column max_arrival_ns     The largest of these.
@column undecided_delay_ns Its lags that may be inherited or not: it depends on who came second last (see collective_match).
@column lag_threshold_ns   Largest lag that would not have been enough to name a rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses.collective_match import ComparedRanks, compared
from nsightlens.columns.arrays import MISSING, Int, medians, nullable, sums
from nsightlens.matching.propagation import share

_LAST = np.iinfo(np.int64).max
"""MISSING, where it comes last."""
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("step", pa.int64()), ("rank", pa.int32()),
    *((name, pa.int64()) for name in (
        "collectives", "times_last", "caused_delay_ns", "inherited_delay_ns", "others_wait_ns", "propagated_wait_ns", "wait_ns",
        "median_arrival_ns", "max_arrival_ns", "undecided_delay_ns", "lag_threshold_ns"))])


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per step and rank."""
    return summed(compared(ask, clock, lag_threshold_ns), by_step=True)


def summed(executions: Sequence[ComparedRanks], by_step: bool) -> pa.Table:
    """Return what ranks waited and caused, summed per execution and rank (and step); rank NULL: calls whose last is unknown."""
    table = pa.concat_tables([_SCHEMA.empty_table(), *(_summed(execution, by_step) for execution in executions)])
    return table if by_step else table.drop_columns("step")


def _summed(found: ComparedRanks, by_step: bool) -> pa.Table:
    """Return the rows of one execution. Cells are numbered by step and rank, those without a known one last."""
    step = found.step if by_step else np.full(len(found.group), MISSING)
    steps, at = np.unique(np.where(step == MISSING, _LAST, step), return_inverse=True)
    ranks = np.array([*(rank for rank, _ in found.by_rank), _LAST])
    cells = len(steps) * len(ranks)
    figures = {name: np.full(cells, MISSING) for name in _SCHEMA.names[5:]}
    for place, (cell, of_cells) in enumerate(_rank_cells(found, at * len(ranks))):
        for name, values in of_cells.items():
            figures[name][cell + place] = values
    for cell, of_cells in (_unknown(found, at * len(ranks) + len(ranks) - 1), _caused(found, at * len(ranks), ranks)):
        for name, values in of_cells.items():
            figures[name][cell] = values
    there = np.flatnonzero(figures["collectives"] != MISSING)
    keys = {"step": steps[there // len(ranks)], "rank": ranks[there % len(ranks)]}
    columns = [*(pa.repeat(pa.scalar(getattr(found.execution, name), pa.string()), len(there)) for name in _SCHEMA.names[:3]),
               *(nullable(np.where(values == _LAST, MISSING, values)) for values in keys.values()),
               *(nullable(values[there]) for values in figures.values())]
    return pa.table([column.cast(kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)], schema=_SCHEMA)


Cells = tuple[Int, dict[str, Int]]
"""Some cells, and figures of each."""


def _rank_cells(found: ComparedRanks, cell: Int) -> Iterator[Cells]:
    """Yield, of each rank, what its parts say. cell: of each call, that of the lowest rank."""
    for _, parts in found.by_rank:
        call = found.call[parts]
        order = np.argsort(cell[call], kind="stable")
        parts, call = parts[order], call[order]
        first = np.flatnonzero(np.diff(cell[call], prepend=-1))
        size = np.diff(first, append=len(call))
        arrival = found.arrival(parts)
        median = medians(arrival, np.repeat(np.arange(len(first)), size), len(first))
        none = np.where(median == MISSING, MISSING, 0)  # without a common clock nothing is known of who was late
        yield cell[call[first]], {
            "collectives": size, "times_last": none, "caused_delay_ns": none, "inherited_delay_ns": none, "others_wait_ns": none,
            "propagated_wait_ns": none, "undecided_delay_ns": none, "median_arrival_ns": median,
            "wait_ns": np.where(median == MISSING, MISSING, sums(np.maximum(found.wait(parts), 0), first)),
            "max_arrival_ns": np.maximum.reduceat(arrival, first),
            "lag_threshold_ns": np.maximum.reduceat(found.arrivals.lag_limit[call], first)}


def _unknown(found: ComparedRanks, cell: Int) -> Cells:
    """Return how many calls have no known last rank, and the largest lag that is not enough. cell: of each call."""
    call = np.flatnonzero(~found.arrivals.is_named)
    call = call[np.argsort(cell[call], kind="stable")]
    first = np.flatnonzero(np.diff(cell[call], prepend=-1))
    if not len(first):
        return first, {}
    return cell[call[first]], {"collectives": np.diff(first, append=len(call)),
                               "lag_threshold_ns": np.maximum.reduceat(found.arrivals.lag_limit[call], first)}


def _caused(found: ComparedRanks, cell: Int, ranks: Int) -> Cells:
    """Return, of calls whose last rank is known, what that rank caused. cell: of each call, that of the lowest rank."""
    call = np.flatnonzero(found.arrivals.is_named)
    mine = cell[call] + np.searchsorted(ranks, found.last_rank[call])
    order = np.argsort(mine, kind="stable")
    call, mine = call[order], mine[order]
    first = np.flatnonzero(np.diff(mine, prepend=-1))
    if not len(first):
        return first, {}
    lag, inherited, undecided, later = (values[call] for values in (
        found.arrivals.lag, found.inherited, found.undecided, found.propagated_wait))
    own = lag - inherited - undecided
    direct = share(found.arrivals.waited[call], own, lag)
    summands = {"caused_delay_ns": own, "inherited_delay_ns": inherited, "others_wait_ns": _total(direct, later),
                "propagated_wait_ns": later, "undecided_delay_ns": undecided}
    return mine[first], {"times_last": np.diff(first, append=len(call)),
                         **{name: sums(values, first) for name, values in summands.items()}}


def _total(one: Int, other: Int) -> Int:
    """Return the sum of two columns that are not negative; MISSING where one is, or the sum has more than 63 bits."""
    total = one + other
    return np.where((one == MISSING) | (other == MISSING) | (total < 0), MISSING, total)
