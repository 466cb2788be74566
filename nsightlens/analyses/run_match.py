"""Which launch of one run is which launch of another run of the same workload: the pairs that are certain, one to one.

Use it for captures of different tools in different runs (nsys in one, ncu in another), or of one tool before and after a
change. As in matches: the same kernel key, grid and block, registers and shared memory where both have them, and a certain
place in the order of launches. Captures ingested as one run (`ingest --run NAME`) have all of this in matches and the views
built on it. Uncertain pairs are left out: run_difference compares kinds of launches instead.
@scope rows
@topic runs
@requires api_calls, kernels, profiles, ranges
@assumes Both runs launch the same kernels in the same order, except for launches that one lacks. Ranks and steps mean the same
    in both.
@param  base              Run of the first side; NULL: the first of the store's two runs.
@param  other             Run of the second; NULL: the second.
@column rank              Rank; NULL where unknown.
@column run               Run of kernel_id.
@column tool              Its tool: nsys before kineto before ncu.
@column kernel_id         The launch; key of `kernels`.
@column other_run         Run of other_kernel_id.
@column other_tool        Its tool.
@column other_kernel_id   The same launch there.
@column evidence          What makes it certain, as in matches.
"""

from __future__ import annotations

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.errors import UsageError
from nsightlens.matching import cross_tool

_COLUMNS = ("rank", "run", "tool", "kernel_id", "other_run", "other_tool", "other_kernel_id", "evidence")


def analyse(ask: Ask, *, base: str | None = None, other: str | None = None) -> pa.Table:
    """Return a row per pair, by launch. Raises UsageError for runs that are not there, or left open where there are not two."""
    runs = ask("SELECT DISTINCT run FROM kernels ORDER BY run", [])["run"].to_pylist()
    if base is None and other is None and len(runs) == 2:
        base, other = runs
    for run in (base, other):
        if run not in runs:
            what = "name two runs with base= and other=" if run is None else f"no run {run}"
            raise UsageError(f"{what}; there are {', '.join(runs) or 'none'}")
    if base == other:
        raise UsageError("base and other are the same run; for its tools, ask the table matches")
    found = cross_tool.between(ask, str(base), str(other)).select(_COLUMNS)
    return found.sort_by([(name, "ascending") for name in ("tool", "other_tool", "kernel_id", "other_kernel_id")])
