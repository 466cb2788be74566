"""Draw mutants of all rooms, and count which share of them the quick tests kill, and which all tests do. `make test-mutants`.

A fixed seed draws them from the code as it is; arguments and calls are removed, too (removals.py). Each mutant meets the tests
that run what it changes, the quick ones first, until one fails: how they are run is in run.py. What is known is kept in a folder
of the state, by the code and the tests that it is of: a campaign goes on where it stopped. The shares stand in shares.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tests.mutants import run
from tests.mutants.reach import Recorder
from tests.mutants.run import Mutant
from tests.places import ROOT

SHARES = Path(__file__).with_name("shares.md")
_LEFT_OUT = {"long", "browser", "workloads", "launchers", "fuzz", "published", "peers"}
"""Folders whose tests run programs, or that hold none."""
_BATCH_S = 60
"""CPU time of the tests that a mutant meets in one process: to collect more than the first failure needs costs time."""
_TITLE = """# What share of the mutants the tests kill

`make test-mutants` draws {count} changes of all rooms (seed {seed}) from the code as it is, among them calls and arguments left
out, and runs the tests that reach each one: first those of `make test`, then the slow ones. {tried} of them were tried.

| room | mutants | killed by quick tests | by all |
|---|---|---|---|
"""


class Met(NamedTuple):
    """What became of a mutant: by which tests it was killed ("quick", "slow"; "" for none), and how many it could meet."""

    mutant: str
    killed: str
    tests: int


class State:
    """What is known of the mutants of one state of code and tests."""

    def __init__(self, root: Path, count: int, seed: int) -> None:
        """Draw the mutants where they are not known."""
        files = sorted(path for name in ("nsightlens", "tests") for path in (ROOT / name).rglob("*.py"))
        of = sha256("\0".join([str(count), str(seed), *(path.read_text() for path in files)]).encode()).hexdigest()[:12]
        self.folder = root / of
        self.folder.mkdir(parents=True, exist_ok=True)
        drawn = self.folder / "mutants.json"
        if not drawn.exists():
            found = run.sample_of_all(count, seed)
            _write(drawn, [[str(one.path.relative_to(ROOT)), one.source] for one in found])
        self.mutants = [Mutant(ROOT / path, source) for path, source in json.loads(drawn.read_text())]
        self._met = self.folder / "met.jsonl"

    def met(self) -> dict[str, Met]:
        """Return what became of the mutants that were tried, by their names."""
        lines = self._met.read_text().splitlines() if self._met.exists() else []
        found = (Met(*json.loads(line)) for line in lines)
        return {one.mutant: one for one in found}

    def note(self, met: Met) -> None:
        """Keep what became of a mutant."""
        with self._met.open("a") as file:
            file.write(json.dumps(met) + "\n")

    def record(self) -> None:
        """Find out which tests run what the mutants change, a folder of tests after another."""
        for name, files in _folders().items():
            place = self.folder / f"reach-{name}.json"
            if not place.exists():
                with run.own_folder() as folder:
                    self._record(files, place, folder)
                print(f"recorded {name}", flush=True)

    def _record(self, files: Sequence[str], place: Path, folder: Path) -> None:
        recorder = Recorder(ROOT / "nsightlens")

        def record() -> int:
            run.tested(files, recorder)
            reach = recorder.reach()
            tests = [reach.tests(one.path, one.line) for one in self.mutants]
            _write(place, {"slow": reach.slow, "tests": tests})
            return 0

        if not run.passes(record, folder):
            raise SystemExit(f"{(folder / run.OUTPUT).read_text()[-2000:]}\n{place.stem}: not recorded")
        for catalog in (folder / run.CACHE).glob("blank-*"):
            shutil.copy(catalog, self.folder)

    def reach(self) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
        """Yield for each mutant its quick and its slow tests, with their CPU times."""
        known = [json.loads(path.read_text()) for path in sorted(self.folder.glob("reach-*.json"))]
        slow = {test for one in known for test in one["slow"]}
        for number in range(len(self.mutants)):
            tests = {test: cpu_s for one in known for test, cpu_s in one["tests"][number].items()}
            yield ({test: cpu_s for test, cpu_s in tests.items() if test not in slow},
                   {test: cpu_s for test, cpu_s in tests.items() if test in slow})

    def meet(self, mutant: Mutant, quick: dict[str, float], slow: dict[str, float]) -> Met:
        """Let a mutant meet its tests, until one fails."""
        blank = list(self.folder.glob("blank-*"))
        for name, tests in (("quick", quick), ("slow", slow)):
            if not all(run.survives(mutant, some, blank) for some in _batches(mutant, tests)):
                return Met(str(mutant), name, len(quick) + len(slow))
        return Met(str(mutant), "", len(quick) + len(slow))


def _folders() -> dict[str, list[str]]:
    """Return the files of tests by their folder."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.relative_to(ROOT / "tests").parts[0] if path.parent != ROOT / "tests" else "tests"
        if folder not in _LEFT_OUT:
            found.setdefault(folder, []).append(str(path.relative_to(ROOT)))
    return found


