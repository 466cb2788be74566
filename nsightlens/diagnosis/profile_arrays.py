"""One profile as numpy arrays: GPU work, API calls, ranges and other calls of the host. Times in ns of its own clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import MISSING, Int, Mask, distinct, integers, sorted_places
from nsightlens.diagnosis.sampled_functions import CpuSamples, no_samples

Ask = Callable[[str, Sequence[object]], pa.Table]
Row = dict[str, Any]

COMPUTING, COMMUNICATION, COPIES = range(3)
"""What GPU work is, as the first of these that applies."""
KERNEL, MEMORY, GRAPH = range(3)
_LAUNCHES = re.compile(r"Launch(Cooperative)?(Kernel|Grid|Async$|$)|ModuleLaunch|LaunchHostFunc|GraphLaunch|launchKernel", re.I)
_COPIES = re.compile(r"Memcpy|Memset|MemPrefetch", re.I)
_WAITS = re.compile(r"Synchronize|WaitEvent$|_wait$", re.I)
_KERNELS = re.compile(r"LaunchKernel|LaunchCooperativeKernel|ModuleLaunch|cuLaunch$|cudaLaunch$|hipLaunch$|LaunchGrid", re.I)
_WORK = """
SELECT 0 AS kind, process_id, window_index, device_id, context, stream, start_ns, duration_ns, kernel_key AS name, short_name,
    coalesce(family = 'collective', false)::TINYINT AS communicates, family, coalesce(tensor_cores::TINYINT, -1) AS tensor_cores,
    launch_id, kernel_id AS work_id, grid_x::BIGINT * grid_y * grid_z AS blocks, NULL::VARCHAR AS direction,
    NULL::VARCHAR AS memory, rank
FROM _bounded_kernels WHERE profile_id = $1 AND tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
UNION ALL
SELECT 1, process_id, window_index, device_id, context, stream, start_ns, duration_ns, name, name,
    (collective IS NOT NULL)::TINYINT, 'memory', -1, launch_id, memory_op_id, NULL,
    coalesce(direction, kind) || CASE WHEN kind = 'migration' THEN ' migration' ELSE '' END,
    CASE WHEN 'pageable' IN (source_memory, destination_memory) THEN 'pageable'
         WHEN 'pinned' IN (source_memory, destination_memory) THEN 'pinned'
         WHEN 'managed' IN (source_memory, destination_memory) THEN 'managed' END, rank
FROM memory_ops WHERE profile_id = $1 AND tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns >= 0
UNION ALL
SELECT 2, process_id, window_index, device_id, context, stream, start_ns, end_ns - start_ns, 'CUDA graph', 'CUDA graph', 0,
    'graph', -1, launch_id, work_id, NULL, NULL, NULL, NULL
FROM _gpu_work WHERE profile_id = $1 AND kind = 'graph'
"""
_CALLS = """
SELECT launch_id, process_id, window_index, thread, start_ns, duration_ns, name,
    (coalesce(return_value, 0) = 0)::TINYINT AS succeeds
FROM api_calls WHERE profile_id = $1 AND start_ns IS NOT NULL AND duration_ns >= 0
"""
_RANGES = """
SELECT range_id, parent_id, depth, process_id, window_index, thread, start_ns, duration_ns, kind, name,
    (hash(name, shapes) >> 1)::BIGINT AS work
