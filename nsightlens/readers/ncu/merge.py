"""Pages of one report -> the report: each launch once, its metrics united, contradictions counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Floats, Ints
from nsightlens.readers.ncu.page import RULES, TEXTS, Entries, Launch, Name, Page, codes_of, resolve, table_of


@dataclass(frozen=True, slots=True)
class NcuReport:
    """The launches of a report with their metric values (sorted by launch), texts and rules; `steps` as in Page.

    shared: launches that several pages have. conflicts: values of them that differ by more than the printed digits.
    untimed: as in Page, of any page.
    """

    launches: list[Launch]
    entries: Entries
    steps: Callable[[], Floats]
    scaled: bool
    texts: pa.Table
    rules: pa.Table
    sections: tuple[str, ...]
    shared: int
    conflicts: int
    untimed: frozenset[int] = frozenset()


def merge(pages: Sequence[Page], notes: Notes) -> NcuReport:
    """Return the union of pages; where two print a value of one metric, the first or, if they agree, the more precise."""
    if not pages:
        nothing = np.zeros(0, dtype=np.int64)
        entries = Entries.of([], 0, nothing, nothing, nothing.astype(np.float64))
        return NcuReport([], entries, lambda: entries.value, False, TEXTS.empty_table(), RULES.empty_table(), (), 0, 0)
    launches, positions = _launches(pages)
    sections = tuple(dict.fromkeys(section for page in pages for section in page.sections))
    scaled = any(page.scaled for page in pages)
    untimed = frozenset(at for page, found in zip(pages, positions, strict=True) for at in found[page.untimed].tolist())
    shared = sum(count > 1 for count in Counter(p for found in positions for p in set(found.tolist())).values())
    if len(pages) == 1:
        page = pages[0]
        return NcuReport(launches, page.entries, page.steps, scaled, page.texts, page.rules, sections, 0, 0, untimed)
    entries, step, lost = _entries(pages, positions, len(launches))
    texts, lost_texts = _texts(pages, positions)
    if lost or lost_texts:
        notes.add("metric_conflict", (lost or lost_texts)[0], len(lost) + len(lost_texts))
    conflicts = len(lost) + len(lost_texts)
    rules = _rules(pages, positions)
    return NcuReport(launches, entries, lambda: step, scaled, texts, rules, sections, shared, conflicts, untimed)


def _launches(pages: Sequence[Page]) -> tuple[list[Launch], list[Ints]]:
    """Return all launches once, with what any page knows of each, and the position there of each page's launches."""
    found: list[Launch] = []
    position: dict[tuple[object, ...], int] = {}
    positions = []
    for page in pages:
        mine = []
        for launch in page.launches:
            at = position.setdefault(launch.key, len(found))
            if at == len(found):
                found.append(launch)
            elif found[at] != launch:
                known = {name: value for name, value in found[at]._asdict().items() if value is not None}
                found[at] = Launch(**{**launch._asdict(), **known})
            mine.append(at)
        positions.append(np.array(mine, dtype=np.int64))
    return found, positions


def _entries(pages: Sequence[Page], positions: Sequence[Ints], count: int) -> tuple[Entries, Floats, list[str]]:
    """Return the united entries, their steps, and the names of those left out."""
    all_names: list[Name] = [name for page in pages for name in page.entries.names]
    names, code = codes_of(all_names)
    starts = np.cumsum([0, *(len(page.entries.names) for page in pages)])
    metric = np.concatenate([code[start + page.entries.metric] for start, page in zip(starts, pages, strict=False)])
    launch = np.concatenate([at[page.entries.launch] for at, page in zip(positions, pages, strict=True)])
    value = np.concatenate([page.entries.value for page in pages])
    step = np.concatenate([page.steps() for page in pages])
    kept, lost = resolve(launch * len(names) + metric, value, step)
    left_out = [name if isinstance(name := names[m], str) else name.label for m in metric[lost].tolist()]
    return Entries.of(names, count, launch[kept], metric[kept], value[kept]), step[kept], left_out


def _texts(pages: Sequence[Page], positions: Sequence[Ints]) -> tuple[pa.Table, list[str]]:
    """Return the united texts, and the names of those that contradict an earlier page."""
    found: dict[tuple[int, str], str] = {}
    lost = []
    for page, at in zip(pages, positions, strict=True):
        for launch, metric, value in zip(*(page.texts[name].to_pylist() for name in TEXTS.names), strict=True):
            if found.setdefault((int(at[launch]), metric), value) != value:
                lost.append(metric)
    ordered = sorted(found)
    return table_of(TEXTS, [[key[0] for key in ordered], [key[1] for key in ordered], [found[key] for key in ordered]]), lost


def _rules(pages: Sequence[Page], positions: Sequence[Ints]) -> pa.Table:
    """Return the rule rows of all pages, each as often as the page that has it most often."""
    found: Counter[tuple[object, ...]] = Counter()
    for page, at in zip(pages, positions, strict=True):
        columns = [at[page.rules["launch"].to_numpy()].tolist(), *(page.rules[name].to_pylist() for name in RULES.names[1:])]
        found |= Counter(zip(*columns, strict=True))
    rows = sorted(found.elements(), key=lambda row: (row[0], *(str(cell) for cell in row[1:])))
    return table_of(RULES, [[row[i] for row in rows] for i in range(len(RULES))])
