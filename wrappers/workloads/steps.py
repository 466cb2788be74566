"""When each step of a workload began and ended, as RUN_DIR/<tool>/rank0003.steps.json: how the step time gets into the table."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nsl_annotate import step_range
from nsl_launch import Capture, Launch, capture, write_json

PLAIN = "plain"


def place(launch: Launch, run_dir: str | None) -> Capture | None:
    """Return where this rank's steps go: the folder of the tool that records, else `plain`; None where no RUN_DIR is given."""
    if not (run_dir or os.environ.get("NSIGHTLENS_RUN_DIR")):
        return None
    return capture(launch, os.environ.get("NSIGHTLENS_TOOL") or PLAIN, sys.argv, run_dir=run_dir)


class StepLog:
    """Start and end of each step in epoch ns. It waits for the device at the two ends of a window only.

    A step's own times are when the host issued it; a window's are when it was done: window / steps is the true step time.
    """

    def __init__(self, synchronize: Callable[[], None], end_step: Callable[[], None] = lambda: None) -> None:
        self._synchronize, self._end_step = synchronize, end_step
        self._offset = time.time_ns() - time.perf_counter_ns()   # once: a clock that is set back must not bend a step
        self.windows: list[dict[str, Any]] = []
        self.number = 0

    def now(self) -> int:
        """Return the time in epoch ns, from a clock that only goes forward."""
        return self._offset + time.perf_counter_ns()

    @contextmanager
    def window(self, name: str) -> Iterator[None]:
        """Enclose consecutive steps between two synchronisations."""
        self._synchronize()
        window: dict[str, Any] = {"name": name, "start_epoch_ns": self.now(), "end_epoch_ns": None, "steps": []}
        self.windows.append(window)
        yield
        self._synchronize()
        window["end_epoch_ns"] = self.now()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Enclose one step of the open window; in NVTX it is called as torch.profiler calls it."""
        start = self.now()
        with step_range(self.number):
            yield
        self.windows[-1]["steps"].append({"step": self.number, "start_epoch_ns": start, "end_epoch_ns": self.now()})
        self.number += 1
        self._end_step()

    def step_ns(self, name: str) -> int:
        """Return the mean time of the steps of a window, in whole ns."""
        window = next(w for w in self.windows if w["name"] == name)
        span: int = window["end_epoch_ns"] - window["start_epoch_ns"]
        return span // len(window["steps"])

    def write(self, where: Capture, workload: Mapping[str, Any]) -> Path:
        """Write <stem>.steps.json and return its path. workload: what ran, in its own words."""
        path = where.stem.with_name(f"{where.stem.name}.steps.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**where.facts(), "tool": where.folder, "workload": dict(workload), "windows": self.windows})
        return path
