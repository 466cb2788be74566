"""One profile: its windows read, its rows derived, and written as Parquet parts.

Everything here runs in a worker process, for one profile at a time, and knows nothing of the store.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nsightlens.columns.spool import write_part
from nsightlens.pipeline import memory, profile_rows
from nsightlens.pipeline.assemble import ParquetPart, parts
from nsightlens.pipeline.profile_rows import ProfileInput

_SIDE_BY_SIDE = 2  # parts that are written at once: each holds some row groups in memory


def write_parts(profile: ProfileInput, directory: Path, *, jobs: int = 1) -> dict[str, int]:
    """Read the profile, write `directory`/<part>.parquet for every part that has rows, return their row counts.

    Raises ReadError where one of its windows cannot be read at all, OverlapError where they overlap.
    """
    directory.mkdir(exist_ok=True)
    read = profile_rows.read(profile, directory, jobs=jobs)
    memory.give_back()
    if jobs == 1:
        rows = [_write(part, directory) for part in parts(read)]
    else:
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
            rows = [each.result() for each in [threads.submit(_write, part, directory) for part in parts(read)]]
    read.remove()
    return {name: count for name, count in rows if count}


def _write(part: ParquetPart, directory: Path) -> tuple[str, int]:
    """Write one part, and return its name and rows (0: no file)."""
    return part.name, write_part(directory / f"{part.name}.parquet", part.schema, part.batches)
