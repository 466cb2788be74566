"""One chunk of the event array -> its batches and its tally. The same work in this process and in a helper."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from nsightlens.readers.batches import Batch
from nsightlens.readers.kineto import columns
from nsightlens.readers.kineto.counts import Places, Tally
from nsightlens.readers.kineto.events import REFUSED, Decoder, Event
from nsightlens.readers.kineto.fields import Fields
from nsightlens.readers.kineto.repair import BACKSLASH, BARE_WORD, NO_VALUE
from nsightlens.readers.kineto.salvage import BEHIND_ARRAY, Salvage, SalvagedEvents
from nsightlens.readers.kineto.stream import Frame, slice_end
from nsightlens.readers.kineto.times import InexactTime
from nsightlens.readers.kineto.values import Odd

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
# In a well-formed string a quote has a backslash before it, so this can only match behind a key.
_BARE = re.compile(rb'(?<=[^\\]")(\s*:\s*+)([+-]?(?:inf(?:inity)?|nan)(?:\([a-z]*\))?|N/A|)(?=\s*[,}])', re.IGNORECASE)
SLICE_BYTES = 1 << 20  # the events in so many bytes fit into the cache of a processor
_GAP_BYTES = 4096
_OPENING = ord("[")
_CLOSING = ord("]")
# Strings with a backslash: between strings there is none, so that no match can begin at a closing quote.
_ESCAPED_STRING = re.compile(rb'"[^"\\]*\\(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\)')


@dataclass(slots=True)
class Digest:
    """What a chunk held. used, closed, cut: as in `Found`."""

    batches: list[Batch]
    tally: Tally
    used: int
    closed: bool
    cut: bool


def digest(framed: memoryview, at: int, last: bool, origin_ns: int, exact: bool = False) -> Digest:
    """Return what a `Frame` holds: events from byte `at` of the file on, beginning between two of them.

    last: the file ends with it. exact: read times as text from the start.
    """
    try:
        return _digest(framed, at, last, origin_ns, decoder(exact))
    except InexactTime:
        return _digest(framed, at, last, origin_ns, decoder(True))


@cache
def decoder(exact: bool) -> Decoder:
    """Return the decoder of events, times as text if `exact`."""
    return Decoder(exact)


def _digest(framed: memoryview, at: int, last: bool, origin_ns: int, reader: Decoder) -> Digest:
    Odd.taken()
    fields = None if last else _in_slices(framed, reader)
    found = SalvagedEvents([], len(framed) - 2)
    if fields is None:
        found, tally = _found(framed, at, last, reader)
        Odd.taken()  # of slices that are read again
        fields = Fields(tally)
        fields.take(found.events)
    fields.tally.replaced.note_invalid(framed[1 : 1 + found.used], at)
    batches = columns.batches(fields, origin_ns)
    fields.tally.odd_values = Odd.taken()
    return Digest(batches, fields.tally, found.used, found.closed, found.cut)


def _in_slices(framed: memoryview, reader: Decoder) -> Fields | None:
    """Return what the events say, decoded a slice at a time; None where any slice is not valid."""
    fields = Fields(Tally())
    begin, end = 1, len(framed) - 1
    while begin < end:
        upto = slice_end(framed, begin, begin + SLICE_BYTES) if begin + SLICE_BYTES + SLICE_BYTES // 2 < end else end
        overwritten = framed[begin - 1]
        framed[begin - 1] = _OPENING
        try:
            fields.take(_listed(framed[begin - 1 : upto + 1], reader))
        except REFUSED:
            return None
        finally:
            framed[begin - 1] = overwritten
        begin = upto
    return fields


def _found(framed: memoryview, at: int, last: bool, reader: Decoder) -> tuple[SalvagedEvents, Tally]:
    """Return the events of what is not valid as it stands, or ends with the file, and what was repaired or lost."""
    tally = Tally()
    found = whole(framed, reader)
    if found is not None and (found.closed or not last):
        return found, tally
    buffer = bytes(framed[1:-1])
    found = found or _retouched(buffer, at, reader, tally)
    if found is not None and not last:
        return found, tally
    salvage = Salvage(buffer, at, last, reader)
    return salvage.run(), salvage.tally


def whole(framed: memoryview, reader: Decoder) -> SalvagedEvents | None:
    """Return the events if what a `Frame` holds is valid up to its end or to the end of the array, else None."""
    try:
        return SalvagedEvents(_listed(framed, reader), len(framed) - 2)
    except REFUSED as exc:
        trailing = _TRAILING.search(str(exc))
    if trailing is None:
        return None
    buffer = bytes(framed[1:-1])
    for behind in (int(trailing[1]), int(trailing[1]) - 1):  # of what trails, msgspec 0.22 names the end, earlier ones the place
        used = len(buffer[: behind - 1].rstrip())
        if buffer[used - 1 : used] == b"]" and BEHIND_ARRAY.match(buffer, used):
            with suppress(*REFUSED):
                return SalvagedEvents(reader.all(framed[: 1 + used]), used, closed=True)
    return None


def _listed(framed: memoryview, reader: Decoder) -> list[Event]:
    """Return the events of a `Frame`, without regard to a comma after the last one. Raises one of REFUSED."""
    gap = bytes(framed[max(1, len(framed) - 1 - _GAP_BYTES) : -1])
    end = len(framed) - 1 - len(gap) + len(gap.rstrip().removesuffix(b","))
    overwritten = framed[end]
    framed[end] = _CLOSING
    try:
        return reader.all(framed[: end + 1])
    finally:
        framed[end] = overwritten


def _retouched(buffer: bytes, at: int, reader: Decoder, tally: Tally) -> SalvagedEvents | None:
    """Return the events if all that is wrong with the buffer are bare words, missing values and single backslashes, else None.

    Builds wrote these into every kernel, every collective, or every Python frame on Windows: too many to repair one by one.
    """
    malformed = Places()

    def literal(string: re.Match[bytes]) -> bytes:
        if not any(escape[1] for escape in _ESCAPE.finditer(string[0])):
            return string[0]
        malformed.note(at + string.start(), BACKSLASH)
        return string[0].replace(b"\\", b"\\\\")

    def null(bare: re.Match[bytes]) -> bytes:
        counts[BARE_WORD if bare[2] else NO_VALUE] += 1
        return bare[1] + b"null"

    counts: Counter[str] = Counter()
    bare = _BARE.search(buffer)
    text = _ESCAPED_STRING.sub(literal, buffer)
    if bare:
        text = _BARE.sub(null, text)
        for kind, count in counts.items():
            malformed.note(at + bare.end(1), kind, count)
    if not malformed.count:
        return None
    try:
        events = _listed(Frame().around(text), reader)
    except REFUSED:
        return None
    tally.malformed.add(malformed)
    return SalvagedEvents(events, len(buffer))
