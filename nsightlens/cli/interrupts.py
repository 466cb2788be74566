"""Ctrl-C and the signals that ask a program to end: each ends the queries, then the command, which takes away what it made."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, what a batch system sends, and a terminal that goes; of the last two Python would die and leave its temporary files."""
_UNTOUCHED = (signal.SIG_DFL, signal.default_int_handler)
_IMPORT = "<frozen importlib._bootstrap>"
_TEMPORARY = "tempfile"
_LATER_S = 0.02


@contextmanager
def interruptible(received: list[int]) -> Iterator[None]:
    """Raise KeyboardInterrupt at a signal that ends programs, for as long as the block does; the queries that run end, too.

    A signal that comes while a module is imported, or a temporary folder made or taken away, takes effect after that: compiled
    modules end the process at an exception, and a folder of which nobody has the name yet would stay.
    received: gets their numbers. DuckDB looks for signals itself only where it runs in one thread. What the caller ignores, as
    `nohup` does, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    asked = {number: handler for number, handler in handlers.items() if handler in _UNTOUCHED}
    for number in asked:
        signal.signal(number, _interrupt)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(ours, [*asked], received), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in asked.items():
            signal.signal(number, handler)
        theirs.close()
        watcher.join()
        ours.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None and frame.f_code.co_filename != _IMPORT and frame.f_globals.get("__name__") != _TEMPORARY:
        frame = frame.f_back
    if frame is None:
        raise KeyboardInterrupt
    again = threading.Timer(_LATER_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _watch(signals: socket.socket, ending: list[int], received: list[int]) -> None:
    """Interrupt all queries at each signal that ends the program, until the other end is closed."""
    while number := signals.recv(1):
        if number[0] not in ending:
            continue
        received.append(number[0])
        if (connections := sys.modules.get("nsightlens.views.connection")) is not None:
            connections.interrupt_all()
