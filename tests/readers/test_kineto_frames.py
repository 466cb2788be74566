"""Calls of Python functions as the reader gives them, of typed and of odd events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.readers.kineto_text import event, read, trace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


@pytest.mark.parametrize("odd", [[], [event("something_new", "x", "1.0")]], ids=["typed", "odd"])
def test_every_call_is_a_row_and_modules_are_ranges_too(path: Path, odd: list[str]) -> None:
    found = read(path, trace(
        event("cpu_op", "aten::mm", "1.0"),
        event("python_function", "model.py(7): forward", "1.0", "9.0"),
        event("python_function", "nn.Module: Linear_0", "2.0", "3.0"),
        event("python_function", "<built-in method size of Tensor object at 0x7fdc681d0910>", "2.5", "1.0"), *odd))
    rows = found["frame_calls"]
    assert [row["name"] for row in rows] == [
        "model.py(7): forward", "nn.Module: Linear_0", "<built-in method size of Tensor object>"]
    assert [row["duration_ns"] for row in rows] == [9000, 3000, 1000]
    assert {row["process_index"] for row in rows} == {0} and len({row["thread"] for row in rows}) == 1
    kinds = [(row["kind"], row["name"]) for row in found["ranges"]]
    assert kinds == [("operator", "aten::mm"), ("module", "nn.Module: Linear_0")]


def test_an_impossible_duration_is_counted_once(path: Path) -> None:
    found = read(path, trace(event("python_function", "nn.Module: A", "1.0", "-3.0"),
                             event("python_function", "a.py(1): f", "1.0", "-3.0"), event("cpu_op", "x", "1.0")))
    (said,) = [row for row in found["diagnostics"] if row["code"] == "impossible_duration"]
    assert said["count"] == 2
    assert [row["duration_ns"] for row in found["frame_calls"]] == [None, None]


STACK = "torch/nn/functional.py(2263): batch_norm;model.py(7): forward;train.py(3): <module>"


def _with_stack(name: str, at: str, stack: object, category: str = "Operator") -> str:
    return event(category, name, at, "4.0", args=json.dumps({"Call stack": stack}))


@pytest.mark.parametrize("odd", [[], [event("something_new", "x", "1.0")]], ids=["typed", "odd"])
def test_operators_of_old_traces_carry_their_stack(path: Path, odd: list[str]) -> None:
    addressed = "<built-in method f of X object at 0x7fdc>; a.py(1): f\n;b.py(2): g;"
    found = read(path, trace(
        _with_stack("aten::batch_norm", "1.0", STACK), event("Operator", "aten::mm", "6.0"),
        _with_stack("aten::add", "7.0", addressed),
        _with_stack("ProfilerStep#3", "0.5", STACK), _with_stack("note", "9.0", STACK, "user_annotation"), *odd))
    assert [(row["name"], row["start_ns"], row["duration_ns"]) for row in found["call_stacks"]] == [
        (STACK, 1000, 4000), ("<built-in method f of X object>;a.py(1): f;b.py(2): g", 7000, 4000)]
    assert {row["process_index"] for row in found["call_stacks"]} == {0} and len(found["ranges"]) == 5


@pytest.mark.parametrize("odd", [[], [event("something_new", "x", "1.0")]], ids=["typed", "odd"])
def test_what_is_no_stack_is_left_out_and_odd_ones_are_counted(path: Path, odd: list[str]) -> None:
    none: list[object] = [None, "", 7, 1.5, True, ["a"], {"a": 1}]
    strange = [" ;\n", "f;" * 1_001, "x" * (1 << 16 | 1)]
    fine = ["f;" * 1_000, "x" * (1 << 16)]
    found = read(path, trace(*(_with_stack("aten::mm", "1.0", stack) for stack in [*none, *strange, *fine]), *odd))
    assert [row["name"] for row in found["call_stacks"]] == [";".join(["f"] * 1_000), fine[1]]
    (said,) = [row for row in found["diagnostics"] if row["code"] == "odd_stacks"]
    assert said["count"] == len(strange) and len(found["ranges"]) == 12
