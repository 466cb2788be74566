"""The tables of a report whatever their container: the Source protocol, the names of the tables, and typed columns."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import pyarrow as pa

Kind = Literal["integer", "text", "name", "hex"]
"""What a column should hold; a name is an id of StringIds, or (by other tools' hands) plain text; bytes are given as the text of
their hexadecimal digits, empty where there are none."""

PIECE_ROWS = 1 << 15

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
DECOMPRESSION = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"
GRAPH_TRACE = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
HOST_FUNCTION = "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNCHRONIZATION = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
CUDA_EVENT = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
CUDA_OVERHEAD = "CUPTI_ACTIVITY_KIND_OVERHEAD"
PROFILER_OVERHEAD = "PROFILER_OVERHEAD"
OS_API = "OSRT_API"
CPU_PAGE_FAULTS = "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
GPU_PAGE_FAULTS = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
MEMORY_USAGE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
MPI_P2P = "MPI_P2P_EVENTS"
MPI_COLLECTIVES = "MPI_COLLECTIVES_EVENTS"
MPI_START_WAIT = "MPI_START_WAIT_EVENTS"
MPI_OTHER = "MPI_OTHER_EVENTS"
OPENACC = tuple(f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}" for kind in ("DATA", "LAUNCH", "OTHER"))
OPENMP = tuple(f"OPENMP_EVENT_KIND_{kind}" for kind in (
    "THREAD", "PARALLEL", "SYNC_REGION_WAIT", "SYNC_REGION", "TASK", "MASTER", "REDUCTION", "MUTEX_WAIT", "CRITICAL_SECTION",
    "WORKSHARE"))
"""Stretches of time; what OpenMP's other tables hold are instants."""
SAMPLES = "COMPOSITE_EVENTS"
SAMPLE_STACKS = "SAMPLING_CALLCHAINS"
SCHEDULING = "SCHED_EVENTS"
GPU_METRICS = "GPU_METRICS"
GPU_METRIC_NAMES = "TARGET_INFO_GPU_METRICS"
NVTX = "NVTX_EVENTS"
STRINGS = "StringIds"
STREAMS = "ProcessStreams"
PAYLOAD_ENTRIES = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
PAYLOAD_ENUM_ENTRIES = "NVTX_PAYLOAD_ENUM_ENTRIES"
PAYLOAD_NAMES = "NVTX_EXPORT_TRANSLATION"
DECODED = re.compile(r"DYNAMIC_NVTXPAYLOAD_DATATYPE_-?\d+_\d+_\d+")
"""Tables of payloads that the exporter decoded: process, domain and schema stand in their names."""

GPU_TABLES = (KERNEL, MEMCPY, MEMSET, DECOMPRESSION, GRAPH_TRACE)
EVENT_TABLES = (*GPU_TABLES, RUNTIME, NVTX)
"""The tables that tell one capture from another."""
MPI_TABLES = (MPI_P2P, MPI_COLLECTIVES, MPI_START_WAIT, MPI_OTHER)
HOST_TABLES = (
    SYNCHRONIZATION, CUDA_EVENT, HOST_FUNCTION, CUDA_OVERHEAD, PROFILER_OVERHEAD, OS_API, CPU_PAGE_FAULTS, GPU_PAGE_FAULTS,
    MEMORY_USAGE,
    *MPI_TABLES, *OPENACC, *OPENMP, SAMPLES, SCHEDULING,
)
CONTEXT_TABLES = (
    STRINGS, "META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SESSION_START_TIME",
    "TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "PROCESSES", "ThreadNames", "MPI_RANKS",
    "DIAGNOSTIC_EVENT", STREAMS, PAYLOAD_ENTRIES, PAYLOAD_ENUM_ENTRIES, PAYLOAD_NAMES, GPU_METRIC_NAMES,
)
KNOWN_TABLES = frozenset((*EVENT_TABLES, *HOST_TABLES, SAMPLE_STACKS, GPU_METRICS, *CONTEXT_TABLES))

_SIGNATURES = ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "META_DATA_EXPORT", "EXPORT_META_DATA", NVTX)
_SYSTEM_TABLES = ("PROCESSES", OS_API, SCHEDULING, SAMPLES, SAMPLE_STACKS)
_DESCRIPTIVE = re.compile(
    r"ENUM_|TARGET_INFO_|ANALYSIS_|META_DATA_|EXPORT_META_DATA$|NVTX_(EVENTS_)?PAYLOAD_|NVTX_SCOPES$|DYNAMIC_NVTXPAYLOAD_|"
    r"UnwindMethodType$|.*_CALLCHAINS$|sqlite_"
)
_PLAIN_NAME = re.compile(r"[A-Za-z]\w{0,63}")
_VERSIONED = re.compile(r"(.+?)(?:_V(\d{1,4}))?")


