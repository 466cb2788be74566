"""The few integer columns of a profile that whole-profile derivations need, gathered while its rows stream by.

They are narrow, and on disk where they are long (spilled.py). What rows of one template have in common is gathered per template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import MISSING, Int, Places, integers
from nsightlens.columns.kernel_columns import NameCodes, call_codes, configuration
from nsightlens.columns.spilled import ColumnBuilder, LongColumn, SpillFolder, values_at, whole

_PER_ROW = {
    "kernels": ("correlation_id", "start_ns", "duration_ns", "graph_node_id", "ncu_id", "external_id"),
    "memory_ops": ("correlation_id", "start_ns", "duration_ns", "external_id"),
    "graph_executions": ("start_ns", "duration_ns"),
    "api_calls": ("correlation_id", "start_ns", "duration_ns", "external_id"),
    "synchronizations": ("correlation_id",),
    "cuda_events": ("correlation_id",),
    "host_functions": ("correlation_id",),
    "overheads": ("correlation_id",),
    "ranges": ("start_ns", "duration_ns", "sequence", "step", "external_id"),
    "frame_calls": ("start_ns", "duration_ns"),
    "call_stacks": ("start_ns", "duration_ns"),
    "allocations": ("process_index", "thread", "at_ns"),
}
_STREAM = ("device", "context", "stream")
_TYPES = {"template": np.int32, "name": np.int32, "code": np.int32, "configuration": np.uint64}
"""Of columns that are not int64."""
GPU_WORK = ("kernels", "memory_ops", "graph_executions")


class ColumnGatherer:
    """Gathers the columns from batches, window by window; `finish` returns them."""

    def __init__(self, folder: SpillFolder) -> None:
        self._folder = folder
        self._names = NameCodes()
        self._windows: list[Counter[str]] = []
        self._spans: list[tuple[int, int] | None] = []
        self._kernel_ns: int | None = None
        self._columns: dict[tuple[str, str], ColumnBuilder] = {}

    def begin_window(self) -> None:
        """Count what is added from now on to the next window."""
        self._windows.append(Counter())
        self._spans.append(None)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Gather from one batch of rows."""
        self._windows[-1][table] += batch.num_rows
        for name in _PER_ROW.get(table, ()):
            column = batch.column(name)
            known = column.null_count < batch.num_rows
            self._keep(table, name, integers(column) if known else np.broadcast_to(MISSING, batch.num_rows))
        if table in GPU_WORK:
            self._add_time(table, batch.column("start_ns"), batch.column("duration_ns"))

    def add_templates(self, table: str, codes: Places, new: pa.RecordBatch) -> None:
        """Gather the template of each row of a batch, and the templates that are new with it."""
        if table in _PER_ROW:
            self._keep(table, "template", codes)
        if new.num_rows:
            self._keep(table, "process_index", integers(new.column("process_index")))
            if "thread" in new.schema.names:
                self._keep(table, "thread", integers(new.column("thread")))
            if table == "api_calls":
                self._keep(table, "code", call_codes(new))
            if table == "kernels":
                for name in _STREAM:
                    self._keep(table, name, integers(new.column(name)))
                self._keep(table, "name", self._names.encode(new))
                self._keep(table, "configuration", configuration(new))

    def _add_time(self, table: str, start: pa.Array, duration: pa.Array) -> None:
        if table == "kernels":
            took = pc.sum(duration).as_py()
            self._kernel_ns = self._kernel_ns if took is None else (self._kernel_ns or 0) + took
        first = pc.min(start).as_py()
        if first is not None:
            last = pc.max(pc.add(start, pc.fill_null(duration, 0))).as_py()
            before = self._spans[-1] or (first, last)
            self._spans[-1] = min(first, before[0]), max(last, before[1])

    def _keep(self, table: str, column: str, values: Any) -> None:
        if (table, column) not in self._columns:
            self._columns[table, column] = ColumnBuilder(self._folder, _TYPES.get(column, np.int64))
        self._columns[table, column].add(values)

    def finish(self) -> GatheredColumns:
        """Return what was gathered; nothing can be added afterwards."""
        columns, self._columns = self._columns, {}
        kernel_ns = self._kernel_ns if any(window["kernels"] for window in self._windows) else 0
        return GatheredColumns(columns, tuple(self._windows), tuple(self._spans), kernel_ns, self._names.names())


class GatheredColumns:
    """The gathered columns of a profile. Each is taken once: it belongs to the stage that needs it, and goes with it."""

    def __init__(
        self, columns: Mapping[tuple[str, str], ColumnBuilder], window_rows: Sequence[Counter[str]],
        gpu_spans: Sequence[tuple[int, int] | None], kernel_ns: int | None, names: Sequence[tuple[str | None, str | None]],
    ) -> None:
        """gpu_spans: earliest start and latest end of each window's GPU work, on its own clock.
        kernel_ns: sum of the kernels' durations; None where there are some and none is known.
        names: name and mangled name by the numbers in the column `name` of kernels.
        """
        self.gpu_spans = gpu_spans
        self.kernel_ns = kernel_ns
        self.names = names
        self._columns: dict[tuple[str, str], ColumnBuilder | LongColumn] = dict(columns)
        self._window_rows = window_rows

    def rows(self, table: str) -> int:
        """Return the rows of `table` over all windows."""
        return self.first_row(table, len(self._window_rows))

    def first_row(self, table: str, window: int) -> int:
        """Return how many rows of `table` came before a window."""
        return sum(rows.get(table, 0) for rows in self._window_rows[:window])

    def take(self, table: str, column: str) -> Any:
        """Return a column over all windows, in memory."""
        return whole(self.take_long(table, column))

    def take_long(self, table: str, column: str) -> LongColumn:
        """Return a column over all windows, on disk where it is long."""
        found = self.look(table, column)
        self._columns.pop((table, column), None)
        return found

    def look(self, table: str, column: str) -> LongColumn:
        """Return a column that is taken later."""
        found = self._columns.get((table, column))
        if isinstance(found, ColumnBuilder):
            found = self._columns[table, column] = found.column()
        return np.empty(0, dtype=_TYPES.get(column, np.int64)) if found is None else found

    def drop(self, table: str, rows: Int, folder: SpillFolder) -> None:
        """Forget rows (in order) of `table`: their templates stay. Nothing may have been taken of it."""
        if table == "kernels" and self.kernel_ns is not None:
            lost = values_at(self.look(table, "duration_ns"), rows)
            self.kernel_ns -= int(lost[lost != MISSING].sum())
        for name in (*_PER_ROW[table], "template"):
            self._columns[table, name] = folder.spill(np.delete(whole(self.look(table, name)), rows))
        firsts = [self.first_row(table, window) for window in range(len(self._window_rows) + 1)]
        for window, (first, end) in enumerate(pairwise(firsts)):
            self._window_rows[window][table] -= int(np.count_nonzero((rows >= first) & (rows < end)))

    def per_window(self, table: str, values: Sequence[int]) -> Int:
        """Return, per row of `table`, the value of its window."""
        return np.repeat(np.asarray(values, dtype=np.int64), [rows.get(table, 0) for rows in self._window_rows])
