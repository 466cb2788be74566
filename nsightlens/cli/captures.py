"""Captures that a command reads without a store of the user's: in a temporary one, which goes when the command ends."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.cli.progress import progress
from nsightlens.errors import UsageError

if TYPE_CHECKING:
    from nsightlens.store.store import Store


def opened(captures: Sequence[Path], store: Path | None, views: Path | None, stack: ExitStack) -> Store:
    """Return the store, or where captures are given a temporary one of them; `stack` closes it and leaves nothing behind.

    Raises UsageError where both are given.
    """
    import nsightlens as nl

    if not captures:
        return stack.enter_context(nl.open(store, views=views))
    if store:
        raise UsageError("give FILE, RUN_DIR or --store: captures are read without a store")
    from nsightlens.pipeline.ingest import ingest

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nsightlens-"))
    with ExitStack() as reading:
        ingest(captures, Path(folder) / "store", on_progress=progress(reading))
    return stack.enter_context(nl.open(Path(folder) / "store", views=views))
