"""--self-check: one line per rank, what failed and what helps; and what the tools are given is what they know."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nsightlens.doctor.deep import record_one_kernel
from nsightlens.doctor.fitness import BAD, GOOD, NOTE
from tests.launchers import stand_ins
from tests.places import ROOT
from tests.wrappers.stage import WRAPPERS, Stage, leftovers
from tests.wrappers.test_signals import assert_none_is_left

pytestmark = pytest.mark.long

EXPORT = ROOT / "fixtures/simulated_resnet18_ddp/nsys/rank0.sqlite"
ONE_KERNEL = WRAPPERS / "workloads/one_kernel.py"
CHECK = "--self-check=100"   # the machine may be busy
RANKS = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"} for rank in (0, 1)]


def with_gpu(stage: Stage) -> None:
    """Make one_kernel.py end well, as it does where there is a GPU."""
    stage.stub("python3", f'#!/bin/sh\ncase $1 in *one_kernel.py) exit 0 ;; esac\nexec {sys.executable} "$@"\n')


def with_nsightlens(stage: Stage) -> None:
    stage.stub("nsightlens", f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m nsightlens "$@"\n')
    real = (stage.bin / "nsys").read_text()
    stage.stub("nsys", real.replace('echo sqlite >"$out"', f'cp {EXPORT} "$out"')
               .replace('echo report >', "echo 'NVIDIA Tegra Profiler Report ' >"))


@pytest.mark.parametrize("rank", RANKS)
def test_a_rank_that_can_record_says_so_and_leaves_nothing(stage: Stage, rank: dict[str, str]) -> None:
    with_gpu(stage)
    with_nsightlens(stage)
    done = stage.run("nsys_wrapper.sh", CHECK, "--run-dir", "r", XDG_CACHE_HOME=str(stage.log), **rank)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"rank {rank['RANK']} on ") and "nsys: ok: recorded, exported and read back" in done.stdout
    assert stage.files() == [] and leftovers(stage) == []


def test_without_nsightlens_it_says_that_nothing_was_read_back(stage: Stage) -> None:
    with_gpu(stage)
    stage.without("nsightlens")
    done = stage.run("ncu_wrapper.sh", CHECK, "--run-dir", "r")
    assert done.returncode == 0 and "ncu: ok: recorded and exported (not read back" in done.stdout, done.stdout


@pytest.mark.parametrize(("tool", "variables", "words"), [
    ("ncu", {"STUB_NCU": "permission"}, ["ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0"]),
    ("ncu", {"STUB_NCU": "dcgm"}, ["DCGM", "dcgmi profile --pause", "--pause-dcgm"]),
    ("nsys", {"STUB_NSYS_NO_REPORT": "1"}, ["nsys left no report", "leave out --self-check"]),
    ("nsys", {"STUB_NSYS_EXPORT": "1"}, ["could not export"]),
    ("nsys", {"TMPDIR": "/nowhere"}, ["cannot create /nowhere", "export TMPDIR to a writable folder"]),
    ("nsys", {"STUB_NSYS_HELP": "--output= --trace= --stats= "}, ["has no option --force-overwrite", "leave that option out"]),
])
def test_what_fails_is_said_with_its_remedy(stage: Stage, tool: str, variables: dict[str, str], words: list[str]) -> None:
    with_gpu(stage)
    real = (stage.bin / "ncu").read_text()
    stage.stub("ncu", real.replace("  nothing)", '  dcgm) echo "==ERROR== Profiling failed: a driver resource was unavailable" '
                                   '>"$log" ;;\n  nothing)'))
    done = stage.run(f"{tool}_wrapper.sh", CHECK, "--run-dir", "r", **variables)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1, done.stdout + done.stderr
    assert "FAILED" in done.stdout and all(word in done.stdout for word in words), done.stdout
    assert stage.files() == [] and leftovers(stage) == []


def test_what_the_tool_refuses_is_said_in_its_own_words(stage: Stage) -> None:
    with_gpu(stage)
    stand_ins.install(stage.bin)
    done = stage.run("nsys_wrapper.sh", CHECK, "--run-dir", "r", "--nsys-option=--bogus=1")
    assert done.returncode == 1
    assert "FAILED: nsys: unrecognised option '--bogus'. What to do: leave that option out" in done.stdout


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_no_gpu_is_said(stage: Stage) -> None:
    done = stage.run("nsys_wrapper.sh", CHECK, "--run-dir", "r")
    assert done.returncode == 1 and "no CUDA driver here" in done.stdout and "ask for a GPU" in done.stdout, done.stdout


def test_no_room_is_said(stage: Stage) -> None:
    with_gpu(stage)
    stage.stub("df", "#!/bin/sh\necho Filesystem\necho x 1 1 100 1 /\n")
    done = stage.run("nsys_wrapper.sh", CHECK, "--run-dir", "r")
    assert done.returncode == 1 and "only 100 KiB are free" in done.stdout and "free space" in done.stdout


HANGS = 'trap "" TERM; sleep 60 & wait; exit;'


@pytest.mark.parametrize(("tool", "where", "seconds", "says"), [
    ("nsys", '"profile --help")', 1, "nothing had begun after 1 s: nsys --help, nsys --version or nvidia-smi hangs"),
    ("nsys", "STUB_SLOW_START", 9, "nsys had not ended after 9 s"),
    ("nsys", "export ]]; then", 9, "nsys had not exported its report after 9 s"),
    ("ncu", "--import ]]; then", 9, "ncu had not exported its report after 9 s"),
])
def test_what_hangs_is_ended_and_said(stage: Stage, tool: str, where: str, seconds: int, says: str) -> None:
    with_gpu(stage)
    stage.without("nsightlens")
    lines = (stage.bin / tool).read_text().splitlines(keepends=True)
    hung = [line.replace(where, f"{where} {HANGS}") if where != "STUB_SLOW_START" else f"{HANGS}\n" if where in line else line
            for line in lines]
    assert hung != lines
    stage.stub(tool, "".join(hung))
    done = stage.run(f"{tool}_wrapper.sh", f"--self-check={seconds}", "--run-dir", "r")
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1, done.stdout + done.stderr
    assert f"{tool}: FAILED: {says}. What to do: " in done.stdout and "--self-check=60" in done.stdout
    assert stage.files() == [] and leftovers(stage) == []
    assert_none_is_left(stage)


def test_a_reading_back_that_hangs_does_not_make_the_recording_bad(stage: Stage) -> None:
    with_gpu(stage)
    stage.stub("nsightlens", f"#!/bin/bash\n{HANGS}\n")
    done = stage.run("nsys_wrapper.sh", "--self-check=9", "--run-dir", "r")
    assert done.returncode == 0 and "nsys: ok: recorded and exported (not read back: the 9 s were over)" in done.stdout


@pytest.mark.parametrize("seconds", ["0", "soon", "", "1.5"])
def test_how_long_a_check_may_take_is_a_number_of_seconds(stage: Stage, seconds: str) -> None:
    done = stage.run("nsys_wrapper.sh", f"--self-check={seconds}")
    assert done.returncode == 2 and "give seconds, from 1 to 9999" in done.stderr


FAKE = """
#include <string.h>
static unsigned memory[256]; static int launched;
int cuInit(unsigned f) { return f; }
int cuGetErrorString(int c, const char **s) { *s = "out of order"; return 0; }
int cuDeviceGet(int *d, int n) { *d = 7; return n; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = memory; return d != 7; }
int cuCtxSetCurrent(void *c) { return c != memory; }
int cuModuleLoadData(void **m, const char *t) { *m = memory; return strstr(t, ".entry self_check") == 0; }
int cuModuleGetFunction(void **f, void *m, const char *n) { *f = memory; return strcmp(n, "self_check"); }
int cuMemAlloc_v2(unsigned long long *p, unsigned long n) { *p = (unsigned long long)memory; return n != sizeof memory; }
int cuLaunchKernel(void *f, int gx, int gy, int gz, int bx, int by, int bz, int s, void *st, void **a, void *e) {
  if (gx * gy * gz != 1 || by * bz != 1 || f != memory) return 1;
  unsigned *out = *(unsigned **)a[0];
  for (int i = 0; i < bx; i++) out[i] = i + ADD;
  launched = 1; return 0; }
