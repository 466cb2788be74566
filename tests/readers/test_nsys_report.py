"""Times, versions and tables of small nsys reports."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsightlens.readers import nsys
from tests.readers.nsys_report import SESSION, Row, base, call, codes, kernel, read, report, write


def test_times_count_from_the_session(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert found["profiles"][0]["origin_epoch_ns"] == SESSION
    assert found["kernels"][0]["start_ns"] == 1000


def export(**settings: str) -> list[Row]:
    return [{"name": name, "value": value} for name, value in settings.items()]


def test_normalised_times_count_from_the_session_too(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        META_DATA_EXPORT=export(EXPORT_PARAM_TIME_NORMALIZE="true"),
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(SESSION + 1000, SESSION + 1500)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(SESSION - 10, SESSION + 950)],
    )
    assert found["profiles"][0]["origin_epoch_ns"] == SESSION
    assert found["kernels"][0]["start_ns"] == 1000
    assert found["api_calls"][0]["start_ns"] == -10


def test_normalised_times_without_a_session(tmp_path: Path) -> None:
    tables = base(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(SESSION + 1000, SESSION + 1500)], CUPTI_ACTIVITY_KIND_RUNTIME=[call(SESSION, SESSION)]
    )
    del tables["TARGET_INFO_SESSION_START_TIME"]
    found = report(tmp_path, tables)
    origin = found["profiles"][0]["origin_epoch_ns"]
    assert origin + found["kernels"][0]["start_ns"] == SESSION + 1000
    assert found["kernels"][0]["start_ns"] < 10**9


@pytest.mark.parametrize("first", [0, SESSION])
def test_shifted_times_are_shifted_back(tmp_path: Path, first: int) -> None:
    shift = 5_000
    found = report(
        tmp_path,
        META_DATA_EXPORT=export(EXPORT_PARAM_TIME_SHIFT=str(shift)),
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(first + shift + 1000, first + shift + 1500)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(first + shift, first + shift)],
    )
    assert found["profiles"][0]["origin_epoch_ns"] + found["kernels"][0]["start_ns"] == SESSION + 1000
    assert codes(found)["times_shifted"] == 1


def test_an_unknown_session_is_said(tmp_path: Path) -> None:
    tables = base()
    del tables["TARGET_INFO_SESSION_START_TIME"]
    found = report(tmp_path, tables)
    assert "origin_epoch_ns" not in found["profiles"][0]
    assert "no_epoch" in codes(found)


def test_both_names_of_the_table_of_versions(tmp_path: Path) -> None:
    tables = base()
    tables["EXPORT_META_DATA"] = tables.pop("META_DATA_EXPORT")
    tables["TARGET_INFO_SYSTEM_ENV"] = [{"name": "TargetInstallDir", "value": "/opt/nvidia/nsight-systems/2024.1.1/target"}]
    (profile,) = report(tmp_path, tables)["profiles"]
    assert (profile["tool_version"], profile["format"], profile["capture_version"], profile["vendor"]) == (
        "2025.3.1.90",
        "nsys sqlite 3.20.2",
        "2024.1.1",
        "cuda",
    )


def test_a_capture_by_the_exporter_has_no_other_version(tmp_path: Path) -> None:
    found = report(
        tmp_path, TARGET_INFO_SYSTEM_ENV=[{"name": "TargetInstallDir", "value": "/opt/nsight-systems/2025.3.1/target-linux-x64"}]
    )
    assert "capture_version" not in found["profiles"][0]


def test_the_latest_suffix_of_a_table(tmp_path: Path) -> None:
    tables = base()
    tables["CUPTI_ACTIVITY_KIND_KERNEL_V10"] = [kernel(1, 2), kernel(3, 4)]
    tables["CUPTI_ACTIVITY_KIND_KERNEL_V9"] = [kernel(5, 6)]
    assert [row["start_ns"] for row in report(tmp_path, tables)["kernels"]] == [1, 3]


@pytest.mark.parametrize("missing", list(base()))
def test_any_table_may_be_absent(tmp_path: Path, missing: str) -> None:
    tables = base()
    del tables[missing]
    found = report(tmp_path, tables)
    assert len(found["kernels"]) == (missing != "CUPTI_ACTIVITY_KIND_KERNEL")
    assert len(found["api_calls"]) == (missing != "CUPTI_ACTIVITY_KIND_RUNTIME")


def test_tables_that_nobody_reads_are_named_once(tmp_path: Path) -> None:
    found = report(
        tmp_path, CUBLAS_EVENTS=[{"start": 1}, {"start": 2}], CUDNN_EVENTS=[{"start": 1}], ENUM_X=[{"id": 1}],
        SystemInfo=[{"id": 1}],
    )
    (message,) = [row["message"] for row in found["diagnostics"] if row["code"] == "unread_tables"]
    assert message.endswith(": CUBLAS_EVENTS, CUDNN_EVENTS, SystemInfo")
    assert codes(found)["unread_tables"] == 3
    assert dict(found["profiles"][0]["unread"]) == {"CUDNN_EVENTS": 1, "CUBLAS_EVENTS": 2, "SystemInfo": 1}


def test_rows_that_nobody_reads_are_counted_where_some_were_deleted(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", base(CUBLAS_EVENTS=[{"start": 1}, {"start": 2}, {"start": 3}]))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM CUBLAS_EVENTS WHERE rowid = 1")
    assert dict(read(path)["profiles"][0]["unread"]) == {"CUBLAS_EVENTS": 2}
    assert dict(nsys.probe(path).unread) == {"CUBLAS_EVENTS": 2}


def test_payloads_of_nccl_are_named(tmp_path: Path) -> None:
    entries = [{"domainId": 1, "schemaId": 16777220, "idx": at, "name": name} for at, name in enumerate((
        "NCCL communicator ID", "Message size [bytes]"))]
    assert codes(report(tmp_path, NVTX_PAYLOAD_SCHEMA_ENTRIES=entries))["payloads_missing"] == 1
    assert "payloads_missing" not in codes(report(tmp_path, NVTX_PAYLOAD_SCHEMA_ENTRIES=entries[:1]))


def test_why_there_are_no_kernels(tmp_path: Path) -> None:
    tables = base(
        DIAGNOSTIC_EVENT=[
            {"severity": 2, "text": "CUDA hardware tracing is not\n supported"},
            {"severity": 2, "text": "No OpenGL events"},
            {"severity": 1, "text": "CUDA injection initialized"},
            {"severity": 1, "text": "Number of CUDA events collected: \t1."},
        ]
    )
    del tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    found = report(tmp_path, tables)
    (message,) = [row["message"] for row in found["diagnostics"] if row["code"] == "no_kernels"]
    assert "CUDA hardware tracing is not supported; Number of CUDA events collected: 1." in message
    assert "OpenGL" not in message
    assert "injection" not in message


@pytest.mark.parametrize(("returned", "kernels", "said"), [
    ([701, 701, 0], True, {"launches_failed": "2 of 3 launches failed: cudaLaunchKernel returned 701 (out of resources) 2 "}),
    ([209], False, {"launches_failed": "returned 209 (no kernel image for the device) 1", "no_kernels": "all launches failed"}),
    ([12345, 0], False, {"launches_failed": "returned 12345 1 times", "no_kernels": "none of 1 successful launches was"}),
    ([None, 0], True, {}),
])
def test_launches_that_failed(tmp_path: Path, returned: list[int | None], kernels: bool, said: dict[str, str]) -> None:
    tables = base()
    (call,) = tables["CUPTI_ACTIVITY_KIND_RUNTIME"]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [call | {"correlationId": n, "returnValue": code} for n, code in enumerate(returned)]
    if not kernels:
        del tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    found = {row["code"]: row["message"] for row in report(tmp_path, tables)["diagnostics"]}
    assert {code: text in found.get(code, "") for code, text in said.items()} == dict.fromkeys(said, True)
    assert ("launches_failed" in found) == bool(said)
