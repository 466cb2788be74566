"""A table that a notebook displays with units, and that stays a pyarrow.Table for everything else."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nsightlens.views.html_table import html_table


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """A table to look at. rows: how many of it a notebook shows."""

    table: pa.Table
    rows: int = 200

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        return html_table(self.table, self.rows)

    def __repr__(self) -> str:
        """Return what a terminal shows of the table."""
        return repr(self.table)
