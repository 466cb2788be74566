"""What the wrappers leave is ingested without an option: ranks, run and execution come from the sidecars."""

from __future__ import annotations

import subprocess
import sys

import duckdb

from tests.places import ROOT
from tests.wrappers.stage import Stage

FIXTURES = ROOT / "fixtures/simulated_resnet18_ddp"


def test_two_ranks_under_torchrun_into_the_table(stage: Stage) -> None:
    real = (stage.bin / "nsys").read_text()
    stage.stub("nsys", real.replace('echo sqlite >"$out"', f'cp "{FIXTURES}/nsys/rank$RANK.sqlite" "$out"'))
    done = stage.run(
        "/bin/sh",
        "-c",
        'exec torchrun --standalone --no-python --nproc-per-node 2 "$0" --run-dir captured --run-id base true',
        str(ROOT / "wrappers/nsys_wrapper.sh"),
    )
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):  # the stub's report is text; a real one is set aside beside its export
        (stage.path / f"captured/nsys/rank000{rank}.nsys-rep").unlink()
    ingest = subprocess.run(
        [sys.executable, "-m", "nsightlens", "ingest", "captured", "--store", "store"],
        cwd=stage.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ingest.returncode == 0, ingest.stderr
    with duckdb.connect(str(stage.path / "store/nsightlens.duckdb"), read_only=True) as store:
        ranks = store.sql("SELECT rank, world_size, rank_source FROM processes WHERE rank IS NOT NULL ORDER BY ALL").fetchall()
        starts = store.sql("SELECT DISTINCT run, execution_id FROM profiles").fetchall()
        kernels = store.sql("SELECT DISTINCT run, rank FROM kernels ORDER BY ALL").fetchall()
    assert ranks == [(0, 2, "sidecar"), (1, 2, "sidecar")]
    assert kernels == [("base", 0), ("base", 1)]
    assert len(starts) == 1 and starts[0][0] == "base" and starts[0][1].startswith("torchrun-start-")
