"""Python frames of real captures, against stacks that are worked out here event by event."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.places import ROOT

KINETO = ROOT.parent / "shared" / "data" / "kineto"
NAMES = ("AMD-AGI__TraceLens__b200__eager_trace_rank0.json.gz", "AMD-AGI__TraceLens__h100__Qwen1.5-0.5B.json.gz",
         "AMD-AGI__TraceLens__h100__bert-small.json.gz", "AMD-AGI__TraceLens__h100__owlv2-large.json.gz",
         "AMD-AGI__TraceLens__mi300__ddp_resnet18_no_pool.json.gz", "AMD-AGI__TraceLens__mi300__sglang_decode_hipgraph.json.gz",
         "AMD-AGI__TraceLens__mi300__xdit_flux_rank0.json.gz", "AMD-AGI__TraceLens__mi__vllm_decode_hipgraph.json.gz")
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not KINETO.is_dir(), reason="the real captures are not here")]

Chain = tuple[str, ...]


def _events(name: str) -> list[dict[str, Any]]:
    with gzip.open(KINETO / name, "rb") as file:
        found: list[dict[str, Any]] = json.load(file, parse_float=Decimal)["traceEvents"]
    return found


def _ns(text: Any) -> int:
    return int(Decimal(text) * 1000)


def _chains(events: list[dict[str, Any]]) -> dict[int, Chain]:
    """Return the frames around each launching call, outermost first, by its correlation id: where there are none, those around
    the start of the arrow from a forward operator to the innermost operator around the call whose node of the graph has one."""
    forward = _forward(events)
    by_thread: dict[Any, list[tuple[int, int, int, dict[str, Any]]]] = defaultdict(list)
    for number, event in enumerate(events):
        if event.get("cat") in ("python_function", "cpu_op", "cuda_runtime", "cuda_driver"):
            is_call = event["cat"].startswith("cuda")
            by_thread[event["pid"], event["tid"]].append((_ns(event["ts"]), 1 if is_call else -_ns(event["dur"]), number, event))
    own: dict[int, Chain] = {}
    around_operator: dict[Any, Chain] = {}
    from_operator: dict[int, Any] = {}
    for listed in by_thread.values():
        frames: list[tuple[int, str]] = []
        operators: list[tuple[int, Any]] = []
        for start, less, _, event in sorted(listed, key=lambda moment: moment[:3]):
            begun = start + 1
            end = start - less if event["cat"] == "python_function" else begun
            _close(frames, end)
            chain = tuple(name for _, name in frames)
            if event["cat"] == "python_function":
                frames.append((end, re.sub(" at 0x[0-9a-f]+", "", event["name"])))
            elif event["cat"] == "cpu_op":
                _close(operators, start - less)
                operators.append((start - less, _node(event)))
                around_operator[event["tid"], start] = chain
            else:
                _close(operators, begun)
                own.setdefault(event["args"].get("correlation"), chain)
                linked = [forward[node] for _, node in operators if node in forward]
                from_operator[event["args"].get("correlation")] = linked[-1] if linked else None
    return {number: chain or around_operator.get(from_operator[number], ()) for number, chain in own.items()}


def _close(open_: list[tuple[int, Any]], end: int) -> None:
    """Take out what ends before `end`."""
    while open_ and open_[-1][0] < end:
        open_.pop()


def _node(operator: dict[str, Any]) -> Any:
    """Return what the operators of one backward node have in common: sequence number and forward thread."""
    return operator["args"].get("Sequence number"), operator["args"].get("Fwd thread id")


def _forward(events: list[dict[str, Any]]) -> dict[Any, Any]:
    """Return (thread, start) of the forward operator of each backward node, as the trace draws it from one of its operators."""
    ends: dict[Any, dict[str, Any]] = defaultdict(dict)
    for event in events:
        if event.get("cat") == "fwdbwd":
            ends[event["id"]][event["ph"]] = (event["tid"], _ns(event["ts"]))
    drawn = {both["f"]: both["s"] for both in ends.values()}
    node_at = {(event["tid"], _ns(event["ts"])): _node(event) for event in events if event.get("cat") == "cpu_op"}
    return {node_at[end]: begin for end, begin in drawn.items()}


def _work(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return (correlation id, duration in ns) of all GPU work."""
    return [(event["args"]["correlation"], _ns(event["dur"])) for event in events
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]


