"""Writes tests/slow.txt, the tests that take over half a second of CPU: `make durations`. As a plugin of pytest it measures them.

What several tests share (a store made once, say) is counted in equal parts: so none is quick because another one, which is slow,
has made what it reads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.conftest import SLOW

LIMIT_SECONDS = 0.5
_FOLDER = "NSIGHTLENS_TEST_DURATIONS"
_shared_seconds = 0.0


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def _note(*fields: object) -> None:
    with (Path(os.environ[_FOLDER]) / str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write("\t".join(map(str, fields)) + "\n")


def _place(fixture: pytest.FixtureDef[Any]) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Write down what a fixture of several tests takes, without those that it stands on."""
    global _shared_seconds
    before, below = _cpu_seconds(), _shared_seconds
    result = yield
    if fixturedef.scope != "function":
        seconds = _cpu_seconds() - before - (_shared_seconds - below)
        _shared_seconds += seconds
        _note(seconds, "", _place(fixturedef))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Function) -> Generator[None, object, object]:
    """Write down what a test takes, its own fixtures and child processes included, and which it shares with others."""
    before, shared = _cpu_seconds(), _shared_seconds
    result = yield
    fixtures = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    _note(_cpu_seconds() - before - (_shared_seconds - shared), item.nodeid,
          *(_place(fixture) for fixture in fixtures if fixture.scope != "function"))
    return result


def _seconds_by_test(lines: list[list[str]]) -> dict[str, float]:
    """Return what each test takes, from lines of seconds, the test ("" for a fixture's own), and what it shares."""
    users = Counter(place for _, test, *places in lines if test for place in places)
    costs: defaultdict[str, float] = defaultdict(float)
    for text, test, *places in lines:
        if not test:
            costs[places[0]] += float(text)
    return {test: float(text) + sum(costs[place] / users[place] for place in places) for text, test, *places in lines if test}


def main() -> int:
    """Run the tests of `make test` and `make test-slow`; return pytest's exit code, with the list written where all ran."""
    with TemporaryDirectory() as folder:
        tests = ["-p", "tests.durations", "-n", "auto", "-m", "not captures and not long", *sys.argv[1:]]
        code = subprocess.run([sys.executable, "-m", "pytest", *tests], env={**os.environ, _FOLDER: folder}).returncode
        lines = [line.split("\t") for path in Path(folder).iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    seconds = _seconds_by_test(lines)
    slow = sorted(name for name, cpu in seconds.items() if cpu > LIMIT_SECONDS)
    total, of_slow = sum(seconds.values()), sum(seconds[name] for name in slow)
    print(f"{len(seconds)} tests, {total:.0f} CPU s; {len(slow)} over {LIMIT_SECONDS:g} s take {of_slow:.0f} s")
    if code in (0, 1):  # one that fails took its time, too
        SLOW.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
