"""What lies around a launch: rules on small traces, and the simulated run's truth."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.places import ROOT
from tests.readers.nsys_report import base, call, global_pid, kernel, span, strings, write

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"

PID = 77
_DIMS: dict[str, Any] = {"Input Dims": [[1, 2], []]}
FORWARD = "SELECT b.name, f.name FROM ranges AS b JOIN ranges AS f ON f.range_id = b.forward_id ORDER BY b.start_ns"
WORK = "SELECT launch_id, step, phase, op, op_shapes, module, range_path FROM kernels ORDER BY start_ns"


def _event(category: str, name: str, start: float, duration: float, thread: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": PID, "tid": thread, "ts": start, "dur": duration, "args": args}


def _op(name: str, start: float, duration: float, *, thread: int = 1, **args: Any) -> dict[str, Any]:
    return _event("cpu_op", name, start, duration, thread, **args)


def _note(name: str, start: float, duration: float, thread: int = 1) -> dict[str, Any]:
    return _event("user_annotation", name, start, duration, thread)


def _module(name: str, start: float, duration: float, thread: int = 1) -> dict[str, Any]:
    return _event("python_function", f"nn.Module: {name}", start, duration, thread)


def _launch(number: int, at: float, thread: int = 1, kernels: int = 1, **args: Any) -> list[dict[str, Any]]:
    """A call of 1 us at `at` and the kernels that it launches, 1000 us later."""
    call = _event("cuda_runtime", "cudaLaunchKernel", at, 1, thread, correlation=number)
    return [call, *(_kernel(number, at + 1000 + i, **args) for i in range(kernels))]


def _kernel(number: int, at: float, **args: Any) -> dict[str, Any]:
    made = _event("kernel", "k", at, 0.5, 7, device=0, stream=7, correlation=number, **args)
    return made | {"pid": 0}


def _store(folder: Path, events: Iterable[dict[str, Any]]) -> Store:
    trace = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1_750_000_000 * 10**9, "traceEvents": [*events]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trace.json").write_text(json.dumps(trace))
    return nl.ingest(folder / "trace.json", store=folder / "store", jobs=1)


def _rows(store: Store, query: str = WORK) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in store.sql(query).columns), strict=True))


def test_operator_shapes_module_and_path_are_the_innermost_around_the_call(tmp_path: Path) -> None:
    store = _store(tmp_path, [
        _note("ProfilerStep#4", 0, 100), _note("run", 1, 90), _module("Net_0", 2, 50), _module("Conv2d_1", 3, 20),
        _op("aten::conv2d", 4, 10, **_DIMS), _op("aten::cudnn", 5, 5), *_launch(1, 6), *_launch(2, 12),
        *_launch(3, 30), *_launch(4, 60), *_launch(5, 99.5), *_launch(6, 200), *_launch(7, 8, thread=2),
    ])
    found = [row[1:] for row in _rows(store, WORK.replace("start_ns", "correlation_id"))]
    path = "run / nn.Module: Net_0 / nn.Module: Conv2d_1"
    assert found == [
        (4, "forward", "aten::cudnn", None, "nn.Module: Conv2d_1", f"{path} / aten::conv2d / aten::cudnn"),
        (4, "forward", "aten::conv2d", "[[1, 2], []]", "nn.Module: Conv2d_1", f"{path} / aten::conv2d"),
        (4, "forward", None, None, "nn.Module: Net_0", "run / nn.Module: Net_0"),
        (4, None, None, None, None, "run"),
        (4, None, None, None, None, None),
        (None, None, None, None, None, None),
        (4, None, None, None, None, None),
    ]


def test_keys_lead_to_the_ranges(tmp_path: Path) -> None:
    store = _store(tmp_path, [
        _note("ProfilerStep#4", 0, 100), _note("run", 1, 90), _op("a", 2, 9), _note("in", 3, 5), *_launch(1, 4)])
    assert _rows(store, """
        SELECT r.name, o.name, s.name, c.range_id = k.range_id, c.op_range_id = k.op_range_id FROM kernels AS k
        JOIN ranges AS r ON r.range_id = k.range_id JOIN ranges AS o ON o.range_id = k.op_range_id
        JOIN ranges AS s ON s.range_id = k.step_id JOIN api_calls AS c USING (launch_id)""") == [
            ("in", "a", "ProfilerStep#4", True, True)]
    assert _rows(store, """
        SELECT r.name, p.name, r.depth, o.name FROM ranges AS r LEFT JOIN ranges AS p ON p.range_id = r.parent_id
        LEFT JOIN ranges AS o ON o.range_id = r.op_parent_id ORDER BY r.start_ns""") == [
            ("ProfilerStep#4", None, 0, None), ("run", "ProfilerStep#4", 1, None), ("a", "run", 2, None), ("in", "a", 3, "a")]


def test_all_kernels_of_a_graph_launch_have_the_origin_of_the_call(tmp_path: Path) -> None:
    store = _store(tmp_path, [_op("replay", 0, 10), *_launch(1, 1, kernels=5)])
    assert [row[3] for row in _rows(store)] == ["replay"] * 5
    assert _rows(store, "SELECT count(DISTINCT launch_id), count(launch_id) FROM kernels") == [(1, 5)]


def test_an_external_id_stands_in_for_a_call_that_was_not_recorded(tmp_path: Path) -> None:
    store = _store(tmp_path, [
        _note("ProfilerStep#4", 0, 100), _module("Net_0", 1, 60), _op("a", 2, 9, **{"External id": 5}),
        _note("note", 20, 9) | {"args": {"External id": 6}},
        _kernel(1, 1000, **{"External id": 5}), _kernel(2, 1001, **{"External id": 6}), _kernel(3, 1002, **{"External id": 7}),
        *_launch(4, 3, thread=9, **{"External id": 5}),
    ])
    assert [row[1:] for row in _rows(store)] == [
        (4, "forward", "a", None, "nn.Module: Net_0", "nn.Module: Net_0 / a"), (None,) * 6, (None,) * 6,
        (4, "forward", "a", None, "nn.Module: Net_0", "nn.Module: Net_0 / a"),
    ]


BACKWARD: dict[str, Any] = {"Sequence number": 8, "Fwd thread id": 1}
AUTOGRAD = "autograd::engine::evaluate_function: "


def test_backward_work_knows_its_forward_operator_and_module(tmp_path: Path) -> None:
    store = _store(tmp_path, [
        _op("aten::to", 0, 1, **{"Sequence number": 8}), *_launch(1, 0.2),  # the number is peeked at, no node is made
        _module("Linear_3", 2, 20), _op("aten::linear", 3, 9, **{"Sequence number": 8}),
        _op("aten::addmm", 4, 5, **{"Sequence number": 8}), *_launch(2, 5), *_launch(3, 15),
        _op(f"{AUTOGRAD}AddmmBackward0", 50, 20, thread=2, **BACKWARD), _op("AddmmBackward0", 51, 18, thread=2, **BACKWARD),
        _op("aten::mm", 52, 5, thread=2), *_launch(4, 53, thread=2),
        _op(f"{AUTOGRAD}torch::autograd::AccumulateGrad", 80, 9, thread=2), *_launch(5, 81, thread=2),
    ])
    assert [(row[2], row[3], row[5]) for row in _rows(store)] == [
        (None, "aten::to", None), ("forward", "aten::addmm", "nn.Module: Linear_3"), ("forward", None, "nn.Module: Linear_3"),
        ("backward", "aten::mm", "nn.Module: Linear_3"), ("backward", f"{AUTOGRAD}torch::autograd::AccumulateGrad", None)]
    assert _rows(store, FORWARD) == [
        (f"{AUTOGRAD}AddmmBackward0", "aten::addmm"), ("AddmmBackward0", "aten::addmm")]


def test_forward_operators_without_a_module_are_forward_where_a_backward_one_is_theirs(tmp_path: Path) -> None:
    store = _store(tmp_path, [
        _op("aten::linear", 3, 9, **{"Sequence number": 8}), *_launch(1, 3.5),
        _op("aten::addmm", 4.5, 5, **{"Sequence number": 8}), *_launch(2, 5),
        _op("aten::relu", 15, 5, **{"Sequence number": 9}), *_launch(3, 16),
        _op("AddmmBackward0", 51, 18, thread=2, **BACKWARD),
    ])
    assert [row[2] for row in _rows(store)] == ["forward", "forward", None]


@pytest.mark.parametrize(("other", "expected"), [
    ([], "first"),
    ([("aten::mul", 1, 3)], None),  # now both threads have as many: nothing is certain
])
def test_the_forward_thread_is_that_which_shares_most_numbers(tmp_path: Path, other: list[Any], expected: str | None) -> None:
    numbered = [("aten::mul", 1, 2), *other]
    store = _store(tmp_path, [
        *(_op(name, 10 * n, 1, thread=5, **{"Sequence number": n}) for name, n in (("first", 2), ("first", 3))),
        *(_op(name, 10 * n + 5, 1, thread=6, **{"Sequence number": n}) for name, _, n in numbered),
        *(_op("MulBackward0", 100 + n, 0.5, thread=9, **{"Sequence number": n, "Fwd thread id": 1}) for n in (2, 3)),
    ])
    found = _rows(store, "SELECT f.name FROM ranges AS b LEFT JOIN ranges AS f ON f.range_id = b.forward_id "
                         "WHERE b.name = 'MulBackward0' ORDER BY b.start_ns")
    assert found == [(expected,)] * 2


PHASES_BY_NAME = [
    (["Optimizer.step#SGD.step"], "optimizer"), (["Optimizer.zero_grad#SGD.zero_grad"], "optimizer"),
    (["## optimizer ##"], "optimizer"),
    (["## Forward ##"], "forward"), (["DistributedDataParallel.forward"], "forward"), (["my_backward_pass"], "backward"),
    (["forward_backward"], None), (["forwards"], None), (["Backwardness"], None), (["train"], None),
    (["backward", "forward"], "backward"), (["optimizer", "forward"], "forward"), (["forward", "optimizer"], "optimizer"),
    (["forward", "train"], "forward"),
]
"""Annotations around an operator, from the outermost, and the phase of its launch."""


def test_phases_by_name(tmp_path: Path) -> None:
    events = []
    for at, (names, _) in zip(count(0, 100), PHASES_BY_NAME, strict=False):
        events += [_note(name, at + n, 50 - 2 * n) for n, name in enumerate(names)]
        events += [_op("aten::slow_conv_backward", at + 10, 10), *_launch(at + 1, at + 11)]
    phases = [row[2] for row in _rows(_store(tmp_path, events))]
    assert [(names, phase) for (names, _), phase in zip(PHASES_BY_NAME, phases, strict=True)] == PHASES_BY_NAME


PHASES_BY_OPERATOR = [
    ("torch::autograd::AccumulateGrad", "backward"), ("CudnnBatchNormBackward", "backward"), ("AddmmBackward0", "backward"),
    ("autograd::engine::evaluate_function: X", "backward"), ("Optimizer.step#SGD.step", "optimizer"),
    ("aten::convolution_backward", None), ("forward", None), ("my::BackwardOp", None),
]


def test_phases_by_operator(tmp_path: Path) -> None:
    """Each on a thread of its own: on one, a backward operator would make those before it forward."""
    events = [event for n, (name, _) in enumerate(PHASES_BY_OPERATOR)
              for event in (_op(name, 100 * n, 10, thread=n), *_launch(n + 1, 100 * n + 1, thread=n))]
    phases = [row[2] for row in _rows(_store(tmp_path, events))]
    assert [(name, phase) for (name, _), phase in zip(PHASES_BY_OPERATOR, phases, strict=True)] == PHASES_BY_OPERATOR


def test_a_step_inside_a_step_is_an_annotation(tmp_path: Path) -> None:
    store = _store(tmp_path, [_note("ProfilerStep#1", 0, 50), _note("ProfilerStep#7", 10, 5), _note("ProfilerStep#2", 50, 50),
                              *_launch(1, 11), *_launch(2, 50), *_launch(3, 49.9), *_launch(4, 100)])
    assert [row[1] for row in _rows(store)] == [1, 1, 2, None]
    assert _rows(store, "SELECT kind, name, step FROM ranges ORDER BY start_ns") == [
        ("step", "ProfilerStep#1", 1), ("annotation", "ProfilerStep#7", None), ("step", "ProfilerStep#2", 2)]


def test_allocations_know_their_operator(tmp_path: Path) -> None:
    def memory(at: float, thread: int = 1) -> dict[str, Any]:
        return {"ph": "i", "name": "[memory]", "pid": PID, "tid": thread, "ts": at, "s": "t",
                "args": {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 4}}

    store = _store(tmp_path, [_op("a", 0, 10), _op("b", 2, 3), memory(1), memory(2), memory(5), memory(3, thread=2), memory(10)])
    assert _rows(store, "SELECT a.at_ns % 1000000, thread, name FROM (SELECT at_ns, thread, op_range_id FROM allocations) AS a "
                        "LEFT JOIN (SELECT range_id, name FROM ranges) ON range_id = op_range_id ORDER BY at_ns, thread") == [
        (1000, 1, "a"), (2000, 1, "b"), (3000, 2, None), (5000, 1, "a"), (10000, 1, None)]


def test_windows_of_one_process_are_apart(tmp_path: Path) -> None:
    memory = {"ph": "i", "name": "[memory]", "pid": PID, "tid": 1, "ts": 3, "s": "t",
              "args": {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 4}}
    for window in (0, 1):
        trace = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": (1_750_000_000 + 60 * window) * 10**9,
                 "host_name": "node1", "traceEvents": [
            _note(f"ProfilerStep#{window}", 0, 100), _op(f"op{window}", 2, 9), memory, *_launch(window + 1, 4)]}
        (tmp_path / f"trace{window}.json").write_text(json.dumps(trace))
    store = nl.ingest([tmp_path / "trace0.json", tmp_path / "trace1.json"], store=tmp_path / "store", run="one", jobs=1)
    assert _rows(store, "SELECT windows FROM profiles") == [(2,)]
    assert _rows(store, "SELECT window_index, step, op FROM kernels ORDER BY start_ns") == [(0, 0, "op0"), (1, 1, "op1")]
    assert _rows(store, """
        SELECT k.window_index, o.name, s.name, p.name, l.name FROM kernels AS k JOIN ranges AS o ON o.range_id = k.op_range_id
        JOIN ranges AS s ON s.range_id = k.step_id JOIN ranges AS p ON p.range_id = o.parent_id
        JOIN allocations AS a ON a.window_index = k.window_index JOIN ranges AS l ON l.range_id = a.op_range_id
        ORDER BY 1""") == [
            (n, f"op{n}", f"ProfilerStep#{n}", f"ProfilerStep#{n}", f"op{n}") for n in (0, 1)]


def test_deep_stacks_have_a_bounded_path(tmp_path: Path) -> None:
    store = _store(tmp_path, [*(_note(f"n{n}", n, 400 - 2 * n) for n in range(100)), *_launch(1, 150)])
    (path,) = [row[6] for row in _rows(store)]
    assert path.split(" / ") == [*(f"n{n}" for n in range(64)), "..."]


def test_work_with_no_range_around_it_stands_beside_work_with_one(tmp_path: Path) -> None:
    store = _store(tmp_path, [*_launch(1, 0), _note("late", 50, 9), *_launch(2, 51)])
    assert [row[1:] for row in _rows(store)] == [(None,) * 6, (None,) * 5 + ("late",)]


def _nsys(folder: Path, ranges: list[dict[str, Any]], calls: list[dict[str, Any]]) -> Store:
    folder.mkdir(parents=True, exist_ok=True)
    kernels = [kernel(5000 + n, 5001 + n, correlationId=one["correlationId"]) for n, one in enumerate(calls)]
    path = write(folder / "report.sqlite", base(
        StringIds=strings("k", "k", "cudaLaunchKernel_v7000"), CUPTI_ACTIVITY_KIND_KERNEL=kernels,
        CUPTI_ACTIVITY_KIND_RUNTIME=calls, NVTX_EVENTS=ranges))
    return nl.ingest(path, store=folder / "store", jobs=1)


def test_ids_that_two_processes_use_lead_to_neither(tmp_path: Path) -> None:
    """GPU work of a trace does not tell its process: where calls or operators of two have its id, nothing is known."""
    first = [_op("aten::a", 0, 50, **{"External id": 5}), *_launch(1, 10), *_launch(2, 20)]
    calls = [_op("aten::b", 0, 50, **{"External id": 5}), _launch(1, 10)[0], _launch(3, 30)[0]]
    second = [event | {"pid": 78} for event in calls]
    lost = _kernel(9, 2000, **{"External id": 5})
    store = _store(tmp_path, [*first, *second, _kernel(3, 1500), lost])
    rows = store.sql("SELECT correlation_id, launch_id IS NOT NULL AS is_linked, op FROM kernels ORDER BY start_ns").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, False, None), (2, True, "aten::a"), (3, False, None), (9, False, None)]
    assert store.sql("SELECT message FROM diagnostics WHERE code = 'several_processes'").num_rows == 1
    alone = _store(tmp_path / "alone", [*first, lost]).sql("SELECT op FROM kernels ORDER BY start_ns")["op"].to_pylist()
    assert alone == ["aten::a"] * 3


def test_nvtx_ranges_by_thread(tmp_path: Path) -> None:
    one, two = global_pid(7) + 1, global_pid(7) + 2
    store = _nsys(tmp_path, [
        span(0, None, text="never closed", globalTid=one),
        span(10, 50, eventType=60, text="both", globalTid=one, endGlobalTid=two),
        span(12, None, eventType=34, text="mark", globalTid=one),
        span(20, 90, text="step 4", globalTid=two),
        span(30, 40, text="aten::add, seq = 3, op_id = 7, sizes = [[2], [2]]", globalTid=two),
    ], [call(at, at + 1, correlationId=number, globalTid=thread) for number, (at, thread) in enumerate(
        [(5, one), (11, one), (35, two), (60, one), (95, two)], 1)])
    assert [row[1:] for row in _rows(store)] == [
        (None, None, None, None, None, "never closed"),
        (None, None, None, None, None, "never closed / both"),
        (4, None, "aten::add", "[[2], [2]]", None, "aten::add"),
        (4, None, None, None, None, "never closed"),
        (None, None, None, None, None, None),
    ]
    assert _rows(store, "SELECT r.name, p.name, r.depth FROM ranges AS r LEFT JOIN ranges AS p ON p.range_id = r.parent_id "
                        "WHERE r.kind = 'nvtx_mark'") == [("mark", "both", 2)]


def test_nvtx_of_autograd_links_without_a_thread_number_where_one_thread_alone_has_the_sequence(tmp_path: Path) -> None:
    one, two, three = (global_pid(7) + n for n in (1, 2, 3))
    store = _nsys(tmp_path, [
        span(10, 20, text="nn.Module: Linear_0", globalTid=one),
        span(11, 19, text="aten::linear, seq = 5", globalTid=one), span(12, 18, text="aten::addmm, seq = 5", globalTid=one),
        span(13, 14, text="aten::mul, seq = 6", globalTid=one), span(13, 14, text="aten::mul, seq = 6", globalTid=three),
        span(40, 60, text=f"{AUTOGRAD}AddmmBackward0, seq = 5", globalTid=two),
        span(41, 59, text="AddmmBackward0, seq = 5", globalTid=two), span(42, 50, text="aten::mm, seq = 5", globalTid=two),
        span(70, 80, text=f"{AUTOGRAD}MulBackward0, seq = 6", globalTid=two),
    ], [call(45, 46, correlationId=1, globalTid=two), call(75, 76, correlationId=2, globalTid=two)])
    assert [row[2:6] for row in _rows(store)] == [
        ("backward", "aten::mm", None, "nn.Module: Linear_0"), ("backward", f"{AUTOGRAD}MulBackward0", None, None)]
    assert _rows(store, FORWARD) == [
        (f"{AUTOGRAD}AddmmBackward0", "aten::addmm"), ("AddmmBackward0", "aten::addmm")]


def test_nvtx_of_recomputed_operators(tmp_path: Path) -> None:
    """Reentrant checkpointing: forward and backward once more inside of a backward operator, with numbers of that thread."""
    one, two = global_pid(7) + 1, global_pid(7) + 2
    store = _nsys(tmp_path, [
        span(10, 11, text="aten::first, seq = 1", globalTid=one), span(12, 13, text="CheckpointFunction, seq = 2", globalTid=one),
        span(30, 90, text=f"{AUTOGRAD}CheckpointFunctionBackward, seq = 2", globalTid=two),
        span(31, 89, text="CheckpointFunctionBackward, seq = 2", globalTid=two),
        span(40, 41, text="aten::again, seq = 1", globalTid=two),
        span(50, 60, text=f"{AUTOGRAD}AgainBackward0, seq = 1", globalTid=two),
        span(51, 59, text="AgainBackward0, seq = 1", globalTid=two),
        span(95, 99, text=f"{AUTOGRAD}FirstBackward0, seq = 1", globalTid=two),
    ], [call(52, 53, correlationId=1, globalTid=two), call(40, 41, correlationId=2, globalTid=two)])
    assert _rows(store, FORWARD) == [
        (f"{AUTOGRAD}CheckpointFunctionBackward", "CheckpointFunction"), ("CheckpointFunctionBackward", "CheckpointFunction"),
        (f"{AUTOGRAD}AgainBackward0", "aten::again"), ("AgainBackward0", "aten::again"),
        (f"{AUTOGRAD}FirstBackward0", "aten::first")]
    assert [row[2:4] for row in _rows(store)] == [("backward", "AgainBackward0"), ("backward", "aten::again")]


def test_nested_steps_of_nvtx(tmp_path: Path) -> None:
    one, two = global_pid(7) + 1, global_pid(7) + 2
    store = _nsys(tmp_path, [
        span(0, 50, text="step 1", globalTid=one), span(10, 20, text="iter 9", globalTid=one),
        span(0, 50, text="step 1", globalTid=two), span(60, 70, text="iter 9", globalTid=one),
    ], [call(15, 16, correlationId=1, globalTid=one)])
    assert [row[1] for row in _rows(store)] == [1]
    assert _rows(store, "SELECT kind, name, step FROM ranges ORDER BY start_ns, range_id") == [
        ("step", "step 1", 1), ("annotation", "step 1", None), ("annotation", "iter 9", None), ("step", "iter 9", 9)]


# The simulated run


def _truth(name: str) -> list[dict[str, str]]:
    text = gzip.decompress((RUN / "truth" / name).read_bytes()).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


@pytest.fixture(scope="module")
def simulated(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.mark.parametrize("tool", ["kineto", "nsys"])
def test_the_truth_of_the_simulated_run(simulated: Store, tool: str) -> None:
    """All launches agree. nsys saw the outer operators only, and its texts name modules in a way that is not certain."""
    told = {"kineto": ("step", "phase", "op", "module"), "nsys": ("step", "phase", "outer_op")}[tool]
    found = {(r["rank"], r["correlation_id"], r["graph_node_id"] or 0): r for r in simulated.sql(
        f"SELECT *, op AS outer_op FROM kernels WHERE tool = '{tool}'").to_pylist()}
    seen = 0
    for launch in _truth("launches.tsv.gz"):
        if launch[f"in_{tool}"] == "1":
            key = int(launch["rank"]), int(launch[f"{tool}_correlation"]), int(launch[f"{tool}_graph_node_id"] or 0)
            row = found[key]
            assert [str(row[name]) if row[name] is not None else "" for name in told] == [launch[name] for name in told], launch
            seen += 1
    assert seen == len(found) > 2000


def test_coverage_of_the_simulated_run(simulated: Store) -> None:
    rows = simulated.view("attribution_coverage").to_pylist()
    for tool in ("kineto", "nsys"):
        for rank in (0, 1):
            launches = [row for row in _truth("launches.tsv.gz") if row[f"in_{tool}"] == "1" and row["rank"] == str(rank)]
            copies = [row for row in _truth("memory_ops.tsv.gz") if row[f"in_{tool}"] == "1" and row["rank"] == str(rank)]
            shares = {row["attributed_to"]: row for row in rows if (row["tool"], row["rank"]) == (tool, rank)}
            assert {row["all_activities"] for row in shares.values()} == {len(launches) + len(copies)}
            assert shares["step"]["activities"] == sum(row["step"] != "" for row in launches + copies)
            assert shares["phase"]["activities"] >= sum(row["phase"] != "" for row in launches)
