"""The Python calls that return pages: `nl.summary`, and `nl.compare` of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from nsightlens.errors import NsightlensError
from nsightlens.pages import ranks_page
from nsightlens.pages.collected_page import CollectedPage, compose
from nsightlens.pages.page import Renderer
from nsightlens.pages.sections import ordered
from nsightlens.pages.summary import MOST, pages_drawn
from nsightlens.store import filter_values
from nsightlens.terminal.command import Command

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store


class Pages(dict[str, "pa.Table"]):
    """The tables behind the pages of some runs, by view; printed, and in a notebook, the pages.

    runs: the runs. text: the pages, as the command prints them.
    """

    def __init__(self, tables: dict[str, pa.Table], runs: Sequence[str], text: str) -> None:
        super().__init__(tables)
        self.runs, self.text = tuple(runs), click.unstyle(text).strip("\n")

    def __repr__(self) -> str:
        """Return the pages."""
        return self.text


def summary(store: Store, filters: dict[str, object]) -> Pages:
    """Return what `nsightlens summary` prints, and the tables behind it.

    filters: column -> a value or several; None: no filter.
    """
    asked = _column_filters(store, filters)
    runs = _runs(store, asked)
    if not runs:
        raise NsightlensError(f"{store.path}: no capture was read into this store")
    page = CollectedPage(store, "", asked)
    made = compose([replace(page, run=run) for run in runs], ordered)
    return Pages(page.tables, runs, pages_drawn(_renderer(), made[:MOST], runs, 'nl.summary(store, run="NAME")'))


def ranks(store: Store, filters: dict[str, object]) -> Pages:
    """Return what `nsightlens compare ranks` prints and the tables behind it. filters: as for `summary`."""
    asked = _column_filters(store, filters)
    page = CollectedPage(store, "", asked)
    runs = _runs(store, asked, ranks_page.TOOLS)
    made = {run: parts for run in runs if (parts := compose([replace(page, run=run)], ranks_page.parts)[0])}
    if not made:
        rows = [row for row in store.view("profile_overview").to_pylist() if row["tool"] in ranks_page.TOOLS]
        raise NsightlensError(f'{ranks_page.too_few(rows, asked)}. Two runs: nl.compare(store, "base", "other")')
    return Pages(page.tables, list(made), "\n".join(_renderer().drawn(ranks_page.sections(made))))


def _renderer() -> Renderer:
    return Renderer(Command.python)


def _column_filters(store: Store, filters: dict[str, object]) -> dict[str, list[object]]:
    asked = {name: list(value) if isinstance(value, (list, tuple, set, range)) else [value]
             for name, value in filters.items() if value is not None}
    filter_values.confirm(store.values_of, asked, "{}")
    return asked


def _runs(store: Store, asked: dict[str, list[object]], tools: Sequence[str] = ()) -> list[str]:
    """Return the runs that are asked for and have a capture (by one of these tools)."""
    rows = store.view("profile_overview").to_pylist()
    found = dict.fromkeys(row["run"] for row in rows if not tools or row["tool"] in tools)
    return [run for run in found if "run" not in asked or run in asked["run"]]
