"""The queries of a page: rows of views for one run, under the filters that were given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.pages.section import Absent, Section
    from nsightlens.store.store import Store

Row = dict[str, Any]

_PLURALS = {"rank": "ranks", "step": "steps", "family": "families", "run": "runs", "tool": "tools"}
TIMELINE = ("nsys", "kineto")
"""Tools with a timeline, the least disturbed first."""


@dataclass(slots=True)
class Page:
    """What the page is about: a store, one of its runs, the filters given (column -> values), and the answers so far.

    A view is computed once for all runs: it costs the same whichever rows are kept.
    """

    store: Store
    run: str
    filters: dict[str, list[object]]
    answers: dict[tuple[object, ...], list[Row]] = field(default_factory=dict)

    def ask(self, view: str, **parameters: object) -> list[Row]:
        """Return the rows of a view for this run, under those filters that it has a column for."""
        key = (view, *parameters.items())
        if key not in self.answers:
            self.answers[key] = self.table(view, parameters).to_pylist()
        return [row for row in self.answers[key] if row["run"] == self.run]

    def totals(self, view: str, by: Sequence[str], of: str, how: Literal["sum", "count"], **parameters: object) -> list[Row]:
        """Return the sum (None: all are NULL) or count of a column by others: of a view with a row per step, say."""
        key = (view, *by, of, how, *parameters.items())
        if key not in self.answers:
            self.answers[key] = self.store.totals(view, ["run", *by], of, how, self._view_arguments(view, parameters)).to_pylist()
        return [row for row in self.answers[key] if row["run"] == self.run]

    def table(self, view: str, parameters: Mapping[str, object]) -> pa.Table:
        """Return the rows of a view for all runs, under the filters."""
        return self.store.view(view, **self._view_arguments(view, parameters))

    def _view_arguments(self, view: str, parameters: Mapping[str, object]) -> dict[str, object]:
        columns = dict(self.store.views[view].columns)
        filters: dict[str, object] = {f"only_{name}": values for name, values in self.filters.items() if name in columns}
        return filters | dict(parameters)

    def note(self, view: str, *texts: str) -> str:
        """Return the texts, and what of the filters the view could not follow ('all ranks')."""
        columns = dict(self.store.views[view].columns)
        return ", ".join([*filter(None, texts), *(f"all {_PLURALS[name]}" for name in self.filters if name not in columns)])


Part = Callable[[Page], Sequence["Section | Absent"]]
"""What makes a part of a page: a section, or several; none, where nothing is to be said."""


def best(rows: Iterable[Row], order: Sequence[str]) -> tuple[str, list[Row]]:
    """Return the first tool of `order` that has rows, and its rows: figures of two tools are never mixed."""
    by_tool: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_tool[row["tool"]].append(row)
    return next(((tool, by_tool[tool]) for tool in order if tool in by_tool), ("", []))
