"""Which communication kernels of each rank could be matched with those of other ranks, and which ranks take no part and why.

What is not matched counts as communication everywhere, but says nothing of who waited for whom: point-to-point calls, sends
and receives that do not end together on all ranks, calls whose counterparts were not captured or whose order is not certain.
The row with rank NULL holds the kernels of processes whose rank is not known.
@scope run
@requires _collective_kernels, profiles
@assumes Captures that name no execution are of the only one of run and tool.
@column run                Run.
@column tool               nsys or kineto.
@column execution_id       Start of the job, from a sidecar; NULL without one.
@column rank               Rank; NULL: processes of unknown rank.
@column kernels            Communication kernels.
@column unmatched_kernels  Those without a counterpart on another rank.
@column total_ns           Sum of their durations.
@column unmatched_ns       Part of it in kernels without a counterpart.
@column unmatched_pct      unmatched_ns as a share of total_ns, to one decimal.
@column left_out           Why the rank takes no part in comparisons of arrivals; NULL where it does.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses.collective_match import Execution, executions

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("rank", pa.int32()), ("kernels", pa.int64()),
    ("unmatched_kernels", pa.int64()), ("total_ns", pa.int64()), ("unmatched_ns", pa.int64()), ("unmatched_pct", pa.float64()),
    ("left_out", pa.string()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per rank with communication kernels."""
    return pa.Table.from_pylist([row for execution in executions(ask) for row in _rows(execution)], schema=_SCHEMA)


def _rows(execution: Execution) -> list[dict[str, Any]]:
    matched = {call.row for group in execution.matched for calls in group.calls for call in calls.values()}
    lengths: dict[int | None, list[tuple[int, bool]]] = {}
    for place, row in enumerate(execution.rows):
        lengths.setdefault(row["rank"], []).append((row["duration_ns"], place in matched))
    return [
        {"run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id, "rank": rank}
        | _figures(lengths[rank])
        | {"left_out": execution.left_out.get(rank) if rank is not None else "its number is not known"}
        for rank in sorted(lengths, key=lambda rank: (rank is None, rank or 0))
    ]


def _figures(lengths: list[tuple[int, bool]]) -> dict[str, int | float | None]:
    total, unmatched = sum(ns for ns, _ in lengths), [ns for ns, is_matched in lengths if not is_matched]
    return {"kernels": len(lengths), "unmatched_kernels": len(unmatched), "total_ns": total, "unmatched_ns": sum(unmatched),
            "unmatched_pct": round(100 * sum(unmatched) / total, 1) if total else None}
