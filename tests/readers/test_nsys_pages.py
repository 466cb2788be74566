"""Integers decoded from the pages of a file are what SQLite says, or else SQLite is asked."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from nsightlens.readers.nsys import gpu, ranges
from nsightlens.readers.nsys.pages import Pages
from nsightlens.readers.nsys.source import GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX, RUNTIME, Kind
from nsightlens.readers.nsys.sqlite import SqliteSource

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data"
WIDTHS = (0, 1, 2, 7, 8, 9, 15, 16, 23, 24, 31, 32, 47, 48, 62, 63)
TABLES: dict[str, Mapping[str, Kind]] = {
    KERNEL: gpu.KERNEL_COLUMNS, MEMCPY: gpu.MEMCPY_COLUMNS, MEMSET: gpu.MEMSET_COLUMNS, GRAPH_TRACE: gpu.GRAPH_COLUMNS,
    RUNTIME: gpu.API_COLUMNS, NVTX: {name: kind for name, kind in ranges.COLUMNS.items() if kind == "integer"},
}


def random_integer(source: random.Random) -> int | None:
    """Return an integer of any length, near the edges of every length more often; sometimes None."""
    if source.random() < 0.1:
        return None
    value = (1 << source.choice(WIDTHS)) + source.randint(-2, 2)
    return max(-(1 << 63), min((1 << 63) - 1, value * source.choice((1, -1))))


def write(path: Path, rows: Sequence[Sequence[object]], declared: str, page: int = 1024, first: Sequence[int] = ()) -> None:
    """Write a table `t` with these rows; `first`: their rowids."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("CREATE TABLE before_it (x)")
        connection.execute(f"CREATE TABLE t ({declared})")
        names = [row[1] for row in connection.execute("PRAGMA table_info(t)")]
        for number, row in enumerate(rows):
            chosen = ["rowid", *names[:len(row)]] if first else names[:len(row)]
            values = [first[number], *row] if first else row
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO t ({', '.join(chosen)}) VALUES ({marks})", list(values))
        connection.commit()


def decoded(path: Path, low: int, high: int, wanted: Sequence[int], width: int) -> list[tuple[object, ...]] | None:
    """Return the rows of `t`, None where SQLite would have to be asked."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()
    with closing(Pages(path)) as pages:
        tree = pages.tree(root, width)
        found = pages.rows(tree, low, high, wanted) if tree else None
    return None if found is None else list(zip(*(column.to_pylist() for column in found), strict=True))


def asked(path: Path, low: int, high: int, wanted: Sequence[int]) -> list[tuple[object, ...]]:
    """Return the same rows from SQLite."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(t)")]
        chosen = ", ".join(names[at] for at in wanted)
        return connection.execute(f"SELECT {chosen} FROM t WHERE rowid BETWEEN ? AND ? ORDER BY rowid", (low, high)).fetchall()


@pytest.mark.parametrize("page", [512, 1024, 4096, 65536])
def test_integers_of_every_length(tmp_path: Path, page: int) -> None:
    source = random.Random(page)
    rows = [[random_integer(source) for _ in range(6)] for _ in range(6000)]
    write(tmp_path / "f", rows, "a, b INT, c INTEGER, d BIGINT, e NUMERIC, f INTEGER", page)
    for low, high in ((1, 6000), (1, 1), (6000, 6000), (17, 4242), (5999, 9000), (-5, 3), (7000, 8000)):
        assert decoded(tmp_path / "f", low, high, [0, 2, 3, 5], 6) == asked(tmp_path / "f", low, high, [0, 2, 3, 5])


def test_rowids_of_every_length(tmp_path: Path) -> None:
    source = random.Random(1)
    first = sorted({random_integer(source) or 3 for _ in range(5000)} | set(range(100, 3000)))
    write(tmp_path / "f", [[number % 7, number] for number in range(len(first))], "a INTEGER, b INTEGER", first=first)
    for low, high in ((0, 1 << 50), (100, 2000), (first[40], 3000), (1 << 40, (1 << 54) + 1), (-(1 << 63), (1 << 63) - 1)):
        assert decoded(tmp_path / "f", low, high, [0, 1], 2) == asked(tmp_path / "f", low, high, [0, 1])


def test_columns_that_are_the_same_in_all_rows(tmp_path: Path) -> None:
    same = [0, 1, None, -1, 300, 1 << 20, 1 << 30, 1 << 40, 1 << 60, "text", b"blob"]
    write(tmp_path / "f", [same] * 2000, ", ".join("abcdefghijk"))
    assert decoded(tmp_path / "f", 1, 2000, list(range(9)), 11) == asked(tmp_path / "f", 1, 2000, list(range(9)))


