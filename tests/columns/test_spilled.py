"""A spilled column has the stretches of the column, whatever its type and length, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nsightlens.columns import arrays, spilled
from nsightlens.columns.spilled import ColumnBuilder, SpilledColumn, SpillFolder, values_at, whole


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, rows: int) -> None:
    monkeypatch.setattr(spilled, "_SPILLED_BYTES", 1)
    values: npt.NDArray[Any] = np.arange(rows).astype(kind)
    spilled_ = SpillFolder(tmp_path).spill(values)
    for first, end in ((0, rows), (0, 1), (rows // 3, rows // 2), (rows, rows + 5)):
        some = spilled_[first:end]
        assert some.dtype == values.dtype
        assert some.tolist() == values[first:end].tolist()
    assert list(tmp_path.iterdir()) == []


def test_short_columns_stay_in_memory(tmp_path: Path) -> None:
    values = np.arange(10)
    assert SpillFolder(tmp_path).spill(values) is values


_LEAST = np.iinfo(np.int64).min


@pytest.mark.parametrize("rows", [1, 10, 200])
def test_rows_of_parts_of_several_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 16)
    source = np.random.default_rng(rows)
    column, pieces = SpillFolder(tmp_path).column(), []
    for number in range(5):
        pieces.append(source.integers(-100, 100, rows).astype([np.int32, np.int64][number % 2]))
        column.append(pieces[-1])
    expected = np.concatenate(pieces)
    assert whole(column).tolist() == expected.tolist()
    for first in range(0, len(expected), 7):
        for end in (first, first + 3, first + 2 * rows, len(expected) + 5):
            assert column[first:end].tolist() == expected[first:end].tolist()
    for wanted in (source.integers(0, len(expected), 300), np.array([len(expected) - 1, 0]), np.array([], dtype=np.int64)):
        found = values_at(column, wanted)
        assert found.dtype == np.int64
        assert found.tolist() == expected[wanted].tolist() == values_at(expected, wanted).tolist()


@pytest.mark.parametrize("shapes", ["s", "ss", "sv", "vs", "svs", "vvwv", "wvswv", "st", "stv"])
def test_a_column_is_all_pieces_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shapes: str) -> None:
    """s, t: one value that was broadcast; v: narrow values; w: wide ones."""
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 8)
    piece = {"s": np.broadcast_to(_LEAST, 6), "t": np.broadcast_to(np.int64(3), 6), "v": np.arange(6), "w": np.arange(6) << 40}
    builder = ColumnBuilder(SpillFolder(tmp_path))
    for shape in shapes:
        builder.add(piece[shape])
    column = builder.column()
    assert column[0:6].dtype == np.int64
    assert whole(column).tolist() == [value for shape in shapes for value in piece[shape].tolist()]
    assert isinstance(column, SpilledColumn) == (len(shapes) > 1 and shapes != "ss")
    assert (not isinstance(column, SpilledColumn) and column.strides == (0,)) == (set(shapes) == {"s"})
