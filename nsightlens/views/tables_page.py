"""The documentation page of all tables (docs/schema.md)."""

from __future__ import annotations

import pyarrow as pa

from nsightlens.schema import SCHEMA_VERSION, TABLES


def markdown() -> str:
    """Return the documentation page of all tables (docs/schema.md)."""
    lines = [
        "# Tables", "",
        f"Schema version {SCHEMA_VERSION}. Generated from `nsightlens/schema.py` by `make docs`.", "",
        "Unknown is NULL, never 0. Times are whole nanoseconds; starts are relative to their profile's `origin_epoch_ns`.",
        "", *(f"- [{name}](#{name})" for name in TABLES), "",
    ]
    for table in TABLES.values():
        lines += [f"## {table.name}", "", table.doc, "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| {c.name} | {_type_name(c.type)} | {c.unit} | {c.doc.replace('|', chr(92) + '|')} |" for c in table.columns]
        lines.append("")
    return "\n".join(lines)


def _type_name(type_: pa.DataType) -> str:
    return "text" if pa.types.is_string(type_) or pa.types.is_dictionary(type_) else str(type_)


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
