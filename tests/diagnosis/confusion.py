"""What is said of simulated jobs with known faults: the confusion table of docs/limits.md.

    make confusion CAPTURES=750        (or: python -m tests.diagnosis.confusion --captures 750 --first 0)

A job is simulated with its faults and, by the same random numbers, without: the gain of curing one is by how much shorter the
judged window is then. All that is judged is read from files.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import nsightlens as nl
from tests.places import ROOT

sys.path.insert(0, str(ROOT / "fixtures"))
generator = importlib.import_module("make_simulated_ddp")
fault = importlib.import_module("simulated.fault")
Fault, Knobs = fault.Fault, importlib.import_module("simulated.knobs").Knobs

Sums = dict[tuple[str, ...], int]
_THROTTLING = "throttling"
_WORTH_PCT, _HEALTHY_PCT = 5, 1
_EXACT = (10, 0.5)
_AT_ONCE = 8
_NO_FALSE = ("late rank", "clock", "slow step", "link")


@dataclass(frozen=True)
class Kind:
    """How a fault is read.

    causes: of findings that name it; words: what else does, in a sentence or a subject. low, high: its amount in a tree, the
    same but for what is known as a range only; within_pct: how far it may lie off, of the gain and of the window.
    """

    causes: tuple[str, ...]
    words: str
    low: Callable[[Any], int]
    high: Callable[[Any], int] | None = None
    within_pct: tuple[float, float] = _EXACT


@dataclass(frozen=True)
class Reading:
    """What is said of a capture: the rows of the verdict, all findings, the ns of each node of its trees, the steps judged."""

    rows: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    nodes: Sums
    steps: int
    window_ns: int
    ranks: int

    def of(self, *path: str) -> int:
        """Return the ns of a node in all trees."""
        return self.nodes.get(path, 0)

    def named(self, pattern: str) -> int:
        """Return the ns of the leaves of idle time that have such a name."""
        return sum(ns for path, ns in self.nodes.items() if path[0] == "idle" and len(path) == 3 and re.search(pattern, path[2]))

    def found(self, pattern: str) -> int:
        """Return the ns of the findings with such a subject."""
        return sum(row["total_ns"] for row in self.findings if re.search(pattern, row["subject"] or ""))

    def of_cause(self, cause: str) -> int:
        """Return the ns of the findings of a cause."""
        return sum(row["total_ns"] for row in self.findings if row["cause"] == cause)

    def won(self) -> int:
        """Return what late ranks would win on time, in all windows."""
        return sum(self.ranks * row["winnable_ns"] for row in self.rows if row["winnable_ns"])


NOTHING = Reading([], [], {}, 0, 0, 0)
_LATE = Kind(("late rank",), r"late ranks? {rank}\b", Reading.won)
_COMMUNICATION = Kind(("communication",), "exposed communication", lambda found: found.of("communication"))
KINDS: dict[str, Kind] = {
    fault.LOADER: Kind(("data loader",), "data loader", lambda found: found.of("idle", "data loader")),
    fault.PAGEABLE: Kind(("copies",), "copies", lambda found: found.of("copies")),
    fault.ALLOCATION: Kind((), "cudaMalloc|cudaFree", lambda found: found.found("cudaMalloc|cudaFree")),
    fault.OVERHEAD: Kind(("profiler",), "profiler", lambda found: found.of_cause("profiler")),
    fault.FP32: Kind(("FP32",), "FP32", lambda found: found.of("computing")),
    fault.UNFUSED: Kind(("launching", "operators"), "while the host launches|in operators|between kernels",
                        lambda found: found.of("idle") + found.of("computing")),
    fault.SLOW_STEP: Kind((), "save_checkpoint", lambda found: found.named("save_checkpoint")),
    fault.BUCKET: _COMMUNICATION,
    fault.SLOW_LINK: _COMMUNICATION,
    fault.SLOW_GPU: _LATE,
    fault.LATE_HOST: replace(_LATE, within_pct=(20, 0.5)),
    _THROTTLING: replace(_LATE, high=lambda found: int(1.3 * found.won())),
    fault.ITEM: Kind((), "Synchronize|aten::item|_local_scalar_dense", lambda found: found.found("Synchronize"),
                     lambda found: found.of("idle") + found.of("copies")),
    fault.TENSOR_PARALLEL: replace(_COMMUNICATION, high=lambda found: found.of("communication") + found.of("idle")),
    fault.STAGE: replace(_LATE, words=r"late ranks? {rank}\b|exposed communication", causes=("late rank", "communication"),
                         low=lambda found: found.of("communication"), high=lambda found: int(3.1 * found.of("communication"))),
}
_ALIKE = ({fault.BUCKET, fault.SLOW_LINK, fault.TENSOR_PARALLEL}, {fault.SLOW_GPU, fault.LATE_HOST, _THROTTLING})
"""Faults that are one cause in a tree: no pair is made of them."""


@dataclass
class Job:
    """A simulated job under one tool, with or without faults."""

    knobs: Any
    tool: str
    reading: Reading = NOTHING
    """What is said of its files, once they are read."""

    @cached_property
    def ends(self) -> list[list[int]]:
        """The GPU end of each step, by rank."""
        return [_ends(record) for record in self.records]

    @cached_property
    def records(self) -> list[Any]:
        """What truly happened, by rank."""
        records: list[Any] = generator.execute(self.tool, self.knobs, generator.job(self.knobs))
        return records

    def window(self, steps: int) -> int:
        """Return how long the last steps take, of all ranks."""
        return sum(ends[-1] - ends[-1 - steps] for ends in self.ends)

    def without(self, *kinds: str) -> Job:
        """Return the same job without some of its faults."""
        return self.with_faults(each for each in self.knobs.faults if _kind(each) not in kinds)

    def with_faults(self, faults: Iterable[Any]) -> Job:
        """Return the same job with other faults."""
        return Job(replace(self.knobs, faults=tuple(faults)), self.tool)


def _ends(record: Any) -> list[int]:
    ends: dict[int, int] = defaultdict(int)
    for done in record.work:
        if done.work.step is not None and not done.lost:
            ends[done.work.step] = max(ends[done.work.step], done.end)
    return [ends[step] for step in sorted(ends)]


def read(jobs: list[Job]) -> None:
    """Read the files of jobs, each a run of one store."""
    with tempfile.TemporaryDirectory() as name:
        for number, each in enumerate(jobs):
            run = f"job{number:03d}"
            generator.timelines(Path(name) / "runs" / run, each.tool, replace(each.knobs, run=run))
        with nl.ingest(Path(name) / "runs", store=Path(name) / "store", jobs=1) as store:
            views = [store.view(view).to_pylist() for view in ("verdict", "findings", "time_tree")]
    for number, each in enumerate(jobs):
        run = f"job{number:03d}"
        each.reading = reading(*([row for row in view if row["run"] == run] for view in views))


def reading(rows: list[dict[str, Any]], findings: list[dict[str, Any]], tree: Iterable[dict[str, Any]]) -> Reading:
    """Return what is said, from the rows of the views verdict, findings and time_tree."""
    nodes: Sums = defaultdict(int)
    paths: dict[tuple[Any, int], tuple[str, ...]] = {}
    steps, window, ranks = [], 0, 0
    for row in tree:
        if row["node"] == "window" and row["depth"] == 0:
            steps.append(row["count"] or 0)
            window, ranks = window + row["total_ns"], ranks + 1
            continue
        path = (*paths.get((row["profile_id"], row["parent_index"]), ()), row["node"])
        paths[row["profile_id"], row["row_index"]] = path
        nodes[path] += row["total_ns"]
    return Reading([row for row in rows if row["kind"] != "condition"], findings, dict(nodes), min(steps), window, ranks)


def _kind(planted: Any) -> str:
    return _THROTTLING if planted.kind == fault.SLOW_GPU and planted.step else str(planted.kind)


def job(seed: int) -> Job:
    """Return a healthy job."""
    rng = random.Random(f"job {seed}")
    tool = rng.choice(("nsys", "kineto"))
    knobs = Knobs(
        seed=seed, world_size=rng.choice((2, 2, 4)), batch=rng.choice((64, 128, 256)), steps=7, evaluate_after=(), late=(),
        stages=(("layer1", rng.choice((128, 192, 256)), 1),), blocks=1, buckets=(1 << 19, rng.choice((1 << 20, 25 << 20))),
        pixel_bytes=rng.choice((1, 2)), logs=rng.random() < 0.85, network_bytes_per_ns=rng.choice((2.0, 4.0, 8.0)),
        jitter=rng.choice((0.01, 0.03, 0.05)), dropped=0.0, swapped=0, sidecar_missing=())
    return Job(knobs, tool)


def planted(healthy: Job, kind: str, rng: random.Random) -> Any:
    """Return a fault of that kind, of a size that may be worth something to the job."""
    steps = healthy.knobs.steps - 1
    step_ns = healthy.window(steps) / steps / healthy.knobs.world_size
    share = 0.05 * 10 ** rng.random()
    rank = rng.randrange(healthy.knobs.world_size)
    size: float = share * step_ns
    if kind == fault.SLOW_STEP:
        return Fault(kind, size * steps, step=rng.randrange(3, steps))
    if kind == fault.STAGE:
        return Fault(kind, 1 + 5 * share, rank)
    if kind in (fault.SLOW_GPU, _THROTTLING):
        return Fault(fault.SLOW_GPU, 1 + 2 * share, rank, rng.randrange(4, 6) if kind == _THROTTLING else 0)
    if kind in (fault.PAGEABLE, fault.SLOW_LINK):
        size = rng.uniform(2, 8)
    elif kind == fault.OVERHEAD:
        size *= 2
    elif kind == fault.FP32:
        size = rng.randrange(1, 3)
    elif kind == fault.UNFUSED:
        size = 20 + size // 14_000
    elif kind == fault.ITEM:
        size = rng.randrange(30, 200)
    elif kind == fault.TENSOR_PARALLEL:
        size = rng.randrange(1, 4)
    elif kind == fault.BUCKET:
        size *= healthy.knobs.network_bytes_per_ns / 4
    return Fault(kind, size, rank)


def place(said: Reading, which: Any) -> int | None:
    """Return where a fault is named: the place of its finding, after all of them if in the sentence alone; None if nowhere."""
    kind = KINDS[_kind(which)]
    pattern = re.compile(kind.words.replace("{rank}", str(which.rank)))
    sentence, *findings = said.rows
    for row in findings:
        is_rank = row["cause"] != "late rank" or row["subject"] == str(which.rank)
        if is_rank and (row["cause"] in kind.causes or pattern.search(row["subject"] or "")):
            return int(row["place"])
    return len(findings) + 1 if pattern.search(sentence["text"]) else None


def amounts(faulty: Job, healthy: Job, kind: str) -> tuple[int, int]:
    """Return by how much more of a cause is read with the fault than without: least and most."""
    how = KINDS[kind]
    low, high = how.low, how.high or how.low
    ends = sorted(amount(faulty.reading) - amount(healthy.reading) for amount in (low, high))
    return ends[0], ends[1]


def is_right(low: int, high: int, gain: int, window: int, within_pct: tuple[float, float]) -> bool:
    """Return whether an amount, or a range, holds a gain."""
    off = max(low - gain, gain - high, 0)
    return 100 * off <= max(within_pct[0] * gain, within_pct[1] * window)


@dataclass
class Row:
    """A line of the table: of how many jobs, in how many the fault is worth finding, named, and of the right amount."""

    jobs: int = 0
    worth: int = 0
    named: int = 0
    right: int = 0


@dataclass
class Table:
    """All that was counted."""

    kinds: dict[str, Row]
    pairs: Row
    healthy: int = 0
    false: int = 0


@dataclass
class Case:
    """A healthy job, the same with one fault, and with two where there is a pair."""

    healthy: Job
    one: Job
    two: Job | None

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs of which files are read."""
        yield from (each for each in (self.healthy, self.one, self.two) if each)


