"""Rows as trace events: spans on threads and streams, marks, ranges across threads, arrows from launch to work, names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsightlens.perfetto.reading import HOST
from nsightlens.perfetto.tracks import Track, Tracks

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.perfetto.executions import DrawnProcess, Execution

_MEMORY = ("memcpy", "memset", "migration", "decompression", "memory")


@dataclass(slots=True)
class Counts:
    """How much was written so far: rows of the store, and of them kernels and memory operations; arrows."""

    rows: int = 0
    kernels: int = 0
    memory_ops: int = 0
    flows: int = 0
    asides: int = 0
    """Spans that overlap others of their thread or stream and stand on a further line."""
    across: int = 0
    """Ranges drawn apart from threads: NVTX start/end ranges, and those that ended on another thread."""


def microseconds(ns: int) -> str:
    """Return whole nanoseconds as microseconds with three decimals, without a double on the way."""
    sign, whole = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{whole // 1000}.{whole % 1000:03d}"


def process_names(number: int, execution: Execution, process: DrawnProcess) -> list[str]:
    """Return the events that name a process and give its place among the others."""
    rank = "rank unknown" if process.rank is None else f"rank {process.rank}"
    system = " ".join(str(part) for part in (process.name, process.pid) if part is not None)
    where = f"{system} @ {process.host}" if system and process.host else system or process.host
    # The rank first: viewers cut the middle and the end of a long name.
    name = " · ".join(part for part in (rank, execution.name, where) if part)
    if process.tool not in execution.name or "+" in execution.name:
        name += f" · {process.tool}"
    return [_metadata("process_name", number, 0, "name", name), _metadata("process_sort_index", number, 0, "sort_index", number)]


def _metadata(kind: str, pid: int, tid: int, key: str, value: object) -> str:
    said = json.dumps({key: value}, ensure_ascii=False)
    return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{kind}","args":{said}}}'


class Writer:
    """The events of one process: keeps its threads, and on which of them each call stands."""

    def __init__(self, process: DrawnProcess, number: int, zero_ns: int, tracks: Tracks, counts: Counts) -> None:
        self._pid = number
        self._zero = zero_ns
        self._counts = counts
        self._tracks = tracks
        self._aside_calls: dict[int, int] = {}

    def events(self, sort: str, batch: pa.Table) -> list[str]:
        """Return the events of a batch of rows of one sort, starts ascending across batches."""
        columns = [column.to_pylist() for column in batch.columns]
        found = list(self._host(columns) if sort == HOST else self._gpu(columns))
        self._counts.rows += batch.num_rows
        return found

    def _host(self, columns: list[list]) -> Iterator[str]:  # type: ignore[type-arg]
        for start, duration, thread, sort, _, id_, is_call, category, title, arguments in zip(*columns, strict=True):
            at = microseconds(start - self._zero)
            head = f'"pid":{self._pid},"ts":{at},"cat":"{category}","name":{title}'
            track = self._tracks.thread(thread)
            if sort == "X":
                tid = self._lane(track, start, start + duration)
                if is_call and tid != self._tracks.tid(track):
                    self._aside_calls[id_] = tid
                yield f'{{"ph":"X",{head},"tid":{tid},"dur":{microseconds(duration)},"args":{arguments}}}'
            elif sort == "i":
                yield f'{{"ph":"i","s":"t",{head},"tid":{self._tracks.tid(track)},"args":{arguments}}}'
            else:
                self._counts.across += 1
                # A local id keeps the range with its process; a global one would stand apart from all of them.
                which = f'"id2":{{"local":{self._counts.across}}}'
                tail = f'"cat":"{category}","name":{title},{which},"tid":{self._tracks.tid(track)}'
                yield f'{{"ph":"b","pid":{self._pid},"ts":{at},{tail},"args":{arguments}}}'
                yield f'{{"ph":"e","pid":{self._pid},"ts":{microseconds(start - self._zero + duration)},{tail}}}'

    def _gpu(self, columns: list[list]) -> Iterator[str]:  # type: ignore[type-arg]
        for (start, duration, device, context, stream, _, _, launch, launched, call_ns, thread, category, title,
             arguments) in zip(*columns, strict=True):
            track = self._tracks.stream(device, context, stream)
            at = microseconds(start - self._zero)
            head = f'"pid":{self._pid},"ts":{at},"cat":"{category}","name":{title}'
            self._count(category)
            if duration is None:
                yield f'{{"ph":"i","s":"t",{head},"tid":{self._tracks.tid(track)},"args":{arguments}}}'
                continue
            tid = self._lane(track, start, start + duration)
            yield f'{{"ph":"X",{head},"tid":{tid},"dur":{microseconds(duration)},"args":{arguments}}}'
            if call_ns is not None:
                caller = self._aside_calls.get(launch) or self._tracks.tid(self._tracks.thread(thread))
                self._counts.flows += 1
                flow = f'"pid":{self._pid},"cat":"launch","name":"launch","id":{self._counts.flows}'
                yield f'{{"ph":"s",{flow},"tid":{caller},"ts":{microseconds(launched - self._zero)}}}'
                yield f'{{"ph":"f","bp":"e",{flow},"tid":{tid},"ts":{at}}}'

    def _count(self, category: str) -> None:
        if category.startswith("kernel"):
            self._counts.kernels += 1
        elif category in _MEMORY:
            self._counts.memory_ops += 1

    def _lane(self, track: Track, start: int, end: int) -> int:
        tid, aside = self._tracks.place(track, start, end)
        self._counts.asides += aside
        return tid

    def thread_names(self) -> Iterator[str]:
        """Yield the events that name the threads and give their order: CPU threads first, then streams."""
        for tid, name, order in self._tracks.names():
            yield _metadata("thread_name", self._pid, tid, "name", name)
            yield _metadata("thread_sort_index", self._pid, tid, "sort_index", order)
