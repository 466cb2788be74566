"""GPU work -> its launching call, and the order of launches.

Everything works on narrow integer arrays of one profile, in O(n log n), and in O(n) where ids and times are as tools write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import MISSING, Int, Mask, Places, row_chunks, split
from nsightlens.columns.spilled import ColumnBuilder, LongColumn, SpillFolder, values_at, whole

_KEY_BITS = 44
_TABLE_PER_CALL = 4
"""Entries, 4 bytes each, that a table by correlation id may have per call."""
_TABLE_ANYWAY = 1 << 18
"""Entries that it may have besides."""
_NESTED_NS = 2_000
"""By how much a call inside another may seem to begin after its end, where times are cut to whole microseconds."""


@dataclass(frozen=True)
class ApiCalls:
    """The API calls of a profile: process, correlation id, start, duration and External id, in the order of their rows."""

    process: npt.NDArray[Any]
    correlation: LongColumn
    start: LongColumn
    duration: LongColumn
    external_id: LongColumn

    @cached_property
    def table(self) -> Directory | None:
        """The directory of the calls as a table, for all work that is looked up in it; None where ids are too sparse for that."""
        return _directory(self) if len(self.process) else None

    @cached_property
    def used_again(self) -> dict[int, _Calls]:
        """The calls that share process and correlation id with an earlier one, none inside another, by row of the first."""
        return _used_again(self, self.table or _sorted_directory(self, self.correlation)) if len(self.process) else {}


@dataclass(frozen=True, slots=True)
class Launched:
    """Per row of GPU work: the row of its launching call (-1: none), that call's start, and start of the work minus end of
    the call (both MISSING: unknown)."""

    call: LongColumn
    start: LongColumn
    queue_delay: LongColumn


def link(
    process: npt.NDArray[Any], correlation: LongColumn, calls: ApiCalls, work_start: LongColumn, external_id: LongColumn,
    folder: SpillFolder,
) -> Launched:
    """Return the launching call of each row: the same process and correlation id (0 and NULL link to nothing).

    Where a runtime call and the driver call inside it share an id, the outer (earlier) one is taken; of several calls one after
    the other, that with the External id of the work, else the last that began before the work. What is long is spilled to the
    folder.
    """
    found, starts, delays = ColumnBuilder(folder, np.int32), ColumnBuilder(folder), ColumnBuilder(folder)
    directory = (calls.table or _sorted_directory(calls, correlation)) if len(process) and len(calls.process) else None
    again = calls.used_again if directory else {}
    for some in row_chunks(len(process)):
        size = some.stop - some.start
        call = directory(process[some], correlation[some]) if directory else np.full(size, -1, dtype=np.int32)
        if again:
            _choose(call, again, work_start[some], external_id[some])
        linked = np.flatnonzero(call >= 0)
        found.add(call)
        call = call[linked]
        begin, duration = values_at(calls.start, call), values_at(calls.duration, call)
        start, delay = np.full(size, MISSING), np.full(size, MISSING)
        start[linked] = begin
        known = (begin != MISSING) & (duration != MISSING)
        wanted = work_start[some][linked]
        known &= wanted != MISSING
        delay[linked[known]] = wanted[known] - (begin[known] + duration[known])
        starts.add(start)
        delays.add(delay)
    return Launched(found.column(), starts.column(), delays.column())


def used_by_several(owner: npt.NDArray[Any], ids: npt.NDArray[Any]) -> Mask:
    """Return which rows have an id that rows of another owner have too."""
    order = np.lexsort((owner, ids))
    again = (ids[order][1:] == ids[order][:-1]) & (owner[order][1:] != owner[order][:-1])
    return np.isin(ids, ids[order][1:][again])


_Calls = tuple[Int, Int, Int]
"""Calls with one id, one after the other: start, External id and row of each."""


def _used_again(calls: ApiCalls, directory: Directory) -> dict[int, _Calls]:
    """Return the calls that share process and correlation id with an earlier one, none inside another, by row of the first."""
    firsts, others = [], []
    for some in row_chunks(len(calls.process)):
        first = directory(calls.process[some], calls.correlation[some])
        row = np.arange(some.start, some.stop)
        at = np.flatnonzero((first >= 0) & (first != row))
        firsts.append(first[at].astype(np.int64))
        others.append(row[at])
    first, row = np.concatenate(firsts), np.concatenate(others)
    end = values_at(calls.start, first) + np.maximum(values_at(calls.duration, first), 0) + _NESTED_NS
    at = np.flatnonzero((values_at(calls.start, first) != MISSING) & (values_at(calls.start, row) > end))
    found = {}
    for of, rows in split(row[at], first[at]):
        rows = np.append(rows, of)
        start, external_id = values_at(calls.start, rows), values_at(calls.external_id, rows)
        order = np.argsort(start, kind="stable")
        found[of] = start[order], external_id[order], rows[order]
    return found


def _choose(call: Places, again: Mapping[int, _Calls], work_start: Int, external_id: Int) -> None:
    """Put in the place of each first call with an id that others have, too, the one that launched the work."""
    for place in np.flatnonzero(np.isin(call, list(again))).tolist():
        start, ids, rows = again[int(call[place])]
        alike = np.flatnonzero((ids == external_id[place]) & (ids != MISSING))
        among = alike if len(alike) else np.arange(len(rows))
        begun = among[start[among] <= work_start[place]]
        call[place] = rows[begun[-1] if len(begun) else among[0]]


Directory = Callable[[npt.NDArray[Any], npt.NDArray[Any]], Places]
"""Processes and correlation ids -> the row of the call of each, -1 where there is none."""


def _directory(calls: ApiCalls) -> Directory | None:
    """Return the directory as a table by process and correlation id; None where the ids are too sparse for that."""
    low, high = _id_range(calls.correlation)
    width = high - low + 1
    size = (int(calls.process.max()) + 1) * width
    if size > _TABLE_PER_CALL * len(calls.process) + _TABLE_ANYWAY:
        return None
    table = np.full(max(size, 1), -1, dtype=np.int32)

    def places(process: npt.NDArray[Any], correlation: npt.NDArray[Any]) -> tuple[Int, Mask]:
        """Return the place in the table of each, and whether it has one."""
        known = (correlation >= low) & (correlation <= high) & (correlation != 0)
        place = process.astype(np.int64) * width
        place += np.where(known, correlation, low)
        place -= low
        known &= place < size
        place[~known] = 0
        return place, known

    def find(process: npt.NDArray[Any], correlation: npt.NDArray[Any]) -> Places:
        place, known = places(process, correlation)
        found = table[place]
        found[~known] = -1
        return found

    _fill(table, calls, places)
    return find


def _fill(
    table: Places, calls: ApiCalls, places: Callable[[npt.NDArray[Any], npt.NDArray[Any]], tuple[Int, Mask]],
) -> None:
    """Write the row of each call to its place; of several with one place, that of the earliest, then of the first."""
    chunks = list(row_chunks(len(calls.process)))
    for some in reversed(chunks):  # the last assignment stays: that of the first row
        place, known = places(calls.process[some], calls.correlation[some])
        rows = np.flatnonzero(known)[::-1]
        table[place[rows]] = rows + some.start
    again = []
    for some in chunks:
        place, known = places(calls.process[some], calls.correlation[some])
        rows = np.flatnonzero(known & (table[place] != np.arange(some.start, some.start + len(place))))
        again.append(np.stack([place[rows], rows + some.start]))
    place, row = np.concatenate(again, axis=1)
    if len(row):
        shared = np.unique(place)
        place, row = np.concatenate([shared, place]), np.concatenate([table[shared], row])
        order = np.lexsort((row, values_at(calls.start, row), place))[::-1]
        table[place[order]] = row[order]


def _id_range(correlation: LongColumn) -> tuple[int, int]:
    """Return the least and the greatest correlation id (1, 0: there is none)."""
    least, greatest = [], []
    for some in row_chunks(len(correlation)):
        ids = correlation[some]
        if int(ids.min()) == MISSING:
            ids = ids[ids != MISSING]
        if len(ids):
            least.append(int(ids.min()))
            greatest.append(int(ids.max()))
    return (min(least), max(0, *greatest)) if least else (1, 0)


def _sorted_directory(calls: ApiCalls, wanted: LongColumn) -> Directory:
    """Return the directory as keys in order, for correlation ids of any size; `wanted`: those that will be looked up."""
    correlation = whole(calls.correlation)
    numbers = _numbers(whole(wanted), correlation)
    ordered = _keys(calls.process, correlation, numbers)
    order = np.argsort(ordered, kind="stable")
    ascending = ordered[order]
    if bool((ascending[1:] == ascending[:-1]).any()):
        order = np.lexsort((whole(calls.start), ordered))
        ascending = ordered[order]

    def find(process: npt.NDArray[Any], correlation: npt.NDArray[Any]) -> Places:
        key = _keys(process, correlation, numbers)
        at = np.minimum(np.searchsorted(ascending, key), len(ascending) - 1)
        return np.where((ascending[at] == key) & (key >= 0), order[at], -1).astype(np.int32)

    return find


def _numbers(one: Int, other: Int) -> Int | None:
    """Return the distinct correlation ids where some do not fit into a key as they are."""
    extremes = [int(extreme) for ids in (one, other) if len(ids)
                for extreme in (ids.min(initial=0, where=ids != MISSING), ids.max())]
    if min(extremes) >= 0 and max(extremes) < 1 << _KEY_BITS:
        return None
    return np.unique(np.concatenate([one, other]))


def _keys(process: npt.NDArray[Any], correlation: Int, numbers: Int | None) -> Int:
    """Return one integer per (process, correlation); -1 where there is no id."""
    unlinked = (correlation == MISSING) | (correlation == 0)
    key = process.astype(np.int64) << _KEY_BITS
    key |= correlation if numbers is None else np.searchsorted(numbers, correlation)
    key[unlinked] = -1
    return key


@dataclass(frozen=True, slots=True)
class Order:
    """Per kernel row: its place in the launch order of the profile, of its process, and among its like; all from 0."""

    place: Places
    launch_index: Places
    nth: Places


def launch_order(
    process: npt.NDArray[Any], time: LongColumn, correlation: LongColumn, start: LongColumn, ncu_id: LongColumn,
) -> Places | None:
    """Return the rows in the order of launch, None where they stand in it: by process, launch time, correlation id, start,
    ncu's ID, row."""
    order = None
    same, descends = _steps(process, time, order)
    if descends:  # rows of several processes often are in order within each
        time = whole(time)
        order = np.argsort(_narrow_codes(process), kind="stable").astype(np.int32)
        same, descends = _steps(process, time, order)
    if descends:
        order = np.lexsort((whole(time), process)).astype(np.int32)
        same, _ = _steps(process, time, order)
    if same:
        order = np.lexsort((whole(ncu_id), whole(start), whole(correlation), whole(time), process)).astype(np.int32)
    return order


