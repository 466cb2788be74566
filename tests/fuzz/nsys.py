"""Mutated SQLite exports: every table of events against a full scan by SQLite, values and all."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from nsightlens.readers.nsys import gpu, metrics, mpi, ranges, scan
from nsightlens.readers.nsys import unified_memory as um
from nsightlens.readers.nsys.source import (
    CPU_PAGE_FAULTS,
    GPU_METRICS,
    GPU_PAGE_FAULTS,
    GRAPH_TRACE,
    KERNEL,
    KNOWN_TABLES,
    MEMCPY,
    MEMSET,
    MPI_TABLES,
    NVTX,
    RUNTIME,
    Kind,
)
from nsightlens.readers.nsys.sqlite import SqliteSource
from tests.fuzz.mutation import Dice, Edit
from tests.readers.nsys_report import base, call, kernel, span, write

NAME, SUFFIX = "nsys", ".sqlite"
TABLES: Mapping[str, Mapping[str, Kind]] = {
    KERNEL: gpu.KERNEL_COLUMNS, MEMCPY: gpu.MEMCPY_COLUMNS, MEMSET: gpu.MEMSET_COLUMNS, GRAPH_TRACE: gpu.GRAPH_COLUMNS,
    RUNTIME: gpu.API_COLUMNS, NVTX: ranges.COLUMNS, GPU_METRICS: metrics.COLUMNS,
    CPU_PAGE_FAULTS: um.CPU_COLUMNS, GPU_PAGE_FAULTS: um.GPU_COLUMNS, **dict.fromkeys(MPI_TABLES, mpi.COLUMNS),
}
_LEAF, _INTERIOR = 13, 5
_NUMBERS = (0, 1, 2, 3, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)

Values = list[tuple[object, ...]]


@cache
def bases() -> dict[str, bytes]:
    """Return exports of several page sizes and lengths, one with names as texts, one with rows taken out."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for page, count in ((512, 150), (1024, 70), (4096, 400), (4096, 40)):
            path = write(Path(folder) / "report.sqlite", _tables(count))
            found[f"{page}-{count}"] = _repaged(path, page, "SELECT 1")
        path = write(Path(folder) / "report.sqlite", _tables(150))
        found["sparse"] = _repaged(path, 512, f"DELETE FROM {KERNEL} WHERE start % 3 = 0")
        path = write(Path(folder) / "report.sqlite", _tables(60, name="gemm"))
        found["texts"] = _repaged(path, 512, f"CREATE INDEX one ON {RUNTIME} (start, \"end\")")
    return found


