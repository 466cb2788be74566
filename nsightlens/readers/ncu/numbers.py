"""Printed numbers -> exact doubles: the number format of a file, what a cell means, and its printed precision.

ncu prints with the locale of its process: `1,234.56` (en_US), `1234.56` (C) or `1.234,56` (de, it, ...). The first two are
one format for us, `decimal="."`; the third is `decimal=","`. A single `1,234` or `1.234` fits both, so the whole file decides.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.units import BINARY, Unit

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

_SPACES = "\u00a0\u202f'\u2019 "  # thousands of fr, pl, de_CH, ...
# What only `decimal` can be: its own sign with other than three digits after it or with grouping before it, or the
# other sign twice. `{d}` is the decimal sign, `{g}` the grouping sign, both escaped.
_ONLY = (
    r"^-?(?:\d+{d}(?:\d{{1,2}}|\d{{4,}})|(?:0|\d{{4,}}){d}\d{{3}}|\d{{1,3}}(?:{g}\d{{3}})+{d}\d+|\d{{1,3}}(?:{g}\d{{2,3}}){{2,}})$"
)
_EITHER = r"^-?[1-9]\d{0,2}[.,]\d{3}$"
_NUMBER = r"^-?(?:\d+|\d{{1,3}}(?:{g}\d{{2,3}})*{g}\d{{3}})(?:{d}\d+)?$"
_INSTANCES = re.compile(r"^(\S+) \((.*)\)$", re.DOTALL)
_ABSENT = frozenset(("", "n/a", "N/A", "<no metrics to collect>"))
_TOO_LONG = 300
"""Digits of a number that no double may hold."""
_NOT_FINITE = re.compile(r"^[-+]?(?:nan|inf|infinity|-nan\(ind\)|nan\(ind\))$", re.IGNORECASE)


def _patterns(decimal: str) -> dict[str, str]:
    return {"d": re.escape(decimal), "g": rf"[{re.escape(',' if decimal == '.' else '.')}{_SPACES}]"}


@dataclass(slots=True)
class FormatEvidence:
    """Counts of printed numbers that fit only a decimal point, only a decimal comma, or both; and of these, where nothing
    else decides, what their units make likely."""

    point: int = 0
    comma: int = 0
    either: int = 0
    example: str = ""
    likely_point: int = 0
    likely_comma: int = 0

    def see(self, texts: pa.Array) -> None:
        """Count the texts (strings without duplicates) in."""
        signed = texts.filter(pc.match_substring_regex(texts, "[.,]"))
        if not len(signed):
            return
        self.point += _count(signed, _ONLY.format(**_patterns(".")))
        self.comma += _count(signed, _ONLY.format(**_patterns(",")))
        either = signed.filter(pc.match_substring_regex(signed, _EITHER))
        self.either += len(either)
        if len(either) and not self.example:
            self.example = either[0].as_py()

    @property
    def is_open(self) -> bool:
        """Return whether there are numbers with a sign, and all of them fit both."""
        return self.point == 0 and self.comma == 0 and self.either > 0

    def weigh(self, texts: pa.Array, unit: Unit) -> None:
        """Count the texts printed in a unit in: a count has no decimals, and ncu scales a value until it is below 1000."""
        either = texts.filter(pc.match_substring_regex(texts, _EITHER))
        points = _count(either, r"\.") if len(either) else 0
        commas = len(either) - points
        if unit.is_count:
            points, commas = commas, points
        if unit.is_count or unit.exponent:
            self.likely_point += points
            self.likely_comma += commas

    def decimal(self, notes: Notes) -> str:
        """Return the decimal sign of the file, "." or ","; a guess or a contradiction becomes a note."""
        if self.is_open:
            notes.add("number_locale_guessed", repr(self.example), self.either)
            return "," if self.likely_comma > self.likely_point else "."
        return "," if self.comma > self.point else "."


def _count(texts: pa.Array, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0)


@dataclass(frozen=True, slots=True)
class ParsedNumbers:
    """Distinct printed values: `digits` in C format (NULL where not a number) and `texts`, the strings among them."""

    digits: pa.Array
    is_text: np.ndarray[Any, np.dtype[np.bool_]]

    def doubles(self, codes: Ints, exponents: Ints) -> Floats:
        """Return value `codes[i]` times ten to `exponents[i]` (see BINARY), correctly rounded; NaN where it is no number."""
        values: Floats = pc.cast(self.digits, pa.float64()).to_numpy(zero_copy_only=False)[codes]
        binary = exponents >= BINARY
        values[binary] = np.ldexp(values[binary], exponents[binary] - BINARY)
        scaled = np.flatnonzero((exponents != 0) & ~binary & ~np.isnan(values))
        if len(scaled):
            values[scaled] = shifted(self.digits.take(pa.array(codes[scaled])), exponents[scaled])
        return values

    def steps(self, codes: Ints, exponents: Ints) -> Floats:
        """Return the value of the last printed digit, in the scaled unit."""
        return step_sizes(decimals(self.digits)[codes], exponents)


def shifted(digits: pa.Array, exponents: Ints) -> Floats:
    """Return numbers (strings in C format) times powers of ten: the decimal text is shifted, so nothing is rounded twice."""
    digits = _without_exponents(digits)
    suffix = pa.array([f"e{e}" for e in range(-32, 33)]).take(pa.array(np.clip(exponents, -32, 32) + 32))
    joined = pc.binary_join_element_wise(digits, suffix, "")
    return pc.cast(joined, pa.float64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def decimals(digits: pa.Array) -> Ints:
    """Return how many digits stand after the point of each number (strings in C format, NULL counts 0)."""
    digits = _without_exponents(digits)
    point = pc.find_substring(digits, ".")
    length = pc.binary_length(digits)
    after = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1))
    return pc.fill_null(after, 0).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _without_exponents(digits: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(digits, "[eE]")).as_py():
        return digits
    return pa.array([None if text is None else format(Decimal(text), "f") for text in digits.to_pylist()], pa.string())


def step_sizes(places: Ints, exponents: Ints) -> Floats:
    """Return ten to (exponent - decimals). A number without decimals is exact to two: ncu drops only `.00`."""
    places = np.where(places == 0, 2, places)
    binary = exponents >= BINARY
    steps = np.power(10.0, (np.where(binary, 0, exponents) - places).astype(np.float64))
    return np.ldexp(steps, np.where(binary, exponents - BINARY, 0))


def parse(texts: pa.Array, decimal: str, notes: Notes, counts: Ints) -> ParsedNumbers:
    """Return what the distinct `texts` mean under the file's decimal sign; `counts` says how often each occurs."""
    signs = _patterns(decimal)
    clean = pc.and_(pc.match_substring_regex(texts, _NUMBER.format(**signs)), pc.less(pc.binary_length(texts), _TOO_LONG))
    digits = pc.replace_substring_regex(texts, signs["g"], "")
    if decimal == ",":
        digits = pc.replace_substring(digits, ",", ".")
    digits = pc.if_else(clean, digits, pa.scalar(None, pa.string()))
    is_text = np.zeros(len(texts), dtype=np.bool_)
    odd = np.flatnonzero(~clean.to_numpy(zero_copy_only=False))
    if not len(odd):
        return ParsedNumbers(digits, is_text)
    found: list[str | None] = digits.to_pylist()
    for index in odd.tolist():
        found[index], is_text[index] = _odd(texts[index].as_py() or "", signs, notes, int(counts[index]))
    return ParsedNumbers(pa.array(found, pa.string()), is_text)


