"""The rows of one profile between reader and Parquet part: kept in memory while few, else in an Arrow stream on disk.

Memory is bounded by the budget below, whatever the size of the profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nsightlens.readers.batches import Batch
from nsightlens.schema import METRICS, PACKED_METRICS

MEMORY_BUDGET = 4 << 20
ROW_GROUP = 1 << 16
ROW_GROUP_METRICS = 1 << 18
_GATHERED_ROWS = 1 << 14
_GATHERED_BYTES = 2 << 20
_DELTA = ("start_ns", "at_ns", "kernel_id", "memory_op_id", "launch_id", "range_id", "launch_index", "correlation_id",
          "queue_delay_ns", "external_id", "allocation_id", "parent_id", "frame_id", "last_id", "host_ns",
          "sampled_frame_id")


def gathered(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the same rows in fewer batches: what is done per batch costs as much for a thousand rows as for ten thousand.

    The rows of each table stay in order. Little is held back: rows up to a number, or up to so many bytes.
    """
    held: dict[str, list[pa.RecordBatch]] = {}
    sizes: Counter[tuple[str, str]] = Counter()
    for name, batch in batches:
        held.setdefault(name, []).append(batch)
        sizes[name, "rows"] += batch.num_rows
        sizes[name, "bytes"] += batch.nbytes
        if sizes[name, "rows"] >= _GATHERED_ROWS or sizes[name, "bytes"] >= _GATHERED_BYTES:
            sizes[name, "rows"] = sizes[name, "bytes"] = 0
            yield name, _joined(held.pop(name))
    for name, some in held.items():
        yield name, _joined(some)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all batches as one; a column that some of them lack is NULL there."""
    some = [batch for batch in batches if batch.num_rows] or batches[:1]
    if len(some) == 1:
        return some[0]
    tables = [pa.Table.from_batches([batch]) for batch in some]
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    return whole.to_batches()[0]


class Spool:
    """Takes in batches of one schema; `finish` returns them."""

    def __init__(self, path: Path, schema: pa.Schema, budget: int = MEMORY_BUDGET) -> None:
        self.schema = schema
        self._path = path
        self._budget = budget
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def append(self, batch: pa.RecordBatch) -> None:
        """Add `batch`, which must have this spool's schema."""
        if self._writer is not None:
            self._writer.write_batch(batch)
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > self._budget:
            self._spill()

    def _spill(self) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(str(self._path), self.schema, options=options)
        for batch in self._held:
            self._writer.write_batch(batch)
        self._held.clear()

    def finish(self) -> Spooled:
        """Return the batches; nothing can be added afterwards."""
        if self._writer is not None:
            self._writer.close()
            return Spooled((), self._path)
        return Spooled(tuple(self._held), None)


@dataclass(frozen=True, slots=True)
class Spooled:
    """Batches in the order they came, in memory or on disk: they can be read any number of times, by several threads at once."""

    held: tuple[pa.RecordBatch, ...]
    path: Path | None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        if self.path is None:
            yield from self.held
            return
        with pa.OSFile(str(self.path)) as source, pa.ipc.open_stream(source) as reader:
            yield from reader

    def remove(self) -> None:
        """Delete what lies on disk."""
        if self.path is not None:
            self.path.unlink()


def write_part(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the batches as one Parquet file; return the rows (0: no file).

    A row group has about ROW_GROUP rows, or fewer where their metrics are more than ROW_GROUP_METRICS.
    """
    rows, held, held_rows, held_metrics = 0, [], 0, 0
    written = pa.schema([f.with_type(METRICS) if f.type == PACKED_METRICS else f for f in schema])
    with ExitStack() as stack:
        writing: Future[None] | None = None  # one group is written while the next is made
        for batch in chain(batches, [None]):
            if batch is not None:
                held.append(batch)
                held_rows += batch.num_rows
                held_metrics += _metrics(batch)
            if held_rows >= ROW_GROUP or held_metrics >= ROW_GROUP_METRICS or (batch is None and held_rows):
                if writing:
                    writing.result()
                else:
                    writer = stack.enter_context(pq.ParquetWriter(path, written, **_encoding(schema)))
                    beside = stack.enter_context(ThreadPoolExecutor(1))
                writing = beside.submit(_write_group, writer, held, held_rows)
                rows, held, held_rows, held_metrics = rows + held_rows, [], 0, 0
        if writing:
            writing.result()
    return rows


def _metrics(batch: pa.RecordBatch) -> int:
    """Return how many metric values the batch has."""
    at = batch.schema.get_field_index("metrics")
    return 0 if at < 0 else len(batch.column(at).items) if batch.column(at).null_count < batch.num_rows else 0


def _write_group(writer: pq.ParquetWriter, batches: list[pa.RecordBatch], rows: int) -> None:
    table = pa.Table.from_batches(batches).unify_dictionaries()
    writer.write_table(table.cast(writer.schema), row_group_size=rows)


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Return writer options: deltas for growing integers, dictionaries for the rest, zstd over all.

    Texts get no statistics: every row group has all names, and to compare them takes a third of the time to write.
    """
    delta = [name for name in _DELTA if name in schema.names]
    dictionary = [f.name for f in schema if f.name not in delta and not pa.types.is_map(f.type)]
    if "metrics" in schema.names:
        dictionary.append("metrics.key_value.key")
    numbers = [f.name for f in schema if not pa.types.is_dictionary(f.type) and not pa.types.is_map(f.type)]
    if "metrics" in schema.names:
        numbers += ["metrics.key_value.key", "metrics.key_value.value"]
    return {"compression": "zstd", "compression_level": 1, "use_dictionary": dictionary, "write_statistics": numbers,
            "column_encoding": dict.fromkeys(delta, "DELTA_BINARY_PACKED"), "version": "2.6"}
