"""Projected ranges by name, against sums worked out by hand."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

from nsightlens.analyses import nvtx_gpu_projection
from tests.catalogs import asking, catalog


def test_ranges_of_one_name_are_a_row_whatever_their_process() -> None:
    """Each range launches one kernel, whose duration is the number of the range."""
    tables: dict[str, list[dict[str, Any]]] = {"ranges": [], "api_calls": [], "kernels": []}
    expected: Counter[tuple[Any, ...]] = Counter()
    names = product(("a", "b"), ("p", "q"), ("nvtx_push_pop", "nvtx_start_end"), (None, "net", "data"), ("x", "y", "z", "x"))
    for number, (run, process, kind, domain, name) in enumerate(names, 1):
        where = {"tool": "nsys", "run": run, "profile_id": run, "process_id": run + process, "start_ns": 10 * number}
        tables["ranges"].append(where | {"range_id": number, "kind": kind, "domain": domain, "name": name, "duration_ns": 9,
                                         "thread": 1})
        tables["api_calls"].append(where | {"launch_id": number, "duration_ns": 1, "thread": 1})
        tables["kernels"].append(where | {"kernel_id": number, "launch_id": number, "duration_ns": number})
        expected[run, kind, domain, name] += number
    connection = catalog(**tables)
    ask = asking(connection)
    rows = nvtx_gpu_projection.analyse(ask).to_pylist()
    assert {tuple(row[key] for key in ("run", "kind", "domain", "name")): row["total_ns"] for row in rows} == expected
    assert [row["instances"] for row in rows] == [4 if row["name"] == "x" else 2 for row in rows]
