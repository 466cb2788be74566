"""What nsys, Kineto and ncu each recorded of the same launches: the rows on which every view's order and sums are tested.

Two runs of 240 launches on four ranks, and a small run for each thing in which two rows may differ: its launches are equal in all
else, so that an order which forgets that column is not unique on these rows.
"""

from __future__ import annotations

from itertools import product
from typing import Any

Rows = dict[str, list[dict[str, Any]]]
TOOLS = ("nsys", "kineto", "ncu")
TABLES = ("kernels", "memory_ops", "api_calls", "ranges", "allocations", "step_times", "profiles", "processes", "devices",
          "diagnostics", "synchronizations", "os_calls", "overheads", "page_faults", "device_samples", "mpi_calls",
          "frames", "cpu_samples", "sampled_frames", "collective_records", "thread_states", "range_projections",
          "process_groups", "host_functions")
_COUNTERS = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 50.0, "gpu__time_duration.sum": 5.0, "dram__bytes.sum": 64.0,
             "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 8.0,
             "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum": 8.0}

DIFFERENCES: dict[str, dict[str, dict[str, Any]]] = {
    "nothing": {},
    "name": {table: {"name": "other"} for table in ("kernels", "memory_ops", "api_calls", "ranges", "modules")}
    | {"operators": {"name": "aten::mm"}},
    "collective": {"kernels": {"name": "ncclDevKernel_AllGather", "collective": "allgather"}},
    "kernel": {"kernels": {"name": "other", "short_name": "other", "kernel_key": "other"}},
    "no key": {"kernels": {"kernel_key": None}},
    "block": {"kernels": {"block_z": 2}},
    "shared memory": {"kernels": {"shared_bytes": 1024}},
    "clock control": {"kernels": {"clock_control": "none"}},
    "shapes": {"operators": {"shapes": "[[2, 2]]"}},
    "direction": {"memory_ops": {"direction": "DtoH"}},
    "memory": {"memory_ops": {"destination_memory": "pinned"}},
    "stream": {table: {"stream": 8} for table in ("kernels", "memory_ops")},
    "device": {table: {"device": 1, "device_id": "gpu1"} for table in ("kernels", "memory_ops", "devices")}
    | {"allocations": {"device": 1}},
    "thread": {table: {"thread": 2} for table in ("api_calls", "ranges", "modules", "operators", "allocations")},
    "window": {"all": {"window_index": 1}, "step_times": {"segment_number": 1}},
    "process": {"all": {"process_id": "second"}},
    "profile": {"all": {"profile_id": "second", "process_id": "second"}},
}
"""{run: {table: what its second row of each two has in place of the first's}}; "all" is every table that has the column."""


def together(*tools: str) -> Rows:
    """Return what those tools recorded, and which of their launches are certainly the same."""
    parts = [launches(tool) for tool in tools]
    rows = {table: [row for part in parts for row in part[table]] for table in TABLES}
    return rows | {"matches": [pair for i, tool in enumerate(tools) for other in tools[i + 1:] for pair in _matches(tool, other)]}


def launches(tool: str) -> Rows:
    """Return what `tool` recorded of all runs."""
    parts = [_two_runs(tool), _sequences(tool), _waits(tool), _stacks(tool), _graphs(tool), _pipelines(tool),
             *(_differing(tool, number) for number in range(len(DIFFERENCES)))]
    return {table: [row for part in parts for row in part.get(table, [])] for table in TABLES}


def _first(tool: str) -> int:
    """Return the tool's first id: launch n of one tool is launch n of each other."""
    return 100_000 * TOOLS.index(tool)


def _matches(tool: str, other: str) -> list[dict[str, Any]]:
    """Return the matches of the launches of the runs named here: certain ones, beside all the others that are not."""
    pairs = zip(launches(tool)["kernels"], launches(other)["kernels"], strict=True)
    return [{"run": a["run"], "rank": a["rank"], "tool": tool, "profile_id": a["profile_id"], "kernel_id": a["kernel_id"],
             "other_tool": other, "other_profile_id": b["profile_id"], "other_kernel_id": b["kernel_id"], "grade": "launch",
             "evidence": "test"} for a, b in pairs if a["run"] in ("nothing", "stream")]


