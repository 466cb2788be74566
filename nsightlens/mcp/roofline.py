"""The tool with the points of the roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from nsightlens.errors import not_a_choice
from nsightlens.mcp.answers import MOST_ROWS, Answer
from nsightlens.pages.envelope import About
from nsightlens.pages.why_empty import why_empty
from nsightlens.terminal.command import Argument, Command

if TYPE_CHECKING:
    from nsightlens.mcp.session import Session

_TIMES = ("ncu", "nsys", "kineto")
_LEVELS = ("dram", "l2", "l1", "all")
_COLUMNS = ("run", "rank", "name", "launches", "level", "precision", "duration_ns", "time_grade", "work_source", "work_flop",
            "traffic_bytes", "achieved_flop_per_s", "arithmetic_intensity", "roof_pct", "not_plottable_reason")


def roofline(session: Session, kernel: str = "", time: str = "ncu", level: str = "dram", limit: int | None = None) -> Answer:
    """Return the points of kernels in the roofline, longest first: work, bytes, rate, intensity and share of the roof. kernel:
    part of its name. time: whose durations: ncu (replay), or nsys or kineto (undisturbed; time_grade says how certain the match
    is). level: of memory: dram, l2, l1 or all. The precision is the one with most operations.
    """
    for name, value, choices in (("time", time, _TIMES), ("level", level, _LEVELS)):
        if value not in choices:
            raise not_a_choice(None, name, value, choices)
    store = session.store
    view, asked = ("roofline", {}) if time == "ncu" else ("true_roofline", {"time": time})
    asked |= {"kernel": kernel} if kernel else {}
    table = store.view(view, **asked)
    points = [row for row in table.to_pylist() if row["is_main"] and level in (row["level"], "all")]
    columns = [column for column in _COLUMNS if column in table.column_names]
    chosen = pa.Table.from_pylist(points, table.schema).select(columns).sort_by([("duration_ns", "descending")])
    options: list[Argument] = [("--kernel", kernel)] if kernel else []
    about = About("roofline", window={},
                  not_recorded=lambda: [] if table.num_rows else why_empty(store, store.views[view], asked))
    return Answer(Command("roofline", (*options, ("--time", time), ("--level", level))), {"": chosen.slice(0, MOST_ROWS)}, about,
                  limit)
