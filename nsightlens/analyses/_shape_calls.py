"""The operator calls around kernel launches, as arrays: which call each launch works for, with its operations and bytes."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens import op_cost
from nsightlens.columns.arrays import Int, Mask
from nsightlens.op_cost import Dims, OperatorWork


class Texts:
    """A column of few distinct values, by row."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        encoded = column.combine_chunks().dictionary_encode()
        self.distinct: list[Any] = [*encoded.dictionary.to_pylist(), None]
        self.code: Int = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)

    def __getitem__(self, row: int) -> Any:
        """Return the value of a row."""
        return self.distinct[self.code[row]]

    def of(self, rows: pa.Array) -> pa.Array:
        """Return the text of each row, NULL for NULL."""
        return pa.array(self.distinct, pa.string()).take(pa.array(self.code % len(self.distinct)).take(rows))


class OperatorCalls:
    """Calls in the order of their range_id. Places are positions in that order, -1 for none.

    table: range_id, op_parent_id, name, shapes, types, concrete_inputs. results: forward_id, shapes of the linked backward call.
    """

    def __init__(self, table: pa.Table, results: pa.Table) -> None:
        self.ids: Int = np.asarray(table["range_id"], dtype=np.int64)
        self.names = Texts(table["name"])
        self.parent = self.index_of(table["op_parent_id"])
        self._texts = [self.names, *(Texts(table[column]) for column in ("shapes", "types", "concrete_inputs"))]
        self._results = dict(zip(results["forward_id"].to_pylist(), results["shapes"].to_pylist(), strict=True))
        self._works: dict[tuple[object, ...], OperatorWork] = {}

    def index_of(self, ids: pa.ChunkedArray) -> Int:
        """Return the place of each id, -1 where there is no such call."""
        wanted: Int = np.asarray(ids.fill_null(-1), dtype=np.int64)
        if not len(self.ids):
            return np.full(len(wanted), -1)
        found = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[found] == wanted, found, -1)

    @property
    def shapes(self) -> Texts:
        """Return the shapes of each call, as the tool prints them."""
        return self._texts[1]

    def name(self, place: int) -> str | None:
        """Return the operator's name, None for no place."""
        return None if place < 0 else self.names[place]

    @cached_property
    def owner(self) -> Int:
        """Return per call whose work its launches are: itself where it has a formula, else the product around it."""
        known, product = self._named(op_cost.KNOWN), self._named(op_cost.CONTRACTIONS)
        at = self._climbed(np.arange(len(self.ids)), known)
        own = at == np.arange(len(self.ids))
        return np.where(own | ((at >= 0) & product[at]), at, -1)

    @cached_property
    def wrapped(self) -> Mask:
        """Return per call whether it is a product around another product that launched something: the inner one counts."""
        product = self._named(op_cost.CONTRACTIONS)
        around = self._climbed(self.parent[product], product)
        found = np.zeros(len(self.ids), dtype=np.bool_)
        found[around[around >= 0]] = True
        return found

    def work(self, place: int) -> OperatorWork:
        """Return the work of a call."""
        texts = [column[place] for column in self._texts]
        key = (*texts, self._result(place) if "conv" in texts[0] else None)
        if key not in self._works:
            self._works[key] = op_cost.work(*key)
        return self._works[key]

    def _named(self, wanted: frozenset[str]) -> Mask:
        is_wanted = np.array([name in wanted for name in self.names.distinct], dtype=np.bool_)
        return is_wanted[self.names.code]

    def _climbed(self, start: Int, wanted: Mask) -> Int:
        """Return the nearest wanted call at or around each of `start`, -1 where there is none."""
        at = start.copy()
        while True:
            open_ = np.flatnonzero(at >= 0)
            open_ = open_[~wanted[at[open_]]]
            if not len(open_):
                return at
            at[open_] = self.parent[at[open_]]

    def _result(self, place: int) -> Dims | None:
        """Return the dims of a convolution's result, from the backward call linked to it or to a convolution around it.

        The first tensor of a backward call is the gradient of that result, and as large; where autograd's node has no shapes,
        it is that of the operator which it calls.
        """
        while place >= 0 and "conv" in (self.name(place) or ""):
            dims = _first_dims(self._results.get(int(self.ids[place])))
            if dims is not None:
                return dims
            place = int(self.parent[place])
        return None


def _first_dims(shapes: str | None) -> Dims | None:
    """Return the dims of the first tensor, None where the text holds none."""
    try:
        found = json.loads(shapes or "null")
    except (ValueError, RecursionError):
        return None
    first = found[0] if isinstance(found, list) and found else None
    return tuple(first) if isinstance(first, list) and all(type(size) is int for size in first) else None