def _two_runs(tool: str) -> Rows:
    """Return 240 launches: four ranks and GPUs, two runs, all durations of one of them equal."""
    kernels, copies, calls, ranges = [], [], [], []
    for i in range(240):
        where: dict[str, Any] = {
            "run": ("base", "fused")[i % 2], "tool": tool, "profile_id": f"{tool}-{i % 2}", "process_id": f"{tool}-{i % 4}",
            "window_index": i % 3 % 2, "rank": i % 4, "device_id": f"gpu{i % 4}", "gpu": "H100",
            "start_ns": None if tool == "ncu" else i // 4 * 10 + i // 120 * 20_000,
            "duration_ns": 1 + i % 2 * (i * 7 % 13) + (1000 if tool == "ncu" else 0),
        }
        metrics = [("gpu__time_duration.sum", 5.0 * (i % 3)), ("dram__bytes.sum", 64.0)] if tool == "ncu" else None
        number = _first(tool) + i
        links = {} if tool == "ncu" else {"launch_id": number, "range_id": number, "op_range_id": number}
        kernels.append(where | links | {
            "kernel_id": number, "ncu_id": i if tool == "ncu" else None, "launch_index": i // 4,
            "name": f"k{i % 5}", "short_name": f"k{i % 5}", "kernel_key": f"k{i % 5}", "metrics": metrics,
            "family": ("gemm", "collective", "other", None)[i % 5 % 4], "grid_x": i // 4 % 2, "grid_y": 1, "grid_z": 1,
            "block_x": 32, "block_y": 1, "block_z": 1,
        })
        if tool != "ncu":
            copies.append(where | {"kind": "memcpy", "direction": ("HtoD", "DtoH")[i % 3 % 2], "bytes": i,
                                   "memory_op_id": number})
            host = {key: where[key] for key in ("run", "tool", "profile_id", "process_id", "window_index", "start_ns")}
            calls.append(host | links | {"thread": i % 4, "duration_ns": 1 + i % 3, "name": f"cuda{i % 2}"})
            ranges.append(host | {"range_id": number, "thread": i % 4, "duration_ns": 5, "depth": 0,
                                  "kind": ("operator", "annotation")[i % 7 % 2], "name": f"r{i % 3}"})
    profiles = [{"run": ("base", "fused")[i], "tool": tool, "profile_id": f"{tool}-{i}", "kernels": 120} for i in range(2)]
    processes = [{"run": ("base", "fused")[i % 2], "tool": tool, "profile_id": f"{tool}-{i % 2}", "process_id": f"{tool}-{i}",
                  "rank": i, "host": "node"} for i in range(4)]
    diagnostics = [{"run": "base", "tool": tool, "profile_id": f"{tool}-0", "path": f"/{tool}{i % 3}", "severity": "warning",
                    "code": f"c{i % 2}", "count": 1, "message": f"m{i % 4}"} for i in range(12)]
    return {"kernels": kernels, "memory_ops": copies, "api_calls": calls, "ranges": ranges,
            "profiles": profiles, "processes": processes, "diagnostics": diagnostics}


def _place(tool: str, run: str) -> dict[str, Any]:
    return {"run": run, "tool": tool, "profile_id": f"{tool} {run}", "process_id": f"{tool} {run}", "window_index": 0}


