"""Sentences of ours in which commands stand as values, until somebody writes them for a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from nsightlens.terminal.command import Command

    Part: TypeAlias = str | Command
    Text: TypeAlias = str | tuple[Part, ...]
    """A sentence: words alone, or words and commands."""


def written(text: Text, command: Callable[[Command], str] = str) -> str:
    """Return a text as its reader takes it. command: how that reader gives a command."""
    return "".join(part if isinstance(part, str) else command(part) for part in parts(text))


def parts(text: Text) -> tuple[Part, ...]:
    """Return the words and commands of a text."""
    return (text,) if isinstance(text, str) else text


def joined(separator: str, texts: Sequence[Text]) -> tuple[Part, ...]:
    """Return texts as one, with a separator between them."""
    return tuple(part for number, text in enumerate(texts) for part in (*((separator,) if number else ()), *parts(text)))
