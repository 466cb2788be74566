"""Python frames: the tree of a few calls, and which frame launched what."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nsightlens as nl
from nsightlens.attribution import stacks
from nsightlens.attribution.stacks import SHORT, FrameCalls, Frames, Functions, Stacks
from nsightlens.columns.arrays import MISSING
from nsightlens.store.store import Store

Call = tuple[str, int, int]
"""Function, start, end; in ns."""


def _tree(calls: list[Call], track: int = 0) -> tuple[Stacks, Frames]:
    texts = tuple(dict.fromkeys(name for name, _, _ in calls))
    called = Functions(np.zeros(len(texts), dtype=np.int32), np.full(len(texts), 7, dtype=np.int64),
                       np.arange(len(texts), dtype=np.int32), texts)
    return stacks.stacks(FrameCalls(
        np.array([texts.index(name) for name, _, _ in calls], dtype=np.int32), np.full(len(calls), track, dtype=np.int32),
        np.array([start for _, start, _ in calls], dtype=np.int64),
        np.array([MISSING if end == MISSING else end - start for _, start, end in calls], dtype=np.int64)), called, base=100)


def _rows(frames: Frames) -> list[tuple[Any, ...]]:
    columns = frames.columns()
    names = ("frame_id", "parent_id", "last_id", "depth", "name", "recursive", "calls", "host_ns")
    return list(zip(*(columns[name].to_pylist() for name in names), strict=True))


def test_calls_of_a_function_from_one_place_are_one_frame() -> None:
    _, frames = _tree([("main", 0, 100), ("f", 10, 20), ("g", 12, 15), ("f", 30, 50), ("g", 60, 61)])
    assert _rows(frames) == [
        (100, None, 103, 0, "main", False, 1, 100), (101, 100, 102, 1, "f", False, 2, 30),
        (102, 101, 102, 2, "g", False, 1, 3), (103, 100, 103, 1, "g", False, 1, 1)]


def test_a_function_that_calls_itself_is_recursive_below_the_first() -> None:
    _, frames = _tree([("f", 0, 100), ("g", 10, 90), ("f", 20, 80), ("f", 30, 40), ("f", 200, 210)])
    found = [(row[4], row[5], row[6]) for row in _rows(frames)]
    assert found == [("f", False, 2), ("g", False, 1), ("f", True, 1), ("f", True, 1)]


def test_the_running_frame_is_the_innermost_at_that_time() -> None:
    found, frames = _tree([("main", 0, 100), ("f", 10, 20), ("f", 30, 30)])
    track = np.array([0, 0, 0, 0, 0, 0, 1, -1], dtype=np.int32)
    at = found.at(track, np.array([0, 10, 19, 20, 30, 100, 5, 5], dtype=np.int64))
    assert at.tolist() == [0, 1, 1, 0, 0, -1, -1, -1]
    assert found.at(track[:1], np.array([MISSING])).tolist() == [-1]
    assert len(frames.function) == 2


def test_calls_without_a_thread_or_an_end_are_left_out() -> None:
    assert not len(_tree([("f", 0, 10)], track=-1)[1].function)
    assert [row[4] for row in _rows(_tree([("f", 0, 10), ("g", 2, MISSING)])[1])] == ["f"]


def test_short_frames_in_which_nothing_is_used_are_left_out() -> None:
    _, frames = _tree([("main", 0, 10 * SHORT), ("short", 10, 19), ("inner", 11, 12), ("long", 30, 40), ("used", 50, 51)])
    used = np.array([False, False, False, False, True])
    kept, number = frames.without_short(used)
    assert [(row[:3], row[4]) for row in _rows(kept)] == [
        ((100, None, 102), "main"), ((101, 100, 101), "long"), ((102, 100, 102), "used")]
    assert number.tolist() == [0, -1, -1, 1, 2]


PID = 77


def _event(category: str, name: str, start: float, duration: float, thread: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": PID, "tid": thread, "ts": start, "dur": duration, "args": args}


def _launch(number: int, at: float, thread: int = 1) -> list[dict[str, Any]]:
    """A call of 1 us at `at`, and its kernel of `number` us."""
    kernel = _event("kernel", "k", at + 1000, number, 7, device=0, stream=7, correlation=number) | {"pid": 0}
    return [_event("cuda_runtime", "cudaLaunchKernel", at, 1, thread, correlation=number), kernel]


def _frame(name: str, start: float, duration: float, thread: int = 1) -> dict[str, Any]:
    return _event("python_function", name, start, duration, thread)


def _store(folder: Path, events: Iterable[dict[str, Any]]) -> Store:
    trace = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1_750_000_000 * 10**9, "traceEvents": [*events]}
    (folder / "trace.json").write_text(json.dumps(trace))
    return nl.ingest(folder / "trace.json", store=folder / "store", jobs=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return _store(tmp_path, [
        _frame("train.py(9): main", 0, 100), _frame("model.py(3): forward", 10, 20), _frame("nn.Module: Net_0", 11, 15),
        _event("cpu_op", "aten::mm", 12, 6, **{"Sequence number": 5, "External id": 1}), *_launch(1, 13),
        *_launch(2, 40), *_launch(4, 13, thread=3), *_launch(8, 200),
        _event("cpu_op", "MmBackward0", 20, 10, 2, **{"Sequence number": 5, "Fwd thread id": 1, "External id": 2}),
        *_launch(16, 21, thread=2),
        _event("kernel", "k", 3000, 32, 7, device=0, stream=7, correlation=99) | {"pid": 0},
    ])


def test_work_belongs_to_the_innermost_frame_or_to_that_of_the_forward_operator(store: Store) -> None:
    found = store.sql("SELECT k.correlation_id, f.name FROM kernels AS k LEFT JOIN frames AS f USING (frame_id) ORDER BY 1")
    assert list(zip(*found.to_pydict().values(), strict=True)) == [
        (1, "nn.Module: Net_0"), (2, "train.py(9): main"), (4, None), (8, None), (16, "nn.Module: Net_0"), (99, None)]


def test_time_by_frame_sums_to_all_gpu_work(store: Store) -> None:
    rows = {row["name"]: row for row in store.view("stack_summary").to_pylist()}
    gpu = {name: (row["gpu_self_ns"], row["gpu_total_ns"], row["backward_ns"]) for name, row in rows.items()}
    assert gpu == {
        "train.py(9): main": (2000, 19_000, 16_000), "model.py(3): forward": (0, 17_000, 16_000),
        "nn.Module: Net_0": (17_000, 17_000, 16_000), "(no stack)": (12_000, 12_000, 0), "(no call)": (32_000, 32_000, 0)}
    assert {row["process_gpu_ns"] for row in rows.values()} == {63_000}
    main = rows["train.py(9): main"]
    assert (main["file"], main["line"], main["function"], main["host_self_ns"]) == ("train.py", 9, "main", 80_000)
    assert (rows["nn.Module: Net_0"]["function"], rows["nn.Module: Net_0"]["host_self_ns"]) == (None, 15_000)


def test_operators_tell_where_they_were_called(store: Store) -> None:
    rows = {row["op"]: row for row in store.view("operator_call_sites").to_pylist()}
    stack = "nn.Module: Net_0;model.py(3): forward;train.py(9): main"
    assert {op: (row["call_site"], row["call_stack"], row["device_total_ns"]) for op, row in rows.items()} == {
        "aten::mm": ("nn.Module: Net_0", stack, 1000), "MmBackward0": ("nn.Module: Net_0", stack, 16_000)}


def test_a_trace_without_stacks_has_no_frames(tmp_path: Path) -> None:
    store = _store(tmp_path, [_event("cpu_op", "aten::mm", 1, 9), *_launch(1, 2)])
    assert not (store.path / "parts" / "frames").exists()
    assert not store.view("stack_summary").num_rows and not store.view("operator_call_sites").num_rows


# --- torch 1.8 to 1.10: no calls of functions, but the stack of each operator ---------------------------------------------------


def _operator(name: str, start: float, duration: float, stack: str = "", thread: int = 1, **args: Any) -> dict[str, Any]:
    return _event("Operator", name, start, duration, thread, **args | {"Call stack": stack} if stack else args)


def test_stacks_of_operators_are_a_tree_per_thread(tmp_path: Path) -> None:
    """Without calls of functions, nothing is known of how often and for how long the frames ran."""
    main, forward = "train.py(9): main", "model.py(3): forward;train.py(9): main"
    store = _store(tmp_path, [
        _operator("ProfilerStep#1", 0, 250, "profiler.py(7): step;train.py(9): main"),
        _operator("aten::linear", 10, 80, forward, **{"Sequence number": 5}), _operator("aten::mm", 12, 6), *_launch(1, 13),
        *_launch(2, 22), *_launch(4, 150), _operator("aten::zero_", 160, 0, main), _operator("aten::add", 200, 50, main),
        *_launch(8, 210), _operator("aten::relu", 300, 50, "f.py(1): f;f.py(1): f", thread=3), *_launch(16, 310, thread=3),
        _operator("MmBackward0", 400, 50, "", 2, **{"Sequence number": 5, "Fwd thread id": 1}), *_launch(32, 410, thread=2)])
    frames = store.sql("SELECT f.thread, p.name AS outer_name, f.name, f.depth, f.recursive, f.calls, f.host_ns FROM frames AS f "
                       "LEFT JOIN frames AS p ON p.frame_id = f.parent_id ORDER BY f.frame_id").to_pylist()
    assert [tuple(row.values()) for row in frames] == [
        (1, None, "train.py(9): main", 0, False, None, None),
        (1, "train.py(9): main", "model.py(3): forward", 1, False, None, None),
        (3, None, "f.py(1): f", 0, False, None, None), (3, "f.py(1): f", "f.py(1): f", 1, True, None, None)]
    gpu = {row["name"]: (row["gpu_self_ns"], row["gpu_total_ns"], row["calls"], row["host_total_ns"])
           for row in store.view("stack_summary").to_pylist()}
    assert gpu == {"model.py(3): forward": (35_000, 35_000, None, None), "train.py(9): main": (8_000, 43_000, None, None),
                   "f.py(1): f": (16_000, 16_000, None, None), "(no stack)": (4_000, 4_000, None, None)}
    sites = {row["op"]: (row["call_stack"], row["calls"], row["device_total_ns"]) for row in
             store.view("operator_call_sites").to_pylist()}
    assert sites == {"aten::linear": (forward, 1, 3_000), "aten::mm": (forward, 1, 1_000), "aten::add": (main, 1, 8_000),
                     "aten::zero_": (main, 1, 0), "MmBackward0": (forward, 1, 32_000),
                     "aten::relu": ("f.py(1): f;f.py(1): f", 1, 16_000)}


def test_calls_of_functions_go_before_the_stacks_of_operators(tmp_path: Path) -> None:
    store = _store(tmp_path, [_frame("called.py(1): f", 0, 100), _operator("aten::mm", 1, 9, "told.py(1): f"), *_launch(1, 2)])
    assert store.sql("SELECT name, calls FROM frames").to_pylist() == [{"name": "called.py(1): f", "calls": 1}]


def test_stacks_are_stored_once_however_many_operators_have_them(tmp_path: Path) -> None:
    stacks_ = [f"inner.py({number % 3}): f;outer.py(1): g" for number in range(3_000)]
    store = _store(tmp_path, [_operator("aten::mm", 10 * at, 5, stack) for at, stack in enumerate(stacks_)])
    assert store.sql("SELECT count(*) AS n FROM frames").to_pylist() == [{"n": 4}]
