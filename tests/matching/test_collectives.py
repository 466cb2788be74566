"""Matched collectives and fitted clocks: constructed cases, random variants of the simulated job, and the real 8-rank traces."""

from __future__ import annotations

import importlib
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nsightlens as nl
from nsightlens.analyses import collective_match
from nsightlens.columns.arrays import Int, Places
from nsightlens.matching import collectives
from nsightlens.matching.collectives import NAMED, NUMBERED, ORDERED, TIMED, CommunicationKernels, Kinds, Matched, fit
from nsightlens.store.store import Store
from tests.catalogs import catalog
from tests.fixtures.simulated_run import FIXTURES, truth
from tests.places import ROOT

sys.path.insert(0, str(FIXTURES))
generator = importlib.import_module("make_simulated_ddp")
simulated_clocks = importlib.import_module("simulated.clocks")
execute = importlib.import_module("simulated.execution").execute
job = importlib.import_module("simulated.job").job
Knobs = importlib.import_module("simulated.knobs").Knobs

MEGATRON = ROOT.parent / "shared" / "data" / "kineto" / "astra-sim__astra-sim__megatron-tp8"


@dataclass(frozen=True)
class Call:
    """One collective kernel of one rank; None for what the trace does not tell."""

    row: int
    start: int
    end: int
    token: object
    stream: object
    group: str | None = None
    group_size: int | None = None
    number: int | None = None
    resolution: int = 1
    paired: bool = False
    is_possible: bool = True
    step: int | None = None


def columns(ranks: Mapping[int, Sequence[Call]]) -> CommunicationKernels:
    """Return the calls of ranks as columns."""
    every = [(rank, call) for rank, those in sorted(ranks.items()) for call in those]
    groups = list(dict.fromkeys(call.group for _, call in every if call.group is not None))
    tokens: dict[object, int] = {}
    streams: dict[object, int] = {}

    def column(value: Callable[[Call], int]) -> Int:
        return np.array([value(call) for _, call in every], dtype=np.int64)

    def of_kind(value: Callable[[Call], int]) -> Places:
        return column(value).astype(np.int32)

    kinds = Kinds(
        rank=np.array([rank for rank, _ in every], dtype=np.int32),
        token=of_kind(lambda call: tokens.setdefault(call.token, len(tokens))),
        stream=of_kind(lambda call: streams.setdefault(call.stream, len(streams))),
        group=of_kind(lambda call: -1 if call.group is None else groups.index(call.group)),
        group_size=of_kind(lambda call: call.group_size or 0), resolution=of_kind(lambda call: call.resolution),
        paired=column(lambda call: call.paired).astype(bool), takes_part=np.ones(len(every), dtype=bool))
    return CommunicationKernels(
        kind=np.arange(len(every), dtype=np.int32), start=column(lambda call: call.start), end=column(lambda call: call.end),
        number=column(lambda call: -1 if call.number is None else call.number),
        step=column(lambda call: -1 if call.step is None else call.step),
        is_possible=column(lambda call: call.is_possible).astype(bool), kinds=kinds, groups=groups)


@dataclass(frozen=True)
class Found:
    """A communicator whose calls were matched: `calls[k][rank]` is the k-th call on that rank."""

    group: str | None
    method: str
    ranks: list[int]
    calls: list[dict[int, Call]]


def match(ranks: Mapping[int, Sequence[Call]]) -> list[Found]:
    """Return what is matched of the calls of ranks."""
    every = [call for _, those in sorted(ranks.items()) for call in those]
    made = columns(ranks)
    found = []
    for matched in collectives.match(made):
        together: list[dict[int, Call]] = [{} for _ in range(matched.calls)]
        for call, place in zip(matched.call.tolist(), matched.place.tolist(), strict=True):
            together[call][int(made.kinds.rank[place])] = every[place]
        found.append(Found(matched.group, matched.method, list(matched.ranks), together))
    return found


def clocks(ranks: Mapping[int, Sequence[Call]]) -> dict[int, collectives.Clock]:
    """Return the clocks that follow from the calls of ranks."""
    made = columns(ranks)
    return collectives.clocks(made, collectives.match(made))


