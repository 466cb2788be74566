"""`ingest` killed at random moments, alone and beside another one: the store opens each time, and nothing is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.schema import TABLES
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
KILLS = int(os.environ.get("KILLS", "40"))
_OF_THIS_MACHINE = ("path", "reason", "message", "modified_ns")


def _start(runs: list[Path], store: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nsightlens", "ingest", *map(str, runs), "--store", str(store), "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def _contents(store: Path) -> dict[str, list[tuple[str, ...]]]:
    """Every row of every table, sorted, without the columns that name this machine's folders."""
    found = {}
    with nl.open(store) as opened:
        for table in TABLES.values():
            columns = ", ".join(f'"{c.name}"' for c in table.columns if c.name not in _OF_THIS_MACHINE)
            rows = opened.sql(f"SELECT {columns} FROM {table.name}").to_pylist()
            found[table.name] = sorted(tuple(map(repr, row.values())) for row in rows)
        parts = {row["path"] for row in opened.sql("SELECT path FROM _parts").to_pylist()}
    assert all((store / part).is_file() for part in parts)
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[tuple[str, ...]]], float]:
    folder = tmp_path_factory.mktemp("clean")
    run = folder / "run"
    shutil.copytree(RUN, run)
    began = time.monotonic()
    assert _start([run], folder / "store").wait() == 0
    return run, _contents(folder / "store"), time.monotonic() - began


def test_killed_ingests_leave_the_old_store_or_the_new(
    clean: tuple[Path, dict[str, list[tuple[str, ...]]], float], tmp_path: Path,
) -> None:
    run, expected, seconds = clean
    chance = random.Random(20261120)
    store = tmp_path / "store"
    opened = finished = 0
    for kill in range(KILLS):
        if kill % 20 == 0:
            shutil.rmtree(store, ignore_errors=True)
        if kill % 3 == 0:
            _touch(run, chance)
        running = [_start([run], store) for _ in range(2 if kill % 4 == 0 else 1)]
        time.sleep(chance.uniform(0, seconds * (1.6 if len(running) > 1 else 1.1)))
        victim = chance.choice(running)
        finished += victim.poll() is not None
        if victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert b"Traceback" not in errors, errors.decode()
        if (store / "nsightlens.duckdb").exists():
            opened += 1
            with nl.open(store) as one:
                kernels = one.sql("SELECT count(*) AS n FROM kernels").to_pylist()[0]["n"]
            assert kernels in (0, len(expected["kernels"]))
    for sidecar in RUN.rglob("*.run.json"):
        shutil.copyfile(sidecar, run / sidecar.relative_to(RUN))
    process = _start([run], store)
    assert process.wait() == 0, process.communicate()[1]
    assert _contents(store) == expected
    assert {p.name for p in store.iterdir()} <= {"nsightlens.duckdb", "parts", "lock", "converted", "looks.msgpack"}
    listed = {str(p.relative_to(store)) for p in (store / "parts").rglob("*.parquet")}
    with nl.open(store) as one:
        assert listed == {row["path"] for row in one.sql("SELECT path FROM _parts").to_pylist()}
    assert opened > KILLS // 4 and finished < KILLS, f"{opened} stores opened, {finished} ingests were done before the kill"


def _touch(run: Path, chance: random.Random) -> None:
    """Give one capture another execution id, so that its profile is read again."""
    path = chance.choice(sorted(run.rglob("*.run.json")))
    sidecar = json.loads(path.read_text())
    path.write_text(json.dumps(sidecar | {"execution_id": f"e{chance.randrange(10**9)}"}))
