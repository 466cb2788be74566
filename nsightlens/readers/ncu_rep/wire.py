"""Bytes -> fields of messages in the wire format of protocol buffers, without a schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
_MOST_BITS = 63
_UINT64 = (1 << 64) - 1
_INT64 = (1 << 63) - 1

Field = tuple[int, int, int, int]


class DamagedError(ValueError):
    """Bytes that are no message."""


def fields(data: bytes, start: int, stop: int) -> Iterator[Field]:
    """Yield the fields of the message in data[start:stop]: number, wire type, value, end.

    The value of a varint is its number; of other fields it is the offset of their first byte, and `end` that behind their last.
    Raises DamagedError.
    """
    while start < stop:
        key = data[start]
        start += 1
        if key > 127:
            key, start = _varint(data, start - 1, stop)
        wire = key & 7
        if wire == VARINT:
            value, start = _varint(data, start, stop)
            yield key >> 3, wire, value, start
            continue
        if wire == BYTES:
            size, start = _varint(data, start, stop)
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if wire == EIGHT_BYTES else 4
        else:
            raise DamagedError(f"wire type {wire}")
        end = start + size
        if end > stop:
            raise DamagedError("a field ends behind its message")
        yield key >> 3, wire, start, end
        start = end


def _varint(data: bytes, start: int, stop: int) -> tuple[int, int]:
    value = bits = 0
    while start < stop and bits <= _MOST_BITS:
        byte = data[start]
        start += 1
        value |= (byte & 127) << bits
        if byte < 128:
            return value & _UINT64, start
        bits += 7
    raise DamagedError("a number does not end")


class Message:
    """A message with few fields: all values of each, by number."""

    def __init__(self, data: bytes, start: int = 0, stop: int | None = None) -> None:
        """Take the fields of data[start:stop]. Raises DamagedError."""
        self._data = data
        self._found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for number, wire, value, end in fields(data, start, len(data) if stop is None else stop):
            self._found.setdefault((number, wire), []).append((value, end))

    def whole(self, number: int) -> int | None:
        """Return the last integer of a field; None where there is none below 2^63."""
        value = self._found.get((number, VARINT), [(-1, 0)])[-1][0]
        return value if 0 <= value <= _INT64 else None

    def texts(self, number: int) -> list[str]:
        """Return all texts of a field; what is no UTF-8 is replaced."""
        return [text_of(self._data, *place) for place in self._found.get((number, BYTES), ())]

    def text(self, number: int) -> str:
        """Return the last text of a field, or an empty one."""
        return next(iter(self.texts(number)[-1:]), "")

    def messages(self, number: int) -> list[Message]:
        """Return all messages of a field. Raises DamagedError."""
        return [Message(self._data, *place) for place in self._found.get((number, BYTES), ())]

    def double(self, number: int) -> float | None:
        """Return the last double of a field; None where there is none."""
        places = self._found.get((number, EIGHT_BYTES))
        return float(struct.unpack_from("<d", self._data, places[-1][0])[0]) if places else None


def text_of(data: bytes, start: int, stop: int) -> str:
    """Return data[start:stop] as text without NUL; what is no UTF-8 is replaced."""
    return data[start:stop].decode("utf-8", errors="replace").replace("\0", "")
