"""Two ncu reports: kernels and configurations in pairs, and a first sentence with both times and both limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from nsightlens.cli.compare import command
from nsightlens.diagnosis.counter_difference import Counted, Pair, pairs, sentence
from tests.places import ROOT

NCU = ROOT.parent / "shared" / "data" / "ncu"
RUNS = ("before", "after")


def kernel(key: str, ns: float | None, configuration: str = "1x1x1 of 1x1x1", launches: int = 1, limit: str = "") -> Counted:
    return Counted(key, key, configuration, launches, ns, limit.partition(" (")[0], limit)


def test_a_kernel_that_became_faster_is_said_with_both_times_and_limits() -> None:
    found = pairs([kernel("gemm", 113_700_000, limit="latency (SM 12.0 %)")],
                  [kernel("gemm", 600_000, limit="memory (DRAM 91.0 %)")])
    assert sentence(found, RUNS) == [
        "Under ncu, the kernels take 600.0 µs instead of 113.7 ms (-113.1 ms, -99.5 %): gemm 600.0 µs instead of 113.7 ms, "
        "limited by memory (DRAM 91.0 %) instead of latency (SM 12.0 %)."]


def test_pairs_are_by_kernel_and_configuration_then_by_kernel_then_what_is_left() -> None:
    small, large, larger = "1x1x1 of 64x1x1", "8x1x1 of 64x1x1", "9x1x1 of 64x1x1"
    base = [kernel("a", 10, small), kernel("a", 50, large), kernel("old", 7)]
    other = [kernel("a", 10, small), kernel("a", 40, larger), kernel("new", 9)]
    assert {(pair.base and pair.base.configuration, pair.other and pair.other.configuration, pair.difference)
            for pair in pairs(base, other)} == {(small, small, 0), (large, larger, -10), (base[2].configuration,) * 2 + (2,)}
    lone = pairs(base[:2], other)
    assert [pair.other.key for pair in lone if pair.base is None and pair.other] == ["new"]


def test_where_more_launches_were_measured_one_launch_of_each_kernel_is_compared() -> None:
    (said,) = sentence(pairs([kernel("a", 100, launches=3)], [kernel("a", 90, launches=7)]), RUNS)
    assert said.startswith("Under ncu, one launch of each kernel takes 90 instead of 100 ns")


def test_a_report_against_itself_and_the_other_way_round() -> None:
    base, other = [kernel("a", 10), kernel("b", 20)], [kernel("a", 15), kernel("c", 3)]
    assert {pair.difference for pair in pairs(base, base)} == {0}
    assert sentence(pairs(base, base), RUNS) == ["Under ncu, the kernels take 30 ns in both; no kernel changed."]
    there, back = pairs(base, other), pairs(other, base)
    assert {(pair.base, pair.other) for pair in there} == {(pair.other, pair.base) for pair in back}


def test_times_that_are_not_known_are_not_compared() -> None:
    assert sentence([Pair(kernel("a", None), kernel("a", 5))], RUNS)[0].startswith("ncu recorded no times in one of the two")


@pytest.mark.captures
@pytest.mark.skipif(not NCU.is_dir(), reason="the real captures are not here")
def test_two_real_reports() -> None:
    naive, tiled = (NCU / f"Olajide-Badejo__GPU-Roofline-Profiler__gemm_{name}.csv" for name in ("naive", "tiled"))
    page = _page(naive, tiled)
    assert "10.20 instead of 9.589 ms (+606.3 µs, +6.3 %)" in page and "naive tiled difference" in page


def _page(*captures: Path) -> str:
    done = CliRunner().invoke(command, list(map(str, captures)), env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())
