"""The sections of pages, each composed once, and the tables that they were read from: programs get those."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from nsightlens.pages.query import Page, Row

if TYPE_CHECKING:
    import pyarrow as pa

_Made = TypeVar("_Made")
OnStep = Callable[[int, int, str], None]
"""Takes a step that begins: how many are done, how many there are, and its name."""


@dataclass(slots=True)
class CollectedPage(Page):
    """A page that keeps the tables of the views that are asked whole."""

    tables: dict[str, pa.Table] = field(default_factory=dict)

    def ask(self, view: str, **parameters: object) -> list[Row]:
        """Return what Page.ask returns."""
        key = (view, *parameters.items())
        if key not in self.answers:
            self.tables[view] = self.table(view, parameters)
            self.answers[key] = self.tables[view].to_pylist()
        return Page.ask(self, view, **parameters)


def compose(
    pages: Iterable[Page], parts: Callable[[Page], Iterable[Callable[[Page], _Made]]], on_step: OnStep | None = None,
) -> list[list[_Made]]:
    """Return what the parts of each page give. parts: those of a page. on_step: called before each of them."""
    asked = [(page, list(parts(page))) for page in pages]
    count, done = sum(len(those) for _, those in asked), 0
    pages_made: list[list[_Made]] = []
    for page, those in asked:
        pages_made.append([])
        for part in those:
            if on_step:
                on_step(done, count, part.__name__.replace("_", " "))
            pages_made[-1].append(part(page))
            done += 1
    return pages_made
