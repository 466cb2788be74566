"""The pace of ranges: numbers, periods and projections, by hand."""

from __future__ import annotations

from typing import Any

from nsightlens.analyses import range_pace
from tests.catalogs import asking, catalog

WHERE = {"run": "base", "tool": "nsys", "profile_id": "P"}


def _range(number: int, process: str, name: str, start: int, length: int | None, **others: Any) -> dict[str, Any]:
    return WHERE | {"process_id": process, "range_id": number, "kind": "nvtx_push_pop", "name": name, "thread": 1,
                    "start_ns": start, "duration_ns": length} | others


RANGES = [
    _range(1, "p", "step", 100, 40), _range(3, "p", "step", 350, None), _range(2, "p", "step", 150, 30, thread=2),
    _range(4, "p", "load", 120, 5), _range(5, "p", "step", 90, 500, domain="data"), _range(6, "q", "step", 500, 10),
    _range(7, "q", "step", 500, 0, kind="nvtx_mark"),
]
PROCESSES = [WHERE | {"process_id": "p", "rank": 3}]
NAMES = ("rank", "process_id", "domain", "name", "nth", "start_ns", "duration_ns", "period_ns", "range_id")


def _rows(projected: bool, **tables: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = range_pace.analyse(asking(catalog(**tables)), projected=projected).to_pylist()
    return [tuple(row[name] for name in NAMES) for row in found]


def test_each_process_and_name_has_its_own_count() -> None:
    assert _rows(False, ranges=RANGES, processes=PROCESSES) == [
        (3, "p", "data", "step", 0, 90, 500, None, 5),
        (3, "p", None, "load", 0, 120, 5, None, 4),
        (3, "p", None, "step", 0, 100, 40, None, 1),
        (3, "p", None, "step", 1, 150, 30, 50, 2),
        (3, "p", None, "step", 2, 350, None, 200, 3),
        (None, "q", None, "step", 0, 500, 10, None, 6),
    ]


def test_projections_have_the_times_of_the_gpu() -> None:
    calls = [WHERE | {"process_id": "p", "launch_id": number, "thread": thread, "start_ns": start, "duration_ns": 1}
             for number, thread, start in ((1, 1, 110), (2, 2, 160))]
    kernels = [WHERE | {"process_id": "p", "kernel_id": number, "launch_id": number, "start_ns": start, "duration_ns": 7}
               for number, start in ((1, 300), (2, 310))]
    rows = _rows(True, ranges=RANGES, processes=PROCESSES, api_calls=calls, kernels=kernels)
    assert rows == [
        (3, "p", "data", "step", 0, 300, 7, None, 5),
        (3, "p", None, "step", 0, 300, 7, None, 1),
        (3, "p", None, "step", 1, 310, 7, 10, 2),
    ]


def test_without_ranges_there_is_no_row() -> None:
    assert _rows(False) == _rows(True) == []
