"""How far the reading of profiles is, told about twice a second: which are done, and how many bytes of the others are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from nsightlens.readers.measure import bytes_read

_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of an ingest: `done` of `total` profiles are read, and what was the last one ("": none since the step before).

    read_bytes, all_bytes: of all profiles (0 of 0 where nothing is counted). reading: name, bytes read and bytes in all of the
    files begun and not done. unit: what is counted, where it is not bytes.
    """

    done: int
    total: int
    label: str
    read_bytes: int = 0
    all_bytes: int = 0
    reading: tuple[tuple[str, int, int], ...] = ()
    unit: str = "bytes"


OnProgress = Callable[[Progress], None]


class Meter:
    """Keeps `on_progress` posted from a thread of its own, for as long as profiles are read."""

    def __init__(
        self, folder: Path, sizes: Mapping[str, tuple[str, int]], on_progress: OnProgress | None, unit: str = "bytes",
    ) -> None:
        """folder: where `counter` has the bytes of each profile. sizes: profile -> name of its file, and bytes.

        unit: what is counted instead of bytes.
        """
        self._folder, self._unit = folder, unit
        self._sizes = dict(sizes)
        self._done: set[str] = set()
        self._tell = on_progress
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Meter:
        if self._tell is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        if self._tell is not None:
            self._thread.join()

    def finished(self, profile: str, label: str) -> None:
        """Say that a profile is read (or refused)."""
        self._done.add(profile)
        self._step(label)

    def _watch(self) -> None:
        self._step("")
        while not self._ended.wait(_SECONDS):
            self._step("")

    def _step(self, label: str) -> None:
        if self._tell is None:
            return
        with self._lock:
            begun = {name: min(bytes_read(counter(self._folder, name)), size) for name, (_, size) in self._sizes.items()
                     if name not in self._done}
            reading = tuple((self._sizes[name][0], count, self._sizes[name][1]) for name, count in begun.items() if count)
            read = sum(begun.values()) + sum(self._sizes[name][1] for name in self._done if name in self._sizes)
            self._tell(Progress(len(self._done), len(self._sizes), label, read, sum(size for _, size in self._sizes.values()),
                                reading, self._unit))


def counter(folder: Path, profile: str) -> Path:
    """Return the file in which the bytes that were read of a profile are counted."""
    return folder / f"{profile}.read"
