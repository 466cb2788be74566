"""The critical path of small processes made by hand, and what holds for any: contiguous, within the window, adding up."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsightlens as nl
from nsightlens.analyses import _walk, critical_path, critical_path_summary
from nsightlens.errors import BalanceWarning, UsageError
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.catalogs import asking, catalog, fill, rows_of

WHO = "run,tool,profile_id,process_id,window_index"
HERE = "base,nsys,P,p,0"


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


def _rows(table: str, columns: str, text: str) -> list[dict[str, Any]]:
    lines = [line.strip() for line in text.strip().splitlines()]
    return rows_of(table, "\n".join([f"{WHO},{columns}", *(f"{HERE},{line}" for line in lines)]))


def _asked(connection: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], **parameters: Any) -> pa.Table:
    connection.execute("BEGIN")
    fill(connection, **tables)
    ask = asking(connection)
    try:
        return critical_path.analyse(ask, **parameters)
    finally:
        connection.execute("ROLLBACK")


def _path(connection: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], **parameters: Any) -> list[Any]:
    rows = _asked(connection, tables, **parameters).to_pylist()
    assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
    return [(row["bound_by"], row["start_ns"], row["duration_ns"], row["name"]) for row in rows]


KERNELS = "kernel_id,device_id,context,stream,start_ns,duration_ns,launch_id,family,name"
CALLS = "launch_id,thread,start_ns,duration_ns,name"
OPERATORS = "range_id,thread,kind,start_ns,duration_ns,name"


def test_cpu_launch_kernel_queue_and_wait(empty: duckdb.DuckDBPyConnection) -> None:
    """The operator's launch, its kernel, the next one in the stream, the call that awaits both, and what the CPU does then."""
    tables = {
        "ranges": _rows("ranges", OPERATORS, "1,1,operator,0,30,aten::mm\n2,1,operator,200,50,aten::copy"),
        "api_calls": _rows("api_calls", CALLS,
                           "1,1,5,5,cudaLaunchKernel\n2,1,20,5,cudaLaunchKernel\n3,1,40,150,cudaStreamSynchronize"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,14,86,1,gemm,k1\n2,g,1,7,103,77,2,collective,k2"),
    }
    assert _path(empty, tables) == [
        ("cpu", 0, 10, "aten::mm"), ("launch", 10, 4, None), ("compute", 14, 86, "k1"), ("queue", 100, 3, None),
        ("communication", 103, 77, "k2"), ("synchronisation", 180, 10, None), ("cpu", 190, 10, None),
        ("cpu", 200, 50, "aten::copy")]


def test_a_wait_that_waits_for_nothing_is_cpu_time(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, "1,1,0,5,cudaLaunchKernel\n2,1,50,10,cudaDeviceSynchronize"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,20,1,gemm,k"),
    }
    assert _path(empty, tables) == [("cpu", 0, 5, None), ("cpu", 5, 45, None), ("cpu", 50, 10, None)]


def test_an_awaited_event_leads_to_the_other_stream(empty: duckdb.DuckDBPyConnection) -> None:
    """Without the wait, the kernel in stream 8 would follow its launch."""
    kernels = _rows("kernels", KERNELS, "1,g,1,7,10,80,1,gemm,first\n2,g,1,8,95,20,2,gemm,second")
    calls = "1,1,0,5,cudaLaunchKernel\n2,1,40,5,cudaLaunchKernel"
    alone = {"kernels": kernels, "api_calls": _rows("api_calls", CALLS, calls)}
    assert [step[:3] for step in _path(empty, alone)][-2:] == [("launch", 45, 50), ("compute", 95, 20)]
    told = {"kernels": kernels, "api_calls": _rows("api_calls", CALLS, calls + "\n3,1,20,5,cudaStreamWaitEvent")}
    awaited = [("compute", 10, 80, "first"), ("synchronisation", 90, 5, None), ("compute", 95, 20, "second")]
    assert _path(empty, told)[-4:] == [("launch", 5, 5, None), *awaited]
    before = "1,1,2,3,cudaLaunchKernel\n2,1,40,5,cudaLaunchKernel\n3,1,0,1,cudaStreamWaitEvent"
    assert _path(empty, {"kernels": kernels, "api_calls": _rows("api_calls", CALLS, before)})[-3:] == awaited


WAITS = "synchronization_id,launch_id,context,stream,start_ns,duration_ns,kind,event_id,event_record_id"
RECORDS = "cuda_event_id,launch_id,context,stream,event_id,event_record_id"


def _three_streams() -> dict[str, list[dict[str, Any]]]:
    """Two kernels that run side by side, one that was launched behind the record of an event, and one in a third stream."""
    return {
        "kernels": _rows("kernels", KERNELS, """1,g,1,7,10,40,1,gemm,first
            2,g,1,7,50,20,4,gemm,behind
            3,g,1,9,10,80,2,gemm,long
            4,g,1,8,95,20,6,gemm,last"""),
        "api_calls": _rows("api_calls", CALLS, """1,1,0,2,cudaLaunchKernel
            2,2,2,2,cudaLaunchKernel
            3,1,4,1,cudaEventRecord
            4,1,6,2,cudaLaunchKernel
            5,1,8,1,cudaStreamWaitEvent
            6,1,10,2,cudaLaunchKernel"""),
    }


def test_a_recorded_event_says_which_work_a_stream_awaits(empty: duckdb.DuckDBPyConnection) -> None:
    """Inferred, it is the work that ended last; recorded, what was launched before the record of the event, and no later."""
    tables = _three_streams()
    assert [name for kind, *_, name in _path(empty, tables) if kind == "compute"] == ["long", "last"]
    recorded = tables | {"synchronizations": _rows("synchronizations", WAITS, "1,5,1,8,8,1,stream_wait_event,31,500"),
                         "cuda_events": _rows("cuda_events", RECORDS, "1,3,1,7,31,500\n2,,1,9,31,501")}
    assert _path(empty, recorded)[-3:] == [
        ("compute", 10, 40, "first"), ("synchronisation", 50, 45, None), ("compute", 95, 20, "last")]


def test_work_that_ends_after_the_stream_went_on_is_not_what_it_awaited(empty: duckdb.DuckDBPyConnection) -> None:
    """The clocks, or the record, are wrong: no other work takes its place."""
    tables = _three_streams() | {
        "kernels": _rows("kernels", KERNELS, """1,g,1,7,10,40,1,gemm,first
            2,g,1,9,10,10,2,gemm,early
            3,g,1,8,48,20,6,gemm,last"""),
        "synchronizations": _rows("synchronizations", WAITS, "1,5,1,8,8,1,stream_wait_event,31,500"),
        "cuda_events": _rows("cuda_events", RECORDS, "1,3,1,7,31,500")}
    assert _path(empty, tables)[-2:] == [("launch", 12, 36, None), ("compute", 48, 20, "last")]


def test_an_event_without_a_number_is_its_last_record_before_the_wait(empty: duckdb.DuckDBPyConnection) -> None:
    tables = _three_streams() | {
        "synchronizations": _rows("synchronizations", WAITS, "1,5,1,8,8,1,stream_wait_event,31,"),
        "cuda_events": _rows("cuda_events", RECORDS, "1,2,1,9,31,\n2,3,1,7,31,\n3,6,1,9,31,")}
    assert _path(empty, tables)[-3:] == [
        ("compute", 10, 40, "first"), ("synchronisation", 50, 45, None), ("compute", 95, 20, "last")]


def test_a_recorded_wait_is_of_its_own_stream(empty: duckdb.DuckDBPyConnection) -> None:
    """The thread made stream 9 wait, not stream 8: the last kernel follows its launch. Of an event without record all is open."""
    tables = _three_streams()
    of_nine = tables | {"synchronizations": _rows("synchronizations", WAITS, "1,5,1,9,8,1,stream_wait_event,31,500")}
    assert _path(empty, of_nine)[-2:] == [("launch", 12, 83, None), ("compute", 95, 20, "last")]
    unknown = tables | {"synchronizations": _rows("synchronizations", WAITS, "1,5,1,8,8,1,stream_wait_event,31,500")}
    assert _path(empty, unknown)[-3:] == [
        ("compute", 10, 80, "long"), ("synchronisation", 90, 5, None), ("compute", 95, 20, "last")]


def test_a_recorded_call_awaits_the_stream_that_it_names(empty: duckdb.DuckDBPyConnection) -> None:
    """The work that ends last within the call is in another stream."""
    tables = {
        "api_calls": _rows("api_calls", CALLS, """1,1,0,5,cudaLaunchKernel
            2,1,5,5,cudaLaunchKernel
            3,1,10,90,cudaStreamSynchronize"""),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,10,70,1,gemm,awaited\n2,g,1,8,12,80,2,gemm,other"),
    }
    assert [name for *_, name in _path(empty, tables) if name] == ["other"]
    waits = {"synchronizations": _rows("synchronizations", WAITS, "1,3,1,7,10,88,stream,,")}
    assert _path(empty, tables | waits)[-2:] == [("compute", 10, 70, "awaited"), ("synchronisation", 80, 20, None)]
    events = {"synchronizations": _rows("synchronizations", WAITS, "1,3,1,,10,88,event,31,5"),
              "cuda_events": _rows("cuda_events", RECORDS, "1,2,1,7,31,5")}
    assert _path(empty, tables | events)[-2:] == [("compute", 10, 70, "awaited"), ("synchronisation", 80, 20, None)]


def test_work_launched_after_a_wait_began_is_not_what_it_waits_for(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS,
                           "1,1,0,5,cudaLaunchKernel\n2,1,10,90,cudaStreamSynchronize\n3,2,20,5,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,5,45,1,gemm,awaited\n2,g,1,8,60,35,3,gemm,other"),
    }
    assert _path(empty, tables) == [("cpu", 0, 5, None), ("compute", 5, 45, "awaited"), ("synchronisation", 50, 50, None)]


