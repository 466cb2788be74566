"""Columns derived from a profile as a whole, in stages: launch links, kernel names, order of launches, overruns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.attribution import attribute, causality, launch_correlation, lost_launches, overruns
from nsightlens.attribution.attribute import CallSearch, PlacedWork
from nsightlens.attribution.attributed_columns import AllocationRanges, CallRanges, RangeLinks, WorkRanges
from nsightlens.attribution.causality import Early
from nsightlens.attribution.launch_correlation import ApiCalls, Launched
from nsightlens.attribution.lost_launches import Launching
from nsightlens.attribution.overruns import KernelLaunches, Overruns
from nsightlens.attribution.stacks import Frames
from nsightlens.columns.arrays import MISSING, Int, Places, lookup, nullable, numbered, row_chunks
from nsightlens.columns.gathered import GPU_WORK
from nsightlens.columns.kernel_columns import KernelNames, kernel_names
from nsightlens.columns.spilled import LongColumn, SpillFolder, whole
from nsightlens.names import kernel_names as names
from nsightlens.pipeline.identity import ProfileIdentity, Warned
from nsightlens.pipeline.profile_rows import ProfileRows


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """Stage 1: the API calls, ready to link GPU work to, and in a profile with ranges what is attributed without GPU work."""

    calls: ApiCalls
    launching: Launching
    search: CallSearch | None = None
    call_ranges: CallRanges | None = None
    ranges: RangeLinks | None = None
    allocations: AllocationRanges | None = None
    frames: Frames | None = None


@dataclass(frozen=True, slots=True)
class LaunchLinks:
    """The launching call of GPU work and its delay in the queue, per row of one table."""

    base: int
    call: LongColumn
    queue_delay: LongColumn

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return launch_id and queue_delay_ns of some rows."""
        call = self.call[rows].astype(np.int64)
        return {"launch_id": nullable(np.where(call >= 0, call + self.base, MISSING)),
                "queue_delay_ns": nullable(self.queue_delay[rows])}


@dataclass(frozen=True, slots=True)
class CallLinks:
    """The API call that a row of one table belongs to."""

    base: int
    call: LongColumn

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return launch_id of some rows."""
        call = self.call[rows].astype(np.int64)
        return {"launch_id": nullable(np.where(call >= 0, call + self.base, MISSING))}


@dataclass(frozen=True, slots=True)
class SoundTimes:
    """The times of one table of GPU work but those that cannot be. rows: whose start cannot be, in order."""

    rows: Int

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return start_ns and queue_delay_ns of some rows."""
        first, stop = np.searchsorted(self.rows, [rows.start, rows.stop])
        if first == stop:
            return {}
        mask = np.zeros(rows.stop - rows.start, dtype=np.bool_)
        mask[self.rows[first:stop] - rows.start] = True
        return {name: pc.if_else(pa.array(mask), None, known[name]) for name in ("start_ns", "queue_delay_ns")}


@dataclass(frozen=True, slots=True)
class LinkedWork:
    """Stage 2: kernels and memory operations with their launches, and what is attributed to them, by table.

    process, correlation, start: of each kernel. time: its launch time. times: by table. warnings: (code, message, count) of
    launches and work that do not fit. gpu_spans: as those of `Identified`, without times that cannot be.
    """

    links: Mapping[str, LaunchLinks]
    times: Mapping[str, SoundTimes]
    warnings: tuple[Warned, ...]
    gpu_spans: tuple[tuple[int, int], ...]
    attributed: Mapping[str, WorkRanges]
    template: LongColumn
    process: npt.NDArray[Any]
    correlation: LongColumn
    start: LongColumn
    time: LongColumn


