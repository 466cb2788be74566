"""Simulated recordings of a small job on one GPU: a base, the same again, a slower kernel, another model."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.captures import kineto
from tests.places import ROOT

sys.path.insert(0, str(ROOT / "fixtures"))
generator = importlib.import_module("make_simulated_ddp")
gpu = importlib.import_module("simulated.gpu")
Knobs = importlib.import_module("simulated.knobs").Knobs

SLOWER = "bn_backward"
"""Part of the name of the kernels that are slower, and by how much."""
BY = 1.6
_SMALL = (("layer1", 64, 1),)
OTHER = (("layer1", 96, 1),)


def recordings(folder: Path, count: int, first: int, **knobs: Any) -> list[Path]:
    """Write executions of a job under the PyTorch profiler, each in a folder of its own; return the folders."""
    found = []
    for number in range(count):
        place = folder / str(number)
        chosen = {"stages": _SMALL, "blocks": 1, "batch": 256, **knobs}
        generator.timelines(place, "kineto", Knobs(
            seed=first + number, world_size=1, execution=f"{folder.name}-{number}", sidecar_missing=(), steps=5,
            evaluate_after=(), late=(), dropped=0, **chosen))
        found.append(place)
    return found


def slower(folder: Path, count: int, first: int) -> list[Path]:
    """Write executions in which kernels of SLOWER take BY times as long."""
    duration = gpu.duration_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "duration_ns", lambda kernel, clock, cold: int(
            duration(kernel, clock, cold) * (BY if SLOWER in kernel.name else 1)))
        return recordings(folder, count, first)


def jobs(folder: Path) -> None:
    """Write all of them."""
    recordings(folder / "base", 5, 100)
    recordings(folder / "again", 5, 200)
    slower(folder / "slower", 5, 300)
    recordings(folder / "other", 1, 400, stages=OTHER, batch=200)


def stepped(
    path: Path, lengths: list[float], *, first: int = 0, at: float = 1000.0, pid: int = 77, host: str | None = None,
) -> Path:
    """Write a trace of steps of so many µs, numbered from `first`, each with a kernel that fills it but for 10 µs."""
    starts = [at + sum(lengths[:number]) for number in range(len(lengths))]
    kineto(path, [("gemm", start + 10, length - 10) for start, length in zip(starts, lengths, strict=True)], rank=0, pid=pid,
           host=host)
    trace = json.loads(path.read_text())
    trace["traceEvents"] += [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{first + number}", "pid": pid, "tid": pid, "ts": start,
         "dur": length} for number, (start, length) in enumerate(zip(starts, lengths, strict=True))]
    path.write_text(json.dumps(trace))
    return path


def timed(path: Path, segments: dict[str, list[int]], execution: str, *, drain: int = 0, run: str = "x") -> Path:
    """Write a workload's own steps of so many ns under no profiler. drain: how long the device goes on after the last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    windows, now = [], 10**18
    for name, lengths in segments.items():
        steps, begin = [], now
        for number, length in enumerate(lengths):
            steps.append({"step": number, "start_epoch_ns": now, "end_epoch_ns": now + length})
            now += length
        now += drain
        windows.append({"name": name, "start_epoch_ns": begin, "end_epoch_ns": now, "steps": steps})
    path.write_text(json.dumps({"run": run, "rank": 0, "execution_id": execution, "tool": "plain", "windows": windows}))
    return path