def _tables(count: int, name: str | int = 1) -> dict[str, Sequence[dict[str, object]]]:
    step = 100_003
    return base(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(step * at, step * at + 7 * at, correlationId=at, demangledName=name if at % 9 else 2)
                                    for at in range(1, count)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(step * at - 50, step * at - 5, correlationId=at) for at in range(1, count)],
        CUPTI_ACTIVITY_KIND_MEMSET=[{"start": at * step, "end": at * step + 1, "deviceId": 0, "bytes": at, "memKind": 2}
                                    for at in range(count // 3)],
        NVTX_EVENTS=[span(step * at - 60, step * at if at % 7 else None, text=f"range {at}" if at % 5 else None,
                          textId=None if at % 5 else 1) for at in range(count)],
        GPU_METRICS=[{"timestamp": step * at, "typeId": 0x1_0001_0000_0000, "metricId": at % 3, "value": at}
                     for at in range(count // 2)],
        MPI_P2P_EVENTS=[{"start": step * at, "end": step * at + 9, "globalTid": 70, "textId": 1, "remoteRank": at, "size": at}
                        for at in range(count // 4)],
        CUDA_UM_CPU_PAGE_FAULT_EVENTS=[{"start": step * at, "globalPid": 7, "address": at << 12, "CpuInstruction": 2, "module": 1}
                                       for at in range(count // 5)],
    )


def _repaged(path: Path, page: int, also: str) -> bytes:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(also)
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("VACUUM")
    return path.read_bytes()


def edits(data: bytes, dice: Dice) -> list[Edit]:
    """Return an edit of the file's header, of a page's header, of a pointer, a key, a length, a type or a value; or of pages."""
    page = int.from_bytes(data[16:18], "big")
    kind = dice.choice(("page", "page", "cell", "cell", "cell", "cell", "key", "key", "file", "pages"))
    if kind == "file":
        at = dice.choice((16, 18, 19, 20, 24, 28, 29, 30, 31, 56, 92, 95, 100 + 3, 100 + 4))
        return [Edit(at, 1, bytes([dice.choice((0, 1, 2, data[at] ^ 1 << dice.randrange(8)))]))]
    number = dice.randrange(1, len(data) // page)
    at = number * page
    if kind == "pages":
        other = dice.randrange(1, len(data) // page) * page
        return [Edit(at, page, data[other:other + page]), *([Edit(other, page, data[at:at + page])] * dice.randrange(2))]
    inner = data[at] == _INTERIOR
    if kind == "page" or data[at] not in (_LEAF, _INTERIOR):
        where, size = dice.choice(((0, 1), (1, 2), (3, 2), (3, 2), (4, 1), (5, 2), *([(8, 4)] * inner)))
        return [Edit(at + where, size, _number(data[at + where:at + where + size], dice))]
    return _cell(data, at, page, inner, kind, dice)


def _cell(data: bytes, at: int, page: int, inner: bool, kind: str, dice: Dice) -> list[Edit]:
    """Return an edit of one cell of the page at `at`: its pointer, its child's number, or a byte of its lengths, key, types."""
    count = int.from_bytes(data[at + 3:at + 5], "big")
    if not count:
        return [Edit(at, 1, bytes([_LEAF]))]
    pointer = at + (12 if inner else 8) + 2 * dice.choice((0, count - 1, dice.randrange(count)))
    cell = at + int.from_bytes(data[pointer:pointer + 2], "big")
    if inner:
        where, size = dice.choice(((cell, 4), (cell + 4, dice.randrange(1, 4)), (pointer, 2)))
        return [Edit(where, size, _number(data[where:where + size], dice))]
    if kind == "key":
        size = 1 if data[cell + 1] < 128 else 2 if data[cell + 2] < 128 else 3
        return [Edit(cell + 1, size, _key(data[cell + 1:cell + 1 + size], dice))]
    where = dice.choice((pointer, pointer + 1, cell, cell + 1, cell + 2, cell + 3, cell + dice.randrange(60)))
    return [Edit(min(where, len(data) - 1), 1, _number(data[where:where + 1] or b"\0", dice))]


def _number(old: bytes, dice: Dice) -> bytes:
    """Return bytes of the same length: a telling number, one bit flipped, or one more or less."""
    size, value = len(old), int.from_bytes(old, "big")
    new = dice.choice((dice.choice(_NUMBERS), value ^ 1 << dice.randrange(8 * size), value + 1, value - 1))
    return (new % (1 << 8 * size)).to_bytes(size, "big")


def _key(old: bytes, dice: Dice) -> bytes:
    """Return a rowid of the same length in bytes with one of its bits flipped."""
    changed = bytearray(old)
    changed[dice.randrange(len(old))] ^= 1 << dice.randrange(7)
    return bytes(changed)


def differences(path: Path) -> list[str]:
    """Return the tables that read otherwise than by a full scan and of which no diagnostic says so. Raises ReadError."""
    dice = Dice(path.stat().st_size)
    found = []
    with closing(SqliteSource(path)) as source:
        tables = dict(_scanned(path))
        for table, columns in TABLES.items():
            with patch.object(scan, "PIECE_ROWS", dice.choice((16, 100, 1 << 15))):
                ours = [row for batch in source.batches(table, columns, 1) for row in _rows(batch.to_pydict(), columns)]
            theirs, whole = tables.get(table, ([], True))
            theirs = _named(source, ours, theirs)
            told = source.truncated or source.damage.get(table) or not source.damage.keys() <= KNOWN_TABLES
            told = told or table.casefold() in map(str.casefold, source.others())
            if (ours != theirs or not whole) and not told:
                found.append(f"{table}: {len(ours)} rows for {len(theirs)}, {'other values' if whole else 'SQLite stops there'}")
    return found


def _rows(found: Mapping[str, list[object]], columns: Mapping[str, Kind]) -> Iterator[tuple[object, ...]]:
    count = len(next(iter(found.values())))
    return zip(*(found.get(name, [None] * count) for name in columns), strict=True)


def _named(source: SqliteSource, ours: Values, theirs: Values) -> Values:
    """Return their rows with the text of each id that is a text in ours: where some names are texts, all are."""
    if len(ours) != len(theirs):
        return theirs
    wanted = {other for pair in zip(ours, theirs, strict=True) for one, other in zip(*pair, strict=True)
              if isinstance(other, int) and isinstance(one, str | None)}
    ids = sorted(wanted)
    texts = dict(zip(ids, source.strings(pa.array(ids, pa.int64())).to_pylist(), strict=True))
    return [tuple(texts.get(other, None if one is None else other) if other in wanted and not isinstance(one, int) else other
                  for one, other in zip(*pair, strict=True)) for pair in zip(ours, theirs, strict=True)]


def _scanned(path: Path) -> Iterator[tuple[str, tuple[Values, bool]]]:
    """Yield table, its rows as SQLite walks them, and whether it came to the end."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA writable_schema = ON")
        for table, columns in TABLES.items():
            try:
                have = {str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')}
            except sqlite3.Error:
                have = set()
            chosen = [name for name in columns if name in have]
            if chosen:
                yield table, _scan(connection, table, columns, chosen)


def _scan(connection: sqlite3.Connection, table: str, columns: Mapping[str, Kind], chosen: list[str]) -> tuple[Values, bool]:
    listed = ", ".join(f'"{name}"' for name in chosen)
    rows: Values = []
    try:
        for row in connection.execute(f'SELECT {listed} FROM "{table}" NOT INDEXED'):
            told = dict(zip(chosen, row, strict=True))
            rows.append(tuple(_value(told.get(name), kind) for name, kind in columns.items()))
    except (sqlite3.Error, OverflowError):
        return rows, False
    return rows, True


def _value(value: object, kind: Kind) -> object:
    """Return what a column of this kind holds of a value: integers where they belong, else NULL; texts as texts."""
    if kind == "integer":
        return value if isinstance(value, int) else int(value) if isinstance(value, float) and value.is_integer() else None
    if kind == "text" and isinstance(value, int | float):
        return str(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

