"""The functions of the host that streams ran in their order, and the parts of gaps in which work had to wait for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import Int, integers
from nsightlens.intervals.disjoint import cut
from nsightlens.intervals.intersection import difference, intersection
from nsightlens.intervals.order import track_slices

LANES = """
WITH lanes AS (
    SELECT process_id, context, stream, (row_number() OVER (ORDER BY process_id, context, stream) - 1)::INTEGER AS lane
    FROM (SELECT DISTINCT process_id, context, stream FROM host_functions WHERE profile_id = $1)
)"""
"""The streams of a profile that ran functions, each with a number."""
FUNCTIONS = f"""{LANES}
SELECT lane, start_ns, start_ns + duration_ns AS end_ns, launch_id
FROM host_functions JOIN lanes USING (process_id, context, stream)
WHERE profile_id = $1 AND start_ns IS NOT NULL AND duration_ns >= 0 ORDER BY lane, start_ns, end_ns, host_function_id"""


class Functions(NamedTuple):
    """Functions by lane and start: when each ran, without the time of those before it in its lane; the call that launched it."""

    lane: Int
    start: Int
    end: Int
    launch_id: Int


class GapParts(NamedTuple):
    """Gaps, or parts of them: the number of the gap, its track, when the part begins and ends, and a call (MISSING: none known):
    that of the work that ended the gap, or of the function that ran; and the lane of that work (MISSING: it ran no function)."""

    number: Int
    track: Int
    begin: Int
    end: Int
    launch_id: Int
    lane: Int


def functions(table: pa.Table) -> Functions:
    """Return the functions from the rows of FUNCTIONS."""
    lane, start, end, launch = (integers(table[name].combine_chunks()) for name in ("lane", "start_ns", "end_ns", "launch_id"))
    start = cut(start, end, lane)
    own = start < end
    return Functions(lane[own], start[own], end[own], launch[own])


def without_functions(gaps: GapParts, found: Functions) -> tuple[GapParts, GapParts]:
    """Return the parts of gaps in which the stream of the work that ended them ran no function, and those in which it did."""
    apart = ~np.isin(gaps.lane, found.lane)
    rest, within = [_some(gaps, np.flatnonzero(apart))], [_some(gaps, np.zeros(0, np.int64))]
    for some in track_slices(found.lane):
        mine = _some(gaps, np.flatnonzero(gaps.lane == found.lane[some.start]))
        outside, inside = _split_gaps(mine, Functions(*(column[some] for column in found)))
        rest.append(outside)
        within.append(inside)
    return _concat(rest), _concat(within)


def _split_gaps(gaps: GapParts, found: Functions) -> tuple[GapParts, GapParts]:
    """Return the parts of gaps outside of the functions of their lane, and those within."""
    within = intersection(gaps.begin, gaps.end, found.start, found.end)
    rest = difference(gaps.begin, gaps.end, found.start, found.end)
    inside = _some(gaps, within.place)._replace(begin=within.start, end=within.end, launch_id=found.launch_id[within.other])
    return _some(gaps, rest.place)._replace(begin=rest.start, end=rest.end), inside


def _some(gaps: GapParts, rows: Int) -> GapParts:
    return GapParts(*(column[rows] for column in gaps))


def _concat(parts: list[GapParts]) -> GapParts:
    return GapParts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
