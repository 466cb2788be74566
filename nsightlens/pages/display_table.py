"""A pyarrow.Table that displays itself with units in notebooks and terminals; everything else takes it as the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nsightlens.pages.arrow import as_text
from nsightlens.pages.tables import Style, ids_last, output_width
from nsightlens.views.header import View
from nsightlens.views.html_table import escaped, html_table, in_python
from nsightlens.views.registry import known


@dataclass(frozen=True, slots=True, repr=False)
class DisplayTable:
    """A table to look at; what it does not have itself, it has from the table: to_pandas(), column_names, num_rows.

    table: the table. rows: how many of it are displayed.
    """

    table: pa.Table
    rows: int = 200

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        return html_table(self.table, self.rows) + "".join(f"<p>{escaped(note)}</p>" for note in self._notes())

    def __repr__(self) -> str:
        """Return the table as `nsightlens show` prints it: as many columns as the terminal (COLUMNS, else 120) has room for."""
        view = _view_of(self.table)
        shown = in_python(self.table.slice(0, self.rows)).select(ids_last(self.table.column_names))
        sums = view.whole_sums if view else ()
        return as_text(shown, Style(output_width(), units=True, first=view.first if view else (), rows=self.rows,
                                    of=self.table.num_rows, sums=sums, rest=".to_pandas()",
                                    kernels=view.kernels if view else (), notes=self._notes())).rstrip("\n")

    def _notes(self) -> list[str]:
        """Return what people must know who see the table."""
        view = _view_of(self.table)
        ranks = set(self.table["rank"].unique().to_pylist()) if "rank" in self.table.column_names else set()
        return view.notes(len(ranks - {None})) if view else []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __len__(self) -> int:
        return len(self.table)


def _view_of(table: pa.Table) -> View | None:
    """Return the view whose columns a table has: it says which of them matter most."""
    return next((view for view in known().values() if [name for name, _ in view.columns] == table.column_names), None)
