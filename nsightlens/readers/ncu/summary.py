"""Tables of `--print-summary` (minimum, maximum and average over the launches of a kernel) -> metric_summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nsightlens.readers.ncu import labels
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import FormatEvidence, parse
from nsightlens.readers.ncu.page import IdColumns, Launch, whole
from nsightlens.readers.ncu.text import HeaderLine
from nsightlens.readers.ncu.units import Unit, base_unit

_VALUES = ("Minimum", "Maximum", "Average")


@dataclass(frozen=True, slots=True)
class Summary:
    """One row: the launches it sums up (ncu_id is None), how many they are, the metric, its values in base units.

    steps: the value of the last printed digit of each.
    """

    launches: Launch
    invocations: int | None
    metric: str
    values: tuple[float | None, ...]
    steps: tuple[float, ...]

    def agrees(self, other: Summary) -> bool:
        """Return whether the values of two prints are the same within the printed digits."""
        pairs = zip(self.values, other.values, self.steps, other.steps, strict=True)
        return self.invocations == other.invocations and all(
            a == b or (a is not None and b is not None and abs(a - b) <= (one + two) * (0.5 + 1e-9)) for a, b, one, two in pairs
        )


@dataclass(slots=True)
class SummaryRows:
    """The rows of a summary table, as dicts by column, with the launches each sums up."""

    header: HeaderLine
    found: list[tuple[Launch, dict[str, str]]] = field(default_factory=list)

    def fast(self, data: bytes, start: int) -> int:
        """Take nothing: such tables are short."""
        return start

    def accept(self, row: Sequence[str], line: bytes) -> bool:
        """Take one row; False where it is none."""
        header = self.header.cells
        launch = IdColumns.of(header).launch(row) if len(row) > max(header.index(n) for n in (*_VALUES, "Invocations")) else None
        if launch is None or whole(row[header.index("Invocations")].replace(",", "").replace(".", "")) is None:
            return False
        self.found.append((launch, dict(zip(header, row, strict=False))))
        return True

    def see(self, evidence: FormatEvidence) -> None:
        """Show the numbers to what decides on their format."""
        evidence.see(pa.array({row[name] for _, row in self.found for name in _VALUES}, pa.string()))

    def printed(self) -> Iterator[tuple[Unit, pa.Array]]:
        """Yield the unit and the texts of each row."""
        for _, row in self.found:
            yield base_unit(row.get("Metric Unit", "")), pa.array([row[name] for name in _VALUES], pa.string())


def summaries(rows: SummaryRows, decimal: str, notes: Notes) -> list[Summary]:
    """Return what the rows say, under the decimal sign of their file."""
    return [_summary(launch, row, decimal, notes) for launch, row in rows.found]


def _summary(launch: Launch, row: dict[str, str], decimal: str, notes: Notes) -> Summary:
    unit = base_unit(row.get("Metric Unit", ""))
    notes.add("unknown_unit", repr(unit.base), 0 if unit.known else 1)
    once = np.ones(3, dtype=np.int64)
    parsed = parse(pa.array([row[name] for name in _VALUES], pa.string()), decimal, notes, once)
    values, steps = (of(np.arange(3), once * unit.exponent) for of in (parsed.doubles, parsed.steps))
    section, label = row.get("Section Name", ""), row["Metric Name"].strip()
    raw = labels.raw_name(section, row.get("Body Item Label"), label, unit.base, launch.cc)
    invocations = whole(row["Invocations"].replace(",", "").replace(".", ""))
    found = tuple(float(value) if np.isfinite(value) else None for value in values)
    return Summary(launch, invocations, raw or f"{section} / {label}", found, tuple(steps.tolist()))


def unite(summaries: Sequence[Summary]) -> tuple[list[Summary], list[str]]:
    """Return each summary once, and the metrics of those that contradict an earlier one."""
    found: dict[tuple[object, ...], Summary] = {}
    lost = []
    for summary in summaries:
        first = found.setdefault((*summary.launches.key, summary.launches.device, summary.metric), summary)
        if not first.agrees(summary):
            lost.append(summary.metric)
    return list(found.values()), lost
