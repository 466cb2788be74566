"""What traces hold that CUDA's own do not: defects of some builds, other vendors' devices, traces that were put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nsightlens.errors import UnknownFormatError
from nsightlens.readers import kineto
from nsightlens.readers.kineto import categories
from nsightlens.readers.kineto.repair import Repairer
from tests.readers.kineto_text import Tables, codes, event, kernel, read, trace

LAST = event(None, "Record Window End", "99.0", None, pid="", tid="", ph="i")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.pt.trace.json"


def message(found: Tables, code: str) -> str:
    return str(next(d["message"] for d in found["diagnostics"] if d["code"] == code))


@pytest.mark.parametrize(("written", "meant"), [
    ('{"a": , "b": 1}', '{"a": null, "b": 1}'), ('{"a": }', '{"a": null}'), ('{"a":\n}', '{"a": null}'),
    ('{"a": two words, "b": true}', '{"a": null, "b": true}'), ('{"a": word }', '{"a": null}'),
    ('{"a": null }', '{"a": null}'), ('{"a": null and void}', '{"a": null}'), ('{"a": [ , ]}', None), ('{"a": x: y}', None),
])
def test_values_that_are_missing_or_bare(written: str, meant: str | None) -> None:
    if meant is None:
        with pytest.raises(ValueError):
            Repairer(written).value()
    else:
        assert Repairer(written).value() == meant


@pytest.mark.parametrize(("written", "what"), [
    ("", "values that are missing"), ("default group", "texts without quotes"), ("default", "bare inf, nan or N/A"),
])
@pytest.mark.parametrize("events", [3, 3000])
def test_a_group_without_a_readable_description_costs_neither_kernel_nor_rank(
    path: Path, written: str, what: str, events: int,
) -> None:
    """Builds before 2026 wrote nothing, or text without quotes, for the description of a process group."""
    collective = kernel(name="ncclDevKernel", **{"Process Group Description": "?", "Collective name": "allreduce", "Seq": 3})
    groups = '"distributedInfo": {"pg_config": [{"pg_desc": "?", "ranks": [0, 1]}], "rank": 1, "world_size": 2},'
    text = trace(*[collective] * events, kernel(name="last"), LAST, head=groups).replace('"?"', written)
    found = read(path, text, piece_bytes=100_000)
    assert [(k["name"], k["group_seq"]) for k in found["kernels"]] == [("ncclDevKernel", 3)] * events + [("last", None)]
    assert {(k["start_ns"], k["duration_ns"]) for k in found["kernels"]} == {(1_500, 3_250)}
    assert (found["processes"][0]["rank"], found["processes"][0]["world_size"]) == (1, 2)
    assert codes(found) == {"malformed_json", "no_epoch"}
    assert f"{what}, taken as unknown {events}" in message(found, "malformed_json")


@pytest.mark.parametrize(("label", "direction"), [
    ("Memcpy M2D (Memory -> Device)", "HtoD"), ("Memcpy D2M (Device -> Memory)", "DtoH"), ("Memcpy H2D (Host -> Device)", "HtoD"),
    ("Memcpy D2D (Device -> Device)", "DtoD"), ("Memcpy M2H (Memory -> Host)", "HtoH"), ("Memcpy S2D (Shared -> Device)", None),
    ("Memcpy INVALID (Shared -> Device)", None), ("conv2d_H2D4", None), ("Memcpy HtoD (Pageable -> Device)", "HtoD"),
])
def test_directions_of_copies_on_intel_gpus(label: str, direction: str | None) -> None:
    assert categories.direction(label) == direction


def test_work_on_an_intel_gpu(path: Path) -> None:
    """Its kernels have a queue in place of a stream, and no grid."""
    said = {"device": 0, "correlation": 9, "External id": 4, "l0 queue": "0x17", "sycl queue": 64, "context": "0x12"}
    found = read(path, trace(
        event("cpu_op", "aten::mm", "1.0", "9.0", {"External id": 4}),
        event("xpu_runtime", "urEnqueueKernelLaunch", "2.0", "1.0", {"correlation": 9, "External id": 4}),
        event("kernel", "gemm_kernel", "5.125", "2.250", said, pid=0, tid=64),
        event("gpu_memcpy", "Memcpy M2D (Memory -> Device)", "9.0", "1.0", {**said, "bytes": 4096}, pid=0, tid=64),
        event("Trace", "__xpu_profiler__ (0)", "1.0", "20.0", pid="Spans", tid="__xpu_profiler__"), LAST,
    ))
    told = found["kernels"][0]
    assert (told["device"], told["stream"], told["context"], told["grid_x"], told["duration_ns"]) == (0, 64, None, None, 2250)
    assert (told["correlation_id"], told["external_id"]) == (9, 4)
    assert (found["memory_ops"][0]["direction"], found["memory_ops"][0]["bytes"]) == ("HtoD", 4096)
    assert found["api_calls"][0]["api"] == "runtime" and not codes(found) - {"events_not_stored"}


def test_work_of_an_accelerator_that_we_do_not_know_is_not_passed_over_in_silence(path: Path) -> None:
    work = event("aiu", "mm", 3, 4, pid=2), event(None, "MatMulV2", 9, 4)
    found = read(path, trace(event("cpu_op", "aten::mm", 1), *work, LAST))
    assert not found["kernels"]
    assert message(found, "no_gpu_work").endswith("no table or sum includes them: aiu 1, no category 1.")


@pytest.mark.parametrize("events", [
    [event("cpu_op", "aten::mm", 1), event("cuda_sync", "Stream Sync", 3)],
    [event("aiu", "mm", 3, 4, pid=2), kernel()],
])
def test_a_trace_of_the_cpu_and_one_of_a_gpu_have_no_such_warning(path: Path, events: list[str]) -> None:
    assert "no_gpu_work" not in codes(read(path, trace(*events, LAST)))


def rank(label: str, pid: int, device: int, start: int) -> list[str]:
    """Return a launch and its kernel as a program writes them that merges traces: the pid is text."""
    said: dict[str, Any] = {"device": device, "stream": 7, "correlation": 9}
    return [event("cuda_runtime", "cudaLaunchKernel", start, 1, {"correlation": 9}, pid=f"{label} {pid}"),
            event("kernel", "k", start + 2, 1, said, pid=f"{label} {device}", tid=7)]


@pytest.mark.parametrize("devices", [(0, 0), (0, 1)])
def test_merged_traces_are_refused(path: Path, devices: tuple[int, int]) -> None:
    """Correlation ids and devices are of one process; those of several would meet."""
    path.write_text(trace(*rank("[TP00]", 100, devices[0], 10), *rank("[TP01]", 101, devices[1], 20)))
    for reading in (lambda: kineto.probe(path), lambda: list(kineto.read([path]))):
        with pytest.raises(UnknownFormatError, match=r"merged by another program.*'\[TP00\]' and '\[TP01\]'"):
            reading()


def test_a_merged_trace_is_refused_where_its_second_process_begins_late(path: Path) -> None:
    path.write_text(trace(*rank("[TP00]", 100, 0, 10) * 8000, *rank("[TP01]", 101, 1, 20)))
    kineto.probe(path)
    with pytest.raises(UnknownFormatError, match="merged by another program"):
        list(kineto.read([path], piece_bytes=100_000))


def test_one_label_is_no_merge(path: Path) -> None:
    found = read(path, trace(*rank("[TP00]", 100, 0, 10), LAST))
    assert [(k["device"], k["correlation_id"]) for k in found["kernels"]] == [(0, 9)]
    assert not codes(found) & {"shared_devices"}


@pytest.mark.parametrize(("tracks", "shared"), [([0, 1000], 1), ([0, 0], 0), ([5, 5], 0)])
def test_kernels_of_one_device_under_several_pids_are_said(path: Path, tracks: list[int], shared: int) -> None:
    events = [event("kernel", "k", 10 * at, 1, {"device": 0, "stream": 7}, pid=pid, tid=7) for at, pid in enumerate(tracks, 1)]
    for piece_bytes in (1, 1 << 20):
        found = read(path, trace(*events, LAST), piece_bytes=piece_bytes)
        assert len(found["kernels"]) == 2
        assert [d["count"] for d in found["diagnostics"] if d["code"] == "shared_devices"] == [shared] * bool(shared)


def test_the_one_device_of_a_trace_is_the_one_it_lists(tmp_path: Path) -> None:
    """ROCm's events count devices otherwise than its list does."""
    listed = '"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}]'
    found = read(tmp_path / "one.json", trace(kernel(device=9), LAST, tail=listed))
    assert [(row["device"], row["name"]) for row in found["devices"]] == [(9, "AMD Instinct MI300X")]
    assert "device_assumed" in codes(found)
    two = read(tmp_path / "two.json", trace(kernel(device=9), kernel(device=8), LAST, tail=listed))
    assert [row["name"] for row in two["devices"]] == [None, None]
    plain = read(tmp_path / "plain.json", trace(kernel(device=0), LAST, tail=listed))
    assert "device_assumed" not in codes(plain)
