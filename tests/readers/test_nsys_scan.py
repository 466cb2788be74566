"""Damaged and unusual SQLite tables: every row that SQLite walks over, or a word about what is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers.nsys.source import KERNEL, NVTX
from tests.fuzz import nsys as fuzz
from tests.fuzz.mutation import Edit, Mutation, applied, mutation
from tests.readers.nsys_report import base, codes, kernel, read, span, write

PAGE, ROWS = 512, 400


def report(path: Path, page: int = PAGE) -> bytearray:
    """Write a report of many small pages, its rows at start 1000, 2000, ...; return its bytes."""
    starts = [1000 * at for at in range(1, ROWS + 1)]
    write(path, base(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(start, start + 7) for start in starts],
                     NVTX_EVENTS=[span(start, start + 9, text=f"range {start}") for start in starts]))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("VACUUM")
    return bytearray(path.read_bytes())


def pages(data: bytes | bytearray, path: Path, table: str) -> list[int]:
    """Return where the pages of a table begin that its first page refers to: its leaves, where it has two levels."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    at = (root - 1) * PAGE
    assert data[at] == 5
    count = int.from_bytes(data[at + 3:at + 5], "big")
    cells = [int.from_bytes(data[at + 12 + 2 * i:at + 14 + 2 * i], "big") for i in range(count)]
    return [(int.from_bytes(data[at + cell:at + cell + 4], "big") - 1) * PAGE for cell in cells]


def leaf(data: bytes | bytearray, path: Path, table: str) -> int:
    """Return where a leaf in the midst of a table begins."""
    at = pages(data, path, table)
    found = at[len(at) // 2]
    while data[found] == 5:
        cell = int.from_bytes(data[found + 14:found + 16], "big")
        found = (int.from_bytes(data[found + cell:found + cell + 4], "big") - 1) * PAGE
    assert data[found] == 13
    return found


def first_cell(data: bytes | bytearray, at: int) -> int:
    return at + int.from_bytes(data[at + 8:at + 10], "big")


def starts(path: Path, table: str) -> list[int]:
    return [row["start_ns"] for row in read(path)[{KERNEL: "kernels", NVTX: "ranges"}[table]]]


@pytest.mark.parametrize("table", [KERNEL, NVTX])
def test_a_leaf_without_rows_is_damage(tmp_path: Path, table: str) -> None:
    path = tmp_path / "f.sqlite"
    data = report(path)
    at = leaf(data, path, table)
    lost = int.from_bytes(data[at + 3:at + 5], "big")
    data[at + 3:at + 5] = b"\0\0"
    path.write_bytes(data)
    assert len(starts(path, table)) == ROWS - lost < ROWS
    assert codes(read(path))["damaged"] >= 1


def key_flipped(data: bytearray, at: int) -> None:
    cell = first_cell(data, at)
    assert data[cell + 1] >= 128  # the rowid takes two bytes
    data[cell + 1] ^= 0x20


def one_row_more(data: bytearray, at: int) -> None:
    data[at + 4] += 1


def first_two_swapped(data: bytearray, at: int) -> None:
    data[at + 8:at + 12] = data[at + 10:at + 12] + data[at + 8:at + 10]


@pytest.mark.parametrize("table", [KERNEL, NVTX])
@pytest.mark.parametrize("broken", [key_flipped, one_row_more, first_two_swapped])
@pytest.mark.parametrize("part", [20, 1 << 15])
def test_keys_out_of_order_cost_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, broken: Callable[[bytearray, int], None], part: int,
) -> None:
    """SQLite walks over all rows of such a file, and finds few of them by their rowids."""
    monkeypatch.setattr("nsightlens.readers.nsys.scan.PIECE_ROWS", part)
    path = tmp_path / "f.sqlite"
    data = report(path)
    broken(data, leaf(data, path, table))
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        walked = [row[0] for row in connection.execute(f"SELECT start FROM {table} NOT INDEXED") if isinstance(row[0], int)]
    assert len(walked) >= ROWS
    assert starts(path, table) == walked
    assert codes(read(path))["damaged"] >= 1


