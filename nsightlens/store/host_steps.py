"""The rows of the view _steps for one large profile: its host steps, stretched to the end of the work that they launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import MISSING, Int, nullable, stretches
from nsightlens.store.profile_parts import Calls, Line, UnfitError, Work

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


def host_steps(
    connection: duckdb.DuckDBPyConnection, lines: Sequence[Line], work: Sequence[Work], calls: Calls,
) -> Steps:
    """Return the steps. connection: one whose `ranges` are the profile's. Raises UnfitError where two steps begin at once."""
    number = {line: at for at, line in enumerate(lines)}
    found = [(number[process, window], start, end, range_id, MISSING if step is None else step)
             for process, window, start, end, range_id, step in connection.execute(_STEPS).fetchall()]
    without = set(range(len(lines))) - {row[0] for row in found}
    # without steps all calls lie in the one that is the capture; what was recorded of it is known in the end
    found += [(line, _EARLIEST, _LATEST, MISSING, MISSING) for line in without]
    line, start, end, step_id, step = np.array(sorted(found), dtype=np.int64).reshape(-1, 5).T
    if np.any((np.diff(line) == 0) & (np.diff(start) == 0)):
        raise UnfitError("two steps begin at once")
    recorded = _Recorded(len(lines))
    launched = _Launched(line, start, end, step_id != MISSING, recorded)
    for some in work:
        for template, begin, finish, launch in some.rows():
            launched.add(some.line[template], begin, finish, launch, calls)
    recorded.add_calls(calls)
    for process, window, first, last in connection.execute(_OPERATORS).fetchall():
        recorded.add(np.array([number[process, window]]), np.array([first]), np.array([last]))
    is_capture = step_id == MISSING
    start, end = np.where(is_capture, recorded.first[line], start), np.where(is_capture, recorded.last[line], end)
    began, until = launched.windows(start, end)
    kept = ~is_capture | (recorded.first[line] != _LATEST)
    columns = (line, step_id, step, start, end, began, until, launched.count)
    return Steps(lines, *(column[kept] for column in columns))


class _Recorded:
    """The first start and the last end of what was recorded of each line."""

    def __init__(self, lines: int) -> None:
        self.first = np.full(lines, _LATEST)
        self.last = np.full(lines, _EARLIEST)

    def add(self, line: Int, start: Int, end: Int) -> None:
        np.minimum.at(self.first, line, start)
        np.maximum.at(self.last, line, end)

    def add_calls(self, calls: Calls) -> None:
        for some in stretches(len(calls.start)):
            rows = np.flatnonzero((calls.template[some] >= 0) & (calls.end[some] != MISSING)) + some.start
            self.add(calls.line[calls.template[rows]], calls.start[rows], calls.end[rows])


class _Launched:
    """The work of each host step: how much, the first start and the last end; and the ends of what no step launched."""

    def __init__(self, line: Int, start: Int, end: Int, is_step: Int, recorded: _Recorded) -> None:
        self._line, self._end, self._is_step, self._recorded = line, end, is_step, recorded
        self._of_line = [np.flatnonzero(line == at) for at in range(len(recorded.first))]
        self._starts = [start[rows] for rows in self._of_line]
        self.count = np.zeros(len(line), dtype=np.int64)
        self._first, self._last = np.full(len(line), _LATEST), np.full(len(line), _EARLIEST)
        self._before: list[list[Int]] = [[] for _ in self._of_line]

    def add(self, line: Int, start: Int, end: Int, launch: Int, calls: Calls) -> None:
        """Take in some work: it belongs to the last step that began by its call, where the call ended in that step."""
        self._recorded.add(line, start, end)
        call = np.where(launch == MISSING, -1, launch - calls.first_id)
        known = (call >= 0) & (call < len(calls.start))
        known[known] = calls.template[call[known]] >= 0
        for one in np.unique(line).tolist():
            mine = np.flatnonzero(line == one)
            called = mine[known[mine]]
            began, ended = calls.start[call[called]], calls.end[call[called]]
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
        self.count += np.bincount(step, minlength=len(self.count))
        np.minimum.at(self._first, step, start)
        np.maximum.at(self._last, step, end)

    def windows(self, start: Int, end: Int) -> tuple[Int, Int]:
        """Return when each step begins and ends, with its work: where the one before it ended, the first one after earlier work."""
        began, until = start.copy(), np.maximum(end, self._last)
        for rows, before in zip(self._of_line, self._before, strict=True):
            until[rows] = np.maximum.accumulate(until[rows])
            began[rows[1:]] = np.maximum(start[rows[1:]], until[rows[:-1]])
            first = rows[:1]
            earlier = [ends[ends < self._first[first]] for ends in before]
            if len(first) and self._is_step[first[0]] and self.count[first[0]] and any(map(len, earlier)):
                began[first] = max(int(start[first[0]]), int(np.concatenate(earlier).max()))
        return began, until
