"""one_file.sh, which `nsightlens wrappers --print` prints: each rank beside its sidecar, without any other file of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from nsightlens.cli.wrappers import command
from nsightlens.discovery.ranks import read_sidecar
from tests.wrappers.stage import Stage

MOST_LINES = 60


@pytest.fixture
def pasted(stage: Stage) -> Path:
    """Return the script for nsys, as a file; beside it that for ncu."""
    for tool in ("nsys", "ncu"):
        printed = CliRunner().invoke(command, ["--print", tool]).output
        assert len(printed.splitlines()) <= MOST_LINES
        stage.stub(f"{tool}.sh", printed)
    return stage.bin / "nsys.sh"


@pytest.mark.parametrize(("launcher", "ranks"), [
    (["mpiexec", "-n", "3"], [0, 1, 2]), (["srun", "-n", "3"], [0, 1, 2]), (["torchrun", "-n", "3"], [0, 1, 2]), ([], [0]),
    (["env", "SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=7"], [0]), (["env", "RANKCUTOFF=2", "mpiexec", "-n", "3"], [0, 1]),
    (["srun", "-n", "1", "torchrun", "-n", "2"], [0, 1]),
])
def test_each_rank_leaves_a_capture_and_its_facts(stage: Stage, pasted: Path, launcher: list[str], ranks: list[int]) -> None:
    run = ["/usr/bin/env", "RUN_DIR=a dir/of \"it", *launcher, str(pasted)]
    done = stage.run(*run, "sh", "-c", "echo out", "x", STUB_NSYS_CODE="7")
    assert done.returncode == 7, done.stderr
    assert done.stdout.count("out\n") == max(len(ranks), 3 if "RANKCUTOFF=2" in launcher else 0)
    folder = stage.path / 'a dir/of "it/nsys'
    found = {path.name: read_sidecar(path) for path in sorted(folder.glob("*.run.json"))}
    assert list(found) == [f"rank{rank:04}.run.json" for rank in ranks]
    assert [one.rank for one in found.values()] == ranks and {one.exit_code for one in found.values()} == {7}
    assert {one.run for one in found.values()} == {"of__it"} and len({one.execution for one in found.values()}) == 1
    assert all((folder / f"rank{rank:04}.sqlite").exists() for rank in ranks)
    again = stage.run(*run, "true")
    assert again.returncode == 2, "an earlier capture is not written over"


def test_ncu_measures_rank_0_alone(stage: Stage, pasted: Path) -> None:
    done = stage.run(str(stage.bin / "mpiexec"), "-n", "2", str(stage.bin / "ncu.sh"), "true", KERNEL="gemm|conv")
    assert done.returncode == 0, done.stderr
    (call,) = stage.calls("ncu.--set")
    assert call[call.index("--kernel-name") + 1] == "regex:gemm|conv"
    assert [path.name for path in sorted((stage.path / "run" / "ncu").iterdir())] == ["rank0000.ncu-rep", "rank0000.run.json"]


def test_ranks_that_cannot_be_told_apart_are_refused(stage: Stage, pasted: Path) -> None:
    assert stage.run(str(pasted), "true", PMI_SIZE="4").returncode == 2
    assert stage.run(str(pasted)).returncode == 2
    stage.without("nsys")
    assert stage.run(str(pasted), "true").returncode == 127
    assert not (stage.path / "run").exists()
