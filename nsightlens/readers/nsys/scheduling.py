"""Thread scheduling: when each thread ran on a CPU and when it did not, from the events at which it was put on one or taken off.

A stretch lasts to the next event of its thread, so that all events are held until they are sorted: of a limited number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.batches import Batch
from nsightlens.readers.nsys.columns import MAX_DURATION_NS, batch_of, coded, moments, raw, threads
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import PIECE_ROWS, RUNTIME, SCHEDULING, Kind, Source

MOST_EVENTS = 1 << 21
"""Events that are kept, all of a thread or none: first those of threads that call CUDA, then those of threads with few events."""
_COLUMNS: dict[str, Kind] = dict.fromkeys(("start", "cpu", "isSchedIn", "globalTid", "threadState"), "integer")
_REASONS = {2: "interruptible", 3: "uninterruptible", 4: "stopped", 5: "terminated", 6: "unscheduled", 7: "waiting",
            8: "os runtime", 9: "initialized", 10: "transition"}
"""ENUM_SAMPLING_THREAD_STATE, without Unknown and Running."""
_NO_NUMBER = np.iinfo(np.int32).min

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Events:
    """Events by thread and time. runs: whether the thread ran from then on."""

    thread: Ints
    start: Ints
    runs: npt.NDArray[np.bool_]
    cpu: npt.NDArray[np.int32]
    state: npt.NDArray[np.int32]


def thread_states(source: Source, processes: Processes, base_ns: int, tally: Counter[str], jobs: int) -> Iterator[Batch]:
    """Yield the stretches of all threads, of processes that other tables tell of, if any do."""
    known = pa.array([key for key in processes.keys if key is not None], pa.int64())
    rows, *_ = source.edges(SCHEDULING, "start")
    kept = _kept(source, jobs) if rows > MOST_EVENTS else None
    found = []
    for batch in source.batches(SCHEDULING, _COLUMNS, jobs):
        thread, start = raw(batch, "globalTid"), moments(raw(batch, "start"), base_ns, Counter())
        whole = pc.and_(start.is_valid(), raw(batch, "isSchedIn").is_valid())
        ours = pc.is_in(processes.owner(thread), value_set=known) if len(known) else thread.is_valid()
        tally["no_start"] += batch.num_rows - (pc.sum(whole).as_py() or 0)
        tally["foreign_threads"] += pc.sum(pc.and_(whole, pc.invert(ours))).as_py() or 0
        wanted = pc.and_(whole, ours)
        if kept is not None:
            some = pc.is_in(thread, value_set=kept)
            tally["scheduling_left_out"] += pc.sum(pc.and_(wanted, pc.invert(some))).as_py() or 0
            wanted = pc.and_(wanted, some)
        found.append(_events(pa.RecordBatch.from_pydict({
            "thread": thread, "start": start, "runs": pc.not_equal(raw(batch, "isSchedIn"), 0), "cpu": raw(batch, "cpu"),
            "state": raw(batch, "threadState")}).filter(wanted)))
    if found:
        yield from _stretches(_sorted(found), processes)


def _kept(source: Source, jobs: int) -> pa.Array:
    """Return the threads (globalTid) of which all events are kept."""
    events = _threads(source, SCHEDULING, jobs)
    callers = _threads(source, RUNTIME, jobs)
    order = sorted(events, key=lambda thread: (thread not in callers, events[thread], thread))
    room = MOST_EVENTS
    kept = []
    for thread in order:
        if events[thread] <= room:
            room -= events[thread]
            kept.append(thread)
    return pa.array(kept, pa.int64())


def _threads(source: Source, table: str, jobs: int) -> Counter[int]:
    """Return the rows of each thread."""
    found: Counter[int] = Counter()
    for batch in source.batches(table, {"globalTid": "integer"}, jobs):
        values, counts = np.unique(raw(batch, "globalTid").drop_null().to_numpy(), return_counts=True)
        found.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
    return found


def _events(batch: pa.RecordBatch) -> _Events:
    def small(name: str) -> npt.NDArray[np.int32]:
        column = batch.column(name)
        fits = pc.and_(pc.greater_equal(column, 0), pc.less(column, 1 << 31))
        found: npt.NDArray[np.int32] = pc.fill_null(pc.if_else(fits, column, None), _NO_NUMBER).to_numpy().astype(np.int32)
        return found

    return _Events(batch.column("thread").to_numpy(), batch.column("start").to_numpy(),
                   batch.column("runs").to_numpy(zero_copy_only=False), small("cpu"), small("state"))


def _sorted(parts: list[_Events]) -> _Events:
    """Return all events by thread and time; those of one time keep their order."""
    thread, start, runs, cpu, state = (np.concatenate([getattr(part, name) for part in parts]) for name in _Events.__slots__)
    order = np.lexsort((start, thread))
    return _Events(thread[order], start[order], runs[order], cpu[order], state[order])


def _stretches(events: _Events, processes: Processes) -> Iterator[Batch]:
    """Yield the rows of `thread_states`."""
    for first in range(0, len(events.thread), PIECE_ROWS):
        here, then = slice(first, first + PIECE_ROWS), slice(first + 1, first + PIECE_ROWS + 1)
        thread, start, runs = events.thread[here], events.start[here], events.runs[here]
        follows = np.zeros(len(thread), np.bool_)
        length = np.zeros(len(thread), np.int64)
        others = events.thread[then]
        follows[:len(others)] = others == thread[:len(others)]
        length[follows] = events.start[then][follows[:len(others)]] - start[follows]
        global_tid = pa.array(thread)
        cpu, state = events.cpu[here], pa.array(events.state[here], pa.int64())
        yield "thread_states", batch_of({
            "process_index": processes.index(global_tid), "thread": threads(global_tid), "start_ns": pa.array(start),
            "duration_ns": pa.array(length, mask=~follows | (length > MAX_DURATION_NS)),
            "state": coded(pa.array(runs.astype(np.int64)), {0: "off_cpu", 1: "running"}),
            "cpu": pa.array(cpu, mask=cpu == _NO_NUMBER),
            "reason": pc.if_else(pa.array(runs), None, coded(state, _REASONS).cast(pa.string())).dictionary_encode(),
        })
