"""The sidecar: what ingest reads, what people need, and nothing secret."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from nsightlens.discovery.ranks import read_sidecar, sidecar_path
from tests.discovery.planted import COMMANDS, HARMLESS
from tests.wrappers.stage import WRAPPERS, Stage, leftovers


def test_fields(stage: Stage) -> None:
    before = time.time_ns()
    (stage.path / "torch").mkdir()
    (stage.path / "torch/__init__.py").write_text("raise SystemExit('torch must not be imported to ask its version')")
    (stage.path / "torch/version.py").write_text(
        "from typing import Optional\n__version__ = '2.7.1+cu126'\ncuda: Optional[str] = '12.6'\n"
    )
    subprocess.run(["git", "init", "-q", str(stage.path)], check=True)
    subprocess.run(
        ["git", "-C", str(stage.path), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
        check=True,
    )
    stage.run(
        "nsys_wrapper.sh",
        "--run-dir",
        "r",
        "--run-id",
        "resnet18-bf16",
        "python",
        "-c",
        "pass",
        PYTHONPATH=str(stage.path),
        SLURM_PROCID="3",
        SLURM_LOCALID="1",
        SLURM_STEP_ID="0",
        SLURM_JOB_ID="7",
        SLURM_STEP_NUM_TASKS="8",
        HOSTNAME="node-1",
    )
    found = stage.sidecar("r/nsys/rank0003.run.json")
    commit = subprocess.run(
        ["git", "-C", str(stage.path), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    expected = {
        "run": "resnet18-bf16",
        "execution_id": "slurm-7.0-nsys",
        "rank": 3,
        "world_size": 8,
        "local_rank": 1,
        "host": "node-1",
        "launcher": "slurm",
        "tool": "nsys",
        "tool_version": "2025.3.1.90-253135822126v0",
        "command": ["python", "-c", "pass"],
        "driver_version": "550.54.15",
        "cuda_version": "12.4",
        "torch_version": "2.7.1+cu126",
        "torch_cuda_version": "12.6",
        "git_commit": commit,
        "exit_code": 0,
        "report": "rank0003.nsys-rep",
    }
    assert {name: found[name] for name in expected} == expected
    assert before < found["started_epoch_ns"] < found["ended_epoch_ns"] < time.time_ns()
    assert found["gpus"][0] == {
        "index": 0,
        "name": "NVIDIA A100-SXM4-40GB",
        "uuid": "GPU-aaaa",
        "sm_clock_mhz": 210,
        "max_sm_clock_mhz": 1410,
        "memory_clock_mhz": 1215,
        "max_memory_clock_mhz": 1215,
        "power_limit_w": 400.0,
    }
    assert found["gpus"][1]["memory_clock_mhz"] is None and found["gpus"][1]["power_limit_w"] is None
    sidecar = sidecar_path(stage.path / "r/nsys/rank0003.sqlite")
    assert sidecar
    read = read_sidecar(sidecar)
    assert (read.run, read.execution, read.rank, read.world_size, read.local_rank, read.host) == (
        "resnet18-bf16",
        "slurm-7.0-nsys",
        3,
        8,
        1,
        "node-1",
    )


def test_unknown_is_null_without_nvidia_smi_and_git(stage: Stage) -> None:
    stage.without("nvidia-smi")
    stage.run("plain_wrapper.sh", "--run-dir", "r", "true")
    found = stage.sidecar("r/plain/rank0000.run.json")
    assert {
        found[n]
        for n in ("gpus", "driver_version", "cuda_version", "torch_version", "git_commit", "tool_version", "report")
        if not isinstance(found[n], list)
    } == {None}


def test_secrets_do_not_reach_it(stage: Stage) -> None:
    """All words at once, each behind a word that parts it from the one before."""
    words = [word for case in COMMANDS for word in ("--", *case)]
    expected = [word for case in COMMANDS.values() for word in ("--", *case)]
    stage.run("plain_wrapper.sh", "--run-dir", "r", "true", *words, AWS_SECRET_ACCESS_KEY="planted", MY_VARIABLE="planted")
    text = (stage.path / "r/plain/rank0000.run.json").read_text()
    assert json.loads(text)["command"][1:] == expected
    assert "planted" not in text.lower()


def test_nor_do_those_in_an_option_of_the_profiler(stage: Stage) -> None:
    stage.run("nsys_wrapper.sh", "--run-dir", "r", "--nsys-option", "--env-var=A=b,HF_TOKEN=planted", "true")
    assert stage.sidecar("r/nsys/rank0000.run.json")["options"]["nsys_options"] == "--env-var=A=b,HF_TOKEN=***"


def test_what_is_no_secret_stays(stage: Stage) -> None:
    stage.run("plain_wrapper.sh", "--run-dir", "r", "true", *HARMLESS)
    assert stage.sidecar("r/plain/rank0000.run.json")["command"][1:] == HARMLESS


def test_any_bytes_are_json(stage: Stage) -> None:
    good = 'tab\t "quoted" back\\slash \x01\x7f\n é 漢 😀 end'
    stage.run(
        "plain_wrapper.sh",
        "--run-dir",
        "r",
        "true",
        good,
        b"bad \xff\xc3 \xed\xa0\x80 \xc0\xaf end",
        "y" * 5000,
        LC_ALL="C.UTF-8",
    )
    command = stage.sidecar("r/plain/rank0000.run.json")["command"]
    assert command[1] == good
    assert command[2] == b"bad \xff\xc3 \xed\xa0\x80 \xc0\xaf end".decode(errors="replace")
    assert len(command[3]) < 1100


def test_a_long_command_line_keeps_below_what_ingest_reads(stage: Stage) -> None:
    stage.run("plain_wrapper.sh", "--run-dir", "r", "true", *["z" * 900] * 700)
    path = stage.path / "r/plain/rank0000.run.json"
    assert path.stat().st_size < 1 << 20 and read_sidecar(path).rank == 0


def test_wrappers_need_no_python_and_nothing_newer_than_bash_4_2() -> None:
    import re

    newer = re.compile(
        r"\$\{[^}]*@[QEPAaKkUuL]\}|\bwait -[np]|\b(?:local|declare) -[a-z]*n\b|EPOCHREALTIME"
        r"|\$\{[A-Za-z_]+\[-1\]|mapfile -d|shopt -s inherit"
    )
    for path in WRAPPERS.glob("*.sh"):
        assert not newer.search(path.read_text()), path.name


def test_a_locale_that_is_not_installed_is_no_noise(stage: Stage) -> None:
    """Common in containers; the sidecar is written byte by byte in another one."""
    done = stage.run("plain_wrapper.sh", "--run-dir", "r", "true", "é", LC_ALL="xx_YY.UTF-8")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "sidecar.sh" in line] == []
    assert stage.sidecar("r/plain/rank0000.run.json")["command"] == ["true", "é"]


@pytest.mark.parametrize("tool", ["nsys", "ncu", "plain"])
def test_exported_shell_options_and_no_home_change_nothing(stage: Stage, tool: str) -> None:
    words = ["-u", "HOME", "-u", "TMPDIR", "SHELLOPTS=noglob:noclobber", str(WRAPPERS / f"{tool}_wrapper.sh"), "--run-dir", "r"]
    done = stage.run("/usr/bin/env", *words, "sh", "-c", "echo started; exit 3")
    assert (done.returncode, done.stdout) == (3, "started\n"), done.stderr
    assert stage.sidecar(f"r/{tool}/rank0000.run.json")["exit_code"] == 3


@pytest.mark.parametrize("ranks", ["0", "1"])
def test_the_wrappers_shell_options_do_not_reach_the_application(stage: Stage, ranks: str) -> None:
    """With SHELLOPTS exported, set -e and set -u of one bash are those of every bash below it."""
    words = ["SHELLOPTS=braceexpand", str(WRAPPERS / "nsys_wrapper.sh"), "--run-dir", "r", "--ranks", ranks]
    done = stage.run("/usr/bin/env", *words, "bash", "-c", 'false; echo "${unset}end"; exit 3')
    assert (done.returncode, done.stdout) == (3, "end\n"), done.stderr


def test_a_log_that_cannot_be_written_does_not_end_the_job(stage: Stage) -> None:
    done = stage.bash(f"{WRAPPERS}/plain_wrapper.sh --run-dir r sh -c 'touch started; exit 3' 2>/dev/full")
    assert done.returncode == 3 and (stage.path / "started").exists()
    assert stage.sidecar("r/plain/rank0000.run.json")["exit_code"] == 3


def test_a_temporary_folder_that_a_killed_start_left_is_no_obstacle(stage: Stage) -> None:
    """Process ids repeat, above all in containers."""
    done = stage.bash(f'mkdir "$TMPDIR/nsl$UID-$$-r0000"; exec {WRAPPERS}/plain_wrapper.sh --run-dir r true')
    assert done.returncode == 0, done.stderr
    assert len(leftovers(stage)) == 1   # the old one: it may be another container's


def test_a_disk_that_fills_up_leaves_no_half_sidecar(stage: Stage) -> None:
    stage.stub("mv", '#!/bin/sh\ncase "$*" in *.run.json) [ ! -e ended ] || exit 1 ;; esac\nexec /bin/mv "$@"\n')
    done = stage.run("plain_wrapper.sh", "--run-dir", "r", "sh", "-c", "touch ended; exit 4")
    assert done.returncode == 4 and "full disk" in done.stderr.splitlines()[-1]
    assert [name for name in stage.files() if name.startswith("r/")] == ["r/plain/rank0000.run.json"]
    assert stage.sidecar("r/plain/rank0000.run.json")["exit_code"] is None
