"""Long tables (one row per metric: shapes metrics, details, details-all) -> cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nsightlens.readers.ncu.cells import Columns, is_cut, quoted
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Ints
from nsightlens.readers.ncu.page import RULES, IdColumns, Launch, distinct, table_of
from nsightlens.readers.ncu.text import HeaderLine, cells
from nsightlens.readers.ncu.units import Unit, base_unit

_METRIC = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
_RULE = ("Section Name", "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")

Kind = tuple[str, str | None, str, str]  # section, body item (None: no such column), label, unit


@dataclass(slots=True)
class LongRows:
    """The rows of a long table, metric rows and rule rows apart, each without its id cells and with its launch."""

    header: HeaderLine
    launches: list[Launch] = field(default_factory=list)
    metrics: Columns = field(init=False)
    metric_runs: list[tuple[int, int]] = field(default_factory=list)
    rules: Columns = field(init=False)
    rule_runs: list[tuple[int, int]] = field(default_factory=list)
    ids: IdColumns = field(init=False)
    at: dict[str, int] = field(init=False)
    _positions: dict[tuple[object, ...], int] = field(default_factory=dict)
    _leading: re.Pattern[bytes] = field(init=False)
    _rule: re.Pattern[bytes] = field(init=False)
    _ending: bytes = field(init=False)
    _prefix: bytes = b""
    _careful: int = 0
    _now: int = 0

    def __post_init__(self) -> None:
        """Find the columns; a metric row ends after its value, with an empty cell more where rule columns follow."""
        self.ids = IdColumns.of(self.header.cells)
        skip = self.ids.leading
        self.at = {name: i - skip for i, name in enumerate(self.header.cells)}
        width = max(self.at[name] for name in _METRIC if name in self.at) + (2 if "Rule Name" in self.at else 1)
        self.metrics = Columns(width, frozenset(range(width)) - {self.at["Metric Value"]})
        self.rules = Columns(len(self.header.cells) - skip)
        self._ending = b'",' if "Rule Name" in self.at else b'"'
        self._leading = leading_cells(skip)
        self._rule = re.compile(leading_cells(self.at["Metric Name"]).pattern + b'"",')

    def fast(self, data: bytes, start: int) -> int:
        """Take runs of lines that begin with the same id cells: metric rows, and full rule rows."""
        while self.ids.leading and self._enter(data, start):
            stop = end_of_run(data, start, self._prefix) if start >= self._careful else data.find(b"\n", start) + 1
            if stop <= start:
                return start
            prefix, skip, ending = self._prefix, len(self._prefix), self._ending
            lines = data[start : stop - 1].split(b"\n")
            metrics = [line[skip:] for line in lines if line.endswith(ending) and line.startswith(prefix)]
            rules: list[bytes] = []
            if len(metrics) != len(lines):
                rest = [line[skip:] for line in lines if not line.endswith(ending) and line.startswith(prefix)]
                rules = [tail for tail in rest if self._is_rule(tail)]
                if len(metrics) + len(rules) != len(lines):
                    self._careful = stop  # other lines stand in the run: do not leap over it again
                    return self._slowly(start, lines)
            self._take(metrics, rules)
            start = stop
        return start

    def _is_rule(self, tail: bytes) -> bool:
        full = "Rule Name" in self.at and tail.endswith(b'"') and tail.count(b'","') == self.rules.width - 1
        return full and self._rule.match(tail) is not None

    def _slowly(self, start: int, lines: Sequence[bytes]) -> int:
        """Take the lines of a run up to the first that is neither; return the offset of that one."""
        for line in lines:
            tail = line[len(self._prefix) :]
            metric = tail.endswith(self._ending)
            if not line.startswith(self._prefix) or not (metric or self._is_rule(tail)):
                break
            self._take([tail] if metric else [], [] if metric else [tail])
            start += len(line) + 1
        return start

    def _take(self, metrics: Sequence[bytes], rules: Sequence[bytes]) -> None:
        for rows, columns, runs in ((metrics, self.metrics, self.metric_runs), (rules, self.rules, self.rule_runs)):
            if rows:
                columns.add(rows)
                runs.append((self._now, len(rows)))

    def _enter(self, data: bytes, start: int) -> bool:
        """Make the launch that the id cells at `start` name the present one; False where there are none."""
        if self._prefix and data.startswith(self._prefix, start):
            return True
        ids = self._leading.match(data, start)
        launch = self.ids.launch(cells(ids[0][:-1]) or ()) if ids else None
        if ids is None or launch is None:
            return False
        self._make_present(launch)
        self._prefix = ids[0]
        return True

    def _make_present(self, launch: Launch) -> None:
        self._now = self._positions.setdefault(launch.key, len(self.launches))
        if self._now == len(self.launches):
            self.launches.append(launch)

    def accept(self, row: Sequence[str], line: bytes) -> bool:
        """Take one row; False where it is none."""
        skip, width = self.ids.leading, len(self.header.cells)
        ends = self.at["Metric Value"] + skip + 1
        launch = self.ids.launch(row) if len(row) > ends or (len(row) == ends and not is_cut(line)) else None
        if launch is None or any("\n" in cell for cell in row[:ends]):
            return False
        tail = [*row, *[""] * (width - len(row))][skip:width]
        is_metric, is_rule = tail[self.at["Metric Name"]] != "", "Rule Name" in self.at and tail[self.at["Rule Name"]] != ""
        if is_rule and not is_metric and len(row) <= self.at.get("Rule Description", 0) + skip:
            return False
        self._make_present(launch)
        self._prefix = b""
        self._take([quoted(tail[: self.metrics.width])] if is_metric else [], [quoted(tail)] if is_rule and not is_metric else [])
        return True


def leading_cells(count: int) -> re.Pattern[bytes]:
    """Return a pattern for `count` quoted cells and the comma after them."""
    return re.compile(rb'(?:"[^"\n]*(?:""[^"\n]*)*",){%d}' % count)


def end_of_run(data: bytes, start: int, prefix: bytes) -> int:
    """Return where the lines that begin with `prefix` end, by leaps: lines between two such lines are not looked at."""
    if not data.startswith(prefix, start):
        return start
    low, leap = start, 1 << 12
    while True:
        line = data.find(b"\n", low + leap) + 1
        if line == 0 or not data.startswith(prefix, line):
            break
        low, leap = line, leap * 2
    high = line or len(data)
    while low + 2048 < high:
        line = data.find(b"\n", (low + high) // 2) + 1
        if line == 0 or line >= high:
            break
        if data.startswith(prefix, line):
            low = line
        else:
            high = line
    while data.startswith(prefix, low):
        line = data.find(b"\n", low) + 1
        if line == 0:
            break
        low = line
    return low


@dataclass(frozen=True, slots=True)
class LongCells:
    """The cells of a long table. Per metric row: its launch, its kind, and which of the distinct printed texts it has."""

    launches: list[Launch]
    page: str
    launch: Ints
    kinds: list[Kind]
    kind: Ints
    texts: pa.Array
    codes: Ints
    rules: pa.Table

    @classmethod
    def of(cls, rows: LongRows, notes: Notes) -> LongCells:
        """Split the rows into cells. Rows of another width are torn: they are lost."""
        metrics, launch = _whole_rows(rows.metrics, rows.metric_runs, notes)
        kinds, kind = _kinds(metrics, rows.at)
        printed = metrics.column(rows.at["Metric Value"]).combine_chunks().dictionary_encode()
        found, rule_launch = _whole_rows(rows.rules, rows.rule_runs, notes)
        missing = pa.nulls(found.num_rows, pa.string())
        rules = [found.column(rows.at[name]) if name in rows.at else missing for name in _RULE]
        codes = printed.indices.to_numpy().astype(np.int64)
        table = table_of(RULES, [rule_launch, *rules])
        return cls(rows.launches, kind_of(rows.header), launch, kinds, kind, printed.dictionary, codes, table)

    def printed(self) -> Iterator[tuple[Unit, pa.Array]]:
        """Yield each unit and the distinct texts printed in it."""
        units = [unit for *_, unit in self.kinds]
        for unit in dict.fromkeys(units):
            alike = np.array([one == unit for one in units])
            yield base_unit(unit), self.texts.take(pa.array(np.unique(self.codes[alike[self.kind]])))


def _whole_rows(columns: Columns, runs: Sequence[tuple[int, int]], notes: Notes) -> tuple[pa.Table, Ints]:
    """Return the rows that have the width of their table, and the launch of each."""
    table = columns.table()
    pairs = np.array(runs, dtype=np.int64).reshape(-1, 2)
    launch = np.repeat(pairs[:, 0], pairs[:, 1])
    torn = table.column(table.num_columns - 1).is_null().to_numpy()
    if not torn.any():
        return table, launch
    notes.add("rows_lost", "rows with other cells than their table", int(torn.sum()))
    return table.filter(pa.array(~torn)).unify_dictionaries(), launch[~torn]


def _kinds(metrics: pa.Table, column_places: dict[str, int]) -> tuple[list[Kind], Ints]:
    """Return the distinct (section, body item, label, unit) of metric rows, and which one each row has."""
    columns = [metrics.column(column_places[name]).combine_chunks() if name in column_places else None for name in _METRIC[:-1]]
    kind_code, size = np.zeros(metrics.num_rows, dtype=np.int64), 1
    for column in columns:
        if column is not None and len(column):
            kind_code = kind_code * len(column.dictionary) + column.indices.to_numpy()
            size *= len(column.dictionary)
            if size > 2**30:
                known_codes, kind_code = distinct(kind_code, size)
                size = len(known_codes)
    known_codes, kind_code = distinct(kind_code, size)
    first_row = np.empty(len(known_codes), dtype=np.int64)
    first_row[kind_code[::-1]] = np.arange(len(kind_code))[::-1]
    section, body, label, unit = (None if column is None else column.take(pa.array(first_row)).to_pylist() for column in columns)
    no_texts = [""] * len(known_codes)
    kinds = zip(section or no_texts, body or [None] * len(known_codes), label or no_texts, unit or no_texts, strict=True)
    return [(section_name, item, text.strip(), unit_name) for section_name, item, text, unit_name in kinds], kind_code


def kind_of(header: HeaderLine) -> str:
    """Return the page of ncu that a long table is."""
    if "Body Item Label" in header.cells:
        return "details-all"
    return "details" if "Rule Name" in header.cells else "metrics"
