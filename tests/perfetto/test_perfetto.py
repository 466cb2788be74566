"""The timeline as trace events: every event against the format, and what went in against what came out."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.perfetto import Export, export
from nsightlens.perfetto.events import microseconds
from nsightlens.pipeline.ingest import ingest
from nsightlens.store.store import Store
from tests.captures import kineto
from tests.catalogs import catalog
from tests.payloads import PAYLOADS
from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data"
REQUIRED = {
    "X": {"pid", "tid", "ts", "dur", "name", "cat", "args"},
    "i": {"pid", "tid", "ts", "s", "name", "cat", "args"},
    "b": {"pid", "tid", "ts", "id2", "name", "cat", "args"},
    "e": {"pid", "tid", "ts", "id2", "name", "cat"},
    "s": {"pid", "tid", "ts", "id", "name", "cat"},
    "f": {"pid", "tid", "ts", "id", "name", "cat", "bp"},
    "M": {"pid", "tid", "name", "args"},
}
"""Keys of each phase of the trace-event format, as far as we write it; `ph` besides."""


class Rows:
    """What `export` needs of a store, over rows given in the test."""

    def __init__(self, **tables: list[dict[str, Any]]) -> None:
        self._connection = catalog(**tables)

    def sql(self, query: str, parameters: dict[str, object] | None = None) -> pa.Table:
        return self._connection.sql(query, params=parameters or None).to_arrow_table()


def exported(path: Path, **tables: list[dict[str, Any]]) -> tuple[Export, dict[str, Any]]:
    written = export(cast(Store, Rows(**tables)), path)
    return written, checked(path)


def checked(path: Path) -> dict[str, Any]:
    """Return the trace in `path` after every event was held against the format; numbers with a point are Decimals."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    trace = cast(dict[str, Any], json.loads(text, parse_float=Decimal, parse_constant=_refuse))
    assert trace["displayTimeUnit"] == "ns"
    for event in trace["traceEvents"]:
        assert set(event) == REQUIRED[event["ph"]] | {"ph"}, event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert isinstance(event["name"], str) and event["name"]
        for key in {"ts", "dur"} & set(event):
            assert isinstance(event[key], Decimal) and event[key].as_tuple().exponent == -3 and event[key] >= 0
        assert isinstance(event.get("args", {}), dict)
        assert event["ph"] not in "ie" or event.get("s", "t") == "t"
    _check_spans(trace)
    _check_names(trace)
    _check_flows(trace)
    _check_ranges_across_threads(trace)
    return trace


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def by_phase(trace: dict[str, Any], phases: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] in phases]


def _check_spans(trace: dict[str, Any]) -> None:
    """On every thread spans nest or follow each other, in the order of the file: parents stand before their children."""
    open_: dict[tuple[int, int], list[Decimal]] = defaultdict(list)
    for event in sorted(by_phase(trace, "X"), key=lambda e: e["ts"]):  # stable: ties stay in the order of the file
        ends = open_[event["pid"], event["tid"]]
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        assert not ends or event["ts"] + event["dur"] <= ends[-1], event
        ends.append(event["ts"] + event["dur"])


def _check_names(trace: dict[str, Any]) -> None:
    used = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["ph"] != "M"}
    names: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event in by_phase(trace, "M"):
        names[event["name"]].append((event["pid"], event["tid"]))
    assert sorted(names["thread_name"]) == sorted(names["thread_sort_index"]) == sorted(set(names["thread_name"]))
    assert used <= set(names["thread_name"])
    assert not {pid for pid, _ in used} & {tid for _, tid in used}, "a main thread by accident"
    assert sorted(names["process_name"]) == sorted(names["process_sort_index"]) == sorted({(pid, 0) for pid, _ in used})
    said = [event["args"]["name"] for event in by_phase(trace, "M") if event["name"] == "process_name"]
    assert len(said) == len(names["process_name"])


