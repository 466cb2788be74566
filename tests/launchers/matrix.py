"""One start of a wrapper under a real launcher: what is asked of it, and what it came to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.places import ROOT

WRAPPERS = ROOT / "wrappers"
APPLICATION = Path(__file__).with_name("application.py")
MARK = "NSIGHTLENS_TEST_CASE"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
_REPORTS = {"plain": (), "nsys": (".nsys-rep",), "ncu": (".ncu-rep",)}   # what cannot be made afterwards
LEFT_S = 5.0
"""How long a process of the job may be there after its launcher has ended."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """How ranks are started. rank_variable: where a rank finds its number. environment: what its commands need.

    patient: signals after which it waits for its ranks, without end.
    """

    name: str
    words: Callable[[int], list[str]]
    rank_variable: str
    environment: dict[str, str] = field(default_factory=dict)
    ranks: int = 2
    patient: tuple[signal.Signals, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One start. how: what the application does (application.py). to_all: the signal goes to every process, as scancel has it.

    begun: the signal comes once each rank has left a file of this name. script: the launcher starts a script around the wrapper.
    """

    launcher: Launcher
    tool: str
    how: str = "0"
    number: signal.Signals | None = None
    to_all: bool = False
    place: tuple[str, ...] = ("--run-dir", "runs/base")
    variables: tuple[tuple[str, str], ...] = ()
    run: str | None = "base"
    begun: str = "ready"
    script: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of a case.

    codes: of each rank the application's own exit code and the sidecar's; wrong: what must not be; gone_s: how long after its
    launcher the last process of the job ended.
    """

    codes: list[tuple[int | None, int | None]] = field(default_factory=list)
    whole: int = 0
    run: str | None = None
    wrong: list[str] = field(default_factory=list)
    launcher_code: int | None = None
    gone_s: float | None = None

    def __str__(self) -> str:
        if self.wrong:
            return "**" + "; ".join(self.wrong) + "**"
        own = sum(ours is not None and ours == theirs for ours, theirs in self.codes)
        if own == self.whole == len(self.codes):
            return "right"
        return "killed" if not own else f"{own} of {len(self.codes)} codes, {self.whole} captures"


def play(case: Case, folder: Path, tools: Path) -> Outcome:
    """Run a case in an empty folder, with the tools' stand-ins before all else on PATH, and return what came of it."""
    folder.mkdir(parents=True)
    mark = uuid.uuid4().hex
    scratch = folder / "tmp"
    scratch.mkdir()
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8", "TMPDIR": str(scratch),
                   MARK: mark, **case.launcher.environment, **dict(case.variables)}
    script = ["bash", "-c", '"$@"; exit $?', "script"] if case.script else []
    words = [*case.launcher.words(case.launcher.ranks), *script, str(WRAPPERS / f"{case.tool}_wrapper.sh"), *case.place,
             *(["--ranks", "all"] if case.tool == "ncu" else []), sys.executable, "-S", str(APPLICATION), str(folder),
             case.launcher.rank_variable, case.how, str(case.launcher.ranks)]
    with (folder / "log").open("wb") as log:
        job = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               preexec_fn=_as_a_shell_would)
    outcome = Outcome()
    try:
        _until(lambda: _are_ready(case, folder) or job.poll() is not None, 90)
        if not _are_ready(case, folder):
            outcome.wrong.append("a rank never started")
        if case.number is not None:
            _send(case, job.pid, mark)
        try:
            outcome.launcher_code = job.wait(timeout=90)
        except subprocess.TimeoutExpired:
            outcome.wrong.append("the launcher never ended")
        ended = time.monotonic()
        if _until(lambda: not marked(mark), LEFT_S):
            outcome.gone_s = time.monotonic() - ended
        elif job.poll() is not None:
            outcome.wrong.append(f"{len(marked(mark))} processes left")
    finally:
        for pid in [*marked(mark), *([job.pid] if job.poll() is None else [])]:
            _kill(pid, signal.SIGKILL)
        job.wait()
    _judge(case, folder, outcome)
    return outcome


def _are_ready(case: Case, folder: Path) -> bool:
    return all((folder / f"{case.begun}{rank}").exists() for rank in range(case.launcher.ranks))


def _as_a_shell_would() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):   # `nohup make test-launchers &` would pass them on as ignored
        signal.signal(number, signal.SIG_DFL)


def _send(case: Case, pid: int, mark: str) -> None:
    assert case.number is not None
    for one in marked(mark, case.launcher.rank_variable) if case.to_all else [pid]:
        _kill(one, case.number)
    if case.launcher.name == "Slurm" and case.number == signal.SIGINT and not case.to_all:
        time.sleep(0.3)   # srun wants a second one within a second
        _kill(pid, case.number)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:   # it has ended
        return


def marked(mark: str, variable: str = "") -> list[int]:
    """Return the processes that still run of those that inherited the mark; variable: and that are below a rank, which has it."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            has = Path("/proc", entry, "environ").read_bytes().split(b"\0")
            if wanted in has and (not variable or any(one.startswith(f"{variable}=".encode()) for one in has)):
                found.append(int(entry))
        except OSError:   # it has ended, or is a zombie
            continue
    return found


def _until(reached: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _judge(case: Case, folder: Path, outcome: Outcome) -> None:
    sidecars = sorted(folder.glob(f"**/{case.tool}/rank*.run.json"))
    if len(sidecars) != case.launcher.ranks:
        outcome.wrong.append(f"{len(sidecars)} sidecars for {case.launcher.ranks} ranks")
    for rank, sidecar in enumerate(sidecars):
        said = json.loads(sidecar.read_bytes())
        own = folder / f"code{rank}"
        code = int(own.read_text() or -1) if own.exists() else None
        outcome.codes.append((code, said["exit_code"]))
        outcome.run = said["run"]
        if (said["rank"], said["world_size"]) != (rank, case.launcher.ranks):
            outcome.wrong.append(f"rank {said['rank']} of {said['world_size']} for {rank} of {case.launcher.ranks}")
        if code is not None and said["exit_code"] not in (None, code):
            outcome.wrong.append(f"exit code {said['exit_code']} for {code}")
        if case.run is not None and said["run"] != case.run:
            outcome.wrong.append(f"run {said['run']}")
        stem = str(sidecar).removesuffix(".run.json")
        outcome.whole += all(Path(stem + ending).is_file() for ending in _REPORTS[case.tool])
    if case.number is None and any(ours != theirs for ours, theirs in outcome.codes):
        outcome.wrong.append("an exit code is missing")
