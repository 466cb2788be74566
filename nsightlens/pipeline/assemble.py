"""A profile as read -> the parts to store, each as soon as what its rows need is derived. Nothing here changes what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.attribution.stacks import Frames
from nsightlens.columns.row_templates import RowTemplates, expand, stored_schema, stored_template_schema
from nsightlens.pipeline import small_tables
from nsightlens.pipeline.derivation import (
    LaunchNumbers,
    SummaryNames,
    launch_numbers,
    linked_to_calls,
    linked_work,
    named_kernels,
    outlasting,
    recorded_calls,
)
from nsightlens.pipeline.identity import ProfileIdentity, identify
from nsightlens.pipeline.profile_rows import SMALL, ProfileRows
from nsightlens.readers.batches import conform
from nsightlens.schema import FRAMES, ROW_LINKS, TABLES, TEMPLATE, Table, templates_of
from nsightlens.store.secret_free_rows import without_secrets_in_prose

_Links = Mapping[str, tuple[str, int]]
"""Column that is the id of a row of another table -> the column with its number in the window, and the id of number 0."""


class DerivedColumns(Protocol):
    """Columns that were derived for the rows (or templates) of a table."""

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return them for some rows, given the columns that are known."""


class Splits(Protocol):
    """What rows of one template differ in: more templates, that are stored in their place."""

    def templates(self, first: int, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the templates to store in place of a batch of them, the first of which has this number."""


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """One Parquet part to write: its name (a table, or its templates), its columns, and its rows, made while they are read."""

    name: str
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def parts(recorded: ProfileRows) -> Iterator[ParquetPart]:
    """Yield the parts of a profile: while the next is derived, those before may be written. Raises OverlapError."""
    identified = identify(recorded)
    calls = recorded_calls(recorded, identified)
    ranges, allocations = calls.ranges, calls.allocations
    yield from _templated(identified, recorded, "api_calls", [calls.call_ranges])
    if calls.frames:
        yield _frames(identified, calls.frames)
    calls_of = linked_to_calls(recorded, identified, calls)
    work = linked_work(recorded, identified, calls)
    del calls  # to find ranges takes half of the memory
    named = named_kernels(recorded)
    numbers = launch_numbers(recorded, identified, work, named)
    late = outlasting(recorded, identified, work)
    identified = replace(identified, gpu_spans=work.gpu_spans, warnings=(*identified.warnings, *work.warnings))
    links, times = work.links, work.times
    kernels, memory_ops = work.attributed.get("kernels"), work.attributed.get("memory_ops")
    del work
    derived: list[DerivedColumns | None] = [numbers, links["kernels"], times["kernels"], kernels, late]
    yield from _templated(identified, recorded, "kernels", derived, kernels, named)
    yield from _templated(identified, recorded, "memory_ops", [links["memory_ops"], times["memory_ops"], memory_ops], memory_ops)
    yield from _templated(identified, recorded, "graph_executions", [])
    for name in ("os_calls", "page_faults", "device_samples", "cpu_samples", "thread_states", "mpi_calls"):
        yield from _templated(identified, recorded, name, [])
    for name, made_by in calls_of.items():
        yield from _templated(identified, recorded, name, [made_by])
    yield from _templated(identified, recorded, "ranges", [ranges], ranges)
    plain: dict[str, DerivedColumns | None] = {"metric_summaries": SummaryNames(recorded.profile.tool),
                                               "allocations": allocations}
    for table in TABLES.values():
        if table.name in SMALL:
            yield ParquetPart(table.name, stored_schema(table), iter([small_tables.batch(table, identified, recorded)]))
        elif not table.varying and table is not FRAMES:
            rows = _plain(identified, recorded, table, numbers, plain.get(table.name))
            yield ParquetPart(table.name, stored_schema(table), rows)


def _frames(identified: ProfileIdentity, frames: Frames) -> ParquetPart:
    """Return the part of the Python frames, which belong to a process and to no window."""
    columns = frames.columns() | identified.process_columns(frames.process(), None)
    columns |= identified.stamp(len(columns["name"]), 0)
    batch = _conformed(columns, stored_schema(FRAMES), FRAMES)
    return ParquetPart(FRAMES.name, stored_schema(FRAMES), iter([batch]))


def _templated(
    identified: ProfileIdentity, recorded: ProfileRows, name: str, derived: Sequence[DerivedColumns | None], splits: Splits
    | None = None,
    of_templates: DerivedColumns | None = None,
) -> Iterator[ParquetPart]:
    """Yield the two parts of a table that is stored as facts and templates. derived: for its rows; of_templates: for these."""
    table = TABLES[name]
    templates = recorded.templates[name]
    links = _links(identified, recorded, table)
    facts = _facts(identified, table, _stamped(identified, table, templates, of_templates, links), derived)
    yield ParquetPart(name, stored_schema(table), facts)
    dimension = _dimension(table, _stamped(identified, table, templates, of_templates, links), splits)
    yield ParquetPart(templates_of(name), stored_template_schema(table), dimension)


def _facts(
    identified: ProfileIdentity, table: Table, generations: Iterator[tuple[int, pa.RecordBatch]],
    derived: Sequence[DerivedColumns | None],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table, with all columns, and the number of each row's template."""
    done, first, known = 0, 0, None
    for window, shift in zip(identified.windows, identified.shifts, strict=True):
        for batch in window.spooled.get(table.name, ()):
            codes = batch.column(TEMPLATE).to_numpy()
            while len(codes) and (known is None or codes[0] >= first + known.num_rows):
                first, known = next(generations)
            if known is not None:
                columns = expand(known, codes - first) | dict(zip(batch.schema.names, batch.columns, strict=True))
                rows = slice(done, done + batch.num_rows)
                yield _with(_numbered(identified, table, columns, rows, shift), rows, derived, stored_schema(table), table)
            done += batch.num_rows


def _dimension(
    table: Table, generations: Iterator[tuple[int, pa.RecordBatch]], splits: Splits | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the templates of a table, in the order of their numbers."""
    for first, batch in generations:
        yield _conformed(splits.templates(first, batch), stored_template_schema(table), table) if splits else batch


def _stamped(
    identified: ProfileIdentity, table: Table, templates: RowTemplates, derived: DerivedColumns | None, links: Sequence[_Links],
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (number of the first, templates) per generation, with the columns that tell where they come from."""
    for window, first, batch in templates.read():
        columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | identified.stamp(batch.num_rows, window)
        columns.pop("process_index")
        rows = slice(first, first + batch.num_rows)
        columns |= identified.process_columns(identified.process_of[table.name][rows], columns.get("device"))
        columns |= _linked(columns, links[window])
        columns[TEMPLATE] = pa.array(np.arange(rows.start, rows.stop, dtype=np.int32))
        yield first, _with(columns, rows, [derived], stored_template_schema(table), table)


def _plain(
    identified: ProfileIdentity, recorded: ProfileRows, table: Table, numbers: LaunchNumbers, derived: DerivedColumns | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that is stored as it is."""
    done, links = 0, _links(identified, recorded, table)
    for index, (window, shift) in enumerate(zip(identified.windows, identified.shifts, strict=True)):
        for batch in window.spooled.get(table.name, ()):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | identified.stamp(batch.num_rows, index)
            process, kernel_row = columns.pop("process_index", None), columns.pop("kernel_row", None)
            if process is not None:
                local = process.to_numpy(zero_copy_only=False)
                columns |= identified.process_columns(identified.local_processes[index][local], columns.get("device"))
            if kernel_row is not None:
                columns["kernel_id"] = numbers.kernel_ids(kernel_row.to_numpy() + recorded.columns.first_row("kernels", index))
            columns |= _linked(columns, links[index])
            rows = slice(done, done + batch.num_rows)
            numbered = _numbered(identified, table, columns, rows, shift)
            yield _with(numbered, rows, [derived], stored_schema(table), table)
            done += batch.num_rows


def _links(identified: ProfileIdentity, recorded: ProfileRows, table: Table) -> list[_Links]:
    """Return, for each window, the columns of a table that are ids of rows of another."""
    return [{id_: (row, identified.base + recorded.columns.first_row(other, index))
             for id_, (row, other) in ROW_LINKS.get(table.name, {}).items()} for index in range(len(identified.windows))]


def _linked(columns: Mapping[str, pa.Array], links: _Links) -> dict[str, pa.Array]:
    """Return the columns that are ids of rows of another table."""
    return {id_: pc.add(columns[row], first) for id_, (row, first) in links.items() if row in columns}


def _numbered(
    identified: ProfileIdentity, table: Table, columns: dict[str, pa.Array], rows: slice, shift: int,
) -> dict[str, pa.Array]:
    """Return the columns with times on the profile's origin, and the ids of the rows."""
    if shift:
        columns |= {time: pc.add(columns[time], shift) for time in ("start_ns", "at_ns") if time in columns}
    if table.row_id:
        columns[table.row_id] = pa.array(np.arange(rows.start, rows.stop, dtype=np.int64) + identified.base)
    return columns


def _with(
    columns: dict[str, pa.Array], rows: slice, derived: Sequence[DerivedColumns | None], target: pa.Schema, table: Table,
) -> pa.RecordBatch:
    for each in derived:
        if each is not None:
            columns = columns | each.columns(rows, columns)
    return _conformed(columns, target, table)


def _conformed(columns: Mapping[str, pa.Array], target: pa.Schema, table: Table) -> pa.RecordBatch:
    wanted = {name: columns[name] for name in target.names if name in columns}
    return without_secrets_in_prose(conform(pa.RecordBatch.from_pydict(wanted), target, table.name), table)
