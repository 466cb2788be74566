"""Pages that Python asks for: `nl.summary`, and `nl.compare` of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from nsightlens.errors import NsightlensError
from nsightlens.pages import hints, page, ranks_page
from nsightlens.pages.asked import Page, Section
from nsightlens.pages.behind import tables_behind
from nsightlens.pages.sections import ordered
from nsightlens.pages.summary import MOST, put_pages
from nsightlens.store import filter_values
from nsightlens.terminal.command import Command
from nsightlens.views.python_calls import python_calls

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store


class Pages(dict[str, "pa.Table"]):
    """The tables behind the pages of some runs, by view; printed, and in a notebook, the pages.

    runs: the runs. text: the pages, as the command prints them.
    """

    def __init__(self, tables: dict[str, pa.Table], runs: Sequence[str], text: str) -> None:
        super().__init__(tables)
        self.runs, self.text = tuple(runs), text

    def __repr__(self) -> str:
        """Return the pages."""
        return self.text


def summary(store: Store, filters: dict[str, object]) -> Pages:
    """Return what `nsightlens summary` prints, and the tables behind it.

    filters: column -> a value or several; None: no filter.
    """
    asked = _asked(store, filters)
    runs = _runs(store, asked)
    if not runs:
        raise NsightlensError(f"{store.path}: no capture was read into this store")
    return _pages(store, runs, asked, ordered, lambda pages: put_pages(pages[:MOST], runs, 'nl.summary(store, run="NAME")'))


def ranks(store: Store, filters: dict[str, object]) -> Pages:
    """Return what `nsightlens compare ranks` prints and the tables behind it. filters: as for `summary`."""
    asked = _asked(store, filters)
    there = _runs(store, asked, ranks_page.TOOLS)
    runs = [run for run in there if ranks_page.sections(Page(store, run, asked))]
    if not runs:
        rows = [row for row in store.view("profile_overview").to_pylist() if row["tool"] in ranks_page.TOOLS]
        raise NsightlensError(f'{ranks_page.too_few(rows, asked)}. Two runs: nl.compare(store, "base", "other")')

    def put(pages: Iterable[Page]) -> None:
        for one in pages:
            page.heading(f"Ranks of {one.run}")
            for section in ranks_page.sections(one):
                section(one)

    return _pages(store, runs, asked, ranks_page.sections, put)


def _asked(store: Store, filters: dict[str, object]) -> dict[str, list[object]]:
    asked = {name: list(value) if isinstance(value, (list, tuple, set, range)) else [value]
             for name, value in filters.items() if value is not None}
    filter_values.confirm(store.values_of, asked, "{}")
    return asked


def _runs(store: Store, asked: dict[str, list[object]], tools: Sequence[str] = ()) -> list[str]:
    """Return the runs that are asked for and have a capture (by one of these tools)."""
    rows = store.view("profile_overview").to_pylist()
    found = dict.fromkeys(row["run"] for row in rows if not tools or row["tool"] in tools)
    return [run for run in found if "run" not in asked or run in asked["run"]]


def _pages(
    store: Store, runs: Sequence[str], asked: dict[str, list[object]], sections: Callable[[Page], Iterable[Section]],
    put: Callable[[list[Page]], None],
) -> Pages:
    behind = tables_behind(store, runs, asked, sections)
    with hints.for_reader(hints.Reader(python_calls, Command.python)), page.kept() as lines:
        put([Page(store, run, asked, behind.answers) for run in runs])
    return Pages(behind.tables, runs, "\n".join(lines).strip("\n"))
