"""Kernels, API calls, memory operations and CUDA graphs of small nsys reports, one test per trap of the format."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.readers.nsys_report import SESSION, Row, base, call, codes, global_pid, kernel, read, report, span, strings, write


def test_every_column_of_a_kernel(tmp_path: Path) -> None:
    (row,) = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_KERNEL=[
            kernel(
                1000,
                1500,
                greenContextId=0,
                mangledName=4,
                graphNodeId=(3 << 32) + 5,
                graphId=3,
                clusterX=2,
                clusterY=1,
                clusterZ=1,
            )
        ],
    )["kernels"]
    assert row == {
        "process_index": 0,
        "device": 0,
        "context": 1,
        "stream": 7,
        "correlation_id": 100,
        "start_ns": 1000,
        "duration_ns": 500,
        "name": "void gemm<float>(float*)",
        "mangled_name": "_Z4gemmIfEvPT_",
        "registers_per_thread": 32,
        "grid_x": 4,
        "grid_y": 2,
        "grid_z": 1,
        "block_x": 128,
        "block_y": 1,
        "block_z": 1,
        "cluster_x": 2,
        "cluster_y": 1,
        "cluster_z": 1,
        "static_shared_bytes": 16,
        "dynamic_shared_bytes": 1024,
        "shared_bytes": 1040,
        "graph_id": 3,
        "graph_node_id": (3 << 32) + 5,
    }


def test_a_launch_without_clusters_has_none(tmp_path: Path) -> None:
    (row,) = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000, 1500, clusterX=0, clusterY=0, clusterZ=0)])["kernels"]
    assert not {"cluster_x", "cluster_y", "cluster_z"} & set(row)


def test_only_a_short_name(tmp_path: Path) -> None:
    row = kernel(1000, 1500)
    del row["demangledName"]
    assert report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[row])["kernels"][0]["name"] == "gemm"


def test_the_short_name_where_the_demangled_one_is_missing(tmp_path: Path) -> None:
    rows = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(3, 4, demangledName=None)])["kernels"]
    assert [row["name"] for row in rows] == ["void gemm<float>(float*)", "gemm"]


def test_names_may_be_text(tmp_path: Path) -> None:
    rows = [kernel(1, 2, demangledName="relu()"), kernel(3, 4)]
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=rows, CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1, nameId="cuLaunchKernel")])
    assert found["kernels"][0]["name"] == "relu()"
    assert found["api_calls"][0]["name"] == "cuLaunchKernel"


def test_text_columns_that_users_add_are_ignored(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, name="mine", extra="x")],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1, name="mine")],
    )
    assert found["kernels"][0]["name"] == "void gemm<float>(float*)"
    assert found["api_calls"][0]["name"] == "cudaLaunchKernel"


def test_a_name_that_the_report_lacks(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, demangledName=99, shortName=98), kernel(3, 4)])
    assert "name" not in found["kernels"][0]
    assert codes(found)["missing_name"] == 1


def test_names_without_a_table_of_strings(tmp_path: Path) -> None:
    tables = base()
    del tables["StringIds"]
    found = report(tmp_path, tables)
    assert "name" not in found["kernels"][0]
    assert codes(found)["missing_name"] == 2


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", base(NVTX_EVENTS=[span(1, 2, text="x")]))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE StringIds SET value = CAST(x'ff61' AS TEXT) WHERE id = 1")
        connection.execute("UPDATE NVTX_EVENTS SET text = CAST(x'62fe' AS TEXT)")
        connection.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = CAST(x'63fe' AS TEXT)")
        connection.commit()
    found = read(path)
    assert found["kernels"][0]["name"] == "\ufffda"
    assert found["ranges"][0]["name"] == "b\ufffd"
    assert found["processes"][0]["host"] == "c\ufffd"


def test_an_end_before_the_start_is_impossible(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000, 900), kernel(2000, 2000)])
    assert [row.get("duration_ns") for row in found["kernels"]] == [None, 0]
    assert codes(found)["impossible_duration"] == 1


TOP = (1 << 63) - 1
LONGEST = (1 << 43) * 1000


def test_absurd_times_are_null_and_counted(tmp_path: Path) -> None:
    times = [(1000, (1 << 62) + 9), (1000, TOP), (TOP, -TOP - 1), (-TOP - 1, TOP), (-TOP - 1, -TOP), ((1 << 61) - 1, TOP),
             (1000, 1000 + LONGEST), (1000, 1001 + LONGEST), (-5, 5)]
    found = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(*pair) for pair in times],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(*pair) for pair in times],
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[kernel(*pair) for pair in times],
        CUPTI_ACTIVITY_KIND_MEMCPY=[kernel(*pair, bytes=1, copyKind=1) for pair in times],
        CUPTI_ACTIVITY_KIND_MEMSET=[kernel(*pair, bytes=1, memKind=2) for pair in times],
        NVTX_EVENTS=[span(*pair, text="x") for pair in times],
    )
    # A session is known, so that times count from it.
    starts = [1000, 1000, None, None, None, (1 << 61) - 1, 1000, 1000, -5]
    durations = [None, None, None, None, None, None, LONGEST, None, 10]
    for table, copies in (("kernels", 1), ("api_calls", 1), ("graph_executions", 1), ("memory_ops", 2), ("ranges", 1)):
        assert [row.get("start_ns") for row in found[table]] == starts * copies, table
        assert [row.get("duration_ns") for row in found[table]] == durations * copies, table
    told = codes(found)
    assert (told["impossible_start"], told["impossible_duration"], told.get("unclosed_range")) == (3 * 6, 4 * 6, None)


@pytest.mark.parametrize("session", [True, False])
def test_epoch_times_behind_a_damaged_start_stay_valid(tmp_path: Path, session: bool) -> None:
    tables = base(CUPTI_ACTIVITY_KIND_RUNTIME=[call(SESSION + 1, SESSION + 2)],
                  CUPTI_ACTIVITY_KIND_KERNEL=[kernel(-TOP - 1, 0), kernel(SESSION + 5, SESSION + 8)])
    if not session:
        del tables["TARGET_INFO_SESSION_START_TIME"]
    found = report(tmp_path, tables)
    origin = found["profiles"][0]["origin_epoch_ns"]
    assert (origin == SESSION) == session
    assert found["kernels"][1]["start_ns"] + origin == SESSION + 5
    assert [row.get("duration_ns") for row in found["kernels"]] == [None, 3]


@pytest.mark.parametrize("shift", [str(10**18 - 1), str(TOP), TOP, -TOP])
def test_an_absurd_clock_does_not_overflow(tmp_path: Path, shift: Any) -> None:
    meta = [{"name": "EXPORT_PARAM_TIME_SHIFT", "value": shift}]
    found = report(tmp_path, META_DATA_EXPORT=meta, TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": TOP, "utcTime": "x"}])
    assert "origin_epoch_ns" not in found["profiles"][0]
    assert len(found["kernels"]) == 1


def test_values_that_do_not_fit_or_are_no_integers(tmp_path: Path) -> None:
    rows = [
        kernel(1, 2, gridX=1 << 40),
        kernel(3, 4, registersPerThread="many"),
        kernel(5, 6, registersPerThread=2.5),
        kernel(7, 8, registersPerThread="12"),
    ]
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=rows)
    assert [row.get("grid_x") for row in found["kernels"]] == [None, 4, 4, 4]
    assert [row.get("registers_per_thread") for row in found["kernels"]] == [32, None, None, 12]
    assert codes(found)["out_of_range"] == 1
    assert codes(found)["bad_value"] == 2


def test_times_beyond_2_to_53_stay_exact(tmp_path: Path) -> None:
    start = (1 << 55) + 1
    (row,) = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(start, start + 3)])["kernels"]
    assert (row["start_ns"], row["duration_ns"]) == (start, 3)


def test_backtraces_do_not_count_as_calls(tmp_path: Path) -> None:
    texts = strings("k", "k", "cudaLaunchKernel_v11030", "cudaLaunchKernel", "cuLaunchKernel")
    found = report(
        tmp_path,
        StringIds=texts,
        CUPTI_ACTIVITY_KIND_RUNTIME=[
            call(1, 4, eventClass=67, nameId=4),
            call(2, 3),
            call(5, 6, eventClass=1, nameId=5, returnValue=719),
            call(7, 8, eventClass=26),
        ],
    )
    assert [(row["name"], row["api"], row["return_value"]) for row in found["api_calls"]] == [
        ("cudaLaunchKernel", "runtime", 0),
        ("cuLaunchKernel", "driver", 719),
    ]
    assert codes(found)["duplicate_calls"] == 2


def test_calls_of_a_table_without_classes(tmp_path: Path) -> None:
    row = call(1, 2)
    del row["eventClass"]
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_RUNTIME=[row])["api_calls"]
    assert found[0]["name"] == "cudaLaunchKernel"
    assert "api" not in found[0]


def copy(code: int, **others: Any) -> Row:
    return {
        "start": 10,
        "end": 20,
        "deviceId": 1,
        "contextId": 0,
        "streamId": 0,
        "correlationId": 0,
        "globalPid": global_pid(7),
        "bytes": 4096,
        "copyKind": code,
        "srcKind": 7,
        "dstKind": 4,
    } | others


def test_copies_and_migrations(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_MEMCPY=[copy(12), copy(10, streamId=0, contextId=1, correlationId=5, srcKind=1), copy(0), copy(99)],
        CUPTI_ACTIVITY_KIND_MEMSET=[copy(0, memKind=6, streamId=13)],
    )["memory_ops"]
    migration, peer, unknown, later, fill = found
    assert migration == {
        "process_index": 0,
        "device": 1,
        "start_ns": 10,
        "duration_ns": 10,
        "bytes": 4096,
        "kind": "migration",
        "direction": "DtoH",
        "name": "[CUDA memcpy Unified Device-to-Host]",
        "destination_memory": "managed",
    }
    assert (peer["kind"], peer["direction"], peer["name"], peer["stream"], peer["correlation_id"], peer["source_memory"]) == (
        "memcpy",
        "PtoP",
        "[CUDA memcpy Peer-to-Peer]",
        0,
        5,
        "pinned",
    )
    assert unknown["kind"] == later["kind"] == "memcpy"
    assert not {"direction"} & (set(unknown) | set(later))
    assert (fill["kind"], fill["name"], fill["destination_memory"], fill["stream"]) == (
        "memset",
        "[CUDA memset]",
        "managed_static",
        13,
    )


GRAPH: Row = {
    "start": 5000,
    "end": 9000,
    "deviceId": 0,
    "contextId": 1,
    "greenContextId": None,
    "streamId": 7,
    "correlationId": 5,
    "globalPid": global_pid(7),
    "graphId": 2,
    "graphExecId": 3,
}


def test_hidden_graphs_are_busy_time(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[GRAPH, GRAPH])
    assert found["graph_executions"][0] == {
        "process_index": 0,
        "device": 0,
        "context": 1,
        "stream": 7,
        "start_ns": 5000,
        "duration_ns": 4000,
        "graph_id": 2,
        "graph_exec_id": 3,
        "correlation_id": 5,
    }
    assert codes(found)["graph_kernels_hidden"] == 2
    (message,) = [row["message"] for row in found["diagnostics"] if row["code"] == "graph_kernels_hidden"]
    assert "--cuda-graph-trace=node" in message


def test_only_graphs_and_no_kernel_table(tmp_path: Path) -> None:
    tables = base(CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[GRAPH])
    del tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    found = report(tmp_path, tables)
    assert "no_kernels" not in codes(found)
    assert [row["device"] for row in found["devices"]] == [0]


@pytest.mark.parametrize(("node", "told"), [(None, True), (1 << 32, False)])
def test_graph_launches_that_left_no_trace(tmp_path: Path, node: int | None, told: bool) -> None:
    texts = strings("k", "k", "cudaGraphLaunch_v10000")
    found = report(tmp_path, StringIds=texts, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, graphNodeId=node)])
    assert ("graphs_unrecorded" in codes(found)) == told
