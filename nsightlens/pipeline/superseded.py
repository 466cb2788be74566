"""Rows that an ingest does not replace: other runs' rows of captures recorded over, and rows whose parts are broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nsightlens.discovery.files import CaptureFile, path_text
from nsightlens.discovery.sniff_cache import Fingerprint
from nsightlens.store.catalog import Change
from nsightlens.store.damage import state_of
from nsightlens.store.writer import Known

Row = dict[str, Any]


def held(known: Known) -> dict[str, set[str]]:
    """Return the runs that hold the capture at a path, by path."""
    runs: dict[str, set[str]] = {}
    for row in known.files:
        if row["outcome"] in ("read", "partial"):
            runs.setdefault(row["path"], set()).add(row["run"])
    return runs


def is_at_its_path(row: Row) -> bool:
    """Return True if a row of `files` is of a capture to be looked for at its path: one recorded over is no longer there."""
    return bool(row["profile_id"]) and row["outcome"] != "replaced"


def instead_of(path: str) -> str:
    """Return how the reason of a duplicate ends: which file is read for it."""
    return f": {path} is read instead"


def recorded_over(found: Sequence[CaptureFile], prints: Mapping[Path, Fingerprint], known: Known) -> Iterator[Row]:
    """Yield the rows of `files` of other runs whose captures were recorded over, as they are from now on.

    An ingest replaces rows of the runs that it names only. Where another run holds an earlier capture of the same path, that
    run keeps its rows, and its file is `replaced`.
    """
    earlier: dict[str, list[Row]] = {}
    for row in known.files:
        if is_at_its_path(row):
            earlier.setdefault(row["path"], []).append(row)
    for file in found:
        for row in earlier.get(path_text(file.path), ()):
            if file.path in prints and row["run"] != file.run and row["fingerprint"] != prints[file.path].text:
                reason = f"another capture was recorded over it (run {file.run}); the rows of this one are kept"
                yield {**row, "outcome": "replaced", "reason": reason}


def note_broken_parts(store: Path, known: Known, change: Change) -> list[Path]:
    """Return the parts that are missing or damaged and that `change` does not rebuild.

    A materialised catalog has their rows. Another one has lost them: it no longer names the part, and a diagnostic says so.
    """
    rebuilt = change.removed | {added[0] for added in change.added}
    left = sorted((part, name) for part, name in known.broken if name not in rebuilt)
    if not known.materialised:
        owners = {row["profile_id"]: row for row in known.files if row["profile_id"]}
        for part, name in left:
            row = owners[name]
            why = f"a part of the store is {state_of(store / part)}, and its rows are lost: ingest this capture again"
            change.diagnostics.append({"run": row["run"], "tool": row["tool"], "profile_id": name, "path": row["path"],
                                       "severity": "error", "code": "part_lost", "count": 1, "message": f"{why} ({part})"})
        change.lost = {part for part, _ in left}
    return [store / part for part in dict.fromkeys(part for part, _ in left)]
