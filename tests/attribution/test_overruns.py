"""Which kernels outlast what their stream allows: as a plain definition says, whatever the order and number of the rows."""

from __future__ import annotations

import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.attribution import overruns
from nsightlens.attribution.overruns import MARGIN_NS, KernelLaunches
from nsightlens.columns import arrays
from nsightlens.columns.arrays import MISSING
from nsightlens.columns.spilled import SpilledColumn, SpillFolder

Row = tuple[int, int | None, int | None, int | None, int | None]
"""Template, start, duration, correlation id, graph node."""


def found(rows: list[Row], streams: list[int], *, on_disk: bool = False) -> list[int | None]:
    """Return overrun_ns of each row. streams: of each template; all have one owner."""
    template, start, duration, correlation, node = (
        np.array([MISSING if value is None else value for value in column], dtype=np.int64)
        for column in (zip(*rows, strict=True) if rows else [()] * 5))
    stream = np.array(streams, dtype=np.int32)
    with tempfile.TemporaryDirectory() as folder:
        spill = SpillFolder(Path(folder))
        columns: list[Any] = [_spilled(spill, one) if on_disk else one for one in (start, duration, correlation, node)]
        late = overruns.overruns(KernelLaunches(stream, np.zeros(len(stream), np.int32), template.astype(np.int32), *columns))
    assert late.rows.tolist() == sorted(late.rows.tolist())
    marked = dict(zip(late.rows.tolist(), late.overrun.tolist(), strict=True))
    values = [None if row[1] is None or row[2] is None or streams[row[0]] < 0 else marked.get(place, 0)
              for place, row in enumerate(rows)]
    return [None if value == MISSING else value for value in values]


def _spilled(folder: SpillFolder, values: Any) -> SpilledColumn:
    column = folder.column()
    for first in range(0, len(values), 5):
        column.append(values[first : first + 5])
    return column


def plainly(rows: list[Row], streams: list[int]) -> list[int | None]:
    """Return the same by the definition: of each stream's kernels by start and duration."""
    result: list[int | None] = [None] * len(rows)
    launched = [row[3] for row in rows if row[3]]
    placed = [place for place, row in enumerate(rows) if row[1] is not None and streams[row[0]] >= 0]
    order = sorted(placed, key=lambda p: (streams[rows[p][0]], rows[p][1], MISSING if rows[p][2] is None else rows[p][2], p))
    for _, group in groupby(order, key=lambda place: streams[rows[place][0]]):
        kernels = list(group)
        starts = [rows[place][1] for place in kernels] + [None, None]
        for at, place in enumerate(kernels):
            _, start, duration, correlation, node = rows[place]
            if start is None or duration is None:
                continue
            end, following, second = start + duration, starts[at + 1], starts[at + 2]
            if second is None:
                result[place] = 0 if following is not None and end <= following else None
            elif end <= second + MARGIN_NS:
                result[place] = 0
            elif node is None and not (correlation and launched.count(correlation) > 1):
                assert following is not None
                result[place] = end - following
    return result


def test_a_kernel_that_outlasts_the_next_but_one() -> None:
    rows: list[Row] = [(0, 0, 90_000, 1, None), (0, 10_000, 9_500, 2, None), (0, 19_000, 1_000, 3, None),
                       (0, 21_000, 10_000, 4, None), (0, 30_000, None, 5, None), (1, 5_000, 90_000, 6, None)]
    assert found(rows, [7, 8]) == [80_000, 0, 0, None, None, None]


def test_kernels_of_a_graph_may_run_side_by_side() -> None:
    launched: list[Row] = [(0, 0, 90_000, 7, None), (0, 1_000, 10, 7, None), (0, 2_000, 10, 7, None), (0, 95_000, 1, 7, None)]
    assert found(launched, [0]) == [None, 0, 0, None]
    nodes: list[Row] = [(0, 0, 90_000, None, 4), (0, 1_000, 10, None, 5), (0, 2_000, 10, None, 6), (0, 95_000, 1, None, 7)]
    assert found(nodes, [0]) == [None, 0, 0, None]
    numbers = np.array([0, 1], dtype=np.int32)  # two processes count their launches from 1 each
    template, start = np.repeat(numbers, 3), np.array([0, 1_000, 2_000] * 2)
    late = overruns.overruns(KernelLaunches(numbers, numbers, template, start, np.array([90_000, 10, 1, 10, 10, 1]),
                                            np.array([1, 2, 3] * 2), np.full(6, MISSING)))
    assert (late.rows.tolist(), late.overrun[0]) == ([0, 2, 5], 89_000)


@settings(max_examples=300)
@given(data=st.data(), stretch=st.integers(1, 9), ordered=st.booleans(), on_disk=st.booleans())
def test_as_the_definition_says(data: st.DataObject, stretch: int, ordered: bool, on_disk: bool) -> None:
    times = st.integers(0, 30).map(lambda n: n * 700)
    row = st.tuples(st.integers(0, 3), st.none() | times if not ordered else times, st.none() | times,
                    st.none() | st.integers(0, 40), st.sampled_from([None, None, None, 9]))
    rows: list[Row] = data.draw(st.lists(row, max_size=40, unique_by=lambda one: (one[0], one[1])))
    if ordered:
        rows.sort(key=lambda one: one[1] or 0)
    streams = [0, 1, 0, -1]
    rows = [one for place, one in enumerate(rows) if not any(
        streams[one[0]] == streams[other[0]] and one[1] == other[1] for other in rows[:place])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "CHUNK_ROWS", stretch)
        assert found(rows, streams, on_disk=on_disk) == plainly(rows, streams)
