"""The tables behind a page: what its sections ask, for programs instead of people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nsightlens.pages.asked import Page, Row, Section
from nsightlens.pages.page import kept

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store

OnStep = Callable[[int, int, str], None]
"""Takes a step that begins: how many are done, how many there are, and its name."""


@dataclass(slots=True)
class Noting(Page):
    """A page that keeps the tables of the views that are asked whole."""

    tables: dict[str, pa.Table] = field(default_factory=dict)

    def ask(self, view: str, **parameters: object) -> list[Row]:
        """Return what Page.ask returns."""
        key = (view, *parameters.items())
        if key not in self.answers:
            self.tables[view] = self.table(view, parameters)
            self.answers[key] = self.tables[view].to_pylist()
        return Page.ask(self, view, **parameters)


def tables_behind(
    store: Store, runs: Iterable[str], filters: dict[str, list[object]], sections: Callable[[Page], Iterable[Section]],
    on_step: OnStep | None = None,
) -> Noting:
    """Return a page with the `tables` (view -> its rows) that the sections of these runs ask whole, in the order of the page.

    sections: those of a page. on_step: called before each section.
    """
    page = Noting(store, "", filters)
    ask_first([replace(page, run=run) for run in runs], sections, on_step)
    return page


def ask_first(pages: Iterable[Page], sections: Callable[[Page], Iterable[Section]], on_step: OnStep | None = None) -> None:
    """Let the pages ask what their sections ask, printing nothing. on_step: called before each section."""
    with kept():
        parts = [(replace(page, missing=[]), section) for page in pages for section in sections(page)]
        for done, (page, section) in enumerate(parts):
            if on_step:
                on_step(done, len(parts), section.__name__.replace("_", " "))
            section(page)
