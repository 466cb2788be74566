"""Causality check: GPU work that starts before its launching call, by a wrong record or by the GPU's clock as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightlens.columns.arrays import MISSING, Int, median, row_chunks
from nsightlens.columns.spilled import LongColumn, SpillFolder, whole

MARGIN_NS = 1_000
"""By how much clocks may err; Kineto wrote whole microseconds until 2024."""
FAR_NS = 1_000_000
"""Early by more than this is no question of two clocks."""


@dataclass(frozen=True, slots=True)
class Early:
    """Work of one table that starts before its launch call: the rows, in order, and by how much (ns). linked: all with a call."""

    rows: Int
    by: Int
    linked: int


def early(start: LongColumn, call_start: LongColumn) -> Early:
    """Return the work that starts before its call. start, call_start: per row, in ns, MISSING where unknown."""
    rows, by, linked = [], [], 0
    for some in row_chunks(len(start)):
        begun, called = start[some], call_start[some]
        known = (begun != MISSING) & (called != MISSING)
        linked += int(np.count_nonzero(known))
        before = np.flatnonzero(known & (begun < called - MARGIN_NS))
        rows.append(before + some.start)
        by.append(called[before] - begun[before])
    none = np.empty(0, dtype=np.int64)
    return Early(np.concatenate([none, *rows]), np.concatenate([none, *by]), linked)


def common_shift(tables: list[Early]) -> int:
    """Return by how much (ns) at least the GPU's clock is behind: the median, where over half of the work is early; else 0."""
    by = np.concatenate([table.by for table in tables])
    return median(by) if 2 * len(by) > sum(table.linked for table in tables) else 0


def far(table: Early) -> Int:
    """Return the rows whose own time is off: those that clocks alone cannot explain."""
    rows: Int = table.rows[table.by > FAR_NS]
    return rows


def without(start: LongColumn, rows: Int, folder: SpillFolder) -> LongColumn:
    """Return the starts, unknown in these rows."""
    if not len(rows):
        return start
    known = whole(start).copy()
    known[rows] = MISSING
    return folder.spill(known)
