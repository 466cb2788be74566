"""Sends and receives: which is which over the ranks of pipelines of two and four stages, and who waits for whom."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.captures import BASE_NS


class Sent(NamedTuple):
    """A message between ranks: when each end comes to it, and how long it takes from then on, in us."""

    source: int
    target: int
    sends_at: int
    receives_at: int
    takes: int

    @property
    def end(self) -> int:
        """Return when both ends leave it."""
        return max(self.sends_at, self.receives_at) + self.takes


def job(folder: Path, messages: list[Sent], stages: int, drop: frozenset[tuple[int, int]] = frozenset(), **said: Any) -> Path:
    """Write a trace for each stage. drop: (number of a message, rank) of kernels that are left out; said: their arguments."""
    for rank in range(stages):
        events = [kernel(number, rank, each, stages, **said) for number, each in enumerate(messages, 1)
                  if rank in (each.source, each.target) and (number, rank) not in drop]
        trace = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": BASE_NS + rank * 10**6,
                 "distributedInfo": {"rank": rank, "world_size": stages, "pg_config": []}, "traceEvents": events}
        folder.mkdir(exist_ok=True)
        (folder / f"rank{rank}.json").write_text(json.dumps(trace), encoding="utf-8")
    return folder


def kernel(number: int, rank: int, sent: Sent, stages: int, **said: Any) -> dict[str, Any]:
    sends = rank == sent.source
    start = sent.sends_at if sends else sent.receives_at
    peer = {"Dst Rank": sent.target} if sends else {"Src Rank": sent.source}
    return {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "pid": 0,
            "tid": 20 + sent.source, "ts": start, "dur": sent.end - start, "args": {
                "device": 0, "stream": 20 + sent.source, "correlation": number, "Collective name": "send" if sends else "recv",
                "In msg nelems": 64, "dtype": "Float", "Group size": stages, "Process Group Name": "7",
                "Process Group Description": "mesh_pp", "Process Group Ranks": str([*range(stages)]), **peer, **said}}


def steady(stages: int, seed: int, count: int) -> Iterator[Sent]:
    """Yield activations down the pipeline and gradients back up, in turn, as one forward and one backward do."""
    source = random.Random(seed)
    for turn in range(count):
        for stage in range(stages - 1):
            for source_rank, target in ((stage, stage + 1), (stage + 1, stage)):
                at = 100_000 * turn + 20_000 * stage + 10_000 * (source_rank > target) + source.randrange(2000)
                late = source.randrange(-4000, 4000)
                yield Sent(source_rank, target, at + 5000 + max(late, 0), at + 5000 - min(late, 0), source.randrange(10, 60))


def waited(store: Store) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the messages and the waits in us by (who waits, for whom)."""
    rows = store.view("stage_waits").to_pylist()
    return {(row["rank"], row["peer_rank"]): (row["messages"], row["wait_ns"] // 1000) for row in rows}


def true_waits(messages: list[Sent]) -> dict[tuple[int, int], tuple[int, int]]:
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for each in messages:
        for own, other, own_at, other_at in ((each.source, each.target, each.sends_at, each.receives_at),
                                             (each.target, each.source, each.receives_at, each.sends_at)):
            count, ns = found.get((own, other), (0, 0))
            found[own, other] = (count + 1, ns + max(other_at - own_at, 0))
    return found


@pytest.mark.parametrize(("stages", "seed"), [(2, 1), (4, 2), (4, 3)])
def test_who_waits_for_which_stage(stages: int, seed: int, tmp_path: Path) -> None:
    messages = [*steady(stages, seed, 6)]
    with nl.ingest(job(tmp_path / "job", messages, stages), store=tmp_path / "store", jobs=1) as store:
        assert waited(store) == true_waits(messages)
        rows = store.view("stage_waits").to_pylist()
        assert all((row["stage"], row["peer_stage"]) == (row["rank"], row["peer_rank"]) for row in rows)
        assert {row["unmatched_kernels"] for row in store.view("collective_coverage").to_pylist()} == {0}
        assert store.view("straggler").num_rows == store.view("collective_match").num_rows == 0, "no collectives"
        trees: dict[int, dict[str, int]] = {}
        for row in store.view("time_tree").to_pylist():
            if row["node"].startswith("waiting for stage"):
                of_rank = trees.setdefault(row["rank"], {})
                of_rank[row["node"]] = of_rank.get(row["node"], 0) + row["total_ns"] // 1000
        bubbles = {row["stage"] for row in store.view("pipeline_bubbles").to_pylist()}
    assert bubbles == set(range(stages))
    for rank, of_rank in trees.items():  # all of it is exposed; what lies before the first end is outside of the window
        for node, us in of_rank.items():
            assert 0.7 * true_waits(messages)[rank, int(node[-1])][1] < us <= true_waits(messages)[rank, int(node[-1])][1]


def test_a_lost_kernel_costs_its_message(tmp_path: Path) -> None:
    messages = [*steady(2, 5, 8)]
    lost = job(tmp_path / "job", messages, 2, frozenset({(5, 1)}))
    with nl.ingest(lost, store=tmp_path / "store", jobs=1) as store:
        assert waited(store) == true_waits([each for number, each in enumerate(messages, 1) if number != 5])


@pytest.mark.parametrize("said", [{"Dst Rank": None, "Src Rank": None}, {"Process Group Name": None}])
def test_without_the_other_rank_nothing_is_said(said: dict[str, Any], tmp_path: Path) -> None:
    with nl.ingest(job(tmp_path / "job", [*steady(2, 6, 4)], 2, **said), store=tmp_path / "store", jobs=1) as store:
        assert waited(store) == {}


def test_ranks_of_no_pipeline_are_called_by_number(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", [*steady(2, 7, 4)], 2, **{"Process Group Description": "halo exchange"})
    with nl.ingest(folder, store=tmp_path / "store", jobs=1) as store:
        assert {row["stage"] for row in store.view("stage_waits").to_pylist()} == {None}
        assert any(row["node"] == "waiting for rank 0" for row in store.view("time_tree").to_pylist())


@pytest.mark.parametrize("hostile", [["a"], {"a": 1}, 7, "[0, 1, ...]", "[", None, "[1e400]", "[[0]]"])
def test_ranks_of_groups_that_are_none(hostile: Any, tmp_path: Path) -> None:
    folder = job(tmp_path / "job", [*steady(2, 8, 4)], 2, **{"Process Group Ranks": hostile})
    with nl.ingest(folder, store=tmp_path / "store", jobs=1) as store:
        assert waited(store) == true_waits([*steady(2, 8, 4)])