def _check_flows(trace: dict[str, Any]) -> None:
    """Each arrow has one start within a call and one end at the start of a span of its stream."""
    starts, ends = by_phase(trace, "s"), by_phase(trace, "f")
    assert len({e["id"] for e in starts}) == len(starts) == len(ends)
    assert {e["id"] for e in starts} == {e["id"] for e in ends}
    begins: dict[tuple[int, int, Decimal], set[str]] = defaultdict(set)
    for span in by_phase(trace, "X"):
        begins[span["pid"], span["tid"], span["ts"]].add(span["cat"].split(",")[0])
    for event in starts:
        assert begins[event["pid"], event["tid"], event["ts"]] & {"cuda_runtime", "cuda_driver", "api"}, event
    for event in ends:
        assert event["bp"] == "e"
        assert begins[event["pid"], event["tid"], event["ts"]] & {
            "kernel", "memcpy", "memset", "migration", "host_function"}, event


def _check_ranges_across_threads(trace: dict[str, Any]) -> None:
    begins, ends = by_phase(trace, "b"), by_phase(trace, "e")
    last = {e["id2"]["local"]: e for e in ends}
    assert len({e["id2"]["local"] for e in begins}) == len(begins) == len(ends) == len(last)
    for event in begins:
        other = last[event["id2"]["local"]]
        assert (other["pid"], other["cat"], other["name"]) == (event["pid"], event["cat"], event["name"])
        assert other["ts"] >= event["ts"]


