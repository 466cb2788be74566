"""tool_agreement and profiler_overhead on the simulated job, whose true durations and differences are known."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.fixtures.simulated_run import truth

Configuration = tuple[Any, ...]


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.fixture(scope="module")
def agreement(store: Store) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = store.view("tool_agreement").to_pylist()
    return rows


def _figures(tool: str) -> list[tuple[int, float, int]]:
    """Return (launches, median, registers) per true kernel, rank, grid and block that the tool recorded."""
    durations: dict[Configuration, list[int]] = defaultdict(list)
    for row in truth("launches.tsv.gz"):
        if row[f"in_{tool}"] == "1":
            kernel = row["ncu_kernel"] if tool == "ncu" else row["kernel"]
            key = (row["rank"], kernel, row["grid"] if kernel == row["kernel"] else "other", row["block"], int(row["registers"]))
            durations[key].append(int(row[f"{tool}_duration_ns"]))
    return sorted((len(values), float(median(values)), key[-1]) for key, values in durations.items())


@pytest.mark.parametrize("tool", ["nsys", "kineto"])
def test_each_tool_stands_with_its_own_figures(agreement: list[dict[str, Any]], tool: str) -> None:
    told = sorted((row[f"{tool}_launches"], row[f"{tool}_median_ns"], row[f"{tool}_registers"])
                  for row in agreement if row[f"{tool}_launches"])
    assert told == _figures(tool)


def test_every_launch_is_counted_once(store: Store, agreement: list[dict[str, Any]]) -> None:
    for tool in ("nsys", "kineto", "ncu"):
        counted = store.sql("SELECT count(*) AS n FROM kernels WHERE tool = ?", [tool]).to_pylist()[0]["n"]
        assert sum(row[f"{tool}_launches"] or 0 for row in agreement) == counted


def test_counts_differ_for_the_planted_reasons(agreement: list[dict[str, Any]]) -> None:
    classes = {(row["rank"], row["count_class"]) for row in agreement}
    assert {(0, "warm-up"), (1, "warm-up"), (0, "within steps"), (1, "hidden in a graph")} <= classes
    assert (0, "hidden in a graph") not in classes  # there nsys recorded the nodes
    dropped = {(row["rank"], row["launch"]) for row in truth("planted.tsv") if row["planted"] == "dropped" and row["step"] != "0"}
    kernels = {(row["rank"], row["kernel"], row["grid"]) for row in truth("launches.tsv.gz")
               if (row["rank"], row["launch"]) in dropped}
    assert sum(row["count_class"] == "within steps" for row in agreement) <= len(kernels)


def test_ncu_is_slower_by_its_clock(agreement: list[dict[str, Any]]) -> None:
    compared = [row for row in agreement if row["ncu_ratio"] is not None]
    assert all(1.28 < row["clock_ratio"] < 1.31 for row in compared)  # 1410 MHz over the locked 1095
    assert [row["ncu_class"] for row in compared if row["family"] in ("gemm", "convolution")] == ["clock"] * 4
    assert {row["ncu_class"] for row in compared} == {"clock", "several sizes", "clock and replay or cache flush"}


def test_profiler_overhead_is_that_of_the_true_pairs(store: Store) -> None:
    found = store.view("profiler_overhead").to_pylist()
    rows = {(row["tool"], row["other_tool"], row["part"], row["grade"]): row for row in found
            if row["quantity"] == "kernel_duration"}
    row = rows["kineto", "nsys", "all", "launch"]
    true = [(int(t["kineto_duration_ns"]), int(t["nsys_duration_ns"])) for t in truth("launches.tsv.gz")
            if t["in_nsys"] == t["in_kineto"] == "1"]
    assert 0.95 * len(true) <= row["samples"] <= len(true)
    assert row["ratio"] == pytest.approx(sum(k for k, _ in true) / sum(n for _, n in true), rel=0.002)
    assert row["median_ratio"] == pytest.approx(median(k / n for k, n in true), rel=0.002)
    assert rows["kineto", "nsys", "compute", "launch"]["verdict"].startswith("either may be quoted for kernel time")
    assert 1.25 < rows["ncu", "nsys", "gemm", "configuration"]["ratio"] < 1.3


def test_gaps_are_wider_under_the_pytorch_profiler(store: Store) -> None:
    (row,) = [row for row in store.view("profiler_overhead").to_pylist() if row["quantity"] == "launch_gap"]
    assert row["samples"] > 1500 and row["median_ratio"] > 1.3
    assert row["verdict"].startswith("quote nsys for gaps")
