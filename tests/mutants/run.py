"""Change one thing in a room's code and run the room's tests: those that stay green have missed it. `make test-mutants`.

The changes are those of cosmic-ray's operators; a sample of each room, drawn by the seed and the text of the changed line: an
edit moves the mutants of the lines that it touches, and no others. A mutant lives in a forked process only, where the mutated
text is imported in place of the file; what it writes, also to the user's cache, goes when it ends. It meets the tests that run
what it changes (reach.py). What a test starts as a program of its own is not mutated. A mutant that survives must stand in
survivors.md, with the reason why no test can see it.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from typing import NamedTuple

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutants.reach import Chosen, Reach, Recorder
from tests.mutants.removals import removals
from tests.places import OWN_CACHE, ROOT

SURVIVORS = Path(__file__).with_name("survivors.md")
ROOMS = {
    "names": ["tests/names"],
    "matching": ["tests/matching", "tests/analyses/test_run_waterfall.py", "tests/analyses/test_run_difference.py"],
    "op_cost": ["tests/op_cost", "tests/analyses/test_shape_work.py"],
    "analyses": ["tests/analyses", "tests/matching/test_collectives.py", "tests/matching/test_propagation.py",
                 "tests/matching/test_tool_match.py",
                 "tests/sql/test_nsys_reports.py", "tests/views/test_folder.py"],
    "intervals": ["tests/intervals"],
    "statistics": ["tests/statistics"],
    "discovery": ["tests/discovery"],
}
"""The tests of each room."""
_SAME = re.compile(r"_(Eq|NotEq|Lt|LtE|Gt|GtE)_Is(Not)?$|_BitAnd_Mul$|_BitOr_Add$")
"""Operators that are no slip, or mean the same: "is" for "==", the product and the sum of two truth values."""
_REMOVALS = ("RemoveArgument", "RemoveCall")
_LONGEST_S = 1800
"""Wall time of a mutant: one that waits for ever takes no CPU time (reach.py bounds that)."""
_DEPENDENCIES = ("pytest", "numpy", "pyarrow.parquet", "pyarrow.compute", "duckdb", "hypothesis", "msgspec", "click", "rich")


@dataclass(frozen=True)
class Mutant:
    """One changed file."""

    path: Path
    source: str

    @property
    def module(self) -> str:
        """Return the dotted name of the module."""
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    @property
    def line(self) -> int:
        """Return the first changed line."""
        lines = zip(self.path.read_text().splitlines(), self.source.splitlines(), strict=False)
        return next(number for number, (old, new) in enumerate(lines, 1) if old != new)

    def __str__(self) -> str:
        """Return the file and what is changed in it, as survivors.md names it."""
        lines = difflib.ndiff(self.path.read_text().splitlines(), self.source.splitlines())
        changed = [line for line in lines if line[:2] in ("- ", "+ ")]
        old, new = (" ".join(line[2:].strip() for line in changed if line[0] == sign) for sign in "-+")
        return f"`{self.path.relative_to(ROOT / 'nsightlens')}`: `{old}` -> `{new}`"


class _Mutated(MetaPathFinder, SourceLoader):  # type: ignore[misc]  # typeshed: its two bases differ in a parameter's name
    """Imports one module from a text."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if name != self._mutant.module:
            return None
        return spec_from_loader(name, self, is_package=self._mutant.path.stem == "__init__")

    def get_filename(self, name: str) -> str:
        return str(self._mutant.path)

    def get_data(self, path: str | bytes) -> bytes:
        if Path(os.fsdecode(path)) != self._mutant.path:
            raise OSError("no bytecode")
        return self._mutant.source.encode()


class Place(NamedTuple):
    """Where a module may be changed. lot: by which places are drawn; it stays while the line stays as it is. name, nth: of the
    change."""

    lot: str
    path: Path
    line: int
    column: int
    name: str
    nth: int

    def mutant(self) -> Mutant | None:
        """Return the changed file; None where it does the same, or is no Python."""
        source = self.path.read_text()
        if self.name in _REMOVALS:
            changed: str | None = [one for one in removals(source) if one.name == self.name][self.nth].of(source)
        else:
            changed = mutate_code(source, cosmic_ray.plugins.get_operator(self.name)(), self.nth)
        is_other = changed is not None and _code(changed) not in (None, _code(source))
        return Mutant(self.path, changed) if changed is not None and is_other else None


