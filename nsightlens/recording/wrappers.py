"""Where the wrappers lie, and their Python modules. The recording itself is theirs: they also run without nsightlens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from nsightlens.errors import NsightlensError


def source() -> Path:
    """Return the folder of the wrappers: inside an installed package, else in the checkout. Raises NsightlensError."""
    package = Path(__file__).resolve().parents[1]
    found = next((f for f in (package / "_wrappers", package.parent / "wrappers") if (f / "torch_profiler.py").is_file()), None)
    if found is None:
        raise NsightlensError("this installation has no wrappers. Install nsightlens again, from a wheel or a full checkout")
    return found


def launching() -> Any:
    """Return the module nsl_launch: rank, run and place of a capture."""
    with _importable():
        return import_module("nsl_launch")


def profiler() -> Any:
    """Return the module torch_profiler; under `python torch_profiler.py script.py` it is the one that runs the script."""
    with _importable():
        return import_module("torch_profiler")


@contextmanager
def _importable() -> Iterator[None]:
    """Have the wrappers' folder on the module path; a copy that the caller put there comes first."""
    folder = str(source())
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
