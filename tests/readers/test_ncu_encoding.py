"""Encodings, line ends, damage of the text, and where a file ends."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.readers import ncu
from nsightlens.readers.ncu.lines import tables
from nsightlens.readers.ncu.long import LongRows
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.text import Block
from tests.readers.ncu_text import DURATION, SOL, codes, details, ids, metrics, raw, read, rule, save


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gzip"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings(tmp_path: Path, encoding: str, newline: str) -> None:
    text = (
        newline.join(
            [
                *details((SOL, "Duration", "ns", "1000"), of=ids(name="ядро<α>")),
                rule("S", "R", "OPT", "é", of=ids(name="ядро<α>")),
            ]
        )
        + newline
    )
    data = gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding)
    path = save(tmp_path, data)
    tables = read(path)
    assert (tables["kernels"][0]["name"], tables["kernels"][0]["duration_ns"], tables["advice"][0]["message"]) == (
        "ядро<α>",
        1000,
        "é",
    )
    assert codes(tables) == {}
    assert len(ncu.probe(path).identity) == 1
    assert ncu.sniff(path, text.encode() if encoding == "gzip" else data)


def test_bytes_that_are_no_text_are_replaced_and_counted(tmp_path: Path) -> None:
    text = ("\n".join(metrics(DURATION, of=ids(name="k\0")))).encode().replace(b"app", b"a\xffp")
    tables = read(save(tmp_path, text))
    assert (tables["processes"][0]["name"], tables["kernels"][0]["name"]) == ("a�p", "k")
    assert codes(tables) == {"text_replaced": 1, "nul_bytes": 1}


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_cut_last_row_is_dropped_and_told(tmp_path: Path, cut: int) -> None:
    whole = "\n".join(metrics(DURATION, ("dram__bytes.sum", "byte", "64")))
    tables = read(save(tmp_path, whole[:-cut].encode()))
    assert tables["kernels"][0]["metrics"] == {"gpu__time_duration.sum": 1000.0}
    assert codes(tables) == {"truncated": 1}
    assert tables["profiles"][0]["truncated"]
    (note,) = tables["diagnostics"]
    assert note["byte_offset"] == whole.rindex("\n") + 1


def test_a_file_without_a_last_line_end_is_whole(tmp_path: Path) -> None:
    for text in (metrics(DURATION), details((SOL, "Duration", "ns", "1000")), raw([("gpu__time_duration.sum", "ns")], ("1000",))):
        tables = read(save(tmp_path, "\n".join(text).encode()))
        assert (tables["kernels"][0]["duration_ns"], codes(tables), tables["profiles"][0]["truncated"]) == (1000, {}, False)


@given(st.integers(1, 400))
@settings(max_examples=40)
def test_blocks_may_end_anywhere(size: int) -> None:
    """Rows that the file's blocks cut into pieces are the rows of the whole file, lines of several rows included."""
    text = "\n".join(
        [*details((SOL, "Duration", "ns", "1000"), (SOL, "Elapsed Cycles", "cycle", "5")), "noise", rule("S", "R", "OPT", "a")]
    )
    lines = (text + "\n").splitlines(keepends=True)
    blocks, start = [], 0
    while start < len(lines):
        blocks.append(Block("".join(lines[start : start + 1 + size % 4]).encode(), None))
        start += 1 + size % 4
    (rows,) = tables(blocks, LongRows, Notes(), [])
    assert sum(count for _, count in rows.metric_runs) == 2
    assert sum(count for _, count in rows.rule_runs) == 1


def test_a_damaged_gzip_stream_gives_what_it_holds(tmp_path: Path) -> None:
    rows = [(f"a__{i}.sum", "", f"{i * 7919 % 10007}.25") for i in range(20_000)]
    packed = gzip.compress("\n".join([*metrics(*rows), ""]).encode())
    for data in (packed[: len(packed) // 2], packed[: len(packed) // 2] + b"\xff" * 1000, packed[:-4]):
        tables = read(save(tmp_path, data))
        assert 0 < len(tables["kernels"][0]["metrics"]) <= len(rows)
        assert tables["profiles"][0]["truncated"]
    assert codes(read(save(tmp_path, packed + gzip.compress(b"noise")))) == {"log_lines": 1}
