"""Report -> batches of `kernels`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.readers.batches import Batch, conform
from nsightlens.readers.ncu.counters import INT32_MAX, Counters
from nsightlens.readers.ncu.labels import COMMAND_LINE
from nsightlens.readers.ncu.log import LogFacts
from nsightlens.readers.ncu.merge import NcuReport
from nsightlens.readers.ncu.page import Entries, Launch, Name, whole
from nsightlens.schema import TABLES

_ENTRIES_PER_BATCH = 1 << 16  # small enough that the memory of one batch serves the next
_DIMENSIONS = re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?", re.ASCII)
# A GPU has one unit of gpu__time_duration, so that each roll-up is the duration; .sum is what ncu's own pages print.
_DURATIONS = tuple(f"gpu__time_duration.{rollup}" for rollup in ("sum", "avg", "max", "min"))
_MAX_DURATION_NS = (1 << 43) * 1000  # 102 days, as in the other readers
_SHARED = "launch__shared_mem_per_block_"
RANGE = "range"


@lru_cache(maxsize=4096)
def dimensions(text: str | None) -> tuple[int | None, int | None, int | None]:
    """Return '(32, 4, 1)' as integers, or three None: also for a size of 0, which ncu prints for what is no launch."""
    found = _DIMENSIONS.fullmatch((text or "").strip())
    if not found or any(len(part) > 10 or not 0 < int(part) <= INT32_MAX for part in found.groups()):
        return None, None, None
    return int(found[1]), int(found[2]), int(found[3])


def kernels(report: NcuReport, counters: Counters, facts: LogFacts, process_of: Sequence[int]) -> Iterator[Batch]:
    """Yield the launches as `kernels` batches, in the order of the report."""
    columns = _columns(report, counters, facts, process_of)
    count, entries = len(report.launches), _raw_only(report.entries)
    names = pa.array(entries.names, pa.string())
    starts = entries.starts
    size = max(1, count * _ENTRIES_PER_BATCH // max(len(entries.value), 1))
    for first in range(0, count, size):
        last = min(first + size, count)
        part = slice(starts[first], starts[last])
        offsets = pa.array((starts[first : last + 1] - starts[first]).astype(np.int32))
        keys = pa.DictionaryArray.from_arrays(pa.array(entries.metric[part].astype(np.int32)), names)
        metrics = pa.MapArray.from_arrays(offsets, keys, pa.array(entries.value[part]))
        arrays = {name: column.slice(first, last - first) for name, column in columns.items()} | {"metrics": metrics}
        yield "kernels", conform(pa.RecordBatch.from_pydict(arrays), TABLES["kernels"].reader_schema, "kernels")


def _raw_only(entries: Entries) -> Entries:
    """Return the entries that have a raw name; raw names come first among the names."""
    raw: list[Name] = [name for name in entries.names if isinstance(name, str)]
    if len(raw) == len(entries.names):
        return entries
    keep = entries.metric < len(raw)
    return Entries.of(raw, len(entries.starts) - 1, entries.launch[keep], entries.metric[keep], entries.value[keep])


def _columns(report: NcuReport, counters: Counters, facts: LogFacts, process_of: Sequence[int]) -> dict[str, pa.Array]:
    launches = report.launches
    static, dynamic = counters.whole(f"{_SHARED}static"), counters.whole(f"{_SHARED}dynamic")
    columns: dict[str, Any] = {
        "process_index": pa.array(process_of, pa.int32()),
        "name": pa.array([launch.name for launch in launches], pa.string()),
        "mangled_name": pa.array([launch.mangled for launch in launches], pa.string()),
        "device": pa.array(ordinals(report, counters), pa.int32()),
        "context": pa.array([whole(launch.context) for launch in launches], pa.int64()),
        "stream": pa.array([whole(launch.stream) for launch in launches], pa.int64()),
        "ncu_id": pa.array([launch.ncu_id for launch in launches], pa.int64()),
        "nvtx_range": pa.array([launch.nvtx for launch in launches], pa.string()),
        "duration_ns": pa.array(_durations(report, counters), pa.int64()),
        "registers_per_thread": _int32(counters.whole("launch__registers_per_thread")),
        "static_shared_bytes": pa.array(static, pa.int64()),
        "dynamic_shared_bytes": pa.array(dynamic, pa.int64()),
        "shared_bytes": pa.array([_sum(a, b) for a, b in zip(static, dynamic, strict=True)], pa.int64()),
        "passes": _int32(_passes(report, counters, facts)),
    }
    for what, printed in (("grid", [one.grid for one in launches]), ("block", [one.block for one in launches])):
        sizes = [dimensions(text) for text in printed]
        for i, axis in enumerate("xyz"):
            other = counters.whole(f"launch__{what}_dim_{axis}", least=1)
            columns[f"{what}_{axis}"] = _int32(_either([size[i] for size in sizes], other))
    for axis in "xyz":
        columns[f"cluster_{axis}"] = _int32(counters.whole(f"launch__cluster_dim_{axis}", least=1))
    sections = ", ".join(section for section in report.sections if section not in ("", COMMAND_LINE)) or None
    stated = (("clock_control", facts.clock_control), ("cache_control", facts.cache_control), ("replay_mode", facts.replay_mode),
              ("section_set", sections))
    for name, text in stated:
        columns[name] = pa.array([text] * len(launches), pa.string())
    columns["replay_mode"] = pa.array([RANGE if is_range(launch) else facts.replay_mode for launch in launches], pa.string())
    return columns


def is_range(launch: Launch) -> bool:
    """Return whether a result is of a range of launches (--replay-mode range): ncu prints it under this name, without a grid."""
    return launch.name == RANGE and dimensions(launch.grid)[0] is None


def _durations(report: NcuReport, counters: Counters) -> list[int | None]:
    """Return the duration (ns) of each launch; None where its unit is none of time, or where no launch takes so long."""
    printed = counters.whole(*_DURATIONS, nearest=True)
    return [ns if ns is not None and ns < _MAX_DURATION_NS and i not in report.untimed else None for i, ns in enumerate(printed)]


def _int32(values: Sequence[int | None]) -> pa.Array:
    return pa.array([v if v is not None and v <= INT32_MAX else None for v in values], pa.int32())


def _either(first: Sequence[int | None], second: Sequence[int | None]) -> list[int | None]:
    return [a if a is not None else b for a, b in zip(first, second, strict=True)]


def _sum(first: int | None, second: int | None) -> int | None:
    return first + second if first is not None and second is not None else None


def ordinals(report: NcuReport, counters: Counters) -> list[int | None]:
    """Return the device ordinal of each launch, as printed or from launch__device_id."""
    printed = [whole(launch.device) for launch in report.launches]
    if None in printed:
        printed = _either(printed, counters.whole("launch__device_id"))
    return [ordinal if ordinal is not None and ordinal <= INT32_MAX else None for ordinal in printed]


def _passes(report: NcuReport, counters: Counters, facts: LogFacts) -> list[int | None]:
    """Return the passes per launch: ncu's own metric, else the log where name and ID fit one launch only."""
    found = counters.whole("profiler__replayer_passes", least=1)
    by_id: dict[int | None, list[int]] = {}
    for i, launch in enumerate(report.launches):
        by_id.setdefault(launch.ncu_id, []).append(i)
    passes_by_launch: dict[int, set[int]] = {}
    for name, ncu_id, passes in facts.passes:
        fitting = [i for i in by_id.get(ncu_id, []) if name.removesuffix("...") in (report.launches[i].name or "")]
        if len(fitting) == 1:
            passes_by_launch.setdefault(fitting[0], set()).add(passes)
    for i, passes_of in passes_by_launch.items():
        if found[i] is None and len(passes_of) == 1:
            found[i] = next(iter(passes_of))
    return found