def test_pages_that_refer_to_each_other_for_ever_end(tmp_path: Path) -> None:
    """Each of these pages is below the next one many times over: SQLite would walk over more rows than there are atoms."""
    path = tmp_path / "f.sqlite"
    data = report(path)
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (NVTX,)).fetchone()
    chain = [root, *range(len(data) // PAGE + 1, len(data) // PAGE + 13)]
    data += bytes(PAGE * 12)
    below = leaf(data, path, KERNEL) // PAGE + 1
    for number, child in zip(chain, [*chain[1:], below], strict=True):
        at = (number - 1) * PAGE
        cells = b"".join(child.to_bytes(4, "big") + bytes([key]) for key in range(1, 61))
        pointers = b"".join((PAGE - 5 * (60 - key)).to_bytes(2, "big") for key in range(60))
        head = b"\5\0\0" + (60).to_bytes(2, "big") + (PAGE - len(cells)).to_bytes(2, "big") + b"\0" + child.to_bytes(4, "big")
        data[at:at + PAGE] = (head + pointers).ljust(PAGE - len(cells), b"\0") + cells
    data[28:32] = (len(data) // PAGE).to_bytes(4, "big")
    path.write_bytes(data)
    found = read(path)
    assert len(found["kernels"]) == ROWS
    assert codes(found)["damaged"] >= 1


@pytest.mark.parametrize("taken", [("rowid",), ("rowid", "_rowid_"), ("RowId", "_rowid_", "oid")])
def test_columns_named_like_the_rowid(tmp_path: Path, taken: tuple[str, ...]) -> None:
    rows = [kernel(1000 * at, 1000 * at + 7) | dict.fromkeys(taken, 5) for at in range(1, ROWS)]
    found = read(write(tmp_path / "f.sqlite", base(CUPTI_ACTIVITY_KIND_KERNEL=rows)))
    assert [row["start_ns"] for row in found["kernels"]] == [1000 * at for at in range(1, ROWS)]
    assert "damaged" not in codes(found)


def rewritten(path: Path, *statements: str) -> Path:
    write(path, base(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000 * at, 1000 * at + 7) for at in range(1, ROWS)]))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_a_table_without_rowids_is_read(tmp_path: Path) -> None:
    path = rewritten(
        tmp_path / "f.sqlite",
        'CREATE TABLE t (start INTEGER PRIMARY KEY, "end" INTEGER, demangledName INTEGER) WITHOUT ROWID',
        f'INSERT INTO t SELECT start, "end", demangledName FROM {KERNEL}',
        f"DROP TABLE {KERNEL}",
        f"ALTER TABLE t RENAME TO {KERNEL}",
    )
    found = read(path)
    assert [row["start_ns"] for row in found["kernels"]] == [1000 * at for at in range(1, ROWS)]
    assert "damaged" not in codes(found)


def test_a_view_in_place_of_a_table_is_named(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "f.sqlite", f"ALTER TABLE {KERNEL} RENAME TO t", f"CREATE VIEW {KERNEL} AS SELECT * FROM t")
    found = read(path)
    assert not found["kernels"]
    (message,) = [row["message"] for row in found["diagnostics"] if row["code"] == "view_not_read"]
    assert message.startswith(f"{KERNEL} is a view")


def test_a_known_table_under_a_damaged_name_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    data = report(path)
    at = data.index(f"table{KERNEL}".encode())
    data[at + 9:at + 10] = b"]"
    path.write_bytes(data)
    assert codes(read(path))["damaged"] == 1


def test_names_that_are_ids_and_texts_mixed(tmp_path: Path) -> None:
    rows = [kernel(1000, 1001), kernel(2000, 2001, demangledName="relu"), kernel(3000, 3001, demangledName=2)]
    found = read(write(tmp_path / "f.sqlite", base(CUPTI_ACTIVITY_KIND_KERNEL=rows)))
    assert [row["name"] for row in found["kernels"]] == ["void gemm<float>(float*)", "relu", "gemm"]


@pytest.mark.parametrize("seed", range(60))
def test_mutated_files_differ_from_sqlite_in_nothing_unsaid(tmp_path: Path, seed: int) -> None:
    found = mutation(fuzz, seed)
    assert _differences(tmp_path, found) == []


REPRODUCERS = {
    "a child's number": Mutation("4096-400", (Edit(28660, 4, b"\0\0\0\x12"),)),
    "a key above the leaves": Mutation("4096-400", (Edit(28670, 2, b"\xa1\x0c"),)),
    "one row more": Mutation("1024-70", (Edit(18435, 2, b"\0\x1e"),)),
    "a pointer": Mutation("4096-400", (Edit(37038, 1, b"\1"),)),
    "a table's name": Mutation("sparse", (Edit(4598, 1, b"\1"),)),
}


@pytest.mark.parametrize("name", REPRODUCERS)
def test_what_the_campaign_found(tmp_path: Path, name: str) -> None:
    assert _differences(tmp_path, REPRODUCERS[name]) == []


def _differences(folder: Path, found: Mutation) -> list[str]:
    path = folder / "f.sqlite"
    path.write_bytes(applied(fuzz.bases()[found.base], found.edits))
    try:
        return fuzz.differences(path)
    except ReadError:
        return []
