"""Answers of one large profile in linear passes over sorted integers: what SQL computes with windows over all its rows.

Four passes give eight views their rows at once, and with these a dozen others: the work against the calls that launched it
(_steps), the work of each stream in its order (idle_breakdown, _queue_lengths), the edges of all work (_gpu_states, _gpu_load,
_gpu_bins), and those of work, calls, ranges and steps (_step_states, _idle_by_call). The views stay what says which rows are
right: their SQL serves small profiles, other parameters and what is not fit to be read so (UnfitError), and tests hold both to
the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import MISSING, Int, Mask, integers, nullable
from nsightlens.columns.arrays import row_chunks as stretches_of
from nsightlens.statistics.sweeps import Packing, Running, packing, steps, stretches
from nsightlens.store.gpu_bins import GpuBins
from nsightlens.store.host_steps import HostSteps, Steps
from nsightlens.store.profile_parts import (
    COMMUNICATING_COPY,
    COMMUNICATION,
    COMPUTE,
    MEMCPY,
    MEMSET,
    Calls,
    CallTimes,
    Line,
    Stream,
    UnfitError,
    Work,
    calls,
    is_whole,
    templates,
)
from nsightlens.store.stream_work import stream_work

_PROFILE = "SELECT run, tool, profile_id FROM profiles"
_RANGED = "SELECT DISTINCT process_id, window_index FROM ranges"
_BOUNDS = """
SELECT min(start_ns), max(start_ns), max(duration_ns) FROM (
    SELECT start_ns, duration_ns FROM kernels UNION ALL SELECT start_ns, duration_ns FROM memory_ops
    UNION ALL SELECT start_ns, duration_ns FROM api_calls UNION ALL SELECT start_ns, duration_ns FROM ranges)
"""
_HOST = """
SELECT line::INTEGER AS line, start_ns, end_ns, (list_position(?, category) - 1)::TINYINT AS category
FROM _host_activities AS h JOIN swept_lines AS l
    ON l.process_id IS NOT DISTINCT FROM h.process_id AND l.window_index IS NOT DISTINCT FROM h.window_index
"""
_CATEGORIES = ("communication_call", "runtime", "data_loader", "cpu_exec")
_STATES = ("compute", "memcpy", "memset", "communication", *_CATEGORIES)
_FIELD = 16
"""Bits in which intervals of one category are counted."""
_HALF = 31
_ONES = (1 << _HALF) - 1
_FULL = 10**12
_GATHER = np.uint64(0x0102040810204080)
"""Eight bytes of 0 or 1 times this have them as the bits of the highest byte, the first as the lowest."""


@dataclass(frozen=True, slots=True)
class _Profile:
    """What one profile is made of. classes: of work, (kind, blocks); lines and tracks in the order in which views number them."""

    key: dict[str, str]
    lines: list[Line]
    tracks: list[tuple[int, str | None]]
    streams: list[Stream]
    classes: list[tuple[int, int | None]]
    work: list[Work]
    calls: Calls
    packing: Packing


def sweep(connection: duckdb.DuckDBPyConnection, parts: Mapping[str, Path]) -> dict[str, pa.Table]:
    """Return the rows of views by name, without their order; none where the profile is not fit for it.

    connection: one in which the profile's tables, and no others, are what views read. parts: its parts by table, templates
    too; none where they hold rows of other profiles.
    """
    try:
        profile = _profile(connection, parts)
        times = profile.calls.times()
        launched = HostSteps(connection, profile.lines, profile.calls, times)
    except UnfitError:
        return {}
    outermost = times.outermost(profile.calls.thread)
    called = _called(profile, times, outermost)
    found = {}
    with suppress(UnfitError):
        found = stream_work(connection, profile.key, profile.lines, profile.streams, profile.work, times, profile.packing)
    counts, edges = _edges_of_work(profile, launched)
    placed = launched.finish()
    del times, launched  # with all edges, they would be too much
    found |= {"_steps": placed.table(profile.key), **_gpu(profile, placed, counts, edges)}
    profile.packing.on_other_tracks(edges, np.array([line for line, _ in profile.tracks], dtype=np.int64))
    _add_host(connection, profile, placed, outermost, edges)
    books, idle = _states(profile, placed, edges)
    del edges
    return found | {"_step_states": books.table(profile, placed), "_idle_by_call": _idle_table(profile, *called, idle)}


def _profile(connection: duckdb.DuckDBPyConnection, parts: Mapping[str, Path]) -> _Profile:
    known = connection.sql(_PROFILE).to_arrow_table().to_pylist()
    if not parts or len(known) != 1 or known[0]["tool"] == "ncu" or "graph_executions" in parts or not is_whole(parts):
        raise UnfitError("not the parts of one profile of a timeline without hidden graphs")
    rows = {table: templates(connection, parts, table) for table in ("kernels", "memory_ops", "api_calls")}
    ranged = [(process, window) for process, window in connection.execute(_RANGED).fetchall()]
    lines = sorted({(row["process_id"], row["window_index"]) for some in rows.values() for row in some} | set(ranged), key=_last)
    number = {line: at for at, line in enumerate(lines)}
    busy = rows["kernels"] + rows["memory_ops"]
    tracks = sorted({(number[row["process_id"], row["window_index"]], row["device_id"]) for row in busy},
                    key=lambda track: (track[0], *_last(track[1:])))
    streams = [*dict.fromkeys(_stream(number, row) for row in busy)]
    classes = sorted({(row["kind"], row["blocks"]) for row in busy}, key=_last)
    work = [_work(table, parts[table], rows[table], number, tracks, streams, classes)
            for table in ("kernels", "memory_ops") if table in parts]
    called = calls(parts, rows["api_calls"], number)
    first, last, longest = connection.execute(_BOUNDS).fetchall()[0]
    packed = packing(first or 0, (last or 0) + max(longest or 0, 0), _classes(len(classes), called), max(len(lines), len(tracks)))
    if packed is None:
        raise UnfitError("63 bits are too few")
    return _Profile(known[0], lines, tracks, streams, classes, work, called, packed)


def _classes(of_work: int, calls: Calls) -> int:
    """Return how many classes there are: of work, the host's categories, steps, calls by name, once more the outermost ones."""
    return of_work + len(_CATEGORIES) + 1 + 2 * len(calls.names)


