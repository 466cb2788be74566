"""A file -> its decompressed bytes, and the pieces of its event array.

A piece ends where, by its bytes, a next event begins. Only decoding shows that the cut was right; where it was not,
`reading` puts what remains of a piece before the next one. The bytes of all pieces together are the bytes of the array.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from nsightlens.readers import budget
from nsightlens.readers.budget import OVER_BUDGET, read_upto
from nsightlens.readers.kineto.salvage import NEXT_EVENT
from nsightlens.readers.measure import counted

GZIP = b"\x1f\x8b"
BLOCK = 1 << 20
_COMPRESSED = 1 << 16
_OUTPUT = 1 << 16
_WINDOW = 1 << 16


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with the file as such: a diagnostic's code and message."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ArrayPiece:
    """Bytes at..at+size of the array: by themselves (`data`), or still in the plain file. last: the file ends with it."""

    at: int
    size: int
    last: bool
    data: bytes | None = None

    def load(self, file: BinaryIO | None) -> bytes:
        """Return the bytes; `file` is the plain file, where the piece is still in it."""
        if self.data is not None:
            return self.data
        assert file is not None
        return read_at(file, self.at, self.size)


class Frame:
    """Brackets around the bytes of one piece after another, in the same memory: fresh memory costs as much as reading does."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def load(self, piece: ArrayPiece, file: BinaryIO | None) -> memoryview:
        """Return the bytes of a piece between "[" and "]"; what was returned before is no longer valid."""
        if piece.data is not None:
            return self.around(piece.data)
        assert file is not None
        framed = self._sized(piece.size)
        file.seek(piece.at)
        size = 0
        while size < piece.size and (more := file.readinto(framed[1 + size : -1])):  # type: ignore[attr-defined]
            size += more
        return framed if size == piece.size else self.around(bytes(framed[1 : 1 + size]))

    def around(self, data: bytes) -> memoryview:
        """Return `data` between "[" and "]"; what was returned before is no longer valid."""
        framed = self._sized(len(data))
        framed[1:-1] = data
        return framed

    def _sized(self, size: int) -> memoryview:
        if len(self._buffer) < size + 2:
            self._buffer = bytearray(size + 2)
        framed = memoryview(self._buffer)[: size + 2]
        framed[0], framed[-1] = b"[]"
        return framed


def read_at(file: BinaryIO, at: int, size: int) -> bytes:
    """Return `size` bytes of the file from byte `at` on, fewer only where it ends."""
    file.seek(at)
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _more(file: BinaryIO, size: int) -> bytes:
    """Return the next bytes of the file, which count as read."""
    data = file.read(size)
    counted(len(data))
    return data