def process(number: int, **columns: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of one process of its own profile."""
    where = {"run": "base", "tool": "nsys", "profile_id": f"P{number}"}
    own = {key: columns[key] for key in ("rank", "host", "pid", "name") if key in columns}
    of_profile = {key: columns[key] for key in ("execution_id", "origin_epoch_ns", "run", "tool") if key in columns}
    return {"processes": [where | {"process_id": f"p{number}"} | {k: v for k, v in of_profile.items() if k in where} | own],
            "profiles": [where | of_profile]}


def together(*parts: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [row for part in parts for row in part.get(name, [])] for name in {name for part in parts for name in part}}


def work(number: int, start: int | None, duration: int | None = 10, **columns: Any) -> dict[str, Any]:
    return {"process_id": f"p{number}", "profile_id": f"P{number}", "run": "base", "tool": "nsys", "start_ns": start,
            "duration_ns": duration, **columns}


def kernel(number: int, start: int | None, duration: int | None = 10, **columns: Any) -> dict[str, Any]:
    return work(number, start, duration, **{"device": 0, "context": 1, "stream": 7, "name": "gemm<float>", "short_name": "gemm",
                                            "family": "gemm", "kernel_id": start, **columns})


@pytest.mark.parametrize(("ns", "text"), [
    (0, "0.000"), (1, "0.001"), (999, "0.999"), (1000, "1.000"), (-1, "-0.001"), (-1500, "-1.500"),
    (2**53 + 1, "9007199254740.993"), (1_712_195_495_505_583_123, "1712195495505583.123"),
])
def test_nanoseconds_become_microseconds_exactly(ns: int, text: str) -> None:
    assert microseconds(ns) == text


def test_everything_of_a_process_is_drawn(tmp_path: Path) -> None:
    """Threads, streams, nested ranges, marks, ranges across threads, a graph launch with two kernels, copies, graphs."""
    calls = [work(1, 110, 20, launch_id=1, thread=5, name="cudaLaunchKernel", api="runtime", correlation_id=9),
             work(1, 150, 20, launch_id=2, thread=5, name="cudaGraphLaunch", api="runtime")]
    ranges = [work(1, 100, 100, range_id=1, thread=5, kind="step", name="step 3", step=3, depth=0),
              work(1, 100, 100, range_id=2, thread=5, kind="nvtx_push_pop", name="forward", domain="mine", depth=1),
              work(1, 120, None, range_id=3, thread=5, kind="nvtx_mark", name="here"),
              work(1, 130, None, range_id=4, thread=5, kind="nvtx_push_pop", name="lost"),
              work(1, 140, 500, range_id=5, thread=5, end_thread=6, kind="nvtx_start_end", name="batch"),
              work(1, 190, 40, range_id=6, thread=None, device=0, stream=7, kind="gpu_annotation", name="forward")]
    kernels = [kernel(1, 200, launch_id=1, grid_x=4, grid_y=2, grid_z=1, block_x=32, block_y=1, block_z=1, kernel_key="k",
                      registers_per_thread=64, estimated_occupancy_pct=float("nan"), op="aten::mm", queue_delay_ns=70),
               kernel(1, 210, launch_id=2), kernel(1, 220, launch_id=2, family="collective", collective="allreduce"),
               kernel(1, 300, None), kernel(1, None, 10, kernel_id=1)]
    copies = [work(1, 215, 30, memory_op_id=1, launch_id=None, device=0, context=None, stream=None, kind="migration",
                   direction="HtoD", bytes=4096)]
    graphs = [work(1, 400, 30, graph_execution_id=1, device=0, context=1, stream=7, graph_id=2)]
    functions = [work(1, 320, 5, host_function_id=1, launch_id=2, device=0, context=1, stream=7, kind="graph_node")]
    rows = together(process(1, rank=3, host="node1", pid=77, name="python"), {
        "api_calls": calls, "ranges": ranges, "kernels": kernels, "memory_ops": copies, "graph_executions": graphs,
        "host_functions": functions})
    written, trace = exported(tmp_path / "t.json", **rows)
    spans = [(e["cat"], e["name"], str(e["ts"]), str(e["dur"])) for e in by_phase(trace, "X")]
    assert spans == [
        ("step", "step 3", "0.000", "0.100"), ("nvtx_push_pop", "forward", "0.000", "0.100"),
        ("cuda_runtime", "cudaLaunchKernel", "0.010", "0.020"), ("cuda_runtime", "cudaGraphLaunch", "0.050", "0.020"),
        ("gpu_annotation", "forward", "0.090", "0.040"), ("kernel", "gemm", "0.100", "0.010"),
        ("kernel", "gemm", "0.110", "0.010"),
        ("migration", "migration HtoD", "0.115", "0.030"), ("kernel,collective", "gemm", "0.120", "0.010"),
        ("host_function", "host function", "0.220", "0.005"), ("graph", "CUDA graph (kernels not recorded)", "0.300", "0.030")]
    assert [(e["name"], e["args"].get("unclosed")) for e in by_phase(trace, "i")] == [
        ("here", None), ("lost", True), ("gemm", None)]
    assert [(e["name"], str(e["ts"])) for e in by_phase(trace, "be")] == [("batch", "0.040"), ("batch", "0.540")]
    assert [(e["id"], str(e["ts"])) for e in by_phase(trace, "s")] == [(1, "0.010"), (2, "0.050"), (3, "0.050"), (4, "0.050")]
    assert [(e["id"], str(e["ts"])) for e in by_phase(trace, "f")] == [(1, "0.100"), (2, "0.110"), (3, "0.120"), (4, "0.220")]
    named = {e["args"]["name"] for e in by_phase(trace, "M") if "name" in e["args"]}
    assert named == {"rank 3 · base · nsys · python 77 @ node1", "CPU thread 5", "GPU 0 · stream 7", "GPU 0 · no stream"}
    first = next(e for e in by_phase(trace, "X") if e["cat"] == "kernel")
    assert first["args"] == {"name": "gemm<float>", "kernel_key": "k", "family": "gemm", "kernel_id": "200", "duration_ns": 10,
                             "queue_delay_ns": 70, "grid": [4, 2, 1], "block": [32, 1, 1], "registers_per_thread": 64,
                             "op": "aten::mm"}
    assert (written.counts.kernels, written.counts.memory_ops, written.counts.flows, written.unplaced) == (4, 1, 4, 1)
    assert written.events == len(trace["traceEvents"])


def test_spans_that_overlap_without_nesting_stand_on_further_lines(tmp_path: Path) -> None:
    kernels = [kernel(1, 0, 100), kernel(1, 50, 100, kernel_id=2), kernel(1, 60, 10), kernel(1, 70, 200), kernel(1, 150, 5)]
    calls = [work(1, 0, 30, launch_id=1, thread=5, name="outer"), work(1, 10, 30, launch_id=2, thread=5, name="crossing")]
    rows = together(process(1), {"kernels": [{**k, "launch_id": 2} for k in kernels], "api_calls": calls})
    written, trace = exported(tmp_path / "t.json", **rows)
    lines = {e["tid"]: e["args"]["name"] for e in by_phase(trace, "M") if e["name"] == "thread_name"}
    assert [(lines[e["tid"]], str(e["ts"])) for e in by_phase(trace, "X") if e["cat"] == "kernel"] == [
        ("GPU 0 · stream 7", "0.000"), ("GPU 0 · stream 7 (2)", "0.050"), ("GPU 0 · stream 7", "0.060"),
        ("GPU 0 · stream 7 (3)", "0.070"), ("GPU 0 · stream 7", "0.150")]
    assert {lines[e["tid"]] for e in by_phase(trace, "s")} == {"CPU thread 5 (2)"}, "arrows begin on the line of their call"
    assert written.counts.asides == 3


def test_ranks_lie_on_one_axis_by_their_epochs_and_executions_beside_each_other(tmp_path: Path) -> None:
    epoch = 1_712_195_495_505_583_123
    parts = [
        together(process(1, rank=0, origin_epoch_ns=epoch), {"kernels": [kernel(1, 1000)]}),
        together(process(2, rank=1, origin_epoch_ns=epoch + 1), {"kernels": [kernel(2, 1001)]}),
        together(process(3, rank=0, origin_epoch_ns=epoch + 3_600 * 10**9), {"kernels": [kernel(3, 5)]}),
        together(process(4, rank=0), {"kernels": [kernel(4, 2**60)]}),
        together(process(5, run="other", execution_id="x", origin_epoch_ns=epoch), {"kernels": [kernel(5, 7)]}),
        together(process(6, run="other", execution_id="x", tool="kineto", origin_epoch_ns=epoch), {"kernels": [kernel(6, 9)]}),
        together(process(7, run="other", execution_id="y", origin_epoch_ns=epoch), {"kernels": [kernel(7, 9)]}),
    ]
    written, trace = exported(tmp_path / "t.json", **together(*parts))
    starts = {e["pid"]: str(e["ts"]) for e in by_phase(trace, "X")}
    names = {e["pid"]: e["args"]["name"] for e in by_phase(trace, "M") if e["name"] == "process_name"}
    assert sorted((names[pid], ts) for pid, ts in starts.items()) == [
        ("rank 0 · base · nsys", "0.000"), ("rank 0 · base · nsys (2)", "0.000"), ("rank 0 · base · nsys (3)", "0.000"),
        ("rank 1 · base · nsys", "0.002"), ("rank unknown · other · kineto + nsys · kineto", "0.002"),
        ("rank unknown · other · kineto + nsys · nsys", "0.000"), ("rank unknown · other · nsys", "0.000")]
    zeros = {e["execution"]: e["zero_epoch_ns"] for e in trace["otherData"]["executions"]}
    assert zeros == {"base · nsys": str(epoch + 1000), "base · nsys (2)": str(epoch + 3_600 * 10**9 + 5), "base · nsys (3)": None,
                     "other · kineto + nsys": str(epoch + 7), "other · nsys": str(epoch + 9)}
    assert [len(execution.processes) for execution in written.executions] == [2, 1, 1, 2, 1]


def test_a_capture_without_sidecar_joins_the_execution_beside_which_it_lies(tmp_path: Path) -> None:
    minute = 60 * 10**9
    rows = together(
        together(process(1, rank=0, execution_id="x", origin_epoch_ns=0), {"kernels": [kernel(1, 1000)]}),
        together(process(2, rank=1, origin_epoch_ns=minute // 2), {"kernels": [kernel(2, 1000)]}),
        together(process(3, rank=2, origin_epoch_ns=10 * minute), {"kernels": [kernel(3, 1000)]}),
        together(process(4, rank=3, origin_epoch_ns=0, tool="kineto"), {"kernels": [kernel(4, 1000)]}),
        together(process(5, rank=0, execution_id="y", origin_epoch_ns=20 * minute), {"kernels": [kernel(5, 1000)]}),
        together(process(6, rank=0, execution_id="z", origin_epoch_ns=20 * minute), {"kernels": [kernel(6, 1000)]}),
        together(process(7, rank=1, origin_epoch_ns=20 * minute), {"kernels": [kernel(7, 1000)]}),
    )
    written, _ = exported(tmp_path / "t.json", **rows)
    assert {tuple(p.process_id for p in execution.processes) for execution in written.executions} == {
        ("p1", "p2"), ("p3",), ("p4",), ("p5",), ("p6",), ("p7",)}, "p7 may belong to either of two: it stays alone"


def test_names_are_text_whatever_they_hold(tmp_path: Path) -> None:
    """In every column of text that is drawn, under the name that it has in the store."""
    names = [*PAYLOADS, '"};alert(1)//', "tab\tnewline\nbell\x07nul\x00", "back\\slash", "λ→漢😀", "a,b", "%s", "1e999", "null"]
    texts = ("kernel_key", "family", "op", "op_shapes", "module", "range_path", "phase", "collective", "group_name")
    of_ranges = ("domain", "shapes", "types", "concrete_inputs")
    kernels = [kernel(1, 10 * i, 5, kernel_id=i, short_name=name, name=name, **dict.fromkeys(texts, name))
               for i, name in enumerate(names)]
    ranges = [work(1, 10 * i, 5, range_id=i, thread=1, kind="annotation", name=name, **dict.fromkeys(of_ranges, name))
              for i, name in enumerate(names)]
    _, trace = exported(tmp_path / "t.json.gz", **together(process(1, name=names[0], host=names[1], run=names[2]),
                                                         {"kernels": kernels, "ranges": ranges}))
    spans = by_phase(trace, "X")
    for of, columns in (("kernel", texts), ("annotation", of_ranges)):
        drawn = [e for e in spans if e["cat"].startswith(of)]
        assert [e["name"] for e in drawn] == names
        assert all([e["args"][column] for e in drawn] == names for column in columns)
    (said,) = [e["args"]["name"] for e in by_phase(trace, "M") if e["name"] == "process_name"]
    assert all(name in said for name in names[:3])


def test_the_slices_are_the_rows_of_the_store(tmp_path: Path, bundled_store: Path) -> None:
    """Counted and summed by category, to the ns."""
    with nl.open(bundled_store) as store:
        written = export(store, tmp_path / "t.json.gz")
        expected = {row["category"]: (row["count"], row["ns"]) for row in store.sql(_BY_CATEGORY).to_pylist()}
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for event in by_phase(checked(tmp_path / "t.json.gz"), "Xbe"):
        count, ns = found[event["cat"]]
        spent = {"X": event.get("dur", 0), "b": -event["ts"], "e": event["ts"]}[event["ph"]]
        found[event["cat"]] = count + (event["ph"] != "e"), ns + int(spent * 1000)
    assert found == expected and len(found) > 6 and not written.unplaced


_BY_CATEGORY = """
SELECT category, count(*) AS count, sum(duration_ns)::BIGINT AS ns FROM (
    SELECT if(family = 'collective', 'kernel,collective', 'kernel') AS category, tool, duration_ns FROM kernels
    UNION ALL BY NAME SELECT kind AS category, tool, duration_ns FROM memory_ops
    UNION ALL BY NAME SELECT kind AS category, tool, duration_ns FROM ranges
    UNION ALL BY NAME SELECT 'cuda_' || api AS category, tool, duration_ns FROM api_calls
    UNION ALL BY NAME SELECT 'graph' AS category, tool, duration_ns FROM graph_executions
    UNION ALL BY NAME SELECT 'host_function' AS category, tool, duration_ns FROM host_functions)
WHERE tool <> 'ncu' AND duration_ns IS NOT NULL GROUP BY category
"""


def test_rows_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of a slice, also where many begin at one instant, the same trace comes out."""
    kernels = [kernel(1, i // 4 * 10, 5 if i % 2 else 9, kernel_id=i, stream=i % 4) for i in range(40)]
    rows = together(process(1), {"kernels": kernels, "ranges": [
        work(1, i // 2, 100 - i % 2 * 50, range_id=i, thread=1, kind="annotation", name="a", depth=i) for i in range(40)]})
    _, whole = exported(tmp_path / "whole.json", **rows)
    for size in (1, 3, 7):
        monkeypatch.setattr("nsightlens.perfetto.reading._SLICE", size)
        done: list[tuple[int, int]] = []
        export(cast(Store, Rows(**rows)), tmp_path / "cut.json", on_progress=lambda *at: done.append(at))  # noqa: B023
        assert checked(tmp_path / "cut.json") == whole
        assert done[-1] == (80, 80) and len(done) > 5 and done == sorted(done)


def _two_ranks(tmp_path: Path) -> Store:
    for rank in range(2):
        kineto(tmp_path / "run" / f"rank{rank}.json", [("gemm", 1000.0 + rank, 10.5), ("ncclDevKernel", 1010.5, 2.0)], rank=rank,
               pid=70 + rank)
    ingest([tmp_path / "run"], tmp_path / "store")
    return nl.open(tmp_path / "store")


def test_ranks_are_chosen(tmp_path: Path) -> None:
    with _two_ranks(tmp_path) as store:
        both = export(store, tmp_path / "both.json")
        one = export(store, tmp_path / "one.json", runs=["run"], ranks=[1])
        assert (both.counts.kernels, one.counts.kernels) == (4, 2)
        assert len(both.executions) == 1 and [p.rank for p in one.executions[0].processes] == [1]
        assert min(e["ts"] for e in by_phase(checked(tmp_path / "one.json"), "X")) == 0
        with pytest.raises(UsageError, match="no timeline of rank 7; there are: 0, 1"):
            export(store, tmp_path / "no.json", ranks=[7])
        with pytest.raises(UsageError, match="no timeline of run x; there are: run"):
            export(store, tmp_path / "no.json", runs=["x"])
        with pytest.raises(UsageError, match="the store knows no steps"):
            export(store, tmp_path / "no.json", steps=(1, 2))
    assert not (tmp_path / "no.json").exists()


def test_steps_are_chosen_by_what_was_launched_in_them(tmp_path: Path) -> None:
    steps = [work(1, 1000 * i, 1000, range_id=i, thread=1, kind="step", name=f"step {i}", step=i) for i in range(4)]
    calls = [work(1, 1000 * i + 990, 5, launch_id=i, thread=1, name="cudaLaunchKernel") for i in range(4)]
    kernels = [kernel(1, 1000 * i + 1100, 10, kernel_id=i, launch_id=i) for i in range(4)]
    kernels += [kernel(1, 2500, 10, kernel_id=99, stream=8), kernel(1, 3500, 10, kernel_id=98, stream=8)]
    whole = work(1, -5, 9000, range_id=50, thread=2, kind="annotation", name="whole run")
    rows = Rows(**together(process(1), {"ranges": [*steps, whole], "api_calls": calls, "kernels": kernels}))
    written = export(cast(Store, rows), tmp_path / "t.json", steps=(1, 2))
    trace = checked(tmp_path / "t.json")
    assert [e["args"]["kernel_id"] for e in by_phase(trace, "X") if e["cat"] == "kernel"] == ["1", "99", "2"]
    assert [e["name"] for e in by_phase(trace, "X") if e["cat"] in ("step", "annotation")] == ["step 1", "step 2"]
    assert written.counts.flows == 2
    with pytest.raises(UsageError, match="no process has steps 8 to 9; there are steps 0 to 3"):
        export(cast(Store, rows), tmp_path / "t.json", steps=(8, 9))


@pytest.mark.parametrize("name", ["trace.txt", "trace", "trace.gz", "-"])
def test_the_ending_gives_the_format(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"must end in \.json or \.json\.gz"):
        export(cast(Store, Rows()), tmp_path / name)


def test_a_failed_export_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    with pytest.raises(UsageError, match="nothing to draw"):
        export(cast(Store, Rows(**process(1))), path)

    def stop(done: int, of: int) -> None:
        raise RuntimeError

    rows = together(process(1), {"kernels": [kernel(1, 0)]})
    with pytest.raises(RuntimeError):
        export(cast(Store, Rows(**rows)), path, on_progress=stop)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.json"] and path.read_text() == "old"
    with pytest.raises(NsightlensError, match=r"none.t\.json: cannot be written"):
        export(cast(Store, Rows(**rows)), tmp_path / "none" / "t.json")


@pytest.mark.captures
@pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")
@pytest.mark.parametrize("name", [
    "nsys/GindaChen__nsys-ai__mfu_2gpu_after.sqlite", "nsys/brycelelbach__nsightful__power_iteration__baseline.sqlite",
    "nsys/NTHU-SC__ISC25-ICON-C__gpu.sqlite", "nsys/hpcgroup__pipit__saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
    "nsys/bwyogatama__Mordred-Deprecated__report1_2021-12.sqlite",
    "kineto/facebookresearch__HolisticTraceAnalysis__nccl_data_rank0.json.gz",
    "kineto/AMD-AGI__TraceLens__h100__Qwen1.5-0.5B.json.gz",
])
def test_kernels_in_are_kernels_out(tmp_path: Path, name: str) -> None:
    if not (DATA / name).is_file():
        pytest.skip("this capture is not here")
    ingest([DATA / name], tmp_path / "store")
    with nl.open(tmp_path / "store") as store:
        written = export(store, tmp_path / "t.json.gz")
        rows = store.sql("SELECT process_id, kernel_id, start_ns, duration_ns, launch_id FROM kernels").to_pylist()
        others = store.sql("SELECT (SELECT count(*) FROM api_calls) + (SELECT count(*) FROM ranges) AS host, "
                           "(SELECT count(*) FROM memory_ops) AS copies").to_pylist()[0]
    trace = checked(tmp_path / "t.json.gz")
    kernels = [e for e in by_phase(trace, "X") if e["cat"].startswith("kernel")]
    assert {(int(e["args"]["kernel_id"]), int(e["dur"] * 1000), e["args"]["duration_ns"]) for e in kernels} == {
        (row["kernel_id"], row["duration_ns"], row["duration_ns"]) for row in rows}
    zeros = {process.process_id: one.zero_of(process) for one in written.executions for process in one.processes}
    ids = {row["kernel_id"]: row["start_ns"] - zeros[row["process_id"]] for row in rows}
    assert all(int(e["ts"] * 1000) == ids[int(e["args"]["kernel_id"])] for e in kernels)
    drawn = len(by_phase(trace, "Xib"))
    assert drawn == len(rows) + others["host"] + others["copies"]
    assert written.counts.flows >= sum(row["launch_id"] is not None for row in rows)
