"""What people read of the ranges around a launch: operator, shapes, module, phase, path, collective, message; each combination
once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nsightlens.attribution.intervals import at, each_once
from nsightlens.attribution.messages import Messages
from nsightlens.attribution.range_tree import COLLECTIVES, PHASES, RangeIndex
from nsightlens.columns.arrays import Int, Places

_TEXTS = ("phase", "op", "op_shapes", "module", "range_path", "collective")
JOINT = " / "
LEVELS = 64
"""As many ranges a path lists; one of more than these ends in "..."."""


class Labels:
    """The distinct labels of a profile's GPU work, numbered from 0: that of work of which nothing is known."""

    def __init__(self, index: RangeIndex, listed: Places, templates: Iterable[pa.RecordBatch], moved: Messages) -> None:
        """listed: the places that GPU work was launched from, ascending, each once. templates: those of the ranges, with the
        columns kind, name, shapes. moved: what kernels that were launched from each place moved."""
        within = index.nested.nest.with_those_around(listed)
        operator, module = index.tree.operator[listed], index.module[listed]
        places = each_once(np.concatenate([within, operator, module]))
        texts = _Texts(index.nested.template[places], templates)
        paths = _Paths(index, within, texts)
        columns: list[Int] = [
            index.phase[listed].astype(np.int64), _text_of(texts.name, index, operator),
            _text_of(texts.shapes, index, operator), _text_of(texts.name, index, module), paths.of(listed).astype(np.int64),
            index.collective[listed].astype(np.int64)]
        message = moved.of(listed)
        number, first = _distinct([*columns, message])
        self._moved, self._message = moved, np.concatenate([[-1], message[first]])
        self._number_of = np.zeros(len(index.tree.rows), dtype=np.int32)
        self._number_of[listed] = number + 1
        words: list[list[str | None]] = [list(PHASES), texts.names, texts.shapes_texts, texts.names, paths.texts,
                                         list(COLLECTIVES)]
        self._table = pa.RecordBatch.from_arrays(
            [pa.array([None, *(_word(known, code) for code in column[first].tolist())], pa.string())
             for known, column in zip(words, columns, strict=True)], names=list(_TEXTS))

    def of(self, places: Places) -> Places:
        """Return the number of the label at each place, 0 for place -1."""
        return at(self._number_of, places, missing=0)

    def columns(self, numbers: Places) -> dict[str, pa.Array]:
        """Return the columns of the labels of these numbers, by name."""
        distinct, chosen = np.unique(numbers, return_inverse=True)
        few = self._table.take(pa.array(distinct))
        which = pa.array(chosen.reshape(-1))
        texts = {name: few.column(name).dictionary_encode().take(which) for name in _TEXTS}
        return texts | {name: values.take(which) for name, values in self._moved.columns(self._message[distinct]).items()}


def _word(words: list[str | None], code: int) -> str | None:
    return words[code] if code >= 0 else None


def _text_of(text: Places, index: RangeIndex, places: Places) -> Int:
    """Return the number of the text of the template of the range at each place, -1 where there is none."""
    return at(text, at(index.nested.template, places)).astype(np.int64)


class _Texts:
    """The names and shapes of some templates of ranges as numbers of distinct texts, by the template (-1: none)."""

    def __init__(self, wanted: Places, templates: Iterable[pa.RecordBatch]) -> None:
        wanted = each_once(wanted)
        size = int(wanted[-1]) + 1 if len(wanted) else 0
        self.name, self.shapes = np.full(size, -1, dtype=np.int32), np.full(size, -1, dtype=np.int32)
        names: dict[str, int] = {}
        shapes: dict[str, int] = {}
        first = 0
        for batch in templates:
            some = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, first + batch.num_rows)]
            rows = pa.array(some - first)
            self.name[some] = _numbered(batch.column("name").take(rows), names)
            self.shapes[some] = _numbered(batch.column("shapes").take(rows), shapes)
            first += batch.num_rows
        self.names: list[str | None] = list(names)
        self.shapes_texts: list[str | None] = list(shapes)


def _numbered(texts: pa.DictionaryArray, known: dict[str, int]) -> Places:
    numbers: Places = np.array([-1 if text is None else known.setdefault(text, len(known)) for text in texts.to_pylist()],
                               dtype=np.int32)
    return numbers


class _Paths:
    """The paths of some places and of all that lie around them, as numbers of distinct texts. Steps are left out."""

    def __init__(self, index: RangeIndex, within: Places, texts: _Texts) -> None:
        self.texts: list[str | None] = []
        self._path = np.full(len(index.tree.rows), -1, dtype=np.int32)
        above = index.nested.nest.above
        name = _text_of(texts.name, index, within)
        depth = index.tree.depth[index.tree.rows[within]]
        order = np.argsort(depth, kind="stable")
        ends = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
        for level, (begin, end) in enumerate(pairwise(ends.tolist())):
            some = order[begin:end]
            places = within[some]
            path = np.where(above[places] >= 0, self._path[above[places]], -1)
            adds = np.flatnonzero((name[some] >= 0) & ~index.nested.is_step[places] & (level <= LEVELS))
            path[adds] = self._extended(path[adds], name[some][adds], texts.names, last=level == LEVELS)
            self._path[places] = path

    def _extended(self, outer: Places, name: Int, names: list[str | None], *, last: bool) -> Places:
        """Return the numbers of the paths `outer` with a name more, which are new."""
        pairs, number = np.unique((outer.astype(np.int64) << 32) | name, return_inverse=True)
        before = len(self.texts)
        for pair in pairs.tolist():
            outside, inside = pair >> 32, "..." if last else names[pair & 0xFFFFFFFF]
            self.texts.append(f"{self.texts[outside]}{JOINT}{inside}" if outside >= 0 else inside)
        numbers: Places = (number.reshape(-1) + before).astype(np.int32)
        return numbers

    def of(self, places: Places) -> Places:
        """Return the number of the path at each place."""
        return self._path[places]


def _distinct(columns: list[Int]) -> tuple[Places, Int]:
    """Return the number of each row's combination of values, and the first row of each combination."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code = np.unique((code << 32) | (column + 1), return_inverse=True)[1].reshape(-1)
    _, first = np.unique(code, return_index=True)
    return code.astype(np.int32), first
