"""Packed columns: what another reader unpacks, by the description at the top of packing.py, are the values that went in."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.html_report.packing import pack


def unpack(text: str, words: list[str] | None = None) -> dict[str, list[Any]]:
    """Return the columns of a packed table, read byte by byte."""
    raw = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(raw[:4], "little")
    header, body = json.loads(raw[4 : 4 + length]), raw[4 + length :]
    rows, found = header["rows"], {}
    for column in header["columns"]:
        nulls = [False] * rows
        if column.get("nulls"):
            nulls, body = [bool(byte) for byte in body[:rows]], body[rows:]
        planes, body = body[: rows * column["width"]], body[rows * column["width"] :]
        wide = [bytes(planes[plane * rows + row] for plane in range(column["width"])) for row in range(rows)]
        if column["kind"] == "float":
            values: list[Any] = [struct.unpack("<d", one)[0] for one in wide]
        else:
            values, last = [], 0
            for one in wide:
                folded = int.from_bytes(one, "little")
                last += -(folded + 1) // 2 if folded % 2 else folded // 2
                values.append(last)
        texts = words if column["kind"] == "word" else column.get("words")
        plain = [bool(value) if column["kind"] == "bool" else texts[value] if texts else value for value in values]
        found[column["name"]] = [None if null else value for value, null in zip(plain, nulls, strict=True)]
    assert not body
    return found


@given(st.lists(st.none() | st.integers(-(2**53) + 1, 2**53 - 1)))
def test_integers_survive(values: list[int | None]) -> None:
    table = pa.table({"a_ns": pa.array(values, pa.int64())})
    assert unpack(pack(table))["a_ns"] == values


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.floats(allow_nan=False), st.none() | st.booleans())))
def test_texts_floats_and_booleans_survive(rows: list[tuple[Any, Any, Any]]) -> None:
    texts = [None if text is None else text.encode("utf-8", "replace").decode() for text, _, _ in rows]
    table = pa.table({"name": pa.array(texts, pa.string()), "pct": pa.array([b for _, b, _ in rows], pa.float64()),
                      "yes": pa.array([c for _, _, c in rows], pa.bool_())})
    assert unpack(pack(table)) == table.to_pydict()


def test_shared_words_grow_and_are_shared() -> None:
    words: dict[str, int] = {}
    first, second = (pack(pa.table({"name": names}), words) for names in (["a", None, "b"], ["b", "c"]))
    assert list(words) == ["a", "b", "c"]
    assert unpack(first, list(words))["name"] == ["a", None, "b"] and unpack(second, list(words))["name"] == ["b", "c"]


def test_integers_beyond_javascripts_are_texts() -> None:
    assert unpack(pack(pa.table({"id": [2**60, 1]})))["id"] == [str(2**60), "1"]


def test_other_types_are_texts_and_empty_tables_pack() -> None:
    assert unpack(pack(pa.table({"m": [[1, 2], None]})))["m"] == ["[1, 2]", None]
    assert unpack(pack(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}))) == {"a": [], "b": []}


@pytest.mark.parametrize("count", [1000])
def test_times_of_a_timeline_take_few_bytes(count: int) -> None:
    starts = [1_000_000 + 40_000 * number + number * number % 977 for number in range(count)]
    assert len(pack(pa.table({"start_ns": starts}))) < 4 * count
