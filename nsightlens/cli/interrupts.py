"""Ctrl-C and the signals that ask a program to end: each ends the queries, then the command, which takes away what it made."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_ASKED = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What a batch system sends, and a terminal that goes; Python would die of them and leave its temporary files."""


@contextmanager
def interruptible(received: list[int]) -> Iterator[None]:
    """Raise KeyboardInterrupt at a signal that ends programs, for as long as the block does; the queries that run end, too.

    received: gets their numbers. DuckDB looks for signals itself only where it runs in one thread. What the caller ignores, as
    `nohup` does, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    asked = [number for number in _ASKED if signal.getsignal(number) == signal.SIG_DFL]
    for number in asked:
        signal.signal(number, _interrupt)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(ours, [signal.SIGINT, *asked], received), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        for number in asked:
            signal.signal(number, signal.SIG_DFL)
        theirs.close()
        watcher.join()
        ours.close()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _watch(signals: socket.socket, ending: list[int], received: list[int]) -> None:
    """Interrupt all queries at each signal that ends the program, until the other end is closed."""
    while number := signals.recv(1):
        if number[0] not in ending:
            continue
        received.append(number[0])
        if (connections := sys.modules.get("nsightlens.views.connection")) is not None:
            connections.interrupt_all()
