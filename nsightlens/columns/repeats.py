"""GPU work that a file records more than once: rows equal in every column, of a launch that has nothing else.

Kernels of one graph share a correlation id, and two nodes of it may well be equal in whole microseconds: rows repeat each other
only where all rows of their launch stand there equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import MISSING, Int, hash_rows, numbered
from nsightlens.columns.spilled import LongColumn, values_at, whole


def repeated(
    owner: npt.NDArray[Any], template: LongColumn, correlation: LongColumn, varying: Sequence[LongColumn],
    content: Callable[[Int], Sequence[Hashable]],
) -> Int:
    """Return the rows, in order, that stand there already.

    owner: a number of the window and process, per template. varying: further columns that equal rows agree in. content: what
    stands in some rows, in all columns.
    """
    rows = _rows_sharing_ids(whole(correlation))
    template_of, ids = values_at(template, rows).astype(np.int64), values_at(correlation, rows).astype(np.int64)
    columns = [template_of, ids, *(values_at(column, rows).astype(np.int64) for column in varying)]
    alike = hash_rows(columns, len(rows))
    in_order = np.sort(alike)
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    if not len(twice):
        return rows[:0]
    launch = hash_rows([owner[template_of].astype(np.int64), ids], len(rows))
    suspect = np.isin(launch, launch[np.isin(alike, twice)])
    return _beyond_first(rows[suspect], launch[suspect].tolist(), content(rows[suspect]))


def _rows_sharing_ids(correlation: Int) -> Int:
    """Return the rows, in order, whose correlation id (0 and NULL are none) another row has, too."""
    number = numbered(correlation)
    shared = np.bincount(number)[number] > 1
    return np.flatnonzero(shared & (correlation != 0) & (correlation != MISSING))


def _beyond_first(rows: Int, launch: Sequence[int], content: Sequence[Hashable]) -> Int:
    """Return the rows that an equal one precedes, of those launches all rows of which stand there equally often."""
    count = Counter(zip(launch, content, strict=True))
    often: dict[int, set[int]] = {}
    for (of, _), times in count.items():
        often.setdefault(of, set()).add(times)
    seen: set[tuple[int, Hashable]] = set()
    beyond = []
    for row, of, text in zip(rows.tolist(), launch, content, strict=True):
        if (of, text) in seen and len(often[of]) == 1:
            beyond.append(row)
        seen.add((of, text))
    return np.array(beyond, dtype=np.int64)
