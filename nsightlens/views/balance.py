"""Balance checks: the parts of a breakdown sum exactly to its total, or `reconcile` says where they do not.

A breakdown states its books as text, in the header of its view (`-- @balance`) or on the command line:

    span_ns = busy_ns + idle_ns                        in every row
    step_ns = total_ns per profile_id, step            the rows of each step sum to its step_ns
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from nsightlens.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Number = int | Decimal

_FEW = 1000
"""Rows up to which each is looked at by itself: pyarrow's functions take 30 ms to import."""
_BOOKS = re.compile(r"\s*(?P<total>[\w.()%]+)\s*=\s*(?P<parts>.+?)(?:\s+per\s+(?P<per>.+))?\s*")
_PART = re.compile(r"\s*(?P<sign>[+-]?)\s*(?P<column>[\w.()%]+)\s*(?=[+-]|$)")


@dataclass(frozen=True, slots=True)
class Balance:
    """One statement of books: `total` = the signed sum of `parts`, row by row or summed per group of `per`."""

    total: str
    parts: tuple[tuple[int, str], ...]
    per: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the statement as text, in the form that `parse_balance` reads."""
        terms = "".join(f" {'-' if sign < 0 else '+'} {column}" for sign, column in self.parts).removeprefix(" + ")
        return f"{self.total} = {terms.strip()}" + (f" per {', '.join(self.per)}" if self.per else "")


def parse_balance(text: str) -> Balance:
    """Return the balance that `text` states. Raises UsageError where it states none."""
    found = _BOOKS.fullmatch(text)
    parts: list[tuple[int, str]] = []
    at = 0
    while found and at < len(found["parts"]):
        part = _PART.match(found["parts"], at)
        if part is None or (parts and not part["sign"]):
            parts = []
            break
        parts.append((-1 if part["sign"] == "-" else 1, part["column"]))
        at = part.end()
    if not found or not parts:
        raise UsageError(f"{text!r} states no balance; write it as: total = part + part - part, "
                         "or, where the parts are rows: total = part per key, key", subject="balance", value=text)
    per = tuple(column.strip() for column in (found["per"] or "").split(",") if column.strip())
    return Balance(found["total"], tuple(parts), per)


def reconcile(table: pa.Table, balance: Balance) -> pa.Table:
    """Return the books that do not balance: a row each, with the columns that name it, total, sum of parts, difference.

    Numbers are integers, decimals, or text that holds one ("418,188" too); all sums are exact. A row or group with an
    unknown (NULL) part or total cannot be checked and counts as balanced; so does no row at all. A group whose rows state
    different totals does not balance. `difference` is the sum of the parts minus the total, in the table's own unit.
    Raises UsageError for columns that the table lacks and for values that are no exact number.
    """
    import pyarrow as pa

    used = {balance.total, *(column for _, column in balance.parts)}
    lacking = sorted((used | set(balance.per)) - set(table.column_names))
    if lacking:
        raise UsageError(f"no column {', '.join(lacking)}; there are {', '.join(table.column_names)}",
                         subject="column", value=lacking[0], choices=table.column_names)
    named = list(balance.per) or [name for name in table.column_names if name not in used]
    totals = _numbers(table, balance.total)
    parts = [[None if value is None else sign * value for value in _numbers(table, column)] for sign, column in balance.parts]
    labels = list(zip(*(table[name].to_pylist() for name in named), strict=True)) if named else [()] * table.num_rows
    groups: dict[object, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(label if balance.per else row, []).append(row)
    off = [(labels[rows[0]], *found) for rows in groups.values() if (found := _difference(rows, totals, parts)) is not None]
    columns = {name: pa.array([label[place] for label, *_ in off]) for place, name in enumerate(named)}
    for place, name in enumerate((balance.total, "sum_of_parts", "difference"), start=1):
        columns[name] = pa.array([found[place] for found in off])
    return pa.table(columns)


def unbalanced(table: pa.Table, balances: Iterable[Balance]) -> list[str]:
    """Return a sentence per balance that `table` breaks: how many books, and the first of them."""
    said = []
    for balance in balances:
        if _evidently_kept(table, balance):
            continue
        off = reconcile(table, balance)
        if off.num_rows:
            first = ", ".join(f"{name} {value}" for name, value in off.slice(0, 1).to_pylist()[0].items() if value is not None)
            said.append(f"{balance}: {off.num_rows} do not balance; the first: {first}")
    return said


def _evidently_kept(table: pa.Table, balance: Balance) -> bool:
    """Return whether integers of each row balance or are unknown: of many rows seen at once, where `reconcile` looks at each."""
    if table.num_rows <= _FEW:
        return False
    import pyarrow as pa
    import pyarrow.compute as pc

    used = [balance.total, *(column for _, column in balance.parts)]
    if balance.per or not all(name in table.column_names and pa.types.is_integer(table[name].type) for name in used):
        return False
    try:
        rest = table[balance.total].cast(pa.int64())
        for sign, column in balance.parts:
            rest = (pc.subtract_checked if sign > 0 else pc.add_checked)(rest, table[column])
    except pa.ArrowInvalid:  # beyond 64 bits
        return False
    return not pc.any(pc.not_equal(rest, 0)).as_py()


def _difference(
    rows: list[int], totals: list[Number | None], parts: list[list[Number | None]],
) -> tuple[Number, Number, Number] | None:
    """Return (total, sum of parts, difference) of one group of rows where it does not balance."""
    stated = [totals[row] for row in rows]
    values = [part[row] for row in rows for part in parts]
    known, addends = [t for t in stated if t is not None], [v for v in values if v is not None]
    if len(known) < len(stated) or len(addends) < len(values):
        return None
    total, found = known[0], sum(addends)
    wrong = next((other for other in known if other != total), None)
    if wrong is not None:
        total = wrong if found == total else total
    return None if found == total else (total, found, found - total)


def _numbers(table: pa.Table, column: str) -> list[Number | None]:
    number: Callable[[object], Number | None] = _number
    try:
        return [number(value) for value in table[column].to_pylist()]
    except (TypeError, InvalidOperation) as exc:
        raise UsageError(f"{column} holds something that is no exact number: {exc}", subject="column", value=column) from exc


def _number(value: object) -> Number | None:
    if value is None or isinstance(value, int | Decimal):
        return value
    if not isinstance(value, str):
        raise TypeError(repr(value))
    text = value.strip().replace(",", "").replace("_", "")
    return Decimal(text) if text else None
