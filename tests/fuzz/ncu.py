"""Mutated CSV pages of ncu: every launch and every number of it against Python's own csv and Decimal."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from nsightlens.readers import ncu
from tests.fuzz.mutation import Dice, Edit
from tests.readers.ncu_text import DURATION, SOL, details, ids, metrics, raw

NAME, SUFFIX = "ncu", ".csv"
_NUMBER = re.compile(r"-?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")
_COMMA = re.compile(r"-?(0,\d+|[\d.,]*,(?!\d{3}(?!\d))[\d.,]*)")
_EXPONENT = {"ns": 0, "nsecond": 0, "us": 3, "usecond": 3, "ms": 6, "msecond": 6, "s": 9, "second": 9, "": 0, "byte": 0,
             "Kbyte": 3, "Mbyte": 6, "Gbyte": 9, "cycle": 0, "inst": 0, "%": 0}
_CELLS = (b"n/a", b"", b"nan", b"inf", b"1e3", b"-1", b"0", b"1,234", b"1.234", b"1,5", b"1,234,567.25",
          b"1" + b"0" * 19, b"9" * 400, b"0x10", b"(!) 5", b"us", b"Gbyte", b"%", b"furlong", b'"', b"'", b",", b"\n", b"\0",
          b"\xff", b"\xef\xbb\xbf")
_BEYOND_DOUBLES = Decimal("1e308")
_EXPLAINED = {"metric_conflict", "rows_lost", "truncated", "no_units", "number_locale_guessed", "number_locale_conflict",
              "text_replaced", "nul_bytes", "repeated_header", "over_budget"}

Launches = set[tuple[str, str | None]]
Numbers = set[tuple[str, str, Decimal]]


@cache
def bases() -> dict[str, bytes]:
    """Return a page of each shape, raw with numbers in points and in thousands."""
    columns = [("gpu__time_duration.sum", "us"), ("dram__bytes.sum", "Kbyte"), ("sm__inst_executed.sum", "inst"),
               ("launch__registers_per_thread", ""), ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%")]
    rows = [(f"{at * 1.25:.2f}", f"{at * 1024.5:,.1f}", f"{at * 123457:,}", "32", f"{at % 100}.25") for at in range(1, 25)]
    long = [line for at in range(6) for line in metrics(DURATION, ("dram__bytes.sum", "byte", f"{at * 1000:,}"), of=ids(at))]
    kept = [line for at, line in enumerate(long) if not at or not line.startswith('"ID"')]
    return {
        "raw": "\n".join([*raw(columns, *rows), ""]).encode(),
        "metrics": "\n".join([*kept, ""]).encode(),
        "details": "\n".join([*details((SOL, "Duration", "us", "6.75"), (SOL, "Elapsed Cycles", "cycle", "13,4")), ""]).encode(),
        "logged": "\n".join(["==PROF== Connected to process 1", *raw(columns, *rows[:5]), "==PROF== End", ""]).encode(),
    }


def edits(data: bytes, dice: Dice) -> list[Edit]:
    """Return an edit of a cell or of a line: replaced, doubled, dropped, moved, torn, glued to the next."""
    lines = [(found.start(), found.end()) for found in re.finditer(rb"[^\n]*\n", data)]
    start, end = dice.choice(lines)
    kind = dice.choice(("cell", "cell", "cell", "digit", "digit", "drop", "double", "swap", "tear", "glue", "quote"))
    if kind in ("cell", "digit"):
        found = [each.span(1) for each in re.finditer(rb'"([^"\n]*)"', data[start:end])]
        if not found:
            return [Edit(start, 0, b'"')]
        begin, stop = dice.choice(found)
        if kind == "cell" or begin == stop:
            return [Edit(start + begin, stop - begin, dice.choice(_CELLS))]
        return [Edit(start + dice.randrange(begin, stop), 1, dice.choice((b"9", b"0", b".", b",", b"-", b" ", b"e")))]
    if kind == "drop":
        return [Edit(start, end - start, b"")]
    if kind in ("double", "swap"):
        other = dice.choice(lines)
        moved = [Edit(other[0], other[1] - other[0], data[start:end])] if kind == "swap" else []
        return [Edit(end, 0, data[slice(*other)]), *moved]
    if kind == "glue":
        return [Edit(end - 1, 1, b"")]
    at = dice.randrange(start, end)
    return [Edit(at, 1 if kind == "tear" else 0, b"\n" if kind == "tear" else b'"')]


def differences(path: Path) -> list[str]:
    """Return launches and values that csv finds and the reader neither has nor accounts for, and the reverse. Raises
    ReadError."""
    launches, numbers = _expected(path.read_bytes())
    ncu.probe(path)
    rows: list[dict[str, Any]] = []
    told: set[str] = set()
    for table, batch in ncu.read([path]):
        if table == "kernels":
            rows += batch.to_pylist()
        elif table == "diagnostics":
            told.update(row["code"] for row in batch.to_pylist())
    if _EXPLAINED & told:
        return []
    ours = {(str(row["ncu_id"]), row["name"]) for row in rows}
    values = {(str(row["ncu_id"]), name, _round(Decimal(repr(value)))) for row in rows for name, value in row["metrics"] or ()}
    found = [f"launches: {len(ours)} for {len(launches)}"] if launches and ours != launches else []
    missing = sorted(one for one in numbers - values if not _is_accounted_for(one, told))
    return found + [f"values: {len(missing)} are missing or others, such as {one}" for one in missing[:1]]


def _is_accounted_for(one: tuple[str, str, Decimal], told: set[str]) -> bool:
    """Return whether a diagnostic speaks of a missing value: one too large for a double, or of what is no metric's name."""
    _, name, value = one
    return (value >= _BEYOND_DOUBLES and "metric_not_finite" in told) or (" " in name and "label_unmapped" in told)


def _expected(data: bytes) -> tuple[Launches, Numbers]:
    """Return launches and their numbers in base units, where csv finds one plain table; else nothing."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = text.split("\n")
    if any(line.startswith(",") for line in lines):  # the rest of a row that was torn: csv would lose the row behind it
        return set(), set()
    rows = list(csv.reader(io.StringIO("\n".join(line for line in lines if line.startswith('"')))))
    header, body = (rows or [[]])[0], rows[1:]
    plain = len(set(header)) == len(header) and {"ID", "Kernel Name"} <= set(header)
    if not plain or any(len(row) != len(header) for row in body):
        return set(), set()
    long = {"Metric Name", "Metric Unit", "Metric Value"} <= set(header)
    units = {} if long else dict(zip(header, body[0] if body else (), strict=False))
    launches: Launches = set()
    numbers: Numbers = set()
    for row in body if long else body[1:]:
        cells = dict(zip(header, row, strict=True))
        if not re.fullmatch(r"\d{1,18}", cells["ID"]):
            return set(), set()
        launches.add((str(int(cells["ID"])), cells["Kernel Name"].strip() or None))
        if any(_COMMA.fullmatch(cell) for cell in row):  # then commas may be decimal ones in all cells
            return set(), set()
        told = ([(cells["Metric Name"], cells["Metric Unit"], cells["Metric Value"])] if long
                else [(name, units[name], value) for name, value in cells.items()])
        numbers |= {(str(int(cells["ID"])), name, _round(Decimal(value.replace(",", "")).scaleb(_EXPONENT[unit])))
                    for name, unit, value in told if "__" in name and unit in _EXPONENT and _NUMBER.fullmatch(value)}
    return launches, numbers


def _round(value: Decimal) -> Decimal:
    """Return a value to 15 digits: as far as a double holds any."""
    return Decimal(f"{value:.14e}").normalize()
