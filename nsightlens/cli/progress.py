"""How far a long command is: a bar on a terminal; elsewhere a line per profile, and one at least every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nsightlens.pipeline.meter import Progress

_LINES = 20
_EVERY_SECONDS = 10
_FEW = 2
_MB = 1e6


def progress(stack: ExitStack) -> Callable[[Progress], None]:
    """Return a callback that says how far the reading is; stack: what ends the bar."""
    began = time.monotonic()
    if not sys.stderr.isatty():
        return _Lines(began).say
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = stack.enter_context(Bar(TextColumn("reading"), BarColumn(), TextColumn("{task.description}", markup=False),
                                  console=Console(stderr=True), transient=True))
    task = bar.add_task("", total=None)

    def show(step: Progress) -> None:
        part, whole = (step.read_bytes, step.all_bytes) if step.all_bytes else (step.done, step.total)
        bar.update(task, completed=part, total=whole or None, description=said(step, time.monotonic() - began))

    return show


class _Lines:
    """Progress as lines: what is done, and where nothing was said for ten seconds, how far it is."""

    def __init__(self, began: float) -> None:
        self._began = self._said = began

    def say(self, step: Progress) -> None:
        """Print a line where there is one to print."""
        now = time.monotonic()
        every = max(1, step.total // _LINES)
        ends = bool(step.label) and (step.done % every == 0 or step.done == step.total)
        if ends or now - self._said >= _EVERY_SECONDS:
            self._said = now
            text = step.label if ends else said(step, now - self._began).partition(" ")[2]
            click.echo(f"[{step.done}/{step.total}] {text}", err=True)


def said(step: Progress, seconds: float) -> str:
    """Return how far it is: '0/2 rank0.json 40 %; 120 of 298 MB, 40 MB/s, 5 s left'."""
    texts = [f"{step.done}/{step.total}"]
    if not step.all_bytes:
        return " ".join([*texts, step.label]).rstrip()
    if step.reading:
        more = f" and {len(step.reading) - _FEW} more" if len(step.reading) > _FEW else ""
        texts.append(", ".join(f"{name} {100 * read // max(size, 1)} %" for name, read, size in step.reading[:_FEW]) + f"{more};")
    of = f"{step.read_bytes / _MB:,.0f} of {step.all_bytes / _MB:,.0f} MB"
    if step.read_bytes >= step.all_bytes > 0:
        return " ".join([*texts, of, "read; linking and writing" if step.done < step.total else "read"])
    rate = step.read_bytes / seconds if seconds else 0
    left = f", {rate / _MB:,.0f} MB/s, {_time((step.all_bytes - step.read_bytes) / rate)} left" if rate else ""
    return " ".join([*texts, of + left])


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Say every ten seconds, for as long as the block runs, that `what` still goes on, and for how long it has."""
    ended, began = threading.Event(), time.monotonic()

    def watch() -> None:
        while not ended.wait(_EVERY_SECONDS):
            click.echo(f"{what}: {_time(time.monotonic() - began)} so far", err=True)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
