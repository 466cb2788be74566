"""SIGTERM and SIGINT reach the application, and still leave a report."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.wrappers.launchers import launcher
from tests.wrappers.stage import WRAPPERS, Stage, leftovers

APP = """
import pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path("got").write_text(str(number))
    sys.exit(40 + number)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, end)
pathlib.Path("ready").write_text("")
time.sleep(30)
"""


def started(stage: Stage, *words: str, **env: str) -> subprocess.Popen[str]:
    return stage.start(str(WRAPPERS / words[0]), *words[1:], "--run-dir", "r", "python", "-c", APP, **env)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("tool", ["nsys", "ncu", "plain"])
def test_a_signal_reaches_the_application_and_leaves_a_report(stage: Stage, tool: str, number: signal.Signals) -> None:
    process = started(stage, f"{tool}_wrapper.sh")
    wait_for(stage.path / "ready")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 40 + number
    assert (stage.path / "got").read_text() == str(int(number))
    assert stage.sidecar(f"r/{tool}/rank0000.run.json")["exit_code"] == 40 + number
    if tool != "plain":
        assert stage.sidecar(f"r/{tool}/rank0000.run.json")["report"]
        assert (stage.path / f"r/{tool}/rank0000.{'sqlite' if tool == 'nsys' else 'raw.csv'}").exists()
    assert leftovers(stage) == []


def test_a_signal_while_the_profiler_starts_is_not_lost(stage: Stage) -> None:
    process = started(stage, "nsys_wrapper.sh", STUB_SLOW_START="1")
    end = time.monotonic() + 30
    while not stage.calls("nsys.profile") and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode in (40 + signal.SIGTERM, 128 + signal.SIGTERM)  # Python may not have had its handler yet
    assert stage.sidecar("r/nsys/rank0000.run.json")["report"] == "rank0000.nsys-rep"


def test_the_sidecar_is_there_while_it_runs(stage: Stage) -> None:
    """A job that is killed outright still says which rank its half report is of."""
    process = started(stage, "nsys_wrapper.sh")
    wait_for(stage.path / "ready")
    sidecar = stage.sidecar("r/nsys/rank0000.run.json")
    assert (sidecar["rank"], sidecar["exit_code"], sidecar["ended_epoch_ns"]) == (0, None, None)
    process.terminate()
    process.communicate(timeout=30)


def test_capture_all_stops_at_a_signal(stage: Stage) -> None:
    process = stage.start(str(WRAPPERS / "capture_all.sh"), "--run-dir", "r", "--tools", "plain,nsys", "--", "python", "-c", APP)
    wait_for(stage.path / "ready")
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 40 + signal.SIGTERM
    assert stage.calls("nsys.profile") == [] and "stopped by SIGTERM" in said


TWICE = """
import pathlib, signal, sys, time
got = 0
def count(number, frame):
    global got
    got += 1
    pathlib.Path(f"got{got}").touch()
    if got == 2:
        sys.exit(9)
signal.signal(signal.SIGINT, count)
pathlib.Path("ready").touch()
time.sleep(30)
time.sleep(30)
"""


@pytest.mark.parametrize("tool", ["nsys", "ncu", "plain"])
def test_a_second_signal_reaches_the_application_too(stage: Stage, tool: str) -> None:
    process = stage.start(str(WRAPPERS / f"{tool}_wrapper.sh"), "--run-dir", "r", "python", "-c", TWICE)
    for name in ("ready", "got1"):
        wait_for(stage.path / name)
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=40)
    assert process.returncode == 9 and (stage.path / "got2").exists()
    sidecar = stage.sidecar(f"r/{tool}/rank0000.run.json")
    assert sidecar["exit_code"] == 9 and bool(sidecar["report"]) == (tool != "plain")
    assert leftovers(stage) == []


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1]
ONCE = """
import pathlib, signal, sys, time
def end(number, frame):
    signal.signal(number, signal.SIG_IGN)
    sys.exit(40 + number)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, end)
pathlib.Path("ready").touch()
time.sleep(30)
"""
SURVIVES = "\ntrap : TERM INT HUP USR1\nlog()"


def descendants(pid: int) -> list[int]:
    """Return a process and all below it."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(entry)] = int(Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:   # it has ended
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def to_all(numbers: list[int], signal_number: int) -> None:
    for pid in numbers:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            continue


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("profiler", ["survives", "dies"])
def test_the_exit_code_is_right_where_a_signal_reaches_every_process(stage: Stage, number: signal.Signals, profiler: str) -> None:
    """As scancel does. The shell's own wait is cut short then, and the next one may give -1."""
    if profiler == "survives":
        stage.stub("nsys", (stage.bin / "nsys").read_text().replace("\nlog()", SURVIVES))
    for _ in range(3):
        process = stage.start(str(WRAPPERS / "nsys_wrapper.sh"), "--run-dir", "r", "--overwrite", "python", "-S", "-c", ONCE)
        wait_for(stage.path / "ready")
        to_all(descendants(process.pid), number)
        process.communicate(timeout=30)
        sidecar = stage.sidecar("r/nsys/rank0000.run.json")
        assert (process.returncode, sidecar["exit_code"]) == (40 + number, 40 + number)
        assert sidecar["report"] or profiler == "dies"
        (stage.path / "ready").unlink()


