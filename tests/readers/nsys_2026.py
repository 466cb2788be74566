"""Reports with the tables that the schema 3.28.1 (nsys 2026.4) documents: every column, with its type and whether it may be NULL.

No real report of this schema was seen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tests.readers.nsys_report import Row, base, write

DECOMPRESSION = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"
HOST_FUNCTION = "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"
_COLUMNS = {
    DECOMPRESSION: "start! end! eventClass! deviceId! contextId! streamId! correlationId globalPid ChannelID! sourceBytes! "
    "NumberOfOperations!",
    HOST_FUNCTION: "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid graphNodeId graphId",
}
"""Table -> its columns in order: INTEGER, or as `name:TYPE`; those with ! are NOT NULL."""


def ddl(table: str, columns: str) -> str:
    """Return the statement that makes a table of columns that are written as in `_COLUMNS`."""
    declared = []
    for column in columns.split():
        name, _, type_ = column.removesuffix("!").partition(":")
        declared.append(f'"{name}" {type_ or "INTEGER"}{" NOT NULL" if column.endswith("!") else ""}')
    return f'CREATE TABLE "{table}" ({", ".join(declared)})'


def documented(path: Path, rows: Mapping[str, Sequence[Row]], /, **others: Sequence[Row]) -> Path:
    """Write `base` with `others`, and the documented tables with these rows; the schema version is 3.28.1."""
    version = [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.28.1"}]
    write(path, base(**{"META_DATA_EXPORT": version, **others}))
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, some in rows.items():
            connection.execute(ddl(table, _COLUMNS[table]))
            for row in some:
                names = ", ".join(f'"{name}"' for name in row)
                connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(row))})', tuple(row.values()))
    return path
