"""What one tool recorded of a process: tokens of launches, and the step of a call whose kernel is missing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from nsightlens.matching.launch_sequence import recorded, tokens
from nsightlens.matching.ncu_positions import UNKNOWN
from nsightlens.matching.sequence_alignment import HOLE
from tests.catalogs import catalog

SIZES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
Row = tuple[str | int | None, ...]


def launches(rows: list[Row]) -> pa.Table:
    """Return launches given as key, grid_x, grid_y, registers and shared bytes."""
    names = ("kernel_key", "grid_x", "grid_y", "registers_per_thread", "shared_bytes")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    types = {"kernel_key": pa.string()} | dict.fromkeys((*SIZES, "registers_per_thread", "shared_bytes"), pa.int64())
    return pa.table({name: pa.array(columns.get(name, [1] * len(rows)), type_) for name, type_ in types.items()})


def alike(one: list[Row], other: list[Row]) -> list[tuple[int, int]]:
    mine, theirs = tokens(launches(one), launches(other))
    return [(int(i), int(j)) for i, j in np.argwhere(mine[:, None] == theirs)]


def test_launches_have_one_token_where_key_and_configuration_are_the_same() -> None:
    for sizes in ((1, 2, 3), (1, 2, 3, 4), (None, 1, 2), (None, 1, 2, 3)):
        rows: list[Row] = [*product(("a", "b", "c"), sizes, sizes, (8, 16, 32), (0, 64))]
        assert alike(rows, rows[::-1]) == [(i, len(rows) - 1 - i) for i in range(len(rows))], sizes


def test_resources_count_where_both_know_them() -> None:
    one: list[Row] = [("a", 1, 1, 8, 64), ("a", 1, 1, 9, 64)]
    assert alike(one, [("a", 1, 1, 8, 64)]) == [(0, 0)]
    assert alike(one, [("a", 1, 1, None, 64)]) == [(0, 0), (1, 0)]


def test_a_launch_without_a_key_is_like_no_other() -> None:
    rows: list[Row] = [(None, 1, 1, 8, 0), ("a", 1, 1, 8, 0), (None, 1, 1, 8, 0), ("b", 1, 1, 8, 0)]
    assert alike(rows, rows) == [(1, 1), (3, 3)]
    assert alike(rows[:1], rows[1:2]) == []


def test_a_call_without_a_kernel_is_of_the_step_in_which_it_began() -> None:
    of = {"process_id": "p:0", "profile_id": "p"}
    times = [50, 100, 199, 200, 250, 300]
    calls = [{**of, "launch_id": i, "name": "cudaLaunchKernel", "start_ns": time} for i, time in enumerate(times)]
    steps = [{**of, "range_id": step, "kind": "step", "step": step, "start_ns": 100 * step, "duration_ns": duration}
             for step, duration in ((1, 100), (3, 50))]
    connection = catalog(kernels=[{**of, "kernel_id": 7, "launch_index": 0, "start_ns": 0}], api_calls=calls, ranges=steps)
    found = recorded(lambda query, values: connection.sql(query, params=values).to_arrow_table(), of)
    assert found.place.tolist() == [0] + [HOLE] * 6
    assert found.step.tolist() == [UNKNOWN, UNKNOWN, 1, 1, UNKNOWN, UNKNOWN, 3]
