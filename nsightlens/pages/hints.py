"""Commands in the texts of a page, as its reader gives them: on a command line with its --store, in Python as calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Adapt = Callable[[str], str]
_ADAPT: ContextVar[Adapt | None] = ContextVar("adapt", default=None)


def hint(text: str) -> str:
    """Return a text whose commands are as the reader of the page gives them."""
    adapt = _ADAPT.get()
    return text if adapt is None else adapt(text)


def adapt_by(adapt: Adapt) -> None:
    """Let `adapt` say from now on how the reader gives the commands of a text."""
    _ADAPT.set(adapt)


@contextmanager
def adapted_by(adapt: Adapt) -> Iterator[None]:
    """Let `adapt` say it within the block."""
    before = _ADAPT.set(adapt)
    try:
        yield
    finally:
        _ADAPT.reset(before)
