"""The cache of what earlier ingests found out about each file: an unchanged one is neither sniffed nor hashed again.

That a file has not changed is what its size, its times, its inode and its device say, as for git. The change time moves with
every write, also where a copy keeps the modification time. A file that changed shortly before it was looked at is looked at
again: it may have changed once more within one tick of the file system's clock.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, fields
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from nsightlens.discovery.secrets import struck, without_tokens
from nsightlens.readers.reader import Origin, Probe, ProcessHint

FILE = "looks.msgpack"
_PACKAGE = Path(__file__).parent.parent
_SETTLED_NS = 2_000_000_000
"""Age of a change from which on a look at the file can be trusted: the coarsest clock of a common file system ticks every 2 s."""


Stamp = tuple[int, int, int, int, int]
"""Size in bytes, modification and change time in ns, inode and device of a file."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identity of a file's content. `plain`: (size, CRC-32) of the content with gzip taken off, modulo 2^32."""

    text: str
    plain: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a capture was when it was looked at.

    stamp: of then. tool: the reader that takes it.
    """

    stamp: Stamp
    tool: str
    probe: Probe
    fingerprint: Fingerprint


class SniffCache:
    """The captures that a store remembers, by path; kept in a file beside its catalog."""

    def __init__(self, store: Path) -> None:
        """Read the file. Where it is absent, damaged or of other readers than these, nothing is remembered."""
        self._file = store / FILE
        self._known: dict[bytes, Sniffed] = {}
        self._is_new = False
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            code, self._known = msgspec.msgpack.decode(self._file.read_bytes(), type=tuple[str, dict[bytes, Sniffed]])
            if code != _code():
                self._known = {}

    def of(self, path: Path, status: os.stat_result) -> Sniffed | None:
        """Return what the file at a path is, where it has not changed since it was looked at."""
        look = self._known.get(os.fsencode(path))
        return look if look and look.stamp == stamp_of(status) else None

    def keep(self, path: Path, status: os.stat_result, now_ns: int, tool: str, probe: Probe, fingerprint: Fingerprint) -> None:
        """Remember a file. status: from before it was read; now_ns: the time then, by the clock of the epoch."""
        stamp = stamp_of(status)
        if max(stamp[1:3]) < now_ns - _SETTLED_NS:
            self._known[os.fsencode(path)] = Sniffed(stamp, tool, probe, fingerprint)
            self._is_new = True

    def save(self, scratch: Path) -> None:
        """Write what is new of it, in one step: it is made in the folder `scratch`. Where the disk is full nothing is remembered,
        and nothing is said."""
        if not self._is_new:
            return
        with contextlib.suppress(OSError):
            fresh = scratch / self._file.name
            fresh.write_bytes(msgspec.msgpack.encode((_code(), self._known)))
            fresh.replace(self._file)


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what differs between two states of a file."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def probe_without_secrets(probe: Probe) -> Probe:
    """Return what a look at a file showed, without secrets: it is kept and shown. Names of runs may hold `pass=1`."""
    parts: dict[str, Any] = {part.name: _without_secrets(getattr(probe, part.name)) for part in fields(probe)}
    names = {name: value and without_tokens(value) for name, value in (("run", probe.run), ("execution", probe.execution))}
    return Probe(**parts | names)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return struck(value)
    if isinstance(value, tuple | frozenset):
        return type(value)(_without_secrets(each) for each in value)
    if isinstance(value, ProcessHint | Origin):
        return type(value)(**{part.name: _without_secrets(getattr(value, part.name)) for part in fields(value)})
    return value


@cache
def _code() -> str:
    """Return a digest of the readers' and of discovery's source: another look may see other things."""
    total = blake2b(digest_size=16)
    for room in ("readers", "discovery"):
        for file in sorted([*(_PACKAGE / room).rglob("*.py"), *(_PACKAGE / room).rglob("*.tsv")]):
            total.update(file.read_bytes())
    return total.hexdigest()
