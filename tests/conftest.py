"""What tests of several modules share, made once for all workers of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.places import OWN_CACHE, ROOT

Shared = Callable[[str, Callable[[Path], object]], Path]
"""(name, make) -> a folder that `make` has filled. To be read only."""
SLOW = Path(__file__).with_name("slow.txt")
"""The tests that take over half a second of CPU, an id a line; `make durations` writes it."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the session a cache that is no user's and no other session's, and one processor: workers are asked for by jobs=2.

    Let no property depend on how fast the machine is; a fixture may serve all examples of one. Signals do what they do in a
    terminal, also where the tests run in the background or under nohup.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if OWN_CACHE not in os.environ:
        folder, patch = tempfile.TemporaryDirectory(prefix="nsightlens-tests-", ignore_cleanup_errors=True), pytest.MonkeyPatch()
        patch.setenv("XDG_CACHE_HOME", folder.name)
        patch.setenv(OWN_CACHE, "1")
        patch.setenv("SLURM_CPUS_PER_TASK", "1")
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(patch.undo)
    if config.pluginmanager.hasplugin("hypothesispytest"):  # the workloads have a venv without it
        from hypothesis import HealthCheck, settings

        unfit = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
        settings.register_profile("any-machine", deadline=None, suppress_health_check=unfit)
        settings.load_profile("any-machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are listed as slow."""
    slow = frozenset(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """What the first worker that asks for a name has made, the others find."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = root / f"shared-{name}", root / f"shared-{name}.done"
        with (root / f"shared-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def bundled_store(shared: Shared) -> Path:
    """The store of fixtures/simulated_resnet18_ddp. To be read only: a test that ingests more into it makes one of its own."""
    import nsightlens as nl

    return shared("bundled", lambda folder: nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=folder, jobs=1).close())


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server in this process."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def cache(shared: Shared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's cache, of this test alone: with the blank catalog that all of them begin with, and nothing else."""
    from nsightlens.store import template

    def blank(folder: Path) -> None:
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(folder))
            template.place(folder / "made.duckdb", folder, materialise=True)

    shutil.copytree(shared("blank-catalog", blank) / "nsightlens", tmp_path / "cache" / "nsightlens")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def s3(s3_server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The filesystem of an S3 server whose one bucket, `bucket`, is empty; its address and credentials are in the environment."""
    s3fs = pytest.importorskip("s3fs")
    environment = {"AWS_ENDPOINT_URL": s3_server, "AWS_ACCESS_KEY_ID": "made-up-id", "AWS_SECRET_ACCESS_KEY": "made-up-secret",
                   "AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                   "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    files.mkdir("bucket")
    yield files
    files.rm("bucket", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def memory(cache: Path) -> Iterator[Any]:
    """fsspec's filesystem in memory, empty; what is fetched from it goes to a cache of this test."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()