def calls(ends: list[int], *, token: object = "allreduce", group: str | None = None, size: int | None = None,
          numbers: list[int] | None = None, stream: int = 7) -> list[Call]:
    return [Call(row, end - 100, end, token, stream, group, size, numbers[row] if numbers else None)
            for row, end in enumerate(ends)]


def test_numbered_calls_meet_whatever_is_missing() -> None:
    found = match({0: calls([1000, 2000, 3000], group="g", numbers=[4, 5, 6]), 3: calls([2010, 3010], group="g", numbers=[5, 6])})
    assert [(m.group, m.method, m.ranks) for m in found] == [("g", NUMBERED, [0, 3])]
    assert [{rank: call.end for rank, call in one.items()} for one in found[0].calls] == [{0: 2000, 3: 2010}, {0: 3000, 3: 3010}]


def test_one_number_with_two_payloads_is_no_match() -> None:
    one, other = calls([1000], token="a", group="g", numbers=[1]), calls([1000], token="b", group="g", numbers=[1])
    assert match({0: one, 1: other}) == []


def test_named_calls_meet_in_order_and_ambiguous_ones_do_not() -> None:
    full = [Call(i, 0, 1000 * i, token, 7, "g") for i, token in enumerate("abcdefaa")]
    found = match({0: full, 1: full[:-1]})
    assert found[0].method == NAMED
    assert [one[1].row for one in found[0].calls] == [0, 1, 2, 3, 4, 5]


def test_a_loop_that_lacks_calls_on_both_sides_meets_by_its_ends() -> None:
    ends = [10_000_000 * k + random.Random(k).randrange(2_000_000) for k in range(20)]
    found = match({0: calls(ends[2:]), 1: calls([end + 5_000_000_000 for end in ends[:-2]])})
    assert [(m.method, len(m.calls)) for m in found] == [(TIMED, 16)]
    assert all(one[1].end - one[0].end == 5_000_000_000 for one in found[0].calls)


def test_calls_that_end_together_are_the_same_only_if_they_are_alike() -> None:
    ends = [10_000_000 * k + random.Random(k).randrange(2_000_000) for k in range(10)]
    one = [replace(call, token="x" if call.row == 9 else "y") for call in calls(ends)]
    for ranks in ({0: one, 1: calls(ends, token="y")}, {0: calls(ends, token="y"), 1: one}):
        (found,) = match(ranks)
        assert (found.method, [together[0].row for together in found.calls]) == (TIMED, list(range(9)))


def test_a_loop_as_regular_as_a_clock_cannot_be_told() -> None:
    ends = [10_000_000 * k for k in range(20)]
    assert match({0: calls(ends[1:]), 1: calls(ends[:-2])}) == []


def test_more_ranks_than_a_group_has_are_several_groups() -> None:
    assert match({rank: calls([1000, 2000, 3000], group="tp", size=2) for rank in range(4)}) == []


def test_streams_meet_by_what_runs_on_them() -> None:
    def two(first: int, second: int, shift: int) -> list[Call]:
        some = calls([1_000_000 + shift, 2_000_000 + shift], token="a", stream=first)
        more = calls([1_500_000 + shift, 2_700_000 + shift, 3_500_000 + shift], token="b", stream=second)
        return sorted(some + more, key=lambda call: call.start)

    found = match({0: two(20, 24, 0), 1: two(31, 30, 5)})
    assert [(m.method, len(m.calls), {c.token for one in m.calls for c in one.values()}) for m in found] == [
        (TIMED, 3, {"b"}), (ORDERED, 2, {"a"})]


def test_two_streams_alike_are_not_guessed() -> None:
    both = calls([1000, 2000, 3000], stream=1) + calls([1100, 2100, 3100], stream=2)
    assert match({0: both, 1: both}) == []


def test_ranks_whose_calls_do_not_fit_are_given_up() -> None:
    assert match({0: calls([1000] * 5, token="a"), 1: calls([1000] * 5, token="b")}) == []


