"""Helper processes that digest pieces of one file beside this process, results in the order of the pieces.

They are plain child processes on two pipes: they do not import the caller's script, and end when this process does, since
their input ends. Where they cannot be started or die, this process does the work itself.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any, BinaryIO, NamedTuple

import pyarrow as pa

from nsightlens.readers.kineto.digest import Digest, digest
from nsightlens.readers.kineto.stream import ArrayPiece, Frame

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

# pyarrow imports pandas as soon as it is installed, only to ask whether a list is a Series: 0.3 s and 50 MB in each helper.
_START = """
import pickle, sys
class WithoutPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError("not needed here")
sys.meta_path.insert(0, WithoutPandas())
size = int.from_bytes(sys.stdin.buffer.read(8), "little")
sys.path[:] = pickle.loads(sys.stdin.buffer.read(size))
from nsightlens.readers.kineto.worker_processes import serve
serve()
"""
_PIPE_BYTES = 1 << 20
_MOST_BYTES = 1 << 31
_MOST_FLYING = 8
_GONE = (OSError, EOFError, pickle.UnpicklingError)


class PieceContext(NamedTuple):
    """What every piece needs: the plain file that it is part of (None: pieces have their bytes), and how to read its times."""

    path: Path | None
    origin_ns: int
    exact: bool

    def digest(self, piece: ArrayPiece, file: BinaryIO | None, frame: Frame) -> Digest:
        """Return what the piece holds. frame: memory to use."""
        return digest(frame.load(piece, file), piece.at, piece.last, self.origin_ns, self.exact)


class Crew:
    """Helpers on one file, and this process, which does what they have no time for; without any, it does all."""

    def __init__(self, work: PieceContext, file: BinaryIO, helpers: int) -> None:
        self._work = work
        self._file = file
        self._frame = Frame()
        self._helpers = [_Helper(work) for _ in range(helpers)]
        self._flying: deque[tuple[ArrayPiece, _Helper | Digest]] = deque()

    def digests(self, pieces: Iterator[ArrayPiece]) -> Iterator[tuple[ArrayPiece, Digest]]:
        """Yield each piece with its digest, in order."""
        while True:
            self._hand_out(pieces)
            if not self._flying:
                return
            piece, by = self._flying[0]
            ahead = None
            if isinstance(by, _Helper) and not by.is_ready() and len(self._flying) < _MOST_FLYING:
                ahead = next(pieces, None)
            if ahead is not None:
                self._flying.append((ahead, self._digest(ahead)))
                continue
            done = by if isinstance(by, Digest) else by.result() or self._digest(piece)
            self._flying.popleft()
            yield piece, done

    def _hand_out(self, pieces: Iterator[ArrayPiece]) -> None:
        """Give every helper that can take one a piece; where there is no helper, take one here."""
        for helper in self._helpers:
            while helper.has_room() and (piece := next(pieces, None)):
                helper.give(piece)
                self._flying.append((piece, helper))
        if not self._flying and (piece := next(pieces, None)):
            self._flying.append((piece, self._digest(piece)))

    def _digest(self, piece: ArrayPiece) -> Digest:
        return self._work.digest(piece, self._file, self._frame)

    def waiting(self) -> list[ArrayPiece]:
        """Return the pieces that were taken and whose digests were not yielded, in order."""
        return [piece for piece, _ in self._flying]

    def close(self) -> None:
        """End the helpers."""
        for helper in self._helpers:
            helper.close()


class _Helper:
    """One helper process. It is given one piece while it works on another, so that it need not wait for this process."""

    def __init__(self, work: PieceContext) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._hired = False
        self._given = 0
        self._holds_bytes = False
        if sys.executable and not getattr(sys, "frozen", False):
            self._start()
        self._send(sys.path)
        self._send(work)

    def _start(self) -> None:
        with suppress(OSError):
            self._process = subprocess.Popen([sys.executable, "-c", _START], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, bufsize=0,
                                             env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
        if self._process:
            for pipe in (self._process.stdin, self._process.stdout):
                _widen(pipe)

    def _send(self, message: object) -> None:
        if self._process and self._process.stdin:
            try:
                _write(self._process.stdin, message)
            except _GONE:
                self.close()

    def has_room(self) -> bool:
        """Return whether a piece can be given: not before the helper has said that it is there.

        Not a second one where pieces travel with their bytes: both pipes could fill up, and both sides wait.
        """
        if not self._hired and self.is_ready():
            self._receive()
            self._hired = True
        return self._process is not None and self._hired and self._given < (1 if self._holds_bytes else 2)

    def give(self, piece: ArrayPiece) -> None:
        """Hand over a piece."""
        self._given += 1
        self._holds_bytes = piece.data is not None
        self._send(piece)

    def is_ready(self) -> bool:
        """Return whether `result` need not wait (for long)."""
        if self._process is None or self._process.stdout is None or not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        return bool(poll.poll(0))

    def result(self) -> Digest | None:
        """Return the digest of the piece given first; None where the helper is gone."""
        self._given -= 1
        received = self._receive()
        if received is None:
            return None
        batches, *rest = received
        return Digest([(table, _unpacked(packed)) for table, packed in batches], *rest)

    def _receive(self) -> Any:
        """Return the next message; None where the helper is gone."""
        try:
            return _read(self._process.stdout) if self._process and self._process.stdout else None
        except _GONE:
            self.close()
            return None

    def close(self) -> None:
        """End the process; results not yet taken are dropped."""
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
    into, out = sys.stdin.buffer, open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)  # noqa: SIM115
    pa.set_memory_pool(pa.system_memory_pool())  # gives memory back: 18 MB less in each helper, no slower
    frame = Frame()
    with suppress(*_GONE):
        work: PieceContext = _read(into)
        _write(out, "here")
        with work.path.open("rb", buffering=0) if work.path else nullcontext() as file:
            while True:
                done = work.digest(_read(into), file, frame)
                packed = [(table, _packed(batch)) for table, batch in done.batches]
                _write(out, (packed, done.tally, done.used, done.closed, done.cut))


def _write(pipe: IO[bytes], message: object) -> None:
    """Send a message: its size in eight bytes, then its pickle."""
    content = pickle.dumps(message, protocol=5)
    for part in (len(content).to_bytes(8, "little"), content):
        left = memoryview(part)
        while left:
            left = left[pipe.write(left) :]


def _read(pipe: IO[bytes]) -> Any:
    """Return a message that `_write` sent. Raises EOFError where there is none."""
    size = int.from_bytes(_exactly(pipe, 8), "little")
    if size > _MOST_BYTES:
        raise EOFError
    return pickle.loads(_exactly(pipe, size))


def _exactly(pipe: IO[bytes], size: int) -> bytearray:
    content = bytearray(size)
    left = memoryview(content)
    while left:
        count = pipe.readinto(left)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        left = left[count:]
    return content


def _widen(pipe: IO[bytes] | None) -> None:
    """Let a pipe hold a whole message where the system can do that, so that who writes it can go on."""
    if pipe and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(packed).read_next_batch()
