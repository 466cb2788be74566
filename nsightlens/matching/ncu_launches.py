"""Which launch of a timeline is which launch that ncu measured, where what ncu records makes it certain.

What lies around a launch (ncu --nvtx): its step, and of its ranges those whose names both tools have. And its number among the
launches that the filter finds, where the wrapper's sidecars tell the filter and how many launches it passed over, and that nsys
recorded the process from its start. Without either, two recordings are taken for the same only if they are from end to end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import Int, Mask
from nsightlens.matching import ncu_positions
from nsightlens.matching.launch_sequence import Ask, LaunchSequence, tokens
from nsightlens.matching.ncu_positions import UNKNOWN, OrderedLaunches
from nsightlens.matching.sequence_alignment import HOLE
from nsightlens.readers.ncu import nvtx

_STATES = "SELECT nvtx_range, ncu_id FROM kernels WHERE process_id = ? AND profile_id = ? ORDER BY launch_index"
_TELLS = """
SELECT
    EXISTS (FROM kernels WHERE process_id = ? AND profile_id = ? AND nvtx_range IS NOT NULL)
    OR EXISTS (FROM profiles WHERE profile_id = ? AND kernel_filter IS NOT NULL) AS is_located
"""
_NAMES = """
SELECT DISTINCT domain, name FROM ranges
WHERE process_id = ? AND profile_id = ? AND kind <> 'step' AND name IN (SELECT unnest(?::VARCHAR[]))
"""
_AROUND = """
WITH RECURSIVE wanted AS (SELECT unnest(?::VARCHAR[]) AS domain, unnest(?::VARCHAR[]) AS name),
chain AS (
    SELECT r.range_id AS leaf, r.parent_id, r.depth, r.kind, coalesce(r.domain, '') AS domain, r.name
    FROM ranges AS r
    WHERE r.process_id = ? AND r.profile_id = ? AND r.range_id IN (SELECT unnest(?::BIGINT[]))
    UNION ALL
    SELECT c.leaf, r.parent_id, r.depth, r.kind, coalesce(r.domain, ''), r.name
    FROM chain AS c
    JOIN ranges AS r ON c.parent_id = r.range_id
    WHERE r.process_id = ? AND r.profile_id = ?
)
SELECT leaf, list(struct_pack(domain := c.domain, name := c.name) ORDER BY depth) AS ranges
FROM chain AS c
SEMI JOIN wanted AS w ON c.domain = w.domain AND c.name = w.name
WHERE kind <> 'step'
GROUP BY leaf
ORDER BY leaf
"""
_TOLD = "SELECT any_value(kernel_filter), any_value(launch_skip), any_value(from_start) FROM profiles WHERE profile_id = ?"
_FILTERED = """
SELECT DISTINCT {column} AS name FROM kernels WHERE process_id = ? AND profile_id = ? AND {column} IS NOT NULL ORDER BY name
"""
_FOUND = """
SELECT kernel_id FROM kernels WHERE process_id = ? AND profile_id = ? AND {column} IN (SELECT unnest(?::VARCHAR[]))
ORDER BY kernel_id
"""
_COLUMN = {"function": "short_name", "demangled": "name", "mangled": "mangled_name"}
_MOST_HOLES = 200_000
_FEWEST = 3
"""Different kernels that recordings must have to be taken for the same by their order alone."""


@dataclass(frozen=True, slots=True)
class NcuPairs:
    """The pairs (item of the timeline, row of ncu's table), and what makes each certain. The item may be a hole."""

    pairs: Int
    evidence: list[str]


def is_located(ask: Ask, process: dict[str, Any]) -> bool:
    """Return whether ncu or its wrapper recorded anything about where the launches of a process (keys as in `recorded`) stand."""
    (row,) = ask(_TELLS, [process["process_id"], process["profile_id"], process["profile_id"]]).to_pylist()
    return bool(row["is_located"])


def pairs(ask: Ask, timeline: LaunchSequence, measured: LaunchSequence, alone: bool) -> NcuPairs:
    """Return the certain pairs. alone: each of the two profiles has one process only."""
    of_timeline, of_measured = tokens(timeline.table, measured.table)
    key = [measured.process["process_id"], measured.process["profile_id"]]
    printed = ask(_STATES, key)
    one, other = _launches(ask, timeline, timeline.tokens(of_timeline), printed["nvtx_range"].to_pylist(), of_measured)
    near = ncu_positions.by_surroundings(other, one)
    far, number = _by_position(ask, timeline, measured, one, other, printed["ncu_id"], near) if alone else (near * 0 - 1, near)
    place = np.where(near >= 0, near, far)
    place[(near >= 0) & (far >= 0) & (near != far)] = -1
    if not (near >= 0).any() and not (far >= 0).any() and _same(of_timeline, of_measured, timeline):
        rows = np.arange(len(of_measured))  # and no holes
        return NcuPairs(np.stack([rows, rows], axis=1), ["whole recording"] * len(rows))
    places, times = np.unique(place[place >= 0], return_counts=True)
    rows = np.flatnonzero(np.isin(place, places[times == 1]))
    start = "" if _is_counted(ask, timeline, measured) else " after the first with NVTX ranges"
    evidence = [_evidence(int(near[row]), int(far[row]), int(other.step[row]), f"{number[row]}", start) for row in rows.tolist()]
    return NcuPairs(np.stack([place[rows], rows], axis=1), evidence)


def _same(one: Int, other: Int, timeline: LaunchSequence) -> bool:
    """Say whether two recordings are the same from end to end, and long enough for that to tell something."""
    whole = len(one) == len(timeline.place)
    return whole and np.array_equal(one, other) and len(np.unique(one)) >= _FEWEST


def _evidence(near: int, far: int, step: int, number: str, start: str) -> str:
    found = [] if near < 0 else ["NVTX ranges between known launches" if step == UNKNOWN else f"NVTX ranges, step {step}"]
    is_start = start and number == "0"
    return " and ".join([*found, *([] if far < 0 or is_start else [f"launch {number} of ncu's filter{start}"])])


def _launches(
    ask: Ask, timeline: LaunchSequence, token: Int, printed: list[str | None], of_measured: Int,
) -> tuple[OrderedLaunches, OrderedLaunches]:
    """Return both sides for `placement`: ranges are numbered by those of their names that both tools have."""
    states = nvtx.states(printed)
    key = [timeline.process["process_id"], timeline.process["profile_id"]]
    found = {one for state in states if state for one in state.ranges}
    known = ask(_NAMES, [*key, sorted({name for _, name in found})]) if found else None
    common = found & set(zip(known["domain"].to_pylist(), known["name"].to_pylist(), strict=True)) if known else set()
    numbers: dict[tuple[tuple[str | None, str], ...], int] = {(): 0}
    around = [tuple(one for one in state.ranges if one in common) if state else None for state in states]
    ranges = np.array([UNKNOWN if one is None else numbers.setdefault(one, len(numbers)) for one in around], dtype=np.int64)
    step = np.array([UNKNOWN if state is None or state.step is None else state.step for state in states], dtype=np.int64)
    mine = np.isin(token, of_measured) | (token == HOLE)
    of_timeline = _ranges(ask, timeline, mine, sorted(common, key=str), numbers)
    return OrderedLaunches(token, of_timeline, timeline.step), OrderedLaunches(of_measured, ranges, step)


def _ranges(
    ask: Ask, timeline: LaunchSequence, wanted: Mask, common: list[tuple[str | None, str]],
    numbers: dict[tuple[tuple[str | None, str], ...], int],
) -> Int:
    """Return the number of the list of ranges around each item of the timeline; UNKNOWN for what is not wanted."""
    found = np.where(wanted & (timeline.range_id != UNKNOWN), 0, UNKNOWN)
    leaves = np.unique(timeline.range_id[wanted & (timeline.range_id >= 0)])
    if not common or not len(leaves):
        return found
    key = [timeline.process["process_id"], timeline.process["profile_id"]]
    domains, names = [domain or "" for domain, _ in common], [name for _, name in common]
    lists = ask(_AROUND, [domains, names, *key, leaves.tolist(), *key])
    number = [numbers.setdefault(tuple((r["domain"] or None, r["name"]) for r in some), len(numbers))
              for some in lists["ranges"].to_pylist()]
    leaf = lists["leaf"].to_numpy()
    if len(leaf):
        at = np.minimum(np.searchsorted(leaf, timeline.range_id), len(leaf) - 1)
        here = wanted & (leaf[at] == timeline.range_id)
        found[here] = np.array(number, dtype=np.int64)[at[here]]
    return found


def _by_position(
    ask: Ask, timeline: LaunchSequence, measured: LaunchSequence, one: OrderedLaunches, other: OrderedLaunches,
    ncu_id: pa.ChunkedArray, near: Int,
) -> tuple[Int, Int]:
    """Return the place of each measured launch by its number among those that the filter finds (else -1), and that number.

    They are counted from the start of the process where the timeline shows it, else from the first launch whose place its
    ranges tell (`near`): autograd's threads launch outside of the ranges of the thread that has the step.
    """
    nowhere = np.full(len(other.token), -1, dtype=np.int64)
    filtered, skip, _ = _declared_filter(ask, measured)
    known = np.flatnonzero(near >= 0)
    is_counted = _is_counted(ask, timeline, measured)
    if filtered is None or not (is_counted or len(known)):
        return nowhere, nowhere
    if ncu_id.null_count or (timeline.place == HOLE).sum() > _MOST_HOLES:
        return nowhere, nowhere
    first, start = (0, 0) if is_counted or not len(known) else (int(known[0]), int(near[known[0]]))
    number = ncu_id.to_numpy() + (skip or 0 if is_counted else -int(ncu_id[first].as_py()))
    found = _finds(ask, timeline, filtered)
    if found is None or not len(number) or (np.diff(number) <= 0).any() or (is_counted and number[0] != skip):
        return nowhere, nowhere
    end = int(np.argmax(timeline.graph)) if timeline.graph.any() else len(one.token)
    shown = OrderedLaunches(one.token[start:end], one.ranges[start:end], one.step[start:end])
    rest = OrderedLaunches(other.token[first:], other.ranges[first:], other.step[first:])
    whole = is_counted and end == len(one.token)
    place = ncu_positions.by_position(rest, number[first:], shown, found[start:end], whole=whole)
    nowhere[first:] = np.where(place >= 0, place + start, -1)
    return nowhere, number


def _is_counted(ask: Ask, timeline: LaunchSequence, measured: LaunchSequence) -> bool:
    """Return whether the number of a measured launch counts from a start that the timeline shows."""
    if timeline.process["tool"] != "nsys" or _declared_filter(ask, measured)[1] is None:
        return False
    return bool(_declared_filter(ask, timeline)[2])


def _declared_filter(ask: Ask, of: LaunchSequence) -> tuple[str | None, int | None, bool | None]:
    (row,) = ask(_TOLD, [of.process["profile_id"]]).to_pylist()
    filtered, skip, from_start = row.values()
    return filtered, skip, from_start


def _finds(ask: Ask, timeline: LaunchSequence, filtered: str) -> Mask | None:
    """Return which items of the timeline ncu's filter finds; None where that is unknown."""
    base, _, name = filtered.partition(" ")
    if base not in _COLUMN or not name:
        return None
    key = [timeline.process["process_id"], timeline.process["profile_id"]]
    names = ask(_FILTERED.format(column=_COLUMN[base]), key)["name"]
    if name.startswith("regex:"):
        try:
            matching = names.filter(pc.match_substring_regex(names, name.removeprefix("regex:")))
        except pa.ArrowInvalid:  # no expression of RE2
            return None
    else:
        matching = names.filter(pc.equal(names, name))
    ids = ask(_FOUND.format(column=_COLUMN[base]), [*key, matching.to_pylist()])["kernel_id"].to_numpy()
    by_row = np.append(np.isin(timeline.kernel_id, ids), False)
    found: Mask = by_row[timeline.place]  # HOLE is -1, the last
    return found
