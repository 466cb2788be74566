"""The runs of a store, judged once for all views that show it: collectives are matched here, and handed in as values."""

from __future__ import annotations

import numpy as np

from nsightlens.analyses import Ask, once
from nsightlens.analyses._executions import executions
from nsightlens.columns.arrays import wide
from nsightlens.diagnosis.judged import Judged, judged
from nsightlens.diagnosis.ranks import Exchanges


def judgements(ask: Ask) -> list[Judged]:
    """Return every run under every tool, judged."""
    return once(ask, _judgements)


def _judgements(ask: Ask) -> list[Judged]:
    return judged(ask, lambda run, tool: _exchanges(ask, run, tool))


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
