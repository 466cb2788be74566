"""A report beside CSV pages of it -> one report: what it states is exact, so that pages add only launches that it has lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nsightlens.readers.ncu.merge import NcuReport, merge
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.page import Entries, Launch, Page
from nsightlens.readers.ncu_rep.page import KIND


def united(pages: Sequence[Page], notes: Notes) -> NcuReport:
    """Return the union of pages (see merge); of launches that a report holds nothing is taken from CSV pages.

    What they print otherwise than the report is counted as conflicts.
    """
    reports = [page for page in pages if page.kind == KIND]
    printed = [page for page in pages if page.kind != KIND]
    if not reports or not printed:
        return merge(pages, notes)
    held = {(launch.pid, launch.ncu_id): launch for page in reports for launch in page.launches}
    printed = [replace(page, launches=[_as_reported(launch, held) for launch in page.launches]) for page in printed]
    conflicts = merge([*reports, *printed], notes).conflicts
    keys = {launch.key for launch in held.values()}
    rest = [one for page in printed if (one := _beyond(page, keys)).launches]
    there = {launch.key for page in printed for launch in page.launches}
    notes.add("pages_beside_report", f"{len(printed)} pages", len(there & keys))
    notes.add("pages_beyond_report", "", len(there - keys))
    return replace(merge([*reports, *rest], Notes()), conflicts=conflicts)


def _as_reported(launch: Launch, held: Mapping[tuple[int | None, int | None], Launch]) -> Launch:
    """Return a launch as the report names it, where it holds it. Pages print names without namespaces, or bare ones."""
    other = held.get((launch.pid, launch.ncu_id))
    if other is None or any(a and b and a != b for a, b in ((launch.grid, other.grid), (launch.block, other.block))):
        return launch
    if launch.name and other.function and other.function not in launch.name:
        return launch
    return launch._replace(name=other.name, grid=other.grid, block=other.block, host=other.host)


def _beyond(page: Page, held: Collection[tuple[object, ...]]) -> Page:
    """Return the page without the launches with these keys."""
    keep = np.array([launch.key not in held for launch in page.launches], dtype=np.bool_)
    place = np.cumsum(keep) - 1
    entries, steps = page.entries, page.steps()
    some = keep[entries.launch]
    left = Entries.of(entries.names, int(keep.sum()), place[entries.launch[some]], entries.metric[some], entries.value[some])

    def renumbered(table: pa.Table) -> pa.Table:
        launch = table["launch"].to_numpy()
        rest = table.filter(pa.array(keep[launch]))
        return rest.set_column(0, "launch", pa.array(place[launch[keep[launch]]], pa.int64()))

    launches = [launch for launch, kept in zip(page.launches, keep.tolist(), strict=True) if kept]
    return replace(page, launches=launches, entries=left, steps=lambda: steps[some], texts=renumbered(page.texts),
                   rules=renumbered(page.rules), untimed=place[page.untimed[keep[page.untimed]]])
