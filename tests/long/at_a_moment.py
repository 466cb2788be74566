"""Run a command of nsightlens, and send it a signal at one moment: at one of its doings with files, or after a time.

Arguments: the number of the signal (0: none), its doing with files or 0, the seconds or 0, "group" or "process", the file for
the count of all doings, and those of the command.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

NUMBER, DOING, SECONDS, WHOM, COUNT, *ARGUMENTS = sys.argv[1:]
DOINGS = ("open", "os.", "shutil.", "subprocess.", "sqlite3.")
seen = 0
began = time.monotonic()


def strike() -> None:
    """Send the signal to this process, or as a terminal does to all of its group."""
    (os.killpg if WHOM == "group" else os.kill)(os.getpid(), int(NUMBER))


def count(event: str, arguments: tuple[object, ...]) -> None:
    """Strike at the doing that was asked for."""
    global seen
    if event.startswith(DOINGS) and os.getpid() == me and threading.current_thread() is threading.main_thread():
        seen += 1
        if seen == int(DOING):
            strike()


if __name__ == "__main__":
    me = os.getpid()
    from nsightlens.cli import main

    sys.argv[1:] = ARGUMENTS
    sys.addaudithook(count)
    if float(SECONDS):
        timer = threading.Timer(float(SECONDS), strike)
        timer.daemon = True
        timer.start()
    try:
        main()
    finally:
        for late in (signal.SIGINT, signal.SIGTERM):  # the command is over
            signal.signal(late, signal.SIG_IGN)
        counted, seen = seen, 1 << 60
        with Path(COUNT).open("w") as file:
            file.write(f"{counted} {time.monotonic() - began}")
