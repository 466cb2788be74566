"""The cells of a table that `nsys stats` printed: units in its header, numbers in any locale -> integers, as exact as printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WITH_UNIT = re.compile(r"(.+?)\s*\(([^()]+)\)")
_TIMES = {
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), 1), **dict.fromkeys(("us", "usec", "μs", "µs", "microseconds"), 10**3),
    **dict.fromkeys(("ms", "msec", "milliseconds"), 10**6), **dict.fromkeys(("s", "sec", "seconds"), 10**9),
}
_SIZES = {"b": 1, "bytes": 1, "kb": 10**3, "kib": 1 << 10, "mb": 10**6, "mib": 1 << 20, "gb": 10**9, "gib": 1 << 30}
_DELIMITERS = ",;\t"
_PLAIN = re.compile(r"-?\d+")
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*")
_SPACES = str.maketrans("", "", " \u00a0\u202f'’")
_MOST_DIGITS = 40


class StatsReport(NamedTuple):
    """A report of nsys stats: its name, its columns of times, sizes and other numbers, and others that its header has."""

    name: str
    times: tuple[str, ...]
    sizes: tuple[str, ...]
    numbers: tuple[str, ...]
    others: tuple[str, ...]


LAUNCHES = StatsReport(
    "cuda_gpu_trace", ("Start", "Duration"), ("StcSMem", "DymSMem", "Bytes"),
    ("CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "Ctx", "Strm"), ("CorrId", "GrdX", "Name"))
PROJECTIONS = StatsReport(
    "nvtx_gpu_proj_trace", ("Projected Start", "Projected Duration", "Orig Start", "Orig Duration"), (),
    ("PID", "TID", "NumGPUOps"), ("Name", "Style", "TID"))
REPORTS = (LAUNCHES, PROJECTIONS)


class StatsHeader(NamedTuple):
    """A header: its report, the sign between its cells, the place of each column, and what its unit is (ns, bytes)."""

    report: StatsReport
    delimiter: str
    place: dict[str, int]
    factor: dict[str, int]
    width: int


def header(line: str) -> StatsHeader | None:
    """Return the header that a line is; None for any other line."""
    for delimiter in _DELIMITERS:
        cells = [cell.strip().strip('"').strip() for cell in line.strip().split(delimiter)]
        for report in REPORTS:
            place, factor = _columns(cells, report)
            if set(report.others) <= place.keys() and factor.keys() >= set(report.times):
                return StatsHeader(report, delimiter, place, factor, len(cells))
    return None


def _columns(cells: Sequence[str], report: StatsReport) -> tuple[dict[str, int], dict[str, int]]:
    """Return the place of each column, and the factor of each that has a known unit of time or size."""
    place: dict[str, int] = {}
    factor: dict[str, int] = {}
    for at, cell in enumerate(cells):
        found = _WITH_UNIT.fullmatch(cell)
        name, unit = (found[1], found[2].strip().lower()) if found else (cell, "")
        place.setdefault(name, at)
        counted = (_TIMES if name in report.times else _SIZES if name in report.sizes else {}).get(unit)
        if counted:
            factor[name] = counted
    return place, factor


class Number(NamedTuple):
    """A value as an integer, and the unit of its last digit: 0 or 1 where the value is exact."""

    value: int
    step: float


@dataclass(frozen=True, slots=True)
class Locale:
    """How numbers are printed. is_assumed: nothing in the table says which sign is the decimal one."""

    decimal: str
    is_assumed: bool = False

    def number(self, text: str, factor: int) -> Number | None:
        """Return text times factor, rounded to an integer; None for what is no number."""
        if _PLAIN.fullmatch(text) and len(text) <= _MOST_DIGITS:
            return Number(int(text) * factor, factor if factor > 1 else 0)
        thousands = "," if self.decimal == "." else "."
        whole, sign, part = text.translate(_SPACES).partition(self.decimal)
        grouped = _GROUPED.fullmatch(whole)
        if grouped and grouped[1] == thousands:
            whole = whole.replace(thousands, "")
        if not _PLAIN.fullmatch(whole) or (sign and not part.isdecimal()) or len(whole) + len(part) > _MOST_DIGITS:
            return None
        scale = 10 ** len(part)
        return Number((2 * int(whole + part) * factor + scale) // (2 * scale), factor / scale)


def locale_of(rows: Iterable[Sequence[str]], head: StatsHeader) -> Locale:
    """Return how the numbers in rows of a table are printed."""
    decimals: set[str] = set()
    thousands: set[str] = set()
    unclear: set[str] = set()
    columns = [name for name in (*head.report.times, *head.report.sizes, *head.report.numbers) if name in head.place]
    for row in rows:
        for name in columns:
            text = row[head.place[name]]
            signs = [sign for sign in text if sign in ".,"]
            if len(set(signs)) == 2:
                decimals.add(signs[-1])
            elif len(signs) > 1:
                thousands.add(signs[0])
            elif signs and not _GROUPED.fullmatch(text.strip()):
                decimals.add(signs[0])
            elif signs:  # one sign before three digits: in what is counted, it parts thousands
                (unclear if head.factor.get(name, 1) > 1 else thousands).add(signs[0])
    if len(decimals) == 1:
        return Locale(next(iter(decimals)))
    if len(thousands) == 1 and not decimals:
        return Locale("," if thousands == {"."} else ".")
    usual = "," if head.delimiter == ";" and "." not in unclear else "."
    return Locale(usual, is_assumed=bool(unclear or decimals or thousands))
