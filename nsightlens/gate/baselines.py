"""Baselines: figures of recordings in a small file, kept by name in a folder, to be checked against without their captures.

The file is JSON: schema, version, the version of nsightlens, a checksum, the recordings with their figures and kernels, and the
properties that forbid a comparison where they differ. It holds no secrets: names of runs are struck, other texts are a store's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nsightlens.analyses._compared_runs import tools
from nsightlens.discovery.secrets import without_tokens
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.gate import recordings as figures
from nsightlens.gate.comparable import Properties, merged, properties
from nsightlens.gate.recordings import PLAIN, Recording
from nsightlens.store import outputs

if TYPE_CHECKING:
    from nsightlens.store.comparison import RunPlace

FOLDER = "nsightlens-baselines"
_SCHEMA, _VERSION = "nsightlens.baseline", 1
_ENDING = ".json"
_MAX_BYTES = 256 << 20
_BEGIN = f'{{"schema": "{_SCHEMA}"'.encode()
_LISTED = pa.schema([
    ("baseline", pa.string()), ("runs", pa.string()), ("tool", pa.string()), ("recordings", pa.int64()),
    ("commits", pa.string()), ("file", pa.string())])
_TEXTS = {"str", "str | None"}
_NUMBERS = {"float", "int", "float | None", "int | None"}


@dataclass(frozen=True, slots=True)
class Saved:
    """What a check needs of a side, without its captures: recordings and properties by what timed them (nsys, kineto, plain)."""

    recordings: Mapping[str, Sequence[Recording]]
    properties: Mapping[str, Properties]

    @property
    def runs(self) -> list[str]:
        """Return the names of its runs."""
        return list(dict.fromkeys(one.run for some in self.recordings.values() for one in some))

    @property
    def best(self) -> Sequence[Recording]:
        """Return the recordings under what disturbed them least: no profiler, nsys, the PyTorch profiler."""
        return next((self.recordings[tool] for tool in (PLAIN, "nsys", "kineto") if tool in self.recordings), ())


def saved_sides(sides: Sequence[RunPlace | Saved]) -> Saved:
    """Return the figures of runs and baselines as one. Raises NsightlensError where nothing was timed."""
    places = [each for each in sides if not isinstance(each, Saved)]
    every = [each for each in sides if isinstance(each, Saved)] + ([_save_runs(places)] if places else [])
    recordings: dict[str, list[Recording]] = defaultdict(list)
    for saved in every:
        for tool, some in saved.recordings.items():
            recordings[tool] += some
    return Saved(recordings, merged(saved.properties for saved in every))


def _save_runs(places: Sequence[RunPlace]) -> Saved:
    found: dict[str, Sequence[Recording]] = {}
    there = {place: tools(place.store.sql, place.run) for place in places}
    for tool in dict.fromkeys(tool for of_place in there.values() for tool in of_place):
        having = [place for place in places if tool in there[place]]
        per_step = all(tree.window.steps for place in having for tree in figures.trees_of(place, tool))
        found[tool] = figures.traced(having, tool, per_step=per_step)
    if plain := figures.plain(places):
        found[PLAIN] = plain
    if not found:
        raise NsightlensError("nothing was timed here: neither GPU work on a timeline (nsys, PyTorch profiler) nor steps.json of "
                              "a run without a profiler")
    return Saved(found, merged(properties(place) for place in places))


def folder() -> Path:
    """Return the folder of baselines: $NSIGHTLENS_BASELINES, or nsightlens-baselines here."""
    return Path(os.environ.get("NSIGHTLENS_BASELINES") or FOLDER)


def path_of(name: str) -> Path:
    """Return the file of a baseline. Raises UsageError for a name that no file has."""
    if not name.isprintable() or name != Path(name).name or name.startswith(".") or len(name.encode()) > 200:
        raise UsageError(f"{name!r}: a baseline is called by a plain name, such as main", subject="name", value=name)
    return folder() / f"{name}{_ENDING}"


def names() -> list[str]:
    """Return the names of the baselines that there are."""
    try:
        found = sorted(folder().iterdir())
    except OSError:
        return []
    return [path.name.removesuffix(_ENDING) for path in found if path.suffix == _ENDING and is_baseline(path)]


def known(name: str) -> Path:
    """Return the file of a baseline that there is. Raises UsageError where there is none of that name."""
    path, there = path_of(name), names()
    if name not in there:
        has = f"{folder()} has {', '.join(there)}" if there else f"there are none in {folder()}"
        raise UsageError(f"{name}: no baseline of that name: {has}", subject="baseline", value=name, choices=there)
    return path


def is_baseline(path: Path) -> bool:
    """Return whether a file begins as a baseline does; pipes and devices are not opened."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_BEGIN)) == _BEGIN
    except OSError:
        return False


