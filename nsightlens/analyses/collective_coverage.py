"""Which communication kernels of each rank could be matched with those of other ranks, and which ranks take no part and why.

Unmatched kernels count as communication everywhere, but do not show which rank waited for which: sends and receives that name
no other rank and do not end together on all ranks, calls whose counterparts were not captured or whose order is uncertain. The
row with rank NULL holds the kernels of processes of unknown rank.
@scope run
@topic ranks
@needs collectives
@requires _collective_kernels, _profile_executions, profiles
@assumes Captures without an execution_id belong to one execution per run and tool, unless `recordings` shows several.
@column run                Run.
@column tool               nsys or kineto.
@column execution_id       Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
@column rank               Rank; NULL: processes of unknown rank.
@column kernels            Communication kernels.
@column unmatched_kernels  Those without a counterpart on another rank.
@column total_ns           Sum of their durations.
@column unmatched_ns       Part of it in kernels without a counterpart.
@column unmatched_pct      unmatched_ns as a share of total_ns, to one decimal.
@column left_out           Why the rank takes no part in comparisons of arrivals; NULL where it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._executions import Execution, executions
from nsightlens.columns.arrays import MISSING, Int, Mask

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("rank", pa.int32()), ("kernels", pa.int64()),
    ("unmatched_kernels", pa.int64()), ("total_ns", pa.int64()), ("unmatched_ns", pa.int64()), ("unmatched_pct", pa.float64()),
    ("left_out", pa.string()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per rank with communication kernels."""
    return pa.Table.from_pylist([row for execution in executions(ask) for row in _rows(execution)], schema=_SCHEMA)


def _rows(execution: Execution) -> Iterator[dict[str, Any]]:
    calls = execution.calls
    matched = np.zeros(len(calls.kind), dtype=np.bool_)
    for places in (*(group.place for group in execution.matched), execution.messages.place):
        matched[places] = True
    for number, mine in sorted(execution.ranks, key=lambda item: item[0] == MISSING):
        known = number if number != MISSING else None
        left_out = "its number is not known" if known is None else execution.left_out.get(known)
        yield {"run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id, "rank": known,
               **_figures(calls.end[mine] - calls.start[mine], matched[mine]), "left_out": left_out}


def _figures(duration: Int, matched: Mask) -> dict[str, int | float | None]:
    total, unmatched = int(duration.sum()), int(duration[~matched].sum())
    return {"kernels": len(duration), "unmatched_kernels": int((~matched).sum()), "total_ns": total, "unmatched_ns": unmatched,
            "unmatched_pct": round(100 * unmatched / total, 1) if total else None}
