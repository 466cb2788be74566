"""The workloads' step times, which need no torch. With torch: tests/workloads."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from nsl_launch import Launch
from steps import StepLog, place

from nsightlens.discovery.files import find


def test_steps_lie_in_their_windows_and_the_device_is_waited_for_at_their_ends() -> None:
    waits: list[int] = []
    ended: list[int] = []
    log = StepLog(lambda: waits.append(log.number), lambda: ended.append(log.number))
    before = time.time_ns()
    for name, count in (("warmup", 2), ("measure", 3)):
        with log.window(name):
            for _ in range(count):
                with log.step():
                    pass
    assert waits == [0, 2, 2, 5]
    assert ended == [1, 2, 3, 4, 5]
    times = [before]
    for window in log.windows:
        times.append(window["start_epoch_ns"])
        for step in window["steps"]:
            times += [step["start_epoch_ns"], step["end_epoch_ns"]]
        times.append(window["end_epoch_ns"])
    assert all(type(t) is int for t in times)
    assert times[1:] == sorted(times[1:])
    assert abs(times[1] - before) < 10**9
    assert [s["step"] for w in log.windows for s in w["steps"]] == [0, 1, 2, 3, 4]
    window = log.windows[1]
    assert log.step_ns("measure") == (window["end_epoch_ns"] - window["start_epoch_ns"]) // 3


def test_the_file_is_where_the_tool_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch("torchrun", 3, 1, 4, 2, 1)
    for name in ("NSIGHTLENS_TOOL", "NSIGHTLENS_RUN_DIR", "NSIGHTLENS_EXECUTION_ID"):
        monkeypatch.delenv(name, raising=False)
    assert place(launch, None) is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "abc")
    monkeypatch.setenv("NSIGHTLENS_RUN_ID", "base")
    plain = place(launch, str(tmp_path))
    monkeypatch.setenv("NSIGHTLENS_TOOL", "nsys")
    monkeypatch.setenv("NSIGHTLENS_RUN_DIR", str(tmp_path))
    traced = place(launch, None)
    assert plain is not None and traced is not None
    assert StepLog(lambda: None).write(plain, {"name": "x"}) == tmp_path / "plain" / "rank0003.steps.json"
    assert StepLog(lambda: None).write(traced, {"name": "x"}) == tmp_path / "nsys" / "rank0003.steps.json"
    content = json.loads((tmp_path / "nsys" / "rank0003.steps.json").read_text())
    assert (content["run"], content["rank"], content["execution_id"], content["tool"]) == ("base", 3, "torchrun-abc-nsys", "nsys")
    assert {f.kind for f in find([tmp_path])} == {"step times"}
