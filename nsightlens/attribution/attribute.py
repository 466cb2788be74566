"""GPU work -> its launching call -> the ranges around that call: operator, module, phase, step.

A range lies around whatever began on its thread while it was open. The rules, over all that lies around the launching call:

| column | is |
|---|---|
| range_id | the innermost range; those that the tool drew on a GPU's track take no part |
| op | the innermost range of kind operator |
| step | the range of kind step that was open in the process, on any thread, when the call began |
| module | the innermost range of kind module, else that around the forward operator of the innermost backward operator |
| phase | what the innermost range says that says something: |
| . optimizer | `Optimizer.step#...`, `Optimizer.zero_grad#...`, and names with the word optimizer |
| . backward | ranges of the autograd engine, backward operators, and names with the word backward |
| . forward | modules, operators that a backward operator belongs to, and names with the word forward |
| frame_id | the innermost Python frame, else that around the forward operator of the innermost backward operator |
| range_path | the names from the outermost to the innermost range, steps left out |
| collective | of kernels that communicate, where the tool does not say it: what the innermost range says that names one |
| message_bytes, group_name, group_size | of these, likewise: what the calls of NCCL that launched them carry (messages.py) |

Words count in annotations and NVTX ranges, never in operators; a name with two of them says nothing. What says forward inside
of what says backward is backward: a recomputation. GPU work with no
operator around its call, or whose call was not recorded, takes the operator with its External id (where that is a link) and
what lies around that. A step inside another step of its process is an annotation. What is not known is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightlens.attribution import range_tree, stacks
from nsightlens.attribution.attributed_columns import AllocationRanges, CallRanges, Pairs, RangeLinks, WorkRanges, paired
from nsightlens.attribution.intervals import at, each_once
from nsightlens.attribution.launch_correlation import Launched, used_by_several
from nsightlens.attribution.messages import messages
from nsightlens.attribution.range_labels import Labels
from nsightlens.attribution.range_tree import Nested, RangeIndex, RangeRows, traits
from nsightlens.attribution.stacks import FrameCalls, Frames, Stacks
from nsightlens.columns.arrays import MISSING, Int, Places, numbered, row_chunks
from nsightlens.columns.gathered import GatheredColumns
from nsightlens.columns.row_templates import RowTemplates
from nsightlens.columns.spilled import ColumnBuilder, LongColumn, SpillFolder, values_at, whole


@dataclass(frozen=True, slots=True)
class WindowProcesses:
    """One window of the profile: the numbers of its processes, and what to add to its starts."""

    processes: Int
    shift: int


@dataclass(frozen=True, slots=True)
class CallSearch:
    """What it takes to find the ranges around API calls and GPU work, in a profile that has ranges.

    groups: per table, window and process of each template, as one number. external_id, step_number: of each range in the
    nest, and of each step. call_track: the track of each template of api_calls.
    """

    index: RangeIndex
    groups: Mapping[str, Int]
    call_track: Places
    external_id: Int
    step_number: Int


@dataclass(frozen=True, slots=True)
class PlacedWork:
    """GPU work of one table, per row: its template, the place it was launched from, the number of its step and its frame (-1:
    none); frame is None in a profile without stacks."""

    template: LongColumn
    place: Places
    step: LongColumn
    frame: LongColumn | None


@dataclass(frozen=True, slots=True)
class RowTracks:
    """Whose the rows are. every: more than any number of a process. groups: per table, window * every + process of each template.
    of: per table the track, which is group and thread as one number, of each template (of allocations: of each row)."""

    every: int
    groups: Mapping[str, Int]
    of: Mapping[str, Places]


def tracks(
    columns: GatheredColumns, templates: Mapping[str, RowTemplates], processes: Mapping[str, Int],
    windows: Sequence[WindowProcesses],
) -> RowTracks:
    """Return whose the rows are. processes: the number of the process of each template, by table."""
    process_count = 1 + max(int(window.processes.max(initial=0)) for window in windows)
    groups = {name: templates[name].windows() * process_count + processes[name]
              for name in ("ranges", "api_calls", "frame_calls", "call_stacks", "kernels", "memory_ops")}
    on_threads = ("ranges", "api_calls", "frame_calls", "call_stacks", "allocations")
    owners = groups | {"allocations": _groups_of_allocations(columns, windows, process_count)}
    track_numbers = _tracks([owners[name] for name in on_threads], [columns.take(name, "thread") for name in on_threads])
    return RowTracks(process_count, groups, dict(zip(on_threads, track_numbers, strict=True)))


def stacked(
    columns: GatheredColumns, templates: Mapping[str, RowTemplates], processes: Mapping[str, Int], owners: RowTracks,
    windows: Sequence[WindowProcesses], base: int,
) -> tuple[Stacks, Frames] | None:
    """Return where Python functions ran, and their frames: as calls of them were recorded, else the stacks of operators.

    None where neither were. processes: the number of the process of each template, by table. base: the first id of the
    profile's rows.
    """
    table = next((name for name in ("frame_calls", "call_stacks") if columns.rows(name)), None)
    if table is None:
        return None
    functions, function = stacks.functions(processes[table], (batch for _, _, batch in templates[table].read()))
    template = columns.take(table, "template")
    start = _shifted(columns, table, columns.take(table, "start_ns"), [window.shift for window in windows])
    calls = FrameCalls(function[template], owners.of[table][template], start, columns.take(table, "duration_ns"))
    return (stacks.stacks if table == "frame_calls" else stacks.operator_stacks)(calls, functions, base)


def search(
    columns: GatheredColumns, templates: RowTemplates, owners: RowTracks, found_stacks: Stacks | None,
    windows: Sequence[WindowProcesses],
    tool: str, base: int,
) -> tuple[CallSearch, RangeLinks, AllocationRanges]:
    """Return the search for a profile with ranges, and what is attributed to ranges and allocations.

    templates: those of ranges. base: the first id of the profile's rows.
    """
    shifts = [window.shift for window in windows]
    template = columns.take("ranges", "template")
    found_traits = traits(batch for _, _, batch in templates.read())
    ranges = RangeRows(template, owners.of["ranges"][template], owners.groups["ranges"][template].astype(np.int32),
                       columns.take("ranges", "sequence"), found_traits)
    index = range_tree.index(ranges, _nested(ranges, columns, shifts, unclosed=tool == "nsys"), found_stacks)
    del ranges
    at_ns = _shifted(columns, "allocations", columns.take("allocations", "at_ns"), shifts)
    operators = index.tree.operator_at(index.nested.nest.innermost(owners.of["allocations"], at_ns, at_ns + 1))
    external_id = columns.take("ranges", "external_id")[index.tree.rows]
    if tool == "kineto":
        external_id = _without_shared_ids(external_id, index.nested.group, owners.every)
    step_number = columns.take("ranges", "step")[index.tree.steps]
    found = CallSearch(index, owners.groups, owners.of["api_calls"], external_id, step_number)
    return (found, RangeLinks(base, index.tree, _inner_steps(template, index.nested.steps.inner), _frames_of_operators(index)),
            AllocationRanges(base, index.tree, operators))


def _frames_of_operators(index: RangeIndex) -> Places | None:
    """Return per row of ranges the frame around it, where it is an operator; None in a profile without stacks."""
    if index.frame is None:
        return None
    places = np.flatnonzero(index.tree.operator == np.arange(len(index.tree.operator)))
    frame = np.full(len(index.tree.depth), -1, dtype=np.int32)
    frame[index.tree.rows[places]] = index.frame[places]
    return frame


def _nested(ranges: RangeRows, columns: GatheredColumns, shifts: Sequence[int], *, unclosed: bool) -> Nested:
    """Return the ranges in their nest; their times by row are not needed any longer."""
    start = _shifted(columns, "ranges", columns.take("ranges", "start_ns"), shifts)
    return range_tree.nested(ranges, start, columns.take("ranges", "duration_ns"), unclosed=unclosed)


def _without_shared_ids(external_id: Int, group: Places, every: int) -> Int:
    """Return the External ids without those that operators of several processes have: GPU work does not tell whose it is."""
    window, process = np.divmod(group, every)
    if not len(process) or (process == process[0]).all():
        return external_id
    return np.where(used_by_several(process, numbered(window, external_id)), MISSING, external_id)


def _inner_steps(template: Places, inner: Places) -> Pairs | None:
    """Return the pairs of template and 1 for the rows in `inner`, 0 for others; None where there are no such rows."""
    if not len(inner):
        return None
    is_inner = np.zeros(len(template), dtype=np.int32)
    is_inner[inner] = 1
    return paired(template, is_inner)


def call_ranges(
    found: CallSearch, found_stacks: Stacks | None, template: LongColumn, start: LongColumn, base: int, folder: SpillFolder,
) -> CallRanges:
    """Return what is attributed to API calls, and the frames around them: the template and the start of each row."""
    places, frames = ColumnBuilder(folder, np.int32), ColumnBuilder(folder, np.int32)
    for some in row_chunks(len(template)):
        begin = start[some]
        known = begin != MISSING
        track = np.where(known, found.call_track[template[some]], -1)
        places.add(found.index.nested.nest.innermost(track, begin, np.where(known, begin + 1, begin)))
        if found_stacks:
            frames.add(found_stacks.at(track, begin))
    return CallRanges(base, found.index.tree, places.column(), frames.column() if found_stacks else None)


def with_frames(all_frames: Frames, calls: CallRanges, ranges: RangeLinks) -> tuple[Frames, CallRanges, RangeLinks]:
    """Return the frames worth keeping, and what is attributed to API calls and ranges with the numbers that these have."""
    used = np.zeros(len(all_frames.function), dtype=np.bool_)
    for column in (calls.frames, ranges.frames):
        if column is not None:
            for some in row_chunks(len(column)):
                used[each_once(column[some])] = True
    frames, number = all_frames.without_short(used)
    operators = None if ranges.frames is None else at(number, ranges.frames)
    return frames, replace(calls, kept_frame=number), replace(ranges, frames=operators)


def place_work(
    found: CallSearch, calls: CallRanges, table: str, template: LongColumn, external_id: Int, links: Launched,
    folder: SpillFolder,
) -> PlacedWork:
    """Return where the GPU work of one table was launched from. Per row: its template, its External id, its launching call."""
    place = _values_of_calls(calls.places, links.call)
    group = found.groups[table]
    place, time = _by_external_id(found, group, template, external_id, place, links.start)
    step = ColumnBuilder(folder, np.int32)
    for some in row_chunks(len(template)):
        step.add(found.index.nested.steps.at(group[template[some]].astype(np.int32), time[some]))
    return PlacedWork(template, place, step.column(), _frames_of_work(found.index, calls, links, place, folder))


def _values_of_calls(column: LongColumn, call: LongColumn) -> Places:
    """Return for each row of GPU work the value of its launching call, -1 where it has none."""
    values = np.full(len(call), -1, dtype=np.int32)
    for some in row_chunks(len(call)):
        linked = np.flatnonzero(call[some] >= 0)
        values[some][linked] = values_at(column, call[some][linked])
    return values


def _frames_of_work(
    index: RangeIndex, calls: CallRanges, links: Launched, place: Places, folder: SpillFolder,
) -> LongColumn | None:
    """Return the frame of each row of GPU work: that around its call, else that of the range it was launched from."""
    if index.frame is None or calls.frames is None or calls.kept_frame is None:
        return None
    frame = _values_of_calls(calls.frames, links.call)
    return folder.spill(at(calls.kept_frame, np.where(frame >= 0, frame, at(index.frame, place))))


def _by_external_id(
    found: CallSearch, groups: Int, template: LongColumn, external: Int, place: Places, launch: LongColumn,
) -> tuple[Places, LongColumn]:
    """Return place and launch time, with those of the operator with its External id for work that has no operator."""
    tree, nested = found.index.tree, found.index.nested
    named = np.flatnonzero((found.external_id != MISSING) & (tree.operator == np.arange(len(found.external_id))))
    if not len(named):
        return place, launch
    open_ = np.flatnonzero((external != MISSING) & (tree.operator_at(place) < 0))
    if not len(open_):
        return place, launch
    group = groups[whole(template)].astype(np.int32)
    owner = nested.group[named]
    code = numbered(np.concatenate([owner, group[open_]]), np.concatenate([found.external_id[named], external[open_]]))
    operators, first = np.unique(code[: len(named)], return_index=True)
    at_ = np.minimum(np.searchsorted(operators, code[len(named) :]), len(operators) - 1)
    same = operators[at_] == code[len(named) :]
    rows, places = open_[same], named[first[at_[same]]]
    place, time = place.copy(), whole(launch).copy()
    place[rows] = places
    time[rows] = np.where(time[rows] == MISSING, nested.nest.start[places], time[rows])
    return place, time


def work_ranges(
    found: CallSearch, works: Mapping[str, PlacedWork], templates: RowTemplates, base: int, folder: SpillFolder,
) -> dict[str, WorkRanges]:
    """Return what is attributed to the GPU work of each table. templates: those of ranges."""
    used = each_once(np.concatenate([work.place for work in works.values()]))
    nested, kernels = found.index.nested, works["kernels"].place if "kernels" in works else used[:0]
    moved = messages(nested.nest, nested.template, (batch for _, _, batch in templates.read()), kernels)
    labels = Labels(found.index, used, (batch for _, _, batch in templates.read()), moved)
    columns = {}
    for table, work in works.items():
        pairs = paired(whole(work.template), labels.of(work.place))
        pairs = Pairs(pairs.pairs, folder.spill(whole(pairs.code)))
        columns[table] = WorkRanges(base, found.index.tree, labels, found.step_number, pairs, folder.spill(work.place), work.step,
                                     work.frame)
    return columns


def _groups_of_allocations(columns: GatheredColumns, windows: Sequence[WindowProcesses], every: int) -> Int:
    """Return the number of window and process of each allocation."""
    local = columns.take("allocations", "process_index")
    ends = [columns.first_row("allocations", window + 1) for window in range(len(windows))]
    owners = zip(windows, np.split(local, ends[:-1]), strict=True)
    return np.concatenate([n * every + window.processes[piece] for n, (window, piece) in enumerate(owners)]).astype(np.int64)


def _tracks(groups: list[Int], threads: list[Int]) -> list[Places]:
    """Return a number per (group, thread), the same in all tables; -1 where the thread is not known."""
    group, thread = np.concatenate(groups), np.concatenate(threads)
    number = numbered(group, thread).astype(np.int32)
    number[thread == MISSING] = -1
    return np.split(number, np.cumsum([len(one) for one in groups])[:-1])


def _shifted(columns: GatheredColumns, table: str, start: Int, shifts: Sequence[int]) -> Int:
    if not any(shifts):
        return start
    return np.where(start == MISSING, MISSING, start + columns.per_window(table, shifts))
