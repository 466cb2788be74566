"""Sentences of the format: spellings, times, links and words of every generation, on small texts."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.errors import UnknownFormatError
from nsightlens.readers.kineto import categories, times
from tests.readers.kineto_text import BASE, codes, event, kernel, read, trace


@pytest.fixture()
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


def exact(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value())


@given(st.lists(st.integers(0, (1 << 43) * 1000 - 1), min_size=1))
def test_relative_times_are_exact_as_doubles(all_ns: list[int]) -> None:
    texts = [f"{ns // 1000}.{ns % 1000:03}" for ns in all_ns]
    assert times.nanoseconds([float(text) for text in texts]).tolist() == all_ns


def test_a_product_of_doubles_would_lose_nanoseconds() -> None:
    texts = [f"4458676422880.{n:03}" for n in range(1000)]
    assert [round(float(text) * 1000) for text in texts] != [exact(text) for text in texts]
    assert times.nanoseconds([float(text) for text in texts]).tolist() == [exact(text) for text in texts]


@given(st.lists(st.integers(-(1 << 60), 1 << 60).map(lambda ns: ns // 1000), min_size=1))
def test_whole_microseconds_are_exact(us: list[int]) -> None:
    assert times.nanoseconds(us).tolist() == [one * 1000 for one in us]


@pytest.mark.parametrize(("value", "ns"), [
    (None, None), ("x", None), ("12.5", 12500), (True, None), (10**30, None), ([1], None), (0.1234, 123), (0.1236, 124),
    (Decimal("1712195495505583.123"), 1712195495505583123), (Decimal("1e400"), None), (Decimal("NaN"), None), (-1.5, -1500),
])
def test_odd_times(value: Any, ns: int | None) -> None:
    for values in ([value], [value, None]):
        assert times.column(times.nanoseconds(values)).to_pylist()[0] == ns


def test_a_double_that_lost_its_fraction_is_refused() -> None:
    with pytest.raises(times.InexactTime):
        times.nanoseconds([1712195495505583.123])


def test_g4_absolute_fractions_are_read_from_the_text(path: Path) -> None:
    found = read(path, trace(kernel("1712195495505583.123", "7.001"), kernel("1712195495505583.124", "0.999"), head=""))
    assert found["profiles"][0]["origin_epoch_ns"] == 1712195495 * 10**9
    assert [(k["start_ns"], k["duration_ns"]) for k in found["kernels"]] == [(505583123, 7001), (505583124, 999)]
    assert found["profiles"][0]["format"] == "kineto G4"


def test_absolute_fractions_are_found_in_any_piece(path: Path) -> None:
    """Only the last events have such times; the first ones gave no sign of it."""
    events = [kernel(f"{n}.5") for n in range(1, 2000)] + [kernel("1712195495505583.123", "0.001")]
    found = read(path, trace(*events), piece_bytes=2000)
    assert (found["kernels"][-1]["start_ns"], found["kernels"][-1]["duration_ns"]) == (1712195495505583123, 1)


def test_g5_epoch_is_base_plus_time(path: Path) -> None:
    found = read(path, trace(kernel("4458676422880.181"), head="", tail=f'"baseTimeNanoseconds": {BASE}'))
    row, profile = found["kernels"][0], found["profiles"][0]
    assert profile["origin_epoch_ns"] + row["start_ns"] == BASE + 4458676422880181
    assert profile["origin_epoch_ns"] % 10**9 == 0 and 0 <= row["start_ns"] < 10**9
    assert profile["format"] == "kineto G5"


def test_times_relative_to_nothing_have_no_epoch(path: Path) -> None:
    found = read(path, trace(kernel("2000001.5"), head='"schemaVersion": 1,'))
    assert found["profiles"][0]["origin_epoch_ns"] is None
    assert found["profiles"][0]["format"] == "kineto"
    assert "no_epoch" in codes(found)


def test_a_bare_list_of_absolute_times_has_an_epoch(path: Path) -> None:
    found = read(path, "[" + kernel(1752215573960717, 4) + "]")
    assert found["profiles"][0]["origin_epoch_ns"] + found["kernels"][0]["start_ns"] == 1752215573960717000


@pytest.mark.parametrize("base", ["null", '"x"', "-1", "1.5", "99999999999999999999999"])
def test_an_odd_base_is_no_base(path: Path, base: str) -> None:
    found = read(path, trace(kernel(), head=f'"schemaVersion": 1, "baseTimeNanoseconds": {base},'))
    assert found["profiles"][0]["origin_epoch_ns"] is None


def test_a_clamped_first_time_does_not_move_the_origin(path: Path) -> None:
    """Kineto clamps negative relative times to 0."""
    found = read(path, trace(event("cpu_op", "a", "0.000"), kernel("5000000.250")))
    assert found["kernels"][0]["start_ns"] == 250


@pytest.mark.parametrize(("old", "new"), [
    ("Kernel", "kernel"), ("Memcpy", "gpu_memcpy"), ("Memset", "gpu_memset"), ("Runtime", "cuda_runtime"), ("Operator", "cpu_op"),
    ("gpu_user_Annotation", "gpu_user_annotation"),
])
def test_old_spellings_mean_the_new_ones(path: Path, old: str, new: str) -> None:
    args = {"device": 0, "stream": 7, "correlation": 3}
    texts = [trace(event(cat, "Memcpy HtoD (Pinned -> Device)", "1.5", args=args, pid=0, tid=7)) for cat in (old, new)]
    one, other = (read(path, text) for text in texts)
    for table in ("kernels", "memory_ops", "api_calls", "ranges"):
        assert one[table] == other[table]
    assert sum(len(one[t]) for t in ("kernels", "memory_ops", "api_calls", "ranges")) == 1


def test_g1_spellings(path: Path) -> None:
    """Capitalised categories, `external id`, thread ids as text, [memory] without a category."""
    launched = {"correlation": 11, "external id": 4}
    found = read(path, trace(
        event("Operator", "aten::add", 1623142623460016, 9, {"External id": 4, "Input Dims": [[2, 3], []]}, 25738, "25738"),
        event("Runtime", "cudaLaunchKernel", 1623142623460020, 3, launched, 25738, "25738"),
        event("Kernel", "k", 1623142623460030, 0, {"device": 1, "stream": 7, **launched}, 1, "stream 7"),
        event(None, "[memory]", 1623142623460017, None, {"Device Type": 1, "Device Id": 0, "Bytes": -512}, 25738, 25738, "i"),
        head=""))
    assert found["profiles"][0]["format"] == "kineto G1"
    assert found["profiles"][0]["link_method"] == "external_id"
    assert [r["external_id"] for t in ("kernels", "api_calls", "ranges") for r in found[t]] == [4, 4, 4]
    assert (found["ranges"][0]["thread"], found["ranges"][0]["shapes"]) == (25738, "[[2, 3], []]")
    assert found["allocations"][0]["bytes"] == -512
    assert (found["kernels"][0]["stream"], found["kernels"][0]["duration_ns"]) == (7, 0)


@pytest.mark.parametrize(("ts", "kept"), [("1700000000000000", None), ("1700000000000.000", 12)])
def test_an_id_equal_to_the_correlation_is_no_link_in_whole_microseconds(path: Path, ts: str, kept: int | None) -> None:
    """Where times have fractions, an equal id is mere chance."""
    args = {"correlation": 12, "External id": 12, "device": 0, "stream": 7}
    found = read(path, trace(event("cuda_runtime", "cudaLaunchKernel", ts, 1, args), event("kernel", "k", ts, 1, args, 0, 7),
                             event("cpu_op", "op", ts, 1, {"External id": 12})))
    assert [found[t][0]["external_id"] for t in ("api_calls", "kernels", "ranges")] == [kept, kept, 12]
    assert found["profiles"][0]["link_method"] == ("external_id" if kept else "containment")


def test_external_id_zero_is_none(path: Path) -> None:
    assert read(path, trace(kernel(**{"External id": 0})))["kernels"][0]["external_id"] is None


def test_gpu_work_is_told_by_category_not_by_stream(path: Path) -> None:
    found = read(path, trace(
        event("cuda_sync", "Stream Sync", "1.0", 9, {"stream": 7, "device": 0}, 0, 1000007),
        event("cpu_op", "triton", "1.0", 9, {"stream": 0}),
        event("xpu_sync", "wait", "1.0", 9, {"stream": 7, "device": 0}, 0, 7),
        event("cuda_runtime", "hipLaunchKernel", "1.0", 9, {"stream": "0x0", "correlation": 1, "grid": [1, 1, 1]})))
    assert not found["kernels"] and not found["memory_ops"] and len(found["synchronizations"]) == 1
    assert len(found["api_calls"]) == len(found["ranges"]) == 1
    assert found["profiles"][0]["vendor"] == "rocm"
    said = next(d for d in found["diagnostics"] if d["code"] == "events_not_stored")
    assert (said["severity"], said["count"]) == ("info", 1) and "xpu_sync 1" in said["message"]


def test_everything_not_stored_is_counted(path: Path) -> None:
    found = read(path, trace(
        event("python_function", "a.py(3): f", "1.0"), event("python_function", "nn.Module: Linear_0", "1.0"),
        event("Trace", "PyTorch Profiler (0)", "1.0", pid="Spans", tid="PyTorch Profiler"), event("mtia_runtime", "x", "1.0"),
        event("something_new", "x", "1.0"), event(None, "x", "1.0"), event("overhead", "x", "1.0", pid=-1),
        event("ac2g", "ac2g", "1.0", None, ph="s"), event("fwdbwd", "fwdbwd", "1.0", None, ph="f"),
        event(None, "process_name", "1.0", None, {"name": "python"}, ph="M"),
        event(None, "Record Window End", "1.0", None, pid="", tid="", ph="i")))
    profile, said = found["profiles"][0], next(d for d in found["diagnostics"] if d["code"] == "events_not_stored")
    assert (profile["events"], said["count"], len(found["ranges"]), len(found["frame_calls"])) == (7, 4, 1, 2)
    for told in ("Trace 1", "mtia_runtime 1", "something_new 1", "no category 1",
                 "flows 2", "metadata 1", "instants 1"):
        assert told in said["message"]


def test_kinds_of_ranges(path: Path) -> None:
    found = read(path, trace(
        event("cpu_op", "aten::mm", "1.0", args={"Sequence number": 5, "Fwd thread id": 2, "Input Dims": [[1]], "External id": 3,
                                                 "Input type": ["float", ""], "Concrete Inputs": ["", "nan"]}),
        event("user_annotation", "ProfilerStep#12", "1.0"), event("Operator", "ProfilerStep#13", "1.0"),
        event("user_annotation", "Optimizer.step#SGD.step", "1.0"), event("python_function", "nn.Module: Conv2d_3", "1.0"),
        event("gpu_user_annotation", "ProfilerStep#12", "1.0", pid=2, tid=7)))
    assert [(r["kind"], r["step"]) for r in found["ranges"]] == [
        ("operator", None), ("step", 12), ("step", 13), ("annotation", None), ("module", None), ("gpu_annotation", None)]
    operator, on_gpu = found["ranges"][0], found["ranges"][-1]
    assert (operator["sequence"], operator["forward_thread"], operator["external_id"]) == (5, 2, 3)
    assert (operator["shapes"], operator["types"], operator["concrete_inputs"]) == ("[[1]]", '["float", ""]', '["", "nan"]')
    assert (on_gpu["device"], on_gpu["stream"], on_gpu["thread"], on_gpu["process_index"]) == (2, 7, None, 0)


def test_shapes_are_spaced_one_way_however_the_file_was_written(path: Path) -> None:
    one = event("cpu_op", "a", "1.0", args='{"Input Dims": [[1,2],[ ]]}')
    other = event("cpu_op", "a", "1.0", args='{"Input dims": [\n  [\n    1,\n    2\n  ],\n  []\n]}')
    none = event("cpu_op", "a", "1.0", args='{"Input Dims": null}')
    assert [r["shapes"] for r in read(path, trace(one, other, none))["ranges"]] == ["[[1, 2], []]"] * 2 + [None]


def test_kernel_arguments(path: Path) -> None:
    found = read(path, trace(kernel(**{
        "registers per thread": 32, "shared memory": 49152, "blocks per SM": 0.06, "warps per SM": 1,
        "est. achieved occupancy %": 2, "graph id": 3, "graph node id": 17, "External id": 5, "queued": 0, "priority": 0,
        "occupancy": {"activeBlocksPerMultiprocessor": 1, "limitingFactors": "WARPS"}})))
    assert {
        "grid_x": 4, "grid_y": 2, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1, "registers_per_thread": 32,
        "shared_bytes": 49152, "blocks_per_sm": 0.06, "warps_per_sm": 1.0, "estimated_occupancy_pct": 2.0, "graph_id": 3,
        "graph_node_id": 17, "external_id": 5, "correlation_id": 9, "context": 1, "device": 0, "stream": 7,
    }.items() <= found["kernels"][0].items()
    assert found["profiles"][0]["format"] == "kineto G6"


@pytest.mark.parametrize("written", [
    '"inf"', "inf", "-inf", "NaN", "nan", "N/A", "Infinity", "1e999", "null", '"N/A"', "-nan(ind)"])
def test_an_infinite_number_of_blocks_is_unknown(path: Path, written: str) -> None:
    """numSms unknown: bare inf in old builds, "inf" in new ones."""
    odd = kernel(name="b").replace('"grid"', f'"blocks per SM": {written}, "grid"')
    found = read(path, trace(kernel(name="a"), odd, kernel(name="c")))
    assert [(k["name"], k["blocks_per_sm"], k["grid_x"]) for k in found["kernels"]] == [(name, None, 4) for name in "abc"]
    assert found["profiles"][0]["events_lost"] == 0


@pytest.mark.parametrize("grid", [
    [1, 2], [1, 2, 3, 4], "grid(100,)", [1, 2, "3"], [1, 2, 1 << 40], None, {}, [1.5, 2, 3], [None, 1, 2], 7])
def test_a_grid_that_is_no_grid_is_unknown(path: Path, grid: Any) -> None:
    row = read(path, trace(kernel(grid=grid), kernel()))["kernels"][0]
    assert (row["grid_x"], row["grid_y"], row["grid_z"]) == ((None, 1, 2) if grid == [None, 1, 2] else (None, None, None))
    assert row["block_x"] == 128


def test_odd_values_become_null_not_errors(path: Path) -> None:
    odd = kernel(correlation="x", device=1 << 70, stream=None, context=[1], **{
        "registers per thread": "many", "shared memory": 1.5, "est. achieved occupancy %": {}, "In msg nelems": True,
        "Collective name": 7, "dtype": ["Float"], "Group size": -1.5, "External id": "abc"})
    row = read(path, trace(odd))["kernels"][0]
    assert {row[c] for c in ("correlation_id", "device", "context", "registers_per_thread", "shared_bytes", "message_bytes",
                             "estimated_occupancy_pct", "external_id", "group_size")} == {None}
    assert (row["stream"], row["collective"]) == (7, "7")


def test_device_and_stream_come_from_pid_and_tid_where_no_argument_tells(path: Path) -> None:
    row = read(path, trace(event("kernel", "k", "1.0", 2, None, pid=3, tid=20)))["kernels"][0]
    assert (row["device"], row["stream"], row["correlation_id"]) == (3, 20, None)


@pytest.mark.parametrize(("dtype", "size"), [
    ("Float", 4), ("BFloat16", 2), ("Half", 2), ("Long", 8), ("Byte", 1), ("Double", 8), ("Float8_e4m3fn", 1), ("Weird", None),
    ("", None),
])
def test_message_bytes(path: Path, dtype: str, size: int | None) -> None:
    args = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 9, "Group size": 8, "dtype": dtype,
            "Process Group Name": "tp", "Seq": 41, "Comms Id": 18446744073709551614}
    row = read(path, trace(kernel(**args)))["kernels"][0]
    assert row["message_bytes"] == (None if size is None else 1000 * size)
    assert (row["collective"], row["group_size"], row["group_name"], row["group_seq"]) == ("allreduce", 8, "tp", 41)


def test_the_group_had_an_id_before_it_had_a_name(path: Path) -> None:
    row = read(path, trace(kernel(**{"Collective name": "broadcast", "Process Group ID": 3})))["kernels"][0]
    assert row["group_name"] == "3"


@pytest.mark.parametrize(("name", "direction", "source", "destination"), [
    ("Memcpy HtoD (Pageable -> Device)", "HtoD", "pageable", "device"),
    ("Memcpy DtoH (Device -> Pinned)", "DtoH", "device", "pinned"),
    ("Memcpy PtoP (Device -> Device)", "PtoP", "device", "device"),
    ("Memcpy DtoD (Device Static -> Managed)", "DtoD", "device_static", "managed"),
    ("Memcpy HtoD (Host -> Device)", "HtoD", None, "device"),
    ("Memcpy HtoD (Unknown -> Array)", "HtoD", None, "array"),
    ("CopyHostToDevice", "HtoD", None, None), ("CopyDeviceToDevice", "DtoD", None, None),
    ("Something", None, None, None), ("Memset (Device)", None, None, "device"), ("Memset (Unknown)", None, None, None),
    ("hipMemcpyDtoHAsync", None, None, None),
])
def test_words_of_copies(name: str, direction: str | None, source: str | None, destination: str | None) -> None:
    found = categories.direction(name), categories.source_memory(name), categories.destination_memory(name)
    assert found == (direction, source, destination)


def test_memory_operations(path: Path) -> None:
    args = {"device": 0, "stream": 7, "correlation": 4, "bytes": 1024}
    found = read(path, trace(event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "1.5", "0.5", args, 0, 7),
                             event("gpu_memset", "Memset (Device)", "1.5", 0, args, 0, 7),
                             event("gpu_memcpy", "hip copy", "1.5", 1, {**args, "kind": "DtoH"}, 0, 7)))
    assert [(m["kind"], m["direction"], m["source_memory"], m["destination_memory"], m["bytes"], m["duration_ns"])
            for m in found["memory_ops"]] == [
        ("memcpy", "HtoD", "pageable", "device", 1024, 500), ("memset", None, None, "device", 1024, 0),
        ("memcpy", "DtoH", None, None, 1024, 1000)]


@pytest.mark.parametrize(("cat", "name", "told"), [
    ("cuda_runtime", "cudaStreamGetCaptureInfo_v2", ("cudaStreamGetCaptureInfo", "runtime")),
    ("cuda_driver", "cuLaunchKernelEx", ("cuLaunchKernelEx", "driver")),
    ("cuda_runtime", "hipExtModuleLaunchKernel", ("hipExtModuleLaunchKernel", "runtime")),
    ("xpu_driver", "urEnqueueKernelLaunch", ("urEnqueueKernelLaunch", "driver")),
    ("privateuse1_runtime", "x", ("x", "runtime")),
])
def test_api_calls(path: Path, cat: str, name: str, told: tuple[str, str]) -> None:
    row = read(path, trace(event(cat, name, "1.5", 2, {"correlation": 8, "cbid": 1})))["api_calls"][0]
    assert (row["name"], row["api"]) == told
    assert (row["correlation_id"], row["thread"]) == (8, 100)


def test_allocations(path: Path) -> None:
    def memory(**args: Any) -> str:
        return event("cpu_instant_event", "[memory]", "1.5", None, args, ph="i")
    found = read(path, trace(
        memory(Bytes=64, Addr=(1 << 64) - 16, **{"Device Type": 0, "Device Id": -1, "Total Allocated": 64, "Total Reserved": 0}),
        memory(Bytes=-64, Addr=140_000, **{"Device Type": 1, "Device Id": 2}),
        memory(Bytes=1, **{"Device Type": 20, "Device Id": 0})))
    wanted = ("device_type", "device", "bytes", "address", "total_allocated_bytes")
    assert [tuple(a[name] for name in wanted) for a in found["allocations"]] == [
        ("cpu", None, 64, -16, 64), ("cuda", 2, -64, 140_000, None), ("20", 0, 1, None, None)]
    assert found["profiles"][0]["events"] == 0 and "no_events" not in codes(found)


def test_pids_that_are_names_are_no_processes(path: Path) -> None:
    found = read(path, trace(event("cpu_op", "a", "1.0", pid="777", tid="778"),
                             event("user_annotation", "b", "1.0", pid="Traces", tid="x"), kernel()))
    assert [(p["pid"]) for p in found["processes"]] == [777]
    assert [(r["thread"], r["process_index"]) for r in found["ranges"]] == [(778, 0), (None, 0)]


@pytest.mark.parametrize(("told", "name"), [("/usr/bin/python3 train.py --token s3cret", "python3"), ("TOKEN=s3cret x", None)])
def test_a_process_has_the_name_of_its_program(path: Path, told: str, name: str | None) -> None:
    label = event(None, "process_name", 0, None, {"name": told}, ph="M")
    found = read(path, trace(label, event("cpu_op", "aten::add", 1)))
    assert [row["name"] for row in found["processes"]] == [name]


@pytest.mark.parametrize("ts", ["9223372036854775", "-9223372036854775", "9999999999999999", "2305843009213695", "4e15"])
def test_absurd_starts_are_null_and_counted(path: Path, ts: str) -> None:
    for events in ((kernel(ts), kernel(1751410836000000)), (kernel(1751410836000000), kernel(ts))):
        found = read(path, trace(*events))
        starts = [row["start_ns"] for row in found["kernels"]]
        assert starts.count(None) == 1
        assert all(abs(start) <= 1 << 61 for start in starts if start is not None)
        assert "missing_time" in codes(found)


def test_a_gpu_only_trace_knows_its_pid_by_the_label(path: Path) -> None:
    label = event(None, "process_labels", "1.0", None, {"labels": "CPU"}, pid=4321, tid=0, ph="M")
    name = event(None, "process_name", "1.0", None, {"name": "python"}, pid=4321, tid=0, ph="M")
    assert [(p["pid"], p["name"]) for p in read(path, trace(kernel(), label, name))["processes"]] == [(4321, "python")]
    assert [p["pid"] for p in read(path, trace(kernel()))["processes"]] == [None]


def test_several_processes_are_told_apart(path: Path) -> None:
    found = read(path, trace(event("cpu_op", "a", "1.0", pid=11), event("cpu_op", "b", "1.0", pid=22),
                             event("cuda_runtime", "cudaLaunchKernel", "1.0", pid=22), kernel()))
    assert [p["pid"] for p in found["processes"]] == [22, 11]
    assert [r["process_index"] for r in found["ranges"]] == [1, 0]
    assert found["kernels"][0]["process_index"] == found["api_calls"][0]["process_index"] == 0
    assert "several_processes" in codes(found)


@pytest.mark.parametrize(("told", "rank", "world"), [
    ('{"backend": "nccl", "rank": 3, "world_size": 8}', 3, 8), ('{"rank": 0}', 0, None), ('{"backend": "nccl"}', None, None),
    ("null", None, None), ('{"rank": -1, "world_size": "x"}', None, None), ('"rank 3"', None, None), ('{"rank": "5"}', 5, None),
    ('{"rank": true}', None, None),
])
@pytest.mark.parametrize("before", [True, False])
def test_rank(path: Path, told: str, rank: int | None, world: int | None, before: bool) -> None:
    key = f'"distributedInfo": {told}'
    found = read(path, trace(kernel(), head=key + "," if before else "", tail="" if before else key))
    process = found["processes"][0]
    assert (process["rank"], process["world_size"]) == (rank, world)
    assert process["rank_source"] == (None if rank is None else "content:distributedInfo")


def test_host_by_content_and_by_worker_name(tmp_path: Path) -> None:
    text = trace(event("cpu_op", "a", "1.0", pid=851))
    told = trace(event("cpu_op", "a", "1.0", pid=851), head='"host_name": "node7",')
    names = {"dc3b_851.1752215573993169006.pt.trace.json": "dc3b", "dc3b_851.1752215573993.pt.trace.json": "dc3b",
             "rank_0.1752215573993.pt.trace.json": None, "dc3b_851.json": None, "worker0.1752215573993.pt.trace.json": None}
    for name, host in names.items():
        assert read(tmp_path / name, text)["processes"][0]["host"] == host
    assert read(tmp_path / "x.json", told)["processes"][0]["host"] == "node7"


@pytest.mark.parametrize("head", [
    '"metadata": {"note": "a \\"traceEvents\\": [ in text", "deep": {"traceEvents": [1, 2]}},',
    '"my key": "my /"quoted/" / val", "deviceProperties": [],',
    '"a": [{"b": {}}], "schemaVersion": 1,',
])
def test_the_events_are_found_in_any_envelope(path: Path, head: str) -> None:
    tail = f'"baseTimeNanoseconds": {BASE}, "traceName": "/tmp/x"'
    found = read(path, "\ufeff\n  " + trace(kernel(), head=head, tail=tail) + "\n\n")
    assert len(found["kernels"]) == 1
    assert found["profiles"][0]["origin_epoch_ns"] == BASE + 2 * 10**9


def test_malformed_metadata_loses_no_key(path: Path) -> None:
    head = '"mykey": "my "quoted" val", "host_name": "n1", "distributedInfo": {"rank": 4, "world_size": 8},'
    tail = '"INFO": ["INFO: "x", y"], "deviceProperties": [{"id": 0, "name": "H100", "numSms": 132}], "cupti_version": 28'
    found = read(path, trace(kernel(), head=head, tail=tail))
    assert {"host": "n1", "rank": 4, "world_size": 8}.items() <= found["processes"][0].items()
    assert (found["devices"][0]["name"], found["devices"][0]["sm_count"]) == ("H100", 132)
    said = next(d for d in found["diagnostics"] if d["code"] == "malformed_json")
    assert said["count"] == 2
    assert found["profiles"][0]["events_lost"] == 0


def test_a_post_processed_trace_without_markers_is_not_truncated(path: Path) -> None:
    found = read(path, json.dumps(json.loads(trace(kernel())), separators=(",", ":"), sort_keys=True))
    assert "truncated" not in codes(found) and not found["profiles"][0]["truncated"]
    assert len(found["kernels"]) == 1


@pytest.mark.parametrize(("content", "what"), [
    ('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}', "another program's Chrome trace"),
    ('[{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": "CUDA functions", "tid": 1}]', "autograd profiler"),
    ('{"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}]}', "Chakra"),
    ('{"traceEvents": [{}, {"ph": "X", "args": {"BeginNs": "1"}}]}', "rocprof JSON"),
    ('{"rocprofiler-sdk-tool": [{"metadata": {}}]}', "rocprofv3"),
    ('{"a": 1}', "not a Kineto trace"), ("[1, 2, 3]", "not a Kineto trace"), ("hello", "not a Kineto trace"),
    ("{", "not a Kineto trace"),
    ("\x00\x05\x16\x07\x00", "AppleDouble"), ("(\udcb5/\udcfd", "compressed file"), ('{"traceEvents": {}}', "not a Kineto trace"),
])
def test_other_json_is_named(path: Path, content: str, what: str) -> None:
    with pytest.raises(UnknownFormatError, match=what) as refused:
        read(path, content.encode("utf-8", "surrogateescape"))
    assert refused.value.code == "unknown_format"


def test_gzip_with_name_and_padding(path: Path) -> None:
    packed = gzip.compress(trace(kernel()).encode())
    named = packed[:3] + b"\x08" + packed[4:10] + b"a name\x00" + packed[10:]
    for content in (named, packed + b"\x00" * 512):
        found = read(path, content)
        assert len(found["kernels"]) == 1
        assert not codes(found)
    assert "trailing_bytes" in codes(read(path, packed + b"junk"))
