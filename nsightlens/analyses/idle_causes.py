"""Why each GPU idled, by what the thread did that launched the work after each gap: a row per cause and function.

Each instant of a gap has one cause. If the next work was launched after the gap began: until its launching call began,
synchronisation (the thread waited for the GPU in a function), call (it was in another API function) or cpu (in none); from
then on launch (the call, and the delay until the work starts). If the work was launched before the gap began: event (its
stream had to wait for an event) or queue (the GPU's delay). unlinked: the launching call was not recorded. While the stream of
that work ran a host function (cudaLaunchHostFunc, a host node of a CUDA graph), the cause is host_function, whatever the
thread did; the time before and after it counts as separate gaps. A thread that waits for the GPU cannot keep it busy: began_in
names the function in which it waited, or copied, when the gap began, so all rows with the same began_in are what that function
costs. A cpu row has no name: in no recorded call, the thread ran code of the program, or waited for something else than the
GPU (input, a lock, another process); operators, NVTX ranges and MPI functions of that time are in idle_by_range, functions in
cpu_sample_summary. off_cpu_ns is the part in which the thread ran on no CPU. A waiting thread gives up its CPU, unless it
spins; a thread that should launch but was off the CPU was blocked or preempted.
@scope profile
@topic gpu
@needs gpu_work
@requires _gpu_work, _stream_work, _waits, synchronizations, host_functions, api_calls, processes, thread_states
@assumes A call waits for the GPU where CUPTI recorded that it does, or where its name says so (cudaDeviceSynchronize).
@assumes The launching call is the one with the same correlation id in the process, and the tool put host and GPU on one clock.
@assumes All work in the window was recorded: work that the tool dropped, or that another report of the GPU holds, counts as idle.
@assumes Where waits for events were not recorded (Kineto without enable_cuda_sync_events), event is part of queue.
@assumes Host functions need nsys 2026.4 or later; without them (Kineto too), their time has other causes. No real report has
    any: they are read by the documented schema. Work that waits by an event for one in another stream is event.
@assumes A thread was in the opposite state before its first scheduling event, and keeps its state after the last.
@param  per  'device': times in which nothing ran on it; 'stream': in which nothing ran in the stream.
@note   Counts only time between the first and the last GPU work. Where nsys recorded OS calls, `summary` divides cpu by them.
@first rank, cause, name, idle_ns, idle_pct, began_in
@column run           Run (one workload in one configuration).
@column tool          nsys or kineto. Never add them up: they saw the same work.
@column rank          Rank of the process; NULL where unknown or where processes share the device.
@column profile_id    Profile; key of `profiles`.
@column window_index  Capture window of the process, from 0.
@column process_id    OS process; NULL where several share the device.
@column device_id     The physical GPU.
@column context       CUDA context id within the process; NULL but per stream.
@column stream        Stream id within the process; NULL but per stream, and for work outside streams.
@column cause         synchronisation, call, cpu, launch, event, queue, host_function or unlinked.
@column name          The function, for synchronisation, call and launch; for host_function the call that gave it to the stream;
    NULL for cpu (in no call), event, queue and unlinked.
@column began_in      Function that waits for the GPU, or copies, in which that thread was when the gap began; NULL: in none.
@column idle_pct      idle_ns as a share of gaps_ns, to one decimal.
@column idle_ns       Idle time of this cause.
@column off_cpu_ns    Part of idle_ns in which the thread ran on no CPU; NULL where its scheduling was not recorded (nsys
    records it with --cpuctxsw), and for event, queue, unlinked and host_function, of which the launching thread is no cause.
@column gaps          Gaps that have some.
@column gaps_ns       All idle time of the device or stream: idle_ns of busy_time (per device) and of idle_breakdown.
@balance gaps_ns = idle_ns per run, tool, profile_id, window_index, process_id, device_id, context, stream
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.analyses import Ask
from nsightlens.analyses._host_functions import FUNCTIONS, LANES, GapParts, functions, without_functions
from nsightlens.columns.arrays import MISSING, Int, Mask, integers, nullable, row_chunks
from nsightlens.errors import not_a_choice
from nsightlens.intervals import coverage
from nsightlens.intervals.disjoint import outermost
from nsightlens.intervals.intersection import holding, intersection

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("window_index", pa.int32()),
    ("process_id", pa.string()), ("device_id", pa.string()), ("context", pa.int64()), ("stream", pa.int64()),
    ("cause", pa.string()), ("name", pa.string()), ("began_in", pa.string()), ("idle_pct", pa.float64()),
    ("idle_ns", pa.int64()), ("off_cpu_ns", pa.int64()), ("gaps", pa.int64()), ("gaps_ns", pa.int64())])
_KEY = ("track", "cause", "name", "began_in")
_SUMMED = ("length", "off_cpu", "gaps")
_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)
_CAUSES = ("synchronisation", "call", "cpu", "launch", "event", "queue", "unlinked", "host_function")
_SYNCHRONISATION, _CALL, _CPU, _LAUNCH, _EVENT, _QUEUE, _UNLINKED, _HOST_FUNCTION = range(len(_CAUSES))
_PROFILES = "SELECT DISTINCT profile_id FROM _gpu_work ORDER BY profile_id"
_ORDER = ("run", "tool", "rank", "profile_id", "window_index", "process_id", "device_id", "context", "stream")
_PARTS = {"device": "device_id, NULL::BIGINT AS context, NULL::BIGINT AS stream, NULL::VARCHAR AS owner",
          "stream": "device_id, context, stream, process_id AS owner"}
_TRACKS = f"""{LANES}, works AS NOT MATERIALIZED (
    SELECT run, tool, profile_id, window_index, process_id, start_ns, end_ns, launch_id, kind, work_id, lane, {{parts}}
    FROM _gpu_work LEFT JOIN lanes USING (process_id, context, stream) WHERE profile_id = $1
), tracks AS (
    SELECT *, (row_number() OVER (ORDER BY window_index, device_id, context, stream, owner) - 1)::INTEGER AS track
    FROM (SELECT run, tool, profile_id, window_index, device_id, context, stream, owner,
            CASE WHEN min(process_id) = max(process_id) THEN min(process_id) END AS process_id FROM works GROUP BY ALL)
)"""
_WHO = f"""{_TRACKS}
SELECT t.* EXCLUDE (owner, track), p.rank FROM tracks AS t
LEFT JOIN processes AS p ON p.profile_id = t.profile_id AND p.process_id = t.process_id ORDER BY track"""
# The order is that of idle_breakdown: where several begin at once, the first of them ends the gap.
_WORK = f"""{_TRACKS}
SELECT track, start_ns, end_ns, launch_id, lane FROM works AS w JOIN tracks AS t
    ON t.window_index IS NOT DISTINCT FROM w.window_index AND t.device_id IS NOT DISTINCT FROM w.device_id
    AND t.context IS NOT DISTINCT FROM w.context AND t.stream IS NOT DISTINCT FROM w.stream
    AND t.owner IS NOT DISTINCT FROM w.owner
