"""The kernel names of the real captures beside the repository, read without nsightlens: plain sqlite3, json and csv."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "../shared/data"

Names = dict[str, float]
"""Kernel name -> total duration in ns (0 where the tool does not tell)."""


def needed() -> None:
    """Skip the test where the captures are not there."""
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data")


def tool_of(capture: str) -> str:
    return capture.split("/")[0]


@cache
def captures() -> dict[str, Names]:
    """Return the names of each capture, by `tool/file`."""
    found = {}
    for path in sorted((DATA / "nsys").glob("*.sqlite")):
        found[f"nsys/{path.name}"] = {name: ns for name, _, _, ns in nsys_rows(path)}
    for path in sorted([*(DATA / "nsys").glob("*kern_sum.csv"), *(DATA / "ncu").glob("*kern_sum.csv")]):
        with path.open(encoding="utf-8-sig", newline="") as lines:
            found[f"nsys/{path.name}"] = {row["Name"]: float(row["Total Time (ns)"]) for row in csv.DictReader(lines)}
    for path in sorted((DATA / "ncu").glob("*.csv")):
        found.setdefault(f"nsys/{path.name}", {}) if "kern_sum" in path.name else found.update({f"ncu/{path.name}": _ncu(path)})
    for path in sorted((DATA / "kineto").rglob("*.json*")):
        if "derived" not in path.parts:
            found[f"kineto/{path.relative_to(DATA / 'kineto')}"] = _kineto(path)
    return {capture: names for capture, names in found.items() if names}


def nsys_rows(path: Path) -> list[tuple[str, str | None, str | None, float]]:
    """Return (demangled name, short name, mangled name, total ns) per kernel of an nsys export."""
    if not path.read_bytes().startswith(b"SQLite format 3\0"):
        return []  # no database, whatever its name says
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        base.text_factory = lambda raw: raw.decode("utf-8", "replace")
        columns = {row[1] for row in base.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")}
        if not columns:
            return []
        mangled = "mangledName" if "mangledName" in columns else "NULL"
        return base.execute(f"""
            SELECT d.value, s.value, m.value, sum(k."end" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k
            JOIN StringIds d ON d.id = k.demangledName LEFT JOIN StringIds s ON s.id = k.shortName
            LEFT JOIN StringIds m ON m.id = {mangled} GROUP BY 1, 2, 3""").fetchall()


def _ncu(path: Path) -> Names:
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig", "replace"))))
    header = next((row for row in rows if "Kernel Name" in row), None)
    if header is None:
        return {}
    column = header.index("Kernel Name")
    return {row[column]: 0.0 for row in rows[rows.index(header) + 1:] if len(row) > column and row[column]}


def _kineto(path: Path) -> Names:
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    if not re.search(rb'"cat":\s*"[Kk]ernel"', raw):
        return {}
    try:
        trace = json.loads(raw.decode("utf-8", "replace"), strict=False)
    except ValueError:
        return {}
    names: Names = {}
    for event in trace.get("traceEvents") or []:
        if event.get("cat") in ("kernel", "Kernel"):
            names[event["name"]] = names.get(event["name"], 0.0) + 1000 * float(event.get("dur", 0))
    return names
