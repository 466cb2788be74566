"""The page of `nsightlens compare` of runs: the difference in a sentence, their trees side by side, what else differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nsightlens.diagnosis import difference_words as words
from nsightlens.diagnosis.difference import OTHERS, Difference, Line
from nsightlens.diagnosis.verdict import COMMUNICATION, COMPUTING
from nsightlens.names.distinct import shortened
from nsightlens.pages.query import Row
from nsightlens.pages.section import NAME, PARAGRAPH, Bars, Section, listed
from nsightlens.pages.tables import Column
from nsightlens.terminal.command import Command
from nsightlens.views.figures import MISSING, counted, duration, number
from nsightlens.views.node_names import NODE_NAMES

if TYPE_CHECKING:
    from nsightlens.store.comparison import Comparison
    from nsightlens.terminal.text import Text

ONE_MORE = ("To add one: ", Command("ingest", ("AGAIN", ("--run", "NAME"))), ".")
_HEAD = 16
_LEAVES, _KERNELS, _ITEMS = 3, 8, 12
_WORTH_PCT, _KERNEL_PCT = 0.5, 0.1
"""Shares of the window from which on a part, and a kernel, has a line for its change."""
_HALF, _SHORTEST_HALF = 8, 3
_WANTED = {"GPU": "GPU", "GPU core clock (MHz)": "clocks", "tool version": "tool version", "driver_version": "driver",
           "operators": "operators", "shapes of operators": "shapes (and so the batch size)", "steps captured": "",
           "launches without a kernel": "lost kernels"}
"""What is compared before no difference is said, as people call it."""
_WANTED_OF_NCU = {"GPU": "GPU", "ncu clock control": "clock control", "tool version": "tool version", "kernels": "kernels",
                   "launch configurations": "launch configurations", "launches": "launches"}


def sections(
    compared: Comparison, recorded: Sequence[Row] = (), by: str | None = None, *, is_stored: bool = False,
) -> list[Section]:
    """Return the page. recorded: rows of the view recordings; by: of what the table differences is; is_stored: whether these
    are runs of a store, which commands can ask."""
    found, first = compared.found, Section(lines=listed([" ".join(compared.first)], PARAGRAPH))
    if found is None:
        short = shortened(compared.runs, _HEAD)
        heads = [short[run] for run in compared.runs]
        return [first, counters(compared["counters"].to_pylist(), heads),
                comparability(compared["comparability"].to_pylist(), heads, _WANTED_OF_NCU),
                Section("How certain?", lines=listed([compared.certainty]))]
    page = [first, trees(found)]
    if len(found.sides) > 2:
        return page
    doubts = same_pids(recorded, found.sides[0].tool)
    alone = all(len(side.recordings) == 1 for side in found.sides)
    certain: Text = (f"{compared.certainty} ", *ONE_MORE) if alone and is_stored else compared.certainty
    return [*page, *([] if found.are_apart else kernels(found, is_stored)), *items(compared, _heads(found), by),
            comparability(compared["comparability"].to_pylist(), _heads(found)),
            Section("How certain?", lines=listed([certain, *doubts]))]


def _heads(found: Difference) -> list[str]:
    """Return what the columns of the runs are called."""
    short = shortened([side.run for side in found.sides], _HEAD)
    return [short[side.run] for side in found.sides]


def trees(found: Difference) -> Section:
    """Return the trees side by side: window, branches, and the leaves that changed most; kernels have a table of their own."""
    lines = list(_worth(found))
    depths = [len(line.path) - line.is_outside for line in lines]
    names = ["  " * depth + _named(found, line) for depth, line in zip(depths, lines, strict=True)]
    columns: tuple[Column | Bars, ...] = (
        Column("part", names, 9, text=True, flexible=True, shortest=NAME),
        *(Column(head, [duration(line.ns[at]) for line in lines], 7) for at, head in enumerate(_heads(found))),
        Column("last - first" if len(found.sides) > 2 else "difference", [words.signed(line.difference) for line in lines], 8),
        _signed_bars([line.difference for line in lines]),
    )
    return Section("Where the time went", f"{found.sides[0].tool}, {words.unit(found)}", columns)


def _worth(found: Difference) -> list[Line]:
    """Return the lines that are shown, each before its parts."""
    whole = max(found.whole.ns)
    shown: dict[tuple[str, ...], Line] = {(): found.whole}
    for branch in found.below(()):
        if not any(branch.ns):
            continue
        shown[branch.path] = branch
        if branch.path[0] == COMPUTING:
            continue
        least = _WORTH_PCT * max(whole, 10 * max(branch.ns) if branch.is_outside else 0) / 100
        for leaf in [leaf for leaf in found.below(branch.path) if abs(leaf.difference) >= least][:_LEAVES]:
            shown[leaf.path] = leaf
            shown |= {name.path: name for name in found.below(leaf.path)[:1]
                      if 2 * abs(name.difference) > abs(leaf.difference) and name.path[-1] != OTHERS}
    return list(shown.values())


def _named(found: Difference, line: Line) -> str:
    if not line.path:
        return found.called if found.per_step else "window"
    if line.path[0] == COMMUNICATION and len(line.path) == 2:
        return words.called(line)
    return NODE_NAMES.get(line.path[-1], line.path[-1])


def kernels(found: Difference, is_stored: bool = False) -> list[Section]:
    """Return the computing kernels that changed most, those with them that are new, gone, or renamed for the same operators and
    shapes; the tree has those of communication."""
    every = found.below((COMPUTING,))
    least = _KERNEL_PCT * max(found.whole.ns) / 100
    changed = sorted((line for line in every if abs(line.difference) >= least or _state(line)),
                     key=lambda line: (-abs(line.difference), line.path))
    shown = [line for line in changed if max(line.ns) >= least][:_KERNELS]
    if not shown:
        return []
    heads = _heads(found)
    names = [line.names[-1] or line.names[0] or "" for line in shown]
    columns = (
        Column("kernel", names, 9, text=True, flexible=True, shortest=NAME, kernels=names),
        *(Column(head, [duration(line.ns[at]) for line in shown], 7) for at, head in enumerate(heads)),
        Column("difference", [words.signed(line.difference) for line in shown], 8),
        Column("launches", [_launches(line) for line in shown], 4),
        Column("", [_state(line) for line in shown], 5, text=True, flexible=True, shortest=12),
    )
    more = len(changed) - len(shown)
    base, other = found.sides
    show = Command("show", ("tree_difference", f"base={base.run}", f"other={other.run}"))
    what = f"{counted(more, 'other kernel')} changed, and {counted(len(every) - len(changed), 'kernel')} by less than " \
        f"{_KERNEL_PCT:g} % of the {found.called if found.per_step else 'window'}"
    said: list[Text] = [(f"{what}: ", show) if is_stored else f"{what}."] if more else []
    return [Section("Kernels", "computing", columns, listed(said))]


def _launches(line: Line) -> str:
    before, after = (MISSING if count is None else f"{round(count, 1):,.10g}" for count in (line.counts[0], line.counts[-1]))
    return before if before == after else f"{before} > {after}"


def _state(line: Line) -> str:
    before, after = line.names[0], line.names[-1]
    if before is None or after is None:
        return "new" if before is None else "gone"
    return f"was {before}" if before != after else ""


def items(compared: Comparison, heads: Sequence[str], by: str | None) -> list[Section]:
    """Return the kernels, operators, modules or phases that changed most, by means over recordings, where they are asked for."""
    if by is None or "differences" not in compared:
        return []
    rows = compared["differences"].to_pylist()
    base, other = compared.runs
    shown = [row for row in rows if row["difference_ns"]][:_ITEMS]
    several = rows and rows[0]["base_recordings"] + rows[0]["other_recordings"] > 2
    columns = (
        Column(by, [row["item"] or f"(no {by} known)" for row in shown], 9, text=True, flexible=True, shortest=NAME,
               kernels=[row["item"] if by in ("kernel", "key") else None for row in shown]),
        *(Column(head, [duration(row[name]) for row in shown], 7)
          for head, name in zip(heads, ("base_ns", "other_ns"), strict=True)),
        Column("difference", [words.signed(row["difference_ns"]) for row in shown], 8),
        Column("95 % interval", [_interval(row) for row in shown], 4),
        Column("verdict" if several else "", [row["verdict"] if several else "" for row in shown], 6, text=True),
    ) if shown else ()
    show = all_of(by, base, other)
    more = sum(bool(row["difference_ns"]) for row in rows) - len(shown)
    lines = listed([(f"{number(more)} more: ", show)] if more else [] if shown else ["Nothing changed."])
    return [Section(f"What changed, by {by}", f"mean {rows[0]['unit'] if rows else ''} of all steps", columns, lines)]


def all_of(item_kind: str, base: str, other: str) -> Command:
    """Return the command that shows all differences of items."""
    return Command("show", ("run_difference", f"by={item_kind}", f"base={base}", f"other={other}"))


def _interval(row: Row) -> str:
    return MISSING if row["low_ns"] is None else f"{words.signed(row['low_ns'])} … {words.signed(row['high_ns'])}"


def counters(rows: list[Row], heads: Sequence[str]) -> Section:
    """Return the kernels that ncu measured, per launch: time and limit in both runs."""
    shown = rows[:_KERNELS]
    names = [row["kernel_key"] for row in shown]
    sides = tuple(zip(heads, ("base", "other"), strict=True))
    columns = (
        Column("kernel", names, 9, text=True, flexible=True, shortest=NAME, kernels=names),
        *(Column(head, [duration(row[f"{side}_ns"]) for row in shown], 8) for head, side in sides),
        Column("difference", [MISSING if (ns := row["difference_ns"]) is None else words.signed(round(ns)) for row in shown], 7),
        Column("limit", [_both(row, "limit") for row in shown], 6, text=True, flexible=True),
        Column("grid of block", [_both(row, "configuration") for row in shown], 4, text=True, flexible=True),
        Column("launches", [_both(row, "launches") for row in shown], 3),
    )
    more = len(rows) - len(shown)
    return Section("Kernels", "ncu, of a mean launch", columns, listed([f"{counted(more, 'kernel')} more."] if more else []))


def _both(row: Row, name: str) -> str:
    before, after = (MISSING if row[f"{side}_{name}"] is None else str(row[f"{side}_{name}"]) for side in ("base", "other"))
    return before if before == after else f"{before} > {after}"


def comparability(rows: list[Row], heads: Sequence[str], wanted: Mapping[str, str] = _WANTED) -> Section:
    """Return how the two runs differ in how they were made and in what they did, and what was not recorded."""
    differ = [row for row in rows if row["same"] is False]
    known = {row["property"] for row in rows if row["same"] is not None}
    unknown = [name for key, name in wanted.items() if name and key not in known]
    missing = [f"Not recorded, so not compared: {', '.join(unknown)}."] if unknown else []
    same = ", ".join(name for key, name in wanted.items() if name and any(
        row["property"] == key and row["same"] for row in rows))
    if not differ:
        known_same = f"; the same: {same}" if same else ""
        return Section("Comparable?", lines=listed([f"No known property differs{known_same}.", *missing]))
    columns = (
        Column("differs", [row["property"] for row in differ], 9, text=True),
        *(Column(head, [row[name] or MISSING for row in differ], 8, text=True, flexible=True)
          for head, name in zip(heads, ("base_value", "other_value"), strict=True)),
    )
    return Section("Comparable?", "", columns, listed([*([f"The same: {same}."] if same else []), *missing]))


def same_pids(rows: Sequence[Row], tool: str) -> list[str]:
    """Return which runs have recordings that may be of one process, and so vary less than starts of a program do."""
    seen = dict.fromkeys(row["run"] for row in rows if row["tool"] == tool and row["seen_pid"] is not None)
    return [f"Recordings of {' and of '.join(seen)} have one pid: if that is one process, they are parts of one execution, and "
            "vary less than executions do."] if seen else []


def _signed_bars(figures: Sequence[int]) -> Bars:
    """Return a bar for each figure, to the left (below 0) or right of a line, and none for the whole."""
    longest = max(map(abs, figures), default=0) or 1
    return Bars(((), *(((("█", figure / longest),)) for figure in figures[1:])), 1, _SHORTEST_HALF, _HALF, 0, is_signed=True)

