"""Report -> one page: its launches with exact values, and what it says of ncu and its settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nsightlens.errors import ReadError
from nsightlens.readers.ncu.log import LogFacts
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Floats, Ints
from nsightlens.readers.ncu.page import RULES, TEXTS, Entries, Launch, Page, codes_of, resolve, table_of
from nsightlens.readers.ncu_rep.blocks import FILE_VERSION, LAST_SEEN, Block, Layout, entries, layout
from nsightlens.readers.ncu_rep.results import Axes, Result, result
from nsightlens.readers.ncu_rep.wire import DamagedError

KIND = "report"
_CASTS = re.compile(r"\((?:int|bool|long|short|char|unsigned \w+)\)(?=\d)")
_NAMESPACES = re.compile(r"(?:\b[A-Za-z_]\w*::)+[<\[]?")
_GRID, _BLOCK, _THREADS, _DEVICE = "launch__grid_size", "launch__block_size", "launch__thread_count", "launch__device_id"


@dataclass(slots=True)
class _LaunchValues:
    """What the launches of a report have in common columns: of each counter the launch, the number of its name, the value."""

    launches: list[Launch] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    ids: list[Ints] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    texts: list[tuple[int, str, str]] = field(default_factory=list)
    rules: list[tuple[object, ...]] = field(default_factory=list)
    sections: dict[str, None] = field(default_factory=dict)


def report_page(path: Path, notes: Notes) -> tuple[Page, LogFacts]:
    """Return the launches of a report and the facts in it. Raises ReadError where it has no whole launch."""
    head = layout(path, notes)
    found = _LaunchValues()
    known = {name: number for number, name in reversed(list(enumerate(head.names)))}
    for block, number, data in entries(path, head, notes):
        try:
            one = result(data)
        except DamagedError as exc:
            notes.add("launch_damaged", f"{exc}, in the block at byte {block.offset:,}", offset=block.offset)
            continue
        _add(one, block, number, head, known, found, notes)
    _tell(head, len(found.launches), notes)
    if not found.launches:
        raise _without_launch(path, notes)
    page = Page(KIND, found.launches, *_entries(found, head.names, notes), texts=table_of(TEXTS, _columns(found.texts, 3)),
                rules=table_of(RULES, _columns(found.rules, len(RULES))), sections=tuple(found.sections),
                rows=len(found.launches))
    settings = head.settings
    return page, LogFacts(head.ncu, settings.get("clock-control"), settings.get("cache-control"), (), (),
                          settings.get("replay-mode"))


def printed_name(launch: Launch) -> str | None:
    """Return the name of a launch as the CSV pages print it by default: without namespaces and casts."""
    return launch.name and _NAMESPACES.sub("", _CASTS.sub("", launch.name))


def _add(one: Result, block: Block, number: int, head: Layout, known: dict[str, int], found: _LaunchValues, notes: Notes) -> None:
    at = len(found.launches)
    counters = dict(zip(one.ids, one.values, strict=True))
    grid = _grid_in_blocks(one, *(counters.get(known.get(name, -1)) for name in (_GRID, _THREADS)))
    for what, axes, name in (("grid", grid, _GRID), ("block", one.block, _BLOCK)):
        size = counters.get(known.get(name, -1))
        if axes and size is not None and size != _product(axes):
            notes.add("launch_inconsistent", f"{what} {axes}, {name} {size:g}")
    only = next(iter(head.devices)) if len(head.devices) == 1 and known.get(_DEVICE) not in counters else None
    found.launches.append(Launch(block.pid, number, one.name, _printed(grid), _printed(one.block), block.process,
                                 context=_text(one.context), stream=_text(one.stream), device=_text(only), nvtx=one.nvtx,
                                 mangled=one.mangled or None, function=one.function or None))
    found.counts.append(len(one.ids))
    found.ids.append(np.array([min(name, len(head.names)) for name in one.ids], dtype=np.int64))
    found.values.append(np.array(one.values, dtype=np.float64))
    found.texts += [(at, head.names[name], text) for name, text in one.texts.items() if name < len(head.names)]
    notes.add("metric_unnamed", "", sum(name >= len(head.names) for name in one.texts))
    notes.add("metric_not_available", "no value in the report", one.absent)
    notes.add("instances_dropped", "", one.instances)
    found.rules += [(at, *rule) for rule in one.rules]
    found.sections |= dict.fromkeys(one.sections)


def _grid_in_blocks(one: Result, blocks: float | None, threads: float | None) -> Axes | None:
    """Return the grid: ncu 2020.1 and 2020.2 state it in threads, as their own counters tell."""
    grid, block = one.grid, one.block
    if grid is None or block is None or 0 in block or _product(grid) == blocks or _product(grid) != threads:
        return grid
    return grid[0] // block[0], grid[1] // block[1], grid[2] // block[2]


def _product(axes: Axes) -> int:
    return axes[0] * axes[1] * axes[2]


def _printed(axes: Axes | None) -> str | None:
    """Return a grid or block as the CSV pages print it."""
    return None if axes is None else f"({axes[0]}, {axes[1]}, {axes[2]})"


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _columns(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [[row[i] for row in rows] for i in range(width)]


def _entries(found: _LaunchValues, names: list[str], notes: Notes) -> tuple[Entries, Callable[[], Floats]]:
    """Return the counters by launch and name, each once, and their steps: 0, for they are exact."""
    ids, values = np.concatenate(found.ids), np.concatenate(found.values)
    launch = np.repeat(np.arange(len(found.counts)), found.counts)
    named, finite = ids < len(names), np.isfinite(values)
    notes.add("metric_unnamed", "", int((~named).sum()))
    notes.add("metric_not_finite", "nan or inf", int((~finite).sum()))
    keep = named & finite
    used, place = np.unique(ids[keep], return_inverse=True)
    distinct, code = codes_of([names[number] for number in used.tolist()])
    metric, value, launch = code[place.reshape(-1)], values[keep], launch[keep]
    kept, lost = resolve(launch * max(len(distinct), 1) + metric, value, np.zeros(len(value)))
    notes.add("metric_conflict", str(distinct[metric[lost[0]]]) if len(lost) else "", len(lost))
    entries = Entries.of(distinct, len(found.counts), launch[kept], metric[kept], value[kept])
    return entries, lambda: np.zeros(len(kept))


def _tell(head: Layout, launches: int, notes: Notes) -> None:
    """Note what is new to us in a report, and what of its settings is not certain."""
    notes.add("untested_version", f"file version {head.version}", int(head.version != FILE_VERSION))
    release = tuple(int(part) for part in (head.ncu or "").split(".")[:2] if part.isdecimal())
    notes.add("untested_version", f"ncu {head.ncu}", int(release > LAST_SEEN))
    notes.add("range_results", "", head.range_results)
    notes.add("settings_by_default", "", launches if head.guessed else 0)


def _without_launch(path: Path, notes: Notes) -> ReadError:
    damage = next((notes.details[code] for code in ("report_damaged", "launch_damaged") if code in notes.details), None)
    if damage:
        todo = "Copy it again, or profile again"
        return ReadError(path, f"a report of ncu without a whole launch ({damage})", todo, "truncated")
    if "range_results" in notes.counts:
        return ReadError(path, "a report of ncu with nothing but results of ranges, which are not read",
                         "Profile with --replay-mode kernel or application", "unsupported_format")
    todo = "Check the filters (--kernel-name, --launch-skip, --launch-count, --nvtx-include), and profile again"
    return ReadError(path, "a report of ncu in which no kernel was profiled", todo, "no_kernels")
