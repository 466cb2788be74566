"""Ctrl-C during a query: DuckDB looks for signals itself only where it runs in one thread."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the queries that run, for as long as the block does; Python raises KeyboardInterrupt then as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(ours,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        theirs.close()
        watcher.join()
        ours.close()


def _watch(signals: socket.socket) -> None:
    """Interrupt all queries at each SIGINT, until the other end is closed."""
    while number := signals.recv(1):
        connections = sys.modules.get("nsightlens.views.connection")
        if number[0] == signal.SIGINT and connections is not None:
            connections.interrupt_all()
