"""What NCCL's Inspector plugin (NCCL 2.28 and later; RCCL's is the same) writes of each collective -> collective_records.

A file (`HOST-pidPID.log`) holds a JSON object per line. Up to format 4.2 each names its communicator and process; from 4.3 on a
line that begins a dump does so for those that follow it. No real file was seen: they are read after the documentation and code
of the plugin.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from nsightlens import schema
from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch, batch_of, conform, diagnostic
from nsightlens.readers.gzip_lines import Lines
from nsightlens.readers.reader import Probe, ProcessHint

TOOL = "nccl_inspector"
NEEDS_FILES = False
KIND = "nccl inspector json lines"

_SAMPLE, _BATCH = 1_000, 1 << 15
_IS_LINE = re.compile(rb'^\s*\{.*"(?:inspector_output_format_version|coll_sn)"\s*:', re.MULTILINE)
_TESTED = re.compile(r"v4\.\d+")
_WORLD = "default_pg"
"""What PyTorch calls the communicator of all ranks."""
_TIMED_BY = {"kernel_gpu": "gpu", "kernel_cpu": "host", "collective_cpu": "host"}
_US = 1000
_INT32, _INT64, _LONGEST_NS = 1 << 31, 1 << 63, 10**16
_COLUMNS = ("process_index", "communicator", "communicator_name", "communicator_rank", "group_size", "sequence", "collective",
            "message_bytes", "start_ns", "duration_ns", "duration_clock", "state")


class _DumpHeader(msgspec.Struct, gc=False):
    id: str
    rank: int
    n_ranks: int
    comm_name: str | None = None


class _Metadata(msgspec.Struct, gc=False):
    inspector_output_format_version: str | None = None
    dump_timestamp_us: int | None = None
    hostname: str | None = None
    pid: int | None = None


class _Times(msgspec.Struct, gc=False):
    coll_start_ts: int | None = None


class _Collective(msgspec.Struct, gc=False):
    coll: str
    coll_sn: int
    coll_msg_size_bytes: int | None = None
    coll_exec_time_us: int | float | None = None
    coll_timing_source: str | None = None
    event_trace_ts: _Times | None = None


class _Dump(msgspec.Struct, gc=False):
    coll_records: int = 0
    coll_dropped_since_last_dump: int = 0


class _Line(msgspec.Struct, gc=False):
    header: _DumpHeader | None = None
    metadata: _Metadata | None = None
    coll_perf: _Collective | None = None
    dump_stats: _Dump | None = None
    p2p_perf: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_Line)


def sniff(path: Path, head: bytes) -> bool:
    """Return whether a line of the head is one of the Inspector's."""
    return b"coll_" in head and _IS_LINE.search(head) is not None and b'"traceEvents"' not in head


def probe(path: Path) -> Probe:
    """Return what the first lines say. Raises ReadError where there is no collective among them."""
    log = _Log(path)
    if not list(islice(log.rows(), _SAMPLE)):
        raise _empty(path)
    hints = tuple(ProcessHint(pid=p.pid, host=p.host, rank=p.rank, rank_source=p.rank_source, world_size=p.world_size)
                  for p in log.processes.values())
    return Probe(KIND, tool_version=log.version, processes=hints, first_epoch_ns=log.origin)


def read(paths: Sequence[Path], *, jobs: int = 1) -> Iterator[Batch]:
    """Yield a row per collective, its processes and one profile. Raises ReadError where no collective is in the file."""
    (path,) = paths
    log = _Log(path)
    rows = log.rows()
    count = 0
    while some := list(islice(rows, _BATCH)):
        count += len(some)
        yield "collective_records", _batch(some)
    if not count:
        raise _empty(path)
    yield "processes", batch_of("processes", [
        {"process_index": number, "host": process.host, "pid": process.pid, "rank": process.rank,
         "rank_source": process.rank_source, "world_size": process.world_size}
        for number, process in enumerate(log.processes.values())])
    lost = log.tally["lines_damaged"] + log.tally["records_dropped"] + log.tally["records_missing"]
    yield "profiles", batch_of("profiles", [{
        "tool_version": log.version, "format": KIND, "origin_epoch_ns": log.origin, "events": count, "events_lost": lost,
        "truncated": log.is_cut, "link_method": "none"}])
    yield from log.diagnostics()


