"""Decompressions (schema 3.28): memory operations like copies, in every sum of memory time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.readers import nsys
from nsightlens.views import registry
from nsightlens.views.balance import unbalanced
from tests.readers.nsys_2026 import DECOMPRESSION, documented
from tests.readers.nsys_report import Row, base, call, codes, global_pid, kernel, read, report, write, write_parquetdir


def decompression(start: int, end: int, **others: Any) -> Row:
    row: Row = {"start": start, "end": end, "eventClass": 99, "deviceId": 0, "contextId": 1, "streamId": 13, "correlationId": 200,
                "globalPid": global_pid(7), "ChannelID": 4, "sourceBytes": 1 << 20, "NumberOfOperations": 16}
    return row | others


ROWS = [decompression(2000, 2600), decompression(2600, 2700, sourceBytes=512, correlationId=201),
        decompression(1400, 1600, sourceBytes=0, correlationId=None)]


def test_every_row_becomes_a_memory_operation(tmp_path: Path) -> None:
    path = documented(tmp_path / "report.sqlite", {DECOMPRESSION: ROWS})
    write_parquetdir(tmp_path / "directory", path)
    with closing(sqlite3.connect(path)) as connection:
        (expected,) = connection.execute(
            f"SELECT count(*), sum(end - start), sum(sourceBytes), min(start) FROM {DECOMPRESSION}").fetchall()
    for source in (path, tmp_path / "directory"):
        found = read(source)
        rows = found["memory_ops"]
        assert (len(rows), sum(row["duration_ns"] for row in rows), sum(row["bytes"] for row in rows),
                min(row["start_ns"] for row in rows)) == expected
        assert rows[0] == {"process_index": 0, "device": 0, "context": 1, "stream": 13, "correlation_id": 200, "start_ns": 2000,
                           "duration_ns": 600, "bytes": 1 << 20, "kind": "decompression", "name": "[CUDA memory decompression]"}
        assert "correlation_id" not in rows[2]
        assert "unread_tables" not in codes(found) and not nsys.probe(source).unread


def test_columns_that_are_missing_and_values_that_are_none(tmp_path: Path) -> None:
    rows = [decompression(10, 20, sourceBytes=None), decompression(20, 30, sourceBytes="many", streamId="s"),
            decompression(40, 35), decompression(1 << 62, (1 << 62) + 5), decompression(50, 60, deviceId=1 << 40)]
    found = report(tmp_path, **{DECOMPRESSION: rows})
    assert [row.get("bytes") for row in found["memory_ops"]] == [None, None, 1 << 20, 1 << 20, 1 << 20]
    assert ["duration_ns" in row for row in found["memory_ops"]] == [True, True, False, False, True]
    assert {"bad_value", "impossible_duration", "impossible_start", "out_of_range"} <= set(codes(found))
    for column in decompression(1, 2):
        without = [{name: value for name, value in row.items() if name != column} for row in ROWS]
        found = report(tmp_path, **{DECOMPRESSION: without})
        assert len(found["memory_ops"]) == (0 if column == "start" else len(ROWS))


def test_a_cut_file_has_the_rows_that_are_left(tmp_path: Path) -> None:
    many = [decompression(1000 + at, 1001 + at) for at in range(5000)]
    path = write(tmp_path / "report.sqlite", base(**{DECOMPRESSION: many}))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    found = read(path)
    assert 0 < len(found["memory_ops"]) < 5000
    assert "truncated" in codes(found)


@pytest.mark.usefixtures("cache")
def test_every_view_that_adds_up_work_balances(tmp_path: Path) -> None:
    """Decompressions beside a kernel and before one; both that a step holds and that the timeline divides."""
    strings = [{"id": 1, "value": "gemm"}, {"id": 2, "value": "gemm"}, {"id": 3, "value": "cudaLaunchKernel"},
               {"id": 4, "value": "cuMemBatchDecompressAsync"}]
    spans = [{"start": 800 + 1000 * at, "end": 1790 + 1000 * at, "eventType": 59, "globalTid": global_pid(7) + 70, "domainId": 0,
              "text": f"ProfilerStep#{at}"} for at in range(2)]
    documented(
        tmp_path / "run" / "report.sqlite", {DECOMPRESSION: ROWS}, StringIds=strings, NVTX_EVENTS=spans,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000, 1500), kernel(2650, 2900, correlationId=101)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(900, 950), call(1850, 1900, nameId=4, correlationId=200),
                                     call(1950, 1960, nameId=4, correlationId=201), call(1970, 1980, correlationId=101)])
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1)
    with nl.open(tmp_path / "store") as store:
        asked = set()
        views = registry.known().items()
        of_one_run = {name: view for name, view in views if "base" not in {param.name for param in view.params}}
        for name, view in of_one_run.items():
            if view.balances:
                table = store.view(name)
                assert not unbalanced(table, view.balances), name
                asked |= {name} if table.num_rows else set()
        assert asked >= {"busy_time", "step_breakdown", "idle_breakdown", "idle_causes", "kernel_breakdown"}
        (summed,) = store.view("memory_op_summary").to_pylist()
        assert (summed["kind"], summed["total_ns"], summed["operations"], summed["total_bytes"]) == (
            "decompression", 900, 3, (1 << 20) + 512)
        (busy,) = store.view("busy_time").to_pylist()
        assert busy["busy_ns"] == 600 + 900  # 1000 to 1600, 2000 to 2900
        steps = store.view("step_breakdown").to_pylist()
        assert sum(step["memcpy_ns"] for step in steps) == 100 + 650  # outside of kernels, within the steps
        functions = store.sql("SELECT c.name FROM memory_ops AS m JOIN api_calls AS c USING (launch_id) ORDER BY m.start_ns")
        assert functions["name"].to_pylist() == ["cuMemBatchDecompressAsync"] * 2
