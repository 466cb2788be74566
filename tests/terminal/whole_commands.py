"""Which commands an output was made with, by the values themselves, and whether they stand whole in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nsightlens.terminal.quoting import Verbatim


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Yield the command lines that are made in this process until the end of the block."""
    made: set[str] = set()

    def new(kind: type[Verbatim], text: str = "") -> Verbatim:
        made.add(str(text))
        return str.__new__(kind, text)

    Verbatim.__new__ = new  # type: ignore[method-assign, assignment]
    try:
        yield made
    finally:
        del Verbatim.__new__


def too_long(lines: Sequence[str], width: int, made: set[str]) -> list[str]:
    """Return the lines that do not fit, but for those that are one command alone."""
    return [line for line in lines if len(line) > width and line.strip() not in made]


def broken(output: str, made: set[str]) -> list[str]:
    """Return the commands that stand in an output, none of whose places is whole on a line."""
    words, lines = " ".join(output.split()), output.splitlines()
    return [command for command in made if " ".join(command.split()) in words and not any(command in line for line in lines)]