def test_a_thread_begins_when_another_threads_operator_ended(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "ranges": _rows("ranges", OPERATORS, "1,1,operator,0,40,forward\n2,2,operator,50,30,backward\n3,1,operator,85,10,step"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,2,1,,gemm,k"),
    }
    rows = _path(empty, tables)
    assert [name for kind, _, _, name in rows if name] == ["forward", "backward", "step"]
    assert {kind for kind, *_ in rows} == {"cpu"}


def test_each_copy_awaits_itself(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", CALLS, "1,1,0,30,cudaMemcpy\n2,1,40,30,cudaMemcpy"),
        "memory_ops": _rows("memory_ops", "memory_op_id,device_id,context,stream,start_ns,duration_ns,launch_id,name",
                            "1,g,1,7,10,15,1,Memcpy HtoD\n2,g,1,7,50,15,2,Memcpy DtoH"),
    }
    assert _path(empty, tables) == [
        ("cpu", 0, 10, None), ("memory", 10, 15, "Memcpy HtoD"), ("synchronisation", 25, 5, None), ("cpu", 30, 10, None),
        ("cpu", 40, 10, None), ("memory", 50, 15, "Memcpy DtoH"), ("synchronisation", 65, 5, None)]


def test_a_copy_awaits_itself_and_graphs_have_unknown_kernels(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "api_calls": _rows("api_calls", "launch_id,thread,start_ns,duration_ns,name,correlation_id",
                           "1,1,0,30,cudaMemcpy,1\n2,1,40,5,cudaGraphLaunch,2"),
        "memory_ops": _rows("memory_ops", "memory_op_id,device_id,context,stream,start_ns,duration_ns,launch_id,name",
                            "1,g,1,7,10,15,1,Memcpy HtoD"),
        "graph_executions": _rows("graph_executions",
                                  "graph_execution_id,device_id,context,stream,start_ns,duration_ns,correlation_id",
                                  "1,g,1,7,50,60,2"),
    }
    assert _path(empty, tables) == [
        ("cpu", 0, 10, None), ("memory", 10, 15, "Memcpy HtoD"), ("synchronisation", 25, 5, None), ("cpu", 30, 10, None),
        ("cpu", 40, 5, None), ("launch", 45, 5, None), ("unknown", 50, 60, None)]


def test_a_step_ends_with_the_work_it_launched(empty: duckdb.DuckDBPyConnection) -> None:
    tables = {
        "ranges": _rows("ranges", "range_id,thread,kind,start_ns,duration_ns,name,step",
                        "1,1,step,100,100,ProfilerStep#3,3\n2,1,step,0,100,ProfilerStep#2,2"),
        "api_calls": _rows("api_calls", CALLS, "1,1,10,5,cudaLaunchKernel\n2,1,150,5,cudaLaunchKernel"),
        "kernels": _rows("kernels", KERNELS, "1,g,1,7,20,100,1,gemm,before\n2,g,1,7,160,90,2,gemm,within"),
    }
    for asked in ({"which_step": 3}, {"range_text": "Step#3"}):
        rows = _path(empty, tables, **asked)
        assert rows[-1] == ("compute", 160, 90, "within")
        assert rows[0][1] == 100
        assert sum(row[2] for row in rows) == 150
    assert _path(empty, tables, which_step=2)[-1] == ("compute", 20, 100, "before")
    tables["kernels"] = _rows("kernels", KERNELS, "2,g,1,7,160,20,2,gemm,within")
    assert _path(empty, tables, which_step=3)[-1] == ("cpu", 155, 45, None), "the step ends after the work that it launched"
    with pytest.raises(UsageError, match="no process has step 9"):
        _asked(empty, tables, which_step=9)


def test_a_path_of_many_pieces_is_the_same_in_stretches_of_any_length(
    empty: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred operators, then a hundred kernels that follow each other."""
    operators = "\n".join(f"{i},1,operator,{10 * i},{7 + i % 3},o{i}" for i in range(100))
    kernels = "\n".join(f"{i},g,1,7,{2000 + 10 * i},9,{1 if i == 0 else ''},gemm,k{i}" for i in range(100))
    tables = {"ranges": _rows("ranges", OPERATORS, operators), "kernels": _rows("kernels", KERNELS, kernels),
              "api_calls": _rows("api_calls", CALLS, "1,1,995,5,cudaLaunchKernel")}
    whole = _path(empty, tables)
    assert [name for *_, name in whole if name] == [*(f"o{i}" for i in range(100)), *(f"k{i}" for i in range(100))]
    assert [start + duration for _, start, duration, _ in whole[:-1]] == [start for _, start, *_ in whole[1:]]
    for stretch in (7, 33):
        monkeypatch.setattr(_walk, "CHUNK_ROWS", stretch)
        assert _path(empty, tables) == whole


PIECE = st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(7, 8), st.integers(0, 7))
CALL = st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(1, 2), st.sampled_from(
    ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaStreamWaitEvent")))


@settings(max_examples=150)
@given(work=st.lists(PIECE, min_size=1, max_size=12), calls=st.lists(CALL, max_size=8), operators=st.lists(CALL, max_size=6))
@pytest.mark.long
def test_any_path_is_contiguous_and_ends_with_the_last_end(
    empty: duckdb.DuckDBPyConnection, work: list[Any], calls: list[Any], operators: list[Any],
) -> None:
    """Also where times tie, work has no length, begins before its call or has none."""
    who = dict(zip(WHO.split(","), ("base", "nsys", "P", "p", 0), strict=True))
    tables = {
        "kernels": [who | {"kernel_id": i, "device_id": "g", "context": 1, "stream": stream, "start_ns": start,
                           "duration_ns": duration, "launch_id": launch, "family": "gemm", "name": f"k{i}"}
                    for i, (start, duration, stream, launch) in enumerate(work)],
        "api_calls": [who | {"launch_id": i, "thread": thread, "start_ns": start, "duration_ns": duration, "name": name}
                      for i, (start, duration, thread, name) in enumerate(calls)],
        "ranges": [who | {"range_id": i, "thread": thread, "start_ns": start, "duration_ns": duration, "name": f"o{i}",
                          "kind": "operator"} for i, (start, duration, thread, _) in enumerate(operators)],
    }
    rows = _asked(empty, tables).to_pylist()
    # an operator or call that lies within another of its thread ends no later than that one, or does not count
    last = max(start + duration for start, duration, *_ in work)
    if rows:
        assert rows[-1]["start_ns"] + rows[-1]["duration_ns"] >= last
        assert all(row["duration_ns"] > 0 for row in rows)
        ends = [row["start_ns"] + row["duration_ns"] for row in rows]
        assert ends[:-1] == [row["start_ns"] for row in rows[1:]]
        assert {row["path_ns"] for row in rows} == {ends[-1] - rows[0]["start_ns"]}


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.mark.parametrize("name", ["critical_path", "critical_path_summary"])
def test_an_analysis_has_the_face_of_a_view(store: Store, name: str) -> None:
    view = store.views[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", BalanceWarning)
        table = store.view(name)
    assert table.num_rows and table.column_names == [column for column, _ in view.columns]
    assert view.doc and view.balances and all(param.doc for param in view.params)
    assert view.name in registry.markdown()
    compute = store.view(name, only_bound_by="compute", only_rank="0")
    assert 0 < compute.num_rows < table.num_rows
    assert set(compute["bound_by"].to_pylist()) == {"compute"} and set(compute["rank"].to_pylist()) == {0}
    with pytest.raises(UsageError, match="did you mean range_text"):
        store.view(name, range_txt="x")


def test_the_summary_is_the_path_by_kind(store: Store) -> None:
    path, parts = store.view("critical_path", range_text="forward"), store.view("critical_path_summary", range_text="forward")
    assert sum(parts["total_ns"].to_pylist()) == sum(path["duration_ns"].to_pylist())
    assert sum(parts["segments"].to_pylist()) == path.num_rows
    assert critical_path_summary.analyse.__kwdefaults__ == critical_path.analyse.__kwdefaults__
