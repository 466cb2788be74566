"""run_difference: two recordings of one setting say nothing of the runs, a kernel slowed by 3 % in each is named alone."""

from __future__ import annotations

import importlib
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.analyses import run_waterfall
from nsightlens.analyses.run_difference import analyse
from nsightlens.columns.arrays import Float
from nsightlens.errors import UsageError
from nsightlens.statistics.changes import judged
from tests.captures import kineto
from tests.catalogs import asking, catalog, fill
from tests.fixtures.simulated_run import FIXTURES
from tests.places import ROOT

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")
execute = importlib.import_module("simulated.execution").execute
job = importlib.import_module("simulated.job").job
Rows = dict[str, list[dict[str, Any]]]
Knobs = importlib.import_module("simulated.knobs").Knobs

DATA = ROOT.parent / "shared" / "data"
STEPS = 40
RECORDINGS = 4


@cache
def recording(seed: int) -> dict[str, Float]:
    """Return per kernel and configuration its time in each of the steps of one execution of the simulated job."""
    knobs = Knobs(seed=seed, steps=STEPS, evaluate_after=())
    found: dict[str, Float] = defaultdict(lambda: np.zeros(STEPS))
    for record in execute("nsys", knobs, job(knobs))[:1]:
        for done in record.work:
            kernel = done.work.kernel
            if kernel is not None and done.work.step is not None and done.work.step >= 1:
                found[f"{kernel.name} {kernel.grid} {kernel.block}"][done.work.step - 1] += done.end - done.start
    return dict(found)


def run(seeds: Iterable[int]) -> dict[str, list[float]]:
    """Return the means of the recordings of one run, per item."""
    recordings = [recording(seed) for seed in seeds]
    return {name: [float(some[name].mean()) for some in recordings] for name in recordings[0]}


def splits() -> Iterator[tuple[dict[str, list[float]], dict[str, list[float]]]]:
    """Yield two runs of recordings of one setting, split in each of 35 ways."""
    seeds = range(2 * RECORDINGS)
    for chosen in combinations(seeds[1:], RECORDINGS - 1):
        yield run([0, *chosen]), run(seed for seed in seeds if seed not in (0, *chosen))


@pytest.mark.long
def test_recordings_of_one_setting_are_told_apart_by_no_item() -> None:
    named = [any(change.verdict not in ("no change", "undecided") for change in judged(base, other, 0.01, 1.0).values())
             for base, other in splits()]
    assert sum(named) <= 1


@pytest.mark.long
def test_a_kernel_slowed_by_3_percent_in_each_recording_is_named_alone() -> None:
    kernels = [name for name, values in recording(0).items() if min(values) > 0 and "nccl" not in name]
    named = []
    for seed, (base, other) in enumerate(splits()):
        slowed = random.Random(seed).choice(kernels)
        slower = [1.03 * mean for mean in other[slowed]]
        found = judged(base, other | {slowed: slower}, 0.01, 1.0)
        named.append([item for item, change in found.items() if change.verdict not in ("no change", "undecided")] == [slowed])
    assert sum(named) >= 33


def test_a_certain_but_small_change_is_below_the_threshold() -> None:
    def verdict(added: float, threshold_pct: float) -> str:
        base, other = ({"a": [1000 + k * 1e-3 + more for k in range(3)]} for more in (0, added))
        return judged(base, other, 0.01, threshold_pct)["a"].verdict

    assert [verdict(5, 1.0), verdict(5, 0.1), verdict(-50, 1.0)] == ["no change", "slower", "faster"]


@pytest.mark.long
def test_two_runs_of_a_store(tmp_path: Path) -> None:
    generator.make(tmp_path / "base", seed=1, run="base", steps=8, evaluate_after=())
    generator.make(tmp_path / "other", seed=2, run="other", steps=8, evaluate_after=())
    store = nl.ingest([tmp_path / "base", tmp_path / "other"], store=tmp_path / "store", jobs=1)
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
            asking(connection), **asked).to_pylist()
        return found

    assert [(row["item"], row["base_ns"]) for row in rows(by="op")] == [(None, 10), ("mm", 10)]
    (whole,) = rows(by="step")
    assert [whole[name] for name in ("item", "unit", "base_ns", "base_median_ns", "base_total_ns", "base_launches")] == [
        "step", "per step", 100, 100, 1000, 10]
    (later,) = rows(by="key", skip_steps=4)
    assert [later[name] for name in ("base_launches", "base_total_ns", "base_median_ns", "base_replicates")] == [4, 40, 10, 2]


