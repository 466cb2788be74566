"""Events that cannot be as they are recorded: twice, before their own launch, on a clock that is off."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsightlens as nl
from nsightlens.store.store import Store
from tests.captures import GEMM, kineto

OTHER = "void at::native::vectorized_elementwise_kernel<4>(int)"


def _store(folder: Path, change: Any, kernels: int = 8) -> Store:
    """Return the store of a trace of kernels of 20 us, 100 us apart, whose list of GPU kernels `change` was given."""
    path = kineto(folder / "run" / "r.json", [(GEMM if n % 2 else OTHER, 1000.0 + 100 * n, 20.0) for n in range(kernels)])
    trace = json.loads(path.read_text())
    work = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    change(work)
    trace["traceEvents"] = [*(event for event in trace["traceEvents"] if event.get("cat") != "kernel"), *work]
    path.write_text(json.dumps(trace))
    return nl.ingest(folder / "run", store=folder / "store", jobs=1)


def _said(store: Store) -> dict[str, int]:
    rows = store.sql("SELECT code, count FROM diagnostics WHERE severity <> 'info'").to_pylist()
    return {row["code"]: row["count"] for row in rows}


def _span(store: Store) -> dict[str, Any]:
    rows: list[dict[str, Any]] = store.sql(
        "SELECT kernels, kernel_ns, gpu_last_ns - gpu_first_ns AS span_ns FROM profiles").to_pylist()
    return rows[0]


def test_kernels_that_stand_there_twice_count_once(tmp_path: Path) -> None:
    with _store(tmp_path, lambda work: work.extend(json.loads(json.dumps(work[2:5])))) as store:
        assert _span(store) == {"kernels": 8, "kernel_ns": 160_000, "span_ns": 720_000}
        assert store.sql("SELECT count(DISTINCT kernel_id) AS ids, count(*) AS rows FROM kernels").to_pylist() == [
            {"ids": 8, "rows": 8}]
        assert _said(store) == {"repeated_events": 3}


def test_kernels_of_a_graph_that_differ_in_nothing_are_two(tmp_path: Path) -> None:
    """In whole microseconds two nodes of a graph may look the same: another of that launch stands there once."""
    def change(work: list[dict[str, Any]]) -> None:
        twin = json.loads(json.dumps(work[2]))
        work[3]["args"]["correlation"] = twin["args"]["correlation"]
        work.append(twin)

    with _store(tmp_path, change) as store:
        assert (_span(store)["kernels"], "repeated_events" in _said(store)) == (9, False)


@pytest.mark.parametrize(("early_us", "left_out"), [(100_000_000, True), (1_100, True), (200, False)])
def test_records_far_before_their_launch_are_in_no_span(tmp_path: Path, early_us: int, left_out: bool) -> None:
    with _store(tmp_path, lambda work: [event.update(ts=event["ts"] - early_us) for event in work[6:]]) as store:
        starts = store.sql("SELECT count(start_ns) AS n FROM kernels").to_pylist()[0]["n"]
        assert starts == (6 if left_out else 8)
        assert _span(store)["span_ns"] == 520_000
        assert _said(store) == {"start_before_launch": 2}
        (busy,) = store.view("busy_time").to_pylist()
        assert busy["span_ns"] == _span(store)["span_ns"]


def test_a_clock_that_is_off_for_all_is_said_with_the_shift(tmp_path: Path) -> None:
    with _store(tmp_path, lambda work: [event.update(ts=event["ts"] - 10_000) for event in work]) as store:
        assert _said(store) == {"gpu_clock_behind": 8}
        assert "9,995.000 us" in store.sql("SELECT message FROM diagnostics WHERE severity <> 'info'").to_pylist()[0]["message"]
        assert _span(store) == {"kernels": 8, "kernel_ns": 160_000, "span_ns": 720_000}


@settings(max_examples=12)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=12), st.sets(st.integers(0, 11), max_size=3))
def test_what_is_counted_does_not_depend_on_damage(
    tmp_path_factory: pytest.TempPathFactory, copies: list[int], off: set[int],
) -> None:
    """Random jobs: each kernel stands there up to four times, some of a minority 1e14 ns off."""
    off = {place for place in off if place < len(copies)} if 2 * len(off) < len(copies) else set()

    def change(work: list[dict[str, Any]]) -> None:
        for place in off:
            work[place]["ts"] -= 100_000_000_000
        work.extend(json.loads(json.dumps(event)) for event, more in zip(list(work), copies, strict=True) for _ in range(more))

    with _store(tmp_path_factory.mktemp("damage"), change, len(copies)) as store:
        sound = [place for place in range(len(copies)) if place not in off]
        assert _span(store) == {"kernels": len(copies), "kernel_ns": 20_000 * len(copies),
                                "span_ns": 100_000 * (sound[-1] - sound[0]) + 20_000}
        expected = Counter({"repeated_events": sum(copies), "start_before_launch": len(off)})
        assert _said(store) == dict(+expected)