@pytest.fixture(scope="module", params=NAMES, ids=lambda name: name.split("__", 2)[2][:24])
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Store]:
    store = nl.ingest(KINETO / request.param, store=tmp_path_factory.mktemp("stacks") / "store", jobs=1)
    return _events(request.param), store


def test_gpu_time_by_frame_is_that_of_the_calls_in_the_file(captured: tuple[list[dict[str, Any]], Store]) -> None:
    events, store = captured
    chains = _chains(events)
    own, total = Counter[str](), Counter[str]()
    for correlation, duration in _work(events):
        chain = chains.get(correlation)
        frames = chain or (("(no call)",) if chain is None else ("(no stack)",))
        own[frames[-1]] += duration
        total.update(dict.fromkeys(frames, duration))
    rows = store.view("stack_summary").to_pylist()
    assert {row["name"]: row["gpu_self_ns"] for row in rows if row["launches"]} == dict(own)
    assert {row["name"]: row["gpu_total_ns"] for row in rows if row["gpu_total_ns"]} == {n: t for n, t in total.items() if t}
    assert {row["process_gpu_ns"] for row in rows} == {sum(duration for _, duration in _work(events))}


def test_outermost_frames_and_work_without_a_frame_sum_to_all_gpu_work(captured: tuple[list[dict[str, Any]], Store]) -> None:
    events, store = captured
    rows = store.view("stack_tree").to_pylist()
    assert sum(row["gpu_total_ns"] for row in rows if row["depth"] == 0) == sum(duration for _, duration in _work(events))
    assert all(row["host_self_ns"] >= 0 for row in rows if row["frame_id"] is not None)


def test_frames_lie_where_the_profiler_says_that_they_were_called(captured: tuple[list[dict[str, Any]], Store]) -> None:
    """The tree follows from times; the trace also names the caller of each call, which is not read."""
    events, store = captured
    calls = [event for event in events if event.get("cat") == "python_function"]
    name_of = {event["args"]["Python id"]: re.sub(" at 0x[0-9a-f]+", "", event["name"]) for event in calls}
    told = Counter((name_of.get(event["args"].get("Python parent id")), name_of[event["args"]["Python id"]]) for event in calls)
    ours = store.sql("SELECT p.name AS outer_name, f.name, sum(f.calls) AS calls FROM frames AS f LEFT JOIN frames AS p "
                     "ON p.frame_id = f.parent_id GROUP BY ALL").to_pylist()
    same = sum(min(row["calls"], told[row["outer_name"], row["name"]]) for row in ours)
    stored = sum(row["calls"] for row in ours)
    known = sum(count for (outer, _), count in told.items() if outer) > len(calls) * 0.9
    assert same >= 0.98 * stored or not known


OLD = ("pytorch__kineto__tb_plugin__resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz",
       "pytorch__kineto__tb_plugin__resnet50_num_workers_4__worker0.1623212756351.pt.trace.json.gz")


@pytest.mark.parametrize("name", OLD)
def test_each_operator_of_an_old_trace_has_the_stack_that_it_carries(name: str, tmp_path: Path) -> None:
    told = Counter((event["name"], event["args"]["Call stack"]) for event in _events(name)
                   if event.get("cat") == "Operator" and event["args"].get("Call stack") and "ProfilerStep" not in event["name"])
    store = nl.ingest(KINETO / name, store=tmp_path / "store", jobs=1)
    ours = store.sql("""
        WITH RECURSIVE stacks AS (
            SELECT frame_id, name AS stack FROM frames WHERE parent_id IS NULL
            UNION ALL SELECT f.frame_id, f.name || ';' || s.stack FROM frames AS f JOIN stacks AS s ON f.parent_id = s.frame_id)
        SELECT r.name, s.stack, count(*) AS n FROM ranges AS r JOIN stacks AS s USING (frame_id)
        WHERE r.kind = 'operator' AND r.thread IN (SELECT thread FROM frames) GROUP BY ALL""").to_pylist()
    assert {(row["name"], row["stack"]): row["n"] for row in ours} == dict(told) and told.total() > 10_000
    rows = store.view("stack_summary").to_pylist()
    assert {row["process_gpu_ns"] for row in rows} == {sum(row["gpu_self_ns"] for row in rows)}
    forward = sum(row["gpu_self_ns"] for row in rows if row["function"] == "_conv_forward")
    assert forward > 0.6 * rows[0]["process_gpu_ns"], "convolutions, their backward kernels included"
