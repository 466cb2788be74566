from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.attribution import launch_correlation
from nsightlens.attribution.launch_correlation import ApiCalls, Launched, Order, launch_order, launch_time, number_launches
from nsightlens.columns import arrays
from nsightlens.columns.arrays import MISSING
from nsightlens.columns.spilled import SpilledColumn, SpillFolder

Int = np.int64


def link(process: Any, correlation: Any, calls: ApiCalls, start: Any, external_id: Any = None) -> Any:
    """Return the launching calls; each column is put on disk in parts, and read from there."""
    external_id = np.full(len(process), MISSING) if external_id is None else external_id
    with tempfile.TemporaryDirectory() as folder:
        spill = SpillFolder(Path(folder))
        recorded = (calls.correlation, calls.start, calls.duration, calls.external_id, correlation, start, external_id)
        correlations, starts, durations, externals, correlation_of, start_of, external_of = (
            _spilled(spill, column) for column in recorded)
        onto = ApiCalls(calls.process, correlations, starts, durations, externals)
        found = launch_correlation.link(process, correlation_of, onto, start_of, external_of, spill)
        in_memory = launch_correlation.link(process, correlation, calls, start, external_id, spill)
        for name in ("call", "start", "queue_delay"):
            assert getattr(found, name).tolist() == getattr(in_memory, name).tolist()
        return found


def _spilled(folder: SpillFolder, values: Any) -> SpilledColumn:
    column = folder.column()
    for first in range(0, len(values), 7):
        column.append(values[first : first + 7])
    return column


def ordered(process: Any, correlation: Any, start: Any, ncu_id: Any, links: Launched, like: Any) -> Order:
    """Return the numbers of the launches in their order. like: any number per row."""
    time = launch_time(process, correlation, start, links)
    alike = list(zip(process.tolist(), np.asarray(like).tolist(), strict=True))
    numbers = {one: number for number, one in enumerate(dict.fromkeys(alike))}
    like = np.array([numbers[one] for one in alike], dtype=np.int32)
    return number_launches(process, launch_order(process, time, correlation, start, ncu_id), like)


def without_ids(process: Any, correlation: Any, start: Any, duration: Any) -> ApiCalls:
    """Return calls that have no External id."""
    return ApiCalls(process, correlation, start, duration, np.full(len(process), MISSING))


