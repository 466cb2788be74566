"""Captures that a command reads without a store of the user's: in a temporary one, which goes when the command ends."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.cli.progress import progress
from nsightlens.errors import NsightlensError, UsageError

if TYPE_CHECKING:
    from nsightlens.store.store import Store
    from nsightlens.terminal.text import Text


def opened(captures: Sequence[Path], store: Path | None, views: Path | None, stack: ExitStack) -> Store:
    """Return the store, or where captures are given a temporary one of them; `stack` closes it and leaves nothing behind.

    Raises UsageError where both are given, and NsightlensError where no capture was read, after the reasons were said.
    """
    import nsightlens as nl
    from nsightlens.cli.ingest import NO_CAPTURES, refusals, refusals_of, say

    if not captures:
        found = stack.enter_context(nl.open(store, views=views))
        if not found.sql("SELECT 1 FROM profiles LIMIT 1").num_rows:
            raise _nothing(f"{found.path}: no capture was read into this store", refusals_of(found))
        return found
    if store:
        raise UsageError("give captures or --store, not both: captures are read without a store")
    from nsightlens.pipeline.ingest import ingest

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nsightlens-"))
    with ExitStack() as reading:
        report = ingest(captures, Path(folder) / "store", on_progress=progress(reading))
    refused = refusals(report)
    if all(outcome.state == "refused" for outcome in report.outcomes):
        names = ", ".join(map(str, captures))
        raise _nothing(f"{names}: {'nothing was read' if refused else NO_CAPTURES}", refused)
    for line in refused:
        say(line)
    return stack.enter_context(nl.open(Path(folder) / "store", views=views))


def _nothing(text: str, refused: Sequence[Text]) -> NsightlensError:
    """Say why files were refused, and return the error where there is nothing to show."""
    from nsightlens.cli.messages import complain

    for line in refused:
        complain(line)
    return NsightlensError(text)
