"""File -> bytes in UTF-8 with LF line ends, and the header lines in them."""

from __future__ import annotations

import codecs
import csv
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from nsightlens.errors import ReadError
from nsightlens.readers import budget
from nsightlens.readers.budget import OVER_BUDGET, most_unpacked, too_dense
from nsightlens.readers.measure import counted
from nsightlens.readers.ncu.notes import Notes

_ENCODINGS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BIGGEST_FIELD = 2**31 - 1
_BLOCK = 1 << 19  # small enough that the memory of one block serves the next
_GZIP = b"\x1f\x8b"
_LATIN_SPACE = re.compile(rb"(?<=\d)\xa0(?=\d{3})")
_SPACE = "\u00a0".encode()
_NAME = re.compile(rb"(?:Kernel|Metric) Name[^\n]*")


@dataclass(frozen=True, slots=True)
class HeaderLine:
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
    """A block of whole lines of a file in UTF-8 with LF; `offset` is where it begins in the file (None: unknown)."""

    data: bytes
    offset: int | None


def blocks(path: Path, notes: Notes) -> Iterator[Block]:
    """Yield the text of a file (plain or gzip; UTF-8 or UTF-16) in order. Raises ReadError."""
    try:
        with path.open("rb") as file:
            start = file.read(_BLOCK)
            chunks: Iterator[bytes] = _counted(chain([start], iter(partial(file.read, _BLOCK), b"")))
            zipped = start[:2] == _GZIP
            chunks = _gunzipped(chunks, most_unpacked(path), notes) if zipped else chunks
            start = next(chunks, b"")
            encoding, skip = _encoding(start)
            chunks = chain([start[skip:]], chunks)
            chunks = chunks if encoding == "utf-8" else _recoded(chunks, encoding, notes)
            for raw, offset in _whole_lines(chunks, skip, notes):
                data = decode(raw, notes, offset)
                yield Block(data, offset if len(data) == len(raw) and encoding == "utf-8" and not zipped else None)
    except OSError as exc:
        raise ReadError(path, exc.strerror or "cannot be opened", "Check the path and its permissions.") from exc


def _counted(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        counted(len(chunk))
        yield chunk


def _whole_lines(chunks: Iterator[bytes], offset: int, notes: Notes) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes, their offset), each but the last ending with a line, up to a line that is too long to be one."""
    rest = next(chunks, b"")
    for more in chunks:
        # A row of several lines stays whole: such lines do not begin with a quote.
        cut = more.rfind(b'\n"') + 1 or more.rfind(b"\n") + 1
        if cut:
            yield rest + more[:cut], offset
            offset += len(rest) + cut
            rest = more[cut:]
        else:
            rest += more
        if len(rest) > budget.BUDGET.longest:
            notes.add(OVER_BUDGET, f"a line longer than {budget.BUDGET.longest >> 20} MiB", offset=offset)
            yield rest[:rest.rfind(b"\n") + 1], offset
            return
    yield rest, offset


def _gunzipped(raw: Iterator[bytes], most: int, notes: Notes) -> Iterator[bytes]:
    """Yield what can be unpacked of one or more gzip members, up to about `most` bytes."""
    inflate = zlib.decompressobj(wbits=31)
    ready, unpacked = b"", 0
    for rest in raw:
        while rest:
            try:
                ready += inflate.decompress(rest, _BLOCK)
            except zlib.error as exc:
                notes.add("truncated", f"the gzip stream is damaged ({exc})")
                yield ready
                return
            if len(ready) >= _BLOCK:
                yield ready
                unpacked, ready = unpacked + len(ready), b""
            if unpacked > most:
                notes.add(OVER_BUDGET, too_dense())
                return
            rest = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            if inflate.eof and rest:
                inflate = zlib.decompressobj(wbits=31)
    if not inflate.eof:
        notes.add("truncated", "the gzip stream ends before its end")
    yield ready + inflate.flush()


def _recoded(raw: Iterator[bytes], encoding: str, notes: Notes) -> Iterator[bytes]:
    """Yield text as UTF-8; what had to be replaced becomes a note."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for part in chain(raw, [b""]):
        text = decoder.decode(part, final=not part)
        notes.add("text_replaced", encoding, text.count("\ufffd"))
        yield text.encode("utf-8", errors="replace")


def decode(raw: bytes, notes: Notes, offset: int = 0) -> bytes:
    """Return text as UTF-8 with LF line ends and without NULs; what had to be replaced becomes a note."""
    encoding, skip = _encoding(raw) if offset == 0 else ("utf-8", 0)
    if encoding != "utf-8":
        text = raw[skip:].decode(encoding, errors="replace")
        notes.add("text_replaced", encoding, text.count("\ufffd"))
        raw, skip = text.encode("utf-8", errors="replace"), 0
    data = raw[skip:] if skip else raw
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as exc:
            spaces = _LATIN_SPACE.sub(_SPACE, data)  # between digits: thousands in the locale of de_CH, fr, pl, ...
            text = spaces.decode("utf-8", errors="replace")
            notes.add("text_replaced", "utf-8", text.count("\ufffd"), offset + exc.start + skip)
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


def header_of(line: bytes, end: int) -> HeaderLine | None:
    """Return the header that this line is, or None. `end` is the offset of the next line."""
    if b"Kernel Name" not in line and b"Metric Name" not in line:
        return None
    glued = max(line.find(b'"ID","'), line.find(b'"Process ID","Process Name"') if b'"ID"' not in line else 0)
    found = tuple(cell.strip() for cell in cells(line[max(glued, 0) :]) or ())
    header = HeaderLine(found, end)
    return header if header.shape else None


def find_header(data: bytes, start: int = 0) -> tuple[HeaderLine | None, int]:
    """Return the first header at or after offset `start`, and the offset of its line (or of the end)."""
    for name in _NAME.finditer(data, start):
        begin, stop = data.rfind(b"\n", start, name.start()) + 1 or start, data.find(b"\n", name.end())
        stop = len(data) if stop < 0 else stop
        header = header_of(data[begin:stop], stop + 1)
        if header:
            return header, begin
    return None, len(data)