def _ints(*values: int | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([MISSING if v is None else v for v in values], dtype=np.int64)


def test_link_needs_process_and_correlation() -> None:
    calls = without_ids(_ints(0, 1, 0), _ints(5, 5, 6), _ints(100, 200, 300), _ints(10, 10, None))
    found = link(_ints(0, 1, 1, 0, 0, 0), _ints(5, 5, 6, 0, None, 6), calls, _ints(150, None, 1, 1, 1, 400))
    assert found.call.tolist() == [0, 1, -1, -1, -1, 2]
    assert found.start.tolist() == [100, 200, MISSING, MISSING, MISSING, 300]
    assert found.queue_delay.tolist() == [40, MISSING, MISSING, MISSING, MISSING, MISSING]


def test_the_outer_of_two_calls_with_one_id_is_taken() -> None:
    calls = without_ids(_ints(0, 0), _ints(5, 5), _ints(120, 100), _ints(10, 40))
    assert link(_ints(0), _ints(5), calls, _ints(150)).call.tolist() == [1]


def test_of_calls_with_one_id_the_last_before_the_work_launched_it() -> None:
    calls = without_ids(_ints(0, 0, 1), _ints(5, 5, 5), _ints(100_000, 500_000, 1), _ints(4000, 4000, 1))
    found = link(_ints(0, 0, 0, 0), _ints(5, 5, 5, 5), calls, _ints(200_000, 600_000, 500_000, 50_000))
    assert found.call.tolist() == [0, 1, 1, 0], "that before all of them is left with the first"
    assert found.queue_delay.tolist() == [96_000, 96_000, -4000, -54_000]


def test_of_calls_with_one_id_that_with_the_external_id_of_the_work_launched_it() -> None:
    calls = ApiCalls(_ints(0, 0), _ints(5, 5), _ints(100_000, 500_000), _ints(4000, 4000), _ints(2, 3))
    found = link(_ints(0, 0, 0), _ints(5, 5, 5), calls, _ints(700_000, 800_000, 900_000), _ints(2, 3, 9))
    assert found.call.tolist() == [0, 1, 1]


def test_windows_of_a_process_may_use_all_ids_again() -> None:
    calls = ApiCalls(_ints(0, 0), _ints(5, 5), _ints(100_000, 500_000), _ints(4000, 4000), _ints(2, 2))
    found = link(_ints(0, 0), _ints(5, 5), calls, _ints(200_000, 600_000), _ints(2, 2))
    assert found.call.tolist() == [0, 1]


@pytest.mark.parametrize("huge", [(1 << 60) + 1, -7])
def test_correlation_ids_out_of_range_still_link(huge: int) -> None:
    calls = without_ids(_ints(0, 3), _ints(huge, 8), _ints(1, 2), _ints(2, 2))
    assert link(_ints(0, 3, 0), _ints(huge, 8, 8), calls, _ints(9, 9, 9)).call.tolist() == [0, 1, -1]


def test_launch_order_is_not_start_order() -> None:
    calls = without_ids(_ints(0, 0, 0), _ints(1, 2, 3), _ints(10, 20, 30), _ints(1, 1, 1))
    process, correlation, start = _ints(0, 0, 0, 0), _ints(3, 1, 2, 1), _ints(40, 90, 50, 80)
    links = link(process, correlation, calls, start)
    order = ordered(process, correlation, start, _ints(None, None, None, None), links, _ints(0, 0, 1, 0))
    assert order.launch_index.tolist() == [3, 1, 2, 0], "graph launch 1 owns two kernels, ordered by start"


def test_a_kernel_without_its_call_is_placed_by_its_correlation_id() -> None:
    calls = without_ids(_ints(0, 0), _ints(10, 30), _ints(100, 300), _ints(1, 1))
    process, correlation = _ints(0, 0, 0, 0), _ints(30, 20, 10, 5)
    start = _ints(310, 305, 110, 1)
    links = link(process, correlation, calls, start)
    order = ordered(process, correlation, start, _ints(*[None] * 4), links, _ints(0, 0, 0, 0))
    assert order.launch_index.tolist() == [3, 2, 1, 0]
    assert order.nth.tolist() == [3, 2, 1, 0]


def test_ncu_rows_are_ordered_by_their_id() -> None:
    empty = _ints()
    process, none = _ints(0, 0, 1), _ints(None, None, None)
    links = link(process, none, without_ids(empty, empty, empty, empty), none)
    order = ordered(process, none, none, _ints(7, 2, 0), links, _ints(0, 0, 0))
    assert order.launch_index.tolist() == [1, 0, 0]
    assert order.place.tolist() == [1, 0, 2]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 50), st.integers(0, 3)), max_size=60))
def test_order_agrees_with_plain_python(rows: list[tuple[int, int, int, int]]) -> None:
    """Oracle: sort the same rows with Python's tuples."""
    calls = without_ids(_ints(*[p for p in range(3) for _ in range(9)]), _ints(*[c for _ in range(3) for c in range(1, 10)]),
                  _ints(*[(c * 37) % 11 for _ in range(3) for c in range(1, 10)]), _ints(*[0] * 27))
    process, correlation, start = (_ints(*column) for column in (list(zip(*rows, strict=True)) or [()] * 4)[:3])
    kinds = [row[3] for row in rows]
    order = ordered(process, correlation, start, _ints(*[None] * len(rows)), link(process, correlation, calls, start),
                         np.array(kinds, dtype=np.int64))
    def launch_time(row: tuple[int, int, int, int]) -> int:
        return (row[1] * 37) % 11 if row[1] else row[2]
    expected = sorted(range(len(rows)), key=lambda i: (rows[i][0], launch_time(rows[i]), rows[i][1], rows[i][2], i))
    assert np.argsort(order.place).tolist() == expected
    for place, index in enumerate(expected):
        before = expected[:place]
        assert order.launch_index[index] == sum(rows[i][0] == rows[index][0] for i in before)
        assert order.nth[index] == sum((rows[i][0], rows[i][3]) == (rows[index][0], rows[index][3]) for i in before)


