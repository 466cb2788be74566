"""What the Python wrappers do before torch comes in: ranks, names, places, secrets, options. With torch: tests/workloads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import nsl_launch
import pytest
import torch_profiler
from nsl_launch import Launch, capture, find_launch, selected

from nsightlens.discovery.ranks import read_sidecar
from tests.discovery.planted import COMMANDS, HARMLESS
from tests.wrappers.stage import WRAPPERS

ELASTIC = {"TORCHELASTIC_RUN_ID": "abc", "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4",
           "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1"}
OPENMPI = {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8",
           "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
PALS = {"PMI_RANK": "7", "PALS_RANKID": "7", "PALS_LOCAL_RANKID": "3", "PMI_SIZE": "16", "PALS_APID": "x", "PALS_NODEID": "1"}
STEP = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2",
        "SLURM_LOCALID": "0", "SLURM_NODEID": "1"}
BATCH = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4", "SLURM_NODEID": "0"}
FULL = {
    "none": ({}, (0, 0, 1)),
    "torchrun": (ELASTIC, (3, 1, 4)),
    "torchrun below srun": (ELASTIC | STEP, (3, 1, 4)),
    "openmpi": (OPENMPI, (5, 1, 8)),
    "openmpi with pmix": (OPENMPI | {"PMIX_RANK": "5"}, (5, 1, 8)),
    "pals": (PALS, (7, 3, 16)),
    "intel": ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, (1, 1, 2)),
    "mvapich": ({"MV2_COMM_WORLD_RANK": "9", "MV2_COMM_WORLD_LOCAL_RANK": "1", "MV2_COMM_WORLD_SIZE": "12"}, (9, 1, 12)),
    "srun": (STEP, (2, 0, 4)),
    "srun with pmix": (STEP | {"PMIX_RANK": "2"}, (2, 0, 4)),
    "srun with pmi2": (STEP | {"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 0, 4)),
    "srun, its step not told": ({"SLURM_PROCID": "2", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4"}, (2, 0, 4)),
    "by variables": ({"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}, (1, 1, 2)),
    "by hand": (OPENMPI | {"NSIGHTLENS_RANK": "0", "NSIGHTLENS_LOCAL_RANK": "0", "NSIGHTLENS_WORLD_SIZE": "2"}, (0, 0, 2)),
    "leading zeros": (OPENMPI | {"OMPI_COMM_WORLD_RANK": "007"}, (7, 1, 8)),
    "variables agree": (OPENMPI | {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, (5, 1, 8)),
    "rank alone agrees with nothing": (OPENMPI | {"RANK": "2"}, (5, 1, 8)),
}
REFUSED = {
    "local rank without rank": {"PALS_LOCAL_RANKID": "0"},
    "rank without local rank": {"PMI_RANK": "3", "PMI_SIZE": "4"},
    "empty": {"OMPI_COMM_WORLD_RANK": "", "OMPI_COMM_WORLD_LOCAL_RANK": ""},
    "a word": OPENMPI | {"OMPI_COMM_WORLD_RANK": "first"},
    "negative": OPENMPI | {"OMPI_COMM_WORLD_RANK": "-1"},
    "rank of too few": OPENMPI | {"OMPI_COMM_WORLD_RANK": "8"},
    "two disagree": OPENMPI | {"MV2_COMM_WORLD_RANK": "9", "MV2_COMM_WORLD_LOCAL_RANK": "1"},
    "PMI and PALS disagree": PALS | {"PALS_RANKID": "6"},
    "variables disagree": OPENMPI | {"RANK": "4", "LOCAL_RANK": "1", "WORLD_SIZE": "8"},
    "half of torchrun": {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "LOCAL_RANK": "0"},
    "rank only": {"RANK": "0"},
    "PMI left over from outside srun": STEP | {"PMI_RANK": "0", "PMI_SIZE": "1", "MPI_LOCALRANKID": "0"},
    "PMI left over, as many ranks": STEP | {"PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"},
    "SLURM_PROCID empty": {"SLURM_PROCID": "", "SLURM_LOCALID": "0"},
    "SLURM_LOCALID missing": {"SLURM_PROCID": "2", "SLURM_STEP_ID": "0"},
    "half by hand": {"NSIGHTLENS_RANK": "0"},
    "pmix alone": {"PMIX_RANK": "0"},
}


@pytest.mark.parametrize("case", FULL)
def test_the_rank_of_each_launcher(case: str) -> None:
    env, expected = FULL[case]
    launch = find_launch(env)
    assert (launch.rank, launch.local_rank, launch.world_size) == expected


@pytest.mark.parametrize("case", REFUSED)
def test_a_launcher_that_is_half_set_is_an_error(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        find_launch(REFUSED[case])
    assert refused.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("case", [*FULL, *REFUSED])
def test_the_shell_says_the_same(case: str) -> None:
    env = FULL[case][0] if case in FULL else REFUSED[case]
    program = 'source "$0"; nsl_find_rank; echo "$nsl_rank $nsl_local_rank $nsl_world_size $nsl_launcher"'
    shell = ["bash", "-c", program, str(WRAPPERS / "launch.sh")]
    done = subprocess.run(shell, env={"PATH": "/usr/bin:/bin", **env}, capture_output=True, text=True, check=False)
    if case in FULL:
        assert done.stdout.split() == [*(str(number) for number in FULL[case][1]), find_launch(env).launcher], done.stderr
    else:
        assert done.returncode == 2


def test_a_batch_script_is_one_process() -> None:
    assert find_launch(BATCH) == Launch()


def test_which_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [Launch("x", r, r % 4, 16, 4, r // 4) for r in range(16)]

    def chosen(words: str, most: int | None = None) -> list[int]:
        return [r.rank for r in ranks if selected(r, words, most)]

    assert chosen("all") == list(range(16))
    assert chosen("all", 3) == [0, 1, 2]
    assert chosen("0,8") == [0, 8]
    assert chosen("8,0", 1) == [8]
    assert chosen("local0") == [0, 4, 8, 12]
    assert chosen("local1", 2) == [1, 5]
    monkeypatch.setenv("RANKCUTOFF", "6")
    assert chosen("local0") == [0, 4] and chosen("all") == list(range(6)) and chosen("all", 7) == list(range(7))
    with pytest.raises(SystemExit):
        chosen("first")


def test_local_ranks_with_a_cutoff_need_a_node() -> None:
    with pytest.raises(SystemExit):
        selected(Launch("pmix", 4, 0, 8, None, None), "local0", 2)


def test_all_ranks_share_run_and_execution() -> None:
    told = {}
    for rank in (0, 3):
        env = ELASTIC | {"RANK": str(rank), "LOCAL_RANK": str(rank % 2), "HOSTNAME": f"node{rank // 2}"}
        here = capture(find_launch(env), "torch", ["train.py"], env=env)
        told[rank] = (here.run, here.execution_id)
    assert told[0] == told[3] == ("abc", "torchrun-abc-torch")


def test_a_restart_is_another_execution() -> None:
    env = ELASTIC | {"TORCHELASTIC_RESTART_COUNT": "2"}
    assert capture(find_launch(env), "torch", ["t"], env=env).execution_id == "torchrun-abc-restart2-torch"


def test_ranks_without_a_common_name_are_refused_and_times_not_compared() -> None:
    env = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    with pytest.raises(SystemExit):
        capture(find_launch(env), "torch", ["t"], env=env)
    assert capture(find_launch(env), "torch", ["t"], run_dir="runs/base", env=env).execution_id is None


def test_options_win_over_variables(tmp_path: Path) -> None:
    env = STEP | {"NSIGHTLENS_RUN_ID": "run", "NSIGHTLENS_EXECUTION_ID": "first", "NSIGHTLENS_RUN_DIR": str(tmp_path / "a")}
    launch = find_launch(env)
    here = capture(launch, "nsys", ["t"], env=env)
    assert (here.run, here.execution_id, here.stem) == ("run", "first", tmp_path / "a" / "nsys" / "rank0002")
    here = capture(launch, "nsys", ["t"], run_dir=str(tmp_path / "b"), run_id="other", execution_id="second", env=env)
    assert (here.run, here.execution_id, here.run_dir) == ("other", "second", tmp_path / "b")


def test_ingest_reads_the_sidecar(tmp_path: Path) -> None:
    env = STEP | {"HOSTNAME": "node7"}
    here = capture(find_launch(env), "torch", ["train.py", "--lr", "0.1"], run_dir=str(tmp_path), env=env)
    path = tmp_path / "rank0002.run.json"
    nsl_launch.write_json(path, here.facts())
    sidecar = read_sidecar(path)
    assert (sidecar.run, sidecar.rank, sidecar.world_size, sidecar.local_rank) == (tmp_path.name, 2, 4, 0)
    assert (sidecar.host, sidecar.execution) == ("node7", "slurm-77.2-torch")


def test_secrets_are_struck_out(tmp_path: Path) -> None:
    words = [word for case in COMMANDS for word in ("--", *case)]
    expected = [word for case in COMMANDS.values() for word in ("--", *case)]
    assert capture(Launch(), "torch", ["t", *words], run_dir=str(tmp_path)).facts()["command"] == ["t", *expected]
    assert capture(Launch(), "torch", HARMLESS, run_dir=str(tmp_path)).facts()["command"] == HARMLESS


def test_the_environment_reaches_no_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hush-hush")
    assert "hush-hush" not in json.dumps(capture(Launch(), "torch", ["t"], run_dir=str(tmp_path)).facts())


def test_options_and_the_variables_of_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFRANK", "0")
    found = torch_profiler._parser().parse_args(["--active", "2", "--no-record-shapes", "train.py", "--active", "9", "x y"])
    assert (found.ranks, found.active, found.record_shapes) == ("local0", 2, False)
    assert (found.script, found.arguments) == ("train.py", ["--active", "9", "x y"])


@pytest.mark.parametrize(("words", "code"), [(["missing.py"], 127), (["--steps-from", "nowhere", "x.py"], 2), ([], 2)])
def test_wrong_words_are_told_before_anything_starts(words: list[str], code: int) -> None:
    program = [sys.executable, "-S", str(WRAPPERS / "torch_profiler.py"), *words]   # -S: no site-packages, hence no torch
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_the_wrappers_import_nothing_of_ours_and_no_torch_at_import() -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import torch_profiler; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, str(WRAPPERS)], capture_output=True, text=True, check=True)
    assert not {"torch", "nvtx", "numpy"} & set(done.stdout.split())
    for path in WRAPPERS.rglob("*.py"):
        assert "import nsightlens" not in path.read_text() and "from nsightlens" not in path.read_text()


def test_two_processes_of_one_rank_do_not_write_the_same_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch_profiler._claim(tmp_path / "rank0000")
    with pytest.raises(SystemExit) as refused:
        torch_profiler._claim(tmp_path / "rank0000")
    assert refused.value.code == 1 and "another process records as rank0000" in capsys.readouterr().err


def test_waits_are_asked_for_where_this_torch_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def config(**options: bool) -> dict[str, bool]:
        return options

    assert torch_profiler.Options().sync_events
    for name in ("torch", "torch._C"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for interface, said in ((config, {"enable_cuda_sync_events": True}), (lambda verbose=False: verbose, None)):
        monkeypatch.setitem(sys.modules, "torch._C._profiler", SimpleNamespace(_ExperimentalConfig=interface))
        assert torch_profiler._sync_events() == said
    monkeypatch.setitem(sys.modules, "torch._C._profiler", None)
    assert torch_profiler._sync_events() is None


def test_help_says_what_each_option_does_and_its_default() -> None:
    text = " ".join(torch_profiler._parser().format_help().split())
    assert "--active N steps to record in each window [3]" in text and "of the operators' inputs [yes]" in text
    assert "What works without touching the script" in text
