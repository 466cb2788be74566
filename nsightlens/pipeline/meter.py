"""How far the reading of profiles is, told about twice a second: which are done, and how many bytes of the others are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from nsightlens.readers.measure import bytes_read

_SECONDS = 0.5
_COUNTER = ".read"


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
        self._bytes = sum(size for _, size in self._sizes.values())
        self._done: set[str] = set()
        self._done_bytes = 0
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
        if profile not in self._done:
            self._done.add(profile)
            self._done_bytes += self._sizes.get(profile, ("", 0))[1]
        self._step(label)

    def _watch(self) -> None:
        self._step("")
        while not self._ended.wait(_SECONDS):
            self._step("")

    def _step(self, label: str) -> None:
        if self._tell is None:
            return
        with self._lock:
            begun = self._begun()
            reading = tuple((self._sizes[name][0], count, self._sizes[name][1]) for name, count in begun.items() if count)
            self._tell(Progress(len(self._done), len(self._sizes), label, sum(begun.values()) + self._done_bytes, self._bytes,
                                reading, self._unit))

    def _begun(self) -> dict[str, int]:
        """Return how much is read of the profiles begun and not done: a look at their counters alone, however many wait."""
        begun = sorted(path.name.removesuffix(_COUNTER) for path in self._folder.glob(f"*{_COUNTER}"))
        return {name: min(bytes_read(counter(self._folder, name)), self._sizes[name][1]) for name in begun
                if name in self._sizes and name not in self._done}


def counter(folder: Path, profile: str) -> Path:
    """Return the file in which the bytes that were read of a profile are counted."""
    return folder / f"{profile}{_COUNTER}"
