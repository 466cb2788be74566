"""Table -> table: the columns that no tool gives: kinds of launch, canonical name, family. (linking.py has launching calls.)

Everything works on narrow integer columns of one profile, on disk where they are long (shelf.py), in O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import names
from nsightlens.shelf import Gathered, Shelf, Stretches, whole

RULES_VERSION = names.RULES_VERSION

Int = npt.NDArray[np.int64]
Hash = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]

MISSING = np.iinfo(np.int64).min
_NAME_SALT = np.uint64(0x6E616D65_5F73616C)
_TYPES = {"kind": np.int32, "name": np.int32, "configuration": np.uint64}
"""Of gathered columns that are not int64."""
_CONFIG_COLUMNS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def integers(batch: pa.RecordBatch, column: str) -> Int:
    """Return an integer column as int64, NULL as MISSING."""
    values = batch.column(batch.schema.get_field_index(column))
    if values.null_count:
        values = pc.fill_null(values.cast(pa.int64()), MISSING)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


class Names:
    """The distinct kernel names of a profile, numbered, with what follows from each name alone."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._codes: dict[tuple[str | None, str | None], int] = {}

    def encode(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return the number of each row's (name, mangled name)."""
        name = batch.column(batch.schema.get_field_index("name"))
        mangled = batch.column(batch.schema.get_field_index("mangled_name"))
        codes = self._of_name(name)
        if name.null_count:
            nameless = np.flatnonzero(name.is_null().to_numpy(zero_copy_only=False))
            codes[nameless] = [self._code(None, m) for m in mangled.take(pa.array(nameless)).to_pylist()]
        return codes

    def _of_name(self, name: pa.DictionaryArray) -> npt.NDArray[np.int32]:
        codes = np.array([self._code(n, None) for n in [*name.dictionary.to_pylist(), None]], dtype=np.int32)
        found: npt.NDArray[np.int32] = codes[pc.fill_null(name.indices, len(codes) - 1).to_numpy(zero_copy_only=False)]
        return found

    def _code(self, name: str | None, mangled: str | None) -> int:
        return self._codes.setdefault((name, mangled), len(self._codes))

    def derived(self) -> dict[str, list[Any]]:
        """Return short_name, kernel_key, family, tensor_cores per number (and name, where only a mangled one was recorded)."""
        known = [name if name is not None else (names.demangle(m) if m else None) for name, m in self._codes]
        keys = [names.kernel_key(n, self._tool) if n is not None else None for n in known]
        families = [names.family(n, k) if n is not None else None for n, k in zip(known, keys, strict=True)]
        return {
            "name": known,
            "short_name": [names.short_name(n) if n is not None else None for n in known],
            "kernel_key": keys,
            "family": families,
            "tensor_cores": [names.tensor_cores(n, f) if n is not None and f is not None else None
                             for n, f in zip(known, families, strict=True)],
        }


def configuration(batch: pa.RecordBatch) -> Hash:
    """Return a 64-bit hash of each row's launch configuration (grid and block)."""
    mixed: Hash = np.zeros(batch.num_rows, dtype=np.uint64)
    for column in _CONFIG_COLUMNS:
        mixed = _mix(np.bitwise_xor(mixed, integers(batch, column).astype(np.uint64)))
    return mixed


def hash_of(texts: Sequence[str | None]) -> Hash:
    """Return a 64-bit hash per text: equal texts have equal hashes."""
    codes: dict[str | None, int] = {}
    numbers: Hash = np.array([codes.setdefault(text, len(codes)) for text in texts]).astype(np.uint64)
    return _mix(numbers ^ _NAME_SALT)


def _mix(value: Hash) -> Hash:
    """Return the finalizer of splitmix64: every input bit reaches every output bit."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


class Narrow:
    """The few integer columns of a profile that whole-profile derivations need, gathered while the rows stream by.

    What rows of one kind have in common is gathered per kind.
    """

    _PER_ROW: ClassVar[dict[str, tuple[str, ...]]] = {
        "kernels": ("correlation_id", "start_ns", "ncu_id", "external_id"),
        "memory_ops": ("correlation_id", "start_ns", "external_id"),
        "api_calls": ("correlation_id", "start_ns", "duration_ns"),
        "ranges": ("start_ns", "duration_ns", "sequence", "step", "external_id"),
        "allocations": ("process_index", "thread", "at_ns"),
    }
    _GPU_WORK = ("kernels", "memory_ops", "graph_executions")

    def __init__(self, tool: str, shelf: Shelf) -> None:
        self.tool = tool
        self._shelf = shelf
        self.names = Names(tool)
        self.window_rows: list[dict[str, int]] = []
        self.kernel_ns = 0
        self.gpu_spans: list[tuple[int, int] | None] = [None]
        """Per window: earliest start and latest end of GPU work, as its clock tells them."""
        self._gathered: dict[tuple[str, str], Gathered] = {}
        self._rows: dict[str, int] = {}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Gather from one batch of rows."""
        self._rows[table] = self._rows.get(table, 0) + batch.num_rows
        for column in self._PER_ROW.get(table, ()):
            known = batch.column(column).null_count < batch.num_rows
            self._keep(table, column, integers(batch, column) if known else np.broadcast_to(MISSING, batch.num_rows))
        if table in self._GPU_WORK:
            self._add_time(table, batch.column("start_ns"), batch.column("duration_ns"))

    def add_kinds(self, table: str, codes: npt.NDArray[np.int32], new: pa.RecordBatch) -> None:
        """Gather the kind of each row of a batch, and the kinds that are new with it."""
        if table in self._PER_ROW:
            self._keep(table, "kind", codes)
        if new.num_rows:
            self._keep(table, "process_index", integers(new, "process_index"))
            if "thread" in new.schema.names:
                self._keep(table, "thread", integers(new, "thread"))
            if table == "kernels":
                self._keep(table, "name", self.names.encode(new))
                self._keep(table, "configuration", configuration(new))

    def _add_time(self, table: str, start: pa.Array, duration: pa.Array) -> None:
        if table == "kernels":
            self.kernel_ns += pc.sum(duration).as_py() or 0
        first = pc.min(start).as_py()
        if first is not None:
            last = pc.max(pc.add(start, pc.fill_null(duration, 0))).as_py()
            before = self.gpu_spans[-1] or (first, last)
            self.gpu_spans[-1] = min(first, before[0]), max(last, before[1])

    def _keep(self, table: str, column: str, values: Any) -> None:
        if (table, column) not in self._gathered:
            self._gathered[table, column] = Gathered(self._shelf, _TYPES.get(column, np.int64))
        self._gathered[table, column].add(values)

    def end_window(self) -> None:
        """Remember how many rows each table had when the window ended."""
        self.window_rows.append(self._rows)
        self.gpu_spans.append(None)
        self._rows = {}

    def rows(self, table: str) -> int:
        """Return the rows of `table` over all windows."""
        return self.first_row(table, len(self.window_rows))

    def first_row(self, table: str, window: int) -> int:
        """Return how many rows of `table` came before a window."""
        return sum(rows.get(table, 0) for rows in self.window_rows[:window])

    def take(self, table: str, column: str) -> Any:
        """Return a gathered column over all windows, in memory, and forget it."""
        return whole(self.column(table, column))

    def column(self, table: str, column: str) -> Stretches:
        """Return a gathered column over all windows, on disk where it is long, and forget it."""
        found = self._gathered.pop((table, column), None)
        return found.column() if found else np.empty(0, dtype=_TYPES.get(column, np.int64))

    def per_window(self, table: str, values: Sequence[int]) -> Int:
        """Return, per row of `table`, the value of its window."""
        counts = [rows.get(table, 0) for rows in self.window_rows]
        return np.repeat(np.asarray(values, dtype=np.int64), counts)


def nullable(values: Int) -> pa.Array:
    """Return an int64 Arrow array with MISSING as NULL."""
    missing = values == MISSING
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)


def lookup(indices: npt.NDArray[Any], values: Sequence[str | None]) -> pa.DictionaryArray:
    """Return values[indices] as dictionary text; a None value is NULL."""
    distinct = list(dict.fromkeys(v for v in values if v is not None))
    codes = {value: code for code, value in enumerate(distinct)}
    table = np.array([codes[v] if v is not None else -1 for v in values], dtype=np.int32)
    chosen = table[indices] if len(table) else np.full(len(indices), -1, dtype=np.int32)
    mask = chosen < 0
    return pa.DictionaryArray.from_arrays(pa.array(chosen, mask=mask if mask.any() else None), pa.array(distinct, pa.string()))
