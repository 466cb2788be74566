"""Calls of Python functions as the reader gives them, of typed and of odd events."""

from __future__ import annotations

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
