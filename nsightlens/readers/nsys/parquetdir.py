"""The tables of an `nsys export --type parquetdir`: a directory with one <TABLE>.parquet each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nsightlens.errors import ReadError, UnknownFormatError
from nsightlens.readers.nsys.source import (
    DECODED,
    PIECE_ROWS,
    STRINGS,
    Kind,
    as_hex,
    as_integers,
    as_names,
    as_text,
    canonical,
    is_report,
    is_unread,
)
from nsightlens.terminal.quoting import Verbatim

SUFFIX = ".parquet"

_AS = {"text": as_text, "name": as_names, "hex": as_hex}
_ERRORS = (OSError, pa.ArrowException, UnicodeDecodeError)


class ParquetSource:
    """A parquetdir export."""

    kind = "nsys parquetdir"
    truncated = False
    stand_ins: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: dict[str, int] = Counter()
        self.bad_values: dict[str, int] = Counter()
        try:
            self._all = tables_in(path)
        except OSError as exc:
            raise ReadError(path, f"the directory cannot be listed ({exc.strerror})", "Check its permissions") from exc
        if not is_report(self._all):
            raise UnknownFormatError(path, "no directory of an nsys export", ("Give a directory made by ",
                                     Verbatim("nsys export --type parquetdir")), "foreign_directory")
        self._files: dict[str, pq.ParquetFile] = {}
        self._columns: dict[str, frozenset[str]] = {}
        for name, actual in canonical(self._all).items():
            try:
                self._files[name] = pq.ParquetFile(path / (actual + SUFFIX), memory_map=False)
                self._columns[name] = frozenset(self._files[name].schema_arrow.names)
            except _ERRORS:
                self.damage[name] += 1
        if self.damage and not self._files:
            self.close()
            raise ReadError(path, "none of its Parquet files can be read", "Export the report again", "damaged")

    def close(self) -> None:
        """Release the files."""
        for file in self._files.values():
            file.close()

    def leftovers(self) -> list[str]:
        """Return nothing: Parquet has no journals."""
        return []

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of `table`, empty where it is absent."""
        return self._columns.get(table, frozenset())

    def decoded(self) -> list[str]:
        """Return the tables of payloads that the exporter decoded."""
        return sorted(filter(DECODED.fullmatch, self._columns))

    def others(self) -> dict[str, int]:
        """Return the tables that hold rows and that nothing here reads, by name, with their rows."""
        found = {}
        for name in sorted(filter(is_unread, self._all)):
            try:
                if count := pq.read_metadata(self.path / (name + SUFFIX)).num_rows:
                    found[name] = count
            except _ERRORS:
                self.damage[name] += 1
        return found

    def rows(
        self, table: str, columns: Sequence[str], among: tuple[str, Sequence[int | str]] | None = None,
    ) -> list[tuple[object, ...]]:
        """Return rows of a small table in order; `among` keeps those whose column has one of the values."""
        have = self.columns(table)
        if not have or (among and among[0] not in have):
            return []
        chosen = [name for name in columns if name in have]
        found: list[tuple[object, ...]] = []
        for batch in self._read(table, [*chosen, *([among[0]] if among else [])]):
            if among:
                key = _plain(batch.column(among[0]))
                wanted = [value for value in among[1] if isinstance(value, str) == pa.types.is_string(key.type)]
                batch = batch.filter(pc.is_in(key, value_set=pa.array(wanted, key.type)))
            values = [_plain(batch.column(name)).to_pylist() if name in have else [None] * batch.num_rows for name in columns]
            found.extend(zip(*values, strict=True))
        return found

    def edges(self, table: str, column: str) -> tuple[int, object, object]:
        """Return the number of rows, and the first and last value of `column`."""
        if column not in self.columns(table):
            return 0, None, None
        groups = range(self._files[table].num_row_groups)
        first = last = None
        for batch in self._read(table, [column], groups[:1], 1):
            first = _plain(batch.column(0))[0].as_py()
            break
        for batch in self._read(table, [column], groups[-1:]):
            last = _plain(batch.column(0))[-1].as_py()
        return self._files[table].metadata.num_rows, first, last

    def owners(self, table: str, column: str, mask: int, at_most: int, within: int | None = None) -> list[int | None]:
        """Return up to `at_most` distinct values of `column` & `mask`, looking at the first `within` rows only."""
        if column not in self.columns(table):
            return []
        found: dict[int | None, None] = {}
        seen = 0
        for batch in self._read(table, [column]):
            values = as_integers(batch.column(0))[0]
            if within is not None:
                values = values[:within - seen]
            found.update(dict.fromkeys(pc.bit_wise_and(values, mask).unique().to_pylist()))
            seen += batch.num_rows
            if len(found) >= at_most or (within is not None and seen >= within):
                break
        return list(found)[:at_most]

    def strings(self, ids: pa.Array) -> pa.Array:
        """Return the text of each id (int64), NULL where StringIds does not have it."""
        known, texts = self._strings
        return texts.take(pc.index_in(ids, value_set=known, skip_nulls=True))

    def batches(self, table: str, columns: Mapping[str, Kind], jobs: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order with those of `columns` that exist, at most PIECE_ROWS at a time."""
        have = self.columns(table)
        present = {name: kind for name, kind in columns.items() if name in have}
        if not present:
            return
        for batch in self._read(table, list(present), threads=jobs > 1):
            arrays = []
            for name, kind in present.items():
                array = batch.column(name)
                if kind == "integer":
                    array, bad = as_integers(array)
                    self.bad_values[table] += bad
                arrays.append(_AS[kind](array) if kind in _AS else array)
            yield pa.RecordBatch.from_arrays(arrays, names=list(present))

    @cached_property
    def _strings(self) -> tuple[pa.Array, pa.Array]:
        ids, texts = [pa.array([], pa.int64())], [pa.array([], pa.string())]
        if {"id", "value"} <= self.columns(STRINGS):
            for batch in self._read(STRINGS, ["id", "value"]):
                ids.append(as_integers(batch.column("id"))[0])
                texts.append(as_text(batch.column("value")))
        return pa.concat_arrays(ids), pa.concat_arrays(texts)

    def _read(
        self, table: str, columns: list[str], groups: Sequence[int] | None = None, rows: int = PIECE_ROWS, threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches group by group, so that a damaged row group costs only itself."""
        file = self._files[table]
        for group in range(file.num_row_groups) if groups is None else groups:
            try:
                yield from file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=threads)
            except _ERRORS:
                self.damage[table] += 1


def tables_in(path: Path) -> list[str]:
    """Return the names of the tables in a parquetdir. Raises OSError."""
    return sorted(entry.name.removesuffix(SUFFIX) for entry in path.iterdir()
                  if entry.name.endswith(SUFFIX) and not entry.name.startswith(".") and entry.is_file())


def _plain(array: pa.Array) -> pa.Array:
    return array if pa.types.is_int64(array.type) else as_names(array)
