"""One large profile as integers, from its parts: what is on which track, and of which class, is said once per row template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from nsightlens.columns.arrays import CHUNK_ROWS, MISSING, Int, Mask, integers
from nsightlens.intervals.disjoint import outermost
from nsightlens.schema import TABLES, TEMPLATE, templates_of

COMPUTE, COMMUNICATION, MEMCPY, MEMSET, COMMUNICATING_COPY = range(5)
Line = tuple[str | None, int | None]
"""A process and its capture window."""
Stream = tuple[int, str | None, int | None, int | None]
"""A line's number, a device, a context and a stream there."""
_WORK = {
    "kernels": f"""
SELECT k.{TEMPLATE} AS template, k.process_id, window_index, device_id, context, stream,
    CASE WHEN family = 'collective' THEN {COMMUNICATION} ELSE {COMPUTE} END AS kind,
    round(CASE WHEN sm_blocks > 1 THEN 1 ELSE sm_blocks END * 1e12)::BIGINT AS blocks
FROM (
    SELECT t.*, CASE WHEN isfinite(t.blocks_per_sm) AND t.blocks_per_sm >= 0 THEN t.blocks_per_sm
        ELSE t.grid_x::DOUBLE * t.grid_y * t.grid_z / d.sm_count END AS sm_blocks
    FROM read_parquet(?) AS t
    LEFT JOIN (SELECT process_id, device, max(sm_count) AS sm_count FROM devices GROUP BY ALL) AS d
        ON d.process_id = t.process_id AND d.device = t.device
) AS k
ORDER BY template""",
    "memory_ops": f"""
SELECT {TEMPLATE} AS template, process_id, window_index, device_id, context, stream,
    CASE WHEN collective IS NOT NULL THEN {COMMUNICATING_COPY} WHEN kind = 'memset' THEN {MEMSET} ELSE {MEMCPY} END AS kind,
    NULL::BIGINT AS blocks
FROM read_parquet(?) ORDER BY template""",
}
_CALLED = f"SELECT {TEMPLATE} AS template, process_id, window_index, thread, name FROM read_parquet(?) ORDER BY template"
_SPARSE = 4
"""Ids of a profile's rows lie within so many times their number, or it is not read here."""


class UnfitError(Exception):
    """The profile is none that can be read as integers; its views are computed in SQL."""


@dataclass(frozen=True, slots=True)
class Work:
    """Rows of kernels and memory operations with a place on the timeline: template by template, where and what they are.

    line, track, stream, class_ by template; classes: (kind, blocks per SM in 10^-12 or None); tracks: (line, device) of each;
    streams: Stream of each.
    """

    table: str
    file: Path
    line: Int
    track: Int
    stream: Int
    class_: Int

    def count(self) -> int:
        """Return how many rows there are, those that are left out included."""
        return int(pq.read_metadata(self.file).num_rows)

    @property
    def row_id(self) -> str:
        """Return the column that numbers the rows."""
        return str(TABLES[self.table].row_id)

    def ids(self) -> range:
        """Return the ids that rows may have. Raises UnfitError where they are far apart."""
        return _ids(self.file, self.row_id)

    def rows(self, *more: str) -> Iterator[tuple[Int, ...]]:
        """Yield the templates, starts, ends, launch ids and further columns of some rows, those of impossible durations cut or
        left out."""
        names = ["start_ns", "duration_ns", "launch_id", TEMPLATE, *more, *(["overrun_ns"] if self.table == "kernels" else [])]
        for start, duration, launch, template, *rest in read(self.file, names):
            there = (start != MISSING) & (duration != MISSING)
            if self.table == "kernels":
                overrun = rest.pop()
                duration = np.where(overrun == MISSING, duration, duration - overrun)
            there &= duration >= 0
            yield template[there], start[there], (start + duration)[there], launch[there], *(column[there] for column in rest)


