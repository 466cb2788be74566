"""Exit codes, many times over: how often the sidecar has the application's own, per launcher, signal and shell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.launchers.matrix import SIGNALS, Case, Launcher, Outcome, play

_RANKS = 8
_OPENMPI = ["--mca", "orte_abort_on_non_zero_status", "0", "--mca", "odls_base_sigkill_timeout", "60"]
"""Open MPI kills the other ranks once one has ended with a code; here each has its own to keep."""


def prove(
    launchers: Sequence[Launcher], shells: Sequence[str], times: int, folder: Path, tools: Path, jobs: int,
) -> int:
    """Print how many of `times` ranks kept their exit code where a signal reached every process; return how many did not."""
    print("| launcher | shell | " + " | ".join(number.name for number in SIGNALS) + " |")
    print("|---" * (2 + len(SIGNALS)) + "|", flush=True)
    wrong = 0
    for launcher in launchers:
        for shell in shells:
            cells = []
            for number in SIGNALS:
                outcomes = _many(launcher, shell, number, times, folder / f"{launcher.name}-{shells.index(shell)}-{number.name}",
                                 tools, jobs)
                codes = [code for outcome in outcomes for code in outcome.codes]
                right = sum(own is not None and own == told for own, told in codes)
                others = [what for outcome in outcomes for what in outcome.wrong]
                wrong += len(codes) - right + len(others)
                cells.append(f"{right} of {len(codes)}" + (f" **{'; '.join(sorted(set(others)))}**" if others else ""))
            print(f"| {launcher.name} | {_version(shell)} | {' | '.join(cells)} |", flush=True)
    return wrong


def _many(
    launcher: Launcher, shell: str, number: signal.Signals, times: int, folder: Path, tools: Path, jobs: int,
) -> list[Outcome]:
    """Play one case until at least `times` ranks have been signalled."""
    ranks = _RANKS if launcher.rank_variable else 1
    with_shell = folder / "bin"
    with_shell.mkdir(parents=True)
    (with_shell / "bash").symlink_to(str(shutil.which(shell)))
    many = replace(launcher, ranks=ranks, words=_keeping_all(launcher))
    case = Case(many, "plain", "wait", number, to_all=True)
    path = os.pathsep.join(map(str, (with_shell, tools)))
    with ThreadPoolExecutor(jobs) as pool:
        starts = range(-(-times // ranks))
        return list(pool.map(lambda start: play(case, folder / str(start), Path(path)), starts))


def _keeping_all(launcher: Launcher) -> Callable[[int], list[str]]:
    if launcher.name != "Open MPI":
        return launcher.words
    return lambda n: [launcher.words(n)[0], *_OPENMPI, *launcher.words(n)[1:]]


def _version(shell: str) -> str:
    asked = subprocess.run([shell, "-c", "echo $BASH_VERSION"], capture_output=True, text=True, check=False)
    return f"bash {asked.stdout.strip()}"
