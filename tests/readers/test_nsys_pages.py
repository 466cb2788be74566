"""Integers decoded from the pages of a file are what SQLite says, or else SQLite is asked."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nsightlens.readers.nsys import gpu, ranges
from nsightlens.readers.nsys.pages import SqlitePages
from nsightlens.readers.nsys.scan import DECODER
from nsightlens.readers.nsys.source import GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, NVTX, RUNTIME, Kind
from nsightlens.readers.nsys.sqlite import SqliteSource
from tests.places import ROOT, sqlite_captures

CAPTURES = ROOT.parent / "shared" / "data"
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


def decoded(path: Path, wanted: Sequence[int], width: int, rows: int = 1 << 15) -> list[tuple[object, ...] | None] | None:
    """Return the rows of `t`, in parts of about `rows`: None for each part (or all) for which SQLite would have to be asked."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()
    found: list[tuple[object, ...] | None] = []
    with closing(SqlitePages(path)) as pages:
        tree = pages.tree(root)
        if tree is None:
            return None
        for part in tree.parts(rows):
            columns = pages.rows(tree, part, wanted, width)
            assert pages.count(tree, part) == pages.cells(tree, part) or columns is None
            found += [None] if columns is None else zip(*(column.to_pylist() for column in columns), strict=True)
    return found


def asked(path: Path, wanted: Sequence[int]) -> list[tuple[object, ...]]:
    """Return the same rows from SQLite."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(t)")]
        chosen = ", ".join(names[at] for at in wanted)
        return connection.execute(f"SELECT {chosen} FROM t NOT INDEXED").fetchall()


@pytest.mark.parametrize("page", [512, 1024, 4096, 65536])
def test_integers_of_every_length(tmp_path: Path, page: int) -> None:
    source = random.Random(page)
    rows = [[random_integer(source) for _ in range(6)] for _ in range(6000)]
    write(tmp_path / "f", rows, "a, b INT, c INTEGER, d BIGINT, e NUMERIC, f INTEGER", page)
    for part in (1, 500, 1 << 15):
        assert decoded(tmp_path / "f", [0, 2, 3, 5], 6, part) == asked(tmp_path / "f", [0, 2, 3, 5])


def test_rowids_of_every_length(tmp_path: Path) -> None:
    source = random.Random(1)
    first = sorted({random_integer(source) or 3 for _ in range(5000)} | set(range(100, 3000)))
    write(tmp_path / "f", [[number % 7, number] for number in range(len(first))], "a INTEGER, b INTEGER", first=first)
    for part in (1, 500, 1 << 15):
        assert decoded(tmp_path / "f", [0, 1], 2, part) == asked(tmp_path / "f", [0, 1])


def test_columns_that_are_the_same_in_all_rows(tmp_path: Path) -> None:
    same = [0, 1, None, -1, 300, 1 << 20, 1 << 30, 1 << 40, 1 << 60, "text", b"blob"]
    write(tmp_path / "f", [same] * 2000, ", ".join("abcdefghijk"))
    assert decoded(tmp_path / "f", list(range(9)), 11) == asked(tmp_path / "f", list(range(9)))


def test_deleted_rows_and_a_table_that_was_written_in_disorder(tmp_path: Path) -> None:
    first = random.Random(2).sample(range(20_000), 8000)
    write(tmp_path / "f", [[number, number * 3] for number in range(len(first))], "a, b", first=first)
    with closing(sqlite3.connect(tmp_path / "f")) as connection:
        connection.execute("DELETE FROM t WHERE rowid % 3 = 0 OR rowid BETWEEN 5000 AND 9000")
        connection.commit()
    assert decoded(tmp_path / "f", [0, 1], 2, 1000) == asked(tmp_path / "f", [0, 1])


@pytest.mark.parametrize("odd", [1.5, "12", b"12", "x" * 400, "y" * 3000])
def test_sqlite_is_asked_where_a_value_is_odd(tmp_path: Path, odd: object) -> None:
    rows = [[number, number] for number in range(4000)]
    write(tmp_path / "f", [*rows, [1, odd], *rows], "a, b")
    found = decoded(tmp_path / "f", [0, 1], 2, 500)
    assert found is not None and found.count(None) == 1
    at = found.index(None)
    left_out = len(rows) * 2 - len(found) + 2
    assert 1 < left_out <= 700
    assert [*found[:at], *found[at + 1:]] == [*(every := asked(tmp_path / "f", [0, 1]))[:at], *every[at + left_out:]]


def test_sqlite_is_asked_for_rows_older_than_a_column(tmp_path: Path) -> None:
    write(tmp_path / "f", [[number] for number in range(3000)], "a")
    with closing(sqlite3.connect(tmp_path / "f")) as connection:
        connection.execute("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 7")
        connection.commit()
    assert set(decoded(tmp_path / "f", [0, 1], 2) or ()) == {None}


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


@pytest.mark.parametrize("value", ["off", "OFF", "on", ""])
def test_the_environment_turns_the_decoder_off_and_the_rows_stay_the_same(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Every table of the bundled nsys exports, with the decoder and without; its calls are counted, so that it is really used."""
    used = 0
    genuine = SqlitePages.rows

    def counted(self: SqlitePages, *arguments: Any) -> Any:
        nonlocal used
        used += 1
        return genuine(self, *arguments)

    def everything() -> list[Any]:
        found: list[Any] = []
        for path in sorted((ROOT / "fixtures" / "simulated_resnet18_ddp").rglob("*.sqlite")):
            with closing(SqliteSource(path)) as source:
                found += [(path.name, table, row) for table, columns in TABLES.items()
                          for batch in source.batches(table, columns, 1) for row in batch.to_pylist()]
        return found

    monkeypatch.setattr(SqlitePages, "rows", counted)
    monkeypatch.delenv(DECODER, raising=False)
    decoded_rows = everything()
    assert used and decoded_rows
    used = 0
    monkeypatch.setenv(DECODER, value)
    assert everything() == decoded_rows
    assert bool(used) == (value.lower() != "off")


@pytest.mark.captures
@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the real captures are not here")
def test_captures_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 0
    for path in sqlite_captures():
        with closing(SqliteSource(path)) as source:
            for table, columns in TABLES.items():
                monkeypatch.undo()
                fast = list(source.batches(table, columns, 1))
                monkeypatch.setattr(SqlitePages, "rows", lambda *_: None)
                slow = list(source.batches(table, columns, 1))
                assert [batch.to_pydict() for batch in fast] == [batch.to_pydict() for batch in slow]
                rows += sum(batch.num_rows for batch in fast)
    assert rows > 50_000
