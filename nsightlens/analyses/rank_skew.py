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
@requires _collective_kernels, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A step of a collective is that of its lowest rank; steps are numbered alike on all ranks.
@assumes Only collectives show lateness: a slow rank that others never wait for does not appear.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@first step, rank, caused_delay_ns, times_last, others_wait_ns, wait_ns
@column run                Run.
@column tool               nsys or kineto.
@column execution_id       Start of the job, from a sidecar; NULL without one.
@column step               Training step; NULL outside of steps.
@column rank               Rank; NULL: the collectives whose last rank is unknown.
@column collectives        Matched collectives that the rank took part in (rank NULL: those whose last rank is unknown).
@column times_last         Collectives in which all others waited for this rank.
@column caused_delay_ns    How much earlier these would have begun without it: its lags, less what was or may be inherited.
@column inherited_delay_ns Its lags because its previous collective released it later than the second last (see collective_match).
@column others_wait_ns     How long the other ranks together waited for it: for its caused_delay_ns here, and in later ones.
@column propagated_wait_ns What ranks waited in later collectives of any group because this one was late in these by itself.
@column wait_ns            How long this rank waited for others, over all its collectives.
@column median_arrival_ns  Median of its starts after the first rank's start.
@column max_arrival_ns     The largest of these.
@column undecided_delay_ns Its lags that may be inherited or not: it depends on who came second last (see collective_match).
@column lag_threshold_ns   Largest lag that would not have been enough to name a rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.analyses import Ask, collective_match
from nsightlens.columns.arrays import MISSING, Int, Mask, Places, distinct, integers, medians, nullable, numbered, sums
from nsightlens.matching.propagation import share

_KEYS = ("run", "tool", "execution_id")
_NUMBERS = ("call_index", "step", "rank", "arrival_ns", "wait_ns", "last_rank", "lag_ns", "lag_threshold_ns", "inherited_ns",
            "undecided_ns", "propagated_wait_ns")
_TYPES = {"run": pa.string(), "tool": pa.string(), "execution_id": pa.string(), "rank": pa.int32()}


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per step and rank."""
    return summed(collective_match.analyse(ask, clock=clock, lag_threshold_ns=lag_threshold_ns), ["step"])


def summed(matched: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the rows of collective_match summed per execution, `keys` and rank; rank NULL: calls whose last rank is unknown."""
    parts = {name: integers(matched[name]) for name in _NUMBERS}
    execution = _changes(*(distinct(matched[name])[0] for name in _KEYS))
    first = np.flatnonzero(_begins(matched, parts))
    unknown = first[parts["last_rank"][first] == MISSING]
    row = np.concatenate([np.arange(matched.num_rows), unknown])
    rank = np.concatenate([parts["rank"], np.full(len(unknown), MISSING)])
    key = [parts[name][row] for name in keys]
    group = numbered(execution[row], *map(_missing_last, [*key, rank]))
    _, place = np.unique(group, return_index=True)
    figures = _figures(parts, first, row, group, rank)
    columns = {name: matched[name].take(pa.array(row[place])) for name in _KEYS}
    columns |= {name: nullable(values[place]) for name, values in zip((*keys, "rank"), (*key, rank), strict=True)}
    columns |= {name: nullable(values) for name, values in figures.items()}
    return pa.table(columns).cast(pa.schema([(name, _TYPES.get(name, pa.int64())) for name in columns]))


def _changes(*columns: Int) -> Int:
    """Return how often any of the columns has changed down to each row."""
    changed = np.zeros(len(columns[0]), dtype=np.bool_)
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(changed)


def _missing_last(values: Int) -> Int:
    return np.where(values == MISSING, np.iinfo(np.int64).max, values)


def _begins(matched: pa.Table, parts: Mapping[str, Int]) -> Mask:
    """Return which rows are the first of a call: the rows of one are sorted by rank."""
    names = [distinct(matched[name])[0] for name in (*_KEYS, "group_name", "method")]
    begins = np.diff(_changes(*names, parts["call_index"]), prepend=-1) > 0
    begins[1:] |= parts["rank"][1:] <= parts["rank"][:-1]
    return begins


def _figures(parts: Mapping[str, Int], first: Int, row: Int, group: Places, rank: Int) -> dict[str, Int]:
    """Return _FIGURES of each group. first: the first row of each call. row, group, rank: of what is summed."""
    wait, lag = np.maximum(parts["wait_ns"], 0), parts["lag_ns"]
    is_last = (parts["last_rank"] == parts["rank"]) & (parts["last_rank"] != MISSING)
    inherited, undecided, later = (np.where(is_last, parts[name], 0)
                                   for name in ("inherited_ns", "undecided_ns", "propagated_wait_ns"))
    own = np.where(is_last, lag - inherited - undecided, 0)
    waited = np.repeat(sums(wait, first), np.diff(first, append=len(wait)))
    direct = np.where(is_last, share(waited, own, np.where(is_last, lag, 1)), 0)
    order = np.argsort(group, kind="stable")
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    known = rank[order][start] != MISSING

    def added(values: npt.NDArray[Any]) -> Int:
        return np.where(known, sums(values[row][order], start), MISSING)

    summands = {"times_last": is_last, "caused_delay_ns": own, "inherited_delay_ns": inherited,
                "others_wait_ns": _total(direct, later), "propagated_wait_ns": later, "wait_ns": wait}
    arrival = np.where(rank == MISSING, MISSING, parts["arrival_ns"][row])
    return {
        "collectives": np.diff(start, append=len(order)),
        **{name: added(values) for name, values in summands.items()},
        "median_arrival_ns": medians(arrival, group, len(start)),
        "max_arrival_ns": np.maximum.reduceat(arrival[order], start),
        "undecided_delay_ns": added(undecided),
        "lag_threshold_ns": np.maximum.reduceat(parts["lag_threshold_ns"][row][order], start),
    }


def _total(one: Int, other: Int) -> Int:
    """Return the sum of two columns that are not negative; MISSING where one is, or the sum has more than 63 bits."""
    total = one + other
    return np.where((one == MISSING) | (other == MISSING) | (total < 0), MISSING, total)