def test_a_clock_has_offset_and_drift_and_ignores_outliers() -> None:
    ends = np.arange(0, 1_000_000_000, 10_000_000) + 1_700_000_000_000_000_000
    at = (int(ends[0]) + int(ends[-1])) // 2
    others = ends + 5_000_000 + np.round((ends - at) * 2e-5).astype(np.int64)
    others[::10] += 3_000_000
    found = fit(0, ends, others, ORDERED)
    assert found is not None
    assert (round(found.offset), round(found.drift * 1e9)) == (5_000_000, 20_000)
    assert found.uncertainty < 10


def test_a_drift_within_its_error_is_none() -> None:
    ends = np.arange(0, 1_000_000_000, 10_000_000)
    noise = np.random.default_rng(1).normal(0, 20_000, len(ends)).astype(np.int64)
    slow, fast = (fit(0, ends, ends + noise + np.round(ends * drift).astype(np.int64), ORDERED) for drift in (1e-6, 1e-4))
    assert slow is not None and fast is not None
    assert slow.drift == 0 and abs(fast.drift - 1e-4) < 1e-5


def test_too_few_calls_give_no_clock() -> None:
    assert clocks({0: calls([1000, 2000]), 1: calls([1010, 2010])}) == {}


def test_a_rank_without_a_common_group_is_tied_over_others() -> None:
    ends = [1_000_000 * k for k in range(1, 30)]

    def moved(offset: int, group: str, *, base: int = 0) -> list[Call]:
        return calls([base + end + offset for end in ends], group=group)

    found = clocks({0: moved(0, "a"), 1: moved(50, "a") + moved(50, "b", base=500_000), 2: moved(-20, "b", base=500_000)})
    assert {rank: (clock.reference, round(clock.offset)) for rank, clock in found.items()} == {0: (0, 0), 1: (0, 50), 2: (0, -20)}


@pytest.mark.parametrize(("between", "last"), [(1, 2), (2, 1)])
def test_a_clock_over_another_rank_is_that_at_its_own_time(between: int, last: int) -> None:
    """The rank between drifts; its group with rank 0 is early, that with the last rank late."""
    early, late = ([1_000_000_000 * k + start for k in range(1, 30)] for start in (0, 100_000_000_000))

    def second(end: int) -> int:
        return end + 5_000 + end // 100_000

    both = calls([*map(second, early)], group="a") + calls([*map(second, late)], group="b")
    ranks = {0: calls(early, group="a"), between: both, last: calls(late, group="b")}
    clock = clocks(ranks)[last]
    assert clock.reference == 0 and abs(clock.at - 115_000_000_000) < 2_000_000
    assert abs(clock.offset) < 20_000 and abs(clock.drift) < 1e-9, "the last rank has the clock of rank 0"


@cache
def script(steps: int, evaluate_after: tuple[int, ...]) -> object:
    """Return the job's actions, which neither the seed nor the clocks change."""
    return job(Knobs(steps=steps, evaluate_after=evaluate_after))


def variant(seed: int) -> tuple[dict[int, tuple[int, int, int, int]], float]:
    """Return ({rank: (fitted, true offset, uncertainty, drift error)}, jitter of the ends) of one random variant of the job."""
    rng = random.Random(seed)
    tool = rng.choice(("nsys", "kineto"))
    knobs = Knobs(seed=seed, world_size=rng.choice((2, 4)), clock_offset_ns=rng.choice((10_000, 2_000_000, 10**9)),
                  clock_drift_ppb=rng.choice((0, 3_000, 30_000)) or 3, steps=rng.choice((3, 6)), evaluate_after=(2,))
    records = execute(tool, knobs, script(knobs.steps, knobs.evaluate_after))
    missing = {rng.randrange(knobs.world_size)} if knobs.world_size > 2 else set()
    shown, ranks = {}, {}
    for record in records:
        if record.rank in missing:
            continue
        shown[record.rank] = simulated_clocks.clock(tool, knobs, record.rank)
        moved = [work for work in record.work if work.work.collective]
        kept = [work for work in moved if rng.random() > 0.03]
        mine = shown[record.rank]
        ranks[record.rank] = [
            Call(i, mine.local(w.start), mine.local(w.end), (w.work.collective.kind, w.work.collective.bytes), w.work.stream)
            for i, w in enumerate(kept) if w.work.collective]
    spreads = [max(w.end for w in together) - min(w.end for w in together)
               for together in zip(*([w for w in r.work if w.work.collective] for r in records), strict=True)]
    reference = shown[min(shown)]
    errors = {}
    for rank, found in clocks(ranks).items():
        if rank != min(shown):
            true = shown[rank].local(found.at) - reference.local(found.at)
            errors[rank] = (round(found.offset), true, round(found.uncertainty), round(found.drift * 1e9) - shown[rank].drift_ppb)
    return errors, statistics.median(spreads)


