"""The wrappers under real launchers: `python -m tests.launchers` plays the matrix and prints it as Markdown.

Installs nothing: what is not on PATH is left out, and said. Exit code 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.launchers import repeat, slurm, stand_ins
from tests.launchers.matrix import SIGNALS, Case, Launcher, Outcome, play
from tests.launchers.two_runs import two_runs

TOOLS = ("plain", "nsys", "ncu")
_HEAD = ("launcher", "tool", "signal to", "none, exit 0", "none, exit 7", *(s.name for s in SIGNALS))
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
_PLACES = {
    "`--run-dir`": ("--run-dir", "runs/base"), "`NSIGHTLENS_RUN_DIR`": (),
    "`--run-id`": ("--run-dir", "runs/x", "--run-id", "base"),
    "neither": (),
}


def main() -> int:
    """Play what is asked for and print its tables; return 1 where anything is wrong."""
    asked = _arguments()
    with ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nsl", ignore_cleanup_errors=True)))
        tools = folder / "bin"
        tools.mkdir(parents=True)
        stand_ins.install(tools)
        launchers, left_out = _launchers(asked.launcher, stack, folder)
        if asked.repeat:
            wrong = repeat.prove(launchers, asked.shell or ["bash"], asked.repeat, folder, tools, asked.jobs)
        else:
            print(_where(launchers), end="\n\n")
            wrong = _matrix(launchers, folder, tools, asked.jobs)
            wrong += _left_behind(launchers, folder, tools, asked.jobs)
            wrong += _directories(launchers, folder, tools, asked.jobs)
            wrong += _two_runs(launchers, folder, tools)
    for line in left_out:
        print(f"\nLeft out: {line}")
    return min(wrong, 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.launchers", description=__doc__)
    parser.add_argument("--launcher", action="append", help="only this one; may be repeated")
    parser.add_argument("--repeat", type=int, default=0, metavar="N", help="instead: N ranks per signal and shell")
    parser.add_argument("--shell", action="append", help="with --repeat: a bash to run the wrappers; may be repeated [bash]")
    parser.add_argument("--jobs", type=int, default=4, help="cases at a time [4]")
    parser.add_argument("--keep", type=lambda text: Path(text).absolute(), metavar="DIR", help="where the cases write")
    return parser.parse_args()


def _launchers(wanted: Sequence[str] | None, stack: ExitStack, folder: Path) -> tuple[list[Launcher], list[str]]:
    """Return the launchers of this machine, and why others are left out."""
    found: list[Launcher] = [Launcher("none", lambda _: [], "", ranks=1, patient=_ENDS[:3])]
    left_out: list[str] = []
    openmpi = _mpi("Open MPI", ("mpiexec.openmpi", "mpiexec", "mpirun"))
    mpich = _mpi("HYDRA", ("mpiexec.hydra", "mpiexec.mpich", "mpiexec"))
    if openmpi:
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        found.append(Launcher("Open MPI", lambda n: [openmpi, *root, "--oversubscribe", "-n", str(n)], "OMPI_COMM_WORLD_RANK"))
    else:
        left_out.append("Open MPI: no mpiexec of it")
    libraries = {"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]} if "LD_LIBRARY_PATH" in os.environ else {}
    if mpich:
        found.append(Launcher("MPICH", lambda n: [mpich, "-n", str(n)], "PMI_RANK", libraries, patient=_ENDS[:2]))
    else:
        left_out.append("MPICH: no mpiexec.hydra")
    torchrun = shutil.which("torchrun")
    if torchrun:
        words = [torchrun, "--standalone", "--no-python", "--nproc-per-node"]
        found.append(Launcher("torchrun", lambda n: [*words, str(n)], "RANK", {"OMP_NUM_THREADS": "1"}))
    else:
        left_out.append("torchrun: not installed (make test-launchers takes that of make test-workloads)")
    found = [one for one in found if not wanted or one.name in wanted]
    if wanted and "Slurm" not in wanted:
        return found, left_out
    if why := slurm.lacks():
        left_out.append(f"Slurm: {why}")
    else:
        variables = stack.enter_context(slurm.running(folder / "slurm"))
        found.append(Launcher("Slurm", lambda n: ["srun", "--overcommit", "-n", str(n)], "SLURM_PROCID", variables))
    return found, left_out


def _mpi(says: str, names: Iterable[str]) -> str | None:
    for path in filter(None, map(shutil.which, names)):
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if says.lower() in (done.stdout + done.stderr).lower():
            return path
    return None


def _where(launchers: Sequence[Launcher]) -> str:
    """Return a line that says what was run."""
    shell = subprocess.run(["bash", "-c", "echo $BASH_VERSION"], capture_output=True, text=True, check=False).stdout.strip()
    names = ", ".join(one.name for one in launchers)
    return f"{names}; bash {shell}; Python {platform.python_version()}; Linux {platform.release()}"


def _play_all(cases: Sequence[Case], folder: Path, tools: Path, jobs: int) -> list[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda numbered: play(numbered[1], folder / str(numbered[0]), tools), enumerate(cases)))


def _matrix(launchers: Sequence[Launcher], folder: Path, tools: Path, jobs: int) -> int:
    """Print launchers x tools x signals; return how many cases are wrong."""
    rows: list[tuple[str, str, str]] = []
    cases: list[Case] = []
    for launcher in launchers:
        for tool in TOOLS:
            rows.append((launcher.name, tool, "the launcher" if launcher.rank_variable else "the wrapper"))
            cases += [Case(launcher, tool, "0"), Case(launcher, tool, "7")]
            cases += [Case(launcher, tool, "wait", number) for number in SIGNALS]
            rows.append((launcher.name, tool, "every process"))
            cases += [Case(launcher, tool, "wait", number, to_all=True) for number in SIGNALS]
    outcomes = _play_all(cases, folder / "signals", tools, jobs)
    waiting = list(outcomes)
    table = []
    for name, tool, target in rows:
        if target == "every process":
            cells = ["", "", *(str(waiting.pop(0)) for _ in SIGNALS)]
        else:
            cells = [str(waiting.pop(0)) for _ in range(2 + len(SIGNALS))]
        table.append((name, tool, target, *cells))
    _print(_HEAD, table)
    return sum(bool(outcome.wrong) for outcome in outcomes)


def _left_behind(launchers: Sequence[Launcher], folder: Path, tools: Path, jobs: int) -> int:
    """Print how long after its launcher what does not end by itself is gone; return how many cases are wrong."""
    exporting = ((stand_ins.SLOW_EXPORT, "."),)
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("plain", "an application that ignores signals", {"how": "stubborn"}),
        ("nsys", "an application that ignores signals", {"how": "stubborn"}),
        ("nsys", "the same, in a script", {"how": "stubborn", "script": True}),
        ("nsys", "an export of two minutes", {"begun": "exporting", "variables": exporting})]
    rows = [(launcher, *kind) for launcher in launchers for kind in kinds
            if launcher.rank_variable or "script" not in kind[2]]   # without a launcher, a script may end before what it started
    keys = [(row, number) for row in range(len(rows)) for number in _ENDS if number not in rows[row][0].patient]
    cases = [Case(rows[row][0], rows[row][1], number=number, **rows[row][3]) for row, number in keys]
    outcomes = dict(zip(keys, _play_all(cases, folder / "left", tools, jobs), strict=True))
    table = []
    for row, (launcher, tool, what, _) in enumerate(rows):
        cells = [_gone(outcomes[row, number]) if (row, number) in outcomes else "waits for it" for number in _ENDS]
        table.append((launcher.name, tool, what, *cells))
    print()
    _print(("launcher", "tool", "what runs on", *(number.name for number in _ENDS)), table)
    return sum(bool(outcome.wrong) for outcome in outcomes.values())


def _gone(outcome: Outcome) -> str:
    return str(outcome) if outcome.wrong else f"{outcome.gone_s:.1f} s"


def _directories(launchers: Sequence[Launcher], folder: Path, tools: Path, jobs: int) -> int:
    """Print launchers x ways to name the run directory; return how many cases are wrong."""
    cases = []
    for launcher in launchers:
        for label, place in _PLACES.items():
            variables = (("NSIGHTLENS_RUN_DIR", "runs/base"),) if "RUN_DIR" in label else ()
            if label == "neither" and launcher.name == "MPICH":   # it gives its ranks no common name: refused, as documented
                continue
            known = None if label == "neither" else "base"
            cases.append(Case(launcher, "nsys", "0", place=place, variables=variables, run=known))
    outcomes = _play_all(cases, folder / "directories", tools, jobs)
    table = []
    for launcher in launchers:
        part = [outcome for case, outcome in zip(cases, outcomes, strict=True) if case.launcher is launcher]
        cells = [str(one) if one.wrong else "run `base`" if one.run == "base" else "its own name" for one in part]
        table.append((launcher.name, *cells, *["refused: no name that all ranks share"] * (len(_PLACES) - len(cells))))
    print()
    _print(("launcher", *_PLACES), table)
    return sum(bool(outcome.wrong) for outcome in outcomes)


def _two_runs(launchers: Sequence[Launcher], folder: Path, tools: Path) -> int:
    """Print what two configurations in one job become; return how many launchers have it wrong."""
    table = [(launcher.name, two_runs(launcher, folder / f"two-{number}", tools)) for number, launcher in enumerate(launchers)]
    print()
    _print(("launcher", "two run directories in one job"), table)
    return sum("**" in row[1] for row in table)


def _print(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for cells in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
