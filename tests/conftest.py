"""What tests of several modules share, made once for all workers of a test run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.places import ROOT


@pytest.fixture(scope="session")
def bundled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of fixtures/simulated_resnet18_ddp. To be read only: a test that ingests more into it makes one of its own."""
    import nsightlens as nl

    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (folder / "bundled.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store = folder / "bundled-store"
        if not store.exists():
            nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=folder / "bundled-being-made").close()
            (folder / "bundled-being-made").rename(store)
    return store
