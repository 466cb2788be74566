"""nsys_wrapper.sh: its command, its report, its refusals."""

from __future__ import annotations

import shlex
import shutil
import time

import pytest

from tests.wrappers.stage import NSYS_HELP, WRAPPERS, Stage, leftovers

SLURM = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "8"}


def test_arguments_arrive_as_they_were(stage: Stage) -> None:
    words = ["a b", "", "it's", '"q"', "$HOME", "*", "back\\slash", "new\nline", "--ranks", "-k", "ü", "&&"]
    done = stage.run("nsys_wrapper.sh", "--run-dir", "a dir/it's", "python", "-c", "import sys; print(sys.argv[1:])", *words)
    assert done.stdout == f"{words}\n"
    assert stage.sidecar("a dir/it's/nsys/rank0000.run.json")["command"][3:] == words
    assert leftovers(stage) == []


def test_the_command_and_the_export(stage: Stage) -> None:
    done = stage.run(
        "nsys_wrapper.sh",
        "--run-dir",
        "r",
        "--cuda-graph-trace=node",
        "--stats",
        "true",
        "--nsys-option=--sample=none",
        "sh",
        "-c",
        "exit 7",
        **SLURM,
    )
    assert done.returncode == 7
    (call,), (export,) = stage.calls("nsys.profile"), stage.calls("nsys.export")
    stem, hidden = stage.path / "r/nsys/rank0003", stage.path / "r/nsys/.rank0003.sqlite"
    assert {
        "--trace=cuda,nvtx,osrt,cudnn,cublas",
        f"--output={stem}",
        "--cuda-graph-trace=node",
        "--stats=true",
        "--show-output=true",
        "--sample=none",
    } <= set(call)
    assert export[1:] == ["--type=sqlite", "--force-overwrite=true", f"--output={hidden}", f"{stem}.nsys-rep"]
    assert stem.with_suffix(".sqlite").exists() and not hidden.exists()   # whole, or not at all
    (tmpdir,) = [p.read_text() for p in stage.log.glob("nsys.tmpdir.*")]
    assert tmpdir.strip().endswith("-r0003")
    assert leftovers(stage) == []


@pytest.mark.parametrize(("words", "sampled"), [
    ([], ["--sample=none"]), (["--sample", "process-tree"], ["--sample=process-tree"]), (["-s", "cpu"], ["--sample=cpu"]),
    (["--nsys-option=--sample=system-wide"], ["--sample=system-wide"]),
    (["--nsys-option=-s", "--nsys-option=cpu"], ["-s", "cpu"]),
    (["--nsys-option=--samples-per-backtrace=1"], ["--sample=none", "--samples-per-backtrace=1"]),
])
def test_the_cpus_are_not_sampled_unless_asked_for(stage: Stage, words: list[str], sampled: list[str]) -> None:
    assert stage.run("nsys_wrapper.sh", "--run-dir", "r", *words, "true").returncode == 0
    (call,) = stage.calls("nsys.profile")
    assert [word for word in call if word.startswith(("--sample", "-s")) or word == "cpu"] == sampled


PYTORCH = "\\t--pytorch=\\n\\t   Possible values are 'autograd-nvtx',\\n\\t   'functions-trace' or 'none'.\\n\\n"


@pytest.mark.parametrize(("words", "code", "says"), [
    (["--pytorch", "autograd-nvtx,functions-trace"], 0, ""),
    (["--pytorch", "autograd-shapes-nvtx"], 2, "this nsys does not list autograd-shapes-nvtx"),
])
def test_pytorch_is_annotated_as_far_as_this_nsys_can(stage: Stage, words: list[str], code: int, says: str) -> None:
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", *words, "true", STUB_NSYS_HELP=NSYS_HELP + PYTORCH)
    assert done.returncode == code and says in done.stderr, done.stderr
    assert [word for call in stage.calls("nsys.profile") for word in call if word.startswith("--pytorch")] == (
        [] if code else ["--pytorch=autograd-nvtx,functions-trace"])


def test_pytorch_is_refused_by_an_nsys_that_has_no_such_option(stage: Stage) -> None:
    help_ = NSYS_HELP + "\\t--output=\\n\\t--force-overwrite=\\n\\t--stats=\\n\\t--show-output=\\n"
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", "--pytorch", "autograd-nvtx", "true", STUB_NSYS_HELP=help_)
    assert done.returncode == 2 and "this nsys has no option --pytorch" in done.stderr and stage.calls("nsys.profile") == []


