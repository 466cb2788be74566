"""Every real trace, read and compared with a plain JSON load of it and with the oracle of exact intervals."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nsightlens.errors import UnknownFormatError
from nsightlens.readers import kineto
from nsightlens.readers.batches import conform
from nsightlens.schema import READ
from tests.exact_intervals import decompressed, finer, ns, plain, union
from tests.places import ROOT

SHARED = ROOT / "../shared/data"
KINETO = SHARED / "kineto"
OURS = {
    "kernel": "kernels", "Kernel": "kernels",
    "gpu_memcpy": "memory_ops", "gpu_memset": "memory_ops", "Memcpy": "memory_ops", "Memset": "memory_ops",
    "cuda_runtime": "api_calls", "Runtime": "api_calls", "cuda_driver": "api_calls",
    "cpu_op": "ranges", "Operator": "ranges", "user_annotation": "ranges", "gpu_user_annotation": "ranges",
    "cuda_sync": "synchronizations", "cuda_event": "cuda_events", "overhead": "overheads",
}
Tables = dict[str, list[dict[str, Any]]]


def traces() -> list[Path]:
    return sorted(p for p in KINETO.rglob("*.json*") if p.parent.name != "derived" and not p.name.startswith("notkineto"))


def rows(path: Path) -> Tables:
    """Return the rows of every table."""
    found: Tables = defaultdict(list)
    for table, batch in kineto.read([path]):
        found[table] += conform(batch, READ[table].reader_schema, table).to_pylist()
    return found


class Columns:
    """The columns of every table of a trace, as lists; each batch is held against the reader's schema."""

    def __init__(self, path: Path) -> None:
        self._batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        for table, batch in kineto.read([path]):
            self._batches[table].append(conform(batch, READ[table].reader_schema, table))

    def __call__(self, table: str, *names: str) -> list[Any]:
        """Return a column as a list; of several columns, a list of tuples."""
        columns = [[value for batch in self._batches[table] for value in batch.column(name).to_pylist()] for name in names]
        return columns[0] if len(names) == 1 else list(zip(*columns, strict=True))

    def rows(self, table: str) -> int:
        return sum(batch.num_rows for batch in self._batches[table])


def table_of(event: dict[str, Any]) -> str | None:
    if event.get("ph") == "i":
        return "allocations" if event["name"] == "[memory]" else None
    if event.get("ph") != "X":
        return None
    if event["cat"] == "python_function":
        return "ranges" if event["name"].startswith("nn.Module: ") else "frame_calls"
    return OURS.get(event["cat"])


DLRM = KINETO / "facebookresearch__param__dlrm8"


@pytest.mark.skipif(not DLRM.is_dir(), reason="the shared captures are not here")
def test_copies_of_a_trace_in_whole_microseconds_have_the_ns_of_their_bandwidth() -> None:
    (path,) = DLRM.glob("worker0_*")
    found = Columns(path)("memory_ops", "bytes", "duration_ns", "bandwidth_duration_ns")
    assert (13_696, 2_000, 2_912) in found, "2 us as written, 4.703 GB/s"
    assert (832, 1_000, 1_472) in found


@pytest.mark.parametrize(("duration", "bandwidth", "finer"), [
    (2, 13_696 / 2_912, 2_912), (0, 64 / 832, 832), (2.5, 13_696 / 2_912, None), (2, 4.7, None), (9, 13_696 / 2_912, None),
    (2, None, None), (2, "N/A", None), (2, 0, None), (2, -1.0, None), (2, 1e-300, None), (2, True, None),
])
def test_durations_are_as_written_and_a_bandwidth_that_fits_tells_a_finer_one(
    tmp_path: Path, duration: float, bandwidth: Any, finer: int | None,
) -> None:
    size = 64 if duration == 0 else 13_696
    args = {"device": 0, "stream": 7, "correlation": 1, "bytes": size, "memory bandwidth (GB/s)": bandwidth}
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7,
            "ts": 1_700_000_000_000_000, "dur": duration, "args": args}
    trace = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [copy]}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    assert Columns(tmp_path / "trace.json")("memory_ops", "duration_ns", "bandwidth_duration_ns") == [(duration * 1000, finer)]


