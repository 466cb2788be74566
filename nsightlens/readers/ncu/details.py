"""Cells of a long table -> Page: what each kind of row means, and one value per launch and metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.readers.ncu import labels
from nsightlens.readers.ncu.long import Kind, LongCells
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Floats, Ints, parse
from nsightlens.readers.ncu.page import (
    TEXTS,
    Entries,
    Label,
    Name,
    Page,
    codes_of,
    distinct,
    is_untimed,
    occurring,
    resolve,
    table_of,
)
from nsightlens.readers.ncu.units import base_unit


def page(cells: LongCells, decimal: str) -> Page:
    """Return what the rows say, under the decimal sign of their file."""
    notes = Notes()
    launch, codes = cells.launch, cells.codes
    parsed = parse(cells.texts, decimal, notes, np.bincount(codes, minlength=len(cells.texts)))
    exponents = _exponents(cells.kinds, cells.kind, notes)
    meanings = _Meanings.of(cells)
    value, step = parsed.doubles(codes, exponents), parsed.steps(codes, exponents)
    entries, steps = _entries(meanings, len(cells.launches), launch, value, step, notes)
    text = np.flatnonzero(parsed.is_text[codes])
    names = [meanings.text_name(code) for code in meanings.codes[text].tolist()]
    texts = table_of(TEXTS, [launch[text], names, cells.texts.take(pa.array(codes[text]))])
    sections = tuple(dict.fromkeys(section for section, *_ in cells.kinds))
    rows = len(launch) + cells.rules.num_rows
    scaled = bool(exponents.any())
    return Page(cells.page, cells.launches, entries, lambda: steps, scaled, texts, cells.rules, sections, rows, notes,
                meanings.untimed(launch, np.isfinite(value)))


def _exponents(kinds: list[Kind], kind: Ints, notes: Notes) -> Ints:
    """Return the power of ten of each row."""
    units = [base_unit(unit) for _, _, _, unit in kinds]
    counts = np.bincount(kind, minlength=len(units)).tolist()
    for (_, _, _, printed), unit, count in zip(kinds, units, counts, strict=True):
        notes.add("unknown_unit", repr(printed), 0 if unit.known else count)
    return np.array([unit.exponent for unit in units], dtype=np.int64)[kind]


@dataclass(frozen=True, slots=True)
class _Meanings:
    """What rows stand for: per kind and compute capability the raw name (None: not certain) and the label; per row which."""

    raw: list[str | None]
    labels: list[Label]
    is_label: np.ndarray[Any, np.dtype[np.bool_]]
    codes: Ints

    @classmethod
    def of(cls, cells: LongCells) -> _Meanings:
        """Look every kind of row up once per compute capability."""
        capabilities = list(dict.fromkeys(one.cc for one in cells.launches))
        position = {cc: i for i, cc in enumerate(capabilities)}
        cc = np.array([position[one.cc] for one in cells.launches], dtype=np.int64)
        size = len(cells.kinds) * len(capabilities)
        present, codes = distinct(cells.kind * len(capabilities) + cc[cells.launch], size)
        raw: list[str | None] = []
        found: list[Label] = []
        for pair in present.tolist():
            section, body, label, unit = cells.kinds[pair // len(capabilities)]
            base = base_unit(unit).base
            raw.append(labels.raw_name(section, body, label, base, capabilities[pair % len(capabilities)]))
            found.append(Label(section, body or "", label, base))
        printed_raw = [name is not None and one.label.endswith((name, f"({name})")) for name, one in zip(raw, found, strict=True)]
        return cls(raw, found, ~np.array(printed_raw, dtype=np.bool_), codes)

    def untimed(self, launch: Ints, known: np.ndarray[Any, np.dtype[np.bool_]]) -> Ints:
        """Return the launches whose duration is `known`, but in a unit that is none of time."""
        odd = np.array([is_untimed(name, one.unit) for name, one in zip(self.raw, self.labels, strict=True)], dtype=np.bool_)
        return occurring(launch[odd[self.codes] & known])

    def text_name(self, code: int) -> str:
        """Return the raw name, or section and label."""
        return self.raw[code] or f"{self.labels[code].section} / {self.labels[code].label}"


def _entries(
    meanings: _Meanings, count: int, launch: Ints, value: Floats, step: Floats, notes: Notes,
) -> tuple[Entries, Floats]:
    """Return one value per launch and raw metric, and the rows that have no raw name; with their steps."""
    names, code = codes_of([name or "" for name in meanings.raw])
    metric, number = code[meanings.codes], np.isfinite(value)
    unmapped = np.array([name is None for name in meanings.raw], dtype=np.bool_)[meanings.codes] & number
    from_label = meanings.is_label[meanings.codes]
    # Values under raw names come first: a label that contradicts them was understood wrongly.
    rows = np.concatenate([np.flatnonzero(number & ~from_label), np.flatnonzero(number & from_label & ~unmapped)])
    kept, lost = resolve((launch * len(names) + metric)[rows], value[rows], step[rows])
    kept, lost = rows[kept], rows[lost]
    misread = np.sort(lost[from_label[lost]])
    _note(notes, "label_unmapped", meanings, np.flatnonzero(unmapped))
    _note(notes, "label_contradicted", meanings, misread)
    _note(notes, "metric_conflict", meanings, lost[~from_label[lost]])
    loose = np.sort(np.concatenate([np.flatnonzero(unmapped), misread]))
    found, label_code = _label_names(meanings, launch[loose], meanings.codes[loose])
    all_names, recode = codes_of([*names, *found])
    metric = np.concatenate([recode[metric[kept]], recode[len(names) + label_code] if len(loose) else loose])
    at = np.concatenate([kept, loose])
    order = np.lexsort((metric, launch[at])) if len(loose) else np.arange(len(at))
    at, metric = at[order], metric[order]
    return Entries.of(all_names, count, launch[at], metric, value[at]), step[at]


def _note(notes: Notes, code: str, meanings: _Meanings, rows: Ints) -> None:
    if len(rows):
        first = meanings.labels[int(meanings.codes[rows[0]])]
        notes.add(code, f"{first.section} / {first.label}", len(rows))


def _label_names(meanings: _Meanings, launch: Ints, codes: Ints) -> tuple[list[Name], Ints]:
    """Return names for rows without a raw name, numbered where a launch has several of one name, and the name of each row."""
    key = launch * (len(meanings.labels) + 1) + codes
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0)) if len(order) else order
    nth = np.empty(len(order), dtype=np.int64)
    nth[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    several = int(nth.max(initial=0)) + 1
    present, which = distinct(codes * several + nth, len(meanings.labels) * several)
    return [meanings.labels[p // several]._replace(nth=p % several) for p in present.tolist()], which
