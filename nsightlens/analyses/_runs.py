"""The two runs of a comparison: those named, else the two that the store has."""

from __future__ import annotations

from nsightlens.analyses import Ask
from nsightlens.errors import UsageError
from nsightlens.terminal.command import Command

TIMELINE = ("nsys", "kineto")
"""Tools with a timeline, the least disturbing first."""
_RUNS = """
SELECT run, list(DISTINCT tool) AS tools FROM (SELECT run, tool FROM profiles UNION SELECT run, tool FROM kernels)
GROUP BY run ORDER BY run
"""


def named(ask: Ask, base: str | None, other: str | None) -> tuple[str, str]:
    """Return the two runs that are meant. Raises UsageError where the store does not have them."""
    tools_of = {row["run"]: row["tools"] for row in ask(_RUNS, []).to_pylist()}
    there, timed = list(tools_of), [run for run, tools in tools_of.items() if {*tools} & {*TIMELINE}]
    two = next((runs for runs in (there, timed) if len(runs) == 2), None)
    if base is None and other is None and two:
        return two[0], two[1]
    for run in (base, other):
        if run is None or run not in there:
            what = "name two runs (base, other)" if run is None else f"no run {run}"
            add = () if len(there) > 1 else (
                ". To add one: ", Command("ingest", ("CAPTURE", ("--run", "NAME"))), "; to compare the ranks of a run: ",
                Command("compare ranks"))
            raise UsageError((f"{what}; the store has {', '.join(there) or 'none'}", *add), subject="run", value=run,
                             choices=there)
    if base == other:
        raise UsageError(f"base and other are both {base}")
    return str(base), str(other)
