"""A trace file -> the batches of its events as they are read, then what is known of the trace as a whole."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from nsightlens.errors import ReadError
from nsightlens.readers import budget
from nsightlens.readers.batches import Batch
from nsightlens.readers.budget import OVER_BUDGET
from nsightlens.readers.kineto import envelope, unsupported
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.digest import Digest, digest
from nsightlens.readers.kineto.envelope import Opening, TraceHeader
from nsightlens.readers.kineto.report import Trace
from nsightlens.readers.kineto.stream import BLOCK, ArrayPiece, Frame, Problem, TraceFile
from nsightlens.readers.kineto.worker_processes import Crew, PieceContext

PIECE_BYTES = 1 << 22
PARALLEL_BYTES = 1 << 25
_GZIP_RATIO = 8  # of traces, at the least
_MAX_HELPERS = 4  # 100 MB each; more of them would wait for this process
_TAIL_BYTES = 1 << 26
_ANOTHER = re.compile(rb'"traceEvents"\s*:\s*\[')
_PHASE = re.compile(rb'"ph"\s*:')


def find_opening(path: Path, source: TraceFile, limit: int) -> tuple[bytes, Opening]:
    """Return the first bytes of the file and where in them its events begin. Raises ReadError where there are none."""
    begun = b""
    while len(begun) < limit:
        more = source.read(max(BLOCK, len(begun)))
        begun += more
        opening = envelope.find_events(begun)
        if opening:
            return begun, opening
        if not more or not envelope.is_json(begun) or unsupported.is_foreign(begun):
            break
    if envelope.is_kineto(begun) and envelope.is_cut(begun):
        raise ReadError(path, "the trace ends before its events begin", "Copy it again, or record again", "truncated")
    raise unsupported.refusal(path, begun)


class TraceReading:
    """One pass over one trace, from its first byte to its last."""

    def __init__(self, path: Path, source: TraceFile, jobs: int, piece_bytes: int) -> None:
        self._path = path
        self._source = source
        self._jobs = jobs
        self._piece_bytes = piece_bytes
        self._tally = Tally()
        self._closed = False
        self._cut_at: int | None = None
        self._records: set[int] = set()

    def trace(self) -> Iterator[Batch]:
        """Yield every batch of the trace. Raises ReadError where there is nothing to read."""
        begun, opening = find_opening(self._path, self._source, envelope.HEADER_LIMIT)
        begin = begun[opening.at :]
        clock = envelope.clock(begin)
        if begin.lstrip().startswith(b","):
            self._tally.malformed.note(opening.at, "commas too many")
        if opening.empty:
            self._closed = True
            tail_at, tail = opening.at, begin + self._source.read(_TAIL_BYTES)
        else:
            work = PieceContext(None if self._source.in_order else self._path, clock.origin_ns, clock.exact)
            tail_at, tail = yield from self._events(work, self._source.pieces(opening.at, begin, self._piece_bytes))
        header = self._header(opening).filled_from(self._tail(opening, tail_at, tail))
        known = self._tally.marks or envelope.is_kineto(opening.header) or envelope.is_kineto(tail)
        if not known and (self._tally.complete or self._tally.passed or self._tally.samples):
            raise unsupported.refusal(self._path, begun)
        if len(self._tally.labels) > 1 or len(self._tally.callers) > 1:
            raise unsupported.merged(self._path, self._tally.labels if len(self._tally.labels) > 1 else self._tally.callers)
        whole = Trace(self._path, header, clock, self._tally, self._closed, self._cut_at, self._source.problems,
                      begin[: 1 << 16])
        yield from whole.batches()

    def _events(self, work: PieceContext, pieces: Iterator[ArrayPiece]) -> Generator[Batch, None, tuple[int, bytes]]:
        """Yield the batches of all events; return where the bytes after the array begin, and these bytes."""
        crew = Crew(work, self._source.file, self._helpers())
        carry, end, idle = b"", None, 0
        try:
            for piece, done in crew.digests(pieces):
                if end is not None and piece.at != end:
                    carry = self._too_long(end - len(carry))
                end = piece.at + piece.size
                data = carry + piece.load(self._source.file) if carry else b""
                at, size = piece.at - len(carry), piece.size + len(carry)
                if carry:
                    done = digest(Frame().around(data), at, piece.last, work.origin_ns, work.exact)
                yield from self._renumbered(done)
                if done.closed or done.cut:
                    self._closed = done.closed
                    self._cut_at = at + done.used if done.cut else None
                    rest = (data or piece.load(self._source.file))[done.used :]
                    return at + done.used, self._rest(rest, itertools.chain(crew.waiting(), pieces))
                carry = (data or piece.load(self._source.file))[done.used :] if done.used < size else b""
                if len(carry) > budget.BUDGET.longest:
                    carry = self._too_long(at + done.used)
                idle = 0 if done.tally.has_events else idle + piece.size
                if idle > budget.BUDGET.idle:
                    return self._without_events(end, idle), b""
        finally:
            crew.close()
        raise AssertionError("the last piece neither closed the array nor was it cut")

    def _too_long(self, at: int) -> bytes:
        """Count an event, which begins at byte `at`, as longer than any that is read; return what is kept of it."""
        self._tally.too_long.note(at)
        return b""

    def _without_events(self, at: int, idle: int) -> int:
        """Say that the trace is read up to byte `at` only; return that."""
        self._cut_at = at
        self._source.problems.append(Problem(OVER_BUDGET, f"{idle:,} bytes on end hold no event: what follows byte {at:,} of the "
                                             "(unpacked) file was not read. The file is damaged: copy it again, or record again"))
        return at

    def _helpers(self) -> int:
        """Return how many helpers are worth starting: one job is this process, which has the rows to deal with."""
        expected = self._source.size * (_GZIP_RATIO if self._source.zipped else 1)
        return min(self._jobs - 1, _MAX_HELPERS) if expected >= PARALLEL_BYTES else 0

    def _rest(self, rest: bytes, pieces: Iterator[ArrayPiece]) -> bytes:
        """Return `rest` with the bytes of the pieces that follow, up to a limit; the file is read to its end."""
        parts, size = [rest], len(rest)
        for piece in pieces:
            if size < _TAIL_BYTES:
                parts.append(piece.load(self._source.file))
                size += piece.size
        return b"".join(parts)

    def _renumbered(self, done: Digest) -> Iterator[Batch]:
        """Yield the batches of a digest with the trace's numbers of processes; GPU work belongs to the first."""
        self._tally.add(done.tally)
        numbers = {pid: number for number, pid in enumerate(self._tally.pids)}
        table_of = np.array([*(numbers[pid] for pid in done.tally.pids), 0], dtype=np.int32)
        for table, batch in done.batches:
            index = batch.schema.get_field_index("process_index")
            renumbered = pa.array(table_of[batch.column(index).to_numpy()])
            batch = batch.set_column(index, "process_index", renumbered)
            yield table, self._once(batch) if table == "cuda_events" else batch

    def _once(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those records of CUDA events that were not there yet: each wait names its record, which may be an event, too."""
        kept = []
        for place, number in enumerate(batch["event_record_id"].to_pylist()):
            if number is None or number not in self._records:
                kept.append(place)
            if number is not None:
                self._records.add(number)
        return batch.take(pa.array(kept, pa.int64()))

    def _header(self, opening: Opening) -> TraceHeader:
        if opening.bare_list:
            return TraceHeader()
        self._tally.replaced.note_invalid(opening.header, opening.header_at)
        text = opening.header + b'"":0}'
        header = envelope.parsed(text)
        if header is None:
            self._tally.malformed.note(opening.header_at + envelope.bad_byte(text), "metadata before the events")
            return envelope.searched(opening.header)
        return header

    def _tail(self, opening: Opening, at: int, tail: bytes) -> TraceHeader:
        """Return the keys after the events; note where they are malformed or where the file ends within them."""
        if not self._closed:
            return TraceHeader()
        self._tally.replaced.note_invalid(tail, at)
        text = tail.strip()
        if another := len(_PHASE.findall(tail)) if _ANOTHER.search(tail) else 0:
            self._tally.appended.note(at, count=another)
        if opening.bare_list:
            if text:
                self._tally.malformed.note(at + tail.index(text), "bytes after the end")
            return TraceHeader()
        text = b"{" + text.removeprefix(b",")
        header = envelope.parsed(text)
        if header is None and len(tail) < _TAIL_BYTES and envelope.is_cut(text):
            self._cut_at = at + len(tail)
        elif header is None:
            self._tally.malformed.note(at + envelope.bad_byte(text), "metadata after the events")
        return header or envelope.searched(tail)
