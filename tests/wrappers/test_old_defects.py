"""Each defect of the published wrappers, as a test that fails on what they did: OLD does it again, and is seen to fail."""

from __future__ import annotations

import pytest

from nsightlens.discovery.ranks import read_sidecar
from tests.wrappers.stage import WRAPPERS, Stage

CHOSEN = (
    f'source "{WRAPPERS}/launch.sh"; nsl_settle_selection all; nsl_find_rank; if nsl_selected; then echo yes; else echo no; fi'
)

# What the published scripts did, in our words.
OLD = {
    "options": "OPTIONS='--set roofline --export out'\n# NCU=\"ncu $OPTIONS\"\nNCU=ncu\n$NCU true",
    "rank": "if [[ ${PALS_LOCAL_RANKID-} -eq 0 && ${PMI_RANK-} -lt 8 ]]; then echo yes; else echo no; fi",
    "folder": "echo run_$(date +%s)",
    "cutoff": "if [[ $PALS_LOCAL_RANKID -eq 0 && $PMI_RANK -lt $((2 * 4)) ]]; then echo yes; else echo no; fi",
}


def slurm(rank: int, per_node: int, world: int = 64) -> dict[str, str]:
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank % per_node),
        "SLURM_NODEID": str(rank // per_node),
        "SLURM_STEP_ID": "0",
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_NUM_TASKS": str(world),
    }


def test_ncu_runs_with_the_options_that_were_asked_for(stage: Stage) -> None:
    """The old one defined roofline options and ran another, commented-out variable: plain ncu, every kernel, no file."""
    done = stage.run("ncu_wrapper.sh", "--set", "roofline", "--run-dir", "r", "true")
    (call,) = stage.calls("ncu.--set")
    assert done.returncode == 0
    assert call[1:3] == ["--set", "roofline"]
    assert call[call.index("--export") + 1] == str(stage.path / "r/ncu/rank0000")
    assert int(call[call.index("--launch-count") + 1]) > 0
    assert (stage.path / "r/ncu/rank0000.ncu-rep").exists() and (stage.path / "r/ncu/rank0000.raw.csv").exists()
    stage.bash(OLD["options"])
    assert len(stage.calls("ncu.--set")) == 1 and stage.calls("ncu.true") == [["LC_ALL=", "true"]]


def test_unset_local_rank_is_not_zero(stage: Stage) -> None:
    """`[[ $PALS_LOCAL_RANKID -eq 0 && $PMI_RANK -lt 8 ]]`: under Slurm both are unset, so every rank was profiled."""

    def chosen(script: str) -> list[int]:
        return [rank for rank in range(8) if stage.bash(script, **slurm(rank, 4)).stdout == "yes\n"]

    assert chosen(CHOSEN.replace("nsl_settle", "nsl_ranks=local0; nsl_settle")) == [0, 4]
    assert chosen(OLD["rank"]) == list(range(8))


def test_all_ranks_share_run_and_execution_whatever_their_clocks_say(stage: Stage) -> None:
    """A timestamp per rank put ranks that straddle a second into different directories."""
    stage.stub("date", '#!/bin/sh\necho "$SLURM_PROCID$SLURM_PROCID"\n')  # a clock that differs on each rank
    for rank in range(3):
        stage.run("nsys_wrapper.sh", "true", **slurm(rank, 4, 3))
    found = [stage.sidecar(f"nsightlens-runs/7/nsys/rank000{rank}.run.json") for rank in range(3)]
    assert [f["rank"] for f in found] == [0, 1, 2]
    assert {f["run"] for f in found} == {"7"}
    assert {f["execution_id"] for f in found} == {"slurm-7.0-nsys"}
    assert len({stage.bash(OLD["folder"], **slurm(rank, 4, 3)).stdout for rank in range(3)}) == 3


@pytest.mark.parametrize("per_node", [1, 4, 8])
def test_the_cutoff_bounds_the_rank_as_in_the_scripts_of_old(stage: Stage, per_node: int) -> None:
    loop = "".join(
        f"SLURM_PROCID={r} SLURM_LOCALID={r % per_node} SLURM_NODEID={r // per_node}; nsl_find_rank; "
        f"if nsl_selected; then echo {r}; fi; "
        for r in range(32)
    )
    done = stage.bash(
        f'source "{WRAPPERS}/launch.sh"; nsl_settle_selection all; {loop}', PROFRANK="0", RANKCUTOFF="8", **slurm(0, per_node)
    )
    chosen = [int(line) for line in done.stdout.split()]
    old = [rank for rank in range(32) if stage.bash(
        OLD["cutoff"], PMI_RANK=str(rank), PALS_LOCAL_RANKID=str(rank % per_node)).stdout == "yes\n"]
    assert old == chosen == list(range(0, 8, per_node))


