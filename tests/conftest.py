"""What tests of several modules share, made once for all workers of a test run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.places import ROOT

Shared = Callable[[str, Callable[[Path], object]], Path]
"""(name, make) -> a folder that `make` has filled. To be read only."""


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
