"""Figures of views as texts in units that people read: '131.4 ms', '6.174 GiB', '12.5 %', ranks '0, 2-5'."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

MISSING = "–"
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_YEARS = 10**17  # ns: three years
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def duration(ns: float | None) -> str:
    """Return a time with four digits and its unit: '131.4 ms'."""
    return MISSING if ns is None else " ".join(figure_and_unit(ns))


def figure_and_unit(ns: float) -> tuple[str, str]:
    """Return a time with four digits, and its unit: ('131.4', 'ms')."""
    factor, unit = next((pair for pair in _TIMES if abs(ns) >= pair[0] * 0.99995), _TIMES[-1])
    return _digits(ns / factor) if factor > 1 else f"{ns:.4g}", unit


def size(count: float | None) -> str:
    """Return an amount of bytes with three digits or more and its unit: '6.174 GiB'."""
    if count is None:
        return MISSING
    factor, unit = next((pair for pair in _SIZES if abs(count) >= pair[0]), _SIZES[-1])
    return f"{_digits(count / factor)} {unit}" if factor > 1 else f"{count:.0f} B"


def thread_name(number: int) -> str:
    """Return a thread as debuggers call it: 'thread 2590095'; the low half of a handle, if below 0, as 'thread 0xfb62e640'."""
    return f"thread {number if number >= 0 else hex(number % 2**(32 if number >= -2**31 else 64))}"


def rate(per_second: float | None, unit: str) -> str:
    """Return a rate with four digits and its unit, a thousand being 1,000: '24.36 GB/s'."""
    if per_second is None:
        return MISSING
    factor, prefix = next((pair for pair in _PREFIXES if abs(per_second) >= pair[0] * 0.99995), (1.0, ""))
    digits = _digits(per_second / factor) if factor > 1 else f"{per_second:.4g}"
    return f"{digits} {prefix}{unit}/s"


def moment(epoch_ns: int) -> str:
    """Return a point in time, ns since the epoch, to the ms: '2024-02-02 05:02:02.838 UTC'."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ns // 10**6)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC"


def is_date(ns: object) -> bool:
    """Return whether a point in time is one since the epoch: none that is relative to a capture is years long."""
    return isinstance(ns, int) and _YEARS <= ns < 2**63


def share(pct: float | None) -> str:
    """Return a percentage to one decimal."""
    return MISSING if pct is None else f"{pct:.1f} %"


def number(count: int | None) -> str:
    """Return a count with its thousands apart."""
    return MISSING if count is None else f"{count:,}"


def counted(count: int, what: str) -> str:
    """Return a count and what is counted: '1 step', '2,160 kernels', '2 processes'."""
    return f"{count:,} {what if count == 1 else _plural(what)}"


def counted_both(one: int, other: int, what: str) -> str:
    """Return the counts of two sides: '3 and 1 recordings', '1 step each'."""
    return f"1 {what} each" if one == other == 1 else f"{one:,} and {other:,} {_plural(what)}"


def _plural(what: str) -> str:
    return f"{what}es" if what.endswith("s") else f"{what[:-1]}ies" if what.endswith("ly") else f"{what}s"


def spans(values: Iterable[str], most: int = 8) -> str:
    """Return numbers as people write them: '0', '0-7', '0, 2-5'."""
    found: list[list[int]] = []
    for value in sorted({int(value) for value in values}):
        if found and value == found[-1][1] + 1:
            found[-1][1] = value
        else:
            found.append([value, value])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in found]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "") or MISSING


def _digits(value: float) -> str:
    places = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{places}f}"
