"""The rows of a profile as its reader gave them -> the same without GPU work that its file records more than once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import Int, Mask, numbered
from nsightlens.columns.gathered import GatheredColumns
from nsightlens.columns.repeats import repeated
from nsightlens.columns.row_templates import RowTemplates
from nsightlens.columns.spilled import SpillFolder, whole
from nsightlens.columns.spool import Spool, Spooled

_VARYING = {"kernels": ("start_ns", "duration_ns", "graph_node_id"), "memory_ops": ("start_ns", "duration_ns")}
"""Tables of GPU work, with columns that tell most rows apart."""


def remove_repeats(
    spooled: Sequence[dict[str, Spooled]], columns: GatheredColumns, templates: Mapping[str, RowTemplates], folder: Path,
) -> list[int]:
    """Take the repeated rows out of the columns and out of the spools of each window; return how many each window had."""
    removed = [0] * len(spooled)
    for table in filter(columns.rows, _VARYING):
        rows = _repeated(table, spooled, columns, templates[table])
        firsts = [columns.first_row(table, window) for window in range(len(spooled))]
        if len(rows):
            columns.drop(table, rows, SpillFolder(folder))
        for window, part in enumerate(np.split(rows, np.searchsorted(rows, firsts[1:]))):
            if len(part):
                path = folder / f".{table}.{window}.once.arrows"
                spooled[window][table] = _without(spooled[window][table], part - firsts[window], path)
                removed[window] += len(part)
    return removed


def _repeated(table: str, spooled: Sequence[Mapping[str, Spooled]], columns: GatheredColumns, templates: RowTemplates) -> Int:
    def content(rows: Int) -> list[str]:
        wanted = np.zeros(columns.rows(table), dtype=np.bool_)
        wanted[rows] = True
        every = (batch for window in spooled for batch in window.get(table, ()))
        return [str(row) for batch in _kept(every, wanted) for row in batch.to_pylist()]

    owner = numbered(templates.windows(), whole(columns.look(table, "process_index")))
    varying = [columns.look(table, name) for name in _VARYING[table]]
    return repeated(owner, columns.look(table, "template"), columns.look(table, "correlation_id"), varying, content)


def _without(spooled: Spooled, rows: Int, path: Path) -> Spooled:
    """Return the batches without these rows, and delete what lay on disk of them."""
    batches = list(spooled)
    kept = np.ones(sum(batch.num_rows for batch in batches), dtype=np.bool_)
    kept[rows] = False
    spool = Spool(path, batches[0].schema)
    for batch in _kept(iter(batches), kept):
        spool.append(batch)
    spooled.remove()
    return spool.finish()


def _kept(batches: Iterator[pa.RecordBatch], kept: Mask) -> Iterator[pa.RecordBatch]:
    """Yield of each batch the rows that are kept."""
    done = 0
    for batch in batches:
        yield batch.filter(pa.array(kept[done : done + batch.num_rows]))
        done += batch.num_rows
