"""Which parts of a store belong together: a part per table, with the rows of one profile, or of several small ones."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Part = tuple[str, str, str, str, int]
"""A row of _parts: table, run, profile, path below the store, rows. Profiles of a bundle share the path."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The parts of some profiles of one run. files: table -> its part; rows: table -> profile -> rows; size: bytes of all."""

    run: str
    files: Mapping[str, Path]
    rows: Mapping[str, Mapping[str, int]]
    size: int

    @property
    def profiles(self) -> list[str]:
        """Return the profiles that have rows in it."""
        return sorted({profile for rows in self.rows.values() for profile in rows})

    def parts(self, root: Path) -> list[Part]:
        """Return it as rows of _parts of the store at `root`."""
        places = {table: file.relative_to(root).as_posix() for table, file in self.files.items()}
        return [(table, self.run, profile, place, count)
                for table, place in places.items() for profile, count in self.rows[table].items()]


def bundle(profile: str, run: str, folder: Path, rows: Mapping[str, int]) -> Bundle:
    """Return a new profile, whose parts lie in a folder, as a bundle."""
    files = {table: folder / f"{table}.parquet" for table in rows}
    return bundle_files(run, files, {table: {profile: count} for table, count in rows.items()})


def standing(parts: Iterable[Part], root: Path) -> list[Bundle]:
    """Return the bundles of the store at `root` from its rows of _parts."""
    files: dict[tuple[str, str], dict[str, Path]] = defaultdict(dict)
    rows: dict[tuple[str, str], dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for table, run, profile, path, count in parts:
        key = run, path.rpartition("/")[2]
        if table not in files[key]:
            files[key][table] = root / path
        rows[key][table][profile] = count
    return [bundle_files(run, files[run, name], rows[run, name]) for run, name in files]


def bundle_files(run: str, files: Mapping[str, Path], rows: Mapping[str, Mapping[str, int]]) -> Bundle:
    """Return a bundle of parts; one that is missing counts no bytes."""
    size = 0
    for file in files.values():
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return Bundle(run, files, rows, size)