def write(path: Path, saved: Saved, program: str) -> None:
    """Write a baseline, whole or not at all. program: the version of nsightlens. Raises UsageError for another file there."""
    if path.exists() and not is_baseline(path):
        raise UsageError(f"{path}: a file is there, and no baseline", subject="name", value=str(path))
    content = {"recordings": [{**asdict(one), "run": without_tokens(one.run)}
                              for some in saved.recordings.values() for one in some],
               "properties": {tool: {name: sorted(values) for name, values in of_tool.items()}
                              for tool, of_tool in saved.properties.items()}}
    head = {"schema": _SCHEMA, "version": _VERSION, "nsightlens": program, "sha256": _checksum(content)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise NsightlensError(f"{path.parent}: cannot be made ({exc.strerror})") from exc
    with outputs.whole(path) as file:
        file.write((json.dumps({**head, **content}) + "\n").encode())


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps({name: content[name] for name in ("recordings", "properties")}, sort_keys=True).encode()
                          ).hexdigest()


def read(path: Path) -> Saved:
    """Return a baseline. Raises NsightlensError for a file that is none, is damaged, or is of another version."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"larger than {_MAX_BYTES >> 20} MiB")
        found = json.loads(path.read_bytes())
        if found["schema"] != _SCHEMA:
            raise ValueError("another schema")
        if found["version"] != _VERSION:
            raise ValueError(f"its version is {found['version']!r}, and {_VERSION} is read: make it again")
        if found["sha256"] != _checksum(found):
            raise ValueError("its content is not that of its checksum: make it again")
        recordings: dict[str, list[Recording]] = defaultdict(list)
        for row in found["recordings"]:
            recordings[row["tool"]].append(_recording(row))
        of_tools = {tool: {name: frozenset(map(str, values)) for name, values in of_tool.items()}
                    for tool, of_tool in found["properties"].items()}
        if not recordings:
            raise ValueError("without recordings")
    except OSError as exc:
        raise NsightlensError(f"{path}: cannot be read ({exc.strerror})") from exc
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise NsightlensError(f"{path}: no baseline that can be read ({exc})") from exc
    return Saved(recordings, of_tools)


def _recording(row: Mapping[str, Any]) -> Recording:
    """Return a recording. Raises ValueError or TypeError for figures that are none."""
    for field in fields(Recording):
        value = row[field.name]
        numbers = value.values() if isinstance(value, dict) else [value] if field.type in _NUMBERS else []
        if field.type in _TEXTS and not isinstance(value, str | None):
            raise ValueError(f"{field.name}: not a text")
        if any(not isinstance(number, int | float) or not isfinite(number) for number in numbers if number is not None):
            raise ValueError(f"{field.name}: not a number")
    if not (row["trimmed_ns"] or 0) > 0:
        raise ValueError("trimmed_ns: not a time")
    return Recording(**{field.name: row[field.name] for field in fields(Recording)})


def table() -> pa.Table:
    """Return a row for each baseline: runs, recordings, what timed them, commits."""
    found = []
    for name in names():
        path = path_of(name)
        saved = read(path)
        found.append({
            "baseline": name, "runs": ", ".join(saved.runs), "tool": saved.best[0].tool, "recordings": len(saved.best),
            "commits": ", ".join(sorted({one.commit for one in saved.best if one.commit})) or None,
            "file": str(path)})
    return pa.Table.from_pylist(found, schema=_LISTED)
