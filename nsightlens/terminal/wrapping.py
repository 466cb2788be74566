"""Sentences in lines that fit a width: words are wrapped, and what people copy stands whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from nsightlens.terminal.printable import LAYOUT, printable
from nsightlens.terminal.text import parts

if TYPE_CHECKING:
    from nsightlens.terminal.command import Command
    from nsightlens.terminal.text import Part, Text

_WORD = re.compile(r"(?:\S|(?<=\d) (?=(?:%|[nµm]?s|[KMGT]i?B(?:/s)?|[GT]FLOP/s)(?!\w)))+|\s+")
"""A word, or the space between two; a figure and its unit are one."""
_ENDS = (".", ",", ";")


def wrapped(
    text: Text, width: int, *, command: Callable[[Command], str] = str, indent: str = "", cuts: bool = True,
) -> list[str]:
    """Return a text in lines of at most `width` characters, broken between words.

    A command, or what else is copied as it stands (Verbatim), is never broken: where it does not fit behind what stands before
    it, it has a line of its own, however long that gets, and no comma or full stop behind it. command: how its reader gives a
    command. indent: what each line but the first begins with. cuts: whether words longer than a line are cut.
    """
    lines: list[str] = []
    line, is_alone = "", False
    for piece, is_whole in _pieces(text, command):
        if is_alone and piece in _ENDS:
            continue
        is_alone = False
        if piece.isspace():
            line += " " * len(piece) if line.strip() or not lines else ""
            continue
        is_moved = bool(line.strip()) and len(line) + len(piece) > width
        if is_moved:
            lines.append(line.rstrip())
            line = indent
        if is_whole and (is_moved or len(line) + len(piece) > width):
            lines.append(line + piece)
            line, is_alone = indent, True
            continue
        while cuts and not is_whole and len(line) + len(piece) > width > len(indent):
            room = max(1, width - len(line))
            lines.append(line + piece[:room])
            line, piece = indent, piece[room:]
        line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: Text, command: Callable[[Command], str]) -> Iterator[tuple[str, bool]]:
    """Yield what a line may be broken between, and whether it is to be copied as it stands."""
    for part in parts(text):
        if type(part) is str:
            yield from ((piece, False) for piece in _WORD.findall(part))
        else:
            yield part if isinstance(part, str) else command(part), True


def printable_text(text: Text, but: str = "") -> tuple[Part, ...]:
    """Return a text whose words cannot steer a terminal, nor begin a line. but: characters that stay; in commands lines do."""
    return tuple(type(part)(printable(part, but if type(part) is str else LAYOUT)) if isinstance(part, str) else part
                 for part in parts(text))
