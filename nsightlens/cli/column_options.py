"""The options --columns and --sort: their text -> the columns of a table, and the order of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nsightlens.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Order = list[tuple[str, str]]
"""Columns, and whether each is 'ascending' or 'descending'."""
_T = TypeVar("_T", bound=Callable[..., Any])


def sort_option(function: _T) -> _T:
    """Add --sort."""
    return click.option("--sort", default=None, metavar="NAMES",
                        help="Sort by these columns; - before a name: largest first (--sort=-total_ns).")(function)


def named(text: str | None, known: Sequence[str], of: str) -> list[str]:
    """Return the columns that a list names: 'name,total_ns'. Raises UsageError for one that is none of `known`; of: the view."""
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise UsageError(f"{of} has no column {name!r}{f'; did you mean {near[0]}?' if near else '.'} It has "
                             f"{', '.join(known)}", subject="column", value=name, choices=known, view=of)
    return names


def order(text: str | None, known: Sequence[str], of: str) -> Order:
    """Return the order that a list of columns asks for: 'rank,-total_ns'. Raises UsageError as `named`."""
    parts = [part.strip() for part in text.split(",")] if text else []
    names = named(",".join(part.removeprefix("-") for part in parts), known, of)
    return [(name, "descending" if part.startswith("-") else "ascending") for name, part in zip(names, parts, strict=True)]


def ordered(table: pa.Table, by: Order) -> pa.Table:
    """Return the rows in this order: rows that are alike in it stay in theirs; NULL and nan come last.

    Raises UsageError for a column of lists or maps, which have no order.
    """
    import pyarrow as pa

    for name, _ in by:
        if pa.types.is_nested(table.schema.field(name).type):
            raise UsageError(f"--sort {name}: this column holds lists or maps, which have no order", subject="column", value=name)
    return table.sort_by(by) if by else table


def arranged(tables: Iterator[pa.Table], names: Sequence[str], by: Order) -> Iterator[pa.Table]:
    """Yield the tables with these columns (none: all); all rows at once where they are to be sorted."""
    if by:
        import pyarrow as pa

        tables = iter([ordered(pa.concat_tables(list(tables)), by)])
    for table in tables:
        yield table.select(names) if names else table