@pytest.mark.long
def test_clocks_of_random_variants_are_found_within_their_uncertainty() -> None:
    found = [variant(seed) for seed in range(100)]
    assert sum(bool(errors) for errors, _ in found) >= 95, "clocks must be found at all"
    right = [all(abs(fitted - true) <= uncertainty for fitted, true, uncertainty, _ in errors.values()) for errors, _ in found]
    assert sum(right) >= 95
    ratios = [uncertainty / jitter for errors, jitter in found for _, _, uncertainty, _ in errors.values()]
    assert statistics.median(ratios) <= 3


def in_microseconds(call: Call) -> Call:
    """Return the call as a tool prints it that cuts starts and durations to whole us."""
    start = call.start // 1000 * 1000
    return Call(call.row, start, start + (call.end - call.start) // 1000 * 1000, call.token, call.stream, resolution=1000)


def few_calls(seed: int) -> dict[int, bool]:
    """Return whether the true offset of the clocks lies within the stated bound, by the number of calls, of one simulated job."""
    knobs = Knobs(seed=seed, clock_offset_ns=random.Random(seed).choice((10, 3_000, 2_000_000)),
                  clock_drift_ppb=3 + seed % 5 * 5_000, steps=3, evaluate_after=())
    shown = {rank: simulated_clocks.clock("kineto", knobs, rank) for rank in (0, 1)}
    ranks = {}
    for record in execute("kineto", knobs, script(knobs.steps, knobs.evaluate_after)):
        local = shown[record.rank].local
        moved = [w for w in record.work if w.work.collective]
        ranks[record.rank] = [in_microseconds(Call(row, local(w.start), local(w.end), "allreduce", 7))
                              for row, w in enumerate(moved)]
    found = {}
    for count in range(3, 11):
        first = seed % (len(ranks[0]) - count + 1)
        some = columns({rank: ranks[rank][first : first + count] for rank in (0, 1)})
        together = Matched(None, ORDERED, np.tile(np.arange(count), 2), np.arange(2 * count), [0, 1])
        clock = collectives.clocks(some, [together])[1]
        true = shown[1].local(clock.at) - shown[0].local(clock.at)
        assert clock.uncertainty >= 1000, "an uncertainty is never less than the resolution"
        found[count] = abs(clock.offset - true) <= clock.uncertainty
    return found


@pytest.mark.long
def test_bounds_of_few_calls_in_whole_microseconds_hold_the_true_offset() -> None:
    """Three to ten calls: in 95 of 100 jobs, for each of these numbers."""
    found = [few_calls(seed) for seed in range(100)]
    held = {count: sum(one[count] for one in found) for count in range(3, 11)}
    assert {count: times for count, times in held.items() if times < 95} == {}


def test_equal_ends_leave_the_resolution_as_uncertainty() -> None:
    ends = np.array([1_000_000, 3_000_000, 8_000_000])
    sharp, coarse = fit(0, ends, ends + 5_000, ORDERED), fit(0, ends, ends + 5_000, ORDERED, 1000)
    assert sharp is not None and coarse is not None
    assert (sharp.uncertainty, coarse.uncertainty) == (1, 1000)


def exchanges(ends: list[int], *, stream: int = 7) -> list[Call]:
    return [Call(row, end - 100, end, "SendRecv", stream, paired=True) for row, end in enumerate(ends)]


def test_unnamed_sends_and_receives_that_end_together_on_all_ranks_are_collectives() -> None:
    ends = [10_000_000 * k + random.Random(k).randrange(2_000_000) for k in range(12)]
    found = match({rank: exchanges([end + 40 * rank for end in ends]) for rank in range(4)})
    assert [(m.method, m.ranks, len(m.calls)) for m in found] == [(TIMED, [0, 1, 2, 3], 12)]


def test_sends_and_receives_between_two_of_four_ranks_are_none() -> None:
    """A pipeline: each rank exchanges with its neighbour only."""
    ends = [10_000_000 * k + random.Random(k).randrange(2_000_000) for k in range(12)]
    later = [10_000_000 * k + 5_000_000 + random.Random(k + 99).randrange(2_000_000) for k in range(12)]
    assert match({rank: exchanges(ends if rank < 2 else later) for rank in range(4)}) == []


def test_unnamed_sends_and_receives_are_not_matched_by_their_order() -> None:
    assert match({rank: exchanges([1000, 2000]) for rank in range(2)}) == [], "two ends tell no distance"
    assert match({rank: exchanges([10_000_000 * k for k in range(20)]) for rank in range(2)}) == [], "too regular"


@pytest.fixture(scope="module")
def simulated(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


def test_the_simulated_run_has_its_true_clocks(simulated: Store) -> None:
    true = {(row["tool"], int(row["rank"])): row for row in truth("clocks.tsv")}
    found = [row for row in simulated.view("rank_clock").to_pylist() if row["rank"] == 1]
    assert {row["tool"] for row in found} == {"nsys", "kineto"}
    for row in found:
        clock_row = true[row["tool"], 1]
        elapsed = row["at_ns"] - simulated_clocks.execution_epoch_ns(row["tool"])
        offset = int(clock_row["offset_ns"]) + elapsed * int(clock_row["drift_ppb"]) // 10**9
        assert abs(row["offset_ns"] - offset) <= row["uncertainty_ns"]
        assert (row["same_host"], row["shares_clock"]) == (False, False)


def test_the_late_rank_is_named(simulated: Store) -> None:
    rows = simulated.view("rank_skew").to_pylist()
    for late in (late for late in truth("late_ranks.tsv") if late["tool"] != "ncu"):
        step = [r for r in rows if r["tool"] == late["tool"] and r["step"] == int(late["step"]) and r["rank"] is not None]
        latest = max(step, key=lambda row: row["caused_delay_ns"])
        assert latest["rank"] == int(late["rank"])
        waited = sum(int(r["wait_ns"]) for r in truth("collectives.tsv")
                     if (r["tool"], r["step"]) == (late["tool"], late["step"]) and r["rank"] != late["rank"])
        assert waited and abs(latest["caused_delay_ns"] - waited) < 50_000


def test_waits_are_the_true_waits(simulated: Store) -> None:
    true = {(r["tool"], r["rank"], int(r["message_bytes"]), round(int(r["wait_ns"]) / 20_000)) for r in truth("collectives.tsv")}
    rows = [r for r in simulated.view("collective_match").to_pylist() if r["tool"] == "kineto"]
    near = [any((r["tool"], str(r["rank"]), r["message_bytes"], round(r["wait_ns"] / 20_000) + d) in true for d in (-1, 0, 1))
            for r in rows]
    assert rows and all(near)


def test_a_wrong_host_label_is_seen_through(tmp_path: Path) -> None:
    generator.make(tmp_path / "run", seed=3, wrong_host_rank=1)
    store = nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1)
    rows = [row for row in store.view("rank_clock").to_pylist() if row["rank"] == 1]
    assert rows and all(row["same_host"] and not row["shares_clock"] for row in rows)


@pytest.mark.parametrize(("lag_threshold_ns", "last"), [(None, None), (100, 1), (900, None)])
def test_where_no_clock_could_be_fitted_only_a_gate_names_a_rank(lag_threshold_ns: int | None, last: int | None) -> None:
    """Two calls are too few for a clock: the files' clocks may differ by anything."""
    kernels = [{"run": "r", "tool": "kineto", "profile_id": f"p{rank}", "process_id": f"q{rank}", "rank": rank,
                "kernel_id": 2 * rank + n, "start_ns": 10_000 * n + 900 * rank, "duration_ns": 5_000 - 900 * rank,
                "family": "collective", "stream": 7, "collective": "allreduce", "message_bytes": 64,
                "group_name": "g", "group_size": 2, "group_seq": n}
               for rank in range(2) for n in range(2)]
    profiles = [{"run": "r", "tool": "kineto", "profile_id": f"p{rank}", "execution_id": "e"} for rank in range(2)]
    connection = catalog(kernels=kernels, profiles=profiles)
    table = collective_match.analyse(
        lambda sql, values: connection.sql(sql, params=values).to_arrow_table(), clock="recorded",
        lag_threshold_ns=lag_threshold_ns)
    assert table["lag_threshold_ns"].to_pylist() == [lag_threshold_ns] * 4
    assert table["last_rank"].to_pylist() == [last] * 4
    assert table["arrival_ns"].to_pylist() == [0, 900, 0, 900]


@pytest.mark.skipif(not MEGATRON.is_dir(), reason="the real captures are not here")
class TestMegatron:
    """Eight ranks of one host (definitions.md C)."""

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory: pytest.TempPathFactory) -> Store:
        return nl.ingest(MEGATRON, store=tmp_path_factory.mktemp("megatron") / "store")

    def test_offsets_lie_within_their_uncertainty_of_zero(self, store: Store) -> None:
        rows = store.view("rank_clock").to_pylist()
        assert [row["rank"] for row in rows] == list(range(8))
        assert all(abs(row["offset_ns"]) <= row["uncertainty_ns"] and row["drift_ppb"] == 0 for row in rows[1:])
        assert (rows[0]["method"], rows[0]["uncertainty_ns"]) == ("reference", None)
        assert {row["collectives"] for row in rows[1:]} == {84}

    def test_last_arrivals(self, store: Store) -> None:
        def last(lag_threshold_ns: int) -> Counter[int | None]:
            rows = store.view("collective_match", clock="recorded", lag_threshold_ns=lag_threshold_ns, only_rank=0)
            return Counter(rows["last_rank"].to_pylist())

        assert last(30_000) == {0: 32, 6: 16, 2: 3, 3: 1, None: 32}
        raw = last(0)
        assert (raw[0], raw[6], raw[3], raw[None]) == (32, 28, 15, 1), "one tie of ranks 5 and 6"

    def test_the_stragglers(self, store: Store) -> None:
        rows = store.view("straggler").to_pylist()
        assert [row["rank"] for row in rows if row["verdict"] == "straggler"] == [0, 6]
        assert rows[-1]["verdict"].startswith("cannot tell, ± ")

    def test_ends_agree_and_starts_do_not(self, store: Store) -> None:
        rows = store.view("collective_match", clock="recorded").to_pylist()
        ends: dict[int, list[int]] = {}
        for row in rows:
            ends.setdefault(row["call_index"], []).append(row["transfer_ns"])
        spreads = [max(some) - min(some) for some in ends.values()]
        assert (max(spreads), statistics.median(spreads)) == (49_000, 30_000)
        assert max(row["arrival_ns"] for row in rows) == 41_730_000


