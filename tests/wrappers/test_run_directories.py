"""A run directory that was given names the run, whatever job or launcher it is in: one job may run several configurations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from nsl_launch import capture, find_launch

from tests.places import ROOT
from tests.wrappers.launchers import launcher
from tests.wrappers.stage import WRAPPERS, Stage

FIXTURES = ROOT / "fixtures/simulated_resnet18_ddp"
JOBS = {
    "slurm": {"SLURM_JOB_ID": "23", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "2"},
    "a batch script": {"SLURM_JOB_ID": "23", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
    "pbs": {"PBS_JOBID": "23.polaris"},
    "pals": {"PBS_JOBID": "23.polaris", "PALS_RANKID": "1", "PALS_LOCAL_RANKID": "1", "PALS_APID": "abc"},
    "openmpi": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2",
                "PMIX_NAMESPACE": "88", "PBS_JOBID": "23"},
    "torchrun": {"TORCHELASTIC_RUN_ID": "uuid", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "SLURM_JOB_ID": "23"},
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(("given", "run"), [("ddp/base", "base"), ("ddp/fused/", "fused"), (".", None)])
def test_the_directory_comes_before_the_job_in_shell_and_python(stage: Stage, job: str, given: str, run: str | None) -> None:
    done = stage.run("plain_wrapper.sh", "--run-dir", given, "true", **JOBS[job])
    assert done.returncode == 0, done.stderr
    (path,) = Path(stage.path, given).glob("plain/rank*.run.json")
    sidecar = stage.sidecar(str(path))
    assert sidecar["run"] == (run or stage.path.name)
    assert "23" in sidecar["execution_id"]   # the job's id stays, as part of the execution's
    launch = find_launch(JOBS[job])
    same = capture(launch, "plain", ["true"], run_dir=str(stage.path / given), env={**JOBS[job], "HOSTNAME": "h"})
    assert same.run == sidecar["run"] and "23" in str(same.execution_id)
    if not launch.single:
        assert same.execution_id == sidecar["execution_id"]


def test_a_name_that_was_given_comes_before_the_directory(stage: Stage) -> None:
    stage.run("plain_wrapper.sh", "--run-dir", "ddp/base", "--run-id", "mine", "true", **JOBS["slurm"])
    assert stage.sidecar("ddp/base/plain/rank0001.run.json")["run"] == "mine"
    stage.run("plain_wrapper.sh", "--run-dir", "ddp/other", "true", NSIGHTLENS_RUN_ID="yours", **JOBS["slurm"])
    assert stage.sidecar("ddp/other/plain/rank0001.run.json")["run"] == "yours"


def test_without_a_directory_the_job_names_the_run(stage: Stage) -> None:
    stage.run("plain_wrapper.sh", "true", **JOBS["slurm"])
    assert stage.sidecar("nsightlens-runs/23/plain/rank0001.run.json")["run"] == "23"


def test_capture_all_in_a_job_takes_the_name_of_its_directory(stage: Stage) -> None:
    done = stage.run("capture_all.sh", "--run-dir", "ddp/base", "--tools", "plain,nsys", "--", "true", SLURM_JOB_ID="23")
    assert done.returncode == 0, done.stderr
    for tool in ("plain", "nsys"):
        sidecar = stage.sidecar(f"ddp/base/{tool}/rank0000.run.json")
        assert sidecar["run"] == "base" and sidecar["execution_id"].startswith("23-")


def nsightlens(stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nsightlens", *words]
    return subprocess.run(command, cwd=stage.path, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("name", ["openmpi", "torchrun", "srun"])
def test_two_configurations_in_one_job_are_two_runs(stage: Stage, name: str) -> None:
    real = (stage.bin / "nsys").read_text()
    copied = f'number=${{out##*rank000}}; cp "{FIXTURES}/nsys/rank${{number%.sqlite}}.sqlite" "$out"'
    ranked = real.replace('echo sqlite >"$out"', copied)
    assert ranked != real
    stage.stub("nsys", ranked)
    words = launcher(name, 2)
    for run in ("base", "fused"):
        done = stage.run(words[0], *words[1:], str(WRAPPERS / "nsys_wrapper.sh"), "--run-dir", f"ddp/{run}", "true",
                         **({} if name == "srun" else {"PBS_JOBID": "23"}))
        assert done.returncode == 0, done.stderr
        for rank in (0, 1):   # the stub's report is text; a real one is set aside beside its export
            (stage.path / f"ddp/{run}/nsys/rank000{rank}.nsys-rep").unlink()
    done = nsightlens(stage, "ingest", "ddp/base", "ddp/fused", "--store", "store")
    assert done.returncode == 0 and "directories_pooled" not in done.stderr, done.stderr
    done = nsightlens(stage, "compare", "runs", "base", "fused", "--store", "store")
    assert done.returncode == 0 and "No known property differs" in done.stdout, done.stderr
    assert "One recording of each" in done.stdout


def test_captures_of_several_directories_in_one_run_are_said(tmp_path: Path) -> None:
    """Each has the job's id as its name, as captures of earlier wrappers have."""
    for rank, run in enumerate(("base", "fused")):
        folder = tmp_path / f"ddp/{run}/nsys"
        folder.mkdir(parents=True)
        (folder / f"rank000{rank}.sqlite").write_bytes((FIXTURES / f"nsys/rank{rank}.sqlite").read_bytes())
        said = {"run": "23", "rank": rank, "execution_id": f"slurm-23.{rank}-nsys"}
        (folder / f"rank000{rank}.run.json").write_text(json.dumps(said))
    stage = Stage(tmp_path)
    done = nsightlens(stage, "ingest", "ddp/base", "ddp/fused", "--store", "store", "--no-answers")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if "directories_pooled" in line)
    assert "2 run directories" in line and f"{tmp_path}/ddp/base" in line and f"{tmp_path}/ddp/fused" in line
