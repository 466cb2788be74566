"""A table as HTML for a notebook: times and sizes in units that people read, every text escaped."""

from __future__ import annotations

import html

import pyarrow as pa

from nsightlens.terminal.command import Command
from nsightlens.terminal.printable import printable
from nsightlens.views.figures import MISSING, duration, is_date, moment, number, size

_MOMENTS = ("start_ns", "end_ns", "at_ns", "epoch_ns", "modified_ns", "first_ns")
"""Points in time: beside others, every digit counts."""
_IDS = ("_id", "pid", "step", "thread", "address")


def html_table(table: pa.Table, rows: int = 200) -> str:
    """Return the first rows as an HTML table, and a line below that says how many there are."""
    shown = in_python(table.slice(0, rows))
    columns = [[_cell(name, value) for value in shown[name].to_pylist()] for name in shown.column_names]
    aligned = ["right" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "left" for kind in shown.schema.types]
    head = "".join(f'<th style="text-align:{side}">{escaped(name)}</th>'
                   for name, side in zip(shown.column_names, aligned, strict=True))
    body = "".join("<tr>" + "".join(f'<td style="text-align:{side}">{escaped(column[place])}</td>'
                                    for column, side in zip(columns, aligned, strict=True)) + "</tr>"
                   for place in range(shown.num_rows))
    more = f"the first {shown.num_rows:,} of {table.num_rows:,} rows" if shown.num_rows < table.num_rows else ""
    count = more or f"{table.num_rows:,} row{'s' * (table.num_rows != 1)}"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{count}</p>"


def in_python(table: pa.Table) -> pa.Table:
    """Return a table for a reader in Python: where it has commands (the column `command` of findings), `more` has their calls."""
    if not {"more", "command"} <= {*table.column_names}:
        return table
    calls = [None if fields is None else Command.of(fields).python() for fields in table["command"].to_pylist()]
    return table.set_column(table.column_names.index("more"), "more", pa.array(calls, pa.string()))


def escaped(text: str) -> str:
    """Return a text for HTML, without control characters."""
    return html.escape(printable(text))


def _cell(name: str, value: object) -> str:
    """Return a value as text; of times and sizes in their unit, of counts with the thousands apart."""
    if value is None:
        return MISSING
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if name.endswith(_MOMENTS) and isinstance(value, int) and is_date(value):
            return moment(value)
        if name.endswith("_ns") and not name.endswith(_MOMENTS):
            return duration(value)
        if name.endswith("_bytes"):
            return size(value)
        if isinstance(value, int) and not name.endswith(_IDS):
            return number(value)
    return str(value)
