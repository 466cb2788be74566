"""File -> bytes in UTF-8 with LF line ends, and the header lines in them."""

from __future__ import annotations

import codecs
import csv
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nsightlens.errors import ReadError
from nsightlens.readers.ncu.notes import Notes

_ENCODINGS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BIGGEST_FIELD = 2**31 - 1
_CHUNK = 1 << 20
_BLOCK = 1 << 19  # small enough that the memory of one block serves the next
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Header:
    """A header line: its cells, and the offset of the line after it."""

    cells: tuple[str, ...]
    end: int

    @property
    def shape(self) -> str | None:
        """Return long (a row per metric), wide (a column per metric), summary (--print-summary), or None: no header of ncu."""
        names = set(self.cells)
        if {"Invocations", "Metric Name", "Minimum", "Maximum", "Average"} <= names:
            return "summary"
        if {"ID", "Metric Name", "Metric Value"} <= names:
            return "long"
        return "wide" if {"ID", "Kernel Name"} <= names and "Metric Name" not in names else None


class Block(NamedTuple):
    """A stretch of whole lines of a file in UTF-8 with LF; `offset` is where it begins in the file (None: not told)."""

    data: bytes
    offset: int | None


def blocks(path: Path, notes: Notes) -> Iterator[Block]:
    """Yield the text of a file (plain or gzip; UTF-8 or UTF-16) in order. Raises ReadError."""
    try:
        with path.open("rb") as file:
            start = file.read(_BLOCK)
            encoding, skip = _encoding(start)
            if start[:2] == _GZIP or encoding != "utf-8":
                whole = start + file.read()
                yield Block(decode(_gunzip(whole, notes) if start[:2] == _GZIP else whole, notes), None)
                return
            for raw, offset in _whole_lines(file, start[skip:], skip):
                data = decode(raw, notes, offset)
                yield Block(data, offset if len(data) == len(raw) else None)
    except OSError as exc:
        raise ReadError(path, exc.strerror or "cannot be opened", "Check the path and its permissions.") from exc


def _whole_lines(file: BinaryIO, rest: bytes, offset: int) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes, their offset), each but the last ending with a line; `rest` is what was read before."""
    while more := file.read(_BLOCK):
        # A row of several lines stays whole: such lines do not begin with a quote.
        cut = more.rfind(b'\n"') + 1 or more.rfind(b"\n") + 1
        if cut:
            yield rest + more[:cut], offset
            offset += len(rest) + cut
            rest = more[cut:]
        else:
            rest += more
    yield rest, offset


def _gunzip(raw: bytes, notes: Notes) -> bytes:
    """Return what can be unpacked of one or more gzip members."""
    parts: list[bytes] = []
    inflate = zlib.decompressobj(wbits=31)
    for start in range(0, len(raw), _CHUNK):
        rest = raw[start : start + _CHUNK]
        while rest:
            try:
                parts.append(inflate.decompress(rest))
            except zlib.error as exc:
                notes.add("truncated", f"the gzip stream is damaged ({exc})")
                return b"".join(parts)
            rest = inflate.unused_data
            if inflate.eof and rest:
                inflate = zlib.decompressobj(wbits=31)
    if not inflate.eof:
        notes.add("truncated", "the gzip stream ends before its end")
    return b"".join(parts)


def decode(raw: bytes, notes: Notes, offset: int = 0) -> bytes:
    """Return text as UTF-8 with LF line ends and without NULs; what had to be replaced becomes a note."""
    encoding, skip = _encoding(raw) if offset == 0 else ("utf-8", 0)
    if encoding != "utf-8":
        text = raw[skip:].decode(encoding, errors="replace")
        notes.add("encoding_replaced", encoding, text.count("\ufffd"))
        raw, skip = text.encode("utf-8", errors="replace"), 0
    data = raw[skip:] if skip else raw
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as exc:
            text = data.decode("utf-8", errors="replace")
            notes.add("encoding_replaced", "utf-8", text.count("\ufffd"), offset + exc.start + skip)
            data = text.encode("utf-8")
    if b"\0" in data:
        notes.add("nul_bytes", "", data.count(b"\0"), offset + data.index(b"\0") + skip)
        data = data.replace(b"\0", b"")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def _encoding(raw: bytes) -> tuple[str, int]:
    """Return (encoding, length of its byte order mark)."""
    for mark, encoding in _ENCODINGS:
        if raw.startswith(mark):
            return encoding, len(mark)
    start = raw[:512]
    if len(start) >= 8:
        odd, even = start[1::2].count(0), start[::2].count(0)
        if max(odd, even) > len(start) // 3:
            return ("utf-16-le" if odd > even else "utf-16-be"), 0
    return "utf-8", 0


def cells(line: bytes) -> list[str] | None:
    """Return the cells of one CSV line, or None where its quotes do not close."""
    csv.field_size_limit(_BIGGEST_FIELD)
    text = line.decode("utf-8", errors="replace")
    if text.count('"') % 2:
        return None
    try:
        return next(csv.reader((text,)), [])
    except csv.Error:
        return None


def header_of(line: bytes, end: int) -> Header | None:
    """Return the header that this line is, or None. `end` is the offset of the next line."""
    if b"Kernel Name" not in line and b"Metric Name" not in line:
        return None
    glued = max(line.find(b'"ID","'), line.find(b'"Process ID","Process Name"') if b'"ID"' not in line else 0)
    found = tuple(cell.strip() for cell in cells(line[max(glued, 0) :]) or ())
    header = Header(found, end)
    return header if header.shape else None


def find_header(data: bytes, start: int = 0) -> tuple[Header | None, int]:
    """Return the first header at or after offset `start`, and the offset of its line (or of the end)."""
    while start < len(data):
        stop = data.find(b"\n", start)
        stop = len(data) if stop < 0 else stop
        header = header_of(data[start:stop], stop + 1)
        if header:
            return header, start
        start = stop + 1
    return None, len(data)