def case(number: int) -> Case:
    """Return a case; the kinds of faults take turns."""
    rng, kinds = random.Random(f"fault {number}"), list(KINDS)
    kind = kinds[number % len(kinds)]
    healthy = job(number)
    if kind == fault.TENSOR_PARALLEL:
        healthy = Job(replace(healthy.knobs, world_size=4), "kineto")
    if kind == fault.STAGE:
        healthy = Job(replace(healthy.knobs, world_size=4, microbatches=4, batch=healthy.knobs.batch // 4), "kineto")
    one = planted(healthy, kind, rng)
    others = [each for each in kinds if each not in (kind, fault.TENSOR_PARALLEL, fault.STAGE)
              and not any({kind, each} <= alike for alike in _ALIKE)]
    is_pair = number % len(kinds) % 2 != number // len(kinds) % 2
    two = healthy.with_faults((one, planted(healthy, rng.choice(others), rng))) if is_pair else None
    return Case(healthy, healthy.with_faults((one,)), two)


def count(healthy: Job, faulty: Job, table: Table) -> str:
    """Count a job with one fault; return what is said if it is not read rightly, else ''."""
    which, = faulty.knobs.faults
    kind, said = _kind(which), faulty.reading
    steps = min(said.steps, healthy.reading.steps)
    gain = faulty.window(steps) - healthy.window(steps)
    row = table.kinds[kind]
    row.jobs += 1
    if 100 * gain < _WORTH_PCT * said.window_ns:
        return ""
    row.worth += 1
    is_named = place(said, which) is not None
    low, high = amounts(faulty, healthy, kind)
    is_it = is_right(low, high, gain, said.window_ns, KINDS[kind].within_pct)
    row.named += is_named
    row.right += is_it
    if is_named and is_it:
        return ""
    return (f"{kind} {which.size:.4g} {_of(faulty)}: {'named' if is_named else 'NOT NAMED'}, gain {gain / 1e6:.3f}, read "
            f"{low / 1e6:.3f} to {high / 1e6:.3f}; {_said(said)}")


def _count_pair(faulty: Job, table: Table) -> str:
    said, both = faulty.reading, faulty.knobs.faults
    gains = [faulty.window(said.steps) - faulty.without(_kind(each)).window(said.steps) for each in both]
    larger, smaller = sorted((0, 1), key=lambda which: -gains[which])
    table.pairs.jobs += 1
    if 100 * gains[smaller] < _WORTH_PCT * said.window_ns or 10 * gains[smaller] > 9 * gains[larger]:
        return ""
    table.pairs.worth += 1
    first, second = place(said, both[larger]), place(said, both[smaller])
    table.pairs.named += first is not None and second is not None
    is_it = first is not None and (second is None or first < second)
    table.pairs.right += is_it
    return "" if is_it else (f"pair {_kind(both[larger])} {gains[larger] / 1e6:.3f}, {_kind(both[smaller])} "
                             f"{gains[smaller] / 1e6:.3f} {_of(faulty)}: {_said(said)}")


def _count_healthy(healthy: Job, table: Table) -> str:
    said = healthy.reading
    even = Job(replace(healthy.knobs, even=True), healthy.tool)
    if 100 * (healthy.window(said.steps) - even.window(said.steps)) >= _HEALTHY_PCT * said.window_ns:
        return ""
    table.healthy += 1
    is_false = any(row["cause"] in _NO_FALSE for row in said.rows)
    table.false += is_false
    return f"healthy {_of(healthy)}: {_said(said)}" if is_false else ""


def _of(which: Job) -> str:
    return (f"seed {which.knobs.seed} {which.tool} {which.knobs.world_size} ranks batch {which.knobs.batch} of "
            f"{which.reading.window_ns / 1e6:.3f} ms")


def _said(said: Reading) -> str:
    return " | ".join(row["text"] for row in said.rows)


def confusion(captures: int, first: int = 0, tell: Callable[[str], object] = lambda line: None) -> Table:
    """Return the counts over so many captures: in five, two healthy jobs, both with one fault, one with two."""
    table = Table({kind: Row() for kind in KINDS}, Row())
    numbers = range(first, first + captures * 2 // 5)
    for begin in range(0, len(numbers), _AT_ONCE):
        cases = [case(number) for number in numbers[begin:begin + _AT_ONCE]]
        read([each for those in cases for each in those.jobs()])
        for those in cases:
            wrong = [count(those.healthy, those.one, table), _count_healthy(those.healthy, table)]
            wrong += [_count_pair(those.two, table)] if those.two else []
            for line in filter(None, wrong):
                tell(line)
    return table


def markdown(table: Table) -> Iterator[str]:
    """Yield the table as Markdown."""
    yield "| fault | jobs | curing gains 5 % or more | named | amount right |"
    yield "|---|---|---|---|---|"
    for kind, row in (*table.kinds.items(), ("two at once: in the right order", table.pairs)):
        yield f"| {kind} | {row.jobs} | {row.worth} | {row.named} | {row.right} |"
    yield ""
    yield f"Of {table.healthy} healthy jobs, {table.false} had a late rank, clock, slow step or link named."


def main() -> None:
    """Print the table, and before it each job that is not read rightly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=int, default=600)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    for line in markdown(confusion(options.captures, options.first, lambda text: print(text, file=sys.stderr))):
        print(line)


if __name__ == "__main__":
    main()
