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
    "NVTX_EVENTS": "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value "
    "int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId jsonText:TEXT binaryData:TEXT eventId:KEY!",
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name:TEXT type flags numEntries payloadSize alignTo",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId! schemaId! idx! flags type name:TEXT description:TEXT arrayOrUnionDetail offset",
    "NVTX_PAYLOAD_ENUM_ENTRIES": "domainId! schemaId! idx! name:TEXT value isFlag",
    "NVTX_EVENTS_PAYLOAD_SCHEMAS": "eventId! globalPid! domainId! payloadSchemaID!",
    "NVTX_EXPORT_TRANSLATION": "originalName:TEXT! sanitizedName:TEXT!",
    HOST_FUNCTION: "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid graphNodeId graphId",
}
"""Table -> its columns in order: INTEGER, or as `name:TYPE` (KEY: the primary key); those with ! are NOT NULL."""


def ddl(table: str, columns: str) -> str:
    """Return the statement that makes a table of columns that are written as in `_COLUMNS`."""
    declared = []
    for column in columns.split():
        name, _, type_ = column.removesuffix("!").partition(":")
        type_ = {"": "INTEGER", "KEY": "INTEGER PRIMARY KEY"}.get(type_, type_)
        declared.append(f'"{name}" {type_}{" NOT NULL" if column.endswith("!") else ""}')
    return f'CREATE TABLE "{table}" ({", ".join(declared)})'


def documented(path: Path, rows: Mapping[str, Sequence[Row]], /, **others: Sequence[Row]) -> Path:
    """Write `base` with `others`, and the documented tables with these rows; the schema version is 3.28.1. A table whose columns
    no schema lists (they follow from what the program described) has those of its first row."""
    version = [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.28.1"}]
    write(path, base(**{"META_DATA_EXPORT": version, **others}))
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, some in rows.items():
            connection.execute(ddl(table, _COLUMNS.get(table) or " ".join(some[0])))
            for row in some:
                names = ", ".join(f'"{name}"' for name in row)
                connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(row))})', tuple(row.values()))
    return path
