"""Integer columns of an SQLite table, decoded from the pages of its file many rows at a time.

SQLite hands out one value after the other; here each step is done for all rows of some thousand pages at once. Only what is
plain is decoded: rows of a rowid table that lie within their pages, integers and NULLs. For everything else, and wherever a
page is not as it should be, the answer is None, and SQLite has to be asked. What is decoded is what SQLite would have said.

The format is that of https://sqlite.org/fileformat2.html. A table is a tree of pages. A leaf of it holds rows, each with its
length, its rowid and a record: the length of the record's header, a type per column, then the values without gaps. A page
above the leaves holds, per page below, its number and its last rowid.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.readers.measure import counted

Int = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_LEAF, _INTERIOR = 13, 5
_HEAD_BYTES = {_LEAF: 8, _INTERIOR: 12}
_MARGIN = 80
"""Bytes before and behind the pages read, so that a word or a header can be taken at either end."""
_MOST_COLUMNS = 64
_LEAST_CELL = 6
"""Bytes that a row takes at the least, its pointer among them: SQLite refuses a page that claims more of them."""
_LEVELS = 8
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_SIZE = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0] + [(type_ - 12) // 2 for type_ in range(12, 128)], dtype=np.int64)
"""Bytes of a value of each type. From 128 on a type takes two bytes itself: a longer text or blob, not decoded."""
_NULL, _REAL, _ZERO, _ONE = 0, 7, 8, 9
_IS_INTEGER = np.isin(np.arange(len(_SIZE)), [_NULL, 1, 2, 3, 4, 5, 6, _ZERO, _ONE])


@dataclass(frozen=True, slots=True)
class TablePages:
    """A table: its leaves in order, and the last rowid that each may hold, by the pages above them."""

    leaves: Int
    ends: Int

    def parts(self, rows: int) -> Iterator[LeafRun]:
        """Yield stretches of leaves of at most about `rows` rows: rowids that ascend are at least as many as rows. Where most
        of them are missing, some leaves at a time."""
        least, at = max(1, rows >> 11), 0
        while at < len(self.leaves):
            before = int(self.ends[at - 1]) if at else int(self.ends[0]) - rows // 2
            reach = int(np.searchsorted(self.ends, min(before + rows, _GREATEST), side="right"))
            part = LeafRun(at, min(max(reach, at + least), len(self.leaves)))
            yield part
            at = part.stop


class LeafRun(NamedTuple):
    """Leaves of a table, from `start` to before `stop`."""

    start: int
    stop: int


class SqlitePages:
    """The pages of an SQLite file. Raises OSError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        head = os.read(self._file, 100).ljust(100, b"\0")  # Windows has no pread
        self._size = 65536 if head[16:18] == b"\0\1" else int.from_bytes(head[16:18], "big")
        self._usable = self._size - head[20]
        there = os.fstat(self._file).st_size // self._size if self._size else 0
        declared = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
        self._count = min(declared or there, there)

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)

    def tree(self, root: int) -> TablePages | None:
        """Return the table whose first page is `root`; None where it fits into a page, or is not plain."""
        if self._usable < 480:
            return None
        numbers, ends = np.array([root]), np.array([_GREATEST])
        for _ in range(_LEVELS):
            below = self._below(numbers, ends)
            if below is None:
                return None
            numbers, ends = below
            if self._read(numbers[:1])[_MARGIN] == _LEAF:
                return TablePages(numbers, ends)
        return None

    def _below(self, numbers: Int, last: Int) -> tuple[Int, Int] | None:
        """Return the pages below those above the leaves, in order, and the last rowid of each; None if they are not plain."""
        if numbers.min() < 2 or numbers.max() > self._count or len(numbers) > self._count:
            return None
        data = self._read(numbers)
        found = self._cells(data, len(numbers), _INTERIOR)
        if found is None:
            return None
        cells, counts = found
        rowids, _ = _varints(data, cells + 4)
        # The page behind the last cell stands in the head.
        right = np.arange(len(numbers), dtype=np.int64) * self._size + (_MARGIN + 12)
        places = np.insert(cells + 4, np.cumsum(counts), right)
        below = _words(data, places) & 0xFFFFFFFF
        ends = np.insert(rowids, np.cumsum(counts), last)
        ascend = bool((ends[1:] >= ends[:-1]).all()) and len(below) <= self._count
        return (below, ends) if ascend and below.min() >= 2 and below.max() <= self._count else None

    def rows(self, tree: TablePages, part: LeafRun, columns: Sequence[int], width: int) -> list[pa.Array] | None:
        """Return these columns (positions, ascending) of the rows of a part, of `width` columns, in order, as int64; None where
        SQLite has to be asked."""
        if not 0 < width <= _MOST_COLUMNS:
            return None
        data = self._read(tree.leaves[part.start:part.stop])
        keys = self._keys(data, tree, part)
        records = self._records(data, keys, width) if keys else None
        return records.columns(columns) if records else None

    def count(self, tree: TablePages, part: LeafRun) -> int | None:
        """Return how many rows a part has; None where its rowids do not ascend, or lie outside what the pages above say."""
        keys = self._keys(self._read(tree.leaves[part.start:part.stop]), tree, part)
        return int(keys.counts.sum()) if keys else None

    def cells(self, tree: TablePages, part: LeafRun) -> int:
        """Return how many rows the heads of the leaves of a part declare: as many as SQLite walks over."""
        numbers = tree.leaves[part.start:part.stop].tolist()
        heads = (os.pread(self._file, 2, (number - 1) * self._size + 3) for number in numbers)
        return sum(int.from_bytes(head, "big") for head in heads)

    def _read(self, numbers: Int) -> Bytes:
        """Return the pages one after the other, with a margin at both ends."""
        data = np.empty(len(numbers) * self._size + 2 * _MARGIN, dtype=np.uint8)
        data[:_MARGIN] = data[-_MARGIN:] = 0
        view = memoryview(data)[_MARGIN:-_MARGIN]  # type: ignore[arg-type]
        cuts = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
        for begin, end in zip([0, *cuts], [*cuts, len(numbers)], strict=True):
            part = view[begin * self._size:end * self._size]
            done = os.preadv(self._file, [part], (int(numbers[begin]) - 1) * self._size)
            part[done:] = bytes(len(part) - done)
            counted(done)
        return data

    def _cells(self, data: Bytes, pages: int, kind: int) -> tuple[Int, Int] | None:
        """Return where each cell begins, in order, and how many each page has; None where a page is not of this kind, has none
        or more than it has room for, or points out of itself."""
        start = np.arange(pages, dtype=np.int64) * self._size + _MARGIN
        counts = _shorts(data, start + 3)
        head = _HEAD_BYTES[kind]
        if (data[start] != kind).any() or (counts < 1).any() or (counts > (self._size - 8) // _LEAST_CELL).any():
            return None
        page = np.repeat(start, counts)
        pointer = np.arange(len(page), dtype=np.int64)
        pointer -= np.repeat(np.cumsum(counts) - counts, counts)
        pointer *= 2
        pointer += page
        pointer += head
        offset = _shorts(data, pointer)
        if (offset < head).any() or (offset > self._usable - 4).any():
            return None
        offset += page
        return offset, counts

    def _keys(self, data: Bytes, tree: TablePages, part: LeafRun) -> _Keys | None:
        """Return lengths and rowids of the rows of leaves; None where the rowids are not in the order of a table."""
        found = self._cells(data, part.stop - part.start, _LEAF)
        if found is None:
            return None
        cells, counts = found
        length, after = _varints(data, cells)
        rowids, at = _varints(data, after)
        last = np.repeat(tree.ends[part.start:part.stop], counts)
        before = int(tree.ends[part.start - 1]) if part.start else _LEAST - 1
        if rowids[0] <= before or (rowids[1:] <= rowids[:-1]).any() or (rowids > last).any():
            return None
        return _Keys(counts, length, at)

    def _records(self, data: Bytes, keys: _Keys, width: int) -> _Records | None:
        """Return the rows of leaves; None where they are not plain."""
        # What does not fit into its page goes on in others: such a row is left to SQLite, as is one with fewer columns or
        # with texts so long that their type takes two bytes.
        length, at = keys.length, keys.at
        pages = np.arange(len(keys.counts), dtype=np.int64) * self._size
        page_end = np.repeat(pages + (_MARGIN + self._usable), keys.counts)
        odd = (length < 0) | (length > self._usable - 35)
        if odd.any() or (at + length > page_end).any() or (data[at] != width + 1).any():
            return None
        return _Records(data, at, length, width)


@dataclass(frozen=True, slots=True)
class _Keys:
    """Rows of leaves: how many each leaf has, and per row how long its record is and where that begins."""

    counts: Int
    length: Int
    at: Int


@dataclass(frozen=True, slots=True)
class _Records:
    """Rows of `width` columns: the bytes they lie in, and per row where its record begins, and how long that is."""

    data: Bytes
    at: Int
    length: Int
    width: int

    def columns(self, wanted: Sequence[int]) -> list[pa.Array] | None:
        """Return the columns at these positions as int64; None where one has something else than integers and NULLs."""
        types = self._types()
        if types is None:
            return None
        found = []
        end, fixed = self.at, self.width + 1  # columns that have one size in all rows only move `fixed`
        for position in range(wanted[-1] + 1):
            type_ = types[position]
            if isinstance(type_, int):
                fixed += int(_SIZE[type_])
            else:
                end = end + _SIZE[type_]
            if position in wanted:
                values = _integers(self.data, end, fixed, type_)
                if values is None:
                    return None
                found.append(values)
        return found

    def _types(self) -> list[int | Bytes] | None:
        """Return the type of each column: one for all rows, or one per row. None if they do not add up to a row's length."""
        taken = _chunks(self.data, self.width).__getitem__(self.at + 1).view(np.uint8).reshape(-1, self.width)
        varies = np.bitwise_or.reduce(taken ^ taken[0], axis=0) != 0
        types: list[int | Bytes] = []
        total, fixed = np.zeros(len(taken), dtype=np.int64), self.width + 1
        for position, several in enumerate(varies.tolist()):
            type_ = np.ascontiguousarray(taken[:, position]) if several else int(taken[0, position])
            if np.max(type_) >= len(_SIZE):
                return None
            if isinstance(type_, int):
                fixed += int(_SIZE[type_])
            else:
                total += _SIZE[type_]
            types.append(type_)
        return types if np.array_equal(total, self.length - fixed) else None


def _integers(data: Bytes, ends: Int, further: int, types: int | Bytes) -> pa.Array | None:
    """Return the integers of these types that end `further` behind `ends`; None if one is no integer."""
    if isinstance(types, int):
        if types == _NULL:
            return pa.nulls(len(ends), pa.int64())
        if types in (_ZERO, _ONE):
            return pa.array(np.full(len(ends), types - _ZERO))
        if not _IS_INTEGER[types]:
            return None
        words = _words(data, ends + further)
        shift = 64 - 8 * int(_SIZE[types])
        if shift:
            words <<= shift
            words >>= shift
        return pa.array(words)
    if not _IS_INTEGER[types].all():
        return None
    words = _words(data, ends + further)
    shifts = (64 - 8 * _SIZE)[types]
    shifts[shifts == 64] = 0
    words <<= shifts
    words >>= shifts
    words[types == _ZERO] = 0
    words[types == _ONE] = 1
    missing = types == _NULL
    return pa.array(words, mask=missing if missing.any() else None)


def _chunks(data: Bytes, size: int) -> Any:
    """Return the `size` bytes from each place of `data`. To be indexed: numpy's take() would copy all of them first."""
    return np.ndarray(len(data) - size + 1, dtype=f"V{size}", buffer=data, strides=(1,))


def _shorts(data: Bytes, places: Int) -> Int:
    return (data[places].astype(np.int64) << 8) | data[places + 1]


def _words(data: Bytes, ends: Int) -> Int:
    """Return the eight bytes before each of `ends` as an integer, the last byte lowest."""
    words: Int = _chunks(data, 8)[ends - 8].view(">i8").astype(np.int64)
    return words


def _varints(data: Bytes, places: Int) -> tuple[Int, Int]:
    """Return the integers of varying length that begin at `places`, and where each ends. They have 7 bits in a byte, and the
    last byte is below 128; a ninth byte has 8 bits."""
    value, after = np.zeros(len(places), dtype=np.int64), places.copy()
    todo: Any = slice(None)
    for number in range(9):
        byte = data[after[todo]]
        ninth = number == 8
        value[todo] = (value[todo] << (7 + ninth)) | (byte & (255 if ninth else 127))
        after[todo] += 1
        more = byte >= 128
        if not more.any():
            break
        if not more.all():
            todo = np.flatnonzero(more) if isinstance(todo, slice) else todo[more]
    return value, after
