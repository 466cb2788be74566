"""run_difference: random splits of one run say nothing, a kernel slowed by 3 % is named and no other."""

from __future__ import annotations

import importlib
import random
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.analyses import run_waterfall
from nsightlens.analyses.run_difference import analyse, judged
from nsightlens.errors import UsageError
from tests.captures import kineto
from tests.catalogs import catalog, fill
from tests.fixtures.simulated_run import FIXTURES

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")
execute = importlib.import_module("simulated.execution").execute
job = importlib.import_module("simulated.job").job
Knobs = importlib.import_module("simulated.knobs").Knobs

STEPS = 40


@cache
def steps() -> dict[str, list[float]]:
    """Return per kernel and configuration its time in each of 40 steps of the simulated job."""
    knobs = Knobs(seed=7, steps=STEPS, evaluate_after=())
    found: dict[str, list[float]] = defaultdict(lambda: [0.0] * STEPS)
    for record in execute("nsys", knobs, job(knobs))[:1]:
        for done in record.work:
            kernel = done.work.kernel
            if kernel is not None and done.work.step is not None and done.work.step >= 1:
                found[f"{kernel.name} {kernel.grid} {kernel.block}"][done.work.step - 1] += done.end - done.start
    return dict(found)


def halves(seed: int) -> tuple[list[int], list[int]]:
    order = random.Random(seed).sample(range(STEPS), STEPS)
    return order[: STEPS // 2], order[STEPS // 2 :]


def test_random_halves_of_one_run_do_not_differ() -> None:
    changed = 0
    for seed in range(100):
        one, other = halves(seed)
        base, rest = ({name: [values[i] for i in some] for name, values in steps().items()} for some in (one, other))
        found = judged(base, rest, 0.01, 1.0)
        changed += any(change.verdict != "no change" for change in found.values())
    assert changed <= 1


def test_a_kernel_slowed_by_3_percent_is_named_alone() -> None:
    named = 0
    kernels = [name for name, values in steps().items() if min(values) > 0 and "nccl" not in name]
    for seed in range(100):
        one, other = halves(1000 + seed)
        slowed = random.Random(seed).choice(kernels)
        found = judged({k: [v[i] for i in one] for k, v in steps().items()},
                       {k: [v[i] * (1.03 if k == slowed else 1) for i in other] for k, v in steps().items()}, 0.01, 1.0)
        named += [item for item, change in found.items() if change.verdict != "no change"] == [slowed]
    assert named >= 95


def test_few_replicates_give_no_interval_and_new_and_vanished_are_named() -> None:
    found = judged({"a": [1.0, 2.0], "gone": [4.0] * 9}, {"a": [1.0, 2.0], "came": [5.0] * 9}, 0.01, 1.0)
    assert {item: change.verdict for item, change in found.items()} == {"a": "no interval", "gone": "vanished", "came": "new"}
    assert (found["came"].base, found["came"].other, found["a"].low) == (0, 5, None)


def test_a_certain_but_small_change_is_below_the_threshold() -> None:
    def verdict(added: float, threshold_pct: float) -> str:
        values = [1000 + k * 1e-3 for k in range(20)]
        return judged({"a": values}, {"a": [value + added for value in values]}, 0.01, threshold_pct)["a"].verdict

    assert [verdict(5, 1.0), verdict(5, 0.1), verdict(-50, 1.0)] == ["no change", "slower", "faster"]


def test_two_runs_of_a_store(tmp_path: Path) -> None:
    generator.make(tmp_path / "base", seed=1, run="base", steps=8, evaluate_after=())
    generator.make(tmp_path / "other", seed=2, run="other", steps=8, evaluate_after=())
    store = nl.ingest([tmp_path / "base", tmp_path / "other"], store=tmp_path / "store")
    table = store.view("run_difference", base="base", other="other", skip_steps=1)
    rows = table.to_pylist()
    assert {(row["tool"], row["unit"], row["base_replicates"]) for row in rows} == {("nsys", "per step", 8)}
    total = store.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM kernels WHERE run = 'base' AND tool = 'nsys' AND step > 0")
    assert abs(sum(row["base_ns"] for row in rows) * 8 * 2 - total["ns"][0].as_py()) < 16 * len(rows)
    families = store.view("run_difference", base="base", other="other", skip_steps=1, by="family").to_pylist()
    assert abs(sum(row["base_ns"] for row in families) - sum(row["base_ns"] for row in rows)) < len(rows)


def test_a_rank_without_a_step_halves_nothing_and_what_has_no_operator_is_a_row() -> None:
    connection = catalog()
    kernels: list[dict[str, Any]] = []
    ranges: list[dict[str, Any]] = []
    for run in ("a", "b"):
        for rank in (0, 1):
            where = {"run": run, "tool": "nsys", "profile_id": run, "process_id": f"{run}{rank}", "window_index": 0}
            for step in range(6 if rank == 0 else 4):
                ranges.append(where | {"range_id": 10 * rank + step, "kind": "step", "step": step, "start_ns": 100 * step,
                                       "duration_ns": 100, "name": "step"})
                kernels += [where | {"step": step, "start_ns": 100 * step, "duration_ns": 10, "kernel_key": "k", "op": op}
                            for op in ("mm", None)]
    fill(connection, kernels=kernels, ranges=ranges)

    def rows(**asked: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = analyse(
            lambda sql, values: connection.sql(sql, params=list(values)).to_arrow_table(), **asked).to_pylist()
        return found

    assert [(row["item"], row["base_ns"], row["low_ns"], row["high_ns"]) for row in rows(by="op")] == [
        (None, 10, 0, 0), ("mm", 10, 0, 0)]
    (whole,) = rows(by="step")
    assert [whole[name] for name in ("item", "unit", "base_ns", "base_median_ns", "base_total_ns", "base_launches")] == [
        "step", "per step", 100, 100, 1000, 10]
    (later,) = rows(by="key", skip_steps=4)
    assert [later[name] for name in ("base_launches", "base_total_ns", "base_median_ns", "base_replicates", "verdict")] == [
        4, 40, 10, 2, "no interval"]


def test_runs_without_steps_are_compared_in_blocks(tmp_path: Path) -> None:
    for run, duration in (("a", 10.0), ("b", 20.0)):
        kineto(tmp_path / run / "rank0.json", [("gemm", 1000.0 * k, duration + k % 3) for k in range(1, 101)], rank=0)
    store = nl.ingest([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store")
    rows = store.view("run_difference", by="key").to_pylist()
    said = [(row["item"], row["unit"], row["verdict"], row["base_replicates"]) for row in rows]
    assert said == [("gemm", "per launch", "slower", 10)]
    assert rows[0]["difference_ns"] == 10_000


@pytest.mark.parametrize("asked", [
    {"fdr": float("nan")}, {"fdr": -0.1}, {"threshold_pct": float("nan")}, {"threshold_pct": -1.0}, {"skip_steps": -1},
    {"skip_steps": 10**30},
])
def test_numbers_that_mean_nothing_are_refused(asked: dict[str, Any]) -> None:
    for analysis in (analyse, run_waterfall.analyse):
        with pytest.raises(UsageError, match=f"^{next(iter(asked))} is a"):
            analysis(None, **asked)  # type: ignore[arg-type]


def test_runs_that_are_not_there_are_refused(tmp_path: Path) -> None:
    kineto(tmp_path / "a" / "rank0.json", rank=0)
    store = nl.ingest(tmp_path / "a", store=tmp_path / "store")
    with pytest.raises(UsageError, match="name two runs"):
        store.view("run_difference")
    with pytest.raises(UsageError, match="no run z"):
        store.view("run_difference", base="a", other="z")