FROM ranges WHERE profile_id = $1 AND kind <> 'gpu_annotation' AND start_ns IS NOT NULL AND duration_ns > 0
"""
_SERVING = "SELECT range_id FROM _serving_names WHERE profile_id = $1"
_OTHERS = """
SELECT *, (hash(process_id, window_index, thread, name, kind) >> 1)::BIGINT AS place FROM (
SELECT process_id, window_index, thread, start_ns, duration_ns, name, 'os' AS kind FROM os_calls
WHERE profile_id = $1 AND start_ns IS NOT NULL AND duration_ns > 0
UNION ALL
SELECT process_id, window_index, thread, start_ns, duration_ns, name, 'mpi' FROM mpi_calls
WHERE profile_id = $1 AND start_ns IS NOT NULL AND duration_ns > 0
UNION ALL
SELECT process_id, window_index, thread, start_ns, duration_ns, coalesce(name, kind), 'overhead' FROM overheads
WHERE profile_id = $1 AND start_ns IS NOT NULL AND duration_ns > 0 AND source IS DISTINCT FROM 'cuda')
"""
_WAITING = """
SELECT DISTINCT launch_id FROM synchronizations
WHERE profile_id = $1 AND kind IN ('event', 'stream', 'context') AND launch_id IS NOT NULL
"""
_SAMPLES = """
SELECT s.process_id, s.thread, s.at_ns, f.name, f.module
FROM cpu_samples AS s LEFT JOIN sampled_frames AS f ON s.profile_id = f.profile_id AND s.sampled_frame_id = f.sampled_frame_id
WHERE s.profile_id = $1 AND s.at_ns IS NOT NULL ORDER BY s.at_ns
"""
_FAULTS = """
SELECT device_id, start_ns, duration_ns FROM page_faults
WHERE profile_id = $1 AND kind = 'gpu' AND start_ns IS NOT NULL AND duration_ns > 0
"""

_MIGRATIONS = """
SELECT device_id, start_ns, duration_ns FROM memory_ops
WHERE profile_id = $1 AND migration_cause IN ('page_fault', 'speculative_prefetch') AND direction = 'HtoD'
    AND start_ns IS NOT NULL AND duration_ns > 0
"""
"""What the driver copies to a GPU because its kernels met page faults: all that is known of them if they were not recorded."""
FAULTS, MIGRATIONS = "page faults", "page migration"


@dataclass(frozen=True, slots=True)
class Faults:
    """Times in which a GPU handled page faults of managed memory; device: a code of `ProfileArrays.texts`; what: FAULTS, or
    MIGRATIONS
    where only the copies were recorded."""

    start: Int
    end: Int
    device: Int
    what: str = FAULTS


def no_faults() -> Faults:
    """Return that none were recorded."""
    none = np.zeros(0, np.int64)
    return Faults(none, none, none)


@dataclass(frozen=True, slots=True)
class GpuWork:
    """Pieces of GPU work, by start. branch: COMPUTING, COMMUNICATION or COPIES; call: the place of the launching call, or -1.

    process, device, queue, name, short_name, family, direction, memory: codes of `ProfileArrays.texts`, -1 where unknown.
    """

    start: Int
    end: Int
    kind: Int
    branch: Int
    process: Int
    window: Int
    device: Int
    queue: Int
    name: Int
    short_name: Int
    family: Int
    tensor_cores: Int
    call: Int
    blocks: Int
    direction: Int
    memory: Int

    def where(self, mask: Mask | Int) -> GpuWork:
        """Return some of it."""
        return GpuWork(*(getattr(self, name)[mask] for name in self.__slots__))

    def only(self, mask: Mask) -> GpuWork:
        """Return some of it; nothing is copied where that is all."""
        return self if mask.all() else self.where(np.flatnonzero(mask))


class Named(Protocol):
    """What has names: codes of `ProfileArrays.texts`."""

    @property
    def name(self) -> Int:
        """Return the code of each."""


@dataclass(frozen=True, slots=True)
class Spans:
    """What threads did, by start. name: a code of `texts`; thread: a code of process and thread; flags: what it is."""

    start: Int
    end: Int
    name: Int
    process: Int
    window: Int
    thread: Int

    def where(self, mask: Mask | Int) -> Spans:
        """Return some of them."""
        return Spans(*(getattr(self, name)[mask] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class HostCalls:
    """API calls, by start: the spans, and what each is."""

    spans: Spans
    launches: Mask
    launches_kernel: Mask
    copies: Mask
    waits: Mask
    succeeds: Mask


@dataclass(frozen=True, slots=True)
class Ranges:
    """Operators, annotations, NVTX ranges, modules and steps, by id. parent: the place of the range around each, or -1.

    work: a number for its name and shapes; serving: whether it is a step of an inference server.
    """

    spans: Spans
    kind: Int
    parent: Int
    depth: Int
    work: Int
    serving: Mask


@dataclass(slots=True)
class ProfileArrays:
    """All that is judged of a profile. texts: the text of each code."""

    profile: Row
    devices: dict[str, Row]
    work: GpuWork
    calls: HostCalls
    ranges: Ranges
    os: Spans
    mpi: Spans
    overheads: Spans
    texts: list[str]
    codes: dict[str, int] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    faults: Faults = field(default_factory=no_faults)
    samples: CpuSamples = field(default_factory=no_samples)
    stacks: bool = False
    """Whether Python's stacks were recorded: functions with their times, of which it is not known when they ran."""
    _named: dict[re.Pattern[str], Mask] = field(default_factory=dict, repr=False)

    def named(self, spans: Named, pattern: re.Pattern[str]) -> Mask:
        """Return which spans have a name that a pattern finds; each text is searched once."""
        if pattern not in self._named:
            self._named[pattern] = np.array([bool(pattern.search(text)) for text in self.texts] + [False])
        return self._named[pattern][spans.name]

    def text(self, code: int) -> str:
        """Return the text of a code; '' where it is unknown."""
        return self.texts[code] if code >= 0 else ""


