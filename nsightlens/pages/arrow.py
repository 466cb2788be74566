"""An Arrow table as rows of Python, and as text for people."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from nsightlens.pages.tables import Style, render

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table as values of Python; whole decimals as int."""
    columns = []
    for column in table.columns:
        values = _values(column)
        if str(column.type).startswith("map"):
            values = [None if v is None else dict(v) for v in values]
        columns.append([int(v) if isinstance(v, Decimal) and v == int(v) else float(v) if isinstance(v, Decimal) else v
                        for v in values])
    return list(zip(*columns, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; dates that Python has no date for (DuckDB's infinity, the year 20000) as text."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        import pyarrow as pa

        if not pa.types.is_temporal(column.type):  # a list of such dates, say
            return [" ".join(column.slice(place, 1).to_string().split())[4:-4] for place in range(len(column))]
        wide = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        counts, texts = column.cast(wide).to_pylist(), column.cast(pa.string()).to_pylist()
        most = 2 ** (wide.bit_width - 1) - 1
        return [{most: "infinity", -most: "-infinity"}.get(count, text) for count, text in zip(counts, texts, strict=True)]


def as_text(table: pa.Table, style: Style) -> str:
    """Return the table as text for people."""
    text = [str(type_).startswith(("string", "dictionary", "large_string")) for type_ in table.schema.types]
    return render(table.column_names, rows_of(table), text, style)