@dataclass(frozen=True, slots=True)
class Calls:
    """The API calls of a profile, whose launch ids are first_id and `count` that follow; some of these may have no call.

    Lines, threads (a number per line and thread) and names (a place in `names`) by template.
    """

    file: Path | None
    first_id: int
    count: int
    line: Int
    thread: Int
    name: Int
    names: list[str | None]

    def rows(self) -> Iterator[tuple[Int, Int, Int, Int]]:
        """Yield the places (launch ids from first_id), templates, starts and ends of some calls; ends are MISSING if unknown.

        Raises UnfitError for a call that has no start, or ends before it.
        """
        for launch, start, duration, template in read(self.file, ["launch_id", "start_ns", "duration_ns", TEMPLATE]):
            if np.any((start == MISSING) | ((duration < 0) & (duration != MISSING))):
                raise UnfitError("a call has no start, or ends before it")
            yield launch - self.first_id, template, start, np.where(duration == MISSING, MISSING, start + duration)

    def times(self) -> CallTimes:
        """Return all of them as arrays by launch id. Raises UnfitError as `rows` does."""
        start, end = np.full(self.count, MISSING), np.full(self.count, MISSING)
        found = CallTimes(self.first_id, start, end, np.full(self.count, -1, np.int32))
        for place, template, start, end in self.rows():
            found.start[place] = start
            found.end[place] = end
            found.template[place] = template
        return found


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Starts, ends and templates of API calls by launch id from first_id; template -1 where an id has no call."""

    first_id: int
    start: Int
    end: Int
    template: npt.NDArray[np.int32]

    def places(self, launch: Int) -> Int:
        """Return the places here of launch ids, -1 where there is no call."""
        place = np.where(launch == MISSING, -1, launch - self.first_id)
        place[(place < 0) | (place >= len(self.start))] = -1
        found: Int = np.where((place >= 0) & (self.template[place] >= 0), place, -1) if len(self.start) else place
        return found

    def outermost(self, thread: Int) -> Mask:
        """Return which calls of a length are outermost in their thread. thread: of each template."""
        found = np.zeros(len(self.start), dtype=np.bool_)
        lasting = (self.template >= 0) & (self.end > self.start)  # MISSING lies before every start
        of_call = thread.astype(np.int32)[self.template] if len(thread) else self.template
        for one in range(int(thread.max(initial=-1)) + 1):
            rows = np.flatnonzero(lasting & (of_call == one))
            found[rows[outermost(self.start[rows], self.end[rows])]] = True
        return found


def read(file: Path | None, columns: Sequence[str]) -> Iterator[list[Int]]:
    """Yield the columns of a part, some rows after others; NULL is MISSING."""
    if file is None:
        return
    with pq.ParquetFile(file, pre_buffer=False) as part:  # else all of the columns' bytes are held at once
        for batch in part.iter_batches(CHUNK_ROWS, columns=list(columns)):
            yield [integers(batch.column(name)) for name in columns]


def templates(connection: duckdb.DuckDBPyConnection, parts: Mapping[str, Path], table: str) -> list[dict[str, Any]]:
    """Return what each template of a table says, in their order; none where the profile has no such rows."""
    if table not in parts:
        return []
    relation = connection.sql(_WORK.get(table, _CALLED), params=[str(parts[templates_of(table)])])
    found: list[dict[str, Any]] = relation.to_arrow_table().to_pylist()
    if [row["template"] for row in found] != list(range(len(found))):
        raise UnfitError(f"{table}: templates are not numbered from 0")
    return found


def calls(parts: Mapping[str, Path], rows: Sequence[Mapping[str, Any]], lines: Mapping[Line, int]) -> Calls:
    """Return the API calls of a profile. rows: its templates."""
    threads: dict[tuple[int, object], int] = {}
    names: dict[str | None, int] = {}
    line = _coded(lines[row["process_id"], row["window_index"]] for row in rows)
    thread = _coded(threads.setdefault((at, row["thread"]), len(threads)) for at, row in zip(line.tolist(), rows, strict=True))
    name = _coded(names.setdefault(row["name"], len(names)) for row in rows)
    ids = _ids(parts["api_calls"], "launch_id") if rows else range(0)
    return Calls(parts["api_calls"] if rows else None, ids.start, len(ids), line, thread, name, [*names])


def _ids(file: Path, column: str) -> range:
    """Return the ids from the first to the last. Raises UnfitError where they are far apart."""
    first, last, count = np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0
    for (ids,) in read(file, [column]):
        first, last, count = min(first, int(ids.min())), max(last, int(ids.max())), count + len(ids)
    if last - first + 1 > _SPARSE * count + CHUNK_ROWS:
        raise UnfitError(f"{column}: ids are far apart")
    return range(first, last + 1)


def _coded(values: Iterator[int]) -> Int:
    return np.fromiter(values, dtype=np.int64)


def is_whole(parts: Mapping[str, Path]) -> bool:
    """Return whether each table of a profile that has templates has them among its parts."""
    return all(templates_of(name) in parts for name in parts if name in TABLES and TABLES[name].varying)
