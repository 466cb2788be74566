"""Step times that a workload wrote itself (`rank0003.steps.json`, by the workloads of wrappers/) -> step_times.

The times are the workload's own clock, not a profiler's: they are how a step that no tool disturbs gets into the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nsightlens.readers import whole_file
from nsightlens.readers.batches import Batch, batch_of, diagnostic
from nsightlens.readers.reader import Probe, ProcessHint
from nsightlens.readers.settings import setting

TOOL = "steps"
NEEDS_FILES = False
KIND = "step times"

MAX_BYTES = 64 << 20
"""Some 400,000 steps as the workloads write them."""
_BATCH = 1 << 16
# Every top-level object that names a tool and has windows; a trace has traceEvents.
_WINDOWS = re.compile(rb'^(?:\xef\xbb\xbf)?\s*\{(?=.*"tool"\s*:\s*").*"windows"\s*:\s*\[', re.DOTALL)
_UNDER = {"plain": "none", "torch": "kineto"}

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


class _Step(msgspec.Struct, gc=False):
    step: _Count
    start_epoch_ns: _Count
    end_epoch_ns: _Count | None = None


class _Window(msgspec.Struct):
    steps: list[_Step]
    name: str | None = None
    start_epoch_ns: _Count | None = None
    end_epoch_ns: _Count | None = None


class _Log(msgspec.Struct):
    tool: str
    windows: list[_Window]
    run: str | None = None
    execution_id: str | None = None
    host: str | None = None
    rank: _Number | None = None
    local_rank: _Number | None = None
    world_size: _Number | None = None
    workload: dict[str, Any] | None = None


_DECODER = msgspec.json.Decoder(_Log)


def sniff(path: Path, head: bytes) -> bool:
    """Return whether the head is that of a log of step times."""
    return b'"traceEvents"' not in head and _WINDOWS.search(head) is not None


def probe(path: Path) -> Probe:
    """Return the identity of the log. Raises ReadError for one that is not whole."""
    log = _decode(path)
    hint = ProcessHint(host=log.host, rank=log.rank, rank_source="content:steps" if log.rank is not None else None,
                       local_rank=log.local_rank, world_size=log.world_size)
    return Probe(KIND, processes=(hint,), first_epoch_ns=_origin(log), run=log.run, execution=log.execution_id)


def read(paths: Sequence[Path], *, jobs: int = 1) -> Iterator[Batch]:
    """Yield one profile, one process and a row per step. Starts count from the first window's. Raises ReadError."""
    (path,) = paths
    log = _decode(path)
    origin = _origin(log)
    steps = sum(len(window.steps) for window in log.windows)
    yield "profiles", batch_of("profiles", [{
        "format": KIND, "origin_epoch_ns": origin, "events": steps, "events_lost": 0, "truncated": False, "link_method": "none",
        "settings": [(f"workload.{name}", value) for name, given in (log.workload or {}).items()
                     if (value := setting(given)) is not None]}])
    source = "content:steps" if log.rank is not None else None
    yield "processes", batch_of("processes", [{
        "process_index": 0, "host": log.host, "rank": log.rank, "rank_source": source, "local_rank": log.local_rank,
        "world_size": log.world_size}])
    common = {"process_index": 0, "profiler": _UNDER.get(log.tool, log.tool),
              "workload": setting((log.workload or {}).get("name"))}
    backwards = 0
    for number, window in enumerate(log.windows):
        about = common | {
            "segment_number": number, "segment_name": window.name, "segment_start_ns": _since(origin, window.start_epoch_ns),
            "segment_duration_ns": _duration(window.start_epoch_ns, window.end_epoch_ns)}
        backwards += _is_backwards(window)
        for first in range(0, len(window.steps), _BATCH):
            some = window.steps[first : first + _BATCH]
            backwards += sum(map(_is_backwards, some))
            yield "step_times", batch_of("step_times", [
                about | {"step": s.step, "start_ns": _since(origin, s.start_epoch_ns),
                         "duration_ns": _duration(s.start_epoch_ns, s.end_epoch_ns)} for s in some])
    if backwards:
        what = "steps or windows end before they begin; their duration is NULL"
        yield diagnostic("warning", "negative_duration", what, backwards)
    if not steps:
        yield diagnostic("warning", "no_steps", "the workload completed no step: step_times has no rows from it. Run more steps")


def _decode(path: Path) -> _Log:
    """Return the content. Raises ReadError for what is no whole log."""
    return whole_file.decode(path, _DECODER, MAX_BYTES, "step times", "Record it again, or copy it again",
                             "Record fewer steps into one file")


def _origin(log: _Log) -> int | None:
    """Return the earliest start in the log."""
    windows = [w.start_epoch_ns for w in log.windows if w.start_epoch_ns is not None]
    return min([*windows, *(s.start_epoch_ns for w in log.windows for s in w.steps)], default=None)


def _since(origin: int | None, epoch_ns: int | None) -> int | None:
    return None if origin is None or epoch_ns is None else epoch_ns - origin


def _duration(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None or end < start else end - start


def _is_backwards(span: _Step | _Window) -> bool:
    return span.start_epoch_ns is not None and span.end_epoch_ns is not None and span.end_epoch_ns < span.start_epoch_ns