class TraceFile:
    """A file opened for reading: plain or gzip, whatever its name says."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError."""
        self.file = path.open("rb", buffering=0)
        self.size = self.file.seek(0, os.SEEK_END)
        self.zipped = read_at(self.file, 0, 2) == GZIP
        self.in_order = self.zipped or not isinstance(self.file, io.FileIO)  # from afar, to go back costs a request
        self.file.seek(0)
        self.problems: list[Problem] = []
        self._blocks = self._members() if self.zipped else iter(lambda: _more(self.file, BLOCK), b"")

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def read(self, size: int) -> bytes:
        """Return at least `size` bytes more, fewer only at the end."""
        parts, length = [], 0
        while length < size and (block := next(self._blocks, b"")):
            parts.append(block)
            length += len(block)
        return b"".join(parts)

    def pieces(self, at: int, begun: bytes, size: int) -> Iterator[ArrayPiece]:
        """Yield the array from byte `at` on; `begun` are the bytes from there that were read already."""
        return self._bounded(self._pieces_in_order(at, begun, size) if self.in_order else self._plain_pieces(at, size), size)

    def _bounded(self, pieces: Iterator[ArrayPiece], size: int) -> Iterator[ArrayPiece]:
        """Yield the pieces but those within something longer than any event: so no byte of that is looked at but for its end.

        A piece of the whole `size` has no beginning of an event in it, as it would end there.
        """
        uncut = 0
        for piece in pieces:
            if piece.size < size or piece.last or uncut < budget.BUDGET.longest:
                yield piece
            uncut = uncut + piece.size if piece.size >= size else 0

    def _plain_pieces(self, at: int, size: int) -> Iterator[ArrayPiece]:
        while at + size < self.size:
            end = self._plain_cut(at, size)
            counted(end - at)
            yield ArrayPiece(at, end - at, False)
            at = end
        counted(max(0, self.size - at))
        yield ArrayPiece(at, max(0, self.size - at), True)

    def _plain_cut(self, at: int, size: int) -> int:
        for window in (min(size, _WINDOW), size):
            begin = at + size - window
            cut = last_cut(read_at(self.file, begin, window))
            if cut:
                return begin + cut
        return at + size

    def _pieces_in_order(self, at: int, begun: bytes, size: int) -> Iterator[ArrayPiece]:
        room = bytearray(max(size, len(begun)) + _OUTPUT)  # kept: fresh memory costs as much as unzipping does
        room[: len(begun)] = begun
        length = len(begun)
        while True:
            while length <= size and (block := next(self._blocks, b"")):
                room[length : length + len(block)] = block
                length += len(block)
            cut = slice_end(room, 0, size) if length > size else length
            yield ArrayPiece(at, cut, length <= size, bytes(memoryview(room)[:cut]))
            if length <= size:
                return
            room[: length - cut] = room[cut:length]
            length, at = length - cut, at + cut

    def _members(self) -> Iterator[bytes]:
        """Yield the decompressed blocks of all gzip members; what is wrong with them goes to `problems`."""
        data, unpacked, most = _more(self.file, _COMPRESSED), 0, budget.BUDGET.most_of(self.size)
        while True:
            header = self._header_size(data)
            while header is None and len(data) < budget.BUDGET.longest and (more := _more(self.file, _COMPRESSED)):
                data += more
                header = self._header_size(data)
            if header is None:
                self._truncated()
                return
            member = _Member(self.file, data[header:])
            for block in member.blocks():
                unpacked += len(block)
                yield block
                if unpacked > most:
                    self.problems.append(Problem(OVER_BUDGET, read_upto(unpacked)))
                    return
            data = member.rest
            if member.damaged:
                self.problems.append(Problem("gzip_damaged", "the compressed data is damaged; what came before it is kept"))
                return
            if len(data) < 8:
                self._truncated()
                return
            if data[:8] != member.trailer():
                message = "the gzip checksum does not match the content: the file is damaged; all of it was kept"
                self.problems.append(Problem("checksum_mismatch", message))
            data = data[8:].lstrip(b"\0") or _more(self.file, _COMPRESSED).lstrip(b"\0")
            if not data:
                return
            if not data.startswith(GZIP):
                self.problems.append(Problem("trailing_bytes", "bytes after the gzip data were not read"))
                return

    def _truncated(self) -> None:
        message = "the gzip data is cut short (the copy or upload was stopped); what is there is kept"
        self.problems.append(Problem("truncated", message))

    @staticmethod
    def _header_size(data: bytes) -> int | None:
        """Return the size of the gzip header that `data` begins with, None where more bytes are needed."""
        if len(data) < 10:
            return None
        size, flags = 10, data[3]
        if flags & 4:
            size += 2 + int.from_bytes(data[10:12], "little")
        for text in (8, 16):
            if flags & text:
                size = data.find(b"\0", size) + 1
                if size == 0:
                    return None
        size += 2 if flags & 2 else 0
        return size if size <= len(data) else None


class _Member:
    """One gzip member whose header has been read. After `blocks`: `rest` is what follows its deflate data."""

    def __init__(self, file: BinaryIO, data: bytes) -> None:
        self._file = file
        self.rest = data
        self.damaged = False
        self._crc = 0
        self._size = 0

    def blocks(self) -> Iterator[bytes]:
        engine = isal_zlib.decompressobj(wbits=-15)
        data = self.rest or _more(self._file, _COMPRESSED)
        self.rest = b""
        while data and not engine.eof:
            try:
                block = engine.decompress(data, _OUTPUT)
            except isal_zlib.error:  # type: ignore[misc]  # its stub says it is an instance
                self.damaged = True
                return
            self._crc = isal_zlib.crc32(block, self._crc)
            self._size += len(block)
            if block:
                yield block
            data = engine.unconsumed_tail or (b"" if engine.eof else _more(self._file, _COMPRESSED))
        if not engine.eof:
            yield from filter(None, [engine.flush()])
        else:
            self.rest = engine.unused_data
            while len(self.rest) < 8 and (more := _more(self._file, _COMPRESSED)):
                self.rest += more

    def trailer(self) -> bytes:
        """Return the eight bytes that should follow the data."""
        return self._crc.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little")


def slice_end(buffer: bytearray | memoryview, begin: int, end: int) -> int:
    """Return where to cut begin..end: at the last event's beginning, mostly found in a window at their end; else at the end."""
    for window in (min(end - begin, _WINDOW), end - begin):
        cut = last_cut(buffer[end - window : end])
        if cut:
            return end - window + cut
    return end


def last_cut(window: bytes | bytearray | memoryview) -> int | None:
    """Return where the last event of `window` that another one precedes begins, None where there is none."""
    cut = None
    for found in NEXT_EVENT.finditer(window):
        cut = found.end()
    return cut
