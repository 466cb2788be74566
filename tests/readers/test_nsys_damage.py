"""The nsys reader on damaged files: what can be read is read, what is lost is said, and nothing but ReadError is raised."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers import nsys
from tests.readers.nsys_report import Row, base, call, codes, kernel, read, span, write

PAGE = 4096


def long_report(path: Path, kernels: int = 2000) -> Path:
    """A report whose tables each take many pages."""
    return write(
        path,
        base(
            CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000 * at, 1000 * at + 7, correlationId=at) for at in range(kernels)],
            CUPTI_ACTIVITY_KIND_RUNTIME=[call(1000 * at - 50, 1000 * at - 5, correlationId=at) for at in range(kernels)],
            NVTX_EVENTS=[span(1000 * at - 60, 1000 * at, text=f"range {at}") for at in range(kernels)],
        ),
    )


def attempt(path: Path) -> dict[str, list[Row]] | None:
    """Read the file, or None where nothing can be read; any other exception fails the test."""
    try:
        nsys.probe(path)
    except ReadError as error:
        assert error.what_to_do
    try:
        return read(path)
    except ReadError as error:
        assert error.path == str(path)
        assert error.code in {"damaged", "foreign_database", "empty_database", "nvprof_database"}
        return None


def root_page(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        number = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        assert isinstance(number, int)
        return number


def test_a_hole_costs_only_its_own_rows(tmp_path: Path) -> None:
    path = long_report(tmp_path / "report.sqlite")
    whole = read(path)
    data = bytearray(path.read_bytes())
    place = data.rindex((5 * 1000).to_bytes(2, "big") + (5 * 1000 + 7).to_bytes(2, "big"))  # a kernel of the first leaf page
    leaf = place // PAGE * PAGE
    assert data[leaf] == 13  # a leaf page of a table
    data[leaf : leaf + 8] = bytes(8)
    path.write_bytes(data)
    found = read(path)
    kept = {row["correlation_id"] for row in found["kernels"]}
    lost = [row["correlation_id"] for row in whole["kernels"] if row["correlation_id"] not in kept]
    assert 5 in lost
    assert len(lost) < 200
    assert found["kernels"] == [row for row in whole["kernels"] if row["correlation_id"] in kept]
    assert found["api_calls"] == whole["api_calls"]
    assert found["ranges"] == whole["ranges"]
    assert codes(found)["damaged"] >= 1


@pytest.mark.parametrize("part", [0.95, 0.7, 0.4])
@pytest.mark.parametrize("within_a_page", [0, 1777])
def test_the_beginning_of_a_file_can_be_read(tmp_path: Path, part: float, within_a_page: int) -> None:
    path = long_report(tmp_path / "report.sqlite")
    whole = read(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part) // PAGE * PAGE + within_a_page])
    found = attempt(path)
    assert found is not None
    assert found["profiles"][0]["truncated"] is True
    assert {"truncated", "damaged"} <= set(codes(found))
    read_rows = sum(len(found[table]) for table in ("kernels", "api_calls", "ranges"))
    assert 0.5 * part * 6000 < read_rows < 6000
    odd = [row for table in ("kernels", "api_calls", "ranges") for row in found[table] if row not in whole[table]]
    assert len(odd) <= bool(within_a_page)  # a row that the cut goes through ends in zeros


def test_a_file_cut_to_its_head_cannot_be_read(tmp_path: Path) -> None:
    path = long_report(tmp_path / "report.sqlite")
    for length in (16, 50, 100, 512, PAGE):
        path.write_bytes(path.read_bytes()[:length] if length == PAGE else long_report(path).read_bytes()[:length])
        assert nsys.sniff(path, path.read_bytes())
        assert attempt(path) is None


def test_a_table_whose_definition_is_lost_is_said(tmp_path: Path) -> None:
    path = long_report(tmp_path / "report.sqlite", 50)
    data = bytearray(path.read_bytes())
    place = data.index(b'CREATE TABLE "CUPTI_ACTIVITY_KIND_RUNTIME"')
    data[place : place + 6] = b"CRXATE"
    path.write_bytes(data)
    found = read(path)
    assert len(found["kernels"]) == 50
    assert not found["api_calls"]
    assert codes(found)["damaged"] == 1


@pytest.mark.parametrize("written", [b"tXble", b"index", b"\xffable"])
def test_sqlite_goes_by_the_definition_and_not_by_the_type_in_its_list(tmp_path: Path, written: bytes) -> None:
    path = long_report(tmp_path / "report.sqlite", 50)
    data = bytearray(path.read_bytes())
    place = data.index(b"tableCUPTI_ACTIVITY_KIND_RUNTIME")
    data[place : place + 5] = written
    path.write_bytes(data)
    found = read(path)
    assert (len(found["kernels"]), len(found["api_calls"])) == (50, 50)


@pytest.mark.long
def test_any_flip_and_any_cut(tmp_path: Path) -> None:
    """Random damage, the same every time: bytes flipped, pages swapped or cleared, the end cut off."""
    original = long_report(tmp_path / "report.sqlite", 300).read_bytes()
    dice = random.Random(7)
    path = tmp_path / "damaged.sqlite"
    readable = 0
    for _ in range(250):
        data = bytearray(original)
        kind = dice.choice(("cut", "flip", "head", "clear", "swap"))
        if kind == "cut":
            del data[dice.randrange(1, len(data)) :]
        elif kind in ("flip", "head"):
            span_ = (16, 3 * PAGE) if kind == "head" else (16, len(data))
            for _ in range(dice.choice((1, 20, 300))):
                data[dice.randrange(*span_)] = dice.randrange(256)
        elif kind == "clear":
            start = dice.randrange(16, len(data))
            end = min(len(data), start + dice.choice((10, PAGE, 5 * PAGE)))
            data[start:end] = bytes(end - start)
        else:
            one, other = (dice.randrange(len(data) // PAGE) * PAGE for _ in range(2))
            data[one : one + PAGE], data[other : other + PAGE] = data[other : other + PAGE], data[one : one + PAGE]
        path.write_bytes(data)
        readable += attempt(path) is not None
    assert 100 < readable < 250


def test_a_page_that_points_to_itself_ends(tmp_path: Path) -> None:
    path = long_report(tmp_path / "report.sqlite")
    data = bytearray(path.read_bytes())
    root = (root_page(path, "CUPTI_ACTIVITY_KIND_KERNEL") - 1) * PAGE
    assert data[root] == 5  # an inner page
    data[root + 8 : root + 12] = (root // PAGE + 1).to_bytes(4, "big")
    path.write_bytes(data)
    found = attempt(path)
    assert found is not None
    assert len(found["api_calls"]) == 2000


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        nsys.probe(tmp_path / "gone.sqlite")
