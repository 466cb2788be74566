"""Which launch in one tool's recording is which in another tool's: the pairs of grade launch, one to one.

A pair has the same kernel key, grid and block, the same registers and shared memory where both tools know them, and its
place in the order of launches is certain: no other pairing of its step (or stretch between steps) explains the recordings
as well. Processes meet by rank, or where each tool has one process in the run. Steps meet by their number. What is not
certain is not here: match_report counts it, with the weaker grades (configuration, key, short_name) and the reason.
Assumes that both executions ran the same program with the same inputs, and number their steps alike.
@column run                 Run.
@column rank                Rank of both processes; NULL where unknown.
@column tool                Tool of kernel_id.
@column other_tool          Tool of other_kernel_id.
@column kernel_id           The launch in `tool`; key of `kernels`.
@column other_kernel_id     The same launch in `other_tool`.
@column grade               launch.
@column evidence            Where the order was compared: a step, a stretch between steps, or the whole recording.
@column profile_id          Profile of kernel_id.
@column other_profile_id    Profile of other_kernel_id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens import matching
from nsightlens.alignment import HOLE
from nsightlens.analyses import Ask
from nsightlens.matching import Recording

Int = npt.NDArray[np.int64]

_PROCESSES = """
SELECT run, tool, rank, profile_id, process_id
FROM kernels GROUP BY ALL ORDER BY run, tool, rank, profile_id, process_id
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
_SCHEMA = pa.schema([
    ("run", pa.string()), ("rank", pa.int32()), ("tool", pa.string()), ("other_tool", pa.string()), ("kernel_id", pa.int64()),
    ("other_kernel_id", pa.int64()), ("grade", pa.string()), ("evidence", pa.string()), ("profile_id", pa.string()),
    ("other_profile_id", pa.string()),
])


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of one process: their rows, and the holes among them, in the order of launch."""

    process: dict[str, Any]
    table: pa.Table
    place: Int
    """Row of `table` per item, HOLE for a hole."""
    step: Int


def analyse(ask: Ask) -> pa.Table:
    """Return a row per pair of launches."""
    tables = [_pairs(ask, one, other) for one, other in _meetings(ask(_PROCESSES, []).to_pylist())]
    return pa.concat_tables([_SCHEMA.empty_table(), *tables])


def _meetings(processes: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the processes of different tools that are the same rank of a run, or its only process; nsys first, ncu last."""
    tools = {"nsys": 0, "kineto": 1, "ncu": 2}
    for one, other in combinations(sorted(processes, key=lambda p: tools[p["tool"]]), 2):
        if one["run"] != other["run"] or one["tool"] == other["tool"]:
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
    return pa.table({
        "run": [one["run"]] * rows, "rank": pa.array([one["rank"]] * rows, pa.int32()), "tool": [one["tool"]] * rows,
        "other_tool": [other["tool"]] * rows, "kernel_id": ids[0], "other_kernel_id": ids[1], "grade": ["launch"] * rows,
        "evidence": evidence, "profile_id": [one["profile_id"]] * rows, "other_profile_id": [other["profile_id"]] * rows,
    }, schema=_SCHEMA)


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
