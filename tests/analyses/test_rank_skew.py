"""Sums over collectives: what each rank waited and caused, where the streams have no names and the clocks are far apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask, collective_match, rank_skew, straggler
from tests.catalogs import asking, catalog

Row = dict[str, Any]


def kernel(rank: int, number: int, start: int, end: int, **given: object) -> Row:
    return {"run": "r", "tool": "kineto", "profile_id": f"p{rank}", "process_id": f"q{rank}", "rank": rank, "kernel_id": number,
            "start_ns": start, "duration_ns": end - start, "family": "collective", "stream": 7, "collective": "allreduce",
            "message_bytes": 64, "step": 1, **given}


def of_ranks(kernels: list[Row], epochs: dict[int, int | None], others: Sequence[Row] = ()) -> Ask:
    """Return what answers for kernels of ranks whose files have these epochs, and for `others`, more rows of profiles."""
    profiles = [*others, *({"run": "r", "tool": "kineto", "profile_id": f"p{rank}", "origin_epoch_ns": at}
                           for rank, at in epochs.items())]
    connection = catalog(kernels=kernels, profiles=profiles)
    return asking(connection)


def numbered_calls(count: int) -> list[Row]:
    """Return calls of two ranks that begin and end together, a ms apart."""
    return [kernel(rank, 2 * call + rank, 1_000_000 * call, 1_000_000 * call + 500, group_name="g", group_size=2, group_seq=call)
            for call in range(count) for rank in (0, 1)]


def test_communicators_without_a_name_are_not_taken_for_one() -> None:
    """Two streams of three calls each: rank 0 is late by 300 us on one, rank 1 by 500 us on the other."""
    kernels: list[Row] = []
    for stream, late, lag, what in ((7, 0, 300_000, "allreduce"), (20, 1, 500_000, "broadcast")):
        for call in range(3):
            end = 10_000_000 * call + 4_000_000 * (stream == 20) + 1_000_000 + 777_777 * call * call
            kernels += [kernel(rank, len(kernels) + rank, end - 100_000 - (lag if rank != late else 0), end, stream=stream,
                               collective=what) for rank in (0, 1)]
    rows = straggler.analyse(of_ranks(kernels, {0: None, 1: None}), clock="recorded", lag_threshold_ns=1000).to_pylist()
    assert [(row["rank"], row["times_last"], row["others_wait_ns"], row["wait_ns"]) for row in rows] == [
        (0, 3, 900_000, 1_500_000), (1, 3, 1_500_000, 900_000)]


def test_a_file_without_an_epoch_is_on_no_clock_that_was_recorded() -> None:
    ask = of_ranks(numbered_calls(8), {0: 1_700_000_000_000_000_000, 1: None})
    rows = collective_match.analyse(ask, clock="recorded").to_pylist()
    assert {(row["rank"], row["arrival_ns"] is None, row["last_rank"]) for row in rows} == {(0, False, None), (1, True, None)}


def test_a_sum_that_no_time_can_be_is_null() -> None:
    """Ten calls of two ranks whose clocks are a century apart: each wait fits in 64 bits, their sum does not."""
    ask = of_ranks(numbered_calls(10), {0: 1, 1: 3_200_000_000_000_000_000})
    rows = rank_skew.analyse(ask, clock="recorded", lag_threshold_ns=0).to_pylist()
    assert [(row["rank"], row["times_last"], row["wait_ns"], row["others_wait_ns"]) for row in rows] == [
        (0, 0, None, 0), (1, 10, 0, None)]


def test_no_collective_is_no_row() -> None:
    assert rank_skew.analyse(of_ranks([], {0: None})).num_rows == 0
    assert isinstance(straggler.analyse(of_ranks([], {0: None})), pa.Table)