@dataclass(frozen=True, slots=True)
class NamedKernels:
    """What follows from the names of kernels; codes: the name of each template."""

    names: KernelNames
    codes: Places

    def columns(self, templates: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the columns of some templates that their names give, and shared_bytes from its parts."""
        both = pc.add(known["static_shared_bytes"], known["dynamic_shared_bytes"])
        return self.names.columns(self.codes[templates]) | {"shared_bytes": pc.coalesce(known["shared_bytes"], both)}


@dataclass(frozen=True, slots=True)
class LaunchNumbers:
    """Stage 3: the place of each kernel in the launch order of the profile, of its process, and among its like."""

    base: int
    place: Places
    launch_index: LongColumn
    nth: LongColumn

    def kernel_ids(self, rows: Any) -> pa.Array:
        """Return the ids of the kernels in these rows."""
        return pa.array(self.place[rows].astype(np.int64) + self.base)

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return kernel_id, launch_index and nth of some rows."""
        return {"kernel_id": self.kernel_ids(rows), "launch_index": pa.array(self.launch_index[rows].astype(np.int64)),
                "nth": pa.array(self.nth[rows].astype(np.int64))}


@dataclass(frozen=True, slots=True)
class _Work:
    """Per row of a table: template, process number, correlation id, start on the profile's origin, and External id."""

    template: LongColumn
    process: npt.NDArray[Any]
    correlation: LongColumn
    start: LongColumn
    external_id: LongColumn


@dataclass(frozen=True, slots=True)
class SummaryNames:
    """What follows from the names of kernels in metric_summaries. tool: who printed them."""

    tool: str

    def columns(self, rows: slice, known: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Return kernel_key and tensor_cores of some rows."""
        named, codes = known["name"].dictionary.to_pylist(), known["name"].indices
        on_tensor_cores = [names.tensor_cores(name, names.family(name)) for name in named]
        keys = [names.kernel_key(name, self.tool) for name in named]
        return {"kernel_key": lookup(codes.to_numpy(zero_copy_only=False), keys),
                "tensor_cores": pa.array(on_tensor_cores, pa.bool_()).take(codes)}


def recorded_calls(recorded: ProfileRows, identified: ProfileIdentity) -> RecordedCalls:
    """Return the API calls and, where the profile has ranges, the ranges around them."""
    columns, tool, base = recorded.columns, identified.profile.tool, identified.base
    code, thread = (whole(columns.look("api_calls", name)) for name in ("code", "thread"))
    stacks, frames, found = None, None, None
    if columns.rows("ranges"):
        windows = [attribute.WindowProcesses(*both) for both in zip(identified.local_processes, identified.shifts, strict=True)]
        owners = attribute.tracks(columns, recorded.templates, identified.process_of, windows)
        stacked = attribute.stacked(columns, recorded.templates, identified.process_of, owners, windows, base)
        stacks, frames = stacked or (None, None)
        found = attribute.search(columns, recorded.templates["ranges"], owners, stacks, windows, tool, base)
    work = _work(recorded, identified, "api_calls")
    correlation = work.correlation
    if tool == "kineto" and len(work.process) and (work.process != work.process[0]).any():
        # its GPU work does not tell whose it is: an id that calls of several processes have leads to none of them
        ids = whole(correlation)
        correlation = np.where(launch_correlation.used_by_several(work.process, ids), 0, ids)
    calls = ApiCalls(work.process, correlation, work.start, columns.take_long("api_calls", "duration_ns"), work.external_id)
    launching = Launching(work.template, work.process, work.correlation, calls.start, calls.duration, code, thread)
    if found is None:
        return RecordedCalls(calls, launching)
    search, ranges, allocations = found
    around = attribute.call_ranges(search, stacks, work.template, work.start, base, recorded.folder)
    if frames:
        frames, around, ranges = attribute.with_frames(frames, around, ranges)
    return RecordedCalls(calls, launching, search, around, ranges, allocations, frames)


def linked_work(recorded: ProfileRows, identified: ProfileIdentity, calls: RecordedCalls) -> LinkedWork:
    """Return kernels and memory operations linked to their calls, and what lies around these attributed to them."""
    base, folder = identified.base, recorded.folder
    works = {table: _work(recorded, identified, table) for table in ("memory_ops", "kernels")}
    links = {table: _linked(work, calls.calls, folder) for table, work in works.items()}
    early = {table: causality.early(works[table].start, links[table].start) for table in works}
    shift = causality.common_shift(list(early.values()))
    far = {table: causality.far(each) if not shift else each.rows[:0] for table, each in early.items()}
    starts = {table: causality.without(works[table].start, rows, folder) for table, rows in far.items()}
    spans = _spans_without(recorded, identified, starts) if any(map(len, far.values())) else identified.gpu_spans
    placed: dict[str, PlacedWork] = {}
    for table, work in works.items():
        placed |= _placed(table, work, links[table], calls, folder)
    attributed = attribute.work_ranges(calls.search, placed, recorded.templates["ranges"], base, folder) if calls.search else {}
    kernels, start = works["kernels"], starts["kernels"]
    time = launch_correlation.launch_time(kernels.process, kernels.correlation, start, links["kernels"])
    stored = {table: LaunchLinks(base, each.call, each.queue_delay) for table, each in links.items()}
    lost = lost_launches.lost(calls.launching, links["kernels"].call, kernels.process, kernels.correlation)
    warnings = (*_untimely(early, far, shift), *_without_kernel(lost))
    return LinkedWork(stored, {table: SoundTimes(rows) for table, rows in far.items()}, warnings, spans,
                      attributed, kernels.template, kernels.process, kernels.correlation, start, time)


def _without_kernel(lost: Mapping[int, tuple[int, int]]) -> Iterator[Warned]:
    """Yield what is to be said of the launches without a kernel of each process."""
    for count, after in lost.values():
        more = f" (and {after} at its end)" if after else ""
        yield ("launches_without_kernel", f"Successful launches have no kernel in the capture{more}: the tool lost them, "
               "or did not record the GPU there. Where it seems idle, it may have run them.", count)


def _untimely(early: Mapping[str, Early], far: Mapping[str, Int], shift: int) -> tuple[Warned, ...]:
    """Return what is to be said of work that starts before its own launch call."""
    count, left_out = sum(len(each.rows) for each in early.values()), sum(map(len, far.values()))
    if shift:
        return (("gpu_clock_behind", "GPU work starts before the call that launched it: the clock of the GPU is behind that of "
                 f"the host by {shift / 1000:,.3f} us or more (half of this work is early by more than that). Times are as "
                 "recorded: delays in the queue, and what lies between host and GPU times, mean nothing.", count),)
    found: list[Warned] = []
    if left_out:
        found.append(("start_before_launch", "GPU work is recorded to start long before the call that launched it, which cannot "
                      "be: its start is NULL, and it is in no span.", left_out))
    if count > left_out:
        found.append(("start_before_launch", "GPU work starts up to 1 ms before the call that launched it: the clocks of GPU and "
                      "host differ. Times are as recorded.", count - left_out))
    return tuple(found)


def _spans_without(
    recorded: ProfileRows, identified: ProfileIdentity, starts: Mapping[str, LongColumn],
) -> tuple[tuple[int, int], ...]:
    """Return first start and last end of GPU work of each window, with these starts."""
    columns, spans = recorded.columns, []
    for window, shift in enumerate(identified.shifts):
        ends: list[int] = []
        for table in GPU_WORK:
            rows = slice(columns.first_row(table, window), columns.first_row(table, window + 1))
            start = whole(starts[table])[rows] if table in starts else whole(columns.look(table, "start_ns"))[rows] + shift
            duration = whole(columns.look(table, "duration_ns"))[rows]
            known = start != MISSING
            ends += [*start[known].tolist(), *(start[known] + np.maximum(duration[known], 0)).tolist()]
        if ends:
            spans.append((min(ends), max(ends)))
    return tuple(spans)


def linked_to_calls(recorded: ProfileRows, identified: ProfileIdentity, calls: RecordedCalls) -> dict[str, CallLinks]:
    """Return, by table, the calls of what is no GPU work: waits, records of events, host functions, overhead."""
    columns, found = recorded.columns, {}
    for table in ("synchronizations", "cuda_events", "host_functions", "overheads"):
        process = _process_of_rows(identified.process_of[table], columns.take_long(table, "template"))
        unknown = np.broadcast_to(MISSING, len(process))  # when it began says nothing of its call
        correlation = columns.take_long(table, "correlation_id")
        linked = launch_correlation.link(process, correlation, calls.calls, unknown, unknown, recorded.folder)
        found[table] = CallLinks(identified.base, linked.call)
    return found


def _linked(work: _Work, calls: ApiCalls, folder: SpillFolder) -> Launched:
    return launch_correlation.link(work.process, work.correlation, calls, work.start, work.external_id, folder)


def _placed(
    table: str, work: _Work, links: Launched, calls: RecordedCalls, folder: SpillFolder,
) -> dict[str, PlacedWork]:
    """Return where the work of a table was launched from, under its name; nothing in a profile without ranges."""
    if calls.search is None or calls.call_ranges is None:
        return {}
    external_id = whole(work.external_id)
    return {table: attribute.place_work(calls.search, calls.call_ranges, table, work.template, external_id, links, folder)}


def named_kernels(recorded: ProfileRows) -> NamedKernels:
    """Return what follows from the names of the profile's kernels."""
    return NamedKernels(kernel_names(recorded.columns.names, recorded.profile.tool), recorded.columns.take("kernels", "name"))


def launch_numbers(recorded: ProfileRows, identified: ProfileIdentity, work: LinkedWork, named: NamedKernels) -> LaunchNumbers:
    """Return the numbers of the kernels in the order of their launch."""
    ncu_id = recorded.columns.take_long("kernels", "ncu_id")
    order = launch_correlation.launch_order(work.process, work.time, work.correlation, work.start, ncu_id)
    alike = _alike(recorded, identified, named)
    like = np.empty(len(work.template), dtype=np.int32)
    for some in row_chunks(len(like)):
        like[some] = alike[work.template[some]]
    numbers = launch_correlation.number_launches(work.process, order, like)
    spill = recorded.folder.spill
    return LaunchNumbers(identified.base, numbers.place, spill(numbers.launch_index), spill(numbers.nth))


def outlasting(recorded: ProfileRows, identified: ProfileIdentity, work: LinkedWork) -> Overruns:
    """Return how far the kernels outlast what their stream allows."""
    columns = recorded.columns
    owner = numbered(recorded.templates["kernels"].windows(), identified.process_of["kernels"])
    device, context, stream = (columns.take("kernels", name) for name in ("device", "context", "stream"))
    number = numbered(owner, device, context, stream)
    number[stream == MISSING] = -1
    duration, node = columns.take_long("kernels", "duration_ns"), columns.take_long("kernels", "graph_node_id")
    return overruns.overruns(KernelLaunches(number, owner, work.template, work.start, duration, work.correlation, node))


def _alike(recorded: ProfileRows, identified: ProfileIdentity, named: NamedKernels) -> Places:
    """Return a number per template of kernels, the same for those with one process, key and configuration."""
    number: dict[str | None, int] = {}
    key = np.array([number.setdefault(key, len(number)) for key in named.names.kernel_key], dtype=np.int32)
    launched = numbered(recorded.columns.take("kernels", "configuration"), key[named.codes])
    return numbered(launched, identified.process_of["kernels"])


def _work(recorded: ProfileRows, identified: ProfileIdentity, table: str) -> _Work:
    columns = recorded.columns
    template = columns.take_long(table, "template")
    start = columns.take_long(table, "start_ns")
    if any(identified.shifts):
        shifted = whole(start).copy()
        shifted[shifted != MISSING] += columns.per_window(table, identified.shifts)[shifted != MISSING]
        start = recorded.folder.spill(shifted)
    process = _process_of_rows(identified.process_of[table], template)
    return _Work(template, process, columns.take_long(table, "correlation_id"), start, columns.take_long(table, "external_id"))


def _process_of_rows(owner: npt.NDArray[Any], template: LongColumn) -> npt.NDArray[Any]:
    """Return the process number of each row, in as few bytes as will do. owner: that of each template."""
    owner = owner.astype(np.min_scalar_type(int(owner.max(initial=0))))
    if len(owner) and (owner == owner[0]).all():
        return np.broadcast_to(owner[0], len(template))
    process = np.empty(len(template), dtype=owner.dtype)
    for some in row_chunks(len(template)):
        process[some] = owner[template[some]]
    return process
