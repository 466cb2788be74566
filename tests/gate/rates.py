"""How often `nsightlens check` errs and decides, by simulation: the table of docs/ci.md.

    make check-rates COMPARISONS=2000       (or: python -m tests.gate.rates --comparisons 2000 --write)

Recordings are simulated step by step (run-to-run and step variance, autocorrelation, warm-up, outliers, slow steps, a slow rank,
nodes); their figures and the verdict are those of the package. The gate has three questions: step time, slow steps, one family.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from nsightlens.diagnosis.window import leading
from nsightlens.gate.questions import OK, SLOWER, UNDECIDED, answer, overall, questions
from nsightlens.gate.recordings import Recording
from nsightlens.statistics.gating import slow_share, trimmed_mean
from tests.places import ROOT

PAGE = ROOT / "docs" / "ci.md"
_BLOCK = re.compile(r"(?<=<!-- check-rates -->\n).*?(?=<!-- end -->)", re.DOTALL)
SPREADS = (0.005, 0.01, 0.02)
_STEP_NS, _STEPS, _OF_STEPS, _FAMILY = 10e6, 1000, 0.02, "gemm"
_SHAPES = 2000


@dataclass(frozen=True)
class Row:
    """What is simulated. change: of the candidate's step time, true; limit: in percent. varies: how much more the candidate does.

    nodes: how many, 0: not known; tripled: share of steps three times as long, on both sides; every: each so many steps of the
    candidate takes three times as long; ranks: of which the candidate has one that is `change` slower; looks: how often
    recordings are added while it is undecided; corrects: whether --look says so.
    """

    name: str
    counts: tuple[int, int]
    change: float = 0.0
    limit: float = 3.0
    correlated: float = 0.5
    varies: float = 1.0
    nodes: int = 0
    tripled: float = 0.0
    every: int = 0
    ranks: int = 1
    looks: int = 1
    corrects: bool = False


def _pairs(name: str, counts: Sequence[tuple[int, int]], change: float = 0.0, limit: float = 3.0) -> list[Row]:
    return [Row(name, pair, change, limit) for pair in counts]


USUAL = ((3, 3), (5, 5), (10, 3), (10, 10))
ROWS = (
    *_pairs("no change, limit 3 %", (*USUAL, (10, 1))),
    *_pairs("3 % slower, limit 1.5 %", USUAL, 0.03, 1.5),
    *_pairs("3 % slower, limit 3 %", USUAL, 0.03),
    Row("no change, steps correlated by 0.9", (5, 5), correlated=0.9),
    Row("no change, 1 % of steps take three times as long", (5, 5), tripled=0.01),
    Row("every tenth step takes three times as long", (5, 5), every=10),
    Row("one rank of eight is 6 % slower", (5, 5), 0.06, ranks=8),
    *(Row("3 % slower, limit 3 %, the candidate varies four times as much", pair, 0.03, varies=4) for pair in USUAL),
    Row("no change, on the same five nodes, which differ by 1 %", (5, 5), nodes=5),
    Row("3 % slower, limit 3 %, recordings added up to three times", (3, 3), 0.03, looks=4),
    Row("the same with --look", (3, 3), 0.03, looks=4, corrects=True),
)


def rates(row: Row, spread: float, comparisons: int) -> dict[str, float]:
    """Return how often each verdict falls, in percent."""
    random = np.random.default_rng(abs(hash((row.counts, spread, row.change, row.limit, len(row.name)))) % 2**32)
    found = {OK: 0, SLOWER: 0, UNDECIDED: 0}
    for _ in range(comparisons):
        found[_verdict(row, spread, random)] += 1
    return {verdict: 100 * count / comparisons for verdict, count in found.items()}


def _verdict(row: Row, spread: float, random: np.random.Generator) -> str:
    nodes = random.normal(0, 0.01, row.nodes)
    sides: tuple[list[Recording], list[Recording]] = ([], [])
    verdict = UNDECIDED
    for look in range(1, row.looks + 1):
        for side, count in zip(sides, row.counts, strict=True):
            side += [_recording(row, spread, random, nodes, len(side) + k, is_candidate=side is sides[1]) for k in range(count)]
        asked = questions(row.limit, 1.0, {_FAMILY: row.limit}, sides[0])
        verdict = overall([answer(each, sides, len(asked), look if row.corrects else None) for each in asked])
        if verdict != UNDECIDED:
            break
    return verdict


def _recording(
    row: Row, spread: float, random: np.random.Generator, nodes: np.ndarray[tuple[int], np.dtype[np.float64]], number: int, *,
    is_candidate: bool,
) -> Recording:
    sd = spread * (row.varies if is_candidate else 1)
    node = number % row.nodes if row.nodes else None
    level = random.normal(0, sd) + (nodes[node] if node is not None else 0)
    slowest = np.exp(np.log1p(row.change)) if is_candidate and row.ranks > 1 else 1.0
    shapes = _shapes(row.correlated, row.tripled, row.every if is_candidate else 0, row.ranks, float(slowest))
    shape = shapes[random.integers(len(shapes))]
    longer = float(np.exp(level + (np.log1p(row.change) if is_candidate and row.ranks == 1 else 0)))
    family = 0.5 * _STEP_NS * float(np.exp(level + random.normal(0, 0.001)))
    return replace(shape, number=number, node=None if node is None else str(node), mean_ns=longer * shape.mean_ns,
                   trimmed_ns=longer * shape.trimmed_ns, families={_FAMILY: family}, kernels={"k": family})


@cache
def _shapes(correlated: float, tripled: float, every: int, ranks: int, slowest: float) -> list[Recording]:
    """Return recordings of one kind at the mean level, to be drawn from: all steps of a recording grow with its level alike."""
    random = np.random.default_rng(11)
    return [_shape(random, correlated, tripled, every, ranks, slowest) for _ in range(_SHAPES)]


def _shape(
    random: np.random.Generator, correlated: float, tripled: float, every: int, ranks: int, slowest: float,
) -> Recording:
    steps = _STEP_NS * np.exp(_noise(random, correlated))
    if ranks > 1:  # ranks meet at the end of each step: the slowest makes it
        steps *= np.maximum(slowest, np.exp(random.normal(0, 0.001, (ranks - 1, len(steps)))).max(axis=0))
    steps[random.random(len(steps)) < tripled] *= 3
    if every:
        steps[::every] *= 3
    steps[:3] *= (5, 2, 1.5)
    dropped = leading(steps[1:].astype(np.int64)) + 1
    steady = steps[dropped:]
    return Recording("simulated", "kineto", 0, None, None, len(steady), dropped, float(steady.mean()),
                     trimmed_mean(steady.tolist()), slow_share(steady.tolist()))


def _noise(random: np.random.Generator, correlated: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the deviations of steps, each correlated with the one before it."""
    from scipy.signal import lfilter

    fresh = random.normal(0, _OF_STEPS * (1 - correlated**2) ** 0.5, _STEPS)
    fresh[0] = random.normal(0, _OF_STEPS)
    return np.asarray(lfilter([1.0], [1.0, -correlated], fresh))


def table(comparisons: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| truth, with runs that vary by 0.5 / 1 / 2 % | recordings | *slower*, % | *ok*, % |"
    yield "|---|---|---|---|"
    for row in ROWS:
        found = [rates(row, spread, comparisons) for spread in SPREADS]
        slower, ok = (" / ".join(f"{each[verdict]:.1f}" for each in found) for verdict in (SLOWER, OK))
        yield f"| {row.name} | {row.counts[0]} and {row.counts[1]} | {slower} | {ok} |"


def main() -> None:
    """Print the table, and put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--write", action="store_true", help="put it into docs/ci.md")
    options = parser.parse_args()
    lines = []
    for line in table(options.comparisons):
        print(line, file=sys.stdout, flush=True)
        lines.append(line)
    if options.write:
        PAGE.write_text(_BLOCK.sub("\n".join(lines) + "\n", PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
