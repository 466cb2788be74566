"""Two configurations in one job: two runs, which can be compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.launchers.matrix import WRAPPERS, Launcher
from tests.launchers.stand_ins import EXPORT_OF_RANK
from tests.places import ROOT

FIXTURES = ROOT / "fixtures/simulated_resnet18_ddp/nsys"


def two_runs(launcher: Launcher, folder: Path, tools: Path) -> str:
    """Return what became of `--run-dir ddp/base` and `--run-dir ddp/fused` in one job; in ** where it is wrong."""
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", EXPORT_OF_RANK: str(FIXTURES), "PBS_JOBID": "23",
                   **launcher.environment}
    for run in ("base", "fused"):
        words = [*launcher.words(launcher.ranks), str(WRAPPERS / "nsys_wrapper.sh"), "--run-dir", f"ddp/{run}", "true"]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"**{run} ended with code {done.returncode}**"
    for words, wanted in ((["ingest", "ddp/base", "ddp/fused", "--no-answers"], ""),
                          (["compare", "runs", "base", "fused"], "One recording of each")):
        command = [sys.executable, "-m", "nsightlens", *words, "--store", "store"]
        python = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=folder, env=python, capture_output=True, text=True, check=False)
        if done.returncode or wanted not in done.stdout or "directories_pooled" in done.stderr:
            return f"**{words[0]}: code {done.returncode}, {done.stderr.splitlines()[-1:]}**"
    return "two runs, compared"
