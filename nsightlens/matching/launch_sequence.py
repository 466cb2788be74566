"""What one tool recorded of a process, as a sequence of launches: the kernels, and the calls whose kernels it lacks (holes)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import Int, Mask
from nsightlens.matching import timelines
from nsightlens.matching.ncu_positions import UNKNOWN
from nsightlens.matching.sequence_alignment import HOLE

Ask = Callable[[str, Sequence[object]], pa.Table]

_LAUNCHES = """
SELECT
    k.kernel_id, k.step, k.kernel_key, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z,
    k.registers_per_thread, k.shared_bytes, coalesce(c.start_ns, k.start_ns, 0) AS launched_ns, k.launch_id, k.range_id
FROM kernels AS k
LEFT JOIN api_calls AS c ON k.launch_id = c.launch_id AND k.profile_id = c.profile_id
WHERE k.process_id = ? AND k.profile_id = ?
ORDER BY k.launch_index
"""
_HOLES = """
SELECT c.start_ns, c.range_id, c.name ILIKE '%GraphLaunch%' AS is_graph
FROM api_calls AS c
WHERE c.process_id = ? AND c.profile_id = ? AND c.start_ns IS NOT NULL AND coalesce(c.return_value, 0) = 0
    AND regexp_matches(c.name, '(?i)^(cuda|cu|hip)(Ext|Module)*(Launch(Cooperative)?Kernel|GraphLaunch)')
    AND NOT EXISTS (
        FROM kernels AS k WHERE k.process_id = c.process_id AND k.profile_id = c.profile_id AND k.launch_id = c.launch_id)
ORDER BY c.start_ns
"""
_STEPS = """
SELECT step, start_ns, start_ns + duration_ns AS end_ns
FROM ranges
WHERE process_id = ? AND profile_id = ? AND kind = 'step' AND duration_ns IS NOT NULL AND step IS NOT NULL
ORDER BY start_ns
"""
_CONFIGURATION = ("kernel_key", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_RESOURCES = ("registers_per_thread", "shared_bytes")


@dataclass(frozen=True, slots=True)
class LaunchSequence:
    """The launches of one process in their order, holes among them. Arrays of equal length.

    place: row of `table` per item, HOLE for a hole; step: UNKNOWN where there is none; range_id: the innermost range around the
    launch, -1 where there is none, UNKNOWN where the launching call is not known; graph: a hole that is the launch of a graph.
    """

    process: dict[str, Any]
    table: pa.Table
    place: Int
    step: Int
    range_id: Int
    graph: Mask

    @property
    def kernel_id(self) -> Int:
        """Return the id of each row of the table."""
        found: Int = self.table["kernel_id"].to_numpy()
        return found

    def tokens(self, of_rows: Int) -> Int:
        """Return the token of each item, from those of the rows of the table."""
        padded = np.append(of_rows, HOLE)
        found: Int = padded[np.where(self.place == HOLE, len(of_rows), self.place)]
        return found


def recorded(ask: Ask, process: dict[str, Any]) -> LaunchSequence:
    """Return the launches of a process (keys process_id and profile_id); `ask` answers SQL."""
    key = [process["process_id"], process["profile_id"]]
    table = ask(_LAUNCHES, key)
    holes = ask(_HOLES, key)
    time, hole_time = table["launched_ns"].to_numpy(), holes["start_ns"].to_numpy()
    order = timelines.with_holes(time, np.arange(len(time)), hole_time)
    own = table["step"].fill_null(UNKNOWN).to_numpy()
    step = np.concatenate([own, _step_at(ask(_STEPS, key), hole_time)])[order]
    called = np.where(table["launch_id"].is_null().to_numpy(), UNKNOWN, -1)
    around = np.where(table["range_id"].is_null().to_numpy(), called, table["range_id"].fill_null(0).to_numpy())
    ranges = np.concatenate([around, holes["range_id"].fill_null(-1).to_numpy()])[order]
    graph = np.concatenate([np.zeros(len(time), dtype=np.bool_), holes["is_graph"].to_numpy(zero_copy_only=False)])[order]
    return LaunchSequence(process, table, np.where(order < len(time), order, HOLE), step, ranges, graph)


def _step_at(steps: pa.Table, time: Int) -> Int:
    """Return the number of the step around each time, UNKNOWN outside."""
    if not steps.num_rows:
        return np.full(len(time), UNKNOWN)
    start, end, number = (steps[name].to_numpy() for name in ("start_ns", "end_ns", "step"))
    at = np.searchsorted(start, time, side="right") - 1
    return np.where((at >= 0) & (time < end[np.maximum(at, 0)]), number[np.maximum(at, 0)], UNKNOWN)


def tokens(one: pa.Table, other: pa.Table) -> tuple[Int, Int]:
    """Return a number per launch of both: equal for the same key and configuration, resources too where both know them.

    A launch without a key has a number of its own.
    """
    both = pa.concat_tables([one, other])
    known = [name for name in _RESOURCES if not one[name].null_count and not other[name].null_count]
    code = np.zeros(both.num_rows, dtype=np.int64)
    for name in (*_CONFIGURATION, *known):
        values = both[name].combine_chunks().dictionary_encode()
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        indices = values.indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
        code = np.unique(code * (len(values.dictionary) + 1) + indices, return_inverse=True)[1].astype(np.int64)
    nameless = both["kernel_key"].is_null().to_numpy()
    code[nameless] = code.max(initial=0) + 1 + np.arange(int(nameless.sum()))
    return code[: one.num_rows], code[one.num_rows :]
