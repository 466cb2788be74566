"""Run a command as a whole process tree -> its wall time, CPU time, peak memory and output."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

RSS_EVERY_S = 0.02
PSS_EVERY_S = 0.1
PSS_SHARE = 0.03
"""PSS walks page tables: it may take at most this share of the time, so the more memory, the rarer the look."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


class CommandError(Exception):
    """A measured command failed; the message ends with what it said."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command. Peaks are sums over all its processes at one moment; None where /proc does not tell."""

    wall_s: float
    cpu_s: float
    peak_rss_bytes: int | None
    peak_pss_bytes: int | None
    output: str


@dataclass(slots=True)
class Candidate:
    """A command to measure: `prepare` runs untimed before each run, `check` raises where the work was not done right."""

    name: str
    command: Sequence[str]
    prepare: Callable[[], None] = lambda: None
    check: Callable[[Run], None] = lambda run: None
    runs: list[Run] = field(default_factory=list)

    @property
    def wall_s(self) -> float:
        """Return the median wall time."""
        return statistics.median(run.wall_s for run in self.runs)

    @property
    def cpu_s(self) -> float:
        """Return the median CPU time of all its processes."""
        return statistics.median(run.cpu_s for run in self.runs)

    @property
    def peak_rss_bytes(self) -> int | None:
        """Return the highest resident set of any run, summed over processes: pages they share count in each."""
        return max((run.peak_rss_bytes for run in self.runs if run.peak_rss_bytes), default=None)

    @property
    def peak_pss_bytes(self) -> int | None:
        """Return the highest proportional set of any run: shared pages count once. Sampled less often than the other."""
        return max((run.peak_pss_bytes for run in self.runs if run.peak_pss_bytes), default=None)


def measure(candidates: Sequence[Candidate], rounds: int, *, warm: bool = False) -> None:
    """Run every candidate once per round, in turn, so that a noisy minute hits all; `warm`: and once before, not kept."""
    for number in range(rounds + warm):
        for candidate in candidates:
            candidate.prepare()
            run = run_once(candidate.command)
            candidate.check(run)
            if number >= warm:
                candidate.runs.append(run)


def run_once(command: Sequence[str]) -> Run:
    """Run `command` to its end in a session of its own. Raises CommandError where it fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
        sampler = _Sampler(process.pid)
        sampler.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            sampler.stop()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode:
            raise CommandError(f"{' '.join(command)} ended with {process.returncode}: {_text(err)[-2000:]}")
        return Run(wall, usage.ru_utime + usage.ru_stime, sampler.rss or None, sampler.pss or None, _text(out))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


class _Sampler(threading.Thread):
    """Watches the memory of all processes of a session, orphans included."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self.rss = 0
        self.pss = 0
        self._session = session
        self._belongs: dict[str, bool] = {}
        self._over = threading.Event()
        self._next_pss = 0.0

    def stop(self) -> None:
        """End the watch."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Sample until stopped."""
        while not self._over.wait(RSS_EVERY_S):
            members = self._members()
            self.rss = max(self.rss, sum(_rss(pid) for pid in members))
            began = time.perf_counter()
            if began >= self._next_pss:
                self.pss = max(self.pss, sum(_pss(pid) for pid in members))
                cost = time.perf_counter() - began
                self._next_pss = began + max(PSS_EVERY_S, cost / PSS_SHARE)

    def _members(self) -> list[str]:
        try:
            alive = {name for name in os.listdir(_PROC) if name.isdigit()}
        except OSError:
            return []
        self._belongs = {pid: known for pid, known in self._belongs.items() if pid in alive}
        for pid in alive - self._belongs.keys():
            self._belongs[pid] = _session_of(pid) == self._session
        return [pid for pid, belongs in self._belongs.items() if belongs]


def _read(pid: str, name: str) -> str:
    """Return a file of a process; empty when the process has gone."""
    try:
        return (_PROC / pid / name).read_text(errors="replace")
    except OSError:
        return ""


def _session_of(pid: str) -> int | None:
    after_name = _read(pid, "stat").rpartition(")")[2].split()
    return int(after_name[3]) if len(after_name) > 3 else None


def _rss(pid: str) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _pss(pid: str) -> int:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
