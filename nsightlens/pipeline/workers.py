"""Worker processes: started without the caller's script, and gone when their parent is gone."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from nsightlens.pipeline import cgroups

_P = ParamSpec("_P")
_T = TypeVar("_T")
_POLL_SECONDS = 0.5
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_LARGE_BLOCK = 1 << 20
"""Above a column of one batch: those come and go all the time, and each new block is zeroed page by page by the kernel."""
_KEPT = 1 << 25
"""What may lie free at the end of the heap, for the same reason."""


class Pool(ProcessPoolExecutor):
    """A pool of spawned processes that do not import the caller's `__main__`.

    So a script that calls us at its top level needs no `if __name__ == "__main__"`, and no lock or thread is inherited.
    """

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(processes, mp_context=context, initializer=_follow_parent, initargs=(os.getpid(),))

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


def _follow_parent(parent: int) -> None:
    """Prepare a worker; among others, start the thread that ends it once its parent has died: a pool does not notice that."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return_memory()
    spare_pandas()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _WithoutPandas:
    """An import finder that knows for certain that there is no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise ImportError for pandas; leave every other module to the other finders."""
        if name == "pandas":
            raise ImportError("not needed here")


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas (0.3 s, 50 MB) only to ask whether a list is a Series. For processes of our own.

    pyarrow remembers the answer, and to_pandas() asks again.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def return_memory() -> None:
    """Have the C library give every large block back when it is freed. For processes of our own, before pyarrow is imported.

    By default glibc raises the size from which it does so with use, and keeps a heap per thread: hundreds of MB in fragments.
    So does Arrow's own pool, which therefore is left out.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give all freed memory back at once, for another library is about to take much."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


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
