"""Kernels by the ranges around their launch, against rows worked out by hand and a plain loop."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from nsightlens.analyses import nvtx_kernel_summary
from tests.catalogs import asking, catalog, rows_of

WHERE = {"run": "base", "tool": "nsys", "profile_id": "P", "process_id": "p"}


def summed(**tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    connection = catalog(**{name: [row | WHERE for row in rows] for name, rows in tables.items()},
                         processes=[{"profile_id": "P", "process_id": "p", "pid": 77, "rank": 3}])
    ask = asking(connection)
    rows: list[dict[str, Any]] = nvtx_kernel_summary.analyse(ask).to_pylist()
    return rows


def test_a_kernel_counts_in_every_range_around_its_call() -> None:
    ranges = rows_of("ranges", """thread,start_ns,duration_ns,depth,kind,name,range_id
1,0,100,0,nvtx_push_pop,outer,1
1,10,20,1,nvtx_push_pop,inner,2
1,40,20,1,nvtx_push_pop,inner,3
1,5,70,1,nvtx_start_end,crosses,4
1,20,,1,nvtx_push_pop,never closed,5
2,0,100,0,nvtx_push_pop,another thread,6""")
    calls = rows_of("api_calls", """launch_id,thread,start_ns,duration_ns
1,1,12,2
2,1,45,2
3,1,58,4
4,1,200,2""")
    kernels = rows_of("kernels", """launch_id,duration_ns,name,kernel_id
1,10,gemm,1
2,20,gemm,2
3,30,copy,3
4,40,gemm,4
,50,gemm,5""")
    rows = summed(ranges=ranges, api_calls=calls, kernels=kernels)
    keys = ("thread", "name", "kernel", "total_ns", "instances", "ranges", "median_ns")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (None, None, "gemm", 50, 1, 0, 50.0), (1, None, "gemm", 40, 1, 0, 40.0), (1, "inner", "gemm", 30, 2, 2, 15.0),
        (1, "outer", "copy", 30, 1, 1, 30.0), (1, "outer", "gemm", 30, 2, 1, 15.0), (1, "crosses", "copy", 30, 1, 1, 30.0),
        (1, "crosses", "gemm", 30, 2, 1, 15.0)]
    assert {(row["rank"], row["pid"]) for row in rows} == {(3, 77)}


def test_it_is_what_a_plain_loop_finds() -> None:
    """Random ranges, nested and crossing, of few names."""
    generator = np.random.default_rng(13)
    spans = zip(*(generator.integers(low, high, 80).tolist() for low, high in ((0, 1000), (1, 400), (0, 4))), strict=True)
    ranges: list[dict[str, Any]] = [
        {"thread": 1, "start_ns": start, "duration_ns": length, "depth": depth, "kind": "nvtx_push_pop", "name": f"r{start % 5}",
         "range_id": number} for number, (start, length, depth) in enumerate(spans)]
    calls: list[dict[str, Any]] = [{"thread": 1, "launch_id": number, "start_ns": int(start), "duration_ns": 3}
             for number, start in enumerate(generator.integers(0, 1300, 100))]
    kernels: list[dict[str, Any]] = [
        {"launch_id": number, "kernel_id": number, "name": f"k{number % 3}", "duration_ns": length}
        for number, length in enumerate(generator.integers(1, 90, 100).tolist())]
    expected: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for call, kernel in zip(calls, kernels, strict=True):
        around = [row["name"] for row in ranges if row["start_ns"] <= call["start_ns"]
                  and row["start_ns"] + row["duration_ns"] >= call["start_ns"] + 3]
        for name in around or [None]:
            expected[name, kernel["name"]].append(kernel["duration_ns"])
    found = {(row["name"], row["kernel"]): (row["instances"], row["total_ns"]) for row in summed(
        ranges=ranges, api_calls=calls, kernels=kernels)}
    assert found == {key: (len(values), sum(values)) for key, values in expected.items()}
