"""Tools that judge: what bounds a run, what changed between two, which rank is late, and how far the captures can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.gate.check import Asked, check_sides
from nsightlens.mcp.answers import Answer, call_of
from nsightlens.pages import api, verdict_page
from nsightlens.pages.envelope import About, judged_windows, window_of
from nsightlens.store.comparison import RunPlace, compare_two_runs
from nsightlens.store.filter_values import confirm
from nsightlens.terminal.command import Argument, Command

if TYPE_CHECKING:
    from nsightlens.mcp.session import Session

_VERDICT = ("run", "tool", "kind", "cause", "subject", "total_ns", "share_pct", "winnable_ns", "text")
_OF_TREE = ("other_run", "unit", "node", "depth", "state", "base_ns", "other_ns", "difference_ns", "low_ns", "high_ns",
            "change_pct")
_OF_CHECK = {"questions": ("item", "verdict", "limit", "unit", "base", "candidate", "change", "low", "high")}
_DEEP = 2
_TREE = pa.schema([("run", pa.string()), ("tool", pa.string()), ("node", pa.string()), ("depth", pa.int32()),
                   ("total_ns", pa.int64()), ("share_pct", pa.float64()), ("count", pa.int64())])
_OF_RANKS = ("straggler", "communicator_summary", "rank_balance", "rank_clock")


def summary(session: Session, run: str | None = None, tool: str | None = None) -> Answer:
    """Say what bounds a run and by how much: the verdict and its findings, and the tree in which each ns of the judged window
    has one cause, summed over ranks. Tools saw the same work: never add their times up. total_ns of a finding is how long it
    takes, not what curing it wins: that is winnable_ns where it is known, and headroom has it for faster kernels.
    """
    store = session.store
    wanted = {name: value for name, value in (("run", run), ("tool", tool)) if value is not None}
    confirm(store.values_of, wanted, "{}")
    asked = {f"only_{name}": value for name, value in wanted.items()}
    verdict, trees = store.view("verdict", **asked), store.view("time_tree", **asked)
    rows = [row for row in verdict.to_pylist() if row["tool"] == _first_tool(verdict, row["run"])]
    said = [{**row, "text": _with_call(row)} for row in rows if row["kind"] != "condition"]
    conditions = list(dict.fromkeys(f"not judged: {row['text']}" for row in rows if row["kind"] == "condition"))
    judged = {(row["run"], row["tool"]) for row in rows}
    lines = [dict(zip(_TREE.names, (*of, *line), strict=True)) for of in sorted(judged) for line in _tree(trees, *of)]
    windows = [each for each in judged_windows(trees) if (each["run"], each["tool"]) in judged]
    first = pa.Table.from_pylist(said, verdict.schema).select(list(_VERDICT))
    return Answer(
        Command("summary", _options(wanted)), {"verdict": first, "tree": pa.Table.from_pylist(lines, _TREE)},
        About("summary", window={**window_of(wanted), "judged": windows}, not_recorded=lambda: conditions),
        more="show findings or time_tree, or name a run")


def _with_call(row: dict[str, Any]) -> str:
    """Return the sentence of a verdict or a finding, with the call that goes with it."""
    return f"{row['text']} {call_of(Command.of(row['command']))}" if row["command"] else str(row["text"])


def _first_tool(verdict: pa.Table, run: str) -> str:
    """Return the tool that disturbs least, of those with something to judge: the first of a run."""
    return next(str(row["tool"]) for row in verdict.select(["run", "tool"]).to_pylist() if row["run"] == run)


def _tree(trees: pa.Table, run: str, tool: str) -> list[tuple[Any, ...]]:
    return verdict_page.largest_parts(row for row in trees.to_pylist() if (row["run"], row["tool"]) == (run, tool))


def compare_runs(
    session: Session, base: str | None = None, other: str | None = None, by: str = "kernel", tool: str | None = None,
) -> Answer:
    """Say what changed from run base to run other: the sentence (notes), how certain it is, the difference of their trees, what
    else differs, and what changed by kernel, key, family, op, module, phase or step (by).
    """
    store = session.store
    found = compare_two_runs(store, base, other, by=by, time=tool)
    return Answer(
        Command("compare", (*found.runs, ("--by", by), *_options({"tool": tool}))),
        {name: _changed(session, name, table) for name, table in found.items()},
        About("compare-runs", window={"run": list(found.runs)}, certainty=found.certainty or None, notes=lambda: found.first),
        more=f"show tree_difference or run_difference, with base={found.runs[0]}, other={found.runs[1]}")


def _changed(session: Session, name: str, table: pa.Table) -> pa.Table:
    """Return of a tree its first levels, and of all tables the columns that say most."""
    if name == "tree":
        table = table.filter(pc.less_equal(table["depth"], _DEEP))
    first = {"tree": _OF_TREE, "differences": session.store.views["run_difference"].first}.get(name, table.column_names)
    return table.select([column for column in first if column in table.column_names])


def check(session: Session, base: list[str], candidate: list[str]) -> Answer:
    """Say whether the runs of candidate became slower than those of base: ok, slower, undecided or not comparable (notes, the
    verdict first), by step time and slow steps, with the intervals. One recording a side is always undecided.
    """
    for run in (*base, *candidate):
        confirm(session.store.values_of, {"run": run}, "{}")  # nothing else of the file system is read
    before, after = ([RunPlace(session.store, run, run) for run in side] for side in (base, candidate))
    found = check_sides(before, after, Asked())
    sides = (("--base", run) for run in base), (("--candidate", run) for run in candidate)
    return Answer(
        Command("check", tuple(option for side in sides for option in side)),
        {name: table.select(list(_OF_CHECK.get(name, table.column_names))) for name, table in found.items()
         if name in ("verdict", "questions", "kernels")},
        About("check", window={"run": [*base, *candidate]}, notes=lambda: found.sentences),
        more="show tree_difference, with base and other")


def compare_ranks(session: Session, run: str | None = None, tool: str | None = None) -> Answer:
    """Say which rank the others wait for in collectives and by how much, which process group is slow, how accurate the clocks of
    the ranks are, and what takes longer on some ranks than on others. In straggler a rank is late by what it came behind the one
    before it: of ranks that are late together, summary has the time.
    """
    wanted = {name: value for name, value in (("run", run), ("tool", tool)) if value is not None}
    pages = api.ranks(session.store, dict(wanted))
    tables = {name: _first_columns(session, name, pages[name]) for name in _OF_RANKS if name in pages}
    return Answer(Command("compare ranks", _options(wanted)), tables, About("compare-ranks", window=window_of(wanted)),
                  more="show this view")


def _first_columns(session: Session, view: str, table: pa.Table) -> pa.Table:
    """Return the columns of a view that are asked for first."""
    return table.select(list(dict.fromkeys(["run", "tool", *session.store.views[view].first])))


def diagnostics(session: Session, run: str | None = None) -> Answer:
    """Say how far the captures can be trusted: what was lost, cut, guessed or refused, and how much GPU time is attributed."""
    store = session.store
    wanted = {} if run is None else {"run": run}
    confirm(store.values_of, wanted, "{}")
    asked = {f"only_{name}": value for name, value in wanted.items()}
    return Answer(
        Command("summary", _options(wanted)),
        {"diagnostic_summary": store.view("diagnostic_summary", **asked),
         "attribution": _attributed(store.view("attribution_coverage", **asked))},
        About("summary", window=window_of(wanted)), more="show diagnostic_summary or attribution_coverage")


def _attributed(coverage: pa.Table) -> pa.Table:
    """Return how much GPU time is attributed to what, summed over ranks."""
    sums = coverage.group_by(["run", "tool", "attributed_to"], use_threads=False).aggregate(
        [("gpu_ns", "sum"), ("all_gpu_ns", "sum")])
    return sums.rename_columns(["run", "tool", "attributed_to", "gpu_ns", "all_gpu_ns"])


def _options(values: dict[str, str | None] | dict[str, str]) -> tuple[Argument, ...]:
    return tuple((f"--{name}", value) for name, value in values.items() if value is not None)
