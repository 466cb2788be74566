"""A long table on a terminal, page by page."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys

from nsightlens.terminal.output import echo, for_terminal

_LESS = {"LESS": "FRSX"}
"""Quit where all fits, keep colours, do not wrap lines, leave the text on the screen."""


def print_paged(text: str, *, styled: bool = False) -> None:
    """Print a text, through PAGER or less where it is longer than the terminal and both ends are one. styled: as for `echo`."""
    pager = _pager() if sys.stdin.isatty() and sys.stdout.isatty() else None
    if pager is None or text.count("\n") < shutil.get_terminal_size().lines:
        echo(text, newline=False, styled=styled)
        return
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        subprocess.run(pager, input=for_terminal(text, styled=styled), text=True, env={**_LESS, **os.environ}, check=False)
    finally:
        signal.signal(signal.SIGINT, before)


def _pager() -> list[str] | None:
    """Return the command of the pager; None where there is none, or PAGER is empty or cat, or the terminal is dumb."""
    words = shlex.split(os.environ.get("PAGER", "less"))
    known = bool(words) and shutil.which(words[0]) is not None and words != ["cat"]
    return words if known and os.environ.get("TERM") != "dumb" else None
