"""The Arrow schema of every table: each column with its type, its unit and what it means.

This is the only place where a column is defined. Readers produce the columns marked `reader`; `ingest`, `normalise` and
`attribution` fill the others. `docs/schema.md` is generated from here.

Log of SCHEMA_VERSION
1  first version
2  api_calls: range_id, op_range_id; ranges: op_parent_id, forward_id; allocations: op_range_id;
   kernels, metric_summaries: tensor_cores; tables step_times and matches;
   profiles: kernel_filter, launch_skip, launch_count, from_start, settings
3  step_times: recorded_under is profiler; window_number, window_name, window_start_ns, window_duration_ns are segment_...;
   private tables: the rank pattern of each run, the versions of the rules in each signature
4  parts and tables of row templates: _kernels_templates, _kernels_facts and the like, joined by _template;
   kernels: overrun_ns
5  private table _answers, with a table _answer_... per view that is kept
6  tables synchronizations, cuda_events, os_calls and overheads; profiles: unread
7  tables page_faults, device_samples and mpi_calls; memory_ops: migration_cause, address
8  table frames; kernels, memory_ops, ranges: frame_id; kernels: annotation, annotated_module
9  tables cpu_samples, sampled_frames and collective_records
10  tables range_projections and thread_states
11  table process_groups
12  table host_functions; ranges: communicator, message_bytes, group_size, group_rank, root_rank, peer_rank, reduction
13  memory_ops: bandwidth_duration_ns, and duration_ns is as written
14  memory_ops: collective; kernels: peer_rank
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

SCHEMA_VERSION = 14

Stage = Literal["reader", "ingest", "normalise", "attribution"]

TEXT = pa.dictionary(pa.int32(), pa.string())
STRING = pa.string()
INT16 = pa.int16()
INT32 = pa.int32()
INT64 = pa.int64()
FLOAT64 = pa.float64()
BOOL = pa.bool_()
METRICS = pa.map_(pa.string(), pa.float64())
COUNTS = pa.map_(pa.string(), pa.int64())
SETTINGS = pa.map_(pa.string(), pa.string())
PACKED_METRICS = pa.map_(TEXT, pa.float64())
"""METRICS on the way from the reader into a part: there are few names, and one per value would be most of the memory."""


ROW_LINKS = {"sampled_frames": {"parent_id": ("parent_row", "sampled_frames"), "last_id": ("last_row", "sampled_frames")},
             "cpu_samples": {"sampled_frame_id": ("frame_row", "sampled_frames")},
             "range_projections": {"range_id": ("range_row", "ranges")}}
"""Table -> its columns that are ids of rows of another: what readers give for each (the number of that row in the window), and
the other table."""

TEMPLATE = "_template"
"""The column that joins the rows of a table to what they have in common (columns/row_templates.py)."""


def templates_of(table: str) -> str:
    """Return the name of the part and of the catalog's table that hold the templates of a table's rows."""
    return f"_{table}_templates"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type, the stage that fills it, its meaning and its unit ("" where it has none).

    prose: filled by ingest, and yet with what people and programs said.
    """

    name: str
    type: pa.DataType
    stage: Stage
    doc: str
    unit: str = ""
    prose: bool = False

    @property
    def packed_type(self) -> pa.DataType:
        """Return the Arrow type of the column before it is written."""
        return PACKED_METRICS if self.type == METRICS else self.type


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, its columns in order, and which column numbers its rows within a profile.

    varying: the columns that differ from row to row; rows that agree in all others share a template
        (columns/row_templates.py).
    Empty for tables that are stored as they are. This changes how a table is stored, never what it holds.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    row_id: str | None = None
    varying: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the stored table."""
        return pa.schema([(c.name, c.type) for c in self.columns])

    @property
    def prose(self) -> tuple[str, ...]:
        """Return the columns of texts from captures, people and programs, which are stored without the secrets in them.

        The others are names and keys that ingest gives: runs, profiles, files.
        """
        return tuple(c.name for c in self.columns if c.type in (TEXT, STRING, SETTINGS) and (c.prose or c.stage != "ingest"))

    @property
    def reader_schema(self) -> pa.Schema:
        """Return the columns a reader may produce, `process_index`, `kernel_row` and ROW_LINKS included."""
        fields = [pa.field(c.name, c.packed_type) for c in self.columns if c.stage == "reader"]
        names = {c.name for c in self.columns}
        if "process_id" in names:
            fields.append(pa.field("process_index", INT32))
        if self.row_id != "kernel_id" and "kernel_id" in names:
            fields.append(pa.field("kernel_row", INT64))
        fields += [pa.field(row, INT64) for row, _ in ROW_LINKS.get(self.name, {}).values()]
        return pa.schema(fields)


def _c(name: str, type_: pa.DataType, stage: Stage, doc: str, unit: str = "", *, prose: bool = False) -> Column:
    return Column(name, type_, stage, doc, unit, prose)


_RUN = _c("run", TEXT, "ingest", "Run the row belongs to (one workload in one configuration).")
_TOOL = _c("tool", TEXT, "ingest", "What recorded it: nsys, ncu, kineto, steps (the workload's own clock), nccl_inspector "
           "(NCCL's or RCCL's Inspector) or flight_recorder (PyTorch's).")
_PROFILE = _c("profile_id", TEXT, "ingest", "Profile it came from; key of `profiles`.")
_PROCESS = _c("process_id", TEXT, "ingest", "OS process within the profile; key of `processes`.")
_WINDOW = _c("window_index", INT32, "ingest", "Contiguous capture window of the process, from 0.")
_RANK = _c("rank", INT32, "ingest", "Rank of the process; NULL where unknown (see `processes.rank_source`).")
_WHERE_FROM = (_RUN, _TOOL, _PROFILE, _PROCESS, _WINDOW)

_WHY = (
    _c("step", INT64, "attribution", "Training step number the launch belongs to."),
    _c("phase", TEXT, "attribution", "forward, backward or optimizer."),
    _c("op", TEXT, "attribution", "Innermost framework operator that launched it."),
    _c("op_shapes", TEXT, "attribution", "Input shapes of that operator, as the tool prints them."),
    _c("module", TEXT, "attribution", "Innermost nn.Module that launched it."),
    _c("range_path", TEXT, "attribution", "Names of the enclosing ranges, outermost first, joined by ' / '."),
    _c("op_range_id", INT64, "attribution", "Range of `op`; key of `ranges`."),
    _c("range_id", INT64, "attribution", "Innermost enclosing range; key of `ranges`."),
    _c("step_id", INT64, "attribution", "Range of the step; key of `ranges`."),
    _c("frame_id", INT64, "attribution", "Innermost Python frame that launched it, else that which called the forward operator "
       "of its backward operator; key of `frames`."),
)

_DEVICE = (
    _c("device_id", TEXT, "ingest", "The physical GPU (or MIG slice), the same across processes; key of `devices`.", prose=True),
    _c("device", INT32, "reader", "The tool's device ordinal within the process (after CUDA_VISIBLE_DEVICES)."),
    _c("gpu", TEXT, "ingest", "Product name of the GPU.", prose=True),
    _c("context", INT64, "reader", "CUDA context id within the process."),
    _c("stream", INT64, "reader", "Stream id within the process; NULL for work outside streams."),
)

_LAUNCHED = (
    _c("correlation_id", INT64, "reader", "CUPTI correlation id: unique per process, shared by the nodes of a graph launch."),
    _c("launch_id", INT64, "normalise", "The API call that launched it; key of `api_calls`."),
    _c("queue_delay_ns", INT64, "normalise", "start_ns minus end of the launching call; negative when it began before.", "ns"),
    _c("external_id", INT64, "reader", "Kineto's External id where it is a real link to an operator, else NULL."),
)

KERNELS = Table(
    "kernels",
    "One row per GPU kernel execution and tool. The same launch may stand here once per tool: group by tool, or "
    "start from the view timeline_kernels.",
    (
        _c("kernel_id", INT64, "normalise", "Identity of the row, stable across re-ingests."),
        *_WHERE_FROM,
        _RANK,
        _c("host", TEXT, "ingest", "Host name of the process.", prose=True),
        _c("pid", INT64, "ingest", "OS process id."),
        *_DEVICE,
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns; NULL for ncu.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start; NULL where the tool printed an impossible value.", "ns"),
        _c("overrun_ns", INT64, "normalise", "What it lasts beyond the start of the next kernel in its stream, where it still "
           "ran when the second after it began: its end cannot be true. 0: it ends in time. NULL: not known (no time, no "
           "stream, too few kernels after it, or one of several of a graph).", "ns"),
        _c("launch_index", INT64, "normalise", "Order of launch in the process, from 0 (launch time, correlation id, ncu ID)."),
        _c("nth", INT64, "normalise", "The n-th launch of this kernel_key and launch configuration in the process, from 0."),
        _c("name", TEXT, "reader", "Kernel name as the tool prints it (nsys: demangled)."),
        _c("short_name", TEXT, "normalise", "Base name without template arguments, namespaces and parameters."),
        _c("mangled_name", TEXT, "reader", "Mangled symbol, where the tool recorded it."),
        _c("kernel_key", TEXT, "normalise", "Canonical name, the same in the three tools."),
        _c("family", TEXT, "normalise", "gemm, convolution, attention, normalization, reduction, elementwise, optimizer, "
           "collective, memory or other."),
        _c("tensor_cores", BOOL, "normalise", "Runs on tensor cores, by its name; NULL where it does not show (Triton, ...)."),
        _c("grid_x", INT32, "reader", "Grid size, x.", "blocks"),
        _c("grid_y", INT32, "reader", "Grid size, y.", "blocks"),
        _c("grid_z", INT32, "reader", "Grid size, z.", "blocks"),
        _c("block_x", INT32, "reader", "Block size, x.", "threads"),
        _c("block_y", INT32, "reader", "Block size, y.", "threads"),
        _c("block_z", INT32, "reader", "Block size, z.", "threads"),
        _c("cluster_x", INT32, "reader", "Thread block cluster size, x.", "blocks"),
        _c("cluster_y", INT32, "reader", "Thread block cluster size, y.", "blocks"),
        _c("cluster_z", INT32, "reader", "Thread block cluster size, z.", "blocks"),
        _c("registers_per_thread", INT32, "reader", "Registers per thread."),
        _c("static_shared_bytes", INT64, "reader", "Static shared memory per block.", "bytes"),
        _c("dynamic_shared_bytes", INT64, "reader", "Dynamic shared memory per block.", "bytes"),
        _c("shared_bytes", INT64, "reader", "Static and dynamic shared memory per block.", "bytes"),
        _c("blocks_per_sm", FLOAT64, "reader", "Blocks of the grid divided by the SMs of the GPU (Kineto)."),
        _c("warps_per_sm", FLOAT64, "reader", "Warps of the grid divided by the SMs of the GPU (Kineto)."),
        _c("estimated_occupancy_pct", FLOAT64, "reader", "Occupancy estimated by the tool from the launch (Kineto).", "%"),
        *_LAUNCHED,
        _c("graph_id", INT64, "reader", "Executable CUDA graph the kernel is a node of."),
        _c("graph_node_id", INT64, "reader", "Node within that graph."),
        _c("annotation", TEXT, "reader", "What the program called the node when it captured the graph (PyTorch's mark_kernels)."),
        _c("annotated_module", TEXT, "reader", "Module that the program named for the node when it captured the graph: a path."),
        *_WHY,
        _c("collective", TEXT, "reader", "Collective operation as the tool names it, else as the innermost range names it."),
        _c("message_bytes", INT64, "reader", "Payload of the collective on this rank: input elements x element size.", "bytes"),
        _c("group_size", INT32, "reader", "Ranks in the collective's process group."),
        _c("group_name", TEXT, "reader", "Name of the process group."),
        _c("group_seq", INT64, "reader", "Sequence number of the collective within its group."),
        _c("peer_rank", INT32, "reader", "Rank that a send goes to or a receive comes from (Kineto)."),
        _c("metrics", METRICS, "reader", "ncu counters under ncu's raw names, in base units (ns, byte, hz, cycle, %)."),
        _c("ncu_id", INT64, "reader", "ncu's own ID of the launch within its report."),
        _c("nvtx_range", TEXT, "reader", "NVTX state that ncu printed with the launch."),
        _c("clock_control", TEXT, "reader", "ncu --clock-control, where known."),
        _c("cache_control", TEXT, "reader", "ncu --cache-control, where known."),
        _c("replay_mode", TEXT, "reader", "ncu --replay-mode, where known."),
        _c("passes", INT32, "reader", "Passes that ncu needed for the launch."),
        _c("section_set", TEXT, "reader", "ncu set or sections, where known."),
    ),
    "kernel_id",
    ("kernel_id", "start_ns", "duration_ns", "overrun_ns", "launch_index", "nth", "correlation_id", "launch_id", "queue_delay_ns",
     "external_id", "graph_node_id", "step", "op_range_id", "range_id", "step_id", "frame_id", "group_seq", "metrics", "ncu_id"),
)

MEMORY_OPS = Table(
    "memory_ops",
    "One row per GPU memory copy, set, unified-memory migration or batch of decompressions.",
    (
        _c("memory_op_id", INT64, "normalise", "Identity of the row, stable across re-ingests."),
        *_WHERE_FROM,
        _RANK,
        *_DEVICE,
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start; NULL where the tool printed an impossible value.", "ns"),
        _c("bandwidth_duration_ns", INT64, "reader", "Duration that follows from the printed bandwidth, where the tool cut "
           "duration_ns to whole µs (Kineto before torch 2.4); else NULL.", "ns"),
        _c("kind", TEXT, "reader", "memcpy, memset, migration (unified memory) or decompression (of a batch in memory)."),
        _c("direction", TEXT, "reader", "HtoD, DtoH, DtoD, HtoH, PtoP, HtoA, AtoH, AtoA, AtoD, DtoA; NULL for memset and "
           "decompression."),
        _c("name", TEXT, "reader", "Label as the tool prints it; of a decompression ours."),
        _c("source_memory", TEXT, "reader", "pageable, pinned, device, array, managed, device_static, managed_static."),
        _c("destination_memory", TEXT, "reader", "As source_memory, for the destination (memset: the memory written)."),
        _c("bytes", INT64, "reader", "Bytes moved or set; of a decompression the compressed bytes.", "bytes"),
        _c("migration_cause", TEXT, "reader", "Why unified memory migrated: page_fault, prefetch, speculative_prefetch, "
           "eviction, access_counters or unknown; 'cause N' for a number not known here; NULL for other operations."),
        _c("address", INT64, "reader", "Virtual address of the pages that migrated (two's complement of the unsigned value)."),
        *_LAUNCHED,
        _c("graph_node_id", INT64, "reader", "CUDA-graph node, where the tool recorded it."),
        *_WHY,
        _c("collective", TEXT, "attribution", "Communication that a copy is part of: the operation that the innermost range or "
           "operator names (allgather, send), unnamed where they only say that they communicate; NULL for other operations."),
    ),
    "memory_op_id",
    ("memory_op_id", "start_ns", "duration_ns", "bandwidth_duration_ns", "bytes", "address", "correlation_id", "launch_id",
     "queue_delay_ns", "external_id", "graph_node_id", "step", "op_range_id", "range_id", "step_id", "frame_id"),
)

GRAPH_EXECUTIONS = Table(
    "graph_executions",
    "One row per CUDA-graph launch whose kernels the tool did not record: the GPU was busy, the kernels are unknown.",
    (
        _c("graph_execution_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        *_DEVICE,
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("graph_id", INT64, "reader", "The CUDA graph."),
        _c("graph_exec_id", INT64, "reader", "The executable graph."),
        _c("correlation_id", INT64, "reader", "CUPTI correlation id of the launch."),
    ),
    "graph_execution_id",
    ("graph_execution_id", "start_ns", "duration_ns", "correlation_id"),
)

API_CALLS = Table(
    "api_calls",
    "One row per CUDA or HIP runtime or driver call. One graph launch may own many kernels.",
    (
        _c("launch_id", INT64, "ingest", "Identity of the row; what kernels.launch_id points to."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id of the caller."),
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("name", TEXT, "reader", "Function name without the API version suffix."),
        _c("api", TEXT, "reader", "runtime or driver; NULL where the tool does not record it."),
        _c("correlation_id", INT64, "reader", "CUPTI correlation id."),
        _c("return_value", INT32, "reader", "Return code, where recorded (0 = success)."),
        _c("external_id", INT64, "reader", "Kineto's External id where it is a real link to an operator, else NULL."),
        _c("op_range_id", INT64, "attribution", "Innermost operator around the call; key of `ranges`."),
        _c("range_id", INT64, "attribution", "Innermost range around the call; key of `ranges`."),
    ),
    "launch_id",
    ("launch_id", "start_ns", "duration_ns", "correlation_id", "external_id", "op_range_id", "range_id"),
)

_CALL = _c("launch_id", INT64, "normalise", "The API call that it belongs to, by correlation id; key of `api_calls`.")

SYNCHRONIZATIONS = Table(
    "synchronizations",
    "One row per wait that CUPTI recorded: a call of the host that waited for the GPU, or a stream that waited for an "
    "event. It is part of the API call's time, and not GPU work.",
    (
        _c("synchronization_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        *_DEVICE,
        _c("start_ns", INT64, "reader", "Start on the host, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start; for stream_wait_event that of the call, not of the wait.", "ns"),
        _c("kind", TEXT, "reader", "What the wait is for: event, stream or context by the host, stream_wait_event by a stream; "
           "unknown, or 'type N' for a number that is not known here."),
        _c("event_id", INT64, "reader", "CUDA event that the wait is for; NULL for stream, context and where not recorded."),
        _c("event_record_id", INT64, "reader", "Which record of that event, as in cuda_events; NULL where it is not recorded. "
           "Kineto: the correlation id of the call that recorded it."),
        _c("correlation_id", INT64, "reader", "CUPTI correlation id of the call that waits."),
        _CALL,
    ),
    "synchronization_id",
    ("synchronization_id", "start_ns", "duration_ns", "event_id", "event_record_id", "correlation_id", "launch_id"),
)

CUDA_EVENTS = Table(
    "cuda_events",
    "One row per record of a CUDA event in a stream (cudaEventRecord). Of a PyTorch trace without events of the category "
    "cuda_event: those records that a wait names.",
    (
        _c("cuda_event_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        *_DEVICE,
        _c("at_ns", INT64, "reader", "When the GPU reached it, relative to profiles.origin_epoch_ns; NULL: not recorded.", "ns"),
        _c("event_id", INT64, "reader", "The CUDA event: it may be recorded many times."),
        _c("event_record_id", INT64, "reader", "Which record of the event this is; NULL where it is not recorded."),
        _c("correlation_id", INT64, "reader", "CUPTI correlation id of the call that records it."),
        _CALL,
    ),
    "cuda_event_id",
    ("cuda_event_id", "at_ns", "event_id", "event_record_id", "correlation_id", "launch_id"),
)

HOST_FUNCTIONS = Table(
    "host_functions",
    "One row per function of the host that a stream ran in its order (cudaLaunchHostFunc, host nodes of CUDA graphs): what comes "
    "after it in the stream waits for it. It is not GPU work.",
    (
        _c("host_function_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        *_DEVICE,
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("kind", TEXT, "reader", "launch (cudaLaunchHostFunc) or graph_node."),
        _c("graph_id", INT64, "reader", "CUDA graph of a node."),
        _c("graph_node_id", INT64, "reader", "The node."),
        _c("correlation_id", INT64, "reader", "CUPTI correlation id of the call that launched it, or its graph."),
        _CALL,
    ),
    "host_function_id",
    ("host_function_id", "start_ns", "duration_ns", "graph_node_id", "correlation_id", "launch_id"),
)

OS_CALLS = Table(
    "os_calls",
    "One row per call of an operating-system library (nsys --trace=osrt): what a thread did outside of CUDA, or which call it "
    "waited in. nsys leaves out calls that are shorter than a threshold (option --osrt-threshold, 1 µs by default).",
    (
        _c("os_call_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id of the caller."),
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("name", TEXT, "reader", "Function name, such as poll or pthread_cond_wait; for other kinds what nsys says of it."),
        _c("kind", TEXT, "reader", "call; started or finished where nsys began or ended to follow the process; else 'class N'."),
        _c("nesting_level", INT32, "reader", "Calls of this kind around it on its thread."),
        _c("return_value", INT64, "reader", "Value returned."),
    ),
    "os_call_id",
    ("os_call_id", "start_ns", "duration_ns", "return_value"),
)

OVERHEADS = Table(
    "overheads",
    "One row per interval that the profiler, or CUDA outside its API calls, took from a thread: loading of modules "
    "and functions, compilation, waiting for room in the command buffer.",
    (
        _c("overhead_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id."),
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("source", TEXT, "reader", "Who: profiler or cuda; NULL where the report does not say."),
        _c("kind", TEXT, "reader", "driver_compiler, module_loading, function_loading or command_buffer_full (CUDA's), "
           "buffer_flush, buffer_request, instrumentation or resource (CUPTI's), own (the rest of nsys); unknown, or 'type N' "
           "for a number that is not known here."),
        _c("name", TEXT, "reader", "What the profiler calls it."),
        _c("correlation_id", INT64, "reader", "CUPTI correlation id of the call in which it happened, where recorded."),
        _CALL,
    ),
    "overhead_id",
    ("overhead_id", "start_ns", "duration_ns", "correlation_id", "launch_id"),
)

_GPU = tuple(column for column in _DEVICE if column.name in ("device_id", "device", "gpu"))

PAGE_FAULTS = Table(
    "page_faults",
    "One row per page fault of unified memory that nsys recorded (--cuda-um-cpu-page-faults, --cuda-um-gpu-page-faults): on the "
    "CPU each fault, on a GPU the faults of one page together.",
    (
        _c("page_fault_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        *_GPU,
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start; NULL on the CPU.", "ns"),
        _c("kind", TEXT, "reader", "cpu or gpu."),
        _c("address", INT64, "reader", "Virtual address of the page (two's complement of the unsigned value)."),
        _c("faults", INT64, "reader", "Faults of this page that the row stands for: 1 on the CPU."),
        _c("access", TEXT, "reader", "On a GPU: read, write, atomic, prefetch or unknown; 'type N' for a number not known here."),
        _c("function", TEXT, "reader", "On the CPU: function, or address of the instruction, that met the page."),
        _c("module", TEXT, "reader", "Program or library of that function."),
        _c("source_file", TEXT, "reader", "Source file of that function, where recorded (exports of 2026)."),
        _c("source_line", INT32, "reader", "Line in it."),
    ),
    "page_fault_id",
    ("page_fault_id", "start_ns", "duration_ns", "address", "faults"),
)

DEVICE_SAMPLES = Table(
    "device_samples",
    "One row per value of a counter that was sampled over time: metrics of a GPU (nsys --gpu-metrics-devices), counter events of "
    "a PyTorch trace. They belong to the GPU: whatever ran on it, of any process, is in them.",
    (
        _c("device_sample_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        _RANK,
        *_GPU,
        _c("at_ns", INT64, "reader", "Time of the sample, relative to profiles.origin_epoch_ns: nsys samples the stretch before "
           "it.", "ns"),
        _c("metric", TEXT, "reader", "Name as the tool gives it, without the unit: such as 'SMs Active'."),
        _c("value", FLOAT64, "reader", "Value in that unit."),
        _c("unit", TEXT, "reader", "hz for clocks, % of the peak, else what the tool writes; NULL where it says none."),
    ),
    "device_sample_id",
    ("device_sample_id", "at_ns", "value"),
)

CPU_SAMPLES = Table(
    "cpu_samples",
    "One row per sample of a CPU that nsys took (--sample): which thread ran there, and in which function.",
    (
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id of the thread that ran."),
        _c("at_ns", INT64, "reader", "Time, relative to profiles.origin_epoch_ns.", "ns"),
        _c("sampled_frame_id", INT64, "ingest", "Innermost frame of its call stack; key of `sampled_frames`; NULL without a "
           "stack."),
    ),
    varying=("at_ns",),
)

THREAD_STATES = Table(
    "thread_states",
    "One row per stretch between two scheduling events of a thread (nsys, --cpuctxsw): whether it ran on a CPU.",
    (
        _c("thread_state_id", INT64, "ingest", "Identity of the row, ascending in time within a thread."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id."),
        _c("start_ns", INT64, "reader", "When it was put on a CPU or taken off, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "Up to its next event; NULL for its last one.", "ns"),
        _c("state", TEXT, "reader", "running (on a CPU) or off_cpu: it waits, or is ready while others run."),
        _c("cpu", INT32, "reader", "The CPU on which it runs, or ran until then."),
        _c("reason", TEXT, "reader", "Why it was taken off, where the system says: interruptible, uninterruptible (it waits for "
           "a device), terminated and the like."),
    ),
    "thread_state_id",
    ("thread_state_id", "start_ns", "duration_ns"),
)

SAMPLED_FRAMES = Table(
    "sampled_frames",
    "One row per function and functions around it in the call stacks of `cpu_samples`: a tree per thread of a window, in which a "
    "function called from one place is one row.",
    (
        _c("sampled_frame_id", INT64, "ingest", "Identity of the row, ascending from each frame to those that it called."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id."),
        _c("parent_id", INT64, "ingest", "The frame that called it; NULL for the outermost."),
        _c("last_id", INT64, "ingest", "The last frame within it: those within it are sampled_frame_id + 1 to last_id."),
        _c("depth", INT32, "reader", "Number of frames around it."),
        _c("name", TEXT, "reader", "Function as nsys prints it; [MODULE] where it is not known, one for all such frames of a "
           "module that follow each other; [Max depth] around stacks that nsys cut."),
        _c("module", TEXT, "reader", "File of the library or program, without its folders."),
        _c("recursive", BOOL, "reader", "A frame of the same name and module lies around it."),
    ),
    "sampled_frame_id",
)

MPI_CALLS = Table(
    "mpi_calls",
    "One row per MPI event that nsys recorded (--trace=mpi). A call that waits for several requests is a row per request, a "
    "MPI_Sendrecv with two partners one per partner.",
    (
        _c("mpi_call_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        _RANK,
        _c("thread", INT64, "reader", "OS thread id of the caller."),
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start; NULL for a call that was never seen to end.", "ns"),
        _c("name", TEXT, "reader", "Function name, such as MPI_Allreduce."),
        _c("kind", TEXT, "reader", "p2p, collective, start_wait (MPI_Start, MPI_Test, MPI_Wait and variants) or other."),
        _c("peer_rank", INT32, "reader", "The other rank of a p2p call, in its communicator."),
        _c("root_rank", INT32, "reader", "Root of a collective that has one, in its communicator."),
        _c("tag", INT64, "reader", "Tag of a p2p message."),
        _c("bytes", INT64, "reader", "Size of a p2p message; of a collective what this rank sends.", "bytes"),
        _c("receive_bytes", INT64, "reader", "What this rank receives in a collective.", "bytes"),
        _c("communicator", INT64, "reader", "Handle of the communicator: unique within its process only."),
        _c("communicator_uid", INT64, "reader", "The communicator's id over all ranks, where recorded (exports of 2026)."),
        _c("request", INT64, "reader", "Handle of the request, for calls that begin, test or end one."),
    ),
    "mpi_call_id",
    ("mpi_call_id", "start_ns", "duration_ns", "tag", "bytes", "receive_bytes", "request"),
)

RANGES = Table(
    "ranges",
    "One row per CPU-side span: operator, annotation, NVTX range, module, step, directive of OpenACC or OpenMP.",
    (
        _c("range_id", INT64, "ingest", "Identity of the row."),
        _c("parent_id", INT64, "attribution", "Innermost enclosing range of the same thread."),
        _c("depth", INT32, "attribution", "Number of enclosing ranges of the same thread."),
        _c("op_parent_id", INT64, "attribution", "Innermost enclosing operator of the same thread."),
        _c("forward_id", INT64, "attribution", "Forward operator of a backward operator (same autograd sequence number)."),
        _c("frame_id", INT64, "attribution", "Innermost Python frame around an operator, else that around its forward operator; "
           "key of `frames`."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id on which it began; NULL for ranges on the GPU track."),
        _c("end_thread", INT64, "reader", "Thread on which it ended, where that is another one."),
        _c("device", INT32, "reader", "Device ordinal, for annotations that the tool drew on the GPU track."),
        _c("stream", INT64, "reader", "Stream, for annotations that the tool drew on the GPU track."),
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start; NULL for marks and for ranges never closed.", "ns"),
        _c("kind", TEXT, "reader", "operator, annotation, gpu_annotation, step, module, nvtx_push_pop, nvtx_start_end, "
           "nvtx_mark, openacc or openmp."),
        _c("name", TEXT, "reader", "Name as recorded; without what PyTorch's emit_nvtx writes behind it."),
        _c("domain", TEXT, "reader", "NVTX domain; NULL for the default domain."),
        _c("step", INT64, "reader", "Step number, for kind step."),
        _c("shapes", TEXT, "reader", "Input shapes as the tool prints them."),
        _c("types", TEXT, "reader", "Input types as the tool prints them."),
        _c("concrete_inputs", TEXT, "reader", "Scalar inputs as the tool prints them."),
        _c("sequence", INT64, "reader", "Autograd sequence number."),
        _c("forward_thread", INT64, "reader", "Thread of the forward operator, for backward operators."),
        _c("external_id", INT64, "reader", "Kineto's External id of the operator."),
        _c("communicator", TEXT, "reader", "Of a call of NCCL whose payload nsys exported: the communicator, NCCL's hash, the "
           "same on all its ranks."),
        _c("message_bytes", INT64, "reader", "Size of the message as NCCL was called (count x element size; of a reducescatter "
           "that of the result, of an alltoall that to each rank).", "bytes"),
        _c("group_size", INT32, "reader", "Ranks of the communicator, where a payload says it."),
        _c("group_rank", INT32, "reader", "The rank within the communicator, where the payload says it."),
        _c("root_rank", INT32, "reader", "Root of the collective, in its communicator."),
        _c("peer_rank", INT32, "reader", "The other rank of a send or receive, in its communicator."),
        _c("reduction", TEXT, "reader", "sum, prod, max, min, avg; else the operation's number."),
    ),
    "range_id",
    ("range_id", "parent_id", "depth", "op_parent_id", "forward_id", "frame_id", "start_ns", "duration_ns", "step", "sequence",
     "external_id"),
)

RANGE_PROJECTIONS = Table(
    "range_projections",
    "One row per range as nsys stats (nvtx_gpu_proj_trace) printed it: when the GPU did what the range launched. Filled only "
    "where that table is all there is; from recorded launches the view nvtx_gpu_projection_trace computes the same.",
    (
        _c("range_id", INT64, "ingest", "The range, with its times on the host; key of `ranges`. NULL for work of a thread "
           "that was launched outside of all ranges."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id of the range."),
        _c("start_ns", INT64, "reader", "First start of the work on the GPU, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "First start to last end of that work.", "ns"),
        _c("launches", INT64, "reader", "Launching calls: what nsys counts as GPU operations."),
    ),
)

FRAMES = Table(
    "frames",
    "One row per Python frame and frames around it (Kineto, with_stack=True): a tree per thread, in which all calls of a "
    "function from one place of the stack are one row. Left out are frames in which no operator and no API call began and that "
    "took less than a thousandth of the time of the outermost one. Torch 1.8 to 1.10 say the frames of operators only.",
    (
        _c("frame_id", INT64, "attribution", "Identity of the row, ascending from each frame to those that it called."),
        _RUN, _TOOL, _PROFILE, _PROCESS,
        _c("thread", INT64, "reader", "OS thread id, as the profiler gives it."),
        _c("parent_id", INT64, "attribution", "The frame that called it; NULL for the outermost."),
        _c("last_id", INT64, "attribution", "The last frame within it: those within it are frame_id + 1 to last_id."),
        _c("depth", INT32, "attribution", "Number of frames around it."),
        _c("name", TEXT, "reader", "Frame as the profiler prints it, without addresses: 'FILE(LINE): FUNCTION' with the "
           "function's first line (of torch 1.8 to 1.10 the line that ran), a built-in, or 'nn.Module: NAME'."),
        _c("recursive", BOOL, "attribution", "A frame of the same name lies around it: its times are a part of that one's."),
        _c("calls", INT64, "attribution", "Calls; NULL where these were not recorded."),
        _c("host_ns", INT64, "attribution", "Sum of the calls' durations; NULL where these were not recorded.", "ns"),
    ),
)

FRAME_CALLS = Table(
    "frame_calls",
    "One row per call of a Python function. It is what `frames` are made of, and is not stored.",
    (
        _PROCESS,
        _c("thread", INT64, "reader", "OS thread id, as the profiler gives it."),
        _c("start_ns", INT64, "reader", "Start, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("name", TEXT, "reader", "Frame as the profiler prints it, without addresses."),
    ),
    varying=("start_ns", "duration_ns"),
)

CALL_STACKS = Table(
    "call_stacks",
    "One row per operator that carries its Python stack as a text (Kineto of torch 1.8 to 1.10). It is what `frames` are made of "
    "where no call of a function was recorded, and is not stored.",
    (
        _PROCESS,
        _c("thread", INT64, "reader", "OS thread id, as the profiler gives it."),
        _c("start_ns", INT64, "reader", "Start of the operator, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "End minus start.", "ns"),
        _c("name", TEXT, "reader", "The frames, innermost first, joined by ';'."),
    ),
    varying=("start_ns", "duration_ns"),
)

ALLOCATIONS = Table(
    "allocations",
    "One row per allocation or release that the PyTorch profiler recorded ([memory] events), or nsys at CUDA itself.",
    (
        _c("allocation_id", INT64, "ingest", "Identity of the row."),
        *_WHERE_FROM,
        _c("thread", INT64, "reader", "OS thread id."),
        _c("at_ns", INT64, "reader", "Time, relative to profiles.origin_epoch_ns.", "ns"),
        _c("bytes", INT64, "reader", "Bytes allocated, negative when released.", "bytes"),
        _c("address", INT64, "reader", "Address (two's complement of the unsigned value)."),
        _c("device_type", TEXT, "reader", "cpu, cuda or the number the tool printed."),
        _c("device", INT32, "reader", "Device ordinal; NULL for the CPU."),
        _c("total_allocated_bytes", INT64, "reader", "Allocated on that device after the event.", "bytes"),
        _c("total_reserved_bytes", INT64, "reader", "Reserved by the caching allocator after the event.", "bytes"),
        _c("op_range_id", INT64, "attribution", "Innermost operator around the event, on its thread; key of `ranges`."),
    ),
    "allocation_id",
)

STEP_TIMES = Table(
    "step_times",
    "One row per step whose time the workload itself wrote down (rank0003.steps.json), under a profiler or under none. A step's "
    "own times are when the host issued it; those of a segment of steps are when the device was done.",
    (
        *_WHERE_FROM,
        _RANK,
        _c("profiler", TEXT, "reader", "Profiler that the execution ran under: none, nsys, ncu or kineto."),
        _c("workload", TEXT, "reader", "What the workload calls itself."),
        _c("segment_number", INT32, "reader", "Position of the segment (consecutive steps) in its file, from 0."),
        _c("segment_name", TEXT, "reader", "The workload's name for the segment, such as warmup or measure."),
        _c("segment_start_ns", INT64, "reader", "Start of the segment, with the device idle, relative to the origin.", "ns"),
        _c("segment_duration_ns", INT64, "reader", "Length, to a final synchronisation; over its steps, the step time.", "ns"),
        _c("step", INT64, "reader", "Step number, as in the name ProfilerStep#N that the profilers see."),
        _c("start_ns", INT64, "reader", "When the host began to issue the step, relative to profiles.origin_epoch_ns.", "ns"),
        _c("duration_ns", INT64, "reader", "Until the host had issued it; NULL where it ends before it begins.", "ns"),
    ),
)

COLLECTIVE_RECORDS = Table(
    "collective_records",
    "One row per collective that a communication library wrote down itself on a rank: a line of NCCL's or RCCL's Inspector, an "
    "entry of PyTorch's flight recorder. They are small enough to be kept of all ranks of a large job, and are not kernels: rows "
    "of two tools saw the same collectives.",
    (
        *_WHERE_FROM,
        _RANK,
        _c("communicator", TEXT, "reader", "Communicator, the same on all its ranks: NCCL's hash, or the name of PyTorch's "
           "process group."),
        _c("communicator_name", TEXT, "reader", "What the program calls it, such as default_pg; NULL where the record does not "
           "say."),
        _c("communicator_rank", INT32, "reader", "The rank within the communicator; NULL in PyTorch's records."),
        _c("group_size", INT32, "reader", "Ranks of the communicator; NULL where the record does not say."),
        _c("sequence", INT64, "reader", "Number of the collective within its communicator, the same on all its ranks."),
        _c("collective", TEXT, "reader", "Operation as it was recorded, such as AllReduce or all_reduce."),
        _c("message_bytes", INT64, "reader", "Payload on this rank: Inspector: count x element size as NCCL was called; PyTorch: "
           "input elements x element size.", "bytes"),
        _c("start_ns", INT64, "reader", "When the host issued it, relative to profiles.origin_epoch_ns; NULL where not recorded.",
           "ns"),
        _c("duration_ns", INT64, "reader", "How long it took on this rank, waiting for the other ranks included; NULL where not "
           "recorded.", "ns"),
        _c("duration_clock", TEXT, "reader", "Whose clock duration_ns is of: gpu or host; NULL where the record does not say."),
        _c("state", TEXT, "reader", "completed, started or scheduled when the record was written."),
    ),
)

PROCESS_GROUPS = Table(
    "process_groups",
    "One row per process group that PyTorch lists of a rank (distributedInfo.pg_config) or names in its kernels: what "
    "`kernels.group_name` is called, and the place of the rank in it.",
    (
        *_WHERE_FROM,
        _c("group_name", TEXT, "reader", "Name of the process group, as in `kernels`."),
        _c("description", TEXT, "reader", "What the program calls it, such as default_pg, mesh_tp or "
           "PIPELINE_MODEL_PARALLEL_GROUP; NULL where it says nothing."),
        _c("group_size", INT32, "reader", "Its ranks."),
        _c("group_rank", INT32, "reader", "Place of the rank among them, from 0: of a pipeline, its stage; NULL where the "
           "rank is unknown or not listed."),
    ),
)

METRIC_TEXTS = Table(
    "metric_texts",
    "String-valued ncu metrics, one row per launch and metric.",
    (
        _c("kernel_id", INT64, "ingest", "The launch; key of `kernels`."),
        _RUN, _TOOL, _PROFILE,
        _c("metric", TEXT, "reader", "ncu's raw metric name, or section and label where no raw name is certain."),
        _c("value", TEXT, "reader", "The text that ncu printed."),
    ),
)

UNMAPPED_METRICS = Table(
    "unmapped_metrics",
    "Rows of ncu's details page whose label maps to no raw metric with certainty: kept under section and label.",
    (
        _c("kernel_id", INT64, "ingest", "The launch; key of `kernels`."),
        _RUN, _TOOL, _PROFILE,
        _c("section", TEXT, "reader", "Section display name."),
        _c("body_item", TEXT, "reader", "Body item label, where printed."),
        _c("label", TEXT, "reader", "Metric label."),
        _c("unit", TEXT, "reader", "Base unit after scaling, or the unit as printed where unknown."),
        _c("value", FLOAT64, "reader", "Value in that unit."),
    ),
)

METRIC_SUMMARIES = Table(
    "metric_summaries",
    "ncu --print-summary: one row per kernel, launch configuration and metric; its launches are not known one by one.",
    (
        *_WHERE_FROM,
        _RANK,
        _c("device", INT32, "reader", "Device ordinal."),
        _c("name", TEXT, "reader", "Kernel name as ncu prints it."),
        _c("kernel_key", TEXT, "normalise", "Canonical name, the same in the three tools."),
        _c("tensor_cores", BOOL, "normalise", "Runs on tensor cores, by its name; NULL where the name does not show it."),
        _c("grid_x", INT32, "reader", "Grid size, x.", "blocks"),
        _c("grid_y", INT32, "reader", "Grid size, y.", "blocks"),
        _c("grid_z", INT32, "reader", "Grid size, z.", "blocks"),
        _c("block_x", INT32, "reader", "Block size, x.", "threads"),
        _c("block_y", INT32, "reader", "Block size, y.", "threads"),
        _c("block_z", INT32, "reader", "Block size, z.", "threads"),
        _c("invocations", INT64, "reader", "Launches summarised."),
        _c("metric", TEXT, "reader", "ncu's raw metric name."),
        _c("minimum", FLOAT64, "reader", "Minimum over the launches, base unit."),
        _c("maximum", FLOAT64, "reader", "Maximum over the launches, base unit."),
        _c("average", FLOAT64, "reader", "Average over the launches, base unit."),
    ),
)

ADVICE = Table(
    "advice",
    "Rule results that ncu printed, one row per launch and rule.",
    (
        _c("kernel_id", INT64, "ingest", "The launch; key of `kernels`."),
        _RUN, _TOOL, _PROFILE,
        _c("section", TEXT, "reader", "Section identifier."),
        _c("rule", TEXT, "reader", "Rule name."),
        _c("type", TEXT, "reader", "OPT (optimisation), INF (information) or WRN (warning)."),
        _c("message", TEXT, "reader", "The text of the rule."),
        _c("speedup_type", TEXT, "reader", "local, global or NULL."),
        _c("estimated_speedup_pct", FLOAT64, "reader", "Speed-up that ncu estimates.", "%"),
    ),
)

MATCHES = Table(
    "matches",
    "One row per pair of rows of two tools that certainly are the same launch; recomputed for a run when its profiles change. "
    "The weaker grades are counted by the views on it, since they pair kinds of launches, not launches.",
    (
        _RUN,
        _RANK,
        _TOOL,
        _PROFILE,
        _c("kernel_id", INT64, "ingest", "The launch in `tool`; key of `kernels`."),
        _c("other_tool", TEXT, "ingest", "The other tool: nsys before kineto before ncu."),
        _c("other_profile_id", TEXT, "ingest", "Profile of other_kernel_id."),
        _c("other_kernel_id", INT64, "ingest", "The same launch in `other_tool`; key of `kernels`."),
        _c("grade", TEXT, "ingest", "launch: same key, configuration and certain place in the order of launches."),
        _c("evidence", TEXT, "ingest", "What makes it certain: the step or stretch in which the order was compared, ncu's NVTX "
           "ranges, its filter, or nsys, which knows the launch in both."),
    ),
)

DEVICES = Table(
    "devices",
    "One row per profile, process and device ordinal: which GPU that was.",
    (
        _c("device_id", TEXT, "ingest", "(host, UUID), else (host, PCI address), else (process, ordinal).", prose=True),
        _RUN, _TOOL, _PROFILE, _PROCESS,
        _c("device", INT32, "reader", "Device ordinal within the process."),
        _c("name", TEXT, "reader", "Product name."),
        _c("uuid", TEXT, "reader", "UUID of the GPU or MIG slice."),
        _c("pci", TEXT, "reader", "PCI bus address."),
        _c("compute_capability", TEXT, "reader", "Such as '9.0'."),
        _c("sm_count", INT32, "reader", "Streaming multiprocessors (of the slice)."),
        _c("memory_bytes", INT64, "reader", "Device memory.", "bytes"),
        _c("memory_bandwidth_bytes_per_s", FLOAT64, "reader", "Peak memory bandwidth that the tool states.", "bytes/s"),
        _c("core_clock_hz", FLOAT64, "reader", "Rated (boost) core clock that the tool states.", "hz"),
        _c("memory_clock_hz", FLOAT64, "reader", "Memory clock that the tool states.", "hz"),
        _c("l2_bytes", INT64, "reader", "L2 cache size.", "bytes"),
        _c("threads_per_sm", INT32, "reader", "Maximum resident threads per SM."),
    ),
)

PROCESSES = Table(
    "processes",
    "One row per OS process of a profile, with its rank and where the rank came from.",
    (
        _c("process_id", TEXT, "ingest", "Key of the process."),
        _RUN, _TOOL, _PROFILE,
        _c("host", TEXT, "reader", "Host name."),
        _c("pid", INT64, "reader", "OS process id."),
        _c("name", TEXT, "reader", "Process name."),
        _c("rank", INT32, "reader", "Rank; NULL where unknown."),
        _c("rank_source", TEXT, "reader", "sidecar, content:<what>, filename, pattern, or NULL."),
        _c("local_rank", INT32, "reader", "Local rank on its host."),
        _c("world_size", INT32, "reader", "Number of ranks of the job."),
    ),
)

PROFILES = Table(
    "profiles",
    "One row per profile: what one tool recorded in one report.",
    (
        _c("profile_id", TEXT, "ingest", "Key of the profile."),
        _RUN, _TOOL,
        _c("execution_id", TEXT, "ingest", "Start of the job it was recorded in, from a sidecar; NULL without one."),
        _c("tool_version", TEXT, "reader", "Version of the tool that wrote the file (nsys: the exporter)."),
        _c("capture_version", TEXT, "reader", "Version of the tool that captured, where it differs and is known."),
        _c("format", TEXT, "reader", "Format and generation, such as 'nsys sqlite 3.24.0', 'kineto G5', 'ncu wide raw'."),
        _c("vendor", TEXT, "reader", "cuda, rocm, xpu, mtia or cpu."),
        _c("origin_epoch_ns", INT64, "reader", "Epoch time of start_ns = 0; NULL where the file lacks it.", "ns"),
        _c("windows", INT32, "ingest", "Capture windows."),
        _c("kernels", INT64, "ingest", "Rows in kernels."),
        _c("memory_ops", INT64, "ingest", "Rows in memory_ops."),
        _c("api_calls", INT64, "ingest", "Rows in api_calls."),
        _c("ranges", INT64, "ingest", "Rows in ranges."),
        _c("kernel_ns", INT64, "ingest", "Sum of kernels.duration_ns; NULL where none is known.", "ns"),
        _c("gpu_first_ns", INT64, "ingest", "Earliest start of a kernel, memory operation or graph execution.", "ns"),
        _c("gpu_last_ns", INT64, "ingest", "Latest end of one.", "ns"),
        _c("events", INT64, "reader", "Records in the file that were understood (Kineto: complete events)."),
        _c("events_lost", INT64, "reader", "Records known to be damaged beyond recovery; NULL where not countable."),
        _c("truncated", BOOL, "reader", "The file ends before its end."),
        _c("first_bad_byte", INT64, "reader", "Offset of the first malformed byte in the (decompressed) file."),
        _c("link_method", TEXT, "reader", "How GPU work is linked to operators: external_id, containment or none."),
        _c("simulated", BOOL, "ingest", "The sidecar says that the capture was simulated."),
        _c("kernel_filter", TEXT, "ingest", "ncu's kernel filter, from the wrapper's sidecar: base and name."),
        _c("launch_skip", INT64, "ingest", "Launches that its filter finds and that it passed over, likewise."),
        _c("launch_count", INT64, "ingest", "The most launches that it was to measure, likewise."),
        _c("from_start", BOOL, "ingest", "nsys recorded from the start of the process, by the wrapper's sidecar."),
        _c("unread", COUNTS, "reader", "Tables of the report that hold events and are not read, with their rows (nsys)."),
        _c("settings", SETTINGS, "reader", "How the run was made, from sidecars: versions, command, clocks; workload.NAME."),
        _c("rules_version", INT32, "ingest", "Version of the rules behind the derived columns."),
    ),
)

FILES = Table(
    "files",
    "One row per file that ingest looked at, whatever became of it.",
    (
        _c("path", STRING, "ingest", "Absolute path at the time of ingest."),
        _RUN, _TOOL, _PROFILE,
        _c("window_index", INT32, "ingest", "Window of the profile that the file holds."),
        _c("kind", TEXT, "ingest", "What the file is."),
        _c("outcome", TEXT, "ingest", "read, partial, duplicate, refused, ignored, missing (no longer at its path) or "
           "replaced (recorded over, and ingested as another run). The rows of what is missing or replaced are kept."),
        _c("reason", STRING, "ingest", "Why, and what to do, where the outcome is not read.", prose=True),
        _c("bytes", INT64, "ingest", "Size.", "bytes"),
        _c("modified_ns", INT64, "ingest", "Modification time, epoch.", "ns"),
        _c("fingerprint", STRING, "ingest", "Fingerprint of the content."),
    ),
)

DIAGNOSTICS = Table(
    "diagnostics",
    "One row per thing that was wrong, missing, dropped or guessed.",
    (
        _RUN, _TOOL, _PROFILE,
        _c("path", STRING, "ingest", "The file."),
        _c("severity", TEXT, "reader", "info, warning or error."),
        _c("code", TEXT, "reader", "Short stable code, snake_case."),
        _c("count", INT64, "reader", "How many times."),
        _c("byte_offset", INT64, "reader", "First offset in the (decompressed) file, where it has one.", "bytes"),
        _c("message", STRING, "reader", "What it is, what it means for the numbers, what to do."),
    ),
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        KERNELS, MEMORY_OPS, GRAPH_EXECUTIONS, API_CALLS, SYNCHRONIZATIONS, CUDA_EVENTS, HOST_FUNCTIONS, OS_CALLS, OVERHEADS,
        PAGE_FAULTS, DEVICE_SAMPLES, CPU_SAMPLES, SAMPLED_FRAMES, THREAD_STATES, MPI_CALLS, RANGES, RANGE_PROJECTIONS, FRAMES,
        ALLOCATIONS, STEP_TIMES, COLLECTIVE_RECORDS, PROCESS_GROUPS, METRIC_TEXTS, UNMAPPED_METRICS, METRIC_SUMMARIES,
        ADVICE, MATCHES, DEVICES, PROCESSES, PROFILES, FILES, DIAGNOSTICS,
    )
}
READ: dict[str, Table] = TABLES | {table.name: table for table in (FRAME_CALLS, CALL_STACKS)}
"""The tables that readers may yield."""
