"""Label of ncu's details page -> raw metric name, where that is certain.

`labels.tsv` holds what NVIDIA's section files of 2025 say, one row per section, body item and label. It is made by
`tests/readers/test_ncu_labels.py SOURCE`, which drops labels that stand for more than one metric and folds the chart of
the tensor paths into rows with `*` (the path as printed) and `{path}` (the path as metrics spell it). The parts of a
throughput ("SM: Pipe Tensor Cycles Active") are spelled from their metrics by ncu itself, so that one row per
breakdown is enough.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from importlib import resources
from typing import NamedTuple

COMMAND_LINE = "Command line profiler metrics"

_RAW = re.compile(r"[A-Za-z0-9_:]+__[A-Za-z0-9_.:]+")
_BOTH = re.compile(r".* \(([A-Za-z0-9_:]+__[A-Za-z0-9_.:]+)\)", re.DOTALL)
_WITH_PATH = re.compile(r"(.*) \(((?:Src|Op):[^()]*)\)")
_PATH_GAPS = re.compile(r"[ :,]+")
_PART = re.compile(r"([A-Z][A-Z0-9]*): ([A-Z0-9][A-Za-z0-9]*(?: [A-Z0-9][A-Za-z0-9]*)*)")
_ANY_PART = "{UNIT}: {COMPOUND_NAME}"
_UNITS = {"L1": "l1tex", "L2": "lts"}
"""How ncu prints a unit in front of a part of a throughput, where that is not the unit in capitals."""
_UNIT_OF_PART = {"DRAM: Dram Sectors": "fbpa"}
"""The frame buffer partitions are printed as DRAM, too; this is the only metric of theirs that is part of a throughput."""


class _Meaning(NamedTuple):
    metric: str
    first_cc: int
    last_cc: int


@cache
def _table() -> dict[tuple[str, str, str], tuple[_Meaning, ...]]:
    """Return (section as displayed or its identifier, body item, label) -> the metrics it may mean."""
    found: dict[tuple[str, str, str], list[_Meaning]] = defaultdict(list)
    text = resources.files(__package__).joinpath("labels.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        identifier, display, body, label, metric, ranges = line.split("\t")
        for first, last in _ranges(ranges):
            for section in {identifier, display}:
                found[section, body, label].append(_Meaning(metric, first, last))
    return {key: tuple(meanings) for key, meanings in found.items()}


@cache
def _bodies() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return (section, label) -> the body items that have it, "" (the head of the section) first."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for section, body, label in _table():
        found[section, label].add(body)
    return {key: tuple(sorted(bodies)) for key, bodies in found.items()}


def _ranges(text: str) -> list[tuple[int, int]]:
    """Return the compute capabilities (major and minor digits as one number) of 'CC_75..CC_86 CC_90..'."""
    pairs = [part.replace("CC_", "").split("..") for part in text.split()]
    return [(int(first or 0), int(last or 9999)) for first, last in pairs] or [(0, 9999)]


def raw_name(section: str, body: str | None, label: str, unit: str, cc: str | None) -> str | None:
    """Return the raw metric name of a row, or None where it is not certain.

    body: the cell `Body Item Label`; None where the file has no such column. unit: the base unit. cc: such as '9.0'.
    """
    both = _BOTH.fullmatch(label)
    if both:
        return both[1]
    if section == COMMAND_LINE and " " not in label:
        return label
    names = _candidates(section, body, label, _capability(cc)) or _part(section, body, label)
    if not names and _RAW.fullmatch(label):
        return label
    if len(names) != 1:
        return None
    name = names.pop()
    return None if contradicts(name, unit) else name


def _candidates(section: str, body: str | None, label: str, cc: int | None) -> set[str]:
    if body is None:
        # Without the column only the heads of sections are printed; a label that no head has must mean one thing everywhere.
        bodies = _bodies().get((section, label), ())
        return set().union(*(_candidates(section, item, label, cc) for item in (bodies[:1] if "" in bodies else bodies)))
    path = ""
    meanings = _table().get((section, body, label))
    if meanings is None and (with_path := _WITH_PATH.fullmatch(body)):
        path = _PATH_GAPS.sub("_", with_path[2]).lower()
        meanings = _table().get((section, f"{with_path[1]} (*)", label))
    return {m.metric.replace("{path}", path) for m in meanings or () if cc is None or m.first_cc <= cc <= m.last_cc}


def _part(section: str, body: str | None, label: str) -> set[str]:
    """Return the metric of a part of a throughput, such as 'L1: Lsuin Requests'; nothing where it is none."""
    breakdown, printed = _table().get((section, body or "", _ANY_PART)), _PART.fullmatch(label)
    if not breakdown or not printed:
        return set()
    unit = _UNIT_OF_PART.get(label) or _UNITS.get(printed[1]) or printed[1].lower()
    _, _, form = breakdown[0].metric.partition(".")
    return {f"{unit}__{printed[2].lower().replace(' ', '_')}.{form}"}


def _capability(cc: str | None) -> int | None:
    major, dot, minor = (cc or "").strip().partition(".")
    return int(major) * 10 + int(minor) if dot and major.isdecimal() and minor.isdecimal() else None


def contradicts(metric: str, unit: str) -> bool:
    """Return whether a raw metric cannot have this base unit. An empty unit says nothing."""
    words = re.split(r"[._]+", metric)
    if not unit:
        return False
    if "pct" in words or unit == "%":
        return ("pct" in words) != (unit == "%")
    if metric.endswith(".per_second"):
        return unit != "byte/s" if "bytes" in words else not (unit == "hz" or unit.endswith("/s"))
    if "time" in words:
        return unit != "ns"
    if unit in ("ns", "hz") or unit.endswith("/s"):
        return True
    if metric.endswith((".sum", ".avg", ".min", ".max")):
        expected = "byte" if "bytes" in words else "cycle" if "cycles" in words else unit
        return unit != expected
    return False
