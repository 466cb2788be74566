"""The rows of `matches` of a run: which launch in one tool's recording is which in another tool's, one to one.

A pair has the same kernel key, grid and block, the same registers and shared memory where both tools know them, and its
place in the order of launches is certain: no other pairing of its step (or stretch between steps) explains the recordings
as well (nsightlens/matching.py). Processes meet by rank, or where each tool has one process in the run. Steps meet by their
number. What is not certain is not here; the views on `matches` count it, with the weaker grades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens import matching, schema
from nsightlens.alignment import HOLE
from nsightlens.matching import Recording

Int = npt.NDArray[np.int64]
Ask = Callable[[str, Sequence[object]], pa.Table]

_PROCESSES = """
SELECT run, tool, rank, profile_id, process_id, count(*) AS launches
FROM kernels WHERE run IN (SELECT unnest(?)) GROUP BY ALL ORDER BY run, tool, rank, profile_id, process_id
"""
_LAUNCHES = """
SELECT
    k.kernel_id, k.step, k.kernel_key, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z,
    k.registers_per_thread, k.shared_bytes, coalesce(c.start_ns, k.start_ns, 0) AS launched_ns
FROM kernels AS k
LEFT JOIN api_calls AS c ON k.launch_id = c.launch_id AND k.profile_id = c.profile_id
WHERE k.process_id = ? AND k.profile_id = ?
ORDER BY k.launch_index
"""
_HOLES = """
SELECT c.start_ns
FROM api_calls AS c
WHERE c.process_id = ? AND c.profile_id = ? AND c.start_ns IS NOT NULL AND coalesce(c.return_value, 0) = 0
    AND regexp_matches(c.name, '(?i)^(cuda|cu|hip)(Ext|Module)*Launch(Cooperative)?Kernel')
    AND NOT EXISTS (
        FROM kernels AS k WHERE k.process_id = c.process_id AND k.profile_id = c.profile_id AND k.launch_id = c.launch_id)
ORDER BY c.start_ns
"""
_STEPS = """
SELECT step, start_ns, start_ns + duration_ns AS end_ns
FROM ranges
WHERE process_id = ? AND profile_id = ? AND kind = 'step' AND duration_ns IS NOT NULL AND step IS NOT NULL
ORDER BY start_ns
"""
_CONFIGURATION = ("kernel_key", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_RESOURCES = ("registers_per_thread", "shared_bytes")
_MISSING = np.iinfo(np.int64).min
_SCHEMA = pa.schema([(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
                     for field in schema.MATCHES.schema])
_MOST_LAUNCHES = 3_000_000
"""Launches of a process above which its orders are not compared: memory for a few hundred bytes each would be needed."""


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of one process: their rows, and the holes among them, in the order of launch."""

    process: dict[str, Any]
    table: pa.Table
    place: Int
    """Row of `table` per item, HOLE for a hole."""
    step: Int


def matches(ask: Ask, runs: Iterable[str]) -> pa.Table:
    """Return the rows of `matches` of some runs; `ask` answers SQL on their kernels, calls and ranges."""
    tables = [_pairs(ask, one, other) for one, other in _meetings(ask(_PROCESSES, [sorted(runs)]).to_pylist())]
    return pa.concat_tables([_SCHEMA.empty_table(), *tables])


def _meetings(processes: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the processes of different tools that are the same rank of a run, or its only process; nsys first, ncu last."""
    tools = {"nsys": 0, "kineto": 1, "ncu": 2}
    for one, other in combinations(sorted(processes, key=lambda p: tools[p["tool"]]), 2):
        if one["run"] != other["run"] or one["tool"] == other["tool"] or max(one["launches"], other["launches"]) > _MOST_LAUNCHES:
            continue
        if one["rank"] is not None and other["rank"] is not None:
            if one["rank"] == other["rank"]:
                yield one, other
        elif all(sum(p["run"] == some["run"] and p["tool"] == some["tool"] for p in processes) == 1 for some in (one, other)):
            yield one, other


def _pairs(ask: Ask, one: dict[str, Any], other: dict[str, Any]) -> pa.Table:
    both = _launches(ask, one), _launches(ask, other)
    tokens = _tokens(both[0].table, both[1].table)
    stepped = all((side.step != _MISSING).any() for side in both)
    recordings = []
    for side, token in zip(both, tokens, strict=True):
        recorded = side.place != HOLE
        step = side.step if stepped else np.full(len(side.step), _MISSING)
        placed = np.where(recorded, token[np.maximum(side.place, 0)] if len(token) else HOLE, HOLE)
        recordings.append(Recording(placed, side.place, matching.segments(step, _MISSING)))
    found = matching.pairs(*recordings)
    rows = len(found.pairs)
    ids = [side.table["kernel_id"].to_numpy()[found.pairs[:, place]] for place, side in enumerate(both)]
    evidence = [_evidence(segment, stepped) for segment in found.segment.tolist()]
    columns = {
        "run": one["run"], "rank": one["rank"], "tool": one["tool"], "profile_id": one["profile_id"],
        "other_tool": other["tool"], "other_profile_id": other["profile_id"], "grade": "launch",
    }
    arrays = {name: pa.repeat(pa.scalar(value, _SCHEMA.field(name).type), rows) for name, value in columns.items()}
    arrays |= {"kernel_id": ids[0], "other_kernel_id": ids[1], "evidence": pa.array(evidence, pa.string())}
    return pa.table({name: arrays[name] for name in _SCHEMA.names}, schema=_SCHEMA)


def _evidence(segment: int, stepped: bool) -> str:
    if not stepped:
        return "whole recording"
    return "before the first step" if segment < 0 else f"{'after ' * (segment % 2)}step {segment // 2}"


def _launches(ask: Ask, process: dict[str, Any]) -> _Launches:
    key = [process["process_id"], process["profile_id"]]
    table = ask(_LAUNCHES, key)
    holes = ask(_HOLES, key)["start_ns"].to_numpy()
    time = table["launched_ns"].to_numpy()
    order = matching.with_holes(time, np.arange(len(time)), holes)
    place = np.where(order < len(time), order, HOLE)
    own = table["step"].fill_null(_MISSING).to_numpy()
    return _Launches(process, table, place, np.concatenate([own, _step_at(ask(_STEPS, key), holes)])[order])


def _step_at(steps: pa.Table, time: Int) -> Int:
    """Return the number of the step around each time, MISSING outside."""
    if not steps.num_rows:
        return np.full(len(time), _MISSING)
    start, end, number = (steps[name].to_numpy() for name in ("start_ns", "end_ns", "step"))
    at = np.searchsorted(start, time, side="right") - 1
    return np.where((at >= 0) & (time < end[np.maximum(at, 0)]), number[np.maximum(at, 0)], _MISSING)


def _tokens(one: pa.Table, other: pa.Table) -> tuple[Int, Int]:
    """Return a number per launch of both: equal for the same key and configuration, resources too where both know them.

    A launch without a key has a number of its own.
    """
    both = pa.concat_tables([one, other])
    known = [name for name in _RESOURCES if not one[name].null_count and not other[name].null_count]
    code = np.zeros(both.num_rows, dtype=np.int64)
    for name in (*_CONFIGURATION, *known):
        values = both[name].combine_chunks().dictionary_encode()
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        indices = values.indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
        code = np.unique(code * (len(values.dictionary) + 1) + indices, return_inverse=True)[1].astype(np.int64)
    nameless = both["kernel_key"].is_null().to_numpy()
    code[nameless] = code.max(initial=0) + 1 + np.arange(int(nameless.sum()))
    return code[: one.num_rows], code[one.num_rows :]
