"""Rows of the view `step_timeline` -> the steps of a page's timeline: lanes of streams and threads, and what lies on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import Int, distinct
from nsightlens.names.process_label import process_label
from nsightlens.views import registry
from nsightlens.views.figures import thread_name
from nsightlens.views.palette import SLICES, slice_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsightlens.store.store import Store

_KEYS = ("run", "tool", "rank", "process_id", "window_index", "step", "step_ns")
_LANE = ("device_id", "stream", "thread", "kind", "depth")
_KINDS = tuple(SLICES)
_DEEPEST = 12
_KNOWN = ("op", "op_shapes", "launch_id")
MOST = 500_000
"""Slices of the steps of a store that are read one by one."""
FINEST = 4000
"""Stretches per step into which the store itself merges short slices, where there are more."""
_EVENTS = "SELECT (SELECT count(*) FROM kernels) + (SELECT count(*) FROM api_calls) + (SELECT count(*) FROM ranges) AS events"
_MERGED = """
WITH slices AS (SELECT *, greatest(1, step_ns // {bins}) AS length FROM ({steps}))
SELECT run, tool, rank, process_id, window_index, step, step_ns, device_id, stream, thread, kind, family, depth,
    CASE WHEN count(*) = 1 THEN min(name) END AS name, CASE WHEN count(*) = 1 THEN min(event_id) END AS event_id,
    min(start_ns) AS start_ns, max(start_ns + duration_ns) - min(start_ns) AS duration_ns, count(*) AS pieces
FROM slices
GROUP BY run, tool, rank, process_id, window_index, step, step_ns, device_id, stream, thread, kind, family, depth,
    start_ns // length, CASE WHEN duration_ns >= length THEN event_id END
ORDER BY run, tool, rank, process_id, window_index, step
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one process: its keys, its lanes top to bottom, and a row per slice.

    Rows: lane, start_ns (since the step's start), duration_ns, kind (place in SLICES), name, op, shapes, launched_by (row of
    the API call, NULL where unknown), pieces (how many slices are drawn as this one).
    """

    keys: dict[str, Any]
    lanes: tuple[str, ...]
    slices: pa.Table

    def merged(self, bins: int) -> Step:
        """Return the step with slices shorter than a `bins`-th of it merged with neighbours of their kind in that stretch."""
        return Step(self.keys, self.lanes, _merged(self.slices, max(1, self.keys["step_ns"] // bins)))


def steps(store: Store, runs: Sequence[str], which_step: int | None = None) -> Iterator[Step]:
    """Yield one step of each process: number `which_step`, or the middle one.

    Of more than MOST slices in all, those shorter than a FINEST-th of their step come merged with neighbours of their kind.
    """
    only = {"only_run": list(runs)} if runs else {}
    table = _slices(store, {**({} if which_step is None else {"which_step": which_step}), **only}).combine_chunks()
    table = _with_launches(store, table)
    begins = _begins(table)
    keys = table.select(_KEYS).take(pa.array(begins)).to_pylist()
    among = {key["process_id"] for key in keys}
    for key, begin, length in zip(keys, begins.tolist(), np.diff(begins, append=table.num_rows).tolist(), strict=True):
        label = {} if key["process_id"] is None else {"process": process_label(key["process_id"], among)}
        yield _step(key | label, table.slice(begin, length))


def _begins(table: pa.Table) -> Int:
    """Return where the rows of each step of each process begin."""
    new = np.zeros(table.num_rows, dtype=bool)
    new[:1] = True
    for name in _KEYS:
        codes, _ = distinct(table[name])
        new[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(new)


def _slices(store: Store, parameters: dict[str, object]) -> pa.Table:
    """Return rows of `step_timeline` with `pieces`: how many slices each is."""
    if store.sql(_EVENTS)["events"][0].as_py() > MOST:
        query, values = registry.query(store.views["step_timeline"], parameters)
        if store.sql(f"SELECT count(*) AS slices FROM ({query})", values)["slices"][0].as_py() > MOST:
            return store.sql(_MERGED.format(steps=query, bins=FINEST), values)
    table = store.view("step_timeline", **parameters)
    return table.append_column("pieces", pa.array(np.ones(table.num_rows, np.int64)))


def _with_launches(store: Store, table: pa.Table) -> pa.Table:
    """Return the rows with operator, shapes and launching call (its id) of those that are kernels."""
    ids = _where(table, "kernel")
    known = store.sql(f"SELECT kernel_id, {', '.join(_KNOWN)} FROM kernels WHERE kernel_id IN (SELECT unnest(?))",
                      [ids.drop_null().to_pylist()])
    where = pc.index_in(ids, value_set=known["kernel_id"].combine_chunks(), skip_nulls=True)
    for name in _KNOWN:
        table = table.append_column(name, known[name].take(where))
    return table


def _step(key: dict[str, Any], rows: pa.Table) -> Step:
    rows = rows.filter(pc.fill_null(pc.less(rows["depth"], _DEEPEST), True))
    lanes, numbers = _lanes(rows)
    kinds = [slice_kind(kind, family) for kind, family in
             zip(rows["kind"].to_pylist(), rows["family"].to_pylist(), strict=True)]
    table = pa.table({
        "lane": pa.array(numbers, pa.int64()), "start_ns": rows["start_ns"], "duration_ns": rows["duration_ns"],
        "kind": pa.array([_KINDS.index(kind) for kind in kinds], pa.int64()), "name": rows["name"],
        "op": rows["op"], "shapes": rows["op_shapes"], "pieces": rows["pieces"],
        "event_id": rows["event_id"], "launch_id": rows["launch_id"], "call_id": _where(rows, "api_call"),
    }).sort_by([("lane", "ascending"), ("start_ns", "ascending"), ("duration_ns", "descending"), ("event_id", "ascending")])
    return Step(key, tuple(lanes), _concat_names(table))


def _where(rows: pa.Table, kind: str) -> pa.ChunkedArray:
    """Return the ids of rows of one kind, NULL for the others: tables number their rows on their own, and ids repeat."""
    return pc.if_else(pc.equal(rows["kind"], kind), rows["event_id"], None)


def _lanes(rows: pa.Table) -> tuple[list[str], list[int]]:
    """Return the label of each lane, and the lane of each row: streams first, then threads with calls above their ranges."""
    places = [_place(*values) for values in zip(*(rows[name].to_pylist() for name in _LANE), strict=True)]
    order = sorted(set(places))
    devices = {place[1] for place in order if place[0] == 0}
    labels, seen = [], set()
    for kind, device, line, _ in order:
        if kind == 0:
            gpu = f"GPU {str(device).rsplit('gpu', 1)[-1][-8:]} " if len(devices) > 1 else ""
            labels.append(f"{gpu}{'no stream' if line < 0 else f'stream {line}'}")
        else:
            labels.append("" if line in seen else thread_name(line))
            seen.add(line)
    number = {place: index for index, place in enumerate(order)}
    return labels, [number[place] for place in places]


def _place(device: Any, stream: int | None, thread: int | None, kind: str, depth: int | None) -> tuple[int, str, int, int]:
    if thread is None:
        return 0, str(device or ""), -1 if stream is None else stream, 0
    return 1, "", thread, 0 if kind == "api_call" else 1 + (depth or 0)


def _concat_names(table: pa.Table) -> pa.Table:
    """Return the rows with the row of the call that launched them, in place of ids."""
    called = table["call_id"].combine_chunks()
    calls = pa.array(np.flatnonzero(called.is_valid()))
    by = calls.take(pc.index_in(table["launch_id"].combine_chunks(), value_set=called.drop_null(), skip_nulls=True))
    return table.select([name for name in table.column_names if not name.endswith("_id")]).append_column("launched_by", by)


def _merged(table: pa.Table, length: int) -> pa.Table:
    lane, start, duration, kind = (table[name].to_numpy() for name in ("lane", "start_ns", "duration_ns", "kind"))
    if not len(lane):
        return table
    stretch = start // length
    alone = duration >= length
    new = np.ones(len(lane), dtype=bool)
    new[1:] = (np.diff(lane) != 0) | (np.diff(stretch) != 0) | (np.diff(kind) != 0) | alone[1:] | alone[:-1]
    first = np.flatnonzero(new)
    pieces = np.add.reduceat(table["pieces"].to_numpy(), first)
    ends = np.maximum.reduceat(start + duration, first)
    found = table.take(pa.array(first))
    is_one = pa.array(pieces == 1)
    changed = {"duration_ns": pa.array(ends - start[first]), "pieces": pa.array(pieces.astype(np.int64)),
               "launched_by": pa.nulls(len(first), pa.int64())}
    texts = {name: pc.if_else(is_one, found[name], None) for name in ("name", "op", "shapes")}
    return pa.table({name: {**changed, **texts}.get(name, found[name]) for name in found.column_names})
