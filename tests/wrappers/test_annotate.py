"""annotate, with stand-ins for torch and nvtx that write down what they are told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nsl_annotate
import pytest
from nsl_annotate import annotate, step_range

from nsightlens.readers.kineto import categories
from tests.readers.nsys_report import report, span


class Record:
    """A record_function that logs."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def __enter__(self) -> None:
        self.log.append(f"torch+{self.name}")

    def __exit__(self, *error: object) -> None:
        self.log.append(f"torch-{self.name}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What NVTX and a profiling torch (built without CUDA) are told."""
    told: list[str] = []
    stack: list[str] = []

    def push(name: str) -> None:
        stack.append(name)
        told.append(f"nvtx+{name}")

    nvtx = SimpleNamespace(push_range=push, pop_range=lambda: told.append(f"nvtx-{stack.pop()}"))
    torch = SimpleNamespace(
        version=SimpleNamespace(cuda=None), compiler=SimpleNamespace(is_compiling=lambda: False),
        autograd=SimpleNamespace(_profiler_enabled=lambda: True),
        _C=SimpleNamespace(_autograd=SimpleNamespace(_profiler_type=lambda: SimpleNamespace(name="KINETO"))),
        profiler=SimpleNamespace(record_function=lambda name: Record(told, name)))
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    monkeypatch.setitem(sys.modules, "torch", torch)
    nsl_annotate._nvtx.cache_clear()
    yield told
    assert not stack
    nsl_annotate._nvtx.cache_clear()


def test_both_see_the_same_name(log: list[str]) -> None:
    with annotate("loss"):
        log.append("work")
    assert log == ["nvtx+loss", "torch+loss", "work", "torch-loss", "nvtx-loss"]


def test_a_function_keeps_its_face(log: list[str]) -> None:
    @annotate
    def attention(q: int, *, scale: int = 2) -> int:
        """Attend."""
        return q * scale

    assert (attention(3), attention.__name__, attention.__doc__) == (6, "attention", "Attend.")
    name = "test_a_function_keeps_its_face.<locals>.attention"
    assert log == [f"nvtx+{name}", f"torch+{name}", f"torch-{name}", f"nvtx-{name}"]


class Net:
    @annotate
    def forward(self) -> str:
        return "forward"

    @annotate("Net.make")
    @classmethod
    def make(cls) -> str:
        return cls.__name__

    @annotate()
    @staticmethod
    def loose() -> str:
        return "loose"


def test_methods_have_qualified_names(log: list[str]) -> None:
    assert (Net().forward(), Net.make(), Net.loose()) == ("forward", "Net", "loose")
    assert [line for line in log if line.startswith("nvtx+")] == ["nvtx+Net.forward", "nvtx+Net.make", "nvtx+Net.loose"]


def test_an_exception_passes_and_closes(log: list[str]) -> None:
    @annotate("fails")
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        fails()
    assert log[-2:] == ["torch-fails", "nvtx-fails"]


def test_recursion_and_reentrance(log: list[str]) -> None:
    @annotate("f")
    def factorial(n: int) -> int:
        return 1 if n == 0 else n * int(factorial(n - 1))

    assert factorial(3) == 6
    span = annotate("again")
    with span, span:
        pass
    assert log.count("nvtx+f") == log.count("nvtx-f") == 4
    assert log.count("torch+again") == log.count("torch-again") == 2


def test_a_step_is_in_nvtx_only(log: list[str]) -> None:
    with step_range(7):
        pass
    assert log == ["nvtx+ProfilerStep#7", "nvtx-ProfilerStep#7"]


def test_nsys_and_kineto_see_the_same_steps_and_phases(log: list[str], tmp_path: Path) -> None:
    """What NVTX is told, as nsys stores it and as nsightlens reads it: the step's number, and the phases by their names."""
    with step_range(7):
        for phase in ("forward", "backward", "optimizer"):
            with annotate(phase):
                pass
    names = [word.removeprefix("nvtx+") for word in log if word.startswith("nvtx+")]
    times = {name: (0, 100) if number == 0 else (10 * number, 10 * number + 9) for number, name in enumerate(names)}
    rows = report(tmp_path, NVTX_EVENTS=[span(*times[name], text=name) for name in names])["ranges"]
    seen = [(row["kind"], row["name"], row.get("step"), row.get("domain")) for row in rows]
    assert seen == [("step", "ProfilerStep#7", 7, None)] + [
        ("nvtx_push_pop", phase, None, None) for phase in ("forward", "backward", "optimizer")]
    assert categories.step_number("ProfilerStep#7") == 7
    assert [word for word in log if word.startswith("torch+")] == ["torch+forward", "torch+backward", "torch+optimizer"]


def test_no_profiler_no_record(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["torch"].autograd, "_profiler_enabled", lambda: False)
    with annotate("x"):
        pass
    assert log == ["nvtx+x", "nvtx-x"]


def test_one_range_per_name_where_torch_makes_nvtx_of_its_records(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """emit_nvtx, which nsys --pytorch turns on, counts as a profiler that is on."""
    monkeypatch.setattr(sys.modules["torch"]._C._autograd, "_profiler_type", lambda: SimpleNamespace(name="NVTX"))
    with annotate("x"):
        pass
    assert log == ["nvtx+x", "nvtx-x"]


def test_without_torch_and_nvtx_nothing_happens(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setitem(sys.modules, "nvtx", None)
    nsl_annotate._nvtx.cache_clear()
    with annotate("x"):
        pass
    assert log == []


def test_what_cannot_be_annotated_is_refused() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def coroutine() -> None: ...

    wrong: list[Any] = [generator, coroutine, Net, 5]
    for what in wrong:
        with pytest.raises(TypeError, match="annotate"):
            annotate(what)
    with pytest.raises(TypeError, match="name"), annotate():
        pass
