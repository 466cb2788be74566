"""The judgement of each run of a store (verdict, findings, time trees), computed once for all views that show it."""

from __future__ import annotations

import numpy as np

from nsightlens.analyses import Ask, cached_per_store
from nsightlens.analyses._executions import executions
from nsightlens.analyses._stages import ends
from nsightlens.columns.arrays import wide
from nsightlens.diagnosis.busy_time import OtherEnd
from nsightlens.diagnosis.exchanges import Exchanges, SlowLink
from nsightlens.diagnosis.judgement import RunJudgement, judge_runs
from nsightlens.diagnosis.ranks import Awaited

_SLOW_LINK = """
SELECT operation, sum(large_transfer_ns * large_bus_bytes_per_s) / sum(large_transfer_ns) AS reached,
    min(link_bytes_per_s)::DOUBLE AS peak
FROM collective_summary WHERE run = $1 AND tool = $2
GROUP BY operation
HAVING sum(large_transfer_ns * link_pct) < 50 * sum(large_transfer_ns) AND 2 * sum(large_transfer_ns) >= (
    SELECT sum(transfer_ns) FROM collective_summary WHERE run = $1 AND tool = $2)
"""
"""The operation whose large calls hold half of what is known of transfers, where they reach below half of the link's peak."""


def judgements(ask: Ask) -> list[RunJudgement]:
    """Return every run under every tool, judged."""
    return cached_per_store(ask, _judgements)


def _judgements(ask: Ask) -> list[RunJudgement]:
    return judge_runs(ask, lambda run, tool: (_exchanges(ask, run, tool), _awaited(ask, run, tool), _slow_link(ask, run, tool)))


def _slow_link(ask: Ask, run: str, tool: str) -> SlowLink | None:
    """Return the operation that uses its link badly, and most of the time that data moves."""
    if not ask("SELECT 1 FROM _device_links WHERE link_bytes_per_s IS NOT NULL LIMIT 1", []).num_rows:
        return None
    return next((SlowLink(**row) for row in ask(_SLOW_LINK, [run, tool]).to_pylist()), None)


def _exchanges(ask: Ask, run: str, tool: str) -> Exchanges | None:
    """Return the matched communication kernels of a run under a tool, in ns since the epoch."""
    columns: list[list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = [[], [], [], [], []]
    calls = groups = 0
    for execution in executions(ask):
        if (execution.run, execution.tool) != (run, tool):
            continue
        for matched in execution.matched:
            place = matched.place
            values = (wide(matched.call) + calls, np.full(len(place), groups), wide(execution.calls.rank(place)),
                      execution.calls.start[place], execution.calls.end[place])
            for column, value in zip(columns, values, strict=True):
                column.append(np.asarray(value, np.int64))
            calls, groups = calls + matched.calls, groups + 1
    if not calls:
        return None
    found = Exchanges(*(np.concatenate(column) for column in columns))
    order = np.lexsort((found.start, found.rank))
    return Exchanges(*(column[order] for column in found))


def _awaited(ask: Ask, run: str, tool: str) -> Awaited:
    """Return the waits in sends and receives of a run under a tool, in ns since the epoch."""
    rank, start, length = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    kernels: list[str] = []
    whom: list[OtherEnd] = []
    for execution in executions(ask):
        found = ends(ask, execution)
        if (execution.run, execution.tool) != (run, tool) or not len(found.place):
            continue
        names = execution.kinds["short_name"].take(execution.calls.kind[found.place]).to_pylist()
        kernels += [name or "" for name in names]
        whom += [OtherEnd("rank", peer) if stage is None else OtherEnd("stage", stage)
                 for peer, stage in zip(found.peer.tolist(), found.stages(found.peer), strict=True)]
        rank.append(found.rank)
        start.append(execution.calls.start[found.place])
        length.append(found.wait)
    ranks, starts, lengths = (np.concatenate(column) for column in (rank, start, length))
    order = np.lexsort((starts, ranks))
    return Awaited(ranks[order], starts[order], (starts + lengths)[order], [kernels[place] for place in order.tolist()],
                   [whom[place] for place in order.tolist()])
