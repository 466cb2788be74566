"""How many launches of each process lack their kernel: successful calls whose kernel the tool did not record.

Launches that a stream capture recorded run nothing. Those after the last launch of their process that has its kernel were cut
off with the capture, and are not lost. A launch inside another (a driver call of the runtime) is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import MISSING, Int, Mask, Places, numbered, row_chunks
from nsightlens.columns.kernel_columns import BEGIN, END, LAUNCH
from nsightlens.columns.spilled import LongColumn, values_at
from nsightlens.intervals.order import reached


@dataclass(frozen=True, slots=True)
class Launching:
    """The calls of a profile: template, process, correlation id, start and duration per row; code (LAUNCH, BEGIN, END or 0) and
    thread per template."""

    template: LongColumn
    process: npt.NDArray[Any]
    correlation: LongColumn
    start: LongColumn
    duration: LongColumn
    code: Places
    thread: Int

    def rows(self, codes: tuple[int, ...], but: Mask | None = None) -> Int:
        """Return the calls with one of these codes. but: calls that are left out."""
        wanted = np.isin(self.code, codes)
        found = [np.empty(0, dtype=np.int64)]
        for some in row_chunks(len(self.template)):
            here = wanted[self.template[some]]
            found.append(np.flatnonzero(here & ~but[some] if but is not None else here) + some.start)
        return np.concatenate(found)

    def threads(self, rows: Int) -> Int:
        """Return the thread of each of these calls."""
        found: Int = self.thread[values_at(self.template, rows)]
        return found


def lost(
    calls: Launching, call_of: LongColumn, process: npt.NDArray[Any], correlation: LongColumn,
) -> dict[int, tuple[int, int]]:
    """Return the launches without a kernel of each process that has such, and how many more were cut off with the capture.

    call_of: the call of each kernel (-1: none); process, correlation: of each kernel.
    """
    linked = np.zeros(len(calls.template), dtype=np.bool_)
    for some in row_chunks(len(call_of)):
        linked[call_of[some][call_of[some] >= 0]] = True
    rows = calls.rows((LAUNCH,), linked)
    rows = rows[~_has_kernel(calls, rows, process, correlation)]
    if len(rows):
        rows = rows[~_inside(calls, rows)]
    if len(rows) and len(marks := calls.rows((BEGIN, END))):
        rows = rows[~_captured(calls, rows, marks)]
    found = {}
    owner, start = calls.process[rows], values_at(calls.start, rows)
    for number in np.unique(owner).tolist():
        last = _last_start(calls, linked, number)
        mine = start[owner == number]
        without = int(np.count_nonzero((mine < last) | (last == MISSING)))
        if without:
            found[number] = without, len(mine) - without
    return found


def _last_start(calls: Launching, linked: Mask, process: int) -> int:
    """Return when the last call of a process began that has a kernel; MISSING where none has."""
    last = MISSING
    for some in row_chunks(len(linked)):
        mine = linked[some] & (calls.process[some] == process)
        last = max(last, int(calls.start[some][mine].max(initial=MISSING)))
    return last


def _has_kernel(calls: Launching, rows: Int, process: npt.NDArray[Any], correlation: LongColumn) -> Mask:
    """Return which of these calls a kernel names: a call within the one that it is linked to shares its id."""
    owner, ids = calls.process[rows], values_at(calls.correlation, rows)
    found = (ids == MISSING) | (ids == 0) | (values_at(calls.start, rows) == MISSING)
    wanted = np.unique(ids)
    named: set[tuple[int, int]] = set()
    for some in row_chunks(len(correlation)) if len(rows) else ():
        here = np.isin(correlation[some], wanted)
        named.update(zip(process[some][here].tolist(), correlation[some][here].tolist(), strict=True))
    pairs = zip(owner.tolist(), ids.tolist(), strict=True)
    return np.asarray(found | np.fromiter((pair in named for pair in pairs), np.bool_, len(rows)))


def _inside(calls: Launching, rows: Int) -> Mask:
    """Return which of these launches begin within another launch of their thread."""
    every = calls.rows((LAUNCH,))
    track = numbered(calls.process[every], calls.threads(every)).astype(np.int64)
    start = values_at(calls.start, every)
    order = np.lexsort((start, track))
    every, track, start = every[order], track[order], start[order]
    before = reached(start, start + np.maximum(values_at(calls.duration, every), 0), track)
    return np.isin(rows, every[start < before])


def _captured(calls: Launching, rows: Int, marks: Int) -> Mask:
    """Return which of these launches their thread made between the begin and the end of a stream capture."""
    captured = np.zeros(len(rows), dtype=np.bool_)
    codes, starts = calls.code[values_at(calls.template, marks)], values_at(calls.start, marks)
    owners, threads, begun = calls.process[rows], calls.threads(rows), values_at(calls.start, rows)
    track = np.stack([calls.process[marks], calls.threads(marks)])
    for process, thread in set(zip(*track.tolist(), strict=True)):
        here = np.flatnonzero((track[0] == process) & (track[1] == thread))
        here = here[np.argsort(starts[here], kind="stable")]
        mine = np.flatnonzero((owners == process) & (threads == thread))
        before = np.searchsorted(starts[here], begun[mine], side="right") - 1
        captured[mine] = (before >= 0) & (codes[here[np.maximum(before, 0)]] == BEGIN)
    return captured
