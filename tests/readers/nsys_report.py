"""Small nsys reports made for a test, and the rows that the reader makes of one."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nsightlens import schema
from nsightlens.readers import nsys

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]

VM = 1 << 48
SESSION = 1_700_000_000_123_456_789
TEXT_COLUMNS = {"value", "name", "text", "uuid", "busLocation", "metricName", "typeName", "utcTime", "jsonText", "extra"}


def global_pid(pid: int, hardware: int = 0) -> int:
    """The globalPid of a process, as SQLite stores it (signed)."""
    unsigned = (hardware << 56) | VM | (pid << 24)
    return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned


def strings(*texts: str) -> list[Row]:
    """StringIds with the ids 1, 2, ..."""
    return [{"id": id_, "value": text} for id_, text in enumerate(texts, 1)]


def kernel(start: int, end: int, pid: int = 7, **others: Any) -> Row:
    """A row of CUPTI_ACTIVITY_KIND_KERNEL with the columns that every version has."""
    row: Row = {
        "start": start,
        "end": end,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": 100,
        "globalPid": global_pid(pid),
        "demangledName": 1,
        "shortName": 2,
        "registersPerThread": 32,
        "gridX": 4,
        "gridY": 2,
        "gridZ": 1,
        "blockX": 128,
        "blockY": 1,
        "blockZ": 1,
        "staticSharedMemory": 16,
        "dynamicSharedMemory": 1024,
    }
    return row | others


def call(start: int, end: int, pid: int = 7, **others: Any) -> Row:
    """A row of CUPTI_ACTIVITY_KIND_RUNTIME."""
    row: Row = {
        "start": start,
        "end": end,
        "eventClass": 0,
        "globalTid": global_pid(pid) + 70,
        "correlationId": 100,
        "nameId": 3,
        "returnValue": 0,
    }
    return row | others


def span(start: int, end: int | None, pid: int = 7, **others: Any) -> Row:
    """A row of NVTX_EVENTS: a push/pop range in the default domain."""
    row: Row = {
        "start": start,
        "end": end,
        "eventType": 59,
        "globalTid": global_pid(pid) + 70,
        "endGlobalTid": None,
        "domainId": 0,
        "text": None,
        "textId": None,
    }
    return row | others


def base(**others: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """A report of one process and one kernel, with its launch."""
    return {
        "StringIds": strings("void gemm<float>(float*)", "gemm", "cudaLaunchKernel_v7000", "_Z4gemmIfEvPT_"),
        "META_DATA_EXPORT": [
            {"name": "EXPORT_PRODUCT_VERSION", "value": "2025.3.1.90"},
            {"name": "EXPORT_SCHEMA_VERSION", "value": "3.20.2"},
        ],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": SESSION, "utcTime": "2023-11-14T22:13:20"}],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": "node7"}],
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1000, 1500)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(900, 950)],
        **others,
    }


def write(path: Path, tables: Tables) -> Path:
    """Write the tables as an SQLite file; columns as nsys types them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    for table, rows in tables.items():
        columns = list(rows[0])
        texts = TEXT_COLUMNS - ({"value"} if table == "GPU_METRICS" else set())
        typed = ", ".join(f'"{name}" {"TEXT" if name in texts else "INTEGER"}' for name in columns)
        connection.execute(f'CREATE TABLE "{table}" ({typed})')
        connection.executemany(
            f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})',
            [tuple(row.get(name) for name in columns) for row in rows],
        )
    connection.commit()
    connection.close()
    return path


def write_parquetdir(path: Path, sqlite: Path, unsigned: Sequence[str] = (), group_rows: int = 1000) -> Path:
    """Write every table of an SQLite file as Parquet; the columns in `unsigned` as uint64."""
    path.mkdir()
    connection = sqlite3.connect(f"{sqlite.absolute().as_uri()}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = connection.execute(f'SELECT * FROM "{table}"')
        names, rows = [column[0] for column in cursor.description], cursor.fetchall()
        arrays = [pa.array([row[at] for row in rows]) for at in range(len(names))]
        arrays = [
            array.cast(pa.uint64(), safe=False) if name in unsigned else array for name, array in zip(names, arrays, strict=True)
        ]
        pq.write_table(pa.table(arrays, names=names), path / f"{table}.parquet", row_group_size=group_rows)
    connection.close()
    return path


def read(path: Path, jobs: int = 1) -> dict[str, list[Row]]:
    """Return table -> rows (without NULLs), having checked each batch against the schema."""
    found: dict[str, list[Row]] = defaultdict(list)
    for table, batch in nsys.read([path], jobs=jobs):
        batch.validate(full=True)
        allowed = schema.TABLES[table].reader_schema
        for field in batch.schema:
            assert field.type == allowed.field(field.name).type, (table, field.name)
        for row in batch.to_pylist():
            if "process_index" in row and table != "processes":
                assert 0 <= row["process_index"] < len(found["processes"])
            found[table].append({name: value for name, value in row.items() if value is not None})
    assert len(found["profiles"]) == 1
    return found


def report(folder: Path, tables: Tables | None = None, /, **others: Sequence[Row]) -> dict[str, list[Row]]:
    """Write the tables (or `base`, with others beside or instead) and read them."""
    return read(write(folder / "report.sqlite", base(**others) if tables is None else tables))


def codes(found: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """Return diagnostic code -> count."""
    counts: dict[str, int] = defaultdict(int)
    for row in found["diagnostics"]:
        counts[row["code"]] += row["count"]
    return dict(counts)