def _empty(path: Path) -> ReadError:
    return ReadError(path, "no collective of NCCL's Inspector in it",
                     "Record again: NCCL_INSPECTOR_ENABLE=1, NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500, and messages "
                     "of NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES (8192) or more", "no_collectives")


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    target = schema.TABLES["collective_records"].reader_schema
    types = [target.field(name).type for name in _COLUMNS]
    arrays = [pa.array(column, pa.string() if pa.types.is_dictionary(type_) else type_)
              for type_, column in zip(types, zip(*rows, strict=True), strict=True)]
    return conform(pa.RecordBatch.from_arrays(arrays, names=list(_COLUMNS)), target, "collective_records")


@dataclass(slots=True)
class _Process:
    """A process that the file names, and its rank in each of its communicators: (name, size, ranks that it has there)."""

    host: str | None
    pid: int | None
    communicators: dict[str, tuple[str | None, int, set[int]]] = field(default_factory=dict)

    def joins(self, header: _DumpHeader) -> None:
        """Note that the process has a rank of a communicator."""
        known = self.communicators.get(header.id)
        if known is None:
            known = self.communicators[header.id] = (header.comm_name, header.n_ranks, set())
        known[2].add(header.rank)

    @property
    def _largest(self) -> tuple[set[int], str, int | None] | None:
        """Return (ranks there, source, ranks of the job) of the communicator of all ranks, else of the largest."""
        named = [known for known in self.communicators.values() if known[0] == _WORLD]
        size = max((known[1] for known in named or self.communicators.values()), default=0)
        if size < 2 and not named:
            return None
        ranks = set().union(*(known[2] for known in named or self.communicators.values() if known[1] == size))
        return ranks, f"content:{_WORLD if named else 'largest communicator'}", size if named else None

    @property
    def rank(self) -> int | None:
        """Return its rank; None where it has several, or where nothing says which of its communicators has all ranks."""
        found = self._largest
        return next(iter(found[0])) if found and len(found[0]) == 1 else None

    @property
    def rank_source(self) -> str | None:
        """Return where the rank is from."""
        return None if self.rank is None or self._largest is None else self._largest[1]

    @property
    def world_size(self) -> int | None:
        """Return the ranks of the job, where they are known."""
        return self._largest[2] if self._largest else None

    @property
    def drives_several(self) -> bool:
        """Return whether it has several ranks of one communicator: it drives several GPUs."""
        return any(len(ranks) > 1 for _, _, ranks in self.communicators.values())


