"""How far a long command is: a bar on a terminal; elsewhere a line per profile, and one at least every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable

if TYPE_CHECKING:
    from nsightlens.pipeline.meter import Progress

_T = TypeVar("_T")
OnStep = Callable[[int, int, str], None]
"""Takes a step that begins: how many are done, how many there are, and its name."""

_LINES = 20
_EVERY_SECONDS = 10
_FEW = 2
_MB = 1e6
_BRIEF_SECONDS = 1
_BEAT_SECONDS = 0.5


def progress(stack: ExitStack) -> Callable[[Progress], None]:
    """Return a callback that says how far the reading is; stack: what ends the bar."""
    began = time.monotonic()
    if not sys.stderr.isatty():
        return _Lines(began).say
    show = stack.enter_context(_bar("reading"))
    return lambda step: show(step, time.monotonic() - began)


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[Progress, float], None]]:
    """Yield what moves a bar on standard error: it takes how far the command is, and the seconds so far."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(TextColumn(doing), BarColumn(), TextColumn("{task.description}", markup=False), console=Console(stderr=True),
             transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=None)

        def show(step: Progress, seconds: float) -> None:
            part, whole = (step.read_bytes, step.all_bytes) if step.all_bytes else (step.done, step.total)
            bar.update(task, completed=part, total=whole or None, description=printable(progress_text(step, seconds)))

        yield show


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
            text = step.label if ends else _how_far(step, now - self._began)
            echo(f"[{step.done}/{step.total}] {printable(text)}", err=True)


def progress_text(step: Progress, seconds: float) -> str:
    """Return how far it is: '0/2 rank0.json 40 %; 120 of 298 MB, 40 MB/s, 5 s left', or '2/6 run_waterfall; 4 s so far, about
    8 s left'."""
    count = f"{step.done}/{step.total}" if step.total else ""
    if step.all_bytes:
        return " ".join(filter(None, (count, _how_far(step, seconds))))
    left = f", about {_time(seconds * (step.total - step.done) / step.done)} left" if step.done else ""
    return "; ".join([*filter(None, [" ".join(filter(None, (count, step.label)))]), f"{_time(seconds)} so far{left}"])


def _how_far(step: Progress, seconds: float) -> str:
    """Return what is being read, and how much of all is read."""
    texts = []
    if step.reading:
        more = f" and {len(step.reading) - _FEW} more" if len(step.reading) > _FEW else ""
        texts.append(", ".join(f"{name} {100 * read // max(size, 1)} %" for name, read, size in step.reading[:_FEW]) + f"{more};")
    unit, size = ("MB", _MB) if step.unit == "bytes" else (step.unit, 1)
    of = f"{step.read_bytes / size:,.0f} of {step.all_bytes / size:,.0f} {unit}"
    if step.read_bytes >= step.all_bytes:
        ended = ("read; linking and writing" if step.done < step.total else "read") if step.unit == "bytes" else "computed"
        return " ".join([*texts, of, ended])
    rate = step.read_bytes / seconds if seconds else 0
    left = f", {rate / size:,.0f} {unit}/s, {_time((step.all_bytes - step.read_bytes) / rate)} left" if rate else ""
    return " ".join([*texts, of + left])


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def steps(doing: str) -> Iterator[OnStep]:
    """Yield a callback for each step of a command that begins, and say how far the command is for as long as the block runs.

    On a terminal that is a bar, from the second second on; elsewhere a line every ten seconds.
    """
    from nsightlens.pipeline.meter import Progress

    ended, began = threading.Event(), time.monotonic()
    latest = Progress(0, 0, "")

    def begin(done: int, total: int, name: str) -> None:
        nonlocal latest
        latest = Progress(done, total, name)

    def watch() -> None:
        if not sys.stderr.isatty():
            while not ended.wait(_EVERY_SECONDS):
                echo(f"{doing}: {progress_text(latest, time.monotonic() - began)}", err=True)
        elif not ended.wait(_BRIEF_SECONDS):
            with _bar(doing) as show:
                while not ended.wait(_BEAT_SECONDS):
                    show(latest, time.monotonic() - began)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield begin
    finally:
        ended.set()
        thread.join()


def with_steps(doing: str, compute: Callable[[OnStep], _T]) -> Callable[[], _T]:
    """Return the computation as one that says how far it is (`steps`)."""
    def computed() -> _T:
        with steps(doing) as begin:
            return compute(begin)

    return computed
