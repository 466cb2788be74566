"""The one function that prints. On a terminal nothing in a text can steer it; files and pipes get the text as it is."""

from __future__ import annotations

import re
import sys
from typing import TextIO

import click

from nsightlens.terminal.colour import colour_setting
from nsightlens.terminal.printable import LAYOUT, printable

_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


def echo(text: str = "", *, err: bool = False, stream: TextIO | None = None, newline: bool = True, styled: bool = False) -> None:
    """Print a text to standard output, to standard error (err), or to `stream`.

    styled: it has styles (click.style) around names that are `printable` already; they go where colour is not wanted.
    """
    target = stream or (sys.stderr if err else sys.stdout)
    shown = for_terminal(text, styled=styled) if target.isatty() else text
    click.echo(shown, file=target, nl=newline, color=colour_setting() if styled else True)  # True: click takes nothing out


def for_terminal(text: str, *, styled: bool = False) -> str:
    """Return a text as a terminal gets it: lines and tabs as they are, all else that has no sign of its own as its escape.

    styled: its styles stay.
    """
    if not styled:
        return printable(text, LAYOUT)
    return "".join(part if number % 2 else printable(part, LAYOUT) for number, part in enumerate(_STYLE.split(text)))