int cuCtxSynchronize(void) { return !launched; }
int cuMemcpyDtoH_v2(void *to, unsigned long long from, unsigned long n) { memcpy(to, (void *)from, n); return 0; }
int cuMemFree_v2(unsigned long long p) { return p != (unsigned long long)memory; }
int cuDevicePrimaryCtxRelease_v2(int d) { return d != 7; }
"""


@pytest.mark.parametrize(("add", "code"), [(1, 0), (2, 4)])
def test_the_kernel_through_a_driver_of_ours(tmp_path: Path, add: int, code: int) -> None:
    """A library with the driver's functions: it checks what it is given, and does what the kernel would."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "fake.c").write_text(FAKE)
    subprocess.run([compiler, "-shared", "-fPIC", f"-DADD={add}", "-o", str(tmp_path / "libcuda.so.1"), str(tmp_path / "fake.c")],
                   check=True)
    done = subprocess.run([sys.executable, str(ONE_KERNEL)], env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, check=False,
                          capture_output=True, text=True)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("tool", ["nsys", "ncu"])
def test_a_percent_sign_in_the_run_directory_is_no_macro(stage: Stage, tool: str) -> None:
    done = stage.run(f"{tool}_wrapper.sh", "--run-dir", "100%p", "true")
    assert done.returncode == 0, done.stderr
    call = stage.calls("nsys.profile" if tool == "nsys" else "ncu.--set")[0]
    assert not any("%" in word for word in call)
    assert (stage.path / f"100%p/{tool}/rank0000.{'nsys' if tool == 'nsys' else 'ncu'}-rep").exists() and leftovers(stage) == []
    refused = stage.run(f"{tool}_wrapper.sh", "--run-dir", "50%h", "true", TMPDIR=str(stage.path / "log/%h"))
    assert refused.returncode == 1