def sample(room: str, count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of a room, or all where there are fewer, without those that differ in declarations only."""
    places = sorted(place for path in (ROOT / "nsightlens" / room).glob("*.py") for place in replacements(path, seed))
    return first(filter(None, map(Place.mutant, places)), count)


def sample_of_all(count: int, seed: int) -> list[Mutant]:
    """Return mutants of all rooms, one at most of each place; arguments and calls may be removed, too."""
    places: dict[tuple[Path, int, int], Place] = {}
    for path in sorted((ROOT / "nsightlens").rglob("*.py")):
        found: dict[str, list[tuple[int, int]]] = {name: [] for name in _REMOVALS}
        for removal in removals(path.read_text()):
            found[removal.name].append((removal.line, removal.column))
        for place in sorted((*replacements(path, seed), *_drawn(path, seed, found))):
            places.setdefault((path, place.line, place.column), place)
    return first(filter(None, map(Place.mutant, sorted(places.values()))), count)


def first(mutants: Iterable[Mutant], count: int) -> list[Mutant]:
    """Return the first mutants that differ."""
    found: dict[Mutant, None] = {}
    for mutant in mutants:
        found[mutant] = None
        if len(found) == count:
            break
    return list(found)


def replacements(path: Path, seed: int) -> Iterator[Place]:
    """Yield the changes that cosmic-ray has for a file."""
    nodes = list(ast_nodes(get_ast(path.read_text())))
    found = {}
    for name in cosmic_ray.plugins.operator_names():
        operator = cosmic_ray.plugins.get_operator(name)
        if not operator.arguments() and not _SAME.search(name):
            found[name] = [start for node in nodes for start, _ in operator().mutation_positions(node)]
    return _drawn(path, seed, found)


def _drawn(path: Path, seed: int, found: Mapping[str, list[tuple[int, int]]]) -> Iterator[Place]:
    """Yield the places of changes with their lots. found: lines and columns by name."""
    lines = path.read_text().split("\n")
    drawn: Counter[str] = Counter()
    for name, starts in found.items():
        for nth, (line, column) in enumerate(starts):
            code = lines[line - 1].strip()
            place = f"{path.relative_to(ROOT)} {name} {code} {lines[line - 1][:column].lstrip()}"
            drawn[place] += 1
            yield Place(sha256(f"{seed} {drawn[place]} {place}".encode()).hexdigest(), path, line, column, name, nth)


def _code(source: str) -> str | None:
    """Return what a module does; None where it is no Python.

    What is declared is left out: annotations, whether an argument has to be named, what a dataclass forbids.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.arguments):
            node.args, node.posonlyargs, node.kwonlyargs = [*node.posonlyargs, *node.args, *node.kwonlyargs], [], []
            node.defaults, node.kw_defaults = [*node.defaults, *filter(None, node.kw_defaults)], []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dataclass":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("frozen", "slots")]
    return ast.dump(tree)


def recorded(room: str, folder: Path) -> Reach:
    """Run the tests of a room on the code as it is, and return which of them run which line. Exits where one fails."""
    recorder, path = Recorder(ROOT / "nsightlens" / room), folder / "reach.json"

    def record() -> int:
        code = tested(ROOMS[room], recorder, "-x")
        path.write_text(json.dumps(recorder.reach()))
        return code

    if not passes(record, folder):
        raise SystemExit(f"{(folder / OUTPUT).read_text()}\n{room}: its tests fail without a mutant")
    return Reach(*json.loads(path.read_text()))


def survives(mutant: Mutant, tests: Mapping[str, float], blank: Sequence[Path]) -> bool:
    """Return whether the tests pass with the mutant. tests: with the CPU time in s of each. blank: the catalogs to begin with."""
    def meet() -> int:
        signal.alarm(_LONGEST_S)
        sys.meta_path.insert(0, _Mutated(mutant))
        return tested(list(dict.fromkeys(test.partition("::")[0] for test in tests)), Chosen(tests), "-x")

    with own_folder() as folder:
        for catalog in blank:
            shutil.copy(catalog, folder / CACHE)
        return not tests or passes(meet, folder)


def tested(files: Sequence[str], plugin: object, *more: str) -> int:
    """Run tests in this process, which then has imported what they test; return the exit status."""
    import pytest

    options = [*more, "-q", "-m", "not captures", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
    return int(pytest.main([*files, *options], [plugin]))


CACHE, OUTPUT = Path("cache", "nsightlens"), "output.txt"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a folder for what one process writes."""
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as name:
        (Path(name) / CACHE).mkdir(parents=True)
        yield Path(name)


def passes(action: Callable[[], int], folder: Path) -> bool:
    """Return whether an action ends with 0, in a process of its own that writes into the folder: what a mutant puts into a cache,
    or prints, nobody else may read."""
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            os.environ |= {"XDG_CACHE_HOME": str(folder / CACHE.parent), OWN_CACHE: "1", "TMPDIR": str(folder),
                           "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
            tempfile.tempdir = None
            output = os.open(folder / OUTPUT, os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = action()
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def survivors(room: str, count: int, seed: int, jobs: int, argued: str) -> Iterator[tuple[Mutant, int]]:
    """Yield the mutants that the tests of a room do not see, each with the number of tests it met, and print how many died.

    argued: a text that names mutants which are not tried.
    """
    with own_folder() as folder:
        reach = recorded(room, folder)
        drawn = sample(room, count, seed)
        mutants = [mutant for mutant in drawn if str(mutant) not in argued]
        found = 0
        print(f"{room}: {len(drawn)} mutants, {len(drawn) - len(mutants)} of them argued; the tests alone take "
              f"{sum(reach.cpu_s.values()):.0f} s", flush=True)
        blank = list((folder / CACHE).glob("blank-*"))

        def met(mutant: Mutant) -> int | None:
            tests = reach.tests(mutant.path, mutant.line)
            return len(tests) if survives(mutant, tests, blank) else None

        with ThreadPoolExecutor(jobs) as pool:
            for mutant, tests in zip(mutants, pool.map(met, mutants), strict=True):
                if tests is not None:
                    found += 1
                    yield mutant, tests
        print(f"{room}: {len(mutants) - found} of {len(mutants)} killed", flush=True)


def load_dependencies() -> None:
    """Load what every test imports, before a fork."""
    for name in _DEPENDENCIES:
        __import__(name)


def main() -> int:
    """Run the sample of each room, print what survived, and return 1 where something did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--count", type=int, default=100, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--argued", action="store_true", help="try those too that survivors.md argues")
    asked = parser.parse_args()
    os.chdir(ROOT)
    load_dependencies()
    argued = "" if asked.argued else SURVIVORS.read_text(encoding="utf-8")
    survived = 0
    for room in asked.rooms:
        for mutant, tests in survivors(room, asked.count, asked.seed, asked.jobs, argued):
            survived += 1
            print(f"  SURVIVED {tests} tests: {mutant}", flush=True)
    if survived:
        print(f"{survived} survived: write a test that sees each, or argue in {SURVIVORS.relative_to(ROOT)} why none can")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
