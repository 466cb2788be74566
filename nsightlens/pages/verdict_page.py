"""The first part of a page on a run: what bounds it, what is worth most, the tree that says so, and what was not judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from nsightlens.names.kernel_names import labels
from nsightlens.pages import counter_sections
from nsightlens.pages.query import Page, Row
from nsightlens.pages.section import PARAGRAPH, Section, listed, more, some
from nsightlens.pages.tables import Column
from nsightlens.views.figures import counted, duration, number, share
from nsightlens.views.node_names import NODE_NAMES
from nsightlens.views.run_command import command_of

_Line = tuple[str, int, int, float | None, int | None]
"""Node, depth, ns, share and count of a line of the tree."""
_Sums = dict[tuple[str, ...], list[int]]
_OUTSIDE = ("start-up", "wind-down", "queued before the first GPU work")
_LEAVES, _DEEP = 3, 2
"""Leaves of a branch that are shown, and names of a leaf."""
_WORTH_PCT = 1
_LINES = 20


def told(asked: Page) -> list[Row]:
    """Return the rows of `verdict` by the first tool of the run: the least disturbing one with something to judge."""
    rows = asked.ask("verdict")
    return [row for row in rows if row["tool"] == rows[0]["tool"]]


def verdict(asked: Page) -> list[Section]:
    """Return what bounds the run, and whether captures are cut; then what is worth most."""
    rows, runs = told(asked), asked.store.values_of("run")
    said = [row["text"] for row in rows if row["kind"] == "verdict"] or [
        "Nothing to judge: no GPU work was recorded. Record while the program uses the GPU."]
    cut = [row["file"] for row in asked.ask("profile_overview") if row["truncated"] and row["events_lost"] != 0]
    if cut:
        said.append(f"{some(cut)} {'is' if len(cut) == 1 else 'are'} cut short: every figure lacks what was lost.")
    findings = [(row["text"], " ", command_of(row, runs)) if row["command"] else row["text"]
                for row in rows if row["kind"] == "finding"]
    limits = counter_sections.limits(counter_sections.measured(asked))
    first = Section(lines=listed([" ".join(said), *limits], PARAGRAPH))
    if not findings:
        return [first]
    every = [row for row in asked.ask("findings") if row["tool"] == rows[0]["tool"]]
    lines = (*listed(findings), *more(len(every) - len(findings), "findings"))
    return [first, Section("What to look at first", asked.note("verdict"), (), lines)]


def tree(asked: Page) -> list[Section]:
    """Return where the time of the window went, its largest branches first, and what was not judged."""
    rows_of_tool = told(asked)
    tool = rows_of_tool[0]["tool"] if rows_of_tool else None
    failed = listed(f"not judged: {text}" for text in list(dict.fromkeys(
        row["text"] for row in rows_of_tool if row["kind"] == "condition"))[:_LEAVES])
    rows = [row for row in asked.ask("time_tree") if row["tool"] == tool]
    if not rows:
        return [Section(lines=failed)] if failed else []
    sums, whole = _summed(rows)
    shown = list(_labelled(largest_parts(rows)))
    columns = (
        Column("part", ["  " * depth + NODE_NAMES.get(node, node) for node, depth, *_ in shown], 9, text=True, flexible=True),
        Column("time", [duration(ns) for _, _, ns, _, _ in shown], 8),
        Column("share", [share(pct) for _, _, _, pct, _ in shown], 7),
        Column("count", [number(count) for *_, count in shown], 2),
    )
    window = "; ".join(filter(None, (_of(rows), _aside(sums, whole))))
    return [Section("The judged window", asked.note("time_tree", str(tool), window), columns, failed)]


def _of(rows: Sequence[Row]) -> str:
    """Return what the window is."""
    windows = [row for row in rows if row["depth"] == 0 and row["node"] == "window"]
    steps = sum(row["count"] or 0 for row in windows)
    what = counted(steps, "steady step") if all(row["count"] for row in windows) else "first to last GPU work"
    return what if len(windows) == 1 else f"{what}, {len(windows)} GPUs or ranks summed"


def _summed(rows: Iterable[Row]) -> tuple[_Sums, int]:
    """Return the ns and counts of all trees as one, by path, and the ns of their windows."""
    sums: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    paths: dict[tuple[object, ...], dict[int, tuple[str, ...]]] = defaultdict(dict)
    whole = 0
    for row in rows:
        of_tree = paths[row["profile_id"], row["window_index"], row["device_id"]]
        if row["row_index"] == 0:
            whole += row["total_ns"]
            of_tree[0] = ()
            continue
        path = (*of_tree.get(row["parent_index"], ()), row["node"])
        of_tree[row["row_index"]] = path
        sums[path][0] += row["total_ns"]
        sums[path][1] += row["count"] or 0
    return sums, whole


def _is_aside(path: tuple[str, ...], ns: int, whole: int) -> bool:
    """Return whether a branch lies outside of the window, and is too short beside it for lines of its own."""
    return len(path) == 1 and path[0] in _OUTSIDE and 100 * ns < _WORTH_PCT * whole


def _aside(sums: _Sums, whole: int) -> str:
    """Return what lies outside of the window and has no lines."""
    outside = [f"{path[0]} {duration(ns)}" for path, (ns, _) in sums.items() if ns and _is_aside(path, ns, whole)]
    return f"outside of it: {', '.join(outside)}" if outside else ""


def _tree_lines(sums: _Sums, whole: int) -> Iterator[_Line]:
    """Yield node, depth, ns, share and count of the lines of all trees as one."""
    for path in sorted((path for path in sums if len(path) == 1), key=lambda path: (path[0] in _OUTSIDE, -sums[path][0])):
        ns, count = sums[path]
        if not ns or _is_aside(path, ns, whole):
            continue
        is_outside = path[0] in _OUTSIDE
        yield path[0], 0, ns, None if is_outside or not whole else 100 * ns / whole, count or None
        yield from _below(path, sums, whole, is_outside)


def largest_parts(rows: Iterable[Row]) -> list[_Line]:
    """Return node, depth, ns, share and count of as many lines of all trees as one as a page has room for.

    The deepest go first, of these the shortest times.
    """
    lines = list(_tree_lines(*_summed(rows)))
    by_worth = sorted(range(len(lines)), key=lambda place: (lines[place][1], -lines[place][2]))
    return [lines[place] for place in sorted(by_worth[:_LINES])]


def _labelled(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the lines with kernels by their labels, as all tables have them."""
    branch = ""
    of_kernels = []
    for node, depth, *_ in lines:
        branch = branch if depth else node
        of_kernels.append(depth > 0 and branch in ("computing", "communication"))
    named = labels(sorted({line[0] for line, is_kernel in zip(lines, of_kernels, strict=True) if is_kernel}))
    for line, is_kernel in zip(lines, of_kernels, strict=True):
        yield (named[line[0]], *line[1:]) if is_kernel else line


def _below(path: tuple[str, ...], sums: _Sums, whole: int, is_outside: bool) -> Iterator[_Line]:
    """Yield the lines below one, as long as they are worth a line."""
    inner = sorted((each for each in sums if len(each) == len(path) + 1 and each[:-1] == path and each[-1] != "others"),
                   key=lambda each: -sums[each][0])
    least = _WORTH_PCT * (sums[path[:1]][0] if is_outside else whole) / 100
    for each in inner[:_LEAVES if len(path) == 1 else 1]:
        ns, count = sums[each]
        if ns < least:
            break
        yield each[-1], len(path), ns, None if is_outside or not whole else 100 * ns / whole, count or None
        if len(path) < _DEEP:
            yield from _below(each, sums, whole, is_outside)


