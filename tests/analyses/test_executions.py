"""Kernels of executions: in order however they come, and each with what its kind says."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from nsightlens.analyses._executions import Execution, _executions, _in_runs
from nsightlens.columns.arrays import wide
from nsightlens.matching.collectives import Clock
from tests.analyses.test_rank_skew import Row, kernel, of_ranks


def kernels(execution: Execution) -> list[tuple[object, ...]]:
    """Return the kernels of an execution, as it has them."""
    said = execution.kinds.take(execution.calls.kind.tolist()).to_pylist()
    return [(row["rank"], start, number, row["collective"], row["message_bytes"], step) for row, start, number, step in zip(
        said, execution.calls.start.tolist(), wide(execution.kernel_id).tolist(), wide(execution.step).tolist(), strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_kernels_are_in_order_and_are_what_they_were(seed: int) -> None:
    """Two runs of three ranks, kernels of several kinds, some of which start at once."""
    dice = random.Random(seed)
    rows: list[Row] = []
    for number in range(200):
        rank, run, start = dice.randrange(3), dice.choice("rs"), 1000 * dice.randrange(80)
        rows.append(kernel(rank, number, start, start + 500, run=run, profile_id=f"p{rank}{run}",
                           collective=dice.choice(("allreduce", "broadcast", "")), short_name="k",
                           message_bytes=dice.choice((None, 64, 128)), step=dice.randrange(3)))
    profiles = [{"run": run, "tool": "kineto", "profile_id": name} for name, run in {
        row["profile_id"]: row["run"] for row in rows}.items()]
    found = _executions(of_ranks(rows, {}, profiles))
    assert [execution.run for execution in found] == ["r", "s"]
    for execution in found:
        assert kernels(execution) == sorted(
            ((row["rank"], row["start_ns"], row["kernel_id"], row["collective"] or "k", row["message_bytes"], row["step"])
             for row in rows if row["run"] == execution.run), key=lambda row: row[:3])


def test_the_order_of_keys_is_that_of_a_stable_sort() -> None:
    keys = np.random.default_rng(1).integers(0, 5, 1000).astype(np.int32)
    for some in (keys, np.sort(keys)[::-1], keys[:1], keys[:0]):
        assert _in_runs(some).tolist() == np.argsort(some, kind="stable").tolist()


@pytest.mark.parametrize(("host", "offset", "drift", "shares"), [
    ("a", 50.0, 0.0, True), (None, 50.0, 0.0, True), ("a", -100.0, 0.0, True),
    ("b", 50.0, 0.0, False), ("a", 101.0, 0.0, False), ("a", -101.0, 0.0, False), ("a", 50.0, 1e-9, False),
])
def test_ranks_share_a_clock_unless_their_hosts_or_the_fit_say_otherwise(
    host: str | None, offset: float, drift: float, shares: bool,
) -> None:
    (execution,) = _executions(of_ranks([kernel(rank, rank, 0, 500) for rank in range(2)], {0: None, 1: None}))
    clock = Clock(reference=0, offset=offset, drift=drift, at=0, uncertainty=100.0, calls=9, method="fitted")
    assert replace(execution, hosts={0: "a", 1: host}, clocks={1: clock}).shares_clock(1) is shares
