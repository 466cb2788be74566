"""Tables as `nsys stats` prints them: made for a test, and read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from nsightlens.readers import nsys
from tests.readers.nsys_report import Row


def printed(rows: Sequence[tuple[str, ...]], head: tuple[str, ...], delimiter: str = ",") -> str:
    """Return a table as CSV."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


def read(path: Path) -> dict[str, list[Row]]:
    """Return the rows of each table without their NULLs."""
    found: dict[str, list[Row]] = {}
    for name, batch in nsys.read([path]):
        found.setdefault(name, []).extend(
            {key: value for key, value in row.items() if value is not None} for row in batch.to_pylist())
    return found


def of(tmp_path: Path, text: str, encoding: str = "utf-8") -> dict[str, list[Row]]:
    """Return what is read of a file with this text, which must be known by its beginning."""
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding=encoding)
    assert nsys.sniff(path, path.read_bytes()[:1 << 16])
    return read(path)


def codes(found: dict[str, list[Row]]) -> dict[str, int]:
    """Return {code: count} of the diagnostics."""
    return {row["code"]: row["count"] for row in found["diagnostics"]}