def test_dry_run_prints_what_a_run_does_and_does_nothing(stage: Stage) -> None:
    words = ["--run-dir", "r", "--nvtx-capture", "my step", "echo", "a b", "$x"]
    dry = stage.run("nsys_wrapper.sh", "--dry-run", *words)
    assert dry.returncode == 0 and stage.files() == [] and stage.calls("nsys") == []
    stage.run("nsys_wrapper.sh", *words)
    lines = [shlex.split(line) for line in dry.stdout.splitlines() if not line.startswith("#")]
    (profile,) = [line[2:] for line in lines if "profile" in line]
    (call,) = stage.calls("nsys.profile")
    assert profile[0] == "nsys"

    def steady(line: list[str]) -> list[str]:
        return [word for word in line if "-r0000" not in word]  # the folder for temporary files carries the process id

    assert steady(profile[1:]) == steady(call)
    assert [line for line in lines if "export" in line and "nsys" in line] == [["nsys", *stage.calls("nsys.export")[0]]]
    assert ["export", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0"] in lines


def test_dry_run_can_be_pasted_into_a_shell(stage: Stage) -> None:
    dry = stage.run("nsys_wrapper.sh", "--dry-run", "--run-dir", "r s", "echo", "a  'b")
    done = stage.bash(dry.stdout)
    assert done.stdout == "a  'b\n" and (stage.path / "r s/nsys/rank0000.sqlite").exists()


@pytest.mark.parametrize(
    ("help_", "launcher", "expected"),
    [
        ("-t, --trace=\\n  Possible values are 'cuda', 'nvtx', 'osrt', 'nccl', 'mpi'.\\n", {}, "cuda,nvtx,osrt,nccl"),
        (
            "-t, --trace=\\n  'cuda', 'nvtx', 'mpi'.\\n-x\\n 'nccl'",
            {"PMI_RANK": "0", "PMI_SIZE": "1", "PALS_LOCAL_RANKID": "0"},
            "cuda,nvtx,mpi",
        ),
        ("something else", {}, "cuda,nvtx,osrt,cudnn,cublas"),
    ],
)
def test_trace_follows_the_installed_version(stage: Stage, help_: str, launcher: dict[str, str], expected: str) -> None:
    stage.run("nsys_wrapper.sh", "--run-dir", "r", "true", STUB_NSYS_HELP=help_, **launcher)
    assert f"--trace={expected}" in stage.calls("nsys.profile")[0]
    assert stage.sidecar("r/nsys/rank0000.run.json")["options"]["trace"] == expected


@pytest.mark.parametrize(
    "options",
    [
        ("--capture-range", "nvtx"),
        ("--capture-range", "none", "--nvtx-capture", "x"),
        ("--stats", "maybe"),
        ("--cuda-graph-trace", "all"),
        ("--nonsense",),
        ("--run-dir",),
        ("--dry-run=yes",),
        (),
    ],
)
def test_what_was_asked_wrongly_starts_nothing(stage: Stage, options: tuple[str, ...]) -> None:
    done = stage.run("nsys_wrapper.sh", *options, *(["echo", "started"] if options[-1:] != ("--run-dir",) and options else []))
    assert (done.returncode, done.stdout) == (2, "")
    assert "error:" in done.stderr and stage.calls("nsys.profile") == []


def test_a_missing_nsys_is_told_before_the_start_on_every_rank(stage: Stage) -> None:
    stage.without("nsys")
    done = stage.run("nsys_wrapper.sh", "--ranks", "0", "--run-dir", "r", "echo", "started", **SLURM)
    assert (done.returncode, done.stdout) == (127, "")
    assert "nsys is not on PATH" in done.stderr


def test_an_unwritable_run_dir_is_told_before_the_start(stage: Stage) -> None:
    (stage.path / "file").write_text("")
    for folder in ("file", "/proc/nowhere"):
        done = stage.run("nsys_wrapper.sh", "--run-dir", folder, "echo", "started")
        assert (done.returncode, done.stdout) == (1, "")
        assert "--run-dir" in done.stderr


def test_a_full_disk_is_told_before_the_start(stage: Stage) -> None:
    stage.stub("df", "#!/bin/sh\necho head\necho '/dev/a 100 100 12 100% /'\n")
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", "echo", "started")
    assert (done.returncode, done.stdout) == (1, "")
    assert "only 12 KiB are free" in done.stderr


def test_an_earlier_capture_is_not_lost(stage: Stage) -> None:
    stage.run("nsys_wrapper.sh", "--run-dir", "r", "true")
    again = stage.run("nsys_wrapper.sh", "--run-dir", "r", "echo", "started")
    assert (again.returncode, again.stdout) == (1, "") and "--overwrite" in again.stderr
    (stage.path / "r/nsys/rank0000.old").write_text("stale")
    assert stage.run("nsys_wrapper.sh", "--run-dir", "r", "--overwrite", "true").returncode == 0
    assert not (stage.path / "r/nsys/rank0000.old").exists()


def test_exit_codes_are_the_applications(stage: Stage) -> None:
    """Whatever nsys makes of it: its own failure does not fail the job, and a failing application does."""
    assert stage.run("nsys_wrapper.sh", "--run-dir", "a", "sh", "-c", "exit 42").returncode == 42
    assert stage.run("nsys_wrapper.sh", "--run-dir", "b", "true", STUB_NSYS_CODE="1").returncode == 0
    assert stage.run("nsys_wrapper.sh", "--run-dir", "c", "sh", "-c", "kill -SEGV $$").returncode == 139
    assert stage.run("nsys_wrapper.sh", "--run-dir", "d", "sh", "-c", "no-such-command").returncode == 127
    assert [stage.sidecar(f"{d}/nsys/rank0000.run.json")["exit_code"] for d in "abcd"] == [42, 0, 139, 127]


def test_no_report_is_a_clear_last_line(stage: Stage) -> None:
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", "--capture-range=cudaProfilerApi", "true", STUB_NSYS_NO_REPORT="1")
    assert "no report" in done.stderr.splitlines()[-1] and "cudaProfilerApi" in done.stderr.splitlines()[-1]
    assert stage.sidecar("r/nsys/rank0000.run.json")["report"] is None
    failed = stage.run("nsys_wrapper.sh", "--run-dir", "s", "true", STUB_NSYS_EXPORT="1")
    assert failed.returncode == 0 and "could not export" in failed.stderr.splitlines()[-1]


def test_half_an_export_is_taken_away_and_the_line_for_it_can_be_pasted(stage: Stage) -> None:
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r s", "sh", "-c", "exit 7", STUB_NSYS_EXPORT="1")
    assert done.returncode == 7
    assert sorted(p.name for p in (stage.path / "r s/nsys").iterdir()) == ["rank0000.nsys-rep", "rank0000.run.json"]
    assert stage.bash(done.stderr.splitlines()[-1].partition("RUN_DIR): ")[2]).returncode == 0
    assert (stage.path / "r s/nsys/rank0000.sqlite").exists()


def test_coreutils_are_enough(stage: Stage) -> None:
    """No awk, find, git or hostname: as in a minimal container."""
    for name in ("bash", "sh", "env", "mkdir", "rm", "mv", "date", "dirname", "readlink", "df", "sleep", "timeout"):
        (stage.bin / name).symlink_to(shutil.which(name) or "")
    stage.without("nvidia-smi")
    done = stage.run("nsys_wrapper.sh", "--run-dir", "r", "sh", "-c", "exit 5", PATH=str(stage.bin))
    assert done.returncode == 5 and "not found" not in done.stderr
    assert stage.sidecar("r/nsys/rank0000.run.json")["options"]["trace"] == "cuda,nvtx,osrt,cudnn,cublas"


@pytest.mark.parametrize("tool", ["plain", "nsys", "ncu"])
def test_two_processes_that_both_take_themselves_for_rank_0_are_an_error(stage: Stage, tool: str) -> None:
    """What an unknown launcher does: none of its ranks has a number. One of them records, and the others say why not."""
    ready = 'touch "ready$$"; while [ ! -e go ]; do sleep 0.05; done'
    wrapper = str(WRAPPERS / f"{tool}_wrapper.sh")
    first = stage.start(wrapper, "--run-dir", "r", "sh", "-c", ready)
    end = time.monotonic() + 30
    while not list(stage.path.glob("ready*")) and time.monotonic() < end:
        time.sleep(0.02)
    sidecar = stage.path / f"r/{tool}/rank0000.run.json"
    hidden = sidecar.rename(stage.path / "hidden")   # as the second would have seen the folder a moment earlier
    stage.stub("date", f'#!/bin/sh\n[ "$1" != +%s%N ] || [ ! -e "{hidden}" ] || mv "{hidden}" "{sidecar}"\nexec /bin/date "$@"\n')
    second = stage.run(f"{tool}_wrapper.sh", "--run-dir", "r", "sh", "-c", "touch started")
    (stage.path / "go").touch()
    first.communicate(timeout=30)
    assert first.returncode == 0 and stage.sidecar(f"r/{tool}/rank0000.run.json")["exit_code"] == 0
    assert second.returncode == 1 and "another process records as rank 0" in second.stderr
    assert not (stage.path / "started").exists() and leftovers(stage) == []
