"""The attribution of a profile as Arrow columns: operator, module, phase, step and range ids for the rows of each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.attribution.intervals import at
from nsightlens.attribution.messages import COLUMNS as MESSAGE
from nsightlens.attribution.range_labels import Labels
from nsightlens.attribution.range_tree import RangeTree
from nsightlens.columns.arrays import MISSING, Int, Places, nullable, row_chunks
from nsightlens.columns.row_templates import expand
from nsightlens.columns.spilled import LongColumn
from nsightlens.names.collectives import UNNAMED
from nsightlens.schema import TEMPLATE

INNER_STEP = "annotation"


@dataclass(frozen=True, slots=True)
class Pairs:
    """The distinct (template, number) of a table's rows as template << 32 | number, ascending, and which of them each row has."""

    pairs: Int
    code: LongColumn

    def numbers(self, code: Places | slice) -> Places:
        """Return the number of each pair."""
        return (self.pairs[code] & 0xFFFFFFFF).astype(np.int32)

    def templates(self, first: int, batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], Places]:
        """Return the columns of the templates to store in place of those in `batch`, which begin with the number `first`: one
        per pair; and the number in each pair."""
        some = slice(*np.searchsorted(self.pairs >> 32, [first, first + batch.num_rows]).tolist())
        columns = expand(batch, (self.pairs[some] >> 32).astype(np.int32) - first)
        columns[TEMPLATE] = pa.array(np.arange(some.start, some.stop, dtype=np.int32))
        return columns, self.numbers(some)


@dataclass(frozen=True, slots=True)
class CallRanges:
    """What is attributed to API calls, which begin at `places`. frames: the Python frame around each; None without stacks.
    kept_frame: the number of each of these frames among those that are stored."""

    base: int
    tree: RangeTree
    places: LongColumn
    frames: LongColumn | None = None
    kept_frame: Places | None = None

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the columns of stage `attribution` of some rows."""
        return _ranges_at(self.tree, self.places[rows], self.base)


@dataclass(frozen=True, slots=True)
class AllocationRanges:
    """What is attributed to allocations: the place of the operator around each."""

    base: int
    tree: RangeTree
    operators: Places

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the columns of stage `attribution` of some rows."""
        return {"op_range_id": _ids(self.tree.row(self.operators[rows]), self.base)}


@dataclass(frozen=True, slots=True)
class RangeLinks:
    """What is attributed to ranges themselves. inner: 1 for steps inside of another one, which are annotations; None: there are
    none. frames: the Python frame around each operator; None without stacks."""

    base: int
    tree: RangeTree
    inner: Pairs | None
    frames: Places | None = None

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the columns of stage `attribution` of some rows, and those that it changes."""
        tree, depth = self.tree, self.tree.depth[rows]
        columns = {
            "parent_id": _ids(tree.parent[rows], self.base),
            "depth": pa.array(depth, mask=depth < 0),
            "op_parent_id": _ids(tree.operator_parent[rows], self.base),
            "forward_id": _ids(tree.forward[rows], self.base),
            **_frame_ids(self.frames, rows, self.base),
        }
        if self.inner is None:
            return columns
        code = self.inner.code[rows]
        inner = self.inner.numbers(code)
        return columns | {TEMPLATE: pa.array(code), "kind": _unless_inner(inner, known["kind"], INNER_STEP),
                          "step": _unless_inner(inner, known["step"], None)}

    def templates(self, first: int, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the templates to store in place of these, which begin with the number `first`."""
        if self.inner is None:
            return _columns(batch)
        columns, inner = self.inner.templates(first, batch)
        return columns | {"kind": _unless_inner(inner, columns["kind"], INNER_STEP)}


