"""The rows of one profile between reader and Parquet part: kept in memory while few, else in an Arrow stream on disk.

Memory is bounded by the budget below, whatever the size of the profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MEMORY_BUDGET = 4 << 20
ROW_GROUP = 1 << 16
_DELTA = ("start_ns", "at_ns", "kernel_id", "memory_op_id", "launch_id", "range_id", "launch_index", "correlation_id",
          "queue_delay_ns", "external_id", "allocation_id")


class Spool:
    """Batches of one schema, written once and then read any number of times in the order they came."""

    def __init__(self, path: Path, schema: pa.Schema, budget: int = MEMORY_BUDGET) -> None:
        self.schema = schema
        self.rows = 0
        self._path = path
        self._budget = budget
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def append(self, batch: pa.RecordBatch) -> None:
        """Add `batch`, which must have this spool's schema."""
        self.rows += batch.num_rows
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

    def finish(self) -> None:
        """End the writing; a no-op the second time."""
        if self._writer is not None:
            self._writer.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the order they came."""
        self.finish()
        if self._writer is None:
            yield from self._held
            return
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_stream(source) as reader:
            yield from reader

    def remove(self) -> None:
        """Forget the rows and delete what lies on disk."""
        self.finish()
        self._held.clear()
        self._path.unlink(missing_ok=True)


def write_part(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the batches as one Parquet file in row groups of about ROW_GROUP rows; return the rows (0: no file)."""
    rows, held, held_rows = 0, [], 0
    with pq.ParquetWriter(path, schema, **_encoding(schema)) as writer, ThreadPoolExecutor(1) as beside:
        writing: Future[None] | None = None  # one group is written while the next is made
        for batch in chain(batches, [None]):
            if batch is not None:
                held.append(batch)
                held_rows += batch.num_rows
            if held_rows >= ROW_GROUP or (batch is None and held_rows):
                if writing:
                    writing.result()
                writing = beside.submit(_write_group, writer, held, held_rows)
                rows, held, held_rows = rows + held_rows, [], 0
        if writing:
            writing.result()
    if not rows:
        path.unlink()
    return rows


def _write_group(writer: pq.ParquetWriter, batches: list[pa.RecordBatch], rows: int) -> None:
    writer.write_table(pa.Table.from_batches(batches).unify_dictionaries(), row_group_size=rows)


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Return writer options: deltas for growing integers, dictionaries for the rest, zstd over all."""
    delta = [name for name in _DELTA if name in schema.names]
    dictionary = [f.name for f in schema if f.name not in delta and not pa.types.is_map(f.type)]
    if "metrics" in schema.names:
        dictionary.append("metrics.key_value.key")
    return {"compression": "zstd", "compression_level": 1, "use_dictionary": dictionary,
            "column_encoding": dict.fromkeys(delta, "DELTA_BINARY_PACKED"), "version": "2.6"}
