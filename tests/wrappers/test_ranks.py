"""The rank ladder, driven in real bash with every launcher's environment."""

from __future__ import annotations

import pytest

from tests.wrappers.stage import WRAPPERS, Stage

ASK = (
    f'source "{WRAPPERS}/launch.sh"; nsl_find_rank; echo "$nsl_launcher $nsl_rank ${{nsl_local_rank:-?}} ${{nsl_world_size:-?}}"'
)

TORCHRUN = {"TORCHELASTIC_RUN_ID": "abc", "RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}
PALS = {"PMI_RANK": "5", "PMI_SIZE": "8", "PALS_RANKID": "5", "PALS_LOCAL_RANKID": "1"}
STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "8"}
OMPI = {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_RANK": "5"}

KNOWN = {
    "none": ({}, "none 0 0 1"),
    "pals": (PALS, "pals 5 1 8"),
    "pals without pmi": ({"PALS_RANKID": "5", "PALS_LOCAL_RANKID": "1"}, "pals 5 1 ?"),
    "pmi and pals, as published": ({"PMI_RANK": "5", "PALS_LOCAL_RANKID": "1"}, "pals 5 1 ?"),
    "hydra": ({"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}, "mpich 5 1 8"),
    "openmpi": (OMPI, "openmpi 5 1 8"),
    "mvapich": ({"MV2_COMM_WORLD_RANK": "5", "MV2_COMM_WORLD_LOCAL_RANK": "1", "MV2_COMM_WORLD_SIZE": "8"}, "mvapich 5 1 8"),
    "srun": (STEP, "slurm 5 1 8"),
    "srun --mpi=pmix": ({**STEP, "PMIX_RANK": "5", "PMIX_NAMESPACE": "slurm.pmix.7.0"}, "pmix 5 1 8"),
    "srun --mpi=pmi2": ({**STEP, "PMI_RANK": "5", "PMI_SIZE": "8"}, "mpich 5 1 8"),
    "torchrun": (TORCHRUN, "torchrun 5 1 8"),
    "torchrun under srun": ({**STEP, **TORCHRUN, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, "torchrun 5 1 8"),
    "torchrun under mpiexec": ({**PALS, **TORCHRUN, "PMI_RANK": "1", "PALS_RANKID": "1"}, "torchrun 5 1 8"),
    "by hand": ({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, "environment 5 1 8"),
    "our own word wins": (
        {**PALS, "NSIGHTLENS_RANK": "2", "NSIGHTLENS_LOCAL_RANK": "0", "NSIGHTLENS_WORLD_SIZE": "4"},
        "nsightlens 2 0 4",
    ),
    "hydra's daemon under srun is not the rank": (
        {
            **STEP,
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
            "SLURM_STEP_NUM_TASKS": "2",
            "PMI_RANK": "5",
            "PMI_SIZE": "8",
            "MPI_LOCALRANKID": "1",
        },
        "mpich 5 1 8",
    ),
    "mpirun in a batch script": ({**OMPI, "SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, "openmpi 5 1 8"),
    "deepspeed in a batch script": (
        {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1", "RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"},
        "environment 5 1 8",
    ),
    "batch script, no srun": (
        {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "8"},
        "slurm 0 0 ?",
    ),
    "salloc shell": ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"}, "none 0 0 1"),
    "leading zero is decimal": ({**PALS, "PMI_RANK": "08", "PALS_RANKID": "8", "PMI_SIZE": "16"}, "pals 8 1 16"),
    "WORLD_SIZE exported beside srun": ({**STEP, "WORLD_SIZE": "8"}, "slurm 5 1 8"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_rank_of_each_launcher(stage: Stage, name: str) -> None:
    environment, expected = KNOWN[name]
    done = stage.bash(ASK, **environment)
    assert (done.stdout.strip(), done.returncode) == (expected, 0), done.stderr


WRONG = {
    "PMI_RANK alone": {"PMI_RANK": "5"},
    "PALS_LOCAL_RANKID alone": {"PALS_LOCAL_RANKID": "0"},
    "PMI_RANK empty": {"PMI_RANK": "", "PMI_SIZE": "8", "PALS_LOCAL_RANKID": "1"},
    "PALS_LOCAL_RANKID empty": {"PMI_RANK": "5", "PMI_SIZE": "8", "PALS_LOCAL_RANKID": ""},
    "OMPI without local": {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"},
    "PMIX_RANK alone": {"PMIX_RANK": "5"},
    "SLURM_LOCALID missing": {"SLURM_PROCID": "5", "SLURM_STEP_ID": "0"},
    "SLURM_PROCID empty": {"SLURM_PROCID": "", "SLURM_LOCALID": "0"},
    "MV2 half": {"MV2_COMM_WORLD_LOCAL_RANK": "0"},
    "RANK alone": {"RANK": "5"},
    "RANK, LOCAL_RANK, no size": {"RANK": "5", "LOCAL_RANK": "1"},
    "WORLD_SIZE alone": {"WORLD_SIZE": "8"},
    "torchrun half": {"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "2"},
    "torchrun half under a whole srun": {**STEP, "TORCHELASTIC_RUN_ID": "x", "RANK": "1"},
    "not a number": {**PALS, "PMI_RANK": "five"},
    "negative": {"RANK": "-1", "LOCAL_RANK": "0", "WORLD_SIZE": "1"},
    "rank is the size": {"RANK": "8", "LOCAL_RANK": "0", "WORLD_SIZE": "8"},
    "two that disagree": {**STEP, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"},
    "PMI and PALS disagree": {**PALS, "PALS_RANKID": "4"},
    "PMI left over from outside srun": {**STEP, "PMI_RANK": "0", "PMI_SIZE": "1", "MPI_LOCALRANKID": "0"},
    "PMI left over from outside srun, as many ranks": {**STEP, "PMI_RANK": "0", "PMI_SIZE": "8", "MPI_LOCALRANKID": "0"},
    "by hand, half": {"NSIGHTLENS_RANK": "1"},
}


@pytest.mark.parametrize("name", WRONG)
def test_half_set_is_loud_and_starts_nothing(stage: Stage, name: str) -> None:
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", "sh", "-c", "echo started", **WRONG[name])
    assert done.returncode == 2
    assert "error:" in done.stderr and "started" not in done.stdout
    assert stage.files() == []


LAUNCHERS = {
    "torchrun --standalone --nproc-per-node 2 train.py": "torchrun --no-python ... ",
    "python -m torch.distributed.run --nproc-per-node 2 train.py": "torchrun --no-python ... ",
    "mpiexec -n 2 python train.py": "mpiexec ... ",
    "srun -n 2 python train.py": "srun ... ",
    "accelerate launch train.py": "accelerate launch --no_python ... ",
}


@pytest.mark.parametrize("command", LAUNCHERS)
@pytest.mark.parametrize("script", ["nsys_wrapper.sh", "plain_wrapper.sh", "capture_all.sh"])
def test_a_launcher_behind_the_wrapper_is_an_error(stage: Stage, script: str, command: str) -> None:
    """All its ranks would stand in one report, called rank 0; under `srun wrapper torchrun`, by the number of their node."""
    for env in ({}, {**STEP, "SLURM_PROCID": "1"}):
        done = stage.run(script, "--run-dir", "r", *command.split(), **env)
        assert done.returncode == 2 and (f"--launcher '{LAUNCHERS[command].strip()}'" if script == "capture_all.sh"
                                           else f"wrapper: {LAUNCHERS[command]}{script}") in done.stderr
    assert stage.files() == [] and not list(stage.log.iterdir())


def test_no_launcher_is_said(stage: Stage) -> None:
    done = stage.run("plain_wrapper.sh", "--run-dir", "r", "true")
    assert done.returncode == 0
    assert "single process" in done.stderr


def test_a_thousand_ranks_have_a_thousand_names_in_order(stage: Stage) -> None:
    """Numbers of four digits sort as text; one more digit is no other rank's name."""
    done = stage.bash(
        f'source "{WRAPPERS}/launch.sh"; nsl_tool=nsys; for ((i = 0; i <= 1000; i++)); do '
        "SLURM_PROCID=$i SLURM_LOCALID=$((i % 4)) SLURM_STEP_NUM_TASKS=10001 SLURM_STEP_ID=0 SLURM_JOB_ID=7; "
        'nsl_run_dir=""; nsl_find_rank; nsl_find_places app; echo "$nsl_rank ${nsl_stem##*/}"; done; '
        'SLURM_PROCID=10000; nsl_find_rank; nsl_find_places app; echo "$nsl_rank ${nsl_stem##*/}"'
    )
    lines = done.stdout.split("\n")[:-1]
    assert lines == [f"{i} rank{i:04d}" for i in [*range(1001), 10000]], done.stderr


def test_rank_variables_of_the_application_stay(stage: Stage) -> None:
    """The wrapper's own names must not change the environment of the application."""
    done = stage.run(
        "nsys_wrapper.sh", "--run-dir", "r", "env", run="mine", rank="mine", trace="mine", stats="mine", TMPDIR=str(stage.path)
    )
    seen = set(done.stdout.splitlines())
    assert {"run=mine", "rank=mine", f"TMPDIR={stage.path}"} <= seen, done.stderr
    assert {"trace=mine", "stats=mine"} <= seen
