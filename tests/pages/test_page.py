"""What a page of many rows shows: the odd ones first, and how the others spread."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.pages.page import Renderer
from nsightlens.pages.section import PARAGRAPH, Line, Section, more, outliers, spread
from nsightlens.terminal.command import Command
from nsightlens.views.figures import share
from tests.captures import kineto
from tests.cli.command_line import run
from tests.conftest import Shared

RANKS = 40


@pytest.fixture(scope="module")
def store(shared: Shared) -> Path:
    """40 ranks that compute for some 10 µs in front of each of five all-reduces, but rank 23, which takes 90 µs."""
    def make(folder: Path) -> None:
        for rank in range(RANKS):
            length = 90.0 if rank == 23 else 10.0 + rank % 3
            kernels = [one for begin in range(1000, 2000, 200) for one in (
                ("gemm_kernel", begin, length), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + length, 95.0 - length))]
            kineto(folder / "job" / f"rank{rank}.json", kernels, rank=rank, pid=100 + rank, host=f"node{rank}", world_size=RANKS)
        nl.ingest(folder / "job", store=folder / "store", jobs=1).close()

    return shared("forty", make) / "store"


def test_few_rows_stand_in_their_order_and_of_many_the_odd_ones() -> None:
    assert outliers([3, 1, 2], float, 3) == [3, 1, 2]
    assert outliers([10, 11, 50, 10, 2, 11], float, 2) == [50, 2]
    assert outliers([None, 10, 11, 30], lambda value: value, 2) == [30, 10]
    assert outliers([None, None, None], lambda value: value, 2) == [None, None]


def test_the_histogram_reaches_from_the_least_to_the_most() -> None:
    assert spread([1.0, 1.0, 1.0, 9.0, None], share) == "1.0 % █··············▃ 9.0 %, median 1.0 %"
    assert spread([2.0, 2.0], share) == "all 2.0 %"
    assert spread([None], share) == "–"


def test_what_is_left_out_is_counted() -> None:
    assert more(0, "busy_time", "idle all 0 ns") == ()
    section = Section(lines=more(1200, "busy_time", "idle all 0 ns"))
    assert section.commands == (Command("show", ("busy_time",)),)
    assert Renderer().drawn([section]) == ["  … 1,200 more: idle all 0 ns: nsightlens show busy_time"]


@pytest.mark.parametrize(("command", "section", "left_out"), [
    (["summary"], "Communication", "32 more: exposed 25.00 µs "),
    (["compare", "ranks"], "Stragglers", "30 more: waited itself 0 ns "),
])
def test_of_forty_ranks_the_odd_one_comes_first(store: Path, command: list[str], section: str, left_out: str) -> None:
    done = run(*command, "--store", store)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(section))
    assert lines[start + 2].split()[0] == "23"
    assert left_out in done.stdout
    assert all(len(line) <= 120 for line in lines)


@pytest.mark.parametrize("width", range(40, 70))
def test_a_figure_and_its_unit_stand_on_one_line(width: int) -> None:
    text = "Ranks 0-1: copies not hidden (HtoD 100 %, 8.0 GB/s): 1.500 s of 6.000 ms each, 25.0 % of 30.0 µs."
    every = "\n".join(Renderer(width=width).drawn([Section(lines=(Line(text, PARAGRAPH),))])).splitlines()
    assert len(every) > 1 and not any(line[-1].isdigit() for line in every)