def _batches(mutant: Mutant, tests: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield the tests, file by file: that which is named like the module first, then the quick ones."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)

    def late(file: str) -> tuple[bool, float]:
        return mutant.path.stem.strip("_") not in Path(file).stem, sum(tests[test] for test in files[file])

    batch: dict[str, float] = {}
    for file in sorted(files, key=late):
        batch |= {test: tests[test] for test in sorted(files[file], key=tests.__getitem__)}
        if sum(batch.values()) > _BATCH_S:
            yield batch
            batch = {}
    if batch:
        yield batch


def page(mutants: Sequence[Mutant], met: Mapping[str, Met], seed: int) -> str:
    """Return what shares.md holds."""
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        if str(mutant) in met:
            room = mutant.path.relative_to(ROOT / "nsightlens").parts[0].removesuffix(".py")
            for name in (room, "**all**"):
                counts.setdefault(name, Counter())[met[str(mutant)].killed] += 1
    rows = []
    for room in sorted(counts, key=lambda room: (room == "**all**", room)):
        quick, total = counts[room]["quick"], counts[room].total()
        rows.append(f"| {room} | {total} | {quick} ({100 * quick / total:.1f} %) | "
                    f"{quick + counts[room]['slow']} ({100 * (quick + counts[room]['slow']) / total:.1f} %) |\n")
    lines = [_TITLE.format(count=len(mutants), seed=seed, tried=len(met)), *rows]
    for title, killed in (("Killed by slow tests only", "slow"), ("Not killed", "")):
        some = [one for one in map(str, mutants) if one in met and met[one].killed == killed]
        lines += [f"\n## {title}\n\n", *(f"- {one} ({met[one].tests} tests)\n" for one in some)] if some else []
    return "".join(lines)


def _write(path: Path, content: object) -> None:
    """Write JSON, whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content))
    draft.replace(path)


def main() -> None:
    """Go on with a campaign until all its mutants are tried, and write the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--state", type=Path, default=ROOT / "mutants-state", help="folder of what is known")
    asked = parser.parse_args()
    os.chdir(ROOT)
    run.load_dependencies()
    state = State(asked.state.absolute(), asked.count, asked.seed)
    state.record()
    met = state.met()
    waiting = [(mutant, *tests) for mutant, tests in zip(state.mutants, state.reach(), strict=True) if str(mutant) not in met]
    with ThreadPoolExecutor(asked.jobs) as pool:
        for found in pool.map(lambda one: state.meet(*one), waiting):
            state.note(found)
            outcome = f"killed by {found.killed} tests" if found.killed else "SURVIVED"
            print(f"{outcome}, {found.tests} in all: {found.mutant}", flush=True)
            SHARES.write_text(page(state.mutants, state.met(), asked.seed), encoding="utf-8")


if __name__ == "__main__":
    main()