def _odd(text: str, signs: dict[str, str], notes: Notes, count: int) -> tuple[str | None, bool]:
    """Return (digits or None, whether the cell is a text of its own) of a cell that is no plain number."""
    plain = text.strip()
    if plain.startswith("(!)"):
        plain = plain[3:].strip()
        notes.add("metric_flagged", text, count)
    if plain in _ABSENT:
        notes.add("metric_not_available", repr(text), count)
        return None, False
    instances = _INSTANCES.match(plain)
    head = instances[1] if instances else plain
    digits = _digits(head, signs)
    if digits is None and (_NOT_FINITE.match(head) or (len(head) >= _TOO_LONG and re.fullmatch(r"-?[\d.,]*", head, re.ASCII))):
        notes.add("metric_not_finite", text, count)
        return None, False
    if digits is not None:
        notes.add("instances_dropped", text, count if instances else 0)
        return digits, False
    if re.fullmatch(r"-?\d[\d.,]*", plain, re.ASCII):
        notes.add("number_locale_conflict", repr(text), count)
    return None, True


def _digits(text: str, signs: dict[str, str]) -> str | None:
    """Return the number in C format without exponent, or None."""
    if re.fullmatch(_NUMBER.format(**signs), text, re.ASCII):
        text = re.sub(signs["g"], "", text)
    elif not re.fullmatch(rf"-?(?:\d+{signs['d']}?\d*|{signs['d']}\d+)(?:[eE][-+]?\d{{1,3}})?", text, re.ASCII):
        return None
    number = Decimal(text.replace(",", ".") if signs["d"] == "," else text)
    return format(number, "f") if math.isfinite(float(number)) else None


def percentage(text: str | None) -> float | None:
    """Return a printed percentage; it is below 1000, so that its only sign is the decimal one in every locale."""
    try:
        value = float((text or "").strip().replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
