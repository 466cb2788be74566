"""What an ingest may run on: worker processes of its own, the workers of a Dask cluster, or the ranks of an MPI job.

Workers read captures and write parts below the store's folder, on a file system that they and the driver share, and send back
counts only. A task whose worker died is run again by another; what the dead one wrote lies in a folder of its own that nobody
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from nsightlens.errors import UsageError
from nsightlens.terminal.quoting import Verbatim
from nsightlens.views.header import PACKAGE
from nsightlens.views.signature import digest

Kind = Literal["processes", "dask", "mpi"]
_MPI = "mpiexec -n 65 python -m mpi4py.futures -m nsightlens ingest RUN_DIR --executor mpi"
_PATIENCE = "10s"
_P = ParamSpec("_P")
_T = TypeVar("_T")


@contextmanager
def executor(kind: Kind, scheduler: str | None = None, scheduler_file: Path | None = None) -> Iterator[Executor | None]:
    """Yield the executor of a kind; None stands for our own worker processes.

    scheduler, scheduler_file: where Dask's scheduler is (tcp://host:8786, or the file that it wrote). Raises UsageError where the
    package is missing, the scheduler is not there, or the program was not started as an MPI job.
    """
    if (scheduler or scheduler_file) and kind != "dask":
        raise UsageError("--scheduler and --scheduler-file are for --executor dask")
    if kind == "processes":
        yield None
    elif kind == "dask":
        with _dask(scheduler, scheduler_file) as found:
            yield _SameCode(found)
    else:
        with _mpi() as found:
            yield _SameCode(found)


@contextmanager
def _dask(scheduler: str | None, scheduler_file: Path | None) -> Iterator[Executor]:
    if bool(scheduler) == bool(scheduler_file):
        raise UsageError("--executor dask needs --scheduler tcp://HOST:PORT, or the --scheduler-file that dask scheduler wrote")
    try:
        from distributed import Client
    except ImportError as exc:
        raise UsageError(("--executor dask needs Dask's scheduler: ", Verbatim("pip install 'nsightlens[dask]'"))) from exc
    if scheduler_file is not None and not scheduler_file.is_file():  # Dask would wait for it
        raise UsageError(f"{scheduler_file}: no such file; dask scheduler --scheduler-file {scheduler_file} writes it",
                         subject="scheduler_file", value=str(scheduler_file))
    where = str(scheduler or scheduler_file)
    try:
        client = Client(scheduler, scheduler_file=None if scheduler_file is None else str(scheduler_file), timeout=_PATIENCE)
    except (OSError, ValueError) as exc:
        raise UsageError(f"no Dask scheduler answers at {where} within {_PATIENCE}: start one (dask scheduler; {exc})") from exc
    with client:
        yield client.get_executor(pure=False)


@contextmanager
def _mpi() -> Iterator[Executor]:
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPIPoolExecutor
    except (ImportError, RuntimeError) as exc:
        raise UsageError((f"--executor mpi needs mpi4py and an MPI library ({exc}): ",
                          Verbatim("pip install 'nsightlens[mpi]'"))) from exc
    if MPI.COMM_WORLD.Get_size() < 2:
        raise UsageError(("--executor mpi runs on the ranks of an MPI job, and there is one: start it with ", Verbatim(_MPI)))
    with MPIPoolExecutor() as found:
        yield found


class _SameCode(Executor):
    """An executor whose workers refuse to work for a driver of another nsightlens."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Schedule fn(*args, **kwargs) on a worker."""
        return self._inner.submit(_run, code(), fn, args, kwargs)


def _run(wanted: str, fn: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _T:
    if wanted != code():
        raise UsageError(f"a worker runs a different nsightlens (source {code()}) than this one ({wanted}): install the same "
                         "version for the driver and the workers, and start the workers again")
    return fn(*args, **kwargs)


@cache
def code() -> str:
    """Return a digest of the source of nsightlens: what is installed from a checkout says the same version for weeks."""
    files = sorted(file for ending in ("py", "sql", "csv", "tsv") for file in PACKAGE.rglob(f"*.{ending}"))
    return digest(file.read_text(encoding="utf-8") for file in files)[:12]


def has_died(error: BaseException) -> bool:
    """Return whether an error says that the process died which ran a task, or had too little memory for it."""
    named = (type(error).__module__.partition(".")[0], type(error).__name__)
    return isinstance(error, BrokenProcessPool | MemoryError) or named == ("distributed", "KilledWorker")
