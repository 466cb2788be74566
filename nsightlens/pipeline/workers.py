"""Worker processes of an ingest: started without the caller's script, and gone when their parent is gone."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from nsightlens.pipeline import cgroups
from nsightlens.pipeline.memory import return_memory, spare_pandas

_P = ParamSpec("_P")
_T = TypeVar("_T")
_POLL_SECONDS = 0.5


class Pool(ProcessPoolExecutor):
    """A pool of spawned processes that do not import the caller's `__main__`.

    So a script that calls us at its top level needs no `if __name__ == "__main__"`, and no lock or thread is inherited. Their
    temporary files lie in one folder, which goes with the pool however they end.
    """

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._scratch: TemporaryDirectory[str] | None = None
        with suppress(OSError):  # no place for temporary files: who needs one will say so
            self._scratch = TemporaryDirectory(prefix="nsightlens-", ignore_cleanup_errors=True)
        scratch = self._scratch.name if self._scratch else None
        super().__init__(processes, mp_context=context, initializer=partial(_follow_parent, os.getpid(), scratch))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the processes when they are done: with what they are at after an error, and at once after an interrupt."""
        try:
            if kind is not None and not issubclass(kind, Exception):  # the signal may have reached this process alone
                self.terminate()
            self.shutdown(cancel_futures=kind is not None)
        finally:
            if self._scratch:
                self._scratch.cleanup()

    def terminate(self) -> None:
        """End the processes at once: what they are at ends in BrokenProcessPool."""
        for process in list((self._processes or {}).values()):
            process.terminate()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Schedule fn(*args, **kwargs); the process that will run it may be started here."""
        with _without_main():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _without_main() -> Iterator[None]:
    main: Any = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    held = hasattr(signal, "pthread_sigmask")  # Ctrl-C reaches a process that starts once it can end without a word
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if held else set()
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if held:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_parent(parent: int, scratch: str | None) -> None:
    """Prepare a worker; among others, start the thread that ends it once its parent has died: a pool does not notice that.

    scratch: where its temporary files go, None: where those of all programs do.
    """
    tempfile.tempdir = scratch
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return_memory()
    spare_pandas()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def available() -> int:
    """Return the processors that this process may use: of its affinity, its control group and its Slurm task, the fewest."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(filter(None, (affinity, cgroups.cpu_quota(), _slurm_cpus())), default=1)


def _slurm_cpus() -> int | None:
    """Return the processors of a Slurm task: those asked for per task, else those of the job step on this node, else None.

    Slurm sets SLURM_CPUS_PER_TASK only where --cpus-per-task was given. It need not bind the task to them.
    """
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        if (text := os.environ.get(name, "")).isdecimal() and int(text):
            return int(text)
    return None
