"""Which tests run which line of a room, recorded once: a mutant meets those alone that run what it changes.

What a fixture runs counts for every test that asks for it, what runs while tests are collected for all. Caches are emptied before
each test, as what a function remembers from an earlier one would hide its lines.
"""

from __future__ import annotations

import ast
import gc
import resource
import time
from collections.abc import Generator, Mapping, Sequence
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

_SLOW = ("long", "slow")
"""Markers of tests that `make test` leaves out."""


class Reach(NamedTuple):
    """What was recorded."""

    cpu_s: dict[str, float]
    """CPU time of each test, in the order in which they ran."""
    lines: dict[str, dict[str, list[str]]]
    """Tests by file and line. The test "" is what ran while tests were collected."""
    slow: Sequence[str] = ()
    """The tests that `make test` leaves out."""

    def tests(self, path: Path, line: int) -> dict[str, float]:
        """Return the tests that run the statement in this line, or all where it runs at import or while tests are collected, and
        their CPU time.

        File by file: that named like the module first, then those that run any line of it in a test, then the quick ones; in each
        the quick tests first.
        """
        told = self.lines.get(str(path), {})
        here = statement(path.read_text(), line)
        found = set(self.cpu_s) if here is None else {test for at in here for test in told.get(str(at), ())}
        if "" in found:
            found = set(self.cpu_s)
        elsewhere = found.difference(*told.values())
        files: dict[str, list[str]] = {}
        for test in filter(found.__contains__, self.cpu_s):
            files.setdefault(test.partition("::")[0], []).append(test)

        def late(file: str) -> tuple[bool, bool, float]:
            return (path.stem.strip("_") not in Path(file).stem, elsewhere.issuperset(files[file]),
                    sum(self.cpu_s[test] for test in files[file]))

        return {test: self.cpu_s[test] for file in sorted(files, key=late)
                for test in sorted(files[file], key=self.cpu_s.__getitem__)}


def _may_hide(module: str) -> bool:
    """Return whether what a function of the module remembers may follow from a room that is changed: views and blank catalogs do
    not, and take long to make."""
    return module.startswith(("nsightlens", "tests")) and not module.startswith(("nsightlens.views", "tests.catalogs"))


def statement(source: str, line: int) -> range | None:
    """Return the lines of the innermost statement there, without those of its body; None where it runs at import."""
    inner: ast.stmt | ast.ExceptHandler | None = None
    inside = False
    for node in ast.walk(ast.parse(source)):  # what is around comes before what is inside
        if isinstance(node, (ast.stmt, ast.ExceptHandler)) and _first(node) <= line <= (node.end_lineno or 0):
            inside |= isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
            inner = node
    if inner is None or not inside:
        return None
    body: list[ast.stmt] = getattr(inner, "body", [])
    first = _first(inner)
    return range(first, max(first + 1, body[0].lineno) if body else (inner.end_lineno or first) + 1)


def _first(node: ast.stmt | ast.ExceptHandler) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


class Recorder:
    """A plugin of pytest that notes the lines of each test."""

    def __init__(self, folder: Path) -> None:
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"{folder}/*"])
        self._context = ""
        self._cpu_s: dict[str, float] = {}
        self._fixtures: dict[str, Sequence[str]] = {}
        self._slow: list[str] = []
        self._failed: set[str] = set()

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        for found in gc.get_objects():
            if isinstance(found, _lru_cache_wrapper) and _may_hide(str(found.__module__)):
                found.cache_clear()
        start = time.process_time()
        result = yield from self._noted(item.nodeid)
        self._cpu_s[item.nodeid] = time.process_time() - start
        self._fixtures[item.nodeid] = getattr(item, "fixturenames", ())
        if any(item.get_closest_marker(name) for name in _SLOW):
            self._slow.append(item.nodeid)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        return (yield from self._noted(f"{fixturedef.baseid}\n{fixturedef.argname}"))

    def _noted(self, context: str) -> Generator[None, Any, Any]:
        before, self._context = self._context, context
        self._coverage.switch_context(context)
        try:
            return (yield)
        finally:
            self._context = before
            self._coverage.switch_context(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def reach(self) -> Reach:
        """Stop, and return what was recorded of the tests that passed."""
        self._coverage.stop()
        data = self._coverage.get_data()
        for test in self._failed:
            self._cpu_s.pop(test, None)
            self._fixtures.pop(test, None)
        lines = {file: {str(line): sorted({test for context in contexts for test in self._tests(context)})
                        for line, contexts in data.contexts_by_lineno(file).items()} for file in data.measured_files()}
        return Reach(self._cpu_s, lines, self._slow)

    def _tests(self, context: str) -> list[str]:
        place, newline, fixture = context.partition("\n")
        if not newline:
            return [] if context in self._failed else [context]
        return [test for test, fixtures in self._fixtures.items() if test.startswith(place) and fixture in fixtures]


class Chosen:
    """A plugin of pytest that runs these tests only, in this order, and ends a process that loops.

    tests: with the CPU time in s of each. A test may take several times that, and what a fixture for all may cost.
    """

    _SPARE_S = 20

    def __init__(self, tests: Mapping[str, float]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}
        self._cpu_s = tests

    def pytest_sessionstart(self) -> None:
        _allow(2 * self._SPARE_S)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _allow(self._SPARE_S + 5 * self._cpu_s[nodeid])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid])


def _allow(more_s: float) -> None:
    """Let this process take so much more CPU time; what takes longer is killed."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + more_s) + 1, resource.RLIM_INFINITY))