def test_an_option_of_the_users_that_the_help_lacks_is_warned_of(stage: Stage) -> None:
    done = stage.run("ncu_wrapper.sh", "--run-dir", "r", "--ncu-option=--nvtx", "true", STUB_NCU_HELP="""
        --set --kernel-name-base --kernel-name --launch-skip --launch-count --clock-control --cache-control --replay-mode
        --target-processes --export --force-overwrite --log-file --import --csv --print-units --page --print-details""")
    assert done.returncode == 0 and "warning: --nvtx is not in the help of this ncu" in done.stderr


@pytest.mark.parametrize(("tool", "variables", "says"), [
    ("nsys", {"STUB_EXPORT_HELP": "--output= --force-overwrite="}, "this nsys export has no option --type"),
    ("ncu", {"STUB_NCU_HELP": """
        --set --kernel-name-base --kernel-name --launch-skip --launch-count --clock-control --cache-control --replay-mode
        --target-processes --export --force-overwrite --log-file --import --csv --print-units --print-details"""},
     "this ncu has no option --page"),
])
def test_what_is_passed_after_the_recording_is_checked_before_it(
        stage: Stage, tool: str, variables: dict[str, str], says: str) -> None:
    done = stage.run(f"{tool}_wrapper.sh", "--run-dir", "r", "true", **variables)
    assert done.returncode == 2 and says in done.stderr
    assert stage.calls("nsys.profile") == stage.calls("ncu.--set") == []


DCGMI = '#!/bin/sh\necho "$2" >>"$STUB_LOG/dcgm"\n'


def paused(stage: Stage) -> list[str]:
    log = stage.log / "dcgm"
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize("command", [["true"], ["sh", "-c", "exit 3"], ["sh", "-c", "kill -KILL $$"]])
def test_dcgm_is_paused_and_always_resumed(stage: Stage, command: list[str]) -> None:
    stage.stub("dcgmi", DCGMI)
    stage.run("ncu_wrapper.sh", "--pause-dcgm", "--run-dir", "r", *command)
    assert paused(stage) == ["--pause", "--resume"]
    stage.run("ncu_wrapper.sh", "--run-dir", "s", "true")
    assert len(paused(stage)) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_dcgm_is_resumed_where_the_wrapper_is_ended(stage: Stage, number: signal.Signals) -> None:
    stage.stub("dcgmi", DCGMI)
    process = stage.start(str(WRAPPERS / "ncu_wrapper.sh"), "--pause-dcgm", "--run-dir", "r", "sh", "-c", "touch ready; sleep 60")
    end = time.monotonic() + 30
    while not (stage.path / "ready").exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(number)
    process.wait(timeout=30)
    while len(paused(stage)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert paused(stage) == ["--pause", "--resume"]
    process.communicate(timeout=30)


def test_doctor_records_with_the_wrappers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stage.environment(STUB_NCU="permission").items():
        monkeypatch.setenv(name, value)
    with_gpu(stage)
    monkeypatch.setattr(sys, "executable", str(stage.bin / "python3"))
    with_nsightlens(stage)
    nsys, ncu = record_one_kernel(WRAPPERS)
    assert (nsys.state, ncu.state) == (GOOD, BAD), (nsys, ncu)
    assert "read back" in nsys.found and "ERR_NVGPUCTRPERM" in ncu.found and "administrator" in ncu.fix
    stage.without("nsys", "ncu")
    assert [found.state for found in record_one_kernel(WRAPPERS)] == [NOTE, NOTE]
