"""Report -> where its launches lie, its table of names, and who made it: the headers alone, payloads are passed over."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu_rep.stream import MAGIC, Stream
from nsightlens.readers.ncu_rep.wire import DamagedError, Message

FILE_VERSION = 7
"""The version of the file that all reports had that were seen."""
LAST_SEEN = (2025, 2)
"""The last version of ncu whose reports were seen."""
_LENGTH = 4
"""Bytes of the length in front of each launch."""
_TARGET = "Nsight Compute Target"
_OPTION = re.compile(r"--(clock-control|cache-control|replay-mode)[ =](\w[\w-]{0,20})(?=\s|$)")
_DEFAULTS = {"clock-control": "base", "cache-control": "all", "replay-mode": "kernel"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block that holds launches: where its payload begins, the sources before them, how many, and whose they are."""

    offset: int
    size: int
    sources: int
    results: int
    pid: int | None
    process: str | None


@dataclass(slots=True)
class Layout:
    """What the headers of a report say. `settings`: clock-control, cache-control and replay-mode, where known.

    names: the table that the names of metrics are numbers in; it is one for the whole file. guessed: some of the settings are
    ncu's defaults. devices: the ordinals of those that were profiled.
    """

    version: int | None = None
    ncu: str | None = None
    names: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    guessed: bool = False
    devices: set[int] = field(default_factory=set)
    range_results: int = 0


def layout(path: Path, notes: Notes) -> Layout:
    """Return what the headers say, as far as the report is whole. Raises ReadError where it is no report at all."""
    found = Layout()
    try:
        with Stream(path) as stream:
            _first_header(stream, found, path)
            while _block(stream, found, notes):
                pass
            if stream.problem:
                notes.add("report_damaged", stream.problem, offset=stream.offset)
    except OSError as exc:
        raise ReadError(path, exc.strerror or "cannot be opened", "Check the path and its permissions.") from exc
    return found


def _first_header(stream: Stream, found: Layout, path: Path) -> None:
    magic = stream.read(len(MAGIC))
    size = _size(stream) if magic == MAGIC else None
    header = stream.read(size) if size is not None else None
    if header is None:
        raise ReadError(path, "it begins like a report of ncu and ends inside its first header", "Copy it again", "truncated")
    try:
        found.version = Message(header).whole(1)
    except DamagedError:
        found.version = None


def _size(stream: Stream) -> int | None:
    four = stream.read(_LENGTH)
    return None if four is None else int(struct.unpack("<I", four)[0])


def _block(stream: Stream, found: Layout, notes: Notes) -> bool:
    """Take one block; return whether another may follow."""
    begin = stream.offset
    four = stream.upto(_LENGTH)
    if not four and not stream.problem:
        return False
    size = int(struct.unpack("<I", four)[0]) if len(four) == _LENGTH and four != MAGIC else 0
    header = stream.read(size) if size else None
    if header is None:
        what = "another report begins" if four == MAGIC else "it ends, or what follows is no block,"
        notes.add("report_damaged", f"{what} at byte {begin:,}", offset=begin)
        return False
    try:
        payload = _take(Message(header), stream.offset, found, notes)
    except DamagedError:
        notes.add("report_damaged", f"what stands at byte {begin:,} is no block", offset=begin)
        return False
    if stream.skip(payload):
        return True
    notes.add("report_damaged", f"it ends inside the block at byte {begin:,}", offset=begin)
    return False


def _take(header: Message, offset: int, found: Layout, notes: Notes) -> int:
    """Add what the header of a block says; return the bytes of its payload. Raises DamagedError."""
    size = header.whole(5) or 0
    results = min(header.whole(2) or 0, size // _LENGTH)
    for table in header.messages(4):
        found.names += table.texts(1)
    found.range_results += header.whole(7) or 0
    pid = name = None
    try:
        for process in header.messages(6):
            pid, name = process.whole(1), re.split(r"[/\\]", process.text(3))[-1] or None
        for session in header.messages(3):
            _session(session, found)
    except DamagedError:
        notes.add("session_damaged", f"before byte {offset:,}", offset=offset)
    if results:
        found.blocks.append(Block(offset, size, header.whole(1) or 0, results, pid, name))
    return size


def _session(part: Message, found: Layout) -> None:
    """Take the version of ncu, its settings and the profiled devices out of a part of the session; nothing else of it."""
    found.devices |= {device.whole(1) or 0 for device in part.messages(6)}
    for version in part.messages(8):
        if version.text(1) == _TARGET:
            found.ncu = next(iter(version.text(2).split()), None)
    for options in part.messages(10):
        stated = {"clock-control": options.text(8).lower(), "replay-mode": options.text(11).lower()}
        found.settings |= {name: value for name, value in stated.items() if re.fullmatch(r"[a-z-]{1,20}", value)}
    for command in part.texts(11):
        named = dict(reversed(_OPTION.findall(command)))
        found.guessed = len(named) < len(_DEFAULTS)
        found.settings = _DEFAULTS | found.settings | named


def entries(path: Path, found: Layout, notes: Notes) -> Iterator[tuple[Block, int, bytes]]:
    """Yield the launches: the block, the number in the file, and the bytes of each. Sources are passed over."""
    number = 0
    with Stream(path) as stream:
        for block in found.blocks:
            if not stream.skip(block.offset - stream.offset):
                return
            for nth, data in _results(stream, block, notes):
                yield block, number + nth, data
            number += block.results


def _results(stream: Stream, block: Block, notes: Notes) -> Iterator[tuple[int, bytes]]:
    end = block.offset + block.size
    for nth in range(-block.sources, block.results):
        size = _size(stream) if stream.offset + _LENGTH <= end else None
        if size is None or stream.offset + size > end:
            notes.add("launch_damaged", f"in the block at byte {block.offset:,}", offset=block.offset)
            return
        if nth < 0:
            stream.skip(size)
        elif (data := stream.read(size)) is not None:
            yield nth, data