def number_launches(process: npt.NDArray[Any], order: Places | None, like: Places) -> Order:
    """Return the numbers of rows in the order of `launch_order`. like: the same number, from 0, for rows of one process with
    the same key and configuration."""
    place = np.arange(len(process), dtype=np.int32)
    if order is not None:
        place[order] = np.arange(len(process), dtype=np.int32)
    nth = _count_before(like, order)
    if not len(process) or process.min() == process.max():
        return Order(place, place, nth)
    before = (np.cumsum(counts := np.bincount(process)) - counts).astype(np.int32)
    return Order(place, place - before[process], nth)


def _steps(process: npt.NDArray[Any], time: LongColumn, order: Places | None) -> tuple[bool, bool]:
    """Return whether two neighbours in `order` are equal in process and time, and whether one is greater than the next."""
    same = descends = False
    for stretch in row_chunks(len(process) - 1):
        some = slice(stretch.start, stretch.stop + 1)
        one, when = (process[some], time[some]) if order is None else (process[order[some]], values_at(time, order[some]))
        together = one[1:] == one[:-1]
        same |= bool((together & (when[1:] == when[:-1])).any())
        descends |= bool(((one[1:] < one[:-1]) | (together & (when[1:] < when[:-1]))).any())
    return same, descends


def launch_time(process: npt.NDArray[Any], correlation: LongColumn, start: LongColumn, launched: Launched) -> LongColumn:
    """Return the launch time of each kernel: when its call began.

    A kernel whose call was not recorded takes the latest launch time among smaller correlation ids of its process, since
    these ids grow with the calls; without a correlation id it takes its own start.
    """
    if not any((launched.start[some] == MISSING).any() for some in row_chunks(len(process))):
        return launched.start
    time, ids = whole(launched.start).copy(), whole(correlation)
    unlinked = time == MISSING
    numbered = (ids != MISSING) & (ids != 0)
    alone = unlinked & ~numbered
    if alone.any():
        time[alone] = whole(start)[alone]
    for one in np.unique(process[unlinked & numbered]):
        rows = np.flatnonzero((process == one) & numbered)
        rows = rows[np.argsort(ids[rows], kind="stable")]
        time[rows] = np.where(unlinked[rows], np.maximum.accumulate(time[rows]), time[rows])
    return time


def _count_before(group: Places, order: Places | None) -> Places:
    """Return for each row how many rows of its group come before it in `order` (None: as they stand)."""
    count = np.empty(len(group), dtype=np.int32)
    seen = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int32)
    for stretch in row_chunks(len(group)):
        rows = order[stretch] if order is not None else stretch
        some = group[rows]
        by_group = np.argsort(_narrow_codes(some), kind="stable")
        ascending = some[by_group]
        begins = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
        sizes = np.diff(begins, append=len(some)).astype(np.int32)
        groups = ascending[begins]
        before = np.arange(len(some), dtype=np.int32)
        before += np.repeat(seen[groups] - begins.astype(np.int32), sizes)
        seen[groups] += sizes
        within = np.empty(len(some), dtype=np.int32)
        within[by_group] = before
        count[rows] = within
    return count


def _narrow_codes(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the codes, none negative, in 16 bits where they fit: those are sorted digit by digit, in linear time."""
    return codes.astype(np.uint16) if len(codes) == 0 or codes.max() < 1 << 16 else codes