def _loop(calls: int, apart: int, without: tuple[int, ...] = (), shift: int = 0, named: str | None = "0") -> list[Call]:
    """Return the calls of a loop that is as regular as a clock, one in each step, but those of some steps."""
    return [Call(step, 1000 * step, apart * step + shift + 500, "allreduce", 20, named, 2, step=step)
            for step in range(calls) if step not in without]


@pytest.mark.parametrize("without", [(57,), (0,), (99,), (3, 50, 51)])
def test_a_call_that_one_rank_lacks_costs_that_call(without: tuple[int, ...]) -> None:
    (found,) = collectives.match(columns({0: _loop(100, 1_000_000), 1: _loop(100, 1_000_000, without, shift=300)}))
    assert found.calls == 100 - len(without)


def test_between_sure_pairs_equal_calls_are_pairs_whatever_their_ends_differ_by() -> None:
    ends = [0, 3_000_000, 10_000_000, 11_700_000, 30_000_000, 31_000_000, 47_000_000, 60_100_000]
    one = [Call(n, end - 100, end, f"call {n % 3}", 20, "0", 2) for n, end in enumerate(ends)]
    other = [replace(call, end=call.end + (441_000_000 if n == 4 else 50)) for n, call in enumerate(one)]
    (found,) = collectives.match(columns({0: one, 1: other}))
    assert found.calls == 8
