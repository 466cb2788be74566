"""What ncu's log tells: why there is no table, versions, passes, controls; and files of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers import ncu
from tests.readers.ncu_text import DURATION, codes, ids, line, metrics, raw, read, save, told

CONNECTED = "==PROF== Connected to process 7 (/usr/bin/app)"
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters "
    "on the target device 0."
)
PROFILING = '==PROF== Profiling "gemm_kernel": 0%....50%....100% - 9 passes'


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        ([CONNECTED, PERMISSION], "counter_permission", ["NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN", "sudo"]),
        ([PERMISSION, "==WARNING== No kernels were profiled."], "counter_permission", ["NVreg"]),
        (["==ERROR== Cuda driver is not compatible with Nsight Compute."], "driver_incompatible", ["driver"]),
        ([CONNECTED, "==ERROR== The application returned an error code (137)."], "application_failed", ["137"]),
        (
            [CONNECTED, "==WARNING== No kernels were profiled.", "Available Kernels:", "1. first_kernel", "2. second"],
            "no_kernels",
            ["first_kernel", "--kernel-name", "--target-processes all"],
        ),
        ([CONNECTED, "==PROF== Disconnected from process 7"], "no_kernels", ["--launch-skip"]),
        (["==WARNING== No metrics to collect found in sections."], "no_metrics", ["--set"]),
        (["==ERROR== Failed to initialize the counter library"], "tool_error", ["Failed to initialize the counter library"]),
        ([PROFILING, "==PROF== Report: /data/r1.ncu-rep"], "report_elsewhere", ["Ingest", "/data/r1.ncu-rep"]),
        ([PROFILING, "[69516] transpose@127.0.0.1", "  transpose(float *), 2023-Mar"], "not_csv", ["--csv"]),
        ([PROFILING], "no_table", ["--log-file"]),
    ],
)
def test_a_log_without_a_table_says_what_to_do(tmp_path: Path, lines: list[str], code: str, words: list[str]) -> None:
    path = save(tmp_path, lines)
    assert ncu.sniff(path, path.read_bytes())
    for ask in (ncu.probe, read):
        with pytest.raises(ReadError) as error:
            ask(path)
        assert error.value.code == code
        assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    "text", [metrics(), raw([("a__b.sum", "")]), [line(("ID", "Kernel Name", "a__b.sum"))], [line(("ID", "Kernel Name"))]]
)
def test_a_header_without_rows_is_refused(tmp_path: Path, text: list[str]) -> None:
    path = save(tmp_path, text)
    assert ncu.sniff(path, path.read_bytes())
    for ask in (ncu.probe, read):
        with pytest.raises(ReadError) as error:
            ask(path)
        assert error.value.code == "no_kernels"


def test_missing_files_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(ReadError, match="path"):
            ncu.probe(path)


def test_version_and_controls(tmp_path: Path) -> None:
    log = [
        "NVIDIA (R) Nsight Compute Command Line Profiler",
        "Version 2026.2.1.0 (build 38283040) (public-release)",
        "==WARNING== Note: Running with uncontrolled GPU caches. Profiling results may be inconsistent.",
        "==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may vary.",
    ]
    tables = read(save(tmp_path, log + metrics(DURATION)))
    (kernel,) = tables["kernels"]
    assert (kernel["clock_control"], kernel["cache_control"], kernel["replay_mode"]) == ("none", "none", None)
    assert tables["profiles"][0]["tool_version"] == "2026.2.1.0"
    assert codes(tables) == {"log_lines": 4}
    assert ncu.probe(save(tmp_path, log + metrics(DURATION))).tool_version == "2026.2.1.0"
    plain = read(save(tmp_path, metrics(DURATION)))["kernels"][0]
    assert (plain["clock_control"], plain["cache_control"]) == (None, None)


def test_messages_beside_a_table_are_told(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [*metrics(DURATION), "==ERROR== The application returned an error code (1)."]))
    assert "error code (1)" in told(tables, "tool_message")
    assert codes(tables) == {"log_lines": 1, "tool_message": 1}


def passes(*lines: str) -> list[str]:
    """Log lines followed by a table of two launches, of which the second has no passes of its own."""
    return [
        *lines,
        *metrics(DURATION, of=ids(0, "void ns::gemm_kernel<float>(int)")),
        *metrics(DURATION, of=ids(1, "copy(int)"), header=False),
    ]


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (
            [
                '==PROF== Profiling "gemm_kernel" - 0: 0%....50%....100% - 9 passes',
                '==PROF== Profiling "copy" - 1: 0%....100%starting - 1 pass',
            ],
            [9, 1],
        ),
        (['==PROF== Profiling "gemm_ker..." - 0: 0%....50%....100% - 9 passes'], [9, None]),
        (['==PROF== Profiling "other" - 0: 0%....50%....100% - 9 passes'], [None, None]),
        (
            ['==PROF== Profiling "copy" - 1: 0%....100% - 3 passes', '==PROF== Profiling "copy" - 1: 0%....100% - 4 passes'],
            [None, None],
        ),
        (['==PROF== Profiling "copy": 0%....50%....100% - 9 passes'], [None, None]),
    ],
)
def test_passes_are_taken_from_the_log_where_they_fit_one_launch(
    tmp_path: Path, log: list[str], wanted: list[int | None]
) -> None:
    assert [k["passes"] for k in read(save(tmp_path, passes(*log)))["kernels"]] == wanted


def test_passes_of_the_report_come_first(tmp_path: Path) -> None:
    log = '==PROF== Profiling "k" - 0: 0%....50%....100% - 9 passes'
    text = raw([("profiler__replayer_passes", "pass")], ("11",))
    assert read(save(tmp_path, [log, *text]))["kernels"][0]["passes"] == 11


FOREIGN = {
    '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,ms,us,ms,': "nvprof summary csv",
    '==99== NVPROF\n"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"': "nvprof metrics csv",
    '"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"': "nvprof events csv",
    "Time(%),Time,Calls,Avg,Min,Max,Name\n47.79%,542.36ms,45,12.052ms,12.007ms,12.110ms,[CUDA memcpy HtoD]": "nvprof summary csv",
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Registers Per Thread","Name","Correlation_ID"': "nvprof trace csv",
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name": "nsys stats csv",
    "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name": "nsys stats csv",
    "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name": "nsys stats csv",
    "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation": "nsys stats csv",
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,DymSMem (MB),Device,Ctx,Strm,Name": "nsys stats csv",
    "ID;Process ID;Process Name;Host Name;Kernel Name;Context;Stream;Metric Name;Metric Value": "ncu csv, saved again",
    '"ID"\t"Process ID"\t"Process Name"\t"Host Name"\t"Kernel Name"': "ncu csv, saved again",
    "dataset,implementation,k,Memory Throughput (%),Occupancy (%),L1 Hit Rate (%),IPC": "hand-made counter csv",
    "kernel,dram__bytes.sum,sm__throughput": "hand-made counter csv",
}


@pytest.mark.parametrize("text", FOREIGN, ids=list(FOREIGN.values()))
def test_files_of_other_tools_are_named_and_not_ours(text: str) -> None:
    kind, reason, todo = ncu.recognise_foreign_csv("﻿" + text) or ("", "", "")
    assert (kind, bool(reason), bool(todo)) == (FOREIGN[text], True, True)
    assert not ncu.sniff(Path("ncu_metrics.csv"), text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b,c\n1,2,3",
        "label,peak_flops,peak_bandwidth",
        '{"traceEvents": [1,2]}',
        '"open, quote',
        "\n\n",
        ",",
        "\n".join(metrics(DURATION)),
        "==PROF== Connected, really",
    ],
)
def test_other_text_is_not_named(text: str) -> None:
    assert ncu.recognise_foreign_csv(text) is None


@pytest.mark.parametrize(
    "head",
    [b"", b"SQLite format 3\0", b'{"schemaVersion": 1}', b"\xff\xfe", b"\x1f\x8b\x08", b"ID,Name\n1,2"],
)
def test_other_files_are_not_sniffed(head: bytes) -> None:
    assert not ncu.sniff(Path("x"), head)
