from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.normalise import MISSING, Calls, hash_of, launch_order, link

Int = np.int64


def _ints(*values: int | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([MISSING if v is None else v for v in values], dtype=np.int64)


def test_link_needs_process_and_correlation() -> None:
    calls = Calls(_ints(0, 1, 0), _ints(5, 5, 6), _ints(100, 200, 300), _ints(110, 210, None))
    found = link(_ints(0, 1, 1, 0, 0, 0), _ints(5, 5, 6, 0, None, 6), calls, _ints(150, None, 1, 1, 1, 400))
    assert found.call.tolist() == [0, 1, -1, -1, -1, 2]
    assert found.start.tolist() == [100, 200, MISSING, MISSING, MISSING, 300]
    assert found.queue_delay.tolist() == [40, MISSING, MISSING, MISSING, MISSING, MISSING]


def test_the_outer_of_two_calls_with_one_id_is_taken() -> None:
    calls = Calls(_ints(0, 0), _ints(5, 5), _ints(120, 100), _ints(130, 140))
    assert link(_ints(0), _ints(5), calls, _ints(150)).call.tolist() == [1]


@pytest.mark.parametrize("huge", [(1 << 60) + 1, -7])
def test_correlation_ids_out_of_range_still_link(huge: int) -> None:
    calls = Calls(_ints(0, 3), _ints(huge, 8), _ints(1, 2), _ints(3, 4))
    assert link(_ints(0, 3, 0), _ints(huge, 8, 8), calls, _ints(9, 9, 9)).call.tolist() == [0, 1, -1]


def test_launch_order_is_not_start_order() -> None:
    calls = Calls(_ints(0, 0, 0), _ints(1, 2, 3), _ints(10, 20, 30), _ints(11, 21, 31))
    process, correlation, start = _ints(0, 0, 0, 0), _ints(3, 1, 2, 1), _ints(40, 90, 50, 80)
    links = link(process, correlation, calls, start)
    order = launch_order(process, correlation, start, _ints(None, None, None, None), links, hash_of(["a", "a", "b", "a"])[:4])
    assert order.launch_index.tolist() == [3, 1, 2, 0], "graph launch 1 owns two kernels, ordered by start"


def test_a_kernel_without_its_call_is_placed_by_its_correlation_id() -> None:
    calls = Calls(_ints(0, 0), _ints(10, 30), _ints(100, 300), _ints(101, 301))
    process, correlation = _ints(0, 0, 0, 0), _ints(30, 20, 10, 5)
    start = _ints(310, 305, 110, 1)
    links = link(process, correlation, calls, start)
    order = launch_order(process, correlation, start, _ints(*[None] * 4), links, hash_of(["k"])[[0] * 4])
    assert order.launch_index.tolist() == [3, 2, 1, 0]
    assert order.nth.tolist() == [3, 2, 1, 0]


def test_ncu_rows_are_ordered_by_their_id() -> None:
    empty = _ints()
    process, none = _ints(0, 0, 1), _ints(None, None, None)
    links = link(process, none, Calls(empty, empty, empty, empty), none)
    order = launch_order(process, none, none, _ints(7, 2, 0), links, hash_of(["k", "k", "k"]))
    assert order.launch_index.tolist() == [1, 0, 0]
    assert order.place.tolist() == [1, 0, 2]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 50), st.integers(0, 3)), max_size=60))
def test_order_agrees_with_plain_python(rows: list[tuple[int, int, int, int]]) -> None:
    """Oracle: sort the same rows with Python's tuples."""
    calls = Calls(_ints(*[p for p in range(3) for _ in range(9)]), _ints(*[c for _ in range(3) for c in range(1, 10)]),
                  _ints(*[(c * 37) % 11 for _ in range(3) for c in range(1, 10)]), _ints(*[0] * 27))
    process, correlation, start = (_ints(*column) for column in (list(zip(*rows, strict=True)) or [()] * 4)[:3])
    kinds = [row[3] for row in rows]
    order = launch_order(process, correlation, start, _ints(*[None] * len(rows)), link(process, correlation, calls, start),
                         hash_of(["a", "b", "c", "d"])[np.array(kinds, dtype=np.int64)])
    def launch_time(row: tuple[int, int, int, int]) -> int:
        return (row[1] * 37) % 11 if row[1] else row[2]
    expected = sorted(range(len(rows)), key=lambda i: (rows[i][0], launch_time(rows[i]), rows[i][1], rows[i][2], i))
    assert np.argsort(order.place).tolist() == expected
    for place, index in enumerate(expected):
        before = expected[:place]
        assert order.launch_index[index] == sum(rows[i][0] == rows[index][0] for i in before)
        assert order.nth[index] == sum((rows[i][0], rows[i][3]) == (rows[index][0], rows[index][3]) for i in before)
