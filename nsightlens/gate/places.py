"""The runs that names stand for: runs of a store, stores, baselines, or captures, which are read into a temporary store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from nsightlens.errors import NsightlensError, UsageError
from nsightlens.gate import baselines
from nsightlens.gate.baselines import Saved
from nsightlens.gate.check import Asked, Check, check_sides
from nsightlens.store.comparison import RunPlace
from nsightlens.store.store import Store, is_store, locate

Read = Callable[[Path, Path, str], None]
"""Reads a capture or folder into a store, as a run. Raises NsightlensError where there is nothing."""


def checked(
    base: Sequence[str], candidate: Sequence[str], store: Store | Path | None, views: Path | None, asked: Asked, read: Read,
) -> Check:
    """Return the check of two sides. Each name is a run of the store, a store, the file of a baseline, or a capture or folder.

    Captures are read for this check alone. Raises UsageError for a side without a name, and for what is none of these.
    """
    with ExitStack() as stack:
        sides = Named(stack, store, views, read)
        before, after = sides.named("base", base), sides.named("candidate", candidate)
        return check_sides(sides.places(before), sides.places(after), asked)


class Named:
    """What is open while names are read: the user's store, if there is one, stores by path, and the temporary one."""

    def __init__(self, stack: ExitStack, store: Store | Path | None, views: Path | None, read: Read) -> None:
        self._stack, self._views, self._read = stack, views, read
        there = store if isinstance(store, Store) else locate(store)
        self._store = there if isinstance(there, Store) else self._opened(there) if store or is_store(there) else None
        self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="nsightlens-"))) / "store"
        self._labels: set[str] = set()

    @property
    def runs(self) -> list[str]:
        """Return the runs of the user's store."""
        return list(self._store.values_of("run")) if self._store else []

    def named(self, side: str, names: Sequence[str]) -> list[RunPlace | Saved | str]:
        """Return the runs of a side: of a capture what its run is called in the temporary store."""
        if not names:
            raise UsageError(f"name the {side}: a run of the store, a capture, or a folder of captures", subject=side)
        runs = self.runs
        found: list[RunPlace | Saved | str] = []
        for name in names:
            if self._store and name in runs:
                found.append(RunPlace(self._store, name, name))
            elif not Path(name).exists():
                has = f"the store has {', '.join(runs) or 'none'}" if self._store else f"there is no store here ({locate(None)})"
                raise UsageError(f"{name}: no such file, and no run of that name: {has}", subject=side, value=name, choices=runs)
            elif is_store(Path(name)):
                other = self._opened(Path(name))
                found += [RunPlace(other, run, run) for run in other.values_of("run")]
            elif baselines.is_baseline(Path(name)):
                found.append(baselines.read(Path(name)))
            else:
                found.append(self._captured(Path(name)))
        if not found:
            raise NsightlensError(f"{', '.join(names)}: no run here to check")
        return found

    def places(self, named: Sequence[RunPlace | Saved | str]) -> list[RunPlace | Saved]:
        """Return the runs of a side, those of captures in the temporary store."""
        return [RunPlace(self._temporary, each, each) if isinstance(each, str) else each for each in named]

    @cached_property
    def _temporary(self) -> Store:
        """Return the store of what was read, complete by now."""
        return self._opened(self._folder)

    def _captured(self, path: Path) -> str:
        """Read a capture, and return what its run is called."""
        name = path.resolve().name or "captures"
        label = next(text for text in (name, *(f"{name} ({number})" for number in range(2, 1 << 20))) if text not in self._labels)
        self._labels.add(label)
        self._read(path, self._folder, label)
        return label

    def _opened(self, path: Path) -> Store:
        from nsightlens.views import folder

        return self._stack.enter_context(Store(path, folder.locate(self._views)))


def read_quietly(path: Path, store: Path, run: str) -> None:
    """Read a capture into a store, for callers of Python."""
    from nsightlens.pipeline.ingest import ingest

    report = ingest([path], store, run=run)
    if all(outcome.state == "refused" for outcome in report.outcomes):
        raise report.refused[0] if report.refused else NsightlensError(f"{path}: no captures here: nothing was read")
