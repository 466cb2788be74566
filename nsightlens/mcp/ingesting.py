"""The tool that reads captures into the store of the server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nsightlens.errors import NsightlensError
from nsightlens.mcp.rows import OF_RUNS, show
from nsightlens.terminal.command import Command

if TYPE_CHECKING:
    from nsightlens.mcp.answers import Answer
    from nsightlens.mcp.session import Session


def ingest(session: Session, path: str, run: str | None = None) -> Answer:
    """Read captures into the server's own store, and list the runs that they are. path: a file or folder below those given with
    --allow. run: its name; none: that of the folder, or of the file.
    """
    report = session.ingest(path, run)
    if all(outcome.state == "refused" for outcome in report.outcomes):
        raise NsightlensError(f"{path}: no captures were read. {report.refused[0] if report.refused else 'There are none.'}")
    notes = [reason for _, reason in report.warnings(session.store.sql)]
    runs = sorted({outcome.run for outcome in report.outcomes})
    listed = show(session, "profile_overview", {"run": runs}, list(OF_RUNS))
    return replace(listed, command=Command("ingest", (path,)), notes=notes)