def test_deleted_rows_and_a_table_that_was_written_in_disorder(tmp_path: Path) -> None:
    first = random.Random(2).sample(range(20_000), 8000)
    write(tmp_path / "f", [[number, number * 3] for number in range(len(first))], "a, b", first=first)
    with closing(sqlite3.connect(tmp_path / "f")) as connection:
        connection.execute("DELETE FROM t WHERE rowid % 3 = 0 OR rowid BETWEEN 5000 AND 9000")
        connection.commit()
    assert decoded(tmp_path / "f", 0, 20_000, [0, 1], 2) == asked(tmp_path / "f", 0, 20_000, [0, 1])
    assert decoded(tmp_path / "f", 5000, 9000, [0, 1], 2) in ([], None)


@pytest.mark.parametrize("odd", [1.5, "12", b"12", "x" * 400, "y" * 3000])
def test_sqlite_is_asked_where_a_value_is_odd(tmp_path: Path, odd: object) -> None:
    rows = [[number, number] for number in range(4000)]
    write(tmp_path / "f", [*rows, [1, odd], *rows], "a, b")
    assert decoded(tmp_path / "f", 1, 3000, [0, 1], 2) == asked(tmp_path / "f", 1, 3000, [0, 1])
    assert decoded(tmp_path / "f", 3000, 5000, [0, 1], 2) is None


def test_sqlite_is_asked_for_rows_older_than_a_column(tmp_path: Path) -> None:
    write(tmp_path / "f", [[number] for number in range(3000)], "a")
    with closing(sqlite3.connect(tmp_path / "f")) as connection:
        connection.execute("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 7")
        connection.commit()
    assert decoded(tmp_path / "f", 1, 3000, [0, 1], 2) is None


@pytest.mark.parametrize("declared", [
    "start INTEGER PRIMARY KEY, end INTEGER, globalTid INTEGER",
    "start INTEGER, end REAL, globalTid INTEGER",
    "later INTEGER AS (start + 5), start INTEGER, end INTEGER, globalTid INTEGER",
    "start INTEGER, end INTEGER, globalTid INTEGER, PRIMARY KEY (end, start)",
])
def test_unusual_tables_read_as_sqlite_has_them(tmp_path: Path, declared: str) -> None:
    written = [(10 * n, 10 * n + 5) for n in range(1, 3000)]
    with closing(sqlite3.connect(tmp_path / "f")) as connection:
        connection.execute(f"CREATE TABLE {RUNTIME} ({declared})")
        connection.executemany(f'INSERT INTO {RUNTIME} (start, "end") VALUES (?, ?)', written)
        connection.commit()
    with closing(SqliteSource(tmp_path / "f")) as source:
        batches = list(source.batches(RUNTIME, {"start": "integer", "end": "integer"}, 1))
    columns = ([value for batch in batches for value in batch.column(name).to_pylist()] for name in ("start", "end"))
    assert list(zip(*columns, strict=True)) == written


def test_damage_is_never_read_otherwise_than_by_sqlite(tmp_path: Path) -> None:
    source = random.Random(3)
    whole = tmp_path / "whole"
    write(whole, [[random_integer(source) for _ in range(4)] for _ in range(3000)], "a, b, c, d", 512)
    content, path = whole.read_bytes(), tmp_path / "f"
    compared = 0
    for _ in range(150):
        broken = bytearray(content)
        for _ in range(source.choice((1, 20, 200))):
            broken[source.randrange(1024, len(broken))] = source.choice((0, 5, 13, 127, 128, 255, source.randrange(256)))
        path.write_bytes(broken[:source.choice((len(broken), source.randrange(2048, len(broken))))])
        for low in range(1, 3000, 300):
            try:
                expected = asked(path, low, low + 299, [0, 1, 3])
            except sqlite3.Error:
                continue
            found = decoded(path, low, low + 299, [0, 1, 3], 4)
            assert found is None or found == expected
            compared += found is not None
    assert compared > 100


@pytest.mark.captures
@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the real captures are not here")
def test_captures_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 0
    for path in sorted((CAPTURES / "nsys").glob("*.sqlite")):
        with closing(SqliteSource(path)) as source:
            for table, columns in TABLES.items():
                monkeypatch.undo()
                fast = list(source.batches(table, columns, 1))
                monkeypatch.setattr(SqliteSource, "_plain", lambda *_: (None, {}))
                slow = list(source.batches(table, columns, 1))
                assert [batch.to_pydict() for batch in fast] == [batch.to_pydict() for batch in slow]
                rows += sum(batch.num_rows for batch in fast)
    assert rows > 50_000