def _kernel(tool: str, run: str, number: int, start: int) -> dict[str, Any]:
    """Return a launch on rank 0: with counters under ncu, else with a start, and with its call, operator and module."""
    found: dict[str, Any] = {
        **_place(tool, run), "rank": 0, "device": 0, "device_id": "gpu0", "gpu": "H100", "context": 1, "stream": 7,
        "kernel_id": number, "launch_index": start // 50_000 if run == "nothing" else number,
        "name": "kernel", "short_name": "kernel", "kernel_key": "kernel", "family": "gemm", "tensor_cores": False,
        "grid_x": 4, "grid_y": 1, "grid_z": 1, "block_x": 32, "block_y": 1, "block_z": 1, "registers_per_thread": 32,
        "shared_bytes": 0, "duration_ns": 100}
    if tool == "ncu":
        return found | {"ncu_id": number, "metrics": list(_COUNTERS.items()), "clock_control": "base"}
    return found | {"start_ns": start, "launch_id": number, "range_id": number, "op_range_id": number, "op": "aten::addmm",
                    "module": "Linear", "overrun_ns": 1 if run == "nothing" else None}


def _differing(tool: str, number: int) -> Rows:
    """Return a run in which each row stands twice, but for one difference, at two times far enough apart for a gap."""
    run, changes = list(DIFFERENCES.items())[number]
    rows: Rows = {"profiles": [], "processes": [], "devices": [], "kernels": [], "memory_ops": [], "api_calls": [], "ranges": [],
                  "allocations": [], "step_times": [], "page_faults": []}
    for i, (at, twin) in enumerate(product((0, 50_000), (False, True))):
        given = _recorded(tool, run, _first(tool) + 1000 + 10 * number + 2 * i, at)
        for table, row in given:
            row = row | (changes.get(table, {}) if twin else {})
            for column, value in changes.get("all", {}).items() if twin else ():
                if column in row:
                    row[column] = f"{row[column]} {value}" if isinstance(value, str) else value
            table = {"modules": "ranges", "operators": "ranges"}.get(table, table)
            if row not in rows[table]:
                rows[table].append(row)
    return rows


