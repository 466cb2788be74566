"""Rules about process groups: a made pipeline whose stages wait, near misses, and groups as pg_config names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.analyses import communicator_summary
from nsightlens.analyses._advice import ADVICE
from nsightlens.analyses._finding import Process, told
from nsightlens.analyses._group_rules import Groups, pipelines, slow_links
from nsightlens.views.finding import findings_of, verdict_of
from tests.captures import in_groups, kineto

SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "ampere_sgemm_128x64_nn"
Work = tuple[str, float, float]


def rank(folder: Path, number: int, work: list[Work], groups: list[tuple[str, str, list[int]]], members: dict[str, str],
         world: int = 4) -> None:
    """Write the trace of a rank. groups: pg_config, as name, description and ranks. members: the group of each collective."""
    in_groups(kineto(folder / f"rank{number}.json", work, rank=number, pid=70 + number, world_size=world), groups, members)


def found(folder: Path, rule: str) -> list[dict[str, Any]]:
    rows = nl.ingest(folder, store=folder.parent / "store", jobs=1).view("findings").to_pylist()
    return [row for row in rows if row["rule"] == rule]


def pipeline(folder: Path, waits: list[float], description: str = "PIPELINE_MODEL_PARALLEL_GROUP") -> None:
    """Write a pipeline of four stages of 1000 us (5 to launch), each of which waits for so long (us)."""
    for stage, wait in enumerate(waits):
        work = [(SEND, 10_000.0, wait), (GEMM, 10_000.0 + wait, 995 - wait)]
        rank(folder, stage, work, [("0", "default_pg", [0, 1, 2, 3]), ("5", description, [0, 1, 2, 3])], {SEND: "5"})


def test_stages_that_wait_for_one_another_are_told_apart(tmp_path: Path) -> None:
    pipeline(tmp_path / "run", [300.0, 200.0, 100.0, 1.0])
    (row,) = found(tmp_path / "run", "pipeline")
    assert [row[name] for name in ("total_ns", "of_ns", "share_pct", "rank", "who", "confidence")] == [
        601_000, 4_000_000, 15.0, None, "pipeline stages", "high"]
    assert row["what"] == ("they wait for one another while their GPUs idle: stage 0 for 30.0 %, 1 for 20.0 %, 2 for 10.0 %, "
                           "3 for 0.1 % of its time; stage 3 computes 1.3 times as long as the others")
    assert not found(tmp_path / "run", "communication"), "the wait is told once"


def test_waits_barely_above_the_limit_fire(tmp_path: Path) -> None:
    pipeline(tmp_path / "run", [105.0, 105.0, 105.0, 105.0])
    (row,) = found(tmp_path / "run", "pipeline")
    assert (row["share_pct"], row["limit_pct"]) == (10.5, 10.0)


def test_a_page_says_it_as_one_finding() -> None:
    wheres = [{"run": "run", "tool": "kineto", "rank": stage, "profile_id": f"p{stage}", "process_id": "p", "window_index": 0}
              for stage in range(4)]
    bubbles = pa.Table.from_pylist([where | {"stage": where["rank"], "bubble_ns": 300_000, "compute_ns": 695_000}
                                    for where in wheres])
    processes = [Process(where, 1_000_000, {"communication": 300_000}) for where in wheres]
    rows, _ = pipelines(lambda query, values: bubbles, processes)
    of_run = findings_of([told(row) for row in rows], ["run"])
    assert verdict_of(of_run) == ["Pipeline stages: they wait for one another while their GPUs idle: stage 0 for 30.0 %, 1 for "
                                  "30.0 %, 2 for 30.0 %, 3 for 30.0 % of its time: 1.200 ms of 4.000 ms of all ranks, 30.0 %."]


@pytest.mark.parametrize(("waits", "description"), [
    ([100.0, 100.0, 100.0, 100.0], "PIPELINE_MODEL_PARALLEL_GROUP"),  # not above the limit
    ([300.0, 200.0, 100.0, 1.0], "DATA_PARALLEL_GROUP"),
    ([300.0, 200.0, 100.0, 1.0], "undefined"),
])
def test_no_pipeline_or_short_waits_do_not_fire(tmp_path: Path, waits: list[float], description: str) -> None:
    pipeline(tmp_path / "run", waits, description)
    assert not found(tmp_path / "run", "pipeline")


def test_a_transfer_beside_computation_is_no_bubble(tmp_path: Path) -> None:
    for stage in range(4):
        rank(tmp_path / "run", stage, [(GEMM, 10_000.0, 1000.0), (SEND, 10_100.0, 800.0)],
             [("5", "mesh_pp", [0, 1, 2, 3])], {SEND: "5"})
    assert not found(tmp_path / "run", "pipeline")
    rows = nl.open(tmp_path / "store").view("pipeline_bubbles").to_pylist()
    assert [(row["stage"], row["bubble_ns"], row["hidden_ns"]) for row in rows] == [(stage, 0, 800_000) for stage in range(4)]


def late(folder: Path, description: str) -> None:
    """Write four ranks in two groups of two; rank 3 is late in all collectives of its group."""
    for number in range(4):
        name = f"tp{number // 2}"
        delay = 300.0 if number == 3 else 0.0
        work = [(REDUCE, 1000.0 * call - 400 + delay, 400 - delay) for call in range(1, 11)]
        rank(folder, number, work, [(name, description, [2 * (number // 2), 2 * (number // 2) + 1])], {REDUCE: name})


@pytest.mark.parametrize(("excess", "fires"), [(0, False), (1, True)])
def test_a_slow_link_fires_above_its_limit_only(excess: int, fires: bool) -> None:
    """Two ranks of 500,000 ns; excess: beyond the limit, of each."""
    each = int(ADVICE["slow_link"].limit_pct * 5_000) + excess
    alone = {"run": "base", "tool": "kineto", "execution_id": None, "group_name": "5", "members": "0-1", "excess_ns": each,
             "ranks": 2, "group_size": 2, "collective": "all_reduce", "transfer_ns": 300, "peers_ns": 100, "peers": 3,
             "verdict": communicator_summary.SLOW}
    processes = [Process({"run": "base", "tool": "kineto"}, 500_000, {}) for _ in range(2)]
    rows = list(slow_links([alone], processes, Groups(lambda query, values: pa.table({"run": []}))))
    assert [(row["total_ns"], row["of_ns"]) for row in rows] == ([(2 * each, 1_000_000)] if fires else [])


@pytest.mark.parametrize(("description", "named"), [
    ("TENSOR_MODEL_PARALLEL_GROUP", "tensor group tp1"), ("mesh_ep", "expert group tp1"), ("mesh_dp_replicate", "data group tp1"),
    ("custom", "process group tp1 (custom)"), ("undefined", "process group tp1"),
])
def test_a_late_rank_is_named_in_its_group_as_pg_config_calls_it(tmp_path: Path, description: str, named: str) -> None:
    late(tmp_path / "run", description)
    (row,) = found(tmp_path / "run", "straggler")
    assert row["rank"] == 3 and f"10 of 10 matched collectives, 10 times in {named}" in row["what"]
