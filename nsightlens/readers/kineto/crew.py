"""Helper processes that digest pieces of one file, each a piece at a time, results in the order of the pieces.

They are plain child processes on two pipes: they do not import the caller's script, and end when this process does, since
their input ends. Where they cannot be started or die, this process does the work itself.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from nsightlens.readers.kineto.digest import Digest, digest
from nsightlens.readers.kineto.stream import Piece

# pyarrow imports pandas as soon as it is installed, only to ask whether a list is a Series: 0.3 s and 50 MB in each helper.
_START = """
import pickle, sys
class WithoutPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError("not needed here")
sys.meta_path.insert(0, WithoutPandas())
sys.path[:] = pickle.load(sys.stdin.buffer)
from nsightlens.readers.kineto.crew import serve
serve()
"""
_GONE = (OSError, EOFError, pickle.UnpicklingError)


class Work(NamedTuple):
    """What every piece needs: the plain file that it is part of, and how to read its times."""

    path: Path
    origin_ns: int
    exact: bool

    def digest(self, piece: Piece, file: BinaryIO) -> Digest:
        """Return what the piece holds."""
        return digest(piece.load(file), piece.at, piece.last, self.origin_ns, self.exact)


class Crew:
    """Helpers on one file; without any, this process itself does the work."""

    def __init__(self, work: Work, file: BinaryIO, helpers: int) -> None:
        self._work = work
        self._file = file
        self._helpers = [_Helper(work) for _ in range(helpers)]
        self._flying: deque[tuple[Piece, _Helper]] = deque()

    def digests(self, pieces: Iterator[Piece]) -> Iterator[tuple[Piece, Digest]]:
        """Yield each piece with its digest, in order. A piece is handed out only as its helper is free."""
        if not self._helpers:
            for piece in pieces:
                yield piece, self._work.digest(piece, self._file)
            return
        for helper, piece in zip(self._helpers, pieces, strict=False):
            self._hand_out(piece, helper)
        while self._flying:
            piece, helper = self._flying.popleft()
            done = helper.result() or self._work.digest(piece, self._file)
            following = next(pieces, None)
            if following is not None:
                self._hand_out(following, helper)
            yield piece, done

    def _hand_out(self, piece: Piece, helper: _Helper) -> None:
        helper.give(piece)
        self._flying.append((piece, helper))

    def waiting(self) -> list[Piece]:
        """Return the pieces that were handed out and whose digests were not yielded, in order."""
        return [piece for piece, _ in self._flying]

    def close(self) -> None:
        """End the helpers."""
        for helper in self._helpers:
            helper.close()


class _Helper:
    """One helper process."""

    def __init__(self, work: Work) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if sys.executable and not getattr(sys, "frozen", False):
            self._start()
        self._send(sys.path)
        self._send(work)

    def _start(self) -> None:
        with suppress(OSError):
            self._process = subprocess.Popen([sys.executable, "-c", _START], stdin=PIPE, stdout=PIPE, stderr=DEVNULL)

    def _send(self, message: object) -> None:
        if self._process and self._process.stdin:
            try:
                pickle.dump(message, self._process.stdin, protocol=5)
                self._process.stdin.flush()
            except _GONE:
                self.close()

    def give(self, piece: Piece) -> None:
        """Hand over a piece."""
        self._send(piece)

    def result(self) -> Digest | None:
        """Return the digest of the piece given last; None where the helper is gone."""
        if self._process is None or self._process.stdout is None:
            return None
        try:
            batches, *rest = pickle.load(self._process.stdout)
        except _GONE:
            self.close()
            return None
        return Digest([(table, _unpacked(packed)) for table, packed in batches], *rest)

    def close(self) -> None:
        """End the process; a result not yet taken is dropped."""
        process, self._process = self._process, None
        if process:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe:
                        pipe.close()
            process.wait()


def serve() -> None:
    """Digest the pieces that arrive on standard input until it ends; the first message is the work."""
    into, out = sys.stdin.buffer, sys.stdout.buffer
    pa.set_memory_pool(pa.system_memory_pool())  # gives memory back: 18 MB less in each helper, no slower
    with suppress(*_GONE):
        work: Work = pickle.load(into)
        with work.path.open("rb", buffering=0) as file:
            while True:
                done = work.digest(pickle.load(into), file)
                packed = [(table, _packed(batch)) for table, batch in done.batches]
                pickle.dump((packed, done.tally, done.used, done.closed, done.cut), out, protocol=5)
                out.flush()


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(packed).read_next_batch()
