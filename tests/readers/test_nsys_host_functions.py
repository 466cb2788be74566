"""Functions of the host that streams run (schema 3.28): rows of their own, and why a GPU idles."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.readers import nsys
from tests.readers.nsys_2026 import HOST_FUNCTION, documented
from tests.readers.nsys_report import Row, base, call, codes, global_pid, kernel, read, report, strings, write, write_parquetdir


def function(start: int, end: int, **others: Any) -> Row:
    row: Row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "greenContextId": None, "streamId": 7,
                "correlationId": 200, "globalPid": global_pid(7), "graphNodeId": None, "graphId": None}
    return row | others


ROWS = [function(2000, 2600), function(2700, 2900, correlationId=201, graphNodeId=(5 << 32) | 3, graphId=5),
        function(1600, 1650, correlationId=None, streamId=13)]


def test_every_row_is_kept(tmp_path: Path) -> None:
    path = documented(tmp_path / "report.sqlite", {HOST_FUNCTION: ROWS})
    write_parquetdir(tmp_path / "directory", path)
    with closing(sqlite3.connect(path)) as connection:
        (expected,) = connection.execute(f"SELECT count(*), sum(end - start), count(graphNodeId) FROM {HOST_FUNCTION}").fetchall()
    for source in (path, tmp_path / "directory"):
        found = read(source)
        rows = found["host_functions"]
        assert (len(rows), sum(row["duration_ns"] for row in rows), sum("graph_node_id" in row for row in rows)) == expected
        place = {"process_index": 0, "device": 0, "context": 1, "stream": 7}
        assert rows[:2] == [
            place | {"correlation_id": 200, "start_ns": 2000, "duration_ns": 600, "kind": "launch"},
            place | {"correlation_id": 201, "start_ns": 2700, "duration_ns": 200, "kind": "graph_node", "graph_id": 5,
                     "graph_node_id": (5 << 32) | 3}]
        assert "unread_tables" not in codes(found) and not nsys.probe(source).unread


def test_columns_that_are_missing_and_values_that_are_none(tmp_path: Path) -> None:
    rows = [function(10, 20, streamId="s"), function(40, 35), function(1 << 62, (1 << 62) + 5)]
    found = report(tmp_path, **{HOST_FUNCTION: rows})
    assert ["duration_ns" in row for row in found["host_functions"]] == [True, False, False]
    assert {"bad_value", "impossible_duration", "impossible_start"} <= set(codes(found))
    for column in function(1, 2):
        without = [{name: value for name, value in row.items() if name != column} for row in ROWS]
        assert len(report(tmp_path, **{HOST_FUNCTION: without})["host_functions"]) == (0 if column == "start" else len(ROWS))


def test_a_cut_file_has_the_rows_that_are_left(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", base(**{HOST_FUNCTION: [function(1000 + at, 1001 + at) for at in range(5000)]}))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    found = read(path)
    assert 0 < len(found["host_functions"]) < 5000 and "truncated" in codes(found)


@pytest.mark.usefixtures("cache")
def test_a_gpu_that_idles_for_one(tmp_path: Path) -> None:
    """A kernel from 1000 to 1500, a function of its stream from 1600 to 2600, the next kernel at 2650: launched long before."""
    documented(
        tmp_path / "run" / "report.sqlite", {HOST_FUNCTION: [function(1600, 2600)]},
        StringIds=strings("gemm", "gemm", "cudaLaunchKernel_v7000", "cudaLaunchHostFunc_v10000"),
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000, 1500), kernel(2650, 2900, correlationId=101)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(900, 950), call(960, 970, nameId=4, correlationId=200),
                                     call(980, 990, correlationId=101)])
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1)
    with nl.open(tmp_path / "store") as store:
        causes = [(row["cause"], row["name"], row["idle_ns"], row["gaps"]) for row in store.view("idle_causes").to_pylist()]
        assert causes == [("host_function", "cudaLaunchHostFunc", 1000, 1), ("queue", None, 150, 1)]
        (summed,) = store.view("host_function_summary").to_pylist()
        assert (summed["kind"], summed["name"], summed["total_ns"]) == ("launch", "cudaLaunchHostFunc", 1000)
        (busy,) = store.view("busy_time").to_pylist()
        assert (busy["busy_ns"], busy["idle_ns"]) == (750, 1150)