def _expected_calls(process: list[int], correlation: list[int], calls: list[tuple[int, int, int]]) -> list[int]:
    """Return the row of each launching call, found by looking at every call: (process, correlation, start)."""
    found = []
    for one, number in zip(process, correlation, strict=True):
        rows = [row for row, call in enumerate(calls) if call[:2] == (one, number) and number not in (0, MISSING)]
        found.append(min(rows, key=lambda row: (calls[row][2], row), default=-1))
    return found


@pytest.mark.parametrize("numbers", [
    range(12), range(-3, 9), range(5, 4000), [0, MISSING], [7], range(1, 1 << 62, 1 << 57), [0, 1, MISSING, 1 << 45, -1 << 62],
    [MISSING, 3, (1 << 63) - 1, -(1 << 63) + 1], range(1 << 44, (1 << 44) + 20),
])
@pytest.mark.parametrize("processes", [1, 3])
def test_calls_are_found_whatever_their_ids(numbers: Sequence[int], processes: int) -> None:
    source = random.Random(f"{list(numbers)[:5]} {processes}")
    for _ in range(8):
        calls = [(source.randrange(processes), source.choice(numbers), source.choice([MISSING, 1, 2, 3, 10])) for _ in range(60)]
        work = [(source.randrange(processes + 1), source.choice([*list(numbers)[:50], 0, MISSING, 1, 2, 99])) for _ in range(40)]
        process, correlation = (np.array(values, dtype=np.int64) for values in zip(*work, strict=True))
        one, number, start = (np.array(values, dtype=np.int64) for values in zip(*calls, strict=True))
        found = link(process.astype(np.int32), correlation, without_ids(one.astype(np.int32), number, start, start), correlation)
        assert found.call.tolist() == _expected_calls(process.tolist(), correlation.tolist(), calls)


def test_order_of_launch_is_by_process_then_time_whatever_the_order_of_rows() -> None:
    source = random.Random(5)
    for spread in (1, 4, 1000):
        process = np.array([source.randrange(3) for _ in range(300)], dtype=np.int32)
        start = np.array([10 * row + source.randrange(-spread, spread) for row in range(300)], dtype=np.int64)
        nothing = np.full(300, MISSING)
        links = Launched(np.full(300, -1, dtype=np.int32), nothing, nothing)
        like = np.array([source.randrange(4) for _ in range(300)])
        order = ordered(process, nothing, start, nothing, links, like)
        rows = sorted(range(300), key=lambda row: (process[row], start[row], row))
        assert np.argsort(order.place).tolist() == rows
        counted: Counter[tuple[int, ...]] = Counter()
        for row in rows:
            assert order.launch_index[row] == counted[process[row],]
            assert order.nth[row] == counted[process[row], like[row]]
            counted[process[row],] += 1
            counted[process[row], like[row]] += 1


@pytest.mark.parametrize("groups", [1, 5, 100_000])
def test_likes_are_counted_over_stretches(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 64)
    source = random.Random(groups)
    like = np.array([source.randrange(groups) for _ in range(1000)], dtype=np.int32)
    shuffled = np.array(source.sample(range(1000), 1000), dtype=np.int32)
    for order in (None, shuffled):
        nth = number_launches(np.zeros(1000, dtype=np.int32), order, like).nth
        counted: Counter[int] = Counter()
        for row in range(1000) if order is None else order.tolist():
            assert nth[row] == counted[like[row]]
            counted[like[row]] += 1
