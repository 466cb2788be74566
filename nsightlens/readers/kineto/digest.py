"""One chunk of the event array -> its batches and its tally. The same work in this process and in a helper."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nsightlens.readers import Batch
from nsightlens.readers.kineto import columns
from nsightlens.readers.kineto.events import REFUSED, Decoder
from nsightlens.readers.kineto.salvage import BEHIND_ARRAY, Found, Salvage
from nsightlens.readers.kineto.sorting import sort
from nsightlens.readers.kineto.tally import Tally
from nsightlens.readers.kineto.times import InexactTime

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
# In a well-formed string a quote has a backslash before it, so this can only match behind a key.
_BARE = re.compile(rb'(?<=[^\\]")(\s*:\s*)(?:[+-]?(?:inf(?:inity)?|nan)(?:\([a-z]*\))?|N/A)(?=\s*[,}])', re.IGNORECASE)
_GAP_BYTES = 4096
_BARE_KIND = "bare inf, nan or N/A, taken as unknown"


@dataclass(slots=True)
class Digest:
    """What a chunk held. used, closed, cut: as in `Found`."""

    batches: list[Batch]
    tally: Tally
    used: int
    closed: bool
    cut: bool


def digest(buffer: bytes, at: int, last: bool, origin_ns: int, exact: bool = False) -> Digest:
    """Return what `buffer` holds: events from byte `at` of the file on, beginning between two of them.

    last: the file ends with it. exact: read times as text from the start.
    """
    try:
        return _digest(buffer, at, last, origin_ns, decoder(exact))
    except InexactTime:
        return _digest(buffer, at, last, origin_ns, decoder(True))


@cache
def decoder(exact: bool) -> Decoder:
    """Return the decoder of events, times as text if `exact`."""
    return Decoder(exact)


def _digest(buffer: bytes, at: int, last: bool, origin_ns: int, reader: Decoder) -> Digest:
    tally = Tally()
    found = _whole(buffer, reader) or _with_bare_words(buffer, at, reader, tally)
    if found is None or (last and not found.closed):
        salvage = Salvage(buffer, at, last, reader)
        found, tally = salvage.run(), salvage.tally
    rows = sort(found.events, tally)
    return Digest(columns.batches(rows, origin_ns, tally), tally, found.used, found.closed, found.cut)


def _whole(buffer: bytes, reader: Decoder) -> Found | None:
    """Return the events if the buffer is valid up to its end or to the end of the array, else None."""
    try:
        return Found(reader.all(_as_list(buffer)), len(buffer))
    except REFUSED as exc:
        trailing = _TRAILING.search(str(exc))
    if trailing is None:
        return None
    used = len(buffer[: int(trailing[1]) - 1].rstrip())
    if not BEHIND_ARRAY.match(buffer, used):
        return None
    try:
        return Found(reader.all(b"".join((b"[", memoryview(buffer)[:used]))), used, closed=True)
    except REFUSED:
        return None


def _as_list(buffer: bytes) -> bytes:
    """Return the events of `buffer` in brackets, without the comma after the last; copies once, since that is what costs."""
    end = buffer[-_GAP_BYTES:]
    extra = len(end) - len(end.rstrip().removesuffix(b","))
    return b"".join((b"[", memoryview(buffer)[: len(buffer) - extra], b"]"))


def _with_bare_words(buffer: bytes, at: int, reader: Decoder, tally: Tally) -> Found | None:
    """Return the events if bare inf, nan and N/A are all that is wrong with the buffer, else None."""
    first = _BARE.search(buffer)
    if first is None:
        return None
    mended, count = _BARE.subn(rb"\1null", buffer)
    try:
        events = reader.all(_as_list(mended))
    except REFUSED:
        return None
    tally.malformed.note(at + first.end(1), _BARE_KIND, count)
    return Found(events, len(buffer))