class _Texts:
    """Numbers for texts, the same in all tables of a profile."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """Return the number of a text."""
        if text not in self.codes:
            self.codes[text] = len(self.texts)
            self.texts.append(text)
        return self.codes[text]

    def of(self, column: pa.ChunkedArray) -> Int:
        """Return the number of each text of a column; -1 for NULL."""
        codes, values = distinct(column)
        table = np.array([-1 if value is None else self.code(str(value)) for value in values], np.int64)
        return table[codes]


def read(ask: Ask, profile: Row) -> ProfileArrays:
    """Return what a profile recorded."""
    parameters = [profile["profile_id"]]
    texts = _Texts()
    calls, launch_ids = _calls(ask, parameters, texts)
    work, ranks = _work(ask, parameters, texts, launch_ids)
    others, kinds = _others(ask, parameters, texts)
    devices = {row["device_id"]: row for row in ask(
        "SELECT * FROM devices WHERE profile_id = $1 AND device_id IS NOT NULL ORDER BY ALL", parameters).to_pylist()}
    of_os, of_mpi, of_profiler = (others.where(kinds == texts.code(kind)) for kind in ("os", "mpi", "overhead"))
    return ProfileArrays(profile, devices, work, calls, _ranges(ask, parameters, texts), of_os, of_mpi, of_profiler, texts.texts,
                         texts.codes, ranks, _faults(ask, parameters, texts), _samples(ask, parameters, texts),
                         bool(ask("SELECT 1 FROM frames WHERE profile_id = $1 LIMIT 1", parameters).num_rows))


def _samples(ask: Ask, which: list[Any], texts: _Texts) -> CpuSamples:
    table = ask(_SAMPLES, which)
    thread, time = _columns(table, "thread", "at_ns")
    return CpuSamples(time, _pairs(texts.of(table["process_id"]), thread), texts.of(table["name"]), texts.of(table["module"]))


def _faults(ask: Ask, which: list[Any], texts: _Texts) -> Faults:
    what, table = FAULTS, ask(_FAULTS, which)
    if not table.num_rows:
        what, table = MIGRATIONS, ask(_MIGRATIONS, which)
    start, duration = _columns(table, "start_ns", "duration_ns")
    return Faults(start, start + duration, texts.of(table["device_id"]), what)


def _columns(table: pa.Table, *names: str) -> list[Int]:
    return [integers(table[name].combine_chunks()) for name in names]


def _rows(
    ask: Ask, which: list[Any], texts: _Texts, rows: str, figures: Sequence[str], labels: Sequence[str],
    order_of: Callable[[dict[str, Int]], Int],
) -> dict[str, Int]:
    """Return columns of the rows of a query: figures as they are, of labels the codes of texts.

    order_of: the order of the rows, by their figures. Many rows have all labels in common: these are fetched once for all of
    them, which a hash finds.
    """
    selected = ", ".join(labels)
    every = ask(f"WITH every AS ({rows}) SELECT {', '.join(figures)}, hash({selected}) AS alike FROM every", which)
    few = ask(f"WITH every AS ({rows}) SELECT DISTINCT {selected}, hash({selected}) AS alike FROM every ORDER BY ALL", which)
    columns = dict(zip(figures, _columns(every, *figures), strict=True))
    known, alike = (table["alike"].combine_chunks().to_numpy() for table in (few, every))
    order = order_of(columns)
    columns = {name: column[order] for name, column in columns.items()}
    by_hash = np.argsort(known)
    place = by_hash[np.searchsorted(known, alike[order], sorter=by_hash)]
    for name in labels:
        column = few[name]
        columns[name] = (texts.of(column) if pa.types.is_string(column.type) else _columns(few, name)[0])[place]
    return columns


def _spans(rows: dict[str, Int]) -> Spans:
    start, process = rows["start_ns"], rows["process_id"]
    return Spans(start, start + rows["duration_ns"], rows["name"], process, rows["window_index"], _pairs(process, rows["thread"]))


def _pairs(first: Int, second: Int) -> Int:
    """Return a number for each pair of integers that is one for the whole profile: the same pair, the same number."""
    mixed: Int = (first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ second.astype(np.uint64)).view(np.int64)
    return mixed


def _calls(ask: Ask, which: list[Any], texts: _Texts) -> tuple[HostCalls, Int]:
    rows = _rows(ask, which, texts, _CALLS, ("start_ns", "duration_ns", "launch_id"),
                 ("process_id", "window_index", "thread", "name", "succeeds"),
                 lambda found: sorted_places(found["start_ns"], -found["duration_ns"], found["launch_id"]))
    spans, launch_id = _spans(rows), rows["launch_id"]
    waiting = np.isin(launch_id, _columns(ask(_WAITING, which), "launch_id")[0])
    flags = {pattern: np.array([bool(pattern.search(text)) for text in texts.texts] + [False])[spans.name]
             for pattern in (_LAUNCHES, _KERNELS, _COPIES, _WAITS)}
    queries = np.array(["Query" in text for text in texts.texts] + [False])[spans.name]
    return HostCalls(spans, flags[_LAUNCHES], flags[_KERNELS], flags[_COPIES],
                     (flags[_WAITS] | waiting) & ~queries & ~flags[_COPIES], rows["succeeds"].astype(np.bool_)), launch_id


def _work(ask: Ask, which: list[Any], texts: _Texts, launch_ids: Int) -> tuple[GpuWork, dict[int, int]]:
    rows = _rows(ask, which, texts, _WORK, ("start_ns", "duration_ns", "launch_id", "kind", "work_id", "blocks"), (
        "process_id", "window_index", "device_id", "context", "stream", "name", "short_name", "communicates", "family",
        "tensor_cores", "direction", "memory", "rank"),
        lambda found: sorted_places(found["start_ns"], found["duration_ns"], found["kind"], found["work_id"]))
    start, kind, process, rank = rows["start_ns"], rows["kind"], rows["process_id"], rows["rank"]
    branch = np.where(rows["communicates"] != 0, COMMUNICATION, np.where(kind == MEMORY, COPIES, COMPUTING))
    queue = _pairs(_pairs(process, rows["context"]), rows["stream"])
    work = GpuWork(start, start + rows["duration_ns"], kind, branch, process, rows["window_index"], rows["device_id"], queue,
                   rows["name"], rows["short_name"], rows["family"], rows["tensor_cores"], places(launch_ids, rows["launch_id"]),
                   rows["blocks"], rows["direction"], rows["memory"])
    known = np.flatnonzero(rank != MISSING)
    ranks = {one: int(rank[known[process[known] == one][-1]]) for one in np.unique(process[known]).tolist()}
    return work, ranks


def _ranges(ask: Ask, which: list[Any], texts: _Texts) -> Ranges:
    rows = _rows(ask, which, texts, _RANGES, ("range_id", "parent_id", "start_ns", "duration_ns", "work"),
                 ("process_id", "window_index", "thread", "name", "kind", "depth"),
                 lambda found: sorted_places(found["range_id"]))
    serving = np.isin(rows["range_id"], _columns(ask(_SERVING, which), "range_id")[0])
    return Ranges(_spans(rows), rows["kind"], places(rows["range_id"], rows["parent_id"]), rows["depth"], rows["work"], serving)


def _others(ask: Ask, which: list[Any], texts: _Texts) -> tuple[Spans, Int]:
    rows = _rows(ask, which, texts, _OTHERS, ("start_ns", "duration_ns", "place"),
                 ("process_id", "window_index", "thread", "name", "kind"),
                 lambda found: sorted_places(found["start_ns"], -found["duration_ns"], found["place"]))
    return _spans(rows), rows["kind"]


def places(ids: Int, wanted: Int) -> Int:
    """Return the place of each wanted id among `ids`; -1 for MISSING and for what is not there."""
    if not len(ids):
        return np.full(len(wanted), -1)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    nearest = order[place]
    return np.where((ids[nearest] == wanted) & (wanted != MISSING), nearest, -1)
