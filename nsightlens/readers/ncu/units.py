"""Unit cell -> ncu's base unit and the power of ten that scales a printed value into it."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

# Power of ten to ns; ncu spelled them out until about 2023.
_TIMES = {
    "ns": 0, "nsecond": 0, "us": 3, "usecond": 3, "µs": 3, "ms": 6, "msecond": 6, "s": 9, "second": 9,
}
_PREFIXES = {"K": 3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
BINARY = 1000
"""An exponent from here on stands for a power of two: 1020 is 2 to 20."""
_BINARY = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_WORDS = frozenset(re.findall(r"\w+", """
    byte bit cycle inst instruction sector tag request wavefront warp block thread register cluster grid SM TPC GPC
    pass sample group flop op ops packet transaction query event access hit miss conflict bank barrier slot lane
    link port device node launch texel quad primitive access count way partition workload branch branches
"""))


class Unit(NamedTuple):
    """Base unit, the power of ten to it (see BINARY), and whether the unit is known (else the value stays as printed)."""

    base: str
    exponent: int
    known: bool = True

    @property
    def is_count(self) -> bool:
        """Return whether values as printed are whole: numbers of something, or ns."""
        return self.known and self.exponent == 0 and (self.base == "ns" or self.base in _WORDS)


@cache
def base_unit(unit: str) -> Unit:
    """Return what ncu's unit cell means; decimal prefixes (1 Kbyte is 1000 byte), rates per second, times in ns."""
    unit = unit.strip()
    if unit in ("", "%"):
        return Unit(unit, 0)
    if unit in _TIMES:
        return Unit("ns", _TIMES[unit])
    if unit.lower().endswith("hz"):
        prefix = unit[:-2].upper()
        if prefix == "" or prefix in _PREFIXES:
            return Unit("hz", _PREFIXES.get(prefix, 0))
    above, slash, below = unit.partition("/")
    numerator = _counted(above)
    if numerator is None:
        return Unit(unit, 0, known=False)
    if not slash:
        return numerator
    return _rate(numerator, below) or Unit(unit, 0, known=False)


def _rate(numerator: Unit, below: str) -> Unit | None:
    if numerator.exponent >= BINARY and below not in ("s", "second"):
        return None
    if below in _TIMES:
        exponent = numerator.exponent + 9 - _TIMES[below]
        return Unit("hz" if numerator.base == "cycle" else f"{numerator.base}/s", exponent)
    denominator = _counted(below)
    if denominator is None:
        return None
    return Unit(f"{numerator.base}/{denominator.base}", numerator.exponent - denominator.exponent)


def _counted(word: str) -> Unit | None:
    if word in _WORDS or word == "%":
        return Unit(word, 0)
    if word in _TIMES:
        return Unit("ns", _TIMES[word])
    if word in _BINARY:
        return Unit("byte", BINARY + _BINARY[word])
    if word[:1] in _PREFIXES and word[1:] in _WORDS:
        return Unit(word[1:], _PREFIXES[word[0]])
    return None
