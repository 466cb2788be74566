"""One profile as it was read: its rows spooled, the templates of its rows, and the columns that others are derived from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nsightlens.columns.arrays import Places
from nsightlens.columns.gathered import ColumnGatherer, GatheredColumns
from nsightlens.columns.row_templates import RowTemplates, TemplateBuilder, template_schema
from nsightlens.columns.spilled import SpillFolder
from nsightlens.columns.spool import Spool, Spooled, gathered
from nsightlens.discovery.ranks import Sidecar
from nsightlens.discovery.remote import on_disk
from nsightlens.pipeline.repeated_rows import remove_repeats
from nsightlens.readers.batches import Batch, conform, diagnostic
from nsightlens.readers.formats import READERS
from nsightlens.schema import READ, TABLES, TEMPLATE, Table

SMALL = ("profiles", "processes", "devices", "diagnostics")


@dataclass(frozen=True, slots=True)
class ProfileInput:
    """What is to be read as one profile: the files of each of its windows, and what is known from outside of them."""

    profile_id: str
    run: str
    tool: str
    windows: tuple[tuple[Path, ...], ...]
    sidecar: Sidecar | None = None
    rank_hint: tuple[int | None, str | None] = (None, None)


@dataclass(frozen=True, slots=True)
class WindowRows:
    """What one window left: spooled rows per table, and the rows of its small tables."""

    spooled: dict[str, Spooled]
    small: Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class ProfileRows:
    """What reading a profile left. folder: where long columns may be spilled."""

    profile: ProfileInput
    windows: tuple[WindowRows, ...]
    columns: GatheredColumns
    templates: Mapping[str, RowTemplates]
    folder: SpillFolder

    def remove(self) -> None:
        """Delete the rows that lie on disk."""
        for window in self.windows:
            for spooled in window.spooled.values():
                spooled.remove()
        for templates in self.templates.values():
            templates.spooled.remove()


def read(profile: ProfileInput, folder: Path, *, jobs: int) -> ProfileRows:
    """Return the profile as its reader reads it. Raises ReadError where one of its windows cannot be read at all."""
    reader = next(r for r in READERS if profile.tool == r.TOOL)
    spill = SpillFolder(folder)
    columns = ColumnGatherer(spill)
    builders = {
        name: TemplateBuilder(template_schema(table), Spool(folder / f".{name}.templates.arrows", template_schema(table)))
        for name, table in READ.items() if table.varying
    }
    windows = []
    for index, paths in enumerate(profile.windows):
        columns.begin_window()
        with on_disk(paths, reader.NEEDS_FILES) as here:
            windows.append(_window(reader.read(here, jobs=jobs), folder, index, columns, builders))
    templates = {name: builder.finish() for name, builder in builders.items()}
    gathered_columns = columns.finish()
    removed = remove_repeats([window.spooled for window in windows], gathered_columns, templates, folder)
    for window, count in zip(windows, removed, strict=True):
        if count:
            window.small["diagnostics"].extend(_repeats(count).to_pylist())
    return ProfileRows(profile, tuple(windows), gathered_columns, templates, spill)


def _repeats(count: int) -> pa.RecordBatch:
    return diagnostic("warning", "repeated_events", "Records of GPU work that the file holds more than once, equal in every "
                      "field: each is counted once.", count)[1]


def _window(
    batches: Iterable[Batch], folder: Path, index: int, columns: ColumnGatherer, builders: Mapping[str, TemplateBuilder],
) -> WindowRows:
    spools: dict[str, Spool] = {}
    small: dict[str, list[dict[str, Any]]] = {name: [] for name in SMALL}
    for name, batch in gathered(batches):
        table = READ[name]
        conformed = conform(batch, table.reader_schema, name)
        if name in SMALL:
            small[name].extend(conformed.to_pylist())
            continue
        columns.add(name, conformed)
        if table.varying:
            codes, new = builders[name].encode(conformed, index)
            columns.add_templates(name, codes, new)
            if name not in TABLES:
                continue  # what is gathered of them is all that is kept
            conformed = _facts(conformed, table, codes)
        if name not in spools:
            spools[name] = Spool(folder / f".{name}.{index}.arrows", conformed.schema)
        spools[name].append(conformed)
    return WindowRows({name: spool.finish() for name, spool in spools.items()}, small)


def _facts(batch: pa.RecordBatch, table: Table, codes: Places) -> pa.RecordBatch:
    """Return the columns that vary from row to row, and the number of each row's template."""
    names = [name for name in batch.schema.names if name in table.varying]
    return pa.RecordBatch.from_arrays([*(batch.column(n) for n in names), pa.array(codes)], names=[*names, TEMPLATE])