def test_runs_without_steps_are_compared_in_blocks(tmp_path: Path) -> None:
    for run, duration in (("a", 10.0), ("b", 20.0)):
        kineto(tmp_path / run / "rank0.json", [("gemm", 1000.0 * k, duration + k % 3) for k in range(1, 101)], rank=0)
    store = nl.ingest([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store", jobs=1)
    rows = store.view("run_difference", by="key").to_pylist()
    said = [(row["item"], row["unit"], row["verdict"], row["base_replicates"]) for row in rows]
    assert said == [("gemm", "per launch", "undecided", 10)]
    assert rows[0]["difference_ns"] == 10_000


@pytest.mark.parametrize("stepped", [True, False])
def test_the_means_are_those_of_the_values_themselves(stepped: bool) -> None:
    """Two ranks of which one lacks steps, kernels that only some steps have: each value in a plain loop."""
    connection = catalog()
    draw = random.Random(3)
    kernels: list[dict[str, Any]] = []
    for run, longer in (("a", 0), ("b", 50)):
        for rank, steps in ((0, 12), (1, 9)):
            for number in range(10 * steps):
                kernels.append({
                    "run": run, "tool": "nsys", "profile_id": run, "process_id": f"{run}{rank}", "window_index": 0,
                    "launch_index": number, "step": number // 10 if stepped else None, "start_ns": 1000 * number,
                    "duration_ns": draw.randrange(400, 500) + longer, "kernel_key": draw.choice(("k", "k", "k", "rare", None)),
                    "grid_x": 1 + rank if stepped else None})
    fill(connection, kernels=kernels)

    def values(run: str, item: tuple[Any, ...], columns: Sequence[str]) -> Float:
        times: dict[int, list[int]] = defaultdict(list)
        present: dict[int, set[str]] = defaultdict(set)
        counts = Counter(row["process_id"] for row in kernels)
        for row in kernels:
            block = row["launch_index"] * 10 // counts[row["process_id"]]
            if row["run"] == run:
                replicate = row["step"] if stepped else block
                present[replicate].add(row["process_id"])
                if tuple(row[name] for name in columns) == item:
                    times[replicate].append(row["duration_ns"])
        if stepped:
            return np.array([sum(times[step]) / len(present[step]) for step in present])
        return np.array([np.mean(some) for some in times.values()])

    for by, columns in (("key", ("kernel_key",)), ("kernel", ("kernel_key", "grid_x"))):
        rows = analyse(asking(connection), base="a", other="b", by=by).to_pylist()
        items = {tuple(row[name] for name in columns) for row in kernels}
        assert len(rows) == len(items) >= 3
        told = sorted(tuple(round(values(run, item, columns).mean()) for run in "ab") for item in items)
        assert sorted((row["base_ns"], row["other_ns"]) for row in rows) == told


def recorded(run: str, lengths: list[int], *, at: int) -> Rows:
    """Return the rows of a capture of rank 0 that began at `at` seconds, with a step of each length in ns."""
    where = {"run": run, "tool": "kineto", "profile_id": f"{run}{at}"}
    who = where | {"process_id": f"{run}{at}:0", "window_index": 0}
    begun = [sum(lengths[:k]) for k in range(len(lengths))]
    numbered = list(enumerate(zip(begun, lengths, strict=True)))
    return {
        "profiles": [where | {"origin_epoch_ns": at * 10**9, "gpu_first_ns": 0, "gpu_last_ns": sum(lengths)}],
        "processes": [where | {"process_id": who["process_id"], "rank": 0}],
        "ranges": [who | {"range_id": k, "kind": "step", "step": k, "start_ns": start, "duration_ns": length, "name": "step"}
                   for k, (start, length) in numbered],
        "kernels": [who | {"step": k, "start_ns": start, "duration_ns": length // 2, "kernel_key": "k", "family": "gemm"}
                    for k, (start, length) in numbered],
    }


def asked(analysis: Callable[..., pa.Table], *captures: Rows, **parameters: Any) -> list[dict[str, Any]]:
    connection = catalog()
    for capture in captures:
        fill(connection, **capture)
    found: list[dict[str, Any]] = analysis(
        asking(connection), **parameters).to_pylist()
    return found


def test_recordings_with_the_same_step_numbers_are_no_ranks_of_one_step() -> None:
    """Two captures of rank 0, minutes apart: each mean counts alike, whatever its number of steps, and warm-up goes from each."""
    a = [recorded("a", [900, 100, 100, 100], at=0), recorded("a", [900] + [102] * 6, at=500)]
    b = [recorded("b", [900, 130, 130], at=1000), recorded("b", [900, 132, 132], at=2000)]
    (step,) = asked(analyse, *a, *b, by="step", skip_steps=1)
    assert [step[name] for name in ("base_ns", "other_ns", "base_recordings", "base_replicates", "verdict")] == [
        101, 131, 2, 9, "slower"]
    assert abs(step["smallest_ns"] - (step["high_ns"] - step["low_ns"]) / 2) <= 1
    assert step["low_ns"] > 0
    (gemm, idle) = asked(run_waterfall.analyse, *a, *b, skip_steps=1)
    assert {(row["base_total_ns"], row["other_total_ns"], row["base_recordings"], row["base_ranks"]) for row in (gemm, idle)} == {
        (101, 131, 2, 1)}
    assert gemm["base_ns"] + idle["base_ns"] == 101


def test_what_a_step_or_a_run_lacks_takes_no_time_there() -> None:
    a, b = (recorded(run, [100, 100, 100, 100], at=at) for run, at in (("a", 0), ("b", 500)))
    a["kernels"][0]["kernel_key"] = b["kernels"][0]["kernel_key"] = "once"
    b["kernels"][1]["kernel_key"] = "new"
    columns = ("item", "base_ns", "other_ns", "base_total_ns", "other_total_ns", "base_launches")
    assert [tuple(row[name] for name in columns) for row in asked(analyse, a, b, by="key")] == [
        ("k", 38, 25, 150, 100, 3), ("new", 0, 12, 0, 50, 0), ("once", 12, 12, 50, 50, 1)]


def test_with_one_recording_of_each_run_nothing_is_said_of_the_runs() -> None:
    captures = recorded("a", [100, 101, 99, 100, 100], at=0), recorded("b", [200, 201, 199, 200, 200], at=500)
    (step,) = asked(analyse, *captures, by="step")
    assert [step[name] for name in ("verdict", "low_ns", "q_value", "smallest_ns", "needed", "absent")] == [
        "undecided", None, None, None, None, None]
    assert {row["verdict"] for row in asked(run_waterfall.analyse, *captures)} == {"undecided"}


@pytest.mark.captures
def test_two_real_recordings_of_one_setting_are_no_change_of_the_run(tmp_path: Path) -> None:
    """ResNet-50 without workers: step times of two recordings differ by 12.8 %."""
    stem = "pytorch__kineto__tb_plugin__resnet50_num_workers_"
    captures = {workers: sorted((DATA / "kineto").glob(f"{stem}{workers}__worker0.16*")) for workers in (0, 4)}
    if not all(captures.values()):
        pytest.skip("needs the recordings of ResNet-50")
    for name, files in {"one": captures[0][:1], "two": captures[0][1:], "none": captures[0], "four": captures[4]}.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file.name).symlink_to(file)
    store = nl.ingest([tmp_path / name for name in ("one", "two", "none", "four")], store=tmp_path / "store", jobs=1)
    (alike,) = store.view("run_difference", base="one", other="two", by="step").to_pylist()
    assert [alike[name] for name in ("change_pct", "verdict", "low_ns")] == [-12.77, "undecided", None]
    (true,) = store.view("run_difference", base="none", other="four", by="step").to_pylist()
    assert (true["change_pct"], true["base_recordings"], true["other_recordings"]) == (-14.62, 2, 2)
    assert true["low_ns"] < 0 < true["high_ns"] and true["verdict"] == "undecided" and true["needed"] is None
    assert true["smallest_ns"] > abs(true["difference_ns"])


@pytest.mark.parametrize("numbers", [
    {"fdr": float("nan")}, {"fdr": -0.1}, {"threshold_pct": float("nan")}, {"threshold_pct": -1.0}, {"skip_steps": -1},
    {"skip_steps": 10**30},
])
def test_numbers_that_mean_nothing_are_refused(numbers: dict[str, Any]) -> None:
    for analysis in (analyse, run_waterfall.analyse):
        with pytest.raises(UsageError, match=f"^{next(iter(numbers))} is a"):
            analysis(None, **numbers)  # type: ignore[arg-type]


def test_runs_that_are_not_there_are_refused(tmp_path: Path) -> None:
    kineto(tmp_path / "a" / "rank0.json", rank=0)
    store = nl.ingest(tmp_path / "a", store=tmp_path / "store", jobs=1)
    with pytest.raises(UsageError, match="name two runs"):
        store.view("run_difference")
    with pytest.raises(UsageError, match="no run z"):
        store.view("run_difference", base="a", other="z")
