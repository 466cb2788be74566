"""The timeline of a store as trace-event JSON, for the Perfetto UI and chrome://tracing.

One trace process per OS process of each execution; CPU threads and GPU streams are its threads. Profiles of one execution
lie on one axis (their origins' epoch plus start_ns), other executions beside them, each from its own zero. Times are
written from integers: microseconds with three decimals, so that no nanosecond is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.errors import UsageError
from nsightlens.perfetto.events import Counts, Writer, process_names
from nsightlens.perfetto.executions import DrawnProcess, Execution, find
from nsightlens.perfetto.files import check_name, trace_file
from nsightlens.perfetto.reading import GPU, HOST, contexts, rows
from nsightlens.perfetto.tracks import Tracks

if TYPE_CHECKING:
    from nsightlens.store.store import Store

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: the executions with their processes, the number of events, and how many rows they stand for."""

    path: Path
    executions: tuple[Execution, ...]
    events: int
    counts: Counts

    @property
    def unplaced(self) -> int:
        """Return the kernels and memory operations of these processes that have no start, and so no place."""
        return sum(process.slices.unplaced for one in self.executions for process in one.processes if process.slices)


def export(
    store: Store, path: str | Path, *, runs: list[str] | None = None, ranks: list[int] | None = None,
    steps: tuple[int, int] | None = None, on_progress: Progress | None = None,
) -> Export:
    """Write the timeline of `store` to `path` (.json or .json.gz) and return what was written.

    `runs`, `ranks`: only these; `steps`: only what began, or was launched, between the first and the last of them.
    `on_progress` is called with the rows done and to do. Raises UsageError where nothing is left, or the name does not fit;
    NsightlensError where the file cannot be written; then no file is left, or the one that was there before.
    """
    target = Path(path)
    check_name(target)
    executions = find(store, runs, ranks, steps)
    total = sum(process.rows for execution in executions for process in execution.processes)
    if not total:
        raise UsageError("nothing to draw: the store holds no timeline of nsys or Kineto there (ncu has none)")
    counts = Counts()
    # A thread with the number of its process would be drawn as its main thread.
    first = 1 + sum(len(execution.processes) for execution in executions)
    with trace_file(target, [_described(execution) for execution in executions]) as file:
        for number, execution, process in _numbered(executions):
            file.write(process_names(number, execution, process))
            tracks = Tracks(contexts(store, process.process_id), first)
            writer = Writer(process, number, execution.zero_of(process), tracks, counts)
            for sort in (HOST, GPU):  # calls before the work they launched: its arrows need their places
                for batch in rows(store, sort, process):
                    file.write(writer.events(sort, batch))
                    if on_progress:
                        on_progress(counts.rows, total)
            file.write(writer.thread_names())
    return Export(target, tuple(executions), file.events, counts)


def _numbered(executions: list[Execution]) -> Iterator[tuple[int, Execution, DrawnProcess]]:
    """Yield every process with its number in the trace: OS process ids repeat across hosts and executions."""
    number = 0
    for execution in executions:
        for process in execution.processes:
            number += 1
            yield number, execution, process


def _described(execution: Execution) -> dict[str, object]:
    """Return what the file says of an execution; epochs are text, for JavaScript has no such integers."""
    zero = None if execution.zero_epoch_ns is None else str(execution.zero_epoch_ns)
    return {"execution": execution.name, "zero_epoch_ns": zero, "processes": len(execution.processes)}