@pytest.mark.parametrize(
    ("which", "cut", "expected"),
    [
        ("all", "", list(range(16))),
        ("0", "", [0]),
        ("0,8", "", [0, 8]),
        ("8,0", "1", [8]),
        ("all", "3", [0, 1, 2]),
        ("local0", "", [0, 4, 8, 12]),
        ("local0", "3", [0, 4, 8]),
        ("local3", "", [3, 7, 11, 15]),
        ("99", "", []),
        ("all", "0", []),
    ],
)
def test_selection(stage: Stage, which: str, cut: str, expected: list[int]) -> None:
    loop = "".join(
        f"SLURM_PROCID={r} SLURM_LOCALID={r % 4} SLURM_NODEID={r // 4}; nsl_find_rank; if nsl_selected; then echo {r}; fi; "
        for r in range(16)
    )
    done = stage.bash(
        f'source "{WRAPPERS}/launch.sh"; nsl_ranks={which} nsl_max_ranks={cut}; nsl_settle_selection all; {loop}', **slurm(0, 4)
    )
    assert [int(line) for line in done.stdout.split()] == expected, done.stderr


@pytest.mark.parametrize("which", ["", "some", "0,", "-1", "local", "0;1", "local0,1"])
def test_a_selection_that_is_none_is_refused(stage: Stage, which: str) -> None:
    done = stage.run("nsys_wrapper.sh", f"--ranks={which}", "echo", "started")
    assert (done.returncode, done.stdout) == (2, "")


def test_options_win_over_variables(stage: Stage) -> None:
    done = stage.run(
        "nsys_wrapper.sh",
        "--run-dir",
        "r",
        "--ranks",
        "1",
        "--max-ranks",
        "1",
        "true",
        PROFRANK="0",
        RANKCUTOFF="0",
        **slurm(1, 4),
    )
    assert done.returncode == 0
    assert (stage.path / "r/nsys/rank0001.run.json").exists()


def test_an_unprofiled_rank_runs_untouched(stage: Stage) -> None:
    plain = stage.run("/usr/bin/env", **slurm(1, 4)).stdout
    done = stage.run("nsys_wrapper.sh", "--ranks", "0", "--run-dir", "r", "env", **slurm(1, 4))
    ignore = ("_=", "PWD=", "OLDPWD=", "SHLVL=")
    kept = [sorted(x for x in text.splitlines() if not x.startswith(ignore)) for text in (plain, done.stdout)]
    assert kept[0] == kept[1]
    assert stage.calls("nsys.profile") == [] and stage.files() == []
    assert stage.run("nsys_wrapper.sh", "--ranks", "0", "--run-dir", "r", "sh", "-c", "exit 9", **slurm(1, 4)).returncode == 9


EXECUTIONS = {
    "slurm": ({**slurm(1, 4), "SLURM_STEP_ID": "3"}, "slurm-7.3-nsys"),
    "pals": (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "PALS_LOCAL_RANKID": "1", "PALS_APID": "ap", "PBS_JOBID": "9.x"},
        "pals-9.x.ap-nsys",
    ),
    "openmpi": (
        {
            "OMPI_COMM_WORLD_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_SIZE": "2",
            "PMIX_NAMESPACE": "prterun-a-1@1",
        },
        "openmpi-prterun-a-1@1-nsys",
    ),
    "torchrun": ({"TORCHELASTIC_RUN_ID": "abc", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}, "torchrun-abc-nsys"),
    "torchrun, restarted": (
        {"TORCHELASTIC_RUN_ID": "abc", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "2"},
        "torchrun-abc-restart2-nsys",
    ),
    "torchrun without id": ({"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}, None),
    "told": ({**slurm(1, 4), "NSIGHTLENS_EXECUTION_ID": "mine"}, "mine"),
}


@pytest.mark.parametrize("name", EXECUTIONS)
def test_execution_id(stage: Stage, name: str) -> None:
    environment, expected = EXECUTIONS[name]
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", "true", **environment)
    (sidecar,) = (stage.path / "r" / "nsys").glob("*.run.json")
    assert read_sidecar(sidecar).execution == expected
    assert ("NSIGHTLENS_EXECUTION_ID" in done.stderr) == (expected is None)


def test_ranks_that_share_no_name_are_refused(stage: Stage) -> None:
    done = stage.run("nsys_wrapper.sh", "echo", "started", RANK="0", LOCAL_RANK="0", WORLD_SIZE="2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "NSIGHTLENS_RUN_ID" in done.stderr
