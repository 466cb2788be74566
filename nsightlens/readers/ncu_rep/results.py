"""The bytes of one result -> a launch: its name, its configuration, its counters, and what ncu's rules say of it."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from nsightlens.readers.ncu.nvtx import DEFAULT_DOMAIN
from nsightlens.readers.ncu_rep.wire import BYTES, EIGHT_BYTES, FOUR_BYTES, VARINT, DamagedError, Message, fields, text_of

_DOUBLE = 0x19
"""Key of a value's double (field 3, eight bytes): by far the most values are one."""
_INSTANCES = 0x1A
_LINK = re.compile(r"@(\w+):([^:@]*):([^@]*)@")
_TYPES = {0: "INF", 1: "INF", 2: "WRN", 3: "ERR", 4: "OPT"}
_SPEEDUPS = {1: "local", 2: "global"}

Axes = tuple[int, int, int]


@dataclass(slots=True)
class Result:
    """One launch. `numbers` and `texts`: metric values by the number of the metric's name; `absent` counts metrics without one.

    rules: section, rule, type, message, kind and percentage of the speed-up, as texts.
    """

    thread: int | None = None
    mangled: str = ""
    function: str = ""
    demangled: str = ""
    grid: Axes | None = None
    block: Axes | None = None
    context: int | None = None
    stream: int | None = None
    nvtx: str | None = None
    ids: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    absent: int = 0
    instances: int = 0
    sections: list[str] = field(default_factory=list)
    rules: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the demangled name, which functions of C do not have: then the symbol is the name."""
        return self.demangled or self.mangled or self.function


def result(data: bytes) -> Result:
    """Return what a result says. Raises DamagedError where it is none."""
    found = Result()
    state: list[tuple[int, int]] = []
    for number, wire, value, end in fields(data, 0, len(data)):
        if number == 13 and wire == BYTES:
            _metric(data, value, end, found)
        elif number == 17 and wire == BYTES:
            found.sections.append(_section_title(data, value, end))
        elif number == 19 and wire == BYTES:
            found.rules += _rules(Message(data, value, end))
        elif number == 21 and wire == BYTES:
            state.append((value, end))
        elif number in _TEXTS and wire == BYTES:
            setattr(found, _TEXTS[number], text_of(data, value, end))
        elif number in _AXES and wire == BYTES:
            setattr(found, _AXES[number], _axes(Message(data, value, end)))
        elif number in _WHOLE and wire == VARINT:
            setattr(found, _WHOLE[number], value)
    if not found.name:
        raise DamagedError("a result without a name")
    for place in state:
        found.nvtx = _nvtx(Message(data, *place), found.thread)
    return found


_TEXTS = {5: "mangled", 6: "function", 7: "demangled"}
_AXES = {10: "grid", 11: "block"}
_WHOLE = {1: "thread", 22: "context", 23: "stream"}


def _axes(message: Message) -> Axes:
    return message.whole(1) or 0, message.whole(2) or 0, message.whole(3) or 0


def _metric(data: bytes, start: int, stop: int, found: Result) -> None:
    """Take a metric's value; its instances, which follow it, are passed over."""
    name, value = -1, None
    for number, wire, begin, end in fields(data, start, stop):
        if number == 1 and wire == VARINT:
            name = begin
        elif number == 2 and wire == BYTES:
            value = _value(data, begin, end)
            if name >= 0:
                found.instances += end < stop and data[end] == _INSTANCES
                break
    if name < 0:
        raise DamagedError("a metric without a name")
    if value is None or value == "":
        found.absent += 1
    elif isinstance(value, str):
        found.texts.setdefault(name, value)
    else:
        found.ids.append(name)
        found.values.append(value)


def _value(data: bytes, start: int, stop: int) -> float | str | None:
    """Return a metric value; None where the message is empty. Integers beyond 2^53, which are addresses, are rounded."""
    if stop - start == 9 and data[start] == _DOUBLE:
        return float(struct.unpack_from("<d", data, start + 1)[0])
    value: float | str | None = None
    for number, wire, begin, end in fields(data, start, stop):
        if number == 1 and wire == BYTES:
            value = text_of(data, begin, end)
        elif number == 2 and wire == FOUR_BYTES:
            value = float(struct.unpack_from("<f", data, begin)[0])
        elif number == 3 and wire == EIGHT_BYTES:
            value = float(struct.unpack_from("<d", data, begin)[0])
        elif number in (4, 5) and wire == VARINT:
            value = float(begin)
    return value


def _section_title(data: bytes, start: int, stop: int) -> str:
    """Return the title of a section, as the details page heads it, else its identifier; its charts and tables are passed over."""
    identifier = ""
    for number, wire, begin, end in fields(data, start, stop):
        if number == 1 and wire == BYTES:
            identifier = text_of(data, begin, end)
        elif number == 2 and wire == BYTES:
            return text_of(data, begin, end)
    return identifier


def _rules(rule: Message) -> list[tuple[str, ...]]:
    """Return the messages of a rule, each with the speed-up that stands with it."""
    found: list[tuple[str, ...]] = []
    for body in rule.messages(3):
        for item in body.messages(1):
            speedup = _speedup(item)
            found += [(rule.text(4), rule.text(1), _TYPES.get(message.whole(2) or 0, "INF"), _plain(message.text(1)), *speedup)
                      for message in item.messages(1)]
    return found


def _speedup(item: Message) -> tuple[str, str]:
    for speedup in item.messages(10):
        percent = speedup.double(2)
        return _SPEEDUPS.get(speedup.whole(1) or 0, ""), "" if percent is None else repr(percent)
    return "", ""


def _plain(message: str) -> str:
    """Return a message as ncu prints it: links to sections become their titles, links to pages are followed by the address."""
    return _LINK.sub(lambda link: f"{link[2]} ({link[3]})" if link[1] == "url" else link[3], message).strip()


def _nvtx(state: Message, thread: int | None) -> str | None:
    """Return the ranges that were open around the launch in the form of the CSV pages; None where there is none.

    They are those of the launching thread, or of the only one that has any.
    """
    domains = {domain.whole(1): domain.text(2) for domain in state.messages(1)}
    open_ranges: dict[int | None, str] = {}
    for one in state.messages(2):
        cells = [_cell(domains.get(of.whole(1)) or DEFAULT_DOMAIN, range_.text(1))
                 for of in one.messages(2) for range_ in of.messages(3)]
        if cells:
            open_ranges[one.whole(1)] = f"{one.whole(1) or 0}  {'  '.join(cells)}"
    if thread not in open_ranges and len(open_ranges) == 1:
        return next(iter(open_ranges.values()))
    return open_ranges.get(thread)


def _cell(domain: str, name: str) -> str:
    """Return one range; its colour and payload are not taken, and signs that would end a field become others."""
    domain = domain.replace(":", " ").replace('"', "'")
    return f'"{domain}:{name.replace(chr(34), chr(39))}:none:none:none:none:none:none"'
