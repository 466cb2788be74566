"""Wide tables (`--page raw`: one column per metric, a row of units under the header) -> Page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.ncu.cells import Columns, is_cut, quoted
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Floats, FormatEvidence, Ints, ParsedNumbers, decimals, parse, shifted, step_sizes
from nsightlens.readers.ncu.page import (
    TEXTS,
    Entries,
    IdColumns,
    Launch,
    Page,
    codes_of,
    is_untimed,
    occurring,
    resolve,
    table_of,
)
from nsightlens.readers.ncu.text import HeaderLine
from nsightlens.readers.ncu.units import Unit, base_unit


@dataclass(slots=True)
class WideRows:
    """The rows of a wide table, and its units row."""

    header: HeaderLine
    threads: bool = False
    units: list[str] = field(default_factory=list)
    count: int = 0
    columns: Columns = field(init=False)
    _ids: IdColumns = field(init=False)

    def __post_init__(self) -> None:
        """Find the columns."""
        self.columns = Columns(len(self.header.cells), threads=self.threads)
        self._ids = IdColumns.of(self.header.cells)

    def fast(self, data: bytes, start: int) -> int:
        """Take lines that have exactly the cells of the header."""
        width, find, count = len(self.header.cells), data.find, data.count
        taken: list[bytes] = []
        while data.startswith(b'"', start) and (stop := find(b"\n", start)) >= 0:
            digit = b"0" <= data[start + 1 : start + 2] <= b"9"
            if not digit or count(b'","', start, stop) != width - 1 or count(b'"', start, stop) != 2 * width:
                break
            taken.append(data[start:stop])
            start = stop + 1
        self._take(taken)
        return start

    def _take(self, lines: Sequence[bytes]) -> None:
        self.columns.add(lines)
        self.count += len(lines)

    def accept(self, row: Sequence[str], line: bytes) -> bool:
        """Take one row or the units row; False where it is neither."""
        width = len(self.header.cells)
        if len(row) == width + 1 and not row[-1]:
            row = row[:width]
        elif len(row) != width or is_cut(line) or b"\n" in line:
            return False
        if not self.units and not self.count and not any(row[i] for i in self._ids.all):
            self.units = list(row)
            return True
        if self._ids.launch(row) is None:
            return False
        self._take([quoted(row)])
        return True


@dataclass(frozen=True, slots=True)
class WideCells:
    """The cells of a wide table: its launches (None: not a row after all), and per metric name, unit and strings.

    `doubles` are the columns that are nothing but plain numbers, by position.
    """

    launches: list[Launch | None]
    names: list[str]
    units: list[Unit]
    columns: list[pa.Array]
    doubles: dict[int, Floats]
    has_units: bool

    @classmethod
    def of(cls, rows: WideRows, evidence: FormatEvidence) -> WideCells:
        """Split the rows into cells, and look at their numbers."""
        header = rows.header.cells
        ids = IdColumns.of(header)
        columns = rows.columns.table().columns
        printed = [columns[i].to_pylist() if i in ids.all else [""] * rows.count for i in range(max(ids.all) + 1)]
        launches = [None if None in row else ids.launch(row) for row in zip(*printed, strict=True)]
        metrics = [i for i, name in enumerate(header) if i not in ids.all and name]
        strings = [columns[i].combine_chunks() for i in metrics]
        doubles = {i: plain for i, column in enumerate(strings) if (plain := _plain(column)) is not None}
        for i, column in enumerate(strings):
            if i not in doubles or not evidence.point:
                evidence.see(column.unique())
        units = [base_unit(rows.units[i] if rows.units else "") for i in metrics]
        return cls(launches, [header[i] for i in metrics], units, strings, doubles, bool(rows.units))

    def printed(self) -> Iterator[tuple[Unit, pa.Array]]:
        """Yield the unit and the distinct texts of each metric."""
        for unit, column in zip(self.units, self.columns, strict=True):
            yield unit, column.unique()


def _plain(column: pa.Array) -> Floats | None:
    try:
        values = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return values if np.isfinite(values).all() else None


def page(cells: WideCells, decimal: str) -> Page:
    """Return what the cells say, under the decimal sign of their file."""
    notes = Notes()
    first: dict[tuple[object, ...], Launch] = {}
    for launch in cells.launches:
        if launch is not None:
            first.setdefault(launch.key, launch)
    position = {key: i for i, key in enumerate(first)}
    of_row = np.array([-1 if launch is None else position[launch.key] for launch in cells.launches], dtype=np.int64)
    rows = int((of_row >= 0).sum())
    notes.add("rows_lost", "rows whose ids are no numbers", len(of_row) - rows)
    notes.add("no_units", next(iter(cells.names), ""), 0 if cells.has_units else rows)
    for name, unit in zip(cells.names, cells.units, strict=True):
        notes.add("unknown_unit", f"{unit.base!r} of {name}", 0 if unit.known else rows)
    columns = _Columns.of(cells, decimal, notes)
    entries, steps = _entries(columns, len(first), of_row, notes)
    scaled = any(unit.exponent for unit in cells.units)
    return Page("raw", list(first.values()), entries, steps, scaled, columns.texts(of_row), rows=rows, notes=notes,
                untimed=columns.untimed(of_row))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Metric columns, those of plain numbers (`plain`) and the others (`mixed`, whose distinct cells are `parsed`)."""

    cells: WideCells
    plain: list[int]
    mixed: list[int]
    parsed: ParsedNumbers
    distinct: pa.Array
    codes: Ints

    @classmethod
    def of(cls, cells: WideCells, decimal: str, notes: Notes) -> _Columns:
        """Parse the columns that are not plain; under a decimal comma none is."""
        plain = list(cells.doubles) if decimal == "." else []
        mixed = sorted(set(range(len(cells.names))) - set(plain))
        printed = pa.chunked_array([cells.columns[i] for i in mixed], pa.string()).combine_chunks().dictionary_encode()
        codes = printed.indices.fill_null(0).to_numpy().astype(np.int64)
        distinct = printed.dictionary if len(printed.dictionary) else pa.array([""])  # every row may be torn
        parsed = parse(distinct, decimal, notes, np.bincount(codes, minlength=len(distinct)))
        return cls(cells, plain, mixed, parsed, distinct, codes.reshape(len(mixed), len(cells.launches)))

    def exponents(self, column: int) -> Ints:
        """Return the power of ten of each row of a column."""
        return np.full(len(self.cells.launches), self.cells.units[column].exponent, dtype=np.int64)

    def values(self, order: Ints) -> Floats:
        """Return a row per launch and a column per metric (in `order`): values in base units, NaN where there is none."""

        def plain(column: int, exponents: Ints) -> Floats:
            return shifted(self.cells.columns[column], exponents) if exponents.any() else self.cells.doubles[column]

        return self._matrix(order, plain, self.parsed.doubles)

    def steps(self, order: Ints) -> Floats:
        """Return, in the shape of `values`, the value of the last printed digit."""

        def plain(column: int, exponents: Ints) -> Floats:
            return step_sizes(decimals(self.cells.columns[column]), exponents)

        return self._matrix(order, plain, self.parsed.steps)

    def untimed(self, of_row: Ints) -> Ints:
        """Return the launches whose duration is printed in a unit that is none of time."""
        pairs = enumerate(zip(self.cells.names, self.cells.units, strict=True))
        odd = [i for i, (name, unit) in pairs if is_untimed(name, unit.base)]
        found = [of_row[self.cells.columns[i].is_valid().to_numpy(zero_copy_only=False)] for i in odd]
        launches = np.concatenate([of_row[:0], *found])
        return occurring(launches[launches >= 0])

    def _matrix(self, order: Ints, plain: Callable[[int, Ints], Floats], mixed: Callable[[Ints, Ints], Floats]) -> Floats:
        found = np.empty((len(self.cells.launches), len(self.cells.names)))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        for column in self.plain:
            found[:, place[column]] = plain(column, self.exponents(column))
        for column, codes in zip(self.mixed, self.codes, strict=True):
            found[:, place[column]] = mixed(codes, self.exponents(column))
        return found

    def texts(self, of_row: Ints) -> pa.Table:
        """Return the cells that are texts."""
        column, row = np.nonzero(self.parsed.is_text[self.codes] & (of_row >= 0)) if self.mixed else (of_row[:0], of_row[:0])
        names = pa.array([self.cells.names[i] for i in self.mixed], pa.string()).take(pa.array(column))
        return table_of(TEXTS, [of_row[row], names, self.distinct.take(pa.array(self.codes[column, row]))])


def _entries(columns: _Columns, count: int, of_row: Ints, notes: Notes) -> tuple[Entries, Callable[[], Floats]]:
    names, code = codes_of(columns.cells.names)
    order = np.argsort(code, kind="stable")
    values = columns.values(order)
    mask = np.isfinite(values) & (of_row >= 0)[:, None]
    launch = np.repeat(of_row, mask.sum(axis=1))
    metric = np.broadcast_to(code[order].astype(np.int32), mask.shape)[mask]
    value = values[mask]

    def steps() -> Floats:
        return columns.steps(order)[mask]

    if len(names) == len(code) and count + (of_row < 0).any() == len(of_row):
        return Entries.of(names, count, launch, metric, value), steps
    step = steps()
    kept, lost = resolve(launch * len(names) + metric, value, step)
    notes.add("metric_conflict", str(names[metric[lost[0]]]) if len(lost) else "", len(lost))
    return Entries.of(names, count, launch[kept], metric[kept], value[kept]), lambda: step[kept]
