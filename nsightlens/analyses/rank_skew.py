"""Per training step and rank: how late it came to the collectives, how long it waited, and how long the others waited for it.

A row is one rank in one step of one execution; step is NULL for collectives outside of steps. A late rank is named only
where its lag is beyond the uncertainty of the clocks (see collective_match); the row with rank NULL holds the collectives
whose last rank is unknown. Waiting is the time between a rank's own start and the last rank's start of the same call.
@scope run
@requires _collective_kernels, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A step of a collective is that of its lowest rank; steps are numbered alike on all ranks.
@assumes Lateness shows in collectives only: a slow rank that others never wait for has no figure.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@column run                Run.
@column tool               nsys or kineto.
@column execution_id       Start of the job, from a sidecar; NULL without one.
@column step               Training step; NULL outside of steps.
@column rank               Rank; NULL: the collectives whose last rank is unknown.
@column collectives        Matched collectives that the rank took part in (rank NULL: those whose last rank is unknown).
@column times_last         Collectives that all others waited for this rank.
@column caused_delay_ns    How much earlier these would have begun without it: its lags behind the second last, less inherited.
@column inherited_delay_ns Its lags because its previous collective released it later than the second last (see collective_match).
@column others_wait_ns     How long the other ranks together waited in them, each from its own start; less the inherited share.
@column wait_ns            How long this rank waited for others, over all its collectives.
@column median_arrival_ns  Median of its starts after the first rank's start.
@column max_arrival_ns     The largest of these.
@column lag_threshold_ns   Largest lag that would not have been enough to name a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask, collective_match

_KEYS = ("run", "tool", "execution_id")
_FIGURES = ("collectives", "times_last", "caused_delay_ns", "inherited_delay_ns", "others_wait_ns", "wait_ns",
            "median_arrival_ns", "max_arrival_ns", "lag_threshold_ns")


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per step and rank."""
    rows = collective_match.analyse(ask, clock=clock, lag_threshold_ns=lag_threshold_ns).to_pylist()
    return summed(rows, (*_KEYS, "step"))


def summed(rows: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> pa.Table:
    """Return the rows of collective_match summed per `keys` and rank; rank NULL: calls whose last rank is unknown."""
    calls: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        calls.setdefault((*(row[key] for key in _KEYS), row["group_name"], row["method"], row["call_index"],
                          *(row[key] for key in keys)), []).append(row)
    books: dict[tuple[Any, ...], dict[int | None, list[dict[str, Any]]]] = {}
    for call in calls.values():
        book = books.setdefault(tuple(call[0][key] for key in keys), {})
        waited = sum(row["wait_ns"] or 0 for row in call)
        for row in call:
            is_last = row["last_rank"] is not None and row["last_rank"] == row["rank"]
            book.setdefault(row["rank"], []).append({**row, "is_last": is_last, "all_waited": waited})
        if call[0]["last_rank"] is None:
            book.setdefault(None, []).append({**call[0], "is_last": False, "all_waited": 0})
    found = [
        dict(zip(keys, key, strict=True)) | {"rank": rank} | _figures(rank, mine)
        for key, book in sorted(books.items(), key=lambda item: _order(item[0]))
        for rank, mine in sorted(book.items(), key=lambda item: _order((item[0],)))
    ]
    types = {"run": pa.string(), "tool": pa.string(), "execution_id": pa.string(), "step": pa.int64(), "rank": pa.int32()}
    schema = pa.schema([(name, types[name]) for name in (*keys, "rank")] + [(name, pa.int64()) for name in _FIGURES])
    return pa.Table.from_pylist(found, schema=schema)


def _order(key: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """Return a sort key that puts None last."""
    return tuple((part is None, 0 if part is None else part) for part in key)


def _figures(rank: int | None, rows: list[dict[str, Any]]) -> dict[str, int | None]:
    last = [row for row in rows if row["is_last"]]
    arrivals = [row["arrival_ns"] for row in rows if row["arrival_ns"] is not None] if rank is not None else []
    gates = [row["lag_threshold_ns"] for row in rows if row["lag_threshold_ns"] is not None]
    return {
        "collectives": len(rows),
        "times_last": len(last) if rank is not None else None,
        "caused_delay_ns": sum(row["lag_ns"] - row["inherited_ns"] for row in last) if rank is not None else None,
        "inherited_delay_ns": sum(row["inherited_ns"] for row in last) if rank is not None else None,
        "others_wait_ns": sum(_own_share(row) for row in last) if rank is not None else None,
        "wait_ns": sum(row["wait_ns"] or 0 for row in rows) if rank is not None else None,
        "median_arrival_ns": round(median(arrivals)) if arrivals else None,
        "max_arrival_ns": max(arrivals, default=None),
        "lag_threshold_ns": max(gates, default=None),
    }


def _own_share(row: Mapping[str, Any]) -> int:
    """Return how long the others waited for a last rank that came late by itself."""
    lag: int = row["lag_ns"]
    waited: int = row["all_waited"]
    return waited * (lag - row["inherited_ns"]) // lag if row["inherited_ns"] else waited
