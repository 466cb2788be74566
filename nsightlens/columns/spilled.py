"""Long integer columns between memory and disk: gathered piece by piece, read again stretch by stretch or row by row.

What lies on disk lies in files without a name, which are gone with the column, and with the process.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns import arrays
from nsightlens.columns.arrays import row_chunks

_SPILLED_BYTES = 1 << 20
_CLOSE = 8
"""Rows read for each that is wanted."""


class SpillFolder:
    """Where long integer columns are spilled that are only read again, stretch by stretch: on disk they take no memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def spill(self, values: npt.NDArray[Any]) -> LongColumn:
        """Return what has the same stretches as the column: itself where it is short."""
        if values.nbytes < _SPILLED_BYTES:
            return values
        spilled = self.column()
        spilled.append(values)
        spilled.type = values.dtype
        return spilled

    def column(self) -> SpilledColumn:
        """Return a column without rows, on disk."""
        return SpilledColumn(self._folder)


class SpilledColumn:
    """A column in a file without a name, which goes with it. It is read as of `type`, and may be stored in narrower ones."""

    def __init__(self, folder: Path) -> None:
        self.type: np.dtype[Any] = np.dtype(np.int64)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - it is closed when the column is no longer used
        self._firsts: list[int] = []
        self._parts: list[tuple[int, np.dtype[Any]]] = []  # where in the file each part begins, and its type
        self._rows = self._bytes = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        if not self._parts or self._parts[-1][1] != values.dtype:
            self._firsts.append(self._rows)
            self._parts.append((self._bytes, values.dtype))
        values.tofile(self._file)
        self._file.flush()
        self._rows += len(values)
        self._bytes += values.nbytes

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """Return a stretch of the column, from the row `rows.start` to before `rows.stop`."""
        found = np.empty(max(0, min(rows.stop, self._rows) - rows.start), dtype=self.type)
        part = max(0, bisect_right(self._firsts, rows.start) - 1)
        done = 0
        while done < len(found):
            (at, type_), first = self._parts[part], self._firsts[part]
            part += 1
            stop = self._firsts[part] if part < len(self._firsts) else self._rows
            count = min(stop, rows.start + len(found)) - (rows.start + done)
            self._read(found[done : done + count], at + (rows.start + done - first) * type_.itemsize, type_)
            done += count
        return found

    def _read(self, found: npt.NDArray[Any], at: int, type_: np.dtype[Any]) -> None:
        """Fill `found` from what stands at a place of the file, some rows at a time where they are of another type."""
        if type_ == found.dtype:
            _fill(self._file.fileno(), found, at)
            return
        for rows in row_chunks(len(found)):
            some = np.empty(rows.stop - rows.start, dtype=type_)
            _fill(self._file.fileno(), some, at + rows.start * type_.itemsize)
            found[rows] = some

    def at(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of these rows: quick where they lie close together; else in passes over the file."""
        if not len(rows):
            return np.empty(0, dtype=self.type)
        first, last = int(rows.min()), int(rows.max())
        if last - first < _CLOSE * len(rows):
            near: npt.NDArray[Any] = self[first : last + 1][rows - first]
            return near
        order = np.argsort(rows)
        ascending = rows[order]
        found = np.empty(len(rows), dtype=self.type)
        starts = range(first, last + 1, arrays.CHUNK_ROWS)
        bounds = np.searchsorted(ascending, [*starts, last + 1]).tolist()
        for start, begin, end in zip(starts, bounds[:-1], bounds[1:], strict=True):
            if begin < end:
                found[order[begin:end]] = self[start : start + arrays.CHUNK_ROWS][ascending[begin:end] - start]
        return found


def _fill(file: int, values: npt.NDArray[Any], at: int) -> None:
    """Fill `values` with what stands at a place of the file. Raises OSError where the file ends before."""
    view = memoryview(values.view(np.uint8))  # type: ignore[arg-type]
    while len(view):
        count = os.preadv(file, [view], at)
        if not count:
            raise OSError("a column on disk is shorter than it was written")
        view, at = view[count:], at + count


LongColumn = npt.NDArray[Any] | SpilledColumn
"""An integer column, in memory or on disk: `column[first:end]` is a stretch of it."""


def values_at(column: LongColumn, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values of a column in these rows."""
    return column.at(rows) if isinstance(column, SpilledColumn) else column[rows]


def whole(column: LongColumn) -> npt.NDArray[Any]:
    """Return all of a column, in memory."""
    return column[0 : len(column)]


class ColumnBuilder:
    """An integer column gathered piece by piece, a block in memory and the blocks before it on disk.

    The blocks are its own: a piece would keep alive all that its reader read with it, and small pieces among what else comes
    and goes would leave the memory in fragments. Each is half as wide where its values fit.
    """

    def __init__(self, folder: SpillFolder, type_: npt.DTypeLike = np.int64) -> None:
        self._folder = folder
        self._type = np.dtype(type_)
        self._spilled: SpilledColumn | None = None
        self._block: npt.NDArray[Any] = np.empty(0, dtype=np.int32)
        self._filled = 0
        self._same: npt.NDArray[Any] | None = None  # one value that was broadcast, as long as there is no other piece

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add a copy of the values; one value that was broadcast stays so."""
        if not len(values):
            return
        begun = self._filled or self._spilled
        if values.strides == (0,) and not begun and (self._same is None or self._same[0] == values[0]):
            before = 0 if self._same is None else len(self._same)
            self._same = np.broadcast_to(values[0], before + len(values))
            return
        if self._same is not None:
            same, self._same = self._same, None
            for rows in row_chunks(len(same)):
                self._append(same[rows])
        self._append(values)

    def _append(self, values: npt.NDArray[Any]) -> None:
        end = self._filled + len(values)
        type_ = _narrowest(values)
        if end > len(self._block) or type_.itemsize > self._block.itemsize:
            self._spill()
            self._block = np.empty(max(arrays.CHUNK_ROWS, len(values)), dtype=type_)
            end = len(values)
        self._block[self._filled : end] = values
        self._filled = end

    def _spill(self) -> None:
        if self._filled:
            self._spilled = self._spilled or self._folder.column()
            self._spilled.type = self._type
            self._spilled.append(self._block[: self._filled])
            self._filled = 0

    def column(self) -> LongColumn:
        """Return the column; nothing can be added afterwards."""
        if self._same is not None:
            return self._same
        if self._spilled is None:
            return self._block[: self._filled].astype(self._type)
        self._spill()
        self._block = self._block[:0].copy()
        return self._spilled


def _narrowest(values: npt.NDArray[Any]) -> np.dtype[Any]:
    if values.dtype.kind == "i":
        limits = np.iinfo(np.int32)
        fits = values.dtype.itemsize <= limits.dtype.itemsize or (values.min() > limits.min and values.max() <= limits.max)
        return np.dtype(np.int32 if fits else np.int64)
    return values.dtype
