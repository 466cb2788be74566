"""Bytes of the event array -> its events, one by one, when they do not decode as a whole.

Events are found by where they must end: at a brace that the next event's opening or the end of the array follows. An event
that is malformed is repaired; one that cannot be repaired without guessing is lost and counted, and the next one is tried.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import msgspec

from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.events import REFUSED, Decoder, Event
from nsightlens.readers.kineto.repair import Incomplete, Repairer, Unrepairable

_KEY = rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:'
_BEHIND_ARRAY = rb'\s*(?:\}|,\s*(?:"|\Z)|\Z)'
_ARRAY_END = rb"\]" + _BEHIND_ARRAY
BEHIND_ARRAY = re.compile(_BEHIND_ARRAY)
NEXT_EVENT = re.compile(rb"\}\s*,\s*(?=\{\s*" + _KEY + rb")")
# A brace that may close an event; group 1: one that very likely does. The comma after it may be missing or damaged.
_CLOSING = re.compile(
    rb"\}(?:(\s*[^\s{}\[\]\"]?\s*(?=\{\s*" + _KEY + rb")|\s*,\s*\Z|\s*,?\s*(?=" + _ARRAY_END + rb"))|\s*(?=\]))")
_OPENING = re.compile(rb"(?<=[},\s])(?=\{\s*" + _KEY + rb")")
_STRAY = re.compile(rb"[^{}\[\]\"]{1,16}(?=\{\s*" + _KEY + rb")")
_END_OF_ARRAY = re.compile(rb"(?<=\})\s*,?\s*(?=" + _ARRAY_END + rb")")
_PHASE = re.compile(rb'"ph"\s*:')
_GAP = re.compile(rb"[\s,]*")
_TRIES = 16
_END_TRIES = 64
_MENDABLE_BYTES = 1 << 22
_CUT_BYTES = 1 << 16
_CUT = -1
# An attack can make every search run to the end of the buffer; beyond this sum the rest of the buffer is lost.
_SEARCH_BYTES = 1 << 25


class Empty(msgspec.Struct):
    """Any object, of which nothing is kept."""


@dataclass(slots=True)
class SalvagedEvents:
    """Events of some bytes. used: bytes dealt with. closed: the end of the array is among them.

    cut: the file ends within the array; `used` is then where the first incomplete event begins, or the end of the file.
    """

    events: list[Event]
    used: int
    closed: bool = False
    cut: bool = False


class Salvage:
    """One walk over `buffer`, which begins between two events at byte `at` of the file. last: the file ends with it."""

    def __init__(self, buffer: bytes, at: int, last: bool, decoder: Decoder) -> None:
        self._buffer = buffer
        self._at = at
        self._last = last
        self._decoder = decoder
        self._events: list[Event] = []
        self._pos = 0
        self._searched = 0
        self.tally = Tally()

    def run(self) -> SalvagedEvents:
        """Return the events; what was repaired, replaced and lost is in `tally`."""
        while True:
            if self._searched > _SEARCH_BYTES:
                return self._lose_all()
            self._skip_gap()
            rest = self._buffer[self._pos : self._pos + 1]
            if not rest:
                return self._found(cut=self._last)
            if rest == b"]" and self._next_whole() is None:
                self._pos += 1
                return self._found(closed=True)
            done = self._event() if rest == b"{" else self._stray()
            if done:
                return done

    def _found(self, closed: bool = False, cut: bool = False) -> SalvagedEvents:
        return SalvagedEvents(self._events, self._pos, closed, cut)

    def _skip_gap(self) -> None:
        gap = _GAP.match(self._buffer, self._pos)
        assert gap is not None
        end = gap.end()
        commas, following = gap[0].count(b","), self._buffer[end : end + 1]
        if commas > 1 or (commas and following == b"]"):
            self.tally.malformed.note(self._at + self._pos + gap[0].index(b","), "commas too many")
        elif not commas and following == b"{" and self._buffer[self._pos - 1 : self._pos] == b"}":
            self.tally.malformed.note(self._at + self._pos, "commas missing")
        self._pos = end

    def _stray(self) -> SalvagedEvents | None:
        """Step over bytes that begin no event: a few between two events, or all to the next event."""
        stray = _STRAY.match(self._buffer, self._pos)
        if stray is None:
            return self._lose()
        self.tally.malformed.note(self._at + self._pos, "bytes between events")
        self._pos = stray.end()
        return None

    def _lose(self) -> SalvagedEvents | None:
        """Give up what is at the position, and go to where the next event or the end of the array certainly is."""
        end = self._next_whole() or (self._array_end() if self._last else None)
        if end is None and not self._last:
            return self._found()
        if end is None:
            return self._lose_all()
        self._lose_upto(end)
        return None

    def _lose_all(self) -> SalvagedEvents:
        self._lose_upto(len(self._buffer))
        return self._found(cut=self._last)

    def _lose_upto(self, end: int) -> None:
        events = len(_PHASE.findall(self._buffer, self._pos, end))
        if events:
            self.tally.lost.note(self._at + self._pos, count=events)
        self.tally.malformed.note(self._at + self._pos, "damaged beyond repair")
        self._pos = end

    def _next_whole(self) -> int | None:
        """Return where the next event begins that decodes and has all that an event has (objects in arguments have not)."""
        for opening in _OPENING.finditer(self._buffer, self._pos + 1):
            begin, window = opening.end(), opening.end() + _CUT_BYTES
            tried = window
            for closing in itertools.islice(_CLOSING.finditer(self._buffer, begin, window), 3):
                tried = closing.start()
                try:
                    event = self._decoder.one(self._buffer[begin : tried + 1])
                except REFUSED:
                    continue
                if _is_whole(event):
                    return begin
            self._searched += min(tried, len(self._buffer)) - begin
            if self._searched > _SEARCH_BYTES:
                break
        return None

    def _array_end(self) -> int | None:
        """Return where the array ends, if what follows there is the rest of a valid trace."""
        for end in itertools.islice(_END_OF_ARRAY.finditer(self._buffer, self._pos), _END_TRIES):
            rest = self._buffer[end.end() + 1 :].strip()
            try:
                if rest:
                    msgspec.json.decode(b"{" + rest.removeprefix(b","), type=Empty)
            except REFUSED:
                continue
            return end.end()
        return None

    def _event(self) -> SalvagedEvents | None:
        """Take the event at the position, repaired if need be, or count it as lost; or say that the buffer ends within it."""
        likely = None
        for tries, closing in enumerate(_CLOSING.finditer(self._buffer, self._pos)):
            if tries < _TRIES and self._take(closing.start() + 1):
                return None
            likely = likely or (closing.start() + 1 if closing[1] is not None else None)
            if likely and tries >= _TRIES:
                self._searched += closing.start() - self._pos
                break
        else:
            self._searched += len(self._buffer) - self._pos
            if not self._last:
                return self._found()
            if self._take(len(self._buffer.rstrip())):
                return None
        if likely is not None and self._mend(likely):
            return None
        end = self._natural_end()
        if end == _CUT or (end is None and likely is None):
            return self._found(cut=self._last)
        return None if end is not None and (self._take(end) or self._mend(end)) else self._lose()

    def _natural_end(self) -> int | None:
        """Return where the event at the position ends by its own brackets, whatever follows it.

        _CUT where the buffer ends first; None where the event is damaged, or too long to look at again.
        """
        text = self._buffer[self._pos : self._pos + _CUT_BYTES].decode("utf-8", "surrogateescape")
        repairer = Repairer(text)
        try:
            repairer.value()
        except Incomplete:
            return _CUT if len(self._buffer) - self._pos <= _CUT_BYTES else None
        except Unrepairable:
            return None
        return self._pos + len(text[: repairer.at].encode("utf-8", "surrogateescape"))

    def _take(self, end: int) -> bool:
        try:
            self._events.append(self._decoder.one(self._buffer[self._pos : end]))
        except REFUSED:
            return False
        self._pos = end
        return True

    def _mend(self, end: int) -> bool:
        raw = self._buffer[self._pos : end]
        text = raw.decode("utf-8", "surrogateescape")
        repairer = Repairer(text)
        try:
            if len(raw) > _MENDABLE_BYTES:
                raise Unrepairable("too long")
            repaired = repairer.value()
            if text[repairer.at :].strip():
                raise Unrepairable("more than one value")
            event = self._decoder.one(repaired.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode())
        except (Unrepairable, *REFUSED):
            return False
        if repairer.repaired and not _is_whole(event):
            return False
        self._events.append(event)
        self._note(repairer, text, self._pos)
        self._pos = end
        return True

    def _note(self, repairer: Repairer, text: str, start: int) -> None:
        for kind, count in repairer.repaired.items():
            first = len(text[: repairer.first].encode("utf-8", "surrogateescape"))
            self.tally.malformed.note(self._at + start + first, kind, count)


def _is_whole(event: Event) -> bool:
    """Return whether a repaired event still has what every event has; if not, repairing has merged or torn it."""
    return event.ph is not None and event.name is not None and event.ts is not None and (event.ph != "X" or event.dur is not None)