def _recorded(tool: str, run: str, number: int, at: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows around one launch, each with the table it belongs to."""
    where = _place(tool, run)
    who = {key: where[key] for key in ("run", "tool", "profile_id", "process_id")}
    kernel = _kernel(tool, run, number, at + 20)
    if run == "collective":
        kernel |= {"name": "ncclDevKernel_AllReduce", "family": "collective", "collective": "allreduce", "message_bytes": 64,
                   "group_size": 1}
    if run == "no key":
        kernel |= {"kernel_key": f"as {tool} spells it"}
    rows = [("profiles", {key: who[key] for key in ("run", "tool", "profile_id")} | {"kernels": 4}),
            ("processes", who | {"rank": 0, "host": "node"}),
            ("devices", who | {"device": 0, "device_id": "gpu0", "name": "H100", "memory_bytes": 100,
                               "compute_capability": "9.0"}),
            ("kernels", kernel)]
    if tool == "ncu":
        return rows
    host = where | {"thread": 1}
    gpu = {key: kernel[key] for key in ("device", "device_id", "gpu", "context", "stream")}
    step = where | {"profiler": tool, "rank": 0, "workload": "w", "segment_number": 0, "segment_name": "measure",
                    "segment_start_ns": 0, "segment_duration_ns": 100}
    return [
        *rows,
        ("memory_ops", where | gpu | {"memory_op_id": number, "start_ns": at + 200, "duration_ns": 50, "launch_id": number,
                                      "kind": "memcpy", "bytes": 8, "direction": "HtoD", "source_memory": "device",
                                      "destination_memory": "device"}),
        ("api_calls", host | {"launch_id": number, "start_ns": at + 5, "duration_ns": 2, "name": "cudaLaunchKernel"}),
        ("modules", host | {"range_id": number + 500, "start_ns": at, "duration_ns": 15, "kind": "module", "name": "Linear",
                            "depth": 0}),
        ("operators", host | {"range_id": number, "parent_id": number + 500, "start_ns": at + 1, "duration_ns": 12, "depth": 1,
                              "kind": "operator", "name": "aten::addmm", "shapes": "[[1], [1, 1], [1, 1]]",
                          "types": '["float", "float", "float"]'}),
        ("ranges", host | {"range_id": number + 501, "start_ns": at + 16, "duration_ns": 2, "kind": "annotation", "name": "mark",
                           "depth": 0}),
        ("allocations", host | {"allocation_id": number, "at_ns": at + 3, "bytes": 99, "device_type": "cuda", "device": 0,
                                "total_allocated_bytes": 99, "total_reserved_bytes": 100, "op_range_id": number}),
        ("step_times", step | {"step": number, "start_ns": at, "duration_ns": 50}),
        ("page_faults", where | {"kind": "gpu", "device_id": "gpu0", "start_ns": at + 30, "duration_ns": 10, "faults": 1}),
    ]


def _sequences(tool: str) -> Rows:
    """Return two operators that launch three kernels each in a stream of their own, and two steps that last no time.

    The first kernel of each stream ends after its third begins.
    """
    run = "sequences"
    rows: Rows = {"kernels": [], "api_calls": [], "ranges": []}
    for stream, i in product((7, 8), range(3)):
        number = _first(tool) + 900 + 10 * stream + i
        operator = _first(tool) + 900 + stream
        rows["kernels"].append(_kernel(tool, run, number, 100 + 10 * i) | {
            "stream": stream, "duration_ns": (50_000, 5, 5)[i], "range_id": operator, "op_range_id": operator})
        host = _place(tool, run) | {"thread": stream}
        rows["api_calls"].append(host | {"launch_id": number, "start_ns": 10 * i, "duration_ns": 2, "name": "cudaLaunchKernel"})
        if i == 0:
            rows["ranges"].append(host | {"range_id": operator, "start_ns": 0, "duration_ns": 50, "kind": "operator", "depth": 0,
                                          "name": f"operator {stream}"})
    rows["ranges"] += [_place(tool, run) | {"range_id": _first(tool) + 990 + i, "thread": 7, "start_ns": 0, "duration_ns": 0,
                                            "kind": "step", "name": f"step {i}", "step": i, "depth": 0} for i in range(2)]
    return rows if tool != "ncu" else {"kernels": rows["kernels"]}


def _waits(tool: str) -> Rows:
    """Return copies, sets and calls that wait, OS calls and overhead, each twice, and a GPU that idles twice for as long."""
    place = _place(tool, "waits")
    kernels = [_kernel(tool, "waits", _first(tool) + 3100 + i, start) | {"device_id": "idle", "launch_id": None}
               for i, start in enumerate((0, 1000, 2000, 2900))]
    if tool == "ncu":
        return {"kernels": kernels}
    rows: Rows = {table: [] for table in (
        "memory_ops", "api_calls", "synchronizations", "os_calls", "overheads", "host_functions")}
    rows |= _samples_and_calls(tool, place)
    operations = (("memcpy", "cudaMemcpy", "pageable"), ("memcpy", "cudaMemcpyAsync", "pageable"),
                  ("memset", "cudaMemset", "managed"), (None, "cudaStreamSynchronize", None),
                  (None, "cudaDeviceSynchronize", None))
    for i, (twin, (kind, function, memory)) in enumerate(product(range(2), operations)):
        number = _first(tool) + 3000 + i
        call = place | {"thread": 1, "start_ns": 3000, "duration_ns": 40, "launch_id": number, "name": function}
        rows["api_calls"].append(call)
        if kind:
            rows["memory_ops"].append(place | {
                "rank": 0, "device_id": "host copies", "context": 1, "stream": 7, "start_ns": 3010, "duration_ns": 20, "bytes": 8,
                "kind": kind, "launch_id": number, "memory_op_id": number, "destination_memory": memory,
                "direction": "DtoH" if kind == "memcpy" else None})
        else:
            rows["synchronizations"].append(place | {"synchronization_id": number, "kind": "stream", "start_ns": 3005,
                                                     "duration_ns": 30, "launch_id": number, "stream": 7})
        rows["host_functions"].append(place | {"host_function_id": number, "launch_id": number, "kind": "launch",
                                               "start_ns": 3000, "duration_ns": 5, "context": 1, "stream": 7})
        rows["os_calls"].append(place | {"thread": 1, "kind": "call", "name": f"call {twin}", "duration_ns": 5})
        rows["overheads"] += [place | {"process_id": process, "thread": 1, "source": "profiler", "kind": "own",
                                       "name": f"own {twin}", "start_ns": 3000, "duration_ns": 5}
                              for process in (place["process_id"], f"{tool} waits too")]
    rows["memory_ops"] += [place | {"rank": 0, "memory_op_id": _first(tool) + 3500 + i, "device_id": "host copies", "bytes": 8,
                                    "kind": "migration", "migration_cause": "eviction", "address": 64 * (i % 2), "start_ns": 3010,
                                    "duration_ns": 20, "direction": ("HtoD", "DtoH")[i // 2]} for i in range(4)]
    return rows | {"kernels": kernels}


def _samples_and_calls(tool: str, place: dict[str, Any]) -> Rows:
    """Return page faults, samples and MPI events, two of each that differ in one thing."""
    fault = place | {"kind": "cpu", "faults": 1, "function": "fill", "address": 0}
    sample = place | {"rank": 0, "device_id": "idle", "device": 0, "gpu": "GPU", "metric": "SMs", "value": 5.0}
    call = place | {"rank": 0, "thread": 1, "start_ns": 5, "duration_ns": 7, "bytes": 8, "receive_bytes": 8}
    record = place | {"rank": 0, "communicator": "w", "sequence": 1, "collective": "allreduce", "duration_ns": 5}
    return {
        "collective_records": [record | {"process_id": f"{tool} waits {i}"} for i in range(2)],
        "page_faults": [fault, fault | {"source_line": 3}],
        "device_samples": [sample | {"unit": unit, "at_ns": at} for unit in ("%", "Avg") for at in (2, 3, 1002)],
        "mpi_calls": [call | {"kind": kind, "name": name, "mpi_call_id": _first(tool) + 3600 + i}
                      for i, (kind, name) in enumerate(product(("p2p", "collective"), ("MPI_A", "MPI_B")))],
    }


def _stacks(tool: str) -> Rows:
    """Return two frames that differ in their names, an operator called from each, and a launch outside of them: one of known
    call, one of unknown call."""
    place = _place(tool, "stacks")
    first = _first(tool) + 3700
    kernels = [_kernel(tool, "stacks", first + i, 100 + 200 * i) | {"range_id": None, "op_range_id": None} for i in range(2)]
    if tool == "nsys":
        return {"kernels": kernels, **_sampled(place, first), **_printed(place | {"process_id": "printed"}, first)}
    if tool != "kineto":
        return {"kernels": kernels}
    kernels[1]["launch_id"] = None
    whose = {name: place[name] for name in ("run", "tool", "profile_id", "process_id")}
    frames = [whose | {"thread": 1, "frame_id": first + i, "parent_id": None, "last_id": first + i, "depth": 0, "calls": 1,
                       "name": f"{name}.py(1): {name}", "recursive": False, "host_ns": 20} for i, name in enumerate("fg")]
    ranges = [place | {"range_id": first + i, "frame_id": first + i, "thread": 1, "start_ns": 20 * i, "duration_ns": 5,
                       "kind": "operator", "name": "aten::mm", "depth": 0} for i in range(2)]
    return {"kernels": kernels, "frames": frames, "ranges": [*ranges, *_served(place, first)]}


def _graphs(tool: str) -> Rows:
    """Return a replay of a CUDA graph of two kernels, and its capture."""
    place, first = _place(tool, "graphs"), _first(tool) + 3800
    kernels = [_kernel(tool, "graphs", first + i, 100 + 200 * i) for i in range(2)]
    if tool == "ncu":
        return {"kernels": kernels}
    kernels = [kernel | {"launch_id": first, "range_id": None, "op_range_id": None, "graph_node_id": 1 + i}
               for i, kernel in enumerate(kernels)]
    names = ("cudaGraphLaunch", "cudaStreamBeginCapture", "cudaLaunchKernel", "cudaLaunchKernel", "cudaStreamEndCapture")
    calls = [place | {"launch_id": first + i, "thread": 1, "start_ns": 10 * i, "duration_ns": 5, "name": name}
             for i, name in enumerate(names)]
    processes = [{name: place[name] for name in ("run", "tool", "profile_id", "process_id")} | {"rank": 0, "host": "node"}]
    return {"kernels": kernels, "api_calls": calls, "processes": processes}


def _pipelines(tool: str) -> Rows:
    """Return two stages of a pipeline in two windows, with a message in each."""
    first = _first(tool) + 3900
    place = _place(tool, "pipelines")
    ends = [place | {"window_index": number // 2, "process_id": f"{place['process_id']} {number % 2}"} for number in range(4)]
    kernels = [_kernel(tool, "pipelines", first + number, 100) | end | {"range_id": None, "op_range_id": None, "rank": number % 2,
               "group_name": "5", "launch_id": None, "family": "collective", "name": "ncclDevKernel_SendRecv",
               "collective": ("send", "recv")[number % 2], "peer_rank": 1 - number % 2}
               for number, end in enumerate(ends)]
    if tool == "ncu":
        return {"kernels": kernels}
    whose = [{name: end[name] for name in ("run", "tool", "profile_id", "process_id")} for end in ends[:2]]
    processes = [who | {"rank": rank, "host": "node"} for rank, who in enumerate(whose)]
    groups = [end | {"group_name": "5", "description": "mesh_pp", "group_size": 2, "group_rank": number % 2}
              for number, end in enumerate(ends)]
    profiles = [{name: place[name] for name in ("run", "tool", "profile_id")} | {"kernels": 4}]
    return {"kernels": kernels, "processes": processes, "process_groups": groups, "profiles": profiles}


def _sampled(place: dict[str, Any], first: int) -> Rows:
    """Return two frames that differ in their modules, and a CPU sample in each."""
    frames = [place | {"thread": 1, "sampled_frame_id": first + i, "parent_id": None, "last_id": first + i, "depth": 0,
                       "name": "f", "module": module, "recursive": False} for i, module in enumerate("ab")]
    samples = [place | {"thread": 1, "at_ns": 5, "sampled_frame_id": frame["sampled_frame_id"]} for frame in frames]
    states = [place | {"thread": 1, "thread_state_id": first + i, "start_ns": 40 * i, "state": state}
              for i, state in enumerate(("running", "off_cpu"))]
    return {"sampled_frames": frames, "cpu_samples": samples, "thread_states": states}


def _printed(place: dict[str, Any], first: int) -> Rows:
    """Return two ranges and their projections, as nsys stats prints them."""
    ranges = [place | {"range_id": first + 50 + i, "thread": 1, "start_ns": 5, "duration_ns": 9 - i, "kind": "nvtx_push_pop",
                       "name": "r", "depth": i} for i in range(2)]
    projections = [place | {"range_id": row["range_id"], "thread": 1, "start_ns": 20, "duration_ns": 7, "launches": 1}
                   for row in ranges]
    return {"ranges": ranges, "range_projections": projections}


def _served(place: dict[str, Any], first: int) -> list[dict[str, Any]]:
    """Return steps of an inference server, two phases of which begin at one time and last none."""
    return [place | {"range_id": first + 10 + i, "thread": 1, "start_ns": 90, "duration_ns": 0, "kind": "annotation", "depth": 0,
                     "name": name} for i, name in enumerate(("step[DECODE bs=1]", "step[EXTEND bs=1 toks=9]"))]
