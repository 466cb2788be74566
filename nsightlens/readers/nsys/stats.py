"""What `nsys stats --report cuda_gpu_trace --format csv` printed: every launch, copy and set, and nothing else of the report.

One process stands for all: the table does not say whose each row is. There are no API calls, so nothing is linked to a launch.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch, batch_of, diagnostic
from nsightlens.readers.nsys.columns import MAX_DURATION_NS, MAX_TIME_NS
from nsightlens.readers.nsys.identity import PRINTED, first_kernel
from nsightlens.readers.nsys.stats_cells import Header, Locale, header, locale_of
from nsightlens.readers.reader import Probe, ProcessHint

_TODO = "Print it again: nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep; or ingest nsys export --type sqlite"
_HEADER_WITHIN = 200
_LONGEST_LINE, _SAMPLE, _BATCH = 1 << 20, 10_000, 1 << 15
_MOST_UNPACKED, _DENSEST = 1 << 28, 200
"""Bytes that any gzip file may unpack to, and how many times its own size beyond that."""
_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
_INT32, _INT64 = 1 << 31, 1 << 63
_INTEGERS = {
    "correlation_id": ("CorrId", _INT64), "context": ("Ctx", _INT64), "stream": ("Strm", _INT64), "grid_x": ("GrdX", _INT32),
    "grid_y": ("GrdY", _INT32), "grid_z": ("GrdZ", _INT32), "block_x": ("BlkX", _INT32), "block_y": ("BlkY", _INT32),
    "block_z": ("BlkZ", _INT32), "registers_per_thread": ("Reg/Trd", _INT32),
}
_OF_BOTH = ("correlation_id", "context", "stream")
_DEVICE = re.compile(r"(.*?)\s*\((\d{1,6})\)")
_OPERATION = re.compile(r"\[CUDA (?:Unified Memory )?(memcpy|memset)\s*(Unified )?\s*(.*?)\]")
_SIDES = {"host": "H", "device": "D", "array": "A", "peer": "P"}
_MEMORY = {"pageable": "pageable", "pinned": "pinned", "device": "device", "array": "array", "managed": "managed",
           "device static": "device_static", "managed static": "managed_static"}
_LACKS = ("it has the launches, copies and sets of a report and nothing else: no API calls (launch delays, causes of idle time), "
          "no ranges (operators, steps), no processes (all are taken as one). To have these: nsys export --type sqlite "
          "REPORT.nsys-rep")


def is_stats(head: bytes) -> bool:
    """Return whether the head of a file is that of the table."""
    if b"CorrId" not in head.replace(b"\0", b""):
        return False
    return any(header(line) for line in _decoded(head).splitlines()[:_HEADER_WITHIN])


def probe(path: Path) -> Probe:
    """Return what the table is, and the name of its first kernel, which the report's export has, too. Raises ReadError."""
    table = _Table(path)
    kernels = (row for name, row in islice(table.rows(), _SAMPLE) if name == "kernels")
    first = next(kernels, None)
    exact = first is not None and table.steps["times"] <= 1
    names = {first_kernel(first["start_ns"], first["correlation_id"])} if first and exact else set()
    return Probe(PRINTED, processes=(ProcessHint(),), identity=frozenset(names))


def read(path: Path) -> Iterator[Batch]:
    """Yield the tables of the file. Raises ReadError where it holds no launch."""
    table = _Table(path)
    yield "processes", batch_of("processes", [{"process_index": 0}])
    told: set[int] = set()
    rows = table.rows()
    while some := list(islice(rows, _BATCH)):
        for name in ("kernels", "memory_ops"):
            found = [row for kind, row in some if kind == name]
            new = {row["device"]: row.pop("gpu", None) for row in found}
            fresh = {device: gpu for device, gpu in new.items() if device is not None and device not in told}
            told |= fresh.keys()
            if fresh:
                yield "devices", batch_of("devices", [{"process_index": 0, "device": device, "name": gpu}
                                                      for device, gpu in fresh.items()])
            if found:
                yield name, batch_of(name, found)
    if not table.read:
        raise ReadError(path, "a table of nsys stats (cuda_gpu_trace) without a launch", _TODO, "no_launches")
    yield "profiles", batch_of("profiles", [{
        "format": PRINTED, "vendor": "cuda", "events": table.read, "events_lost": table.tally["rows_damaged"],
        "truncated": table.is_cut, "link_method": "none"}])
    yield from table.diagnostics()


