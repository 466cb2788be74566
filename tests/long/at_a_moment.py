"""Run commands of nsightlens, each in a fork of this process, and send it a signal at one of its doings with files.

A line of JSON on standard input is a command: words, the number of the signal (0: none), the doing (from 1), which doings count
("writes" or "all"), whether its workers get the signal as well, its environment, and the folder for stdout, stderr and the
count of its doings, which it leaves where it comes to its end. A line of output is its exit status, as waitpid gives it.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import nsightlens
from nsightlens.cli import main

WRITES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.utime",
          "subprocess.", "sqlite3.connect")
READS = ("os.scandir", "os.listdir", "shutil.")
CODE = (".py", ".pyc", ".so")


class Moment:
    """A hook of audit events that strikes at one of them."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request, self._process = request, os.getpid()
        self.seen = {"writes": 0, "all": 0}

    def count(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Strike at the doing that was asked for."""
        if os.getpid() != self._process or threading.current_thread() is not threading.main_thread():
            return
        flags = arguments[2] or 0 if event == "open" else 0
        writes = event.startswith(WRITES) or bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes or event.startswith(READS) or (event == "open" and not str(arguments[0]).endswith(CODE)):
            self.seen["writes"] += writes
            self.seen["all"] += 1
            of, request = (self.seen[self._request["doings"]], self._request)
            if of == request["doing"] and (writes or request["doings"] == "all") and request["signal"]:
                (os.killpg if request["with_workers"] else os.kill)(self._process, request["signal"])


def run(request: dict[str, Any]) -> None:
    """Be the command."""
    os.setsid()
    folder = Path(request["folder"])
    for number, name in enumerate((Path("/dev/null"), folder / "stdout", folder / "stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(request["environment"])
    sys.argv = ["nsightlens", *request["words"]]
    moment = Moment(request)
    sys.addaudithook(moment.count)
    try:
        main()
    finally:
        for late in (signal.SIGINT, signal.SIGTERM):  # the command is over
            signal.signal(late, signal.SIG_IGN)
        counts = json.dumps(moment.seen)
        request["signal"] = 0
        (folder / "count").write_text(counts)


def serve() -> None:
    """Fork for each command; a child leaves as a process that has run main() does."""
    for module in pkgutil.walk_packages(nsightlens.__path__, "nsightlens."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # else most moments are of imports
    while line := sys.stdin.readline():
        child = os.fork()
        if not child:
            run(json.loads(line))
            return
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    serve()