@dataclass(frozen=True, slots=True)
class WorkRanges:
    """What is attributed to the GPU work of one table: per row its template and label, the place it was launched from, the
    number of its step and its Python frame (-1: none; None without stacks)."""

    base: int
    tree: RangeTree
    labels: Labels
    step_number: Int
    pairs: Pairs
    places: LongColumn
    step: LongColumn
    frames: LongColumn | None = None

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the columns of stage `attribution` of some rows."""
        code, place, step = self.pairs.code[rows], self.places[rows], self.step[rows]
        return {
            TEMPLATE: pa.array(code),
            **_labels_of(known, self.labels.columns(self.pairs.numbers(code))),
            **_ranges_at(self.tree, place, self.base),
            "step": nullable(at(self.step_number, step, MISSING)),
            "step_id": _ids(at(self.tree.steps, step), self.base),
            **_frame_ids(self.frames, rows, self.base),
        }

    def templates(self, first: int, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the templates to store in place of these, which begin with the number `first`."""
        columns, numbers = self.pairs.templates(first, batch)
        return columns | _labels_of(columns, self.labels.columns(numbers))


def paired(template: Places, number: Places) -> Pairs:
    """Return the distinct pairs of template and number, and which each row has."""
    numbers = int(number.max(initial=0)) + 1
    size = (int(template.max(initial=-1)) + 1) * numbers
    if size <= 4 * len(template):
        return _paired_by_table(template, number, size, numbers)
    both = pa.array((template.astype(np.int64) << 32) | number).dictionary_encode()
    pairs, place = np.unique(both.dictionary.to_numpy(), return_inverse=True)
    return Pairs(pairs, place.reshape(-1).astype(np.int32)[both.indices.to_numpy()])


def _paired_by_table(template: Places, number: Places, size: int, numbers: int) -> Pairs:
    """Return the same by marking the pairs that occur in a table of all `size` possible ones; `numbers`: of one template."""
    occurs = np.zeros(size, dtype=np.bool_)
    for some in row_chunks(len(template)):
        occurs[template[some].astype(np.int64) * numbers + number[some]] = True
    code_of = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    code = np.empty(len(template), dtype=np.int32)
    for some in row_chunks(len(template)):
        code[some] = code_of[template[some].astype(np.int64) * numbers + number[some]]
    templates, inner = np.divmod(np.flatnonzero(occurs), numbers)
    return Pairs((templates << 32) | inner, code)


def _labels_of(work: Mapping[str, pa.Array], labels: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the labels of some GPU work: those of collectives for kernels that communicate, never in place of the tool's, and
    for copies the operation that they are part of."""
    of_collectives = {name: labels.pop(name) for name in ("collective", *MESSAGE)}
    if "family" not in work:
        copies = pc.equal(work["kind"].dictionary, pa.scalar("memcpy")).take(work["kind"].indices)
        labels["collective"] = pc.if_else(copies, of_collectives["collective"].cast(pa.string()), None).dictionary_encode()
        return labels
    of_collectives["collective"] = _named(of_collectives["collective"])
    family = work["family"]
    communicates = pc.equal(family.dictionary, pa.scalar("collective")).take(family.indices)
    for name, values in of_collectives.items():
        text = pa.types.is_dictionary(work[name].type)
        plain = values.cast(pa.string()) if text else values
        known = work[name].cast(pa.string()) if text else work[name]
        found = pc.coalesce(known, pc.if_else(communicates, plain, None))
        labels[name] = found.dictionary_encode() if text else found
    return labels


def _named(collective: pa.Array) -> pa.Array:
    """Return the operations; of a kernel whose ranges name none the operation is unknown."""
    return pc.if_else(pc.equal(collective.cast(pa.string()), UNNAMED), None, collective.cast(pa.string())).dictionary_encode()


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _ranges_at(tree: RangeTree, places: Places, base: int) -> dict[str, pa.Array]:
    """Return the ids of the innermost range and operator at each place."""
    return {"range_id": _ids(tree.row(places), base), "op_range_id": _ids(tree.row(tree.operator_at(places)), base)}


def _frame_ids(frames: LongColumn | None, rows: slice, base: int) -> dict[str, pa.Array]:
    return {} if frames is None else {"frame_id": _ids(frames[rows], base)}


def _ids(rows: Places, base: int) -> pa.Array:
    return pa.array(rows.astype(np.int64) + base, mask=rows < 0)


def _unless_inner(inner: Places, column: pa.Array, instead: str | None) -> pa.Array:
    """Return the column, with another value where `inner` is 1."""
    plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    return pc.if_else(pa.array(inner == 1), pa.scalar(instead, plain.type), plain).cast(column.type)
