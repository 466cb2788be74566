"""The campaign: numbered mutations one after the other in a worker process, each with a time and a memory that it must keep."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from nsightlens.errors import ReadError
from tests.fuzz import kineto, ncu, ncu_rep, nsys
from tests.fuzz.mutation import Mutation, Target, applied, minimised, mutation

TARGETS: tuple[Target, ...] = (nsys, ncu, ncu_rep, kineto)
HANG_S, WAIT_S = 20, 300
MOST_BYTES = 1 << 30
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Failure:
    """A mutation that nsightlens does not stand: crash, silent difference, hang or memory, with what is to be seen of it.

    found: the smallest one that fails alike; one that hangs or kills is as it was.
    """

    seed: int
    kind: str
    detail: str
    found: Mutation


def verdict(target: Target, found: Mutation, folder: Path) -> tuple[str, str]:
    """Return (ok, refused, crash, silent or memory; details) for one mutation."""
    path = folder / f"capture{target.SUFFIX}"
    path.write_bytes(applied(target.bases()[found.base], found.edits))
    before = _peak_bytes(reset=True)
    try:
        different = target.differences(path)
    except ReadError:
        return "refused", ""
    except Exception:  # noqa: BLE001  # whatever it is, it is a failure
        return "crash", traceback.format_exc(limit=-6)
    if _peak_bytes() - before > MOST_BYTES:
        return "memory", f"more than {MOST_BYTES:,} bytes"
    return ("silent", "; ".join(different)) if different else ("ok", "")


def run(seconds: float, state: Path, only: str | None = None) -> Counter[str]:
    """Go on where the folder `state` says that the last campaign stopped, for so many seconds; return the counts of all.

    Failures are kept there: the mutated capture, and what was wrong with it.
    """
    state.mkdir(parents=True, exist_ok=True)
    counts = Counter(json.loads((state / "counts.json").read_text())) if (state / "counts.json").exists() else Counter[str]()
    targets = [target for target in TARGETS if only in (None, target.NAME)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for target in targets:
            first = counts[f"{target.NAME} next"]
            done, failures = _batch(target, first, end)
            counts.update(done)
            counts[f"{target.NAME} next"] = first + sum(done.values())
            for failure in failures:
                _keep(failure, target, state)
            (state / "counts.json").write_text(json.dumps(counts, indent=1))
    return counts


def _batch(target: Target, first: int, end: float) -> tuple[Counter[str], list[Failure]]:
    """Return the verdicts on a batch of mutations. A worker that hangs is killed, and another one goes on behind it."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    ours, theirs = multiprocessing.Pipe()
    worker = multiprocessing.get_context("fork").Process(target=_work, args=(target, first, theirs), daemon=True)
    worker.start()
    theirs.close()
    for seed in range(first, first + _BATCH):
        if time.monotonic() > end:
            break
        try:
            waited = _answered(ours, worker.pid or 0)
            failure = ours.recv() if waited else Failure(seed, "hang", f"over {HANG_S} s", mutation(target, seed))
        except EOFError:
            failure = Failure(seed, "death", "the process died", mutation(target, seed))
        counts[f"{target.NAME} {failure.kind}"] += 1
        if failure.kind not in ("ok", "refused"):
            failures.append(failure)
        if failure.kind in ("hang", "death"):
            break
    worker.kill()
    worker.join()
    return counts, failures


def _answered(pipe: Connection, pid: int) -> bool:
    """Wait for a verdict; return False where the worker has computed for HANG_S, or waited for WAIT_S, without one."""
    begin, cpu = time.monotonic(), _cpu_seconds(pid)
    while not pipe.poll(1):
        if _cpu_seconds(pid) - cpu > HANG_S or time.monotonic() - begin > WAIT_S:
            return False
    return True


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process (Linux; 0 elsewhere): on a busy machine a clock says nothing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(target: Target, first: int, pipe: Connection) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(first, first + _BATCH):
            found = mutation(target, seed)
            kind, detail = verdict(target, found, folder)
            if kind in ("crash", "silent"):
                found = minimised(found, lambda other, kind=kind: verdict(target, other, folder)[0] == kind)  # type: ignore[misc]
            pipe.send(Failure(seed, kind, detail, found))


def _keep(failure: Failure, target: Target, state: Path) -> None:
    """Write the mutation and its capture."""
    stem = state / f"{target.NAME}-{failure.kind}-{failure.seed}"
    stem.with_suffix(target.SUFFIX).write_bytes(applied(target.bases()[failure.found.base], failure.found.edits))
    stem.with_suffix(".txt").write_text(f"{failure.found}\n\n{failure.detail}\n")


def _peak_bytes(reset: bool = False) -> int:
    """Return the most memory that this process has held, since the last reset (Linux; 0 elsewhere)."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))
