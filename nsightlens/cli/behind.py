"""The tables behind a page: what its sections ask, for programs instead of people."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nsightlens.cli.asked import Page, Row, Section
from nsightlens.cli.progress import steps

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store


@dataclass(slots=True)
class _Noting(Page):
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
    doing: str,
) -> dict[str, pa.Table]:
    """Return {view: its rows} for the views that the sections of these runs ask whole, in the order of the page.

    sections: those of a page. doing: the word for how far it is.
    """
    page = _Noting(store, "", filters)
    for run in runs:
        page.run = run
        ask_first([page], sections, doing)
    return page.tables


def ask_first(pages: Iterable[Page], sections: Callable[[Page], Iterable[Section]], doing: str) -> None:
    """Let the pages ask what their sections ask, printing nothing but how far that is.

    doing: the word for it.
    """
    with steps(doing) as begin, redirect_stdout(io.StringIO()):
        parts = [(replace(page, missing=[]), section) for page in pages for section in sections(page)]
        for done, (page, section) in enumerate(parts):
            begin(done, len(parts), section.__name__.replace("_", " "))
            section(page)
