"""Writes tests/slow.txt, the tests that take over a second of CPU: `make durations`. As a plugin of pytest, it measures them.

What a session shares (a store made once, say) is no test's own, and is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.conftest import SLOW

LIMIT_SECONDS = 1.0
_FOLDER = "NSIGHTLENS_TEST_DURATIONS"
_shared_seconds = 0.0


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Count apart what a session-wide fixture takes."""
    global _shared_seconds
    before = _cpu_seconds()
    result = yield
    if fixturedef.scope == "session":
        _shared_seconds += _cpu_seconds() - before
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Write down what a test takes, its own fixtures and child processes included."""
    before, shared = _cpu_seconds(), _shared_seconds
    result = yield
    seconds = _cpu_seconds() - before - (_shared_seconds - shared)
    with (Path(os.environ[_FOLDER]) / str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(f"{seconds:.3f}\t{item.nodeid}\n")
    return result


def main() -> int:
    """Run the tests of `make test` and `make test-slow`; return pytest's exit code, with the list written where all ran."""
    with TemporaryDirectory() as folder:
        tests = ["-p", "tests.durations", "-n", "auto", "-m", "not captures and not long", *sys.argv[1:]]
        code = subprocess.run([sys.executable, "-m", "pytest", *tests], env={**os.environ, _FOLDER: folder}).returncode
        lines = [line.split("\t") for path in Path(folder).iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    seconds = {name: float(text) for text, name in lines}
    slow = sorted(name for name, cpu in seconds.items() if cpu > LIMIT_SECONDS)
    total, of_slow = sum(seconds.values()), sum(seconds[name] for name in slow)
    print(f"{len(seconds)} tests, {total:.0f} CPU s; {len(slow)} over {LIMIT_SECONDS:g} s take {of_slow:.0f} s")
    if code in (0, 1):  # one that fails took its time, too
        SLOW.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
