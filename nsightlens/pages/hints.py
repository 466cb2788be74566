"""Commands in the texts of a page, as its reader gives them: on a command line with its --store, in Python as calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from nsightlens.terminal.command import Command


@dataclass(frozen=True, slots=True)
class Reader:
    """How the reader of a page gives commands: those in our own sentences, and one with names in it."""

    sentence: Callable[[str], str] = str
    command: Callable[[Command], str] = Command.shell


_READER: ContextVar[Reader] = ContextVar("reader", default=Reader())  # noqa: B039 - frozen


def hint(text: str) -> str:
    """Return a sentence of ours whose commands are as the reader of the page gives them."""
    return _READER.get().sentence(text)


def shown(command: Command) -> str:
    """Return a command as the reader of the page gives it."""
    return _READER.get().command(command)


def read_by(reader: Reader) -> None:
    """Let the pages from now on be for this reader."""
    _READER.set(reader)


@contextmanager
def for_reader(reader: Reader) -> Iterator[None]:
    """Let the pages within the block be for this reader."""
    before = _READER.set(reader)
    try:
        yield
    finally:
        _READER.reset(before)
