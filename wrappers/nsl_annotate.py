"""annotate: one name for a stretch of code in PyTorch's trace and in NVTX, so that every profiler sees the same. Stands alone."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

_F = TypeVar("_F")


@functools.cache
def _nvtx() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    """Return (push, pop) of NVTX: of torch where it was built with CUDA, else of the nvtx package, else None."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda is not None:
        return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx.push_range, nvtx.pop_range


def _traces(torch: Any) -> bool:
    """Return whether a profiler of torch writes a trace. emit_nvtx, and so nsys --pytorch, makes NVTX of what it would write."""
    return bool(torch.autograd._profiler_enabled() and torch._C._autograd._profiler_type().name != "NVTX")


class _Range:
    """One name as a context manager (may be entered again while it is open) and as a decorator."""

    def __init__(self, name: str | None, in_trace: bool = True) -> None:
        self.name = name
        self._in_trace = in_trace
        self._open: list[tuple[Any, Callable[[], Any] | None]] = []

    def __call__(self, function: _F) -> _F:
        """Return the function inside the range; its name is the default."""
        decorated: _F = _decorated(function, self.name)
        return decorated

    def __enter__(self) -> _Range:
        if self.name is None:
            raise TypeError('annotate needs a name here: with annotate("name"):')
        torch = sys.modules.get("torch")
        record = nvtx = None
        if torch is None or not torch.compiler.is_compiling():
            nvtx = _nvtx()
            if nvtx:
                nvtx[0](self.name)
            if torch is not None and self._in_trace and _traces(torch):
                record = torch.profiler.record_function(self.name)
                record.__enter__()
        self._open.append((record, nvtx[1] if nvtx else None))
        return self

    def __exit__(self, *error: object) -> None:
        record, pop = self._open.pop()
        if record is not None:
            record.__exit__(*error)
        if pop is not None:
            pop()


@overload
def annotate(what: str | None = None) -> _Range: ...
@overload
def annotate(what: _F) -> _F: ...
def annotate(what: Any = None) -> Any:
    """Return a range in PyTorch's trace and in NVTX: `@annotate`, `@annotate("name")` or `with annotate("name"):`.

    A function's name is its qualified name. Costs next to nothing where no profiler listens; inside torch.compile it vanishes.
    Raises TypeError for generators and coroutines, whose body does not run while the call does: annotate what they call.
    """
    if what is None or isinstance(what, str):
        return _Range(what)
    return _decorated(what, None)


def step_range(number: int) -> _Range:
    """Return the NVTX range of one step under torch.profiler's name for it; into its own trace it writes that name itself."""
    return _Range(f"ProfilerStep#{number}", in_trace=False)


def _decorated(function: Any, name: str | None) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorated(function.__func__, name))
    if not inspect.isroutine(function):
        raise TypeError(f"annotate takes a function, a method or a name, not {function!r}")
    if any(test(function) for test in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
        raise TypeError(f"annotate: {function.__qualname__} returns before its body runs; use `with annotate(...)` inside it, "
                        "around no yield or await")
    label = name or function.__qualname__

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with _Range(label):
            return function(*args, **kwargs)

    return inside
