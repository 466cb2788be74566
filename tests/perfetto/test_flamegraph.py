"""Flame graphs: stacks of a small tree, in both formats and by each weight."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from nsightlens.perfetto import flamegraph


def _row(frame: int | None, parent: int | None, name: str, gpu: int, host: int | None = None, *, process: str = "p",
         rank: int | None = 0, thread: int | None = 5) -> dict[str, Any]:
    return {"run": "r", "rank": rank, "process_id": process, "thread": thread, "frame_id": frame, "parent_id": parent,
            "name": name, "gpu_self_ns": gpu, "host_self_ns": host, "launches": gpu // 10}


TREE = [_row(1, None, "main", 0, 7), _row(2, 1, "a;b\nc", 50, 3), _row(3, 2, "g", 20, 0),
        _row(None, None, "(no stack)", 10, thread=None)]


def _lines(rows: list[dict[str, Any]], weight: str = "gpu") -> list[str]:
    return list(flamegraph.collapsed(flamegraph.stacks(pa.Table.from_pylist(rows), weight)))


@pytest.mark.parametrize(("weight", "lines"), [
    ("gpu", ["main;a:b c 50", "main;a:b c;g 20", "(no stack) 10"]),
    ("host", ["main 7", "main;a:b c 3"]),
    ("launches", ["main;a:b c 5", "main;a:b c;g 2", "(no stack) 1"]),
])
def test_a_line_is_a_stack_and_its_own_weight(weight: str, lines: list[str]) -> None:
    assert _lines(TREE, weight) == lines


@pytest.mark.parametrize(("weight", "lines"), [
    ("cpu_samples", ["main 4", "main;f 3", "(no stack) 1"]), ("cpu_samples_while_gpu_idle", ["main;f 2"])])
def test_cpu_samples_have_weights_of_their_own(weight: str, lines: list[str]) -> None:
    whose = {"run": "r", "rank": 0, "process_id": "p", "thread": 5}
    tree = [whose | {"frame_id": frame, "parent_id": parent, "name": name, "samples": samples, "idle_samples": idle}
            for frame, parent, name, samples, idle in (
                (1, None, "main", 4, 0), (2, 1, "f", 3, 2), (None, None, "(no stack)", 1, None))]
    assert _lines(tree, weight) == lines


def test_processes_and_threads_are_frames_where_there_are_several() -> None:
    other = [_row(11, None, "main", 5, process="q", rank=1), _row(12, None, "run", 4, process="q", rank=1, thread=6)]
    assert _lines([*TREE[1:2], *other]) == ["r rank 0;a:b c 50", "r rank 1;thread 5;main 5", "r rank 1;thread 6;run 4"]


def test_processes_of_one_or_no_rank_are_told_apart_by_their_ids() -> None:
    rows = [_row(1, None, "f", 1), _row(2, None, "f", 2, process="q"), _row(3, None, "f", 3, process="s", rank=None)]
    assert _lines(rows) == ["r process p;f 1", "r process q;f 2", "r process s;f 3"]


def test_speedscope_has_a_profile_per_process_whose_weights_sum_to_its_end() -> None:
    tree = pa.Table.from_pylist([*TREE, _row(11, None, "main", 5, process="q", rank=1)])
    found = flamegraph.speedscope(flamegraph.stacks(tree, "gpu"), "gpu")
    assert [frame["name"] for frame in found["shared"]["frames"]] == ["main", "a;b\nc", "g", "(no stack)"]
    first, second = found["profiles"]
    assert (first["samples"], first["weights"], first["endValue"]) == ([[0, 1], [0, 1, 2], [3]], [50, 20, 10], 80)
    assert (second["name"], second["samples"], second["unit"]) == ("r rank 1, gpu", [[0]], "nanoseconds")
    assert flamegraph.speedscope(flamegraph.stacks(tree, "launches"), "launches")["profiles"][0]["unit"] == "none"