def _last(values: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """Return a sort key that puts None last."""
    return tuple((value is None, 0 if value is None else value) for value in values)


def _work(table: str, file: Path, rows: list[dict[str, Any]], lines: Mapping[Line, int], tracks: list[tuple[int, str | None]],
          streams: list[Stream], classes: list[tuple[int, int | None]]) -> Work:
    places = {track: at for at, track in enumerate(tracks)}
    numbers = {stream: at for at, stream in enumerate(streams)}
    kinds = {kind: at for at, kind in enumerate(classes)}
    line = [lines[row["process_id"], row["window_index"]] for row in rows]
    return Work(
        table, file, np.array(line, dtype=np.int64),
        np.array([places[at, row["device_id"]] for at, row in zip(line, rows, strict=True)], dtype=np.int64),
        np.array([numbers[_stream(lines, row)] for row in rows], dtype=np.int64),
        np.array([kinds[row["kind"], row["blocks"]] for row in rows], dtype=np.int64))


def _stream(lines: Mapping[Line, int], row: Mapping[str, Any]) -> Stream:
    return lines[row["process_id"], row["window_index"]], row["device_id"], row["context"], row["stream"]


def _edges_of_work(profile: _Profile, launched: HostSteps) -> tuple[Int, Int]:
    """Return how much work each track has, and its sorted starts and ends; tell `launched` of it.

    What has no length is there, too: the idle time of a GPU may begin or end with it.
    """
    counts = np.zeros(len(profile.tracks), dtype=np.int64)
    edges, size = np.empty(2 * sum(work.count() for work in profile.work), dtype=np.int64), 0
    for work in profile.work:
        for template, start, end, launch in work.rows():
            launched.add(work.line[template], start, end, launch)
            track, change = work.track[template], 2 * work.class_[template]
            counts += np.bincount(track, minlength=len(counts))
            for at, is_end in ((start, 0), (end, 1)):
                some = profile.packing.edges(track, at, change + is_end)
                edges[size : size + len(some)] = some
                size += len(some)
    edges.resize(size, refcheck=False)
    edges.sort(kind="stable")  # by merging: captures are sorted but for a few places, and that takes a tenth of the time
    return counts, edges


def _gpu(profile: _Profile, placed: Steps, counts: Int, edges: Int) -> dict[str, pa.Table]:
    """Return _gpu_load, _gpu_bins, and _gpu_states where no two processes share a GPU: one sweep over each track's work."""
    kind = np.array([kind for kind, _ in profile.classes], dtype=np.int64)
    known = np.array([blocks is not None for _, blocks in profile.classes], dtype=np.int64)
    is_memory, copies = (kind == MEMCPY) | (kind == MEMSET), kind == COMMUNICATING_COPY
    kernels = Running(steps((kind == COMPUTE) + (((kind == COMMUNICATION) | copies).astype(np.int64) << _HALF)))
    copying = Running(steps(copies.astype(np.int64) << _HALF))
    others = Running(steps(is_memory + (known << _HALF)))
    blocks = Running(steps(np.array([blocks or 0 for _, blocks in profile.classes], dtype=np.int64)))
    line = np.array([line for line, _ in profile.tracks], dtype=np.int64)
    first, last = placed.bounds(line)
    states = np.zeros((len(counts), 8), dtype=np.int64)
    load = np.zeros((5, len(counts)), dtype=np.int64)
    bins = GpuBins(edges, profile.packing, counts)
    for some in stretches(edges, profile.packing):
        kernel, other, on_sms = (running.cumulative(some.change) for running in (kernels, others, blocks))
        memory = other & _ONES > 0
        state = (kernel & _ONES > 0) + 2 * (kernel > _ONES) + 4 * memory
        np.add.at(states.reshape(-1), some.track * 8 + state, some.length)
        bins.add(some, state > 0)
        inside = np.minimum(some.at + some.length, last[some.track]) - np.maximum(some.at, first[some.track])
        inside = np.maximum(inside, 0)
        capped = np.minimum(on_sms, _FULL)
        on_kernel = kernel - copying.cumulative(some.change) if copies.any() else kernel
        for row, part in enumerate((inside * (on_kernel > 0), inside * ((kernel > 0) | memory), inside * (other > _ONES),
                                    (capped >> 20) * inside, (capped & 0xFFFFF) * inside)):
            np.add.at(load[row], some.track, part)
    found = {"_gpu_load": _load_table(profile, last - first, load), "_gpu_bins": _bins_table(profile, *bins.rows())}
    used = [(profile.lines[line][1], device) for line, device in profile.tracks]
    return found | ({"_gpu_states": _gpu_states_table(profile, counts, states)} if len(set(used)) == len(used) else {})


def _load_table(profile: _Profile, span: Int, load: Int) -> pa.Table:
    rows = []
    for place, (line, device) in enumerate(profile.tracks):
        kernel, busy, known, high, low = load[:, place].tolist()
        if busy:
            rows.append({**profile.key, **_of_line(profile, line), "device_id": device, "span_ns": int(span[place]),
                         "kernel_ns": kernel, "busy_ns": busy, "sm_ns": ((high << 20) + low) / 1e12 if known else None})
    return _table(rows, ("device_id",), ("span_ns", "kernel_ns", "busy_ns"), pa.field("sm_ns", pa.float64()))


def _bins_table(profile: _Profile, track: Int, number: Int, start: Int, length: Int, work: Int) -> pa.Table:
    lines = [profile.lines[line] for line, _ in profile.tracks]
    columns = {name: pa.array([text] * len(track), pa.string()) for name, text in profile.key.items()}
    for name, values in (("process_id", pa.array([process for process, _ in lines], pa.string())),
                         ("window_index", pa.array([window for _, window in lines], pa.int64())),
                         ("device_id", pa.array([device for _, device in profile.tracks], pa.string()))):
        columns[name] = values.take(pa.array(track))
    return pa.table({**columns, "bin": number, "start_ns": start, "duration_ns": length, "work_ns": work})


def _gpu_states_table(profile: _Profile, counts: Int, states: Int) -> pa.Table:
    rows = []
    order = sorted(np.flatnonzero(counts), key=lambda at: _last((profile.lines[profile.tracks[at][0]][1], profile.tracks[at][1])))
    for place in order:
        line, device = profile.tracks[place]
        for state in np.flatnonzero(states[place]).tolist() or [0]:
            rows.append({**profile.key, **_of_line(profile, line), "device_id": device, "compute": bool(state & 1),
                         "communication": bool(state & 2), "memory": bool(state & 4), "graph": False,
                         "total_ns": int(states[place, state])})
    flags = [pa.field(name, pa.bool_()) for name in ("compute", "communication", "memory", "graph")]
    return _table(rows, ("device_id",), ("total_ns",), *flags)


def _of_line(profile: _Profile, line: int) -> dict[str, Any]:
    process, window = profile.lines[line]
    return {"process_id": process, "window_index": window}


def _table(rows: list[dict[str, Any]], texts: tuple[str, ...], integers: tuple[str, ...], *more: pa.Field) -> pa.Table:
    fields = [*((name, pa.string()) for name in ("run", "tool", "profile_id", "process_id", *texts)),
              *((name, pa.int64()) for name in ("window_index", *integers)), *more]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _called(profile: _Profile, times: CallTimes, outermost: Mask) -> tuple[Int, Int]:
    """Return how many outermost calls each line has by name, and how long the longest is."""
    called, names = profile.calls, len(profile.calls.names)
    count, longest = (np.zeros(len(profile.lines) * names, dtype=np.int64) for _ in range(2))
    for some in stretches_of(len(outermost)):
        rows = np.flatnonzero(outermost[some]) + some.start
        template = times.template[rows]
        group = called.line[template] * names + called.name[template]
        count += np.bincount(group, minlength=len(count))
        np.maximum.at(longest, group, times.end[rows] - times.start[rows])
    return count, longest


def _add_host(connection: duckdb.DuckDBPyConnection, profile: _Profile, placed: Steps, outermost: Mask, edges: Int) -> None:
    """Add, in place, the edges of calls, of what ranges say that the host did, and of steps; sort them."""
    found = [*_edges_of_ranges(connection, profile), *_edges_of_steps(profile, placed)]
    size = len(edges)
    edges.resize(size + 2 * profile.calls.count + sum(map(len, found)), refcheck=False)  # where it lies: two do not fit
    for some in chain(_edges_of_calls(profile, outermost), found):
        edges[size : size + len(some)] = some
        size += len(some)
    edges.resize(size, refcheck=False)
    edges.sort(kind="stable")


def _edges_of_calls(profile: _Profile, outermost: Mask) -> Iterator[Int]:
    called, first = profile.calls, len(profile.classes) + len(_CATEGORIES) + 1
    for place, template, start, end in called.rows():
        rows = np.flatnonzero(end > start)
        class_ = first + 2 * called.name[template[rows]] + outermost[place[rows]]
        yield from _both(profile, called.line[template[rows]], start[rows], end[rows], class_)


def _edges_of_ranges(connection: duckdb.DuckDBPyConnection, profile: _Profile) -> Iterator[Int]:
    lines = pa.table({"process_id": pa.array([process for process, _ in profile.lines], pa.string()),
                      "window_index": pa.array([window for _, window in profile.lines], pa.int32()),
                      "line": range(len(profile.lines))})
    connection.register("swept_lines", lines)
    for batch in connection.sql(_HOST, params=[list(_CATEGORIES)]).to_arrow_table().to_batches(1 << 17):
        line, start, end, category = (integers(batch.column(name)) for name in ("line", "start_ns", "end_ns", "category"))
        yield from _both(profile, line, start, end, len(profile.classes) + category)
    connection.unregister("swept_lines")


def _edges_of_steps(profile: _Profile, placed: Steps) -> Iterator[Int]:
    lasts = placed.end > placed.start
    class_ = np.full(int(lasts.sum()), len(profile.classes) + len(_CATEGORIES))
    yield from _both(profile, placed.line[lasts], placed.start[lasts], placed.end[lasts], class_)


def _both(profile: _Profile, line: Int, start: Int, end: Int, class_: Int) -> Iterator[Int]:
    yield profile.packing.edges(line, start, 2 * class_)
    yield profile.packing.edges(line, end, 2 * class_ + 1)


def _states(profile: _Profile, placed: Steps, edges: Int) -> tuple[_StateBooks, Int]:
    """Return what _step_states and _idle_by_call sum: one sweep over each process's work, calls, ranges and steps."""
    first, names = len(profile.classes), len(profile.calls.names)
    of_step, of_calls = first + len(_CATEGORIES), first + len(_CATEGORIES) + 1
    field = {COMPUTE: 0, COMMUNICATION: 3, COMMUNICATING_COPY: 3}
    device, host, step = (np.zeros(of_calls + 2 * names, dtype=np.int64) for _ in range(3))
    device[:first] = [1 << _FIELD * field.get(kind, kind - 1) for kind, _ in profile.classes]
    host[first:of_step] = [1 << _FIELD * at for at in range(len(_CATEGORIES))]
    host[of_calls:] = 1 << _FIELD * _CATEGORIES.index("runtime")
    step[of_step] = 1
    begun = steps(step)
    begun[2 * of_step] += 1 << 32  # above the steps that go on, those that have begun
    devices, hosts, stepped = Running(steps(device)), Running(steps(host)), Running(begun)
    books = _StateBooks()
    idle, idled = np.zeros(len(profile.lines) * names, dtype=np.int64), 0
    for some in stretches(edges, profile.packing):
        on_device, on_host, place = (running.cumulative(some.change) for running in (devices, hosts, stepped))
        books.add(some.length, on_device, on_host, place)
        # up to each edge, the time in which nothing ran: what fell on a call is the difference of its two edges
        waited = np.where(on_device == 0, some.length, 0)
        before = idled + np.cumsum(waited) - waited
        idled += int(waited.sum())
        call = (some.change >> 1) - of_calls
        outer = np.flatnonzero((call >= 0) & (call & 1 == 1))
        sign = 2 * (some.change[outer] & 1) - 1
        np.add.at(idle, some.track[outer] * names + (call[outer] >> 1), sign * before[outer])
    return books, idle


class _StateBooks:
    """How long each step that lasts was in each state: bit by bit, what of _STATES goes on."""

    def __init__(self) -> None:
        self._found: list[tuple[Int, Int, Int]] = []

    def add(self, length: Int, on_device: Int, on_host: Int, place: Int) -> None:
        rows = np.flatnonzero((length > 0) & (place & 0xFFFFFFFF > 0))
        if not len(rows):
            return
        counts = np.stack([on_device[rows], on_host[rows]], axis=1).astype("<i8", copy=False).view("<u2")
        state = ((counts != 0).view("<u8")[:, 0] * _GATHER >> np.uint64(56)).astype(np.intp)
        seen = np.flatnonzero(np.bincount(state, minlength=256))
        number = np.zeros(256, dtype=np.int64)
        number[seen] = np.arange(len(seen))
        step = (place[rows] >> 32) - 1
        bins = (step - step[0]) * len(seen) + number[state]
        totals = np.bincount(bins, weights=length[rows]).astype(np.int64)  # of whole numbers below 2^53, and so exact
        there = np.flatnonzero(totals)
        self._found.append((there // len(seen) + step[0], seen[there % len(seen)], totals[there]))

    def table(self, profile: _Profile, placed: Steps) -> pa.Table:
        lasting = np.flatnonzero(placed.end > placed.start)
        some = [np.concatenate([found[at] for found in self._found] or [np.empty(0, np.int64)]) for at in range(3)]
        keys, group = np.unique(some[0] * 256 + some[1], return_inverse=True)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, group, some[2])
        rows = lasting[keys // 256]
        without = np.setdiff1d(np.arange(len(placed.start)), rows)
        state = np.concatenate([keys % 256, np.full(len(without), -1)])
        table = placed.table(profile.key, np.concatenate([rows, without]))
        table = table.select([name for name in table.column_names if not name.startswith("host_")])
        for at, name in enumerate(_STATES):
            table = table.append_column(name, pa.array((state >> at & 1).astype(bool), mask=state < 0))
        return table.append_column("total_ns", nullable(np.concatenate([total, np.full(len(without), MISSING)])))


def _idle_table(profile: _Profile, count: Int, longest: Int, idle: Int) -> pa.Table:
    names = profile.calls.names
    rows = [{**profile.key, **_of_line(profile, at // len(names)), "name": names[at % len(names)], "calls": int(count[at]),
             "longest_ns": int(longest[at]), "idle_ns": int(idle[at])} for at in np.flatnonzero(count).tolist()]
    return _table(rows, ("name",), ("calls", "longest_ns", "idle_ns")).drop_columns(["run", "tool"])
