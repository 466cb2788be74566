"""Ingest on a Dask cluster and under MPI, with a real scheduler, real workers and real ranks; skipped where these are absent."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from nsightlens.pipeline import executors
from nsightlens.pipeline.ingest import ingest
from tests.captures import kineto
from tests.places import ROOT

pytestmark = pytest.mark.long

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"
COMMAND = [sys.executable, "-m", "nsightlens"]
HERE = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
ASKED = ("kernel_summary", "busy_time", "match_report", "diagnostic_summary", "profile_overview")
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is not installed")
_MPI_VERSION = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, check=False).stdout if shutil.which(
    "mpiexec") else ""
needs_mpi = pytest.mark.skipif("Open MPI" not in _MPI_VERSION or importlib.util.find_spec("mpi4py") is None,
                               reason="mpi4py with Open MPI's mpiexec is not installed")
MPIEXEC = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> nl.Store:
    return nl.ingest(SIMULATED, store=tmp_path_factory.mktemp("local") / "store", answers=True)


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=300, env=HERE)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def _same(store: Path, local: nl.Store) -> None:
    with nl.open(store) as found:
        assert found.kept("busy_time")
        for view in ASKED:
            assert found.view(view).to_pylist() == local.view(view).to_pylist(), view


class Cluster:
    """A scheduler on loopback with two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._started: list[subprocess.Popen[bytes]] = []
        self.start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0",
                   "--scheduler-file", str(self.file))
        self.workers = [
            self.start("worker", "--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny", "--no-dashboard",
                       "--local-directory", str(folder / f"worker{number}")) for number in range(2)]

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", "dask", *arguments], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=HERE)
        self._started.append(process)
        return process

    def stop(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    from distributed import Client

    deadline = time.monotonic() + 120
    while not found.file.exists():
        assert time.monotonic() < deadline, "the scheduler did not start"
        time.sleep(0.1)
    with Client(scheduler_file=str(found.file)) as client:
        client.wait_for_workers(2, timeout=120)
    yield found
    found.stop()


@needs_dask
def test_dask_reads_what_local_processes_read(cluster: Cluster, tmp_path: Path, local: nl.Store) -> None:
    there: list[str | Path] = ["--store", tmp_path / "store", "--executor", "dask", "--scheduler-file", cluster.file]
    done = _run(*COMMAND, "ingest", SIMULATED, "--answers", *there)
    assert done.returncode == 0, done.stderr
    assert "5 profiles" in done.stderr
    _same(tmp_path / "store", local)
    again = _run(*COMMAND, "refresh", *there)
    assert (again.returncode, "the store was up to date" in again.stderr) == (0, True), again.stderr


@needs_dask
def test_a_worker_that_is_killed_costs_nothing(cluster: Cluster, tmp_path: Path) -> None:
    ranks = 24
    events = [(f"kernel_{i % 7}", 1000.0 + 20 * i, 10.0) for i in range(3000)]
    for rank in range(ranks):
        kineto(tmp_path / "job" / f"rank{rank}.json", events, rank=rank, pid=70 + rank)
    killed: list[int] = []

    def kill_one(step: object) -> None:
        if getattr(step, "done", 0) >= 3 and not killed:
            killed.append(cluster.workers[0].pid)
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

    with executors.executor("dask", scheduler_file=cluster.file) as pool:
        report = ingest([tmp_path / "job"], tmp_path / "store", executor=pool, on_progress=kill_one)
    assert killed
    assert [outcome.state for outcome in report.outcomes] == ["new"] * ranks
    with nl.open(tmp_path / "store") as store:
        assert store.sql("SELECT count(*) AS n, count(DISTINCT profile_id) AS p FROM kernels").to_pylist() == [
            {"n": ranks * len(events), "p": ranks}]
    assert not list((tmp_path / "store").glob(".nsightlens-scratch-*"))


@needs_mpi
def test_ranks_of_mpi_read_what_local_processes_read(tmp_path: Path, local: nl.Store) -> None:
    arguments: list[str | Path] = ["ingest", SIMULATED, "--store", tmp_path / "store", "--answers", "--executor", "mpi"]
    done = _run(*MPIEXEC, "-m", "nsightlens", *arguments)
    assert done.returncode == 0, done.stderr
    assert "5 profiles" in done.stderr
    _same(tmp_path / "store", local)


@needs_mpi
def test_without_other_ranks_mpi_says_how_to_start() -> None:
    with pytest.raises(UsageError, match=r"mpiexec -n 65 python -m mpi4py\.futures"), executors.executor("mpi"):
        pass


@pytest.mark.parametrize(("arguments", "said"), [
    (["--executor", "dask"], "--scheduler"),
    (["--scheduler", "tcp://127.0.0.1:1"], "are for --executor dask"),
    pytest.param(["--executor", "dask", "--scheduler-file", "absent.json"], "absent.json: no such file", marks=needs_dask),
    pytest.param(["--executor", "dask", "--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler answers at tcp://127.0.0.1:1",
                 marks=needs_dask),
])
def test_what_is_missing_is_said(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = _run(*COMMAND, "ingest", SIMULATED, "--store", tmp_path / "store", *arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_worker_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = iter(["of the driver", *["of the worker"] * 100])
    monkeypatch.setattr(executors, "code", lambda: next(versions))
    trace = kineto(tmp_path / "rank0.json", [("gemm", 1000.0, 10.0)])
    with pytest.raises(UsageError, match=r"of the worker\) than this one \(of the driver"), ThreadPoolExecutor(1) as pool:
        ingest([trace], tmp_path / "store", executor=executors._SameCode(pool))
    assert not (tmp_path / "store").exists()


def test_the_version_of_the_code_changes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text("a = 1\n")
    monkeypatch.setattr(executors, "PACKAGE", tmp_path)
    before = executors.code.__wrapped__()
    (tmp_path / "one.py").write_text("a = 2\n")
    assert executors.code.__wrapped__() != before
