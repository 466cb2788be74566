"""When output has colour, and what is coloured: words that ask for attention, nothing else.

NO_COLOR (no-color.org) and TERM=dumb turn colour off, FORCE_COLOR and CLICOLOR_FORCE on, CLICOLOR=0 off; else terminals have it.
"""

from __future__ import annotations

import os
from typing import TextIO

import click

_COLOURS = {
    **dict.fromkeys(("straggler", "error", "refused", "slower", "slow", "longer", "bad", "unbalanced"), "red"),
    **dict.fromkeys(("warning", "late", "note", "undecided", "cannot tell"), "yellow"),
    **dict.fromkeys(("faster", "shorter", "good"), "green"),
}
_COLUMNS = ("verdict", "severity", "state", "")
"""Columns whose words have a colour; on a page the verdict has no header."""


def colour_setting() -> bool | None:
    """Return whether the environment wants colour; None where it leaves that to the stream."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM") == "dumb":
        return False
    return None


def wanted(stream: TextIO) -> bool:
    """Return whether what goes to this stream has colour."""
    by_environment = colour_setting()
    return stream.isatty() if by_environment is None else by_environment


def painted(column: str, cell: str, placed: str) -> str:
    """Return a placed cell in its colour, where its column and its word have one."""
    colour = _COLOURS.get(cell.strip()) if column in _COLUMNS else None
    return placed.replace(cell, click.style(cell, fg=colour)) if colour and cell else placed