ORDER BY track, start_ns, end_ns, kind, work_id"""
_NAMES = "SELECT DISTINCT name FROM api_calls WHERE profile_id = $1 AND name IS NOT NULL ORDER BY name"
_THREADS = """
WITH threads AS (
    SELECT process_id, thread, name, (dense_rank() OVER (ORDER BY process_id, thread) - 1)::INTEGER AS line
    FROM (SELECT DISTINCT process_id, thread, name FROM api_calls WHERE profile_id = $1)
)"""
_CALLS = f"""{_THREADS}, waits AS (
    SELECT DISTINCT launch_id FROM synchronizations WHERE profile_id = $1 AND kind IN ('event', 'stream', 'context')
)
SELECT launch_id, line, start_ns, start_ns + duration_ns AS end_ns, coalesce(list_position($2, c.name) - 1, -1)::INTEGER AS name,
    launch_id IN (FROM waits) AND NOT contains(c.name, 'Query')
        OR regexp_matches(c.name, '(Device|Ctx|Context|Stream|Event|Thread)Synchronize') AS waits,
    regexp_matches(c.name, 'Memcpy|Memset') AS copies
FROM api_calls AS c JOIN threads AS t ON t.process_id IS NOT DISTINCT FROM c.process_id AND t.thread IS NOT DISTINCT FROM c.thread
    AND t.name IS NOT DISTINCT FROM c.name