class Source(Protocol):
    """The tables of one report. A table or column that is absent reads like one without rows or values."""

    path: Path
    kind: str
    truncated: bool
    damage: dict[str, int]
    """Table -> places in it that are damaged: rows may be missing from it."""
    bad_values: dict[str, int]
    """Table -> values that were not of their column's kind, and are NULL now."""
    stand_ins: tuple[str, ...]
    """Names of tables that are not read because they are views, or tables of an extension."""

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of `table`, empty where it is absent."""

    def others(self) -> dict[str, int]:
        """Return the tables that hold rows and are not in KNOWN_TABLES, by name, with their rows."""

    def decoded(self) -> list[str]:
        """Return the tables of payloads that the exporter decoded."""

    def rows(
        self, table: str, columns: Sequence[str], among: tuple[str, Sequence[int | str]] | None = None,
    ) -> list[tuple[object, ...]]:
        """Return rows of a small table in order; `among` keeps those whose column has one of the values."""

    def edges(self, table: str, column: str) -> tuple[int, object, object]:
        """Return the number of rows (an upper bound, cheap), and the first and last value of `column`."""

    def owners(self, table: str, column: str, mask: int, at_most: int, within: int | None = None) -> list[int | None]:
        """Return up to `at_most` distinct values of `column` & `mask`, looking at the first `within` rows only."""

    def strings(self, ids: pa.Array) -> pa.Array:
        """Return the text of each id (int64), NULL where StringIds does not have it."""

    def batches(self, table: str, columns: Mapping[str, Kind], jobs: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order with those of `columns` that exist: integers as int64, texts as string, names as either."""

    def leftovers(self) -> list[str]:
        """Return the suffixes of journals beside the file that hold changes which this file lacks."""

    def close(self) -> None:
        """Release the file."""


def canonical(tables: Iterable[str]) -> dict[str, str]:
    """Return known table name -> the name it has in this report: `NAME` or, where there are several, the latest `NAME_V<n>`."""
    best: dict[str, tuple[int, str]] = {}
    for actual in tables:
        match = _VERSIONED.fullmatch(actual)
        if match and (match[1] in KNOWN_TABLES or DECODED.fullmatch(actual)):
            best[match[1]] = max(best.get(match[1], (-1, "")), (int(match[2] or 0), actual))
    return {name: actual for name, (_, actual) in best.items()}


def is_report(tables: Iterable[str]) -> bool:
    """Return whether tables with these names are those of an nsys report (any of them may be missing)."""
    names = set(tables)
    if "StringTable" in names:  # nvprof's, which has tables CUPTI_ACTIVITY_KIND_* of its own
        return False
    return any(name.startswith(_SIGNATURES) for name in names) or (STRINGS in names and not names.isdisjoint(_SYSTEM_TABLES))


def is_unread(table: str) -> bool:
    """Return whether rows of a table with this name are events that no reader takes (and are worth a diagnostic)."""
    return bool(_PLAIN_NAME.fullmatch(table)) and not _DESCRIPTIVE.match(table) and not canonical([table])


def as_integers(array: pa.Array) -> tuple[pa.Array, int]:
    """Return the array as int64, and how many values are NULL now because they were no integers."""
    type_ = array.type
    if pa.types.is_int64(type_):
        return array, 0
    if pa.types.is_uint64(type_):
        return array.cast(pa.int64(), safe=False), 0  # 64-bit ids keep their bits
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_):
        try:
            return array.cast(pa.int64()), 0
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return pa.nulls(len(array), pa.int64()), len(array) - array.null_count


def as_text(array: pa.Array) -> pa.Array:
    """Return the array as string; bytes that are no UTF-8 become U+FFFD."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return as_text(array.dictionary_decode())
    if pa.types.is_null(type_) or array.null_count == len(array):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        array = array.cast(pa.binary() if pa.types.is_string(type_) else pa.large_binary())
    elif not (pa.types.is_binary(type_) or pa.types.is_large_binary(type_)):
        return array.cast(pa.string())
    try:
        return array.cast(pa.string())  # from binary this checks the bytes
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode("utf-8", "replace") for value in array.to_pylist()]
        return pa.array(texts, pa.string())


def as_hex(array: pa.Array) -> pa.Array:
    """Return bytes, or the bytes of a text, as the text of their hexadecimal digits; empty for NULL."""
    values = [value.encode() if isinstance(value, str) else value or b"" for value in array.to_pylist()]
    return pa.array([value.hex() if isinstance(value, bytes) else "" for value in values], pa.string())


def as_names(array: pa.Array) -> pa.Array:
    """Return the array as int64 (ids) or as string (plain text)."""
    if pa.types.is_integer(array.type) or pa.types.is_null(array.type):
        return as_integers(array)[0]
    return as_text(array)


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield work(item) in the order of the items, at most `jobs` at work and one waiting."""
    if jobs <= 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