class _Log:
    """The records of a file. What is wrong with it is counted while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tally: Counter[str] = Counter()
        self.processes: dict[tuple[str | None, int | None], _Process] = {}
        self.version: str | None = None
        self.origin: int | None = None
        self.is_cut = False
        self._lines = Lines(path)
        self._numbers: dict[tuple[str | None, int | None], int] = {}
        self._context: tuple[_DumpHeader, _Metadata] | None = None
        self._promised = 0

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the values of _COLUMNS of each collective. Raises ReadError where the file cannot be read at all."""
        is_whole = True
        for line in self._lines.bytes_lines():
            is_whole = line.endswith(b"\n")
            if line.isspace():
                continue
            try:
                found = _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.tally["lines_damaged"] += 1
                continue
            is_whole = True
            self._begin(found)
            row = self._row(found)
            if row is not None:
                yield row
        self.is_cut = self._lines.is_cut or not is_whole
        self._end()

    def _begin(self, line: _Line) -> None:
        """Keep what a line says of those that follow it."""
        self.tally["point_to_point"] += bool(bytes(line.p2p_perf))
        if line.dump_stats is None:
            return
        self._end()
        self.tally["records_dropped"] += max(line.dump_stats.coll_dropped_since_last_dump, 0)
        if line.header is not None and line.metadata is not None:
            self._context = line.header, line.metadata
            self._promised = max(line.dump_stats.coll_records, 0)

    def _end(self) -> None:
        self.tally["records_missing"] += self._promised
        self._context, self._promised = None, 0

    def _row(self, line: _Line) -> tuple[Any, ...] | None:
        call = line.coll_perf
        if call is None:
            return None
        context = (line.header, line.metadata or _Metadata()) if line.header is not None else self._context
        if self._promised:
            self._promised -= 1
        elif line.header is None:
            context = None
        if context is None or not self._is_plausible(context[0], call):
            self.tally["lines_damaged"] += 1
            return None
        header, metadata = context
        duration = self._duration(call.coll_exec_time_us)
        return (self._process(header, metadata), header.id, header.comm_name, header.rank, header.n_ranks, call.coll_sn,
                call.coll, call.coll_msg_size_bytes, self._start(call), duration,
                _TIMED_BY.get(call.coll_timing_source or "") if duration is not None else None, "completed")

    def _is_plausible(self, header: _DumpHeader, call: _Collective) -> bool:
        return (0 <= header.rank < header.n_ranks < _INT32 and 0 <= call.coll_sn < _INT64
                and 0 <= (call.coll_msg_size_bytes or 0) < _INT64)

    def _process(self, header: _DumpHeader, metadata: _Metadata) -> int:
        """Return the number of the process of a record."""
        version = metadata.inspector_output_format_version
        self.version = self.version or version
        self.tally["other_version"] += version is not None and not _TESTED.fullmatch(version)
        pid = metadata.pid if metadata.pid is not None and 0 <= metadata.pid < _INT64 else None
        key = metadata.hostname or None, pid
        if key not in self.processes:
            self._numbers[key] = len(self.processes)
            self.processes[key] = _Process(*key)
        self.processes[key].joins(header)
        if self.origin is None and metadata.dump_timestamp_us and 0 < metadata.dump_timestamp_us < _INT64 // _US:
            self.origin = metadata.dump_timestamp_us * _US
        return self._numbers[key]

    def _start(self, call: _Collective) -> int | None:
        """Return when the host issued it, relative to the first dump: only verbose files say so."""
        at = call.event_trace_ts.coll_start_ts if call.event_trace_ts else None
        return at * _US - self.origin if self.origin is not None and at and 0 < at < _INT64 // _US else None

    def _duration(self, microseconds: float | None) -> int | None:
        """Return a time in ns; None for 0 too, which stands for a time that was not measured."""
        if microseconds is None or not 0 < microseconds * _US < _LONGEST_NS:
            self.tally["untimed"] += 1
            return None
        return round(microseconds * _US)

    def diagnostics(self) -> Iterator[Batch]:
        """Yield what is to be said of the file."""
        guessed = sum(process.rank_source == "content:largest communicator" for process in self.processes.values())
        several = sum(process.drives_several for process in self.processes.values())
        for severity, code, count, message in (
                ("warning", "lines_damaged", self.tally["lines_damaged"], "lines that are cut, are not records, or name no "
                 "communicator; they are left out"),
                ("warning", "records_dropped", self.tally["records_dropped"], "collectives were overwritten before the "
                 "Inspector wrote them: raise NCCL_INSPECTOR_DUMP_COLL_RING_SIZE, or dump more often"),
                ("warning", "records_missing", self.tally["records_missing"], "collectives are announced but missing: the file "
                 "was cut or filtered"),
                ("warning", self._lines.why_cut[0], int(self.is_cut), self._lines.why_cut[1]),
                ("warning", "untested_version", int(self.tally["other_version"] > 0), f"written in format {self.version}; read "
                 "as far as it matches format 4"),
                ("info", "untimed", self.tally["untimed"], "collectives have no time; their duration_ns is NULL"),
                ("info", "point_to_point", self.tally["point_to_point"], "sends and receives are not read: their numbers "
                 "match no counterpart"),
                ("info", "rank_of_communicator", guessed, "the rank of the process is its rank in its largest communicator, as "
                 "the Inspector does not say which communicator has all ranks; a sidecar or --rank-pattern does"),
                ("info", "several_ranks", several, "processes have several ranks of one communicator (a GPU each); their "
                 "rank is NULL"),
        ):
            if count:
                yield diagnostic(severity, code, message, count)
