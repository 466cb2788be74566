"""The rows of the view _steps for one large profile: its host steps, stretched to the end of the work that they launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import MISSING, Int, nullable, row_chunks
from nsightlens.intervals.order import reached
from nsightlens.store.profile_parts import Calls, CallTimes, Line, UnfitError

_STEPS = """
SELECT process_id, window_index, start_ns, start_ns + duration_ns AS end_ns, range_id, step
FROM ranges WHERE kind = 'step' AND duration_ns >= 0
"""
_OPERATORS = """
SELECT process_id, window_index, min(start_ns), max(start_ns + duration_ns) FROM ranges
WHERE kind = 'operator' AND duration_ns >= 0 GROUP BY process_id, window_index
"""
_EARLIEST, _LATEST = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a profile in the order of _steps, an array per column; step_id and step are MISSING where there is none."""

    lines: Sequence[Line]
    line: Int
    step_id: Int
    step: Int
    host_start: Int
    host_end: Int
    start: Int
    end: Int
    activities: Int

    def bounds(self, line: Int) -> tuple[Int, Int]:
        """Return the start of the first and the end of the last step of lines; 0 and 0 for those without."""
        first, last = np.full(len(self.lines), _LATEST), np.full(len(self.lines), _EARLIEST)
        np.minimum.at(first, self.line, self.start)
        np.maximum.at(last, self.line, self.end)
        there = np.bincount(self.line, minlength=len(self.lines)) > 0
        return np.where(there, first, 0)[line], np.where(there, last, 0)[line]

    def table(self, key: Mapping[str, str], rows: Int | None = None) -> pa.Table:
        """Return rows of _steps (all, in order), those of the profile that `key` names: run, tool and profile_id."""
        rows = np.arange(len(self.line)) if rows is None else rows
        process, window = (pa.array([line[at] for line in self.lines], kind)
                           for at, kind in enumerate((pa.string(), pa.int64())))
        line = pa.array(self.line[rows])
        columns = {name: pa.array([text] * len(rows), pa.string()) for name, text in key.items()}
        columns |= {"process_id": process.take(line), "window_index": window.take(line)}
        columns |= {"step_id": nullable(self.step_id[rows]), "step": nullable(self.step[rows])}
        for name, values in (("host_start_ns", self.host_start), ("host_end_ns", self.host_end), ("start_ns", self.start),
                             ("end_ns", self.end), ("gpu_activities", self.activities)):
            columns[name] = pa.array(values[rows])
        return pa.table(columns)


class _Recorded:
    """The first start and the last end of what was recorded of each line."""

    def __init__(self, lines: int) -> None:
        self.first = np.full(lines, _LATEST)
        self.last = np.full(lines, _EARLIEST)

    def add(self, line: Int, start: Int, end: Int) -> None:
        np.minimum.at(self.first, line, start)
        np.maximum.at(self.last, line, end)

    def add_calls(self, calls: Calls, times: CallTimes) -> None:
        for some in row_chunks(calls.count):
            rows = np.flatnonzero((times.template[some] >= 0) & (times.end[some] != MISSING)) + some.start
            self.add(calls.line[times.template[rows]], times.start[rows], times.end[rows])


class HostSteps:
    """The host steps of a profile, and the work of each: how much, the first start, the last end; and what no step launched."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, lines: Sequence[Line], calls: Calls, times: CallTimes) -> None:
        """Read the steps. connection: one whose `ranges` are the profile's. Raises UnfitError where two steps begin at once."""
        number = {line: at for at, line in enumerate(lines)}
        found = [(number[process, window], start, end, range_id, MISSING if step is None else step)
                 for process, window, start, end, range_id, step in connection.execute(_STEPS).fetchall()]
        # without steps all calls lie in the one that is the capture; what was recorded of it is known in the end
        found += [(line, _EARLIEST, _LATEST, MISSING, MISSING) for line in set(range(len(lines))) - {row[0] for row in found}]
        self._line, self._start, self._end, self._step_id, self._step = np.array(sorted(found), dtype=np.int64).reshape(-1, 5).T
        if np.any((np.diff(self._line) == 0) & (np.diff(self._start) == 0)):
            raise UnfitError("two steps begin at once")
        self._lines, self._times = lines, times
        self._of_line = [np.flatnonzero(self._line == at) for at in range(len(lines))]
        self._starts = [self._start[rows] for rows in self._of_line]
        self._count = np.zeros(len(found), dtype=np.int64)
        self._first, self._last = np.full(len(found), _LATEST), np.full(len(found), _EARLIEST)
        self._before: list[list[Int]] = [[] for _ in lines]
        self._recorded = _Recorded(len(lines))
        self._recorded.add_calls(calls, times)
        for process, window, first, last in connection.execute(_OPERATORS).fetchall():
            self._recorded.add(np.array([number[process, window]]), np.array([first]), np.array([last]))

    def add(self, line: Int, start: Int, end: Int, launch: Int) -> None:
        """Take in some work: it belongs to the last step that began by its call, where the call ended in that step."""
        self._recorded.add(line, start, end)
        times = self._times
        call = times.places(launch)
        known = call >= 0
        for one in np.unique(line).tolist():
            mine = np.flatnonzero(line == one)
            called = mine[known[mine]]
            began, ended = times.start[call[called]], times.end[call[called]]
            at = np.searchsorted(self._starts[one], began, side="right") - 1
            step = self._of_line[one][at]
            within = (at >= 0) & (ended != MISSING) & (ended <= self._end[step])
            self._take(step[within], start[called[within]], end[called[within]])
            rest = np.ones(len(line), dtype=np.bool_)
            rest[called[within]] = False
            # only what ended before the first step's own work matters, and that began by now at the latest
            ends = end[mine[rest[mine]]]
            self._before[one].append(ends[ends < self._first[self._of_line[one][0]]])

    def _take(self, step: Int, start: Int, end: Int) -> None:
        self._count += np.bincount(step, minlength=len(self._count))
        np.minimum.at(self._first, step, start)
        np.maximum.at(self._last, step, end)

    def finish(self) -> Steps:
        """Return the steps, stretched to the end of the work that they launched."""
        is_capture, recorded = self._step_id == MISSING, self._recorded
        start = np.where(is_capture, recorded.first[self._line], self._start)
        end = np.where(is_capture, recorded.last[self._line], self._end)
        began, until = self._windows(start, end)
        kept = ~is_capture | (recorded.first[self._line] != _LATEST)
        columns = (self._line, self._step_id, self._step, start, end, began, until, self._count)
        return Steps(self._lines, *(column[kept] for column in columns))

    def _windows(self, start: Int, end: Int) -> tuple[Int, Int]:
        """Return when each step begins and ends, with its work: where the one before ended, the first one after earlier work."""
        until = np.maximum(end, self._last)
        before = reached(start, until, self._line)
        began, until = np.maximum(start, before), np.maximum(until, before)
        for rows, ends in zip(self._of_line, self._before, strict=True):
            first = rows[0]
            earlier = np.concatenate([np.empty(0, np.int64), *ends])
            earlier = earlier[earlier < self._first[first]]
            if self._step_id[first] != MISSING and self._count[first] and len(earlier):
                began[first] = max(start[first], earlier.max())
        return began, until
