"""Captures that a command reads without a store of the user's: in a temporary one, which goes when the command ends."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count as count_from
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.cli.progress import progress
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.terminal.command import Command

if TYPE_CHECKING:
    from nsightlens.store.comparison import RunPlace
    from nsightlens.store.store import Store
    from nsightlens.terminal.text import Text


def opened(captures: Sequence[Path], store: Path | None, views: Path | None, stack: ExitStack) -> Store:
    """Return the store, or where captures are given a temporary one of them; `stack` closes it and leaves nothing behind.

    Raises UsageError where both are given, and NsightlensError where no capture was read, after the reasons were said.
    """
    import nsightlens as nl
    from nsightlens.cli.ingest import refusals_of

    if not captures:
        found = stack.enter_context(nl.open(store, views=views))
        if not found.sql("SELECT 1 FROM profiles LIMIT 1").num_rows:
            raise _nothing(f"{found.path}: no capture was read into this store", refusals_of(found))
        return found
    if store:
        raise UsageError("give captures or --store, not both: captures are read without a store")
    folder = _folder(stack)
    read(captures, folder)
    return stack.enter_context(nl.open(folder, views=views))


def opened_runs(names: Sequence[str], store: Path | None, views: Path | None, stack: ExitStack) -> tuple[list[RunPlace], bool]:
    """Return the runs that names mean, and whether they lie in the user's store: its runs, else stores and captures.

    Without names: the two runs of the store. `stack` closes what is opened. Raises UsageError for a name that is neither.
    """
    import nsightlens as nl
    from nsightlens.analyses._runs import named
    from nsightlens.store.comparison import RunPlace
    from nsightlens.store.store import is_store, locate

    missing = [name for name in names if not Path(name).exists()]
    is_path = bool(names) and not missing
    if missing and not store and not is_store(locate(None)):
        raise UsageError(f"{missing[0]}: no such file, and no store here ({locate(None)}) that could have a run of that name")
    if store or not is_path or is_store(locate(None)):
        with ExitStack() as trial:
            found = trial.enter_context(nl.open(store, views=views))
            runs = found.values_of("run")
            if store or not is_path or set(names) <= set(runs):
                those = names if len(names) > 2 and set(names) <= set(runs) else named(found.sql, *_two(names))
                stack.enter_context(trial.pop_all())
                return [RunPlace(found, run, run) for run in those], True
    if len(names) < 2:
        raise UsageError((f"{names[0]}: name a second one to compare it with; the ranks of a run: ", Command("compare ranks")))
    labels = _labels(names)
    folder = _folder(stack)
    for name, label in zip(names, labels, strict=True):
        if not is_store(Path(name)):
            read([Path(name)], folder, label)
    captures = stack.enter_context(nl.open(folder, views=views)) if folder.exists() else None
    return [_place(name, label, captures, views, stack) for name, label in zip(names, labels, strict=True)], False


def _place(name: str, label: str, captures: Store | None, views: Path | None, stack: ExitStack) -> RunPlace:
    """Return a capture that was read, or the only run of a store."""
    import nsightlens as nl
    from nsightlens.store.comparison import RunPlace
    from nsightlens.store.store import is_store

    if not is_store(Path(name)):
        assert captures
        return RunPlace(captures, label, label)
    store = stack.enter_context(nl.open(name, views=views))
    runs = store.values_of("run")
    if len(runs) != 1:
        raise UsageError((f"{name} has {len(runs)} runs ({', '.join(runs) or 'none'}): ",
                          Command("compare", ("A", "B", ("--store", name))), " compares two of one store"))
    return RunPlace(store, runs[0], label)


def _two(names: Sequence[str]) -> tuple[str | None, str | None]:
    if len(names) > 2:
        raise UsageError(f"{', '.join(names)}: neither runs of the store nor files", subject="run", value=list(names))
    base, other = (*names, None, None)[:2]
    return base, other


def _labels(names: Sequence[str]) -> list[str]:
    """Return what each path is called: in what it differs from the others; a path that stands twice is numbered."""
    paths = [Path(name).resolve() for name in names]
    if len(set(paths)) < len(paths):
        return [f"{path.name} ({place})" for place, path in enumerate(paths, 1)]
    several = (["/".join(path.parts[-count:]) for path in paths] for count in count_from(1))
    texts = next(texts for texts in several if len(set(texts)) == len(texts))
    behind = _shared([text[::-1] for text in texts])
    texts = [text[:len(text) - behind] for text in texts]
    before = _shared(texts)
    return [text[before:] for text in texts]


def _shared(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with, up to a mark between words; none where nothing would be left of one."""
    common = takewhile(lambda marks: len(set(marks)) == 1, zip(*texts, strict=False))
    ends = [place for place, (mark, *_) in enumerate(common, 1) if mark in "/._- "]
    return max((end for end in ends if all(len(text) > end for text in texts)), default=0)


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nsightlens-"))) / "store"


def read(captures: Sequence[Path], store: Path, run: str | None = None) -> None:
    """Read captures into a store, as one run where it has a name. Raises NsightlensError where none was read."""
    from nsightlens.cli.ingest import NO_CAPTURES, refusals, say
    from nsightlens.pipeline.ingest import ingest

    with ExitStack() as reading:
        report = ingest(captures, store, run=run, on_progress=progress(reading))
    refused = refusals(report)
    if all(outcome.state == "refused" for outcome in report.outcomes):
        names = ", ".join(map(str, captures))
        raise _nothing(f"{names}: {'nothing was read' if refused else NO_CAPTURES}", refused)
    for line in refused:
        say(line)


def read_run(capture: Path, store: Path, run: str) -> None:
    """Read a capture, or a folder of them, into a store as a run of that name. Raises as `read`."""
    read([capture], store, run)


def _nothing(text: str, refused: Sequence[Text]) -> NsightlensError:
    """Say why files were refused, and return the error where there is nothing to show."""
    from nsightlens.cli.messages import complain

    for line in refused:
        complain(line)
    return NsightlensError(text)
