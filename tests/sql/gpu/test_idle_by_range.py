"""Idle time inside ranges against sets of nanoseconds, on random work and ranges."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from tests.catalogs import catalog

FIRST_NS, LAST_NS = -20, 330


def covered(rows: list[dict[str, Any]], **of: str) -> set[int]:
    """Return the nanoseconds inside the rows that are as asked."""
    mine = [row for row in rows if all(row[name] == value for name, value in of.items())]
    return {row["start_ns"] + passed for row in mine for passed in range(row["duration_ns"])}


@pytest.mark.parametrize("seed", range(20))
def test_idle_time_is_that_of_a_plain_count(seed: int) -> None:
    dice = random.Random(seed)
    head = {"run": "r", "tool": "nsys", "profile_id": "P"}
    kernels: list[dict[str, Any]] = [
        {**head, "process_id": dice.choice("pq"), "window_index": 0, "device_id": dice.choice("gh"), "kernel_id": number,
         "name": "k", "start_ns": dice.randrange(300), "duration_ns": dice.randrange(1, 20)}
        for number in range(dice.randrange(2, 40))]
    ranges: list[dict[str, Any]] = [
        {**head, "process_id": dice.choice("pq"), "range_id": number, "kind": "nvtx_push_pop",
         "name": dice.choice("abc"), "start_ns": dice.randrange(FIRST_NS, LAST_NS), "duration_ns": dice.randrange(1, 60)}
        for number in range(dice.randrange(1, 40))]
    expected: set[tuple[Any, ...]] = set()
    for process, device in product("pq", "gh"):
        busy = covered(kernels, process_id=process, device_id=device)
        idle = set(range(min(busy, default=0), max(busy, default=0))) - busy
        for name in "abc":
            inside = covered(ranges, process_id=process, name=name)
            if inside & idle:
                expected.add((process, device, name, len(inside & idle), len(inside), len(idle)))
        if outside := idle - covered(ranges, process_id=process):
            expected.add((process, device, "(in no range)", len(outside), None, len(idle)))
    query = "SELECT process_id, device_id, name, idle_ns, inside_ns, gpu_idle_ns FROM idle_by_range()"
    assert set(catalog(kernels=kernels, ranges=ranges).execute(query).fetchall()) == expected