class _Table:
    """The table in a file. What is wrong with its rows is counted while they are read.

    steps: the coarsest last digit of times (ns) and of sizes (bytes) so far.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tally: Counter[str] = Counter()
        self.steps = {"times": 0.0, "sizes": 0.0}
        self.read = 0
        self.is_cut = False
        self._locale = Locale(".")

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (table, row) in order. Raises ReadError where the file cannot be opened or holds no such table."""
        lines = self._lines()
        head = next((found for line in islice(lines, _HEADER_WITHIN) if (found := header(line))), None)
        if head is None:
            raise ReadError(self.path, "no table of nsys stats (cuda_gpu_trace) in it", _TODO, "no_launches")
        cells = self._cells(lines, head)
        sample = list(islice(cells, _SAMPLE))
        self._locale = locale_of(sample, head)
        for row in chain(sample, cells):
            launched = self._row(row, head)
            if launched is not None:
                self.read += 1
                yield launched

    def diagnostics(self) -> Iterator[Batch]:
        """Yield what is to be said of the rows that were read."""
        yield diagnostic("warning", "reduced_input", f"nsys stats cuda_gpu_trace: {_LACKS}")
        for code, message in (
                ("rows_damaged", "lines have not the cells of the header, or no time; they are left out"),
                ("bad_values", "cells are no number, or an impossible one; they are NULL"),
                ("more_tables", "other tables follow in the file; they are not read: print each to a file of its own")):
            if self.tally[code]:
                yield diagnostic("warning", code, message, self.tally[code])
        if self._locale.is_assumed:
            yield diagnostic("warning", "decimal_assumed", f"nothing says which sign is the decimal one: taken to be "
                             f"{self._locale.decimal!r}; print times in ns (nsys stats --timeunit nsec)")
        for what, unit in (("times", "ns"), ("sizes", "bytes")):
            if self.steps[what] > 1:
                yield diagnostic("warning", f"{what}_rounded", f"{what} are printed to {self.steps[what]:,.0f} {unit}"
                                 + ("; shared memory is NULL" if what == "sizes" else "") + "; the report has them exactly")
        if self.is_cut:
            yield diagnostic("warning", "truncated", "the file ends within a line or within its compressed data")

    def _lines(self) -> Iterator[str]:
        """Yield the lines, with their ends, as far as the file can be unpacked."""
        try:
            with self.path.open("rb") as plain:
                is_packed = plain.read(2) == b"\x1f\x8b"
                plain.seek(0)
                raw: Any = gzip.GzipFile(fileobj=plain) if is_packed else plain
                most = max(_MOST_UNPACKED, _DENSEST * self.path.stat().st_size) if is_packed else None
                yield from self._read(raw, most)
        except OSError as exc:
            raise ReadError(self.path, exc.strerror or "cannot be read", "Check its path and permissions") from exc

    def _read(self, raw: IO[bytes], most: int | None) -> Iterator[str]:
        held, line = 0, "\n"
        with suppress(*_GZIP_ERRORS):
            start = raw.read(4)
            raw.seek(0)
            text = io.TextIOWrapper(raw, encoding=_encoding(start), errors="replace")
            while (line := text.readline(_LONGEST_LINE)) and (most is None or held <= most):
                held += len(line)
                yield line
            if not line:
                return
        self.is_cut = True

    def _cells(self, lines: Iterator[str], head: Header) -> Iterator[list[str]]:
        """Yield the cells of each row, up to an empty line; what has not the cells of the header is counted."""
        for line in lines:
            if not line.strip():
                self.tally["more_tables"] += any(rest.strip() for rest in lines)
                return
            try:
                cells = next(csv.reader((line,), delimiter=head.delimiter), [])
            except csv.Error:
                cells = []
            self.is_cut = not line.endswith("\n")
            if len(cells) == head.width:
                yield [cell.strip() for cell in cells]
            elif not header(line):
                self.tally["rows_damaged"] += 1

    def _row(self, cells: list[str], head: Header) -> tuple[str, dict[str, Any]] | None:
        text = {name: cells[at] for name, at in head.place.items()}
        start = self._time(text["Start"], head.factor["Start"], -MAX_TIME_NS, MAX_TIME_NS)
        if start is None or not text["Name"]:
            self.tally["rows_damaged"] += 1
            return None
        device = _DEVICE.fullmatch(text.get("Device", ""))
        row: dict[str, Any] = {
            "process_index": 0, "start_ns": start, "name": text["Name"],
            "duration_ns": self._time(text["Duration"], head.factor["Duration"], 0, MAX_DURATION_NS),
            "device": int(device[2]) if device else None, "gpu": device[1] or None if device else None}
        operation = _OPERATION.fullmatch(text["Name"])
        if operation is None:
            row |= {ours: self._integer(text.get(theirs, ""), limit) for ours, (theirs, limit) in _INTEGERS.items()}
            static, dynamic = (self._size(text, head, name, exact=True) for name in ("StcSMem", "DymSMem"))
            shared = None if static is None or dynamic is None else static + dynamic
            return "kernels", row | {"static_shared_bytes": static, "dynamic_shared_bytes": dynamic, "shared_bytes": shared}
        row |= {ours: self._integer(text.get(_INTEGERS[ours][0], ""), _INTEGERS[ours][1]) for ours in _OF_BOTH}
        return "memory_ops", row | _operation(operation, text) | {"bytes": self._size(text, head, "Bytes", exact=False)}

    def _time(self, text: str, factor: int, low: int, high: int) -> int | None:
        found = self._locale.number(text, factor)
        if found is None or not low <= found.value <= high:
            self.tally["bad_values"] += 1
            return None
        self.steps["times"] = max(self.steps["times"], found.step)
        return found.value

    def _integer(self, text: str, limit: int) -> int | None:
        if not text:
            return None
        found = self._locale.number(text, 1)
        if found is None or not -limit <= found.value < limit or found.step not in (0, 1):
            self.tally["bad_values"] += 1
            return None
        return found.value

    def _size(self, text: dict[str, str], head: Header, name: str, *, exact: bool) -> int | None:
        """Return a size in bytes; NULL where it is printed too coarsely to be known at all, or, if `exact`, to the byte."""
        if not text.get(name) or name not in head.factor:
            return None
        found = self._locale.number(text[name], head.factor[name])
        if found is None or not 0 <= found.value < _INT64:
            self.tally["bad_values"] += 1
            return None
        if found.step > 1:
            self.steps["sizes"] = max(self.steps["sizes"], found.step)
        return None if found.step > 1 and (exact or not found.value) else found.value


def _operation(found: re.Match[str], text: dict[str, str]) -> dict[str, Any]:
    """Return kind, direction and memory of a copy or set."""
    is_unified = bool(found[2]) or "Unified" in text["Name"]
    way = re.fullmatch(r"(\w+?)-?to-?(\w+)", found[3], re.IGNORECASE)
    sides = [_SIDES.get(side.lower(), side.upper()) for side in way.groups()] if way else []
    kind = "memset" if found[1] == "memset" else "migration" if is_unified else "memcpy"
    source, destination = (_MEMORY.get(text.get(name, "").lower()) for name in ("SrcMemKd", "DstMemKd"))
    direction = "to".join(sides) if sides and {*sides} <= {*_SIDES.values()} and kind != "memset" else None
    if kind == "memset":  # the memory that was set stands in the one of the two columns that nsys fills
        source, destination = None, destination or source
    return {"kind": kind, "direction": direction, "source_memory": source, "destination_memory": destination}


def _encoding(start: bytes) -> str:
    return "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _decoded(head: bytes) -> str:
    return head.decode(_encoding(head), "replace")
