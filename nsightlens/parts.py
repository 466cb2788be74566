"""One profile: its windows read, normalised, and written as one Parquet part per table.

Everything here runs in a worker process, for one profile at a time, and knows nothing of the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from nsightlens import schema, workers
from nsightlens.assembly import EARLY, SMALL, Assembly, Profile, Window, stored_kind_schema, stored_schema
from nsightlens.kinds import KIND, Codes, Kinds, kind_schema, kinds_of
from nsightlens.normalise import Narrow
from nsightlens.readers import READERS, Batch
from nsightlens.schema import TABLES, Table
from nsightlens.shelf import Shelf
from nsightlens.staging import Spool, gathered, write_part

__all__ = ["Profile", "write"]

_SIDE_BY_SIDE = 2  # tables that are written at once: each holds some row groups in memory


def write(profile: Profile, directory: Path, *, jobs: int = 1) -> dict[str, int]:
    """Read the profile, write `directory`/<table>.parquet for every table that has rows, return their row counts.

    Raises ReadError where one of its windows cannot be read at all.
    """
    directory.mkdir(parents=True, exist_ok=True)
    reader = next(r for r in READERS if profile.tool == r.TOOL)
    shelf = Shelf(directory)
    narrow = Narrow(profile.tool, shelf)
    kinds = {
        name: Kinds(kind_schema(table), Spool(directory / f".{name}.kinds.arrows", kind_schema(table)))
        for name, table in TABLES.items() if table.varying
    }
    windows = []
    for index, paths in enumerate(profile.windows):
        windows.append(_read_window(reader.read(paths, jobs=jobs), directory, index, narrow, kinds))
        narrow.end_window()
    workers.give_back()
    assembly = Assembly(profile, windows, narrow, kinds, shelf)
    with ThreadPoolExecutor(min(jobs, _SIDE_BY_SIDE)) as threads:
        derived = threads.submit(assembly.derive)
        writing = [threads.submit(_write_table, TABLES[name], assembly, directory) for name in EARLY]
        derived.result()
        writing += [threads.submit(_write_table, table, assembly, directory)
                    for name, table in TABLES.items() if name not in EARLY]
        written = [each.result() for each in writing]
    for spool in [*(s for window in windows for s in window.spools.values()), *(k.spool for k in kinds.values())]:
        spool.remove()
    return {part: rows for parts in written for part, rows in parts.items()}


def _write_table(table: Table, assembly: Assembly, directory: Path) -> dict[str, int]:
    """Write the part or parts of one table, and return their row counts; none where it has no rows."""
    rows = write_part(directory / f"{table.name}.parquet", stored_schema(table), assembly.rows(table))
    if not rows or not table.varying:
        return {table.name: rows} if rows else {}
    part = kinds_of(table.name)
    return {table.name: rows, part: write_part(directory / f"{part}.parquet", stored_kind_schema(table), assembly.kinds(table))}


def _read_window(
    batches: Iterable[Batch], directory: Path, index: int, narrow: Narrow, kinds: dict[str, Kinds],
) -> Window:
    window = Window({}, {name: [] for name in SMALL})
    for name, batch in gathered(batches):
        table = TABLES[name]
        conformed = schema.conform(batch, table.reader_schema, name)
        if name in SMALL:
            window.small[name].extend(conformed.to_pylist())
            continue
        narrow.add(name, conformed)
        if table.varying:
            codes, new = kinds[name].encode(conformed, index)
            narrow.add_kinds(name, codes, new)
            conformed = _without_kind_columns(conformed, table, codes)
        if name not in window.spools:
            window.spools[name] = Spool(directory / f".{name}.{index}.arrows", conformed.schema)
        window.spools[name].append(conformed)
    return window


def _without_kind_columns(batch: pa.RecordBatch, table: Table, codes: Codes) -> pa.RecordBatch:
    names = [name for name in batch.schema.names if name in table.varying]
    return pa.RecordBatch.from_arrays([*(batch.column(n) for n in names), pa.array(codes)], names=[*names, KIND])