WHERE profile_id = $1 AND start_ns IS NOT NULL AND duration_ns >= 0 ORDER BY line, start_ns, duration_ns DESC, launch_id"""
_STATES = f"""{_THREADS}
SELECT t.line, s.start_ns, s.state = 'running' AS runs FROM thread_states AS s
JOIN (SELECT DISTINCT process_id, thread, line FROM threads) AS t ON s.process_id = t.process_id AND s.thread = t.thread
WHERE s.profile_id = $1 AND s.start_ns IS NOT NULL ORDER BY t.line, s.start_ns, s.thread_state_id"""
_STREAM_WAITS = "SELECT count(*) AS waits FROM synchronizations WHERE profile_id = $1 AND kind = 'stream_wait_event'"
# The first launch into a stream after it was told to wait.
_BEHIND_EVENTS = """
SELECT DISTINCT s.launch_id FROM _waits AS w
ASOF JOIN _stream_work AS s ON s.profile_id = w.profile_id AND s.process_id = w.process_id
    AND s.context = w.context AND s.stream = w.stream AND w.call_start_ns < s.call_start_ns
WHERE w.profile_id = $1 AND w.kind = 'stream_wait_event'"""


class _GapParts(NamedTuple):
    """Parts of gaps: which gap, its cause, the places of two names (-1: none), how long it is, and for how much of that its
    thread ran on no CPU (MISSING: unknown)."""

    gap: Int
    cause: Int
    name: Int
    began_in: Int
    length: Int
    off_cpu: Int


class _Outermost(NamedTuple):
    """Calls of one line that do not overlap: when each began and ended, its name, whether it waits, and whether it copies."""

    start: Int
    end: Int
    name: Int
    waits: Mask
    copies: Mask


class _Scheduling:
    """When threads ran, by line: the times at which that changed, sorted."""

    def __init__(self, table: pa.Table) -> None:
        self._line, self._at = (integers(table[name].combine_chunks()) for name in ("line", "start_ns"))
        self._runs = table["runs"].combine_chunks().to_numpy(zero_copy_only=False).astype(np.int64)

    def off_cpu(self, line: int, begin: Int, end: Int) -> Int:
        """Return how long the thread of a line ran on no CPU from each begin to its end; MISSING where that is not known."""
        here = slice(*np.searchsorted(self._line, [line, line + 1]))
        at, runs = self._at[here], self._runs[here]
        if not len(at):
            return np.full(len(begin), MISSING)
        ran = np.concatenate([[0], np.cumsum(np.diff(at) * runs[:-1])])

        def ran_until(time: Int) -> Int:
            last = np.searchsorted(at, time, "right") - 1
            first = np.maximum(last, 0)  # before the first event: the other state
            found: Int = ran[first] + (time - at[first]) * np.where(last < 0, 1 - runs[0], runs[first])
            return found

        return (end - begin) - (ran_until(end) - ran_until(begin))


class _Calls:
    """The calls of a profile, sorted by line (thread), start and falling length."""

    def __init__(self, table: pa.Table) -> None:
        self.launch_id, self.line, self.start, self.end, self.name = (
            integers(table[name].combine_chunks()) for name in ("launch_id", "line", "start_ns", "end_ns", "name"))
        self.waits, self.copies = (table[name].fill_null(False).to_numpy() for name in ("waits", "copies"))
        order = np.argsort(self.launch_id, kind="stable")
        self._ids, self._place = np.append(self.launch_id[order], MISSING), np.append(order, -1)
        self._outermost: dict[int, _Outermost] = {}

    def index_of(self, launch_id: Int) -> Int:
        """Return the place of the call with each id, -1 where there is none."""
        at = np.searchsorted(self._ids[:-1], launch_id)
        return np.where(self._ids[at] == launch_id, self._place[at], -1)

    def outermost(self, line: int) -> _Outermost:
        """Return the calls of a line that lie in no other, each with what it or one within it does."""
        if line not in self._outermost:
            own = slice(*np.searchsorted(self.line, [line, line + 1]))
            kept = outermost(self.start[own], self.end[own])
            waits, copies = (np.logical_or.reduceat(flags[own], kept) for flags in (self.waits, self.copies))
            self._outermost[line] = _Outermost(self.start[own][kept], self.end[own][kept], self.name[own][kept], waits, copies)
        return self._outermost[line]


def analyse(ask: Ask, *, per: str = "device") -> pa.Table:
    """Return the causes of each device's or stream's idle time, the largest first. Raises UsageError for another `per`."""
    if per not in _PARTS:
        raise not_a_choice("idle_causes", "per", per, ("device", "stream"))
    found = [_profile_rows(ask, row["profile_id"], _PARTS[per]) for row in ask(_PROFILES, []).to_pylist()]
    rows = [row for rows in found for row in rows]
    rows.sort(key=lambda row: (
        *((row[name] is None, row[name] if row[name] is not None else 0) for name in _ORDER),
        -row["idle_ns"], row["cause"], row["name"] or "", row["began_in"] or ""))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _profile_rows(ask: Ask, profile: str, parts: str) -> list[dict[str, Any]]:
    gaps = _gaps(ask(_WORK.format(parts=parts), [profile]))
    names = ask(_NAMES, [profile])["name"].cast(pa.string()).to_pylist()
    calls = _Calls(ask(_CALLS, [profile, names]))
    behind = np.zeros(0, np.int64)
    if ask(_STREAM_WAITS, [profile])["waits"][0].as_py():
        behind = ask(_BEHIND_EVENTS, [profile])["launch_id"].to_numpy()
    scheduling, ran = _Scheduling(ask(_STATES, [profile])), functions(ask(FUNCTIONS, [profile]))
    found = []
    for some in _gap_chunks(gaps):
        rest, run_in = without_functions(some, ran)
        found.append(_by_cause(gaps, _concat_parts([_split_gaps(rest, calls, scheduling, behind),
                                                    _host_function_parts(run_in, calls)])))
    summed = _merge_sums(found)
    who = ask(_WHO.format(parts=parts), [profile]).to_pylist()
    total = np.zeros(len(who), np.int64)
    np.add.at(total, gaps.track, gaps.end - gaps.begin)
    named = [*names, None]
    return [who[row["track"]] | {
        "cause": _CAUSES[row["cause"]], "name": named[row["name"]], "began_in": named[row["began_in"]],
        "idle_pct": round(100.0 * row["length"] / int(total[row["track"]]), 1), "idle_ns": row["length"],
        "off_cpu_ns": row["off_cpu"], "gaps": row["gaps"], "gaps_ns": int(total[row["track"]])}
        for row in summed.to_pylist()]


def _gap_chunks(gaps: GapParts) -> Iterator[GapParts]:
    """Yield some gaps after others: the parts of all at once would take gigabytes. Once, where there are none."""
    for some in row_chunks(len(gaps.track)) if len(gaps.track) else [slice(0)]:
        yield GapParts(*(column[some] for column in gaps))


def _by_cause(gaps: GapParts, split: _GapParts) -> pa.Table:
    """Return how long each cause was, and of how many gaps; off_cpu is NULL where it is not known of all of them."""
    some = np.flatnonzero(split.length > 0)
    columns = {"track": gaps.track[split.gap[some]], "cause": split.cause[some], "name": split.name[some],
               "began_in": split.began_in[some]}
    off_cpu = nullable(split.off_cpu[some])
    summed = pa.table(columns | {"length": split.length[some], "gap": split.gap[some], "off_cpu": off_cpu}).group_by(
        list(_KEY)).aggregate([("length", "sum"), ("off_cpu", "sum", _ALL_KNOWN), ("gap", "count_distinct")])
    return summed.select([*_KEY, "length_sum", "off_cpu_sum", "gap_count_distinct"]).rename_columns([*_KEY, *_SUMMED])


def _merge_sums(tables: list[pa.Table]) -> pa.Table:
    """Return the sums over several stretches, no gap of which is in two."""
    summed = pa.concat_tables(tables).group_by(list(_KEY)).aggregate(
        [("length", "sum"), ("off_cpu", "sum", _ALL_KNOWN), ("gaps", "sum")])
    return summed.select([*_KEY, *(f"{name}_sum" for name in _SUMMED)]).rename_columns([*_KEY, *_SUMMED])


def _gaps(work: pa.Table) -> GapParts:
    """Return the times between works of a track in which none of it runs. work: sorted by track and start."""
    track, start, end, launch, lane = (
        integers(work[name].combine_chunks()) for name in ("track", "start_ns", "end_ns", "launch_id", "lane"))
    found = coverage.gaps(start, end, track)
    until = found.until
    return GapParts(np.arange(len(until)), track[until], found.start, found.end, launch[until], lane[until])


def _host_function_parts(found: GapParts, calls: _Calls) -> _GapParts:
    """Return the parts of gaps in which functions of the host ran."""
    call = calls.index_of(found.launch_id)
    name, none = np.full(len(call), -1), np.full(len(call), -1)
    name[call >= 0] = calls.name[call[call >= 0]]
    cause, unknown = np.full_like(call, _HOST_FUNCTION), np.full_like(call, MISSING)
    return _GapParts(found.number, cause, name, none, found.end - found.begin, unknown)


def _concat_parts(parts: Sequence[_GapParts]) -> _GapParts:
    return _GapParts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _split_gaps(gaps: GapParts, calls: _Calls, scheduling: _Scheduling, behind: Int) -> _GapParts:
    """Return the parts of all gaps, which cover each of them once. behind: calls that launched work behind an event."""
    call = calls.index_of(gaps.launch_id)
    known = call >= 0
    late, none = known.copy(), np.full(len(call), -1)
    late[known] = calls.start[call[known]] > gaps.begin[known]
    cause = np.where(~known, _UNLINKED, np.where(np.isin(gaps.launch_id, behind), _EVENT, _QUEUE))
    early = np.flatnonzero(~late)
    parts = [_GapParts(early, cause[early], none[early], none[early], (gaps.end - gaps.begin)[early],
                       np.full_like(early, MISSING))]
    for line in np.unique(calls.line[call[late]]).tolist():
        mine = np.flatnonzero(late)[calls.line[call[late]] == line]
        parts += _before_launch(gaps, mine, calls, line, call[mine], partial(scheduling.off_cpu, line))
    split = _concat_parts(parts)
    return split._replace(gap=gaps.number[split.gap])


def _before_launch(
    gaps: GapParts, mine: Int, calls: _Calls, line: int, call: Int, off_cpu: Callable[[Int, Int], Int],
) -> list[_GapParts]:
    """Return the parts of gaps that lasted until the thread of a line launched the next work. call: that of each gap; off_cpu:
    for how long the thread ran on no CPU between two times."""
    starts, ends, names, waits, copies = calls.outermost(line)
    begin, end = gaps.begin[mine], gaps.end[mine]
    until = np.minimum(calls.start[call], end)
    gap, piece, left, right = intersection(begin, until, starts, ends)
    first = holding(begin, starts, ends)
    began_in = np.where((first >= 0) & (waits | copies)[first], names[first], -1)
    off, off_at_all = off_cpu(left, right), off_cpu(begin, until)
    none, cpu = np.full(len(mine), -1), np.full(len(mine), _CPU)
    return [
        _GapParts(mine[gap], np.where(waits[piece], _SYNCHRONISATION, _CALL), names[piece], began_in[gap], right - left, off),
        _GapParts(mine, cpu, none, began_in, until - begin - _summed(right - left, gap, len(mine)),
                  np.where(off_at_all == MISSING, MISSING, off_at_all - _summed(off, gap, len(mine)))),
        _GapParts(mine, np.full(len(mine), _LAUNCH), calls.name[call], began_in, end - until, off_cpu(until, end))]


def _summed(values: Int, group: Int, groups: int) -> Int:
    """Return the sum of the values of each group."""
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, values)
    return found