STUBBORN = """
import os, pathlib, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path("ready" + os.environ.get("RANK", os.environ.get("PMIX_RANK", os.environ.get("SLURM_PROCID", "0")))).touch()
time.sleep(60)
"""


def of_this_stage(stage: Stage) -> list[int]:
    """Return the processes that carry this stage's variable."""
    mark, found = f"STUB_LOG={stage.log}".encode(), []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:   # it has ended
            continue
    return found


def assert_none_is_left(stage: Stage) -> None:
    end = time.monotonic() + 15   # 3 s where the machine has time
    while (left := of_this_stage(stage)) and time.monotonic() < end:
        time.sleep(0.05)
    to_all(left, signal.SIGKILL)
    assert left == []


@pytest.mark.long
@pytest.mark.parametrize("tool", ["nsys", "ncu", "plain"])
def test_nothing_outlives_a_wrapper_that_is_killed(stage: Stage, tool: str) -> None:
    process = stage.start(str(WRAPPERS / f"{tool}_wrapper.sh"), "--run-dir", "r", "python", "-S", "-c", STUBBORN)
    wait_for(stage.path / "ready0")
    process.kill()
    assert_none_is_left(stage)
    process.communicate(timeout=30)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", ["openmpi", "torchrun", "srun"])
def test_nothing_outlives_its_launcher(stage: Stage, name: str, number: signal.Signals) -> None:
    words = launcher(name, 2)
    process = stage.start(*words, str(WRAPPERS / "nsys_wrapper.sh"), "--run-dir", "r", "python", "-S", "-c", STUBBORN)
    for rank in (0, 1):
        wait_for(stage.path / f"ready{rank}")
    process.send_signal(number)
    process.communicate(timeout=90)   # torchrun waits 30 s before it kills
    assert_none_is_left(stage)


SCRIPT = ["bash", "-c", '"$@"; exit $?', "script"]


@pytest.mark.long
@pytest.mark.parametrize("script", [[], SCRIPT], ids=["", "in a script"])
@pytest.mark.parametrize("exporting", [False, True])
def test_nothing_outlives_a_launcher_that_is_killed(stage: Stage, script: list[str], exporting: bool) -> None:
    """Neither a stubborn application nor an export; a script between launcher and wrapper makes no difference."""
    stage.stub("nsys", (stage.bin / "nsys").read_text().replace("echo sqlite", "touch exporting; sleep 60; echo sqlite"))
    app = ["true"] if exporting else ["python", "-S", "-c", STUBBORN]
    process = stage.start("mpiexec", "-n", "1", *script, str(WRAPPERS / "nsys_wrapper.sh"), "--run-dir", "r", *app)
    wait_for(stage.path / ("exporting" if exporting else "ready0"))
    process.kill()
    assert_none_is_left(stage)
    process.communicate(timeout=30)
    assert stage.sidecar("r/nsys/rank0000.run.json")["exit_code"] == (0 if exporting else 137)


@pytest.mark.long
def test_a_profiler_that_outlives_its_application_does_not_hide_that_it_was_killed(stage: Stage) -> None:
    """The watcher ends one process after another; a busy machine leaves time between them, in which nsys ends with 0."""
    slow = stage.path / "wrappers"
    shutil.copytree(WRAPPERS, slow)
    text = (slow / "supervise.sh").read_text()
    (slow / "supervise.sh").write_text(text.replace('kill -KILL -- "$one";', 'kill -KILL -- "$one"; sleep 0.3;'))
    assert (slow / "supervise.sh").read_text() != text
    process = stage.start("mpiexec", "-n", "1", str(slow / "nsys_wrapper.sh"), "--run-dir", "r", "python", "-S", "-c", STUBBORN)
    wait_for(stage.path / "ready0")
    process.kill()
    assert_none_is_left(stage)
    process.communicate(timeout=30)
    assert stage.sidecar("r/nsys/rank0000.run.json")["exit_code"] == 137


@pytest.mark.long
def test_these_tests_pass_where_interrupts_are_ignored() -> None:
    """`nohup make test &`: a shell cannot trap what it inherited as ignored."""
    test = f"{Path(__file__)}::test_a_signal_reaches_the_application_and_leaves_a_report"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "plain", test]
    done = subprocess.run(["/bin/sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *words], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout
