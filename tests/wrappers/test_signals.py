"""SIGTERM and SIGINT reach the application, and still leave a report."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

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