@pytest.mark.captures
@pytest.mark.skipif(not KINETO.exists(), reason="the shared captures are not here")
@pytest.mark.parametrize("path", traces(), ids=lambda p: p.name[:70])
def test_rows_are_those_of_the_file(path: Path) -> None:
    events = plain(path)
    found = Columns(path)
    expected: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        expected[table_of(event) or ""].append(event)
    tables = ["kernels", "memory_ops", "api_calls", "ranges", "allocations", "synchronizations", "overheads"]
    assert {t: found.rows(t) for t in tables} == {t: len(expected[t]) for t in tables}
    assert found.rows("frame_calls") == sum(e.get("cat") == "python_function" for e in events)
    complete = sum(e.get("ph") == "X" for e in events)
    assert found("profiles", "events", "events_lost", "truncated", "first_bad_byte") == [(complete, 0, False, None)]
    said = dict(found("diagnostics", "code", "count"))
    several = len({e["pid"] for e in events if e.get("cat") in ("cpu_op", "cuda_runtime", "user_annotation")}) > 1
    other = any(e.get("cat") == "mtia_ccp_events" for e in events)
    listed = re.findall(rb'"id": ?(\d+)', decompressed(path).partition(b'"deviceProperties"')[2].partition(b"]")[0])
    used = {event["args"]["device"] for event in expected["kernels"] + expected["memory_ops"]}
    assumed = len(listed) == 1 and bool(used) and int(listed[0]) not in used
    expected_codes = {"several_processes": several, "no_gpu_work": other, "device_assumed": assumed}
    assert set(said) <= {"events_not_stored", *(code for code, fits in expected_codes.items() if fits)}
    assert said.get("events_not_stored", 0) == sum(e["ph"] == "X" for e in expected[""])
    _check_times(path, expected, found)
    _check_launches(expected, found)
    _check_oracle(path, expected, found)


def _check_times(path: Path, expected: dict[str, list[dict[str, Any]]], found: Columns) -> None:
    base = next((int(m) for m in re.findall(rb'"baseTimeNanoseconds": ?(\d+)', decompressed(path))), 0)
    shift = found("profiles", "origin_epoch_ns")[0] - base
    assert shift % 10**9 == 0
    for table in ("kernels", "memory_ops", "api_calls", "ranges"):
        told = [(ns(e["ts"]) - shift, ns(e["dur"]), re.sub(r"_v\d+$", "", e["name"]) if table == "api_calls" else e["name"])
                for e in expected[table]]
        assert found(table, "start_ns", "duration_ns", "name") == told
    assert found("memory_ops", "bandwidth_duration_ns") == [finer(e) for e in expected["memory_ops"]]
    assert found("allocations", "at_ns", "bytes") == [(ns(e["ts"]) - shift, e["args"]["Bytes"]) for e in expected["allocations"]]
    steps = [e["name"] for e in expected["ranges"] if e["name"].startswith("ProfilerStep#") and e["cat"] != "gpu_user_annotation"]
    assert [f"ProfilerStep#{step}" for step, kind in found("ranges", "step", "kind") if kind == "step"] == steps


def _check_launches(expected: dict[str, list[dict[str, Any]]], found: Columns) -> None:
    wanted = ("device", "stream", "correlation", "context", "registers per thread", "shared memory", "Collective name")
    columns = ("device", "stream", "correlation_id", "context", "registers_per_thread", "shared_bytes", "collective")
    args = [event["args"] for event in expected["kernels"]]
    assert found("kernels", *columns) == [tuple(a.get(name) for name in wanted) for a in args]
    for what in ("grid", "block"):
        assert found("kernels", *(f"{what}_{axis}" for axis in "xyz")) == [tuple(a.get(what, [None] * 3)) for a in args]
    blocks = [a.get("blocks per SM") for a in args]
    assert found("kernels", "blocks_per_sm") == [None if one is None else float(one) for one in blocks]
    copies = [(e["args"].get("bytes"), *(("memset", None) if "emset" in e["cat"] else ("memcpy", e["name"][7:11])))
              for e in expected["memory_ops"]]
    assert found("memory_ops", "bytes", "kind", "direction") == copies


def _check_oracle(path: Path, expected: dict[str, list[dict[str, Any]]], found: Columns) -> None:
    oracle = json.loads((SHARED / "oracle/exact_intervals_ns.json").read_text())
    truth = oracle.get(path.relative_to(KINETO).as_posix())
    if truth is None:
        return
    spans = {table: [(start, start + duration, name) for start, duration, name in found(table, "start_ns", "duration_ns", "name")]
             for table in ("kernels", "memory_ops")}
    assert len(spans["kernels"]) == truth["n_kernels"]
    assert len(spans["kernels"]) + len(spans["memory_ops"]) == truth["n_gpu_events"]
    if not truth["n_gpu_events"]:
        return
    kernels, copies = ([(a, b) for a, b, _ in spans[table]] for table in ("kernels", "memory_ops"))
    nccl = [(a, b) for a, b, name in spans["kernels"] if re.match(r"nccl.*Kernel", name)]
    compute = [(a, b) for a, b, name in spans["kernels"] if not re.match(r"nccl.*Kernel", name)]
    everything = kernels + copies
    span = max(b for _, b in everything) - min(a for a, _ in everything)
    streams = Counter(f"{device}/{stream}" for table in spans for device, stream in found(table, "device", "stream"))
    assert {
        "span_ns": span, "union_gpu_ns": union(everything), "union_kernel_ns": union(kernels),
        "idle_ns": span - union(everything), "union_compute_kernel_ns": union(compute), "union_nccl_ns": union(nccl),
        "overlap_nccl_compute_ns": union(compute) + union(nccl) - union(kernels), "union_memcpy_memset_ns": union(copies),
        "sum_kernel_dur_ns": sum(b - a for a, b in kernels), "streams": dict(streams), "n_nccl_kernels": len(nccl),
        "n_distinct_kernel_names": len(set(found("kernels", "name"))),
        "n_zero_or_negative_dur": sum(b <= a for a, b in everything),
    }.items() <= truth.items()


@pytest.mark.captures
@pytest.mark.skipif(not KINETO.exists(), reason="the shared captures are not here")
@pytest.mark.parametrize(("name", "what"), [
    ("notkineto__AppleDouble_._huvideo_traces_rank_0_step_3.json", "AppleDouble"),
    ("notkineto__rocprofv3_908_results.json.gz", "rocprofv3"),
])
def test_neighbours_are_named(name: str, what: str) -> None:
    with pytest.raises(UnknownFormatError, match=what):
        kineto.probe(KINETO / name)
    with pytest.raises(UnknownFormatError, match=what):
        list(kineto.read([KINETO / name]))


def by_name(name: str) -> Path:
    path = KINETO / name
    if not path.exists():
        pytest.skip("the shared captures are not here")
    return path


def profile_of(path: Path) -> dict[str, Any]:
    return next(batch.to_pylist()[0] for table, batch in kineto.read([path]) if table == "profiles")


@pytest.mark.parametrize(("name", "told"), [
    ("AMD-AGI__TraceLens__b200__eager_trace_rank0.json.gz", ("kineto G5", "cuda", "cupti 28", "external_id")),
    ("AMD-AGI__TraceLens__mi300__torch_compile_triton.json.gz", ("kineto G5", "rocm", "roctracer 4.1", "external_id")),
    ("AMD-AGI__TraceLens__mi210__gpu_only.json.gz", ("kineto G5", "rocm", "roctracer 4.1", "none")),
    ("facebookresearch__HolisticTraceAnalysis__amd_mi250_minitoy.json.gz", ("kineto G5", "rocm", None, "external_id")),
    ("pytorch__kineto__docs_after_fix_trace.json", ("kineto G6", "cuda", "cupti 28", "containment")),
    ("facebookresearch__HolisticTraceAnalysis__ns_resolution_resnet_rank-0.pt.trace.json.gz",
     ("kineto G4", "cuda", None, "external_id")),
    ("astra-sim__astra-sim__megatron-tp8/megatron_kineto_0.json", ("kineto G3", "cuda", None, "containment")),
    ("facebookresearch__HolisticTraceAnalysis__trace_diff_control_rank3.json.gz", ("kineto G2", "cuda", None, "containment")),
    ("facebookresearch__HolisticTraceAnalysis__rank_not_found.json.gz", ("kineto G2", "cpu", None, "none")),
    ("facebookresearch__HolisticTraceAnalysis__old_capitalised_inference_rank_1.json.gz",
     ("kineto G1", "cuda", None, "external_id")),
    ("facebookresearch__HolisticTraceAnalysis__cpu_only_rank-34_of_300.json.gz", ("kineto G5", "cpu", None, "none")),
])
def test_generation_vendor_and_links_are_told_by_content(name: str, told: tuple[str | None, ...]) -> None:
    profile = profile_of(by_name(name))
    assert (profile["format"], profile["vendor"], profile["capture_version"], profile["link_method"]) == told


def test_mtia_is_not_a_gpu() -> None:
    found = rows(by_name("facebookresearch__HolisticTraceAnalysis__cupti_profiler_range.json.gz"))
    assert not found["kernels"] and not found["devices"]
    assert "cuda_profiler_range 77" in found["diagnostics"][0]["message"]


@pytest.mark.parametrize(("name", "process"), [
    ("facebookresearch__HolisticTraceAnalysis__simple_add_et_trace.json.gz",  # distributedInfo after the events
     {"pid": 563677, "rank": 0, "rank_source": "content:distributedInfo", "world_size": None}),
    ("astra-sim__astra-sim__megatron-tp8/megatron_kineto_5.json", {"rank": 5, "world_size": 8}),
    ("facebookresearch__HolisticTraceAnalysis__rank_not_found.json.gz", {"rank": None, "rank_source": None}),
    ("AMD-AGI__TraceLens__mi210__gpu_only.json.gz", {"pid": 44077, "name": "python3", "host": None}),
    ("facebookresearch__HolisticTraceAnalysis__cpu_only_rank-34_of_300.json.gz",
     {"pid": 1074, "rank": 34, "world_size": 300, "host": "twshared16453.15.atn5.facebook.com"}),
])
def test_process_and_rank(name: str, process: dict[str, Any]) -> None:
    found = rows(by_name(name))
    assert len(found["processes"]) == 1
    assert process.items() <= found["processes"][0].items()
    for table in ("kernels", "memory_ops", "api_calls", "ranges", "allocations", "devices"):
        assert {row["process_index"] for row in found[table]} <= {0}


@pytest.mark.parametrize(("name", "device"), [
    ("AMD-AGI__TraceLens__b200__eager_trace_rank0.json.gz",
     {"device": 0, "name": "NVIDIA B200", "compute_capability": "10.0", "sm_count": 148, "memory_bytes": 191503138816,
      "threads_per_sm": 2048}),
    ("AMD-AGI__TraceLens__mi__vllm_decode_hipgraph.json.gz", {"device": 2, "name": None, "compute_capability": "9.4"}),
    ("AMD-AGI__TraceLens__mi300__torch_compile_triton.json.gz", {"device": 2}),
])
def test_only_devices_that_worked_are_rows(name: str, device: dict[str, Any]) -> None:
    found = rows(by_name(name))
    assert len(found["devices"]) == 1
    assert device.items() <= found["devices"][0].items()


def test_a_device_beyond_a_list_of_one_is_that_one() -> None:
    found = rows(by_name("AMD-AGI__TraceLens__mi300__xdit_flux_rank0.json.gz"))
    assert [(d["device"], d["name"], d["sm_count"]) for d in found["devices"]] == [(2, "AMD Instinct MI300X", 304)]


def test_collectives_have_their_message_and_group() -> None:
    found = rows(by_name("facebookresearch__HolisticTraceAnalysis__nccl_data_rank0.json.gz"))
    collectives = [k for k in found["kernels"] if k["collective"]]
    assert Counter(k["collective"] for k in collectives) == {"allreduce": 15, "broadcast": 6}
    elements = [e["args"]["In msg nelems"] * {"Float": 4, "Long": 8}[e["args"]["dtype"]]
                for e in plain(KINETO / "facebookresearch__HolisticTraceAnalysis__nccl_data_rank0.json.gz")
                if e.get("cat") == "kernel" and "dtype" in e["args"]]
    assert [k["message_bytes"] for k in collectives] == elements
    assert {(k["group_size"], k["group_name"]) for k in collectives} == {(2, "0")}


def test_an_external_id_that_repeats_the_correlation_is_no_link() -> None:
    """G3: of 9628 kernels 2547 would match an operator's id, none of them rightly."""
    found = rows(by_name("facebookresearch__param__resnet_kineto.json.gz"))
    assert {k["external_id"] for k in found["kernels"] + found["api_calls"]} == {None}
    assert sum(r["external_id"] is not None for r in found["ranges"]) > 39_000


def test_secrets_in_metadata_are_not_copied() -> None:
    tables = [pa.Table.from_batches([batch]) for _, batch in kineto.read([by_name(
        "facebookresearch__HolisticTraceAnalysis__cpu_only_rank-34_of_300.json.gz")])]
    text = "".join(str(t.to_pylist()) for t in tables if t.num_rows < 10)
    assert "twshared16453" in text
    assert "mast_hpc" not in text and "mojif" not in text
