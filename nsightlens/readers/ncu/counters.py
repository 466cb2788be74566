"""Values of single metrics per launch, and when a printed value is an exact integer."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsightlens.readers.ncu.merge import NcuReport
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Floats, Ints
from nsightlens.readers.ncu.page import Codes

INT32_MAX = 2**31 - 1


# The metrics that become columns of kernels and devices.
_WANTED = re.compile(r"launch__|device__attribute_|gpu__time_duration\.|profiler__replayer_passes$")


@dataclass(frozen=True, slots=True)
class Counters:
    """The few metrics of a report that become columns: `of` gives one per launch."""

    count: int
    codes: dict[str, int]
    metric: Codes
    launch: Ints
    value: Floats
    step: Floats
    notes: Notes

    @classmethod
    def from_report(cls, report: NcuReport, notes: Notes) -> Counters:
        """Pick them out; the printed precision is needed only where values were scaled."""
        entries = report.entries
        codes = {name: i for i, name in enumerate(entries.names) if isinstance(name, str) and _WANTED.match(name)}
        wanted = np.zeros(len(entries.names), dtype=np.bool_)
        wanted[list(codes.values())] = True
        at = np.flatnonzero(wanted[entries.metric])
        launch = np.searchsorted(entries.starts, at, side="right") - 1
        step = report.steps()[at] if report.scaled else np.ones(len(at))
        return cls(len(report.launches), codes, entries.metric[at], launch, entries.value[at], step, notes)

    def of(self, *names: str) -> tuple[Floats, Floats]:
        """Return per launch the value of the first of the metrics that it has (NaN: none) and its printed step."""
        value, step = np.full(self.count, np.nan), np.ones(self.count)
        for name in reversed(names):
            if name in self.codes:
                at = np.flatnonzero(self.metric == self.codes[name])
                value[self.launch[at]], step[self.launch[at]] = self.value[at], self.step[at]
        return value, step

    def whole(self, *names: str, least: int = 0, nearest: bool = False) -> list[int | None]:
        """Return exact integers per launch (not below `least`); rounded prints are None, or the nearest integer if asked."""
        value, step = self.of(*names)
        present = np.isfinite(value) & (value >= least) & (value < 2.0**62)
        rounded = present & ((step > 1) | (value != np.rint(value)))
        if rounded.any():
            self.notes.add("rounded_in_print", f"{names[0]} {value[rounded][0]:g}", int(rounded.sum()))
        exact = present if nearest else present & ~rounded
        return [int(v) if ok else None for v, ok in zip(np.rint(value).tolist(), exact.tolist(), strict=True)]


def integer(value: float | None, most: int = 2**62) -> int | None:
    """Return a value that is an integer from 0 to `most` as one, else None."""
    return int(value) if value is not None and 0 <= value <= most and value == int(value) else None
