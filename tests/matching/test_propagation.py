"""Waits that a late rank passes on to other groups: cases worked out by hand, near misses, and random jobs against plain loops.

Times in ns. Unless a case says otherwise, four ranks are two tensor groups (0, 1) and (2, 3), and two data groups (0, 2) and
(1, 3); a collective of all four ends at 1,000, and each group's first call follows.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from nsightlens.analyses import collective_match, rank_skew, straggler
from nsightlens.columns.arrays import MISSING
from nsightlens.matching.propagation import _ordered, share
from tests.analyses.test_rank_skew import kernel, of_ranks

Row = dict[str, Any]
LATE_NS = 5_000
JOBS = 16
"""Random jobs."""


@dataclass(frozen=True)
class Call:
    """A collective: when each rank of its group starts, and when all end."""

    group: str
    starts: Mapping[int, int]
    end: int
    message_bytes: int | None = 64
    step: int = 1


@dataclass
class Job:
    """Collectives in the order in which they end; what the views say of them."""

    calls: list[Call] = field(default_factory=list)
    says_size: bool = True

    def rows(self) -> list[Row]:
        """Return the kernels."""
        numbers: dict[str, int] = {}
        found: list[Row] = []
        for call in self.calls:
            number = numbers[call.group] = numbers.get(call.group, -1) + 1
            found += [kernel(rank, len(found) + place, start, call.end, group_name=call.group,
                             group_size=len(call.starts) if self.says_size else None,
                             group_seq=number, message_bytes=call.message_bytes, step=call.step)
                      for place, (rank, start) in enumerate(call.starts.items())]
        return found

    def ask(self, view: Any, threshold_ns: int = 100) -> list[Row]:
        """Return what a view says, with the clocks as they are."""
        ranks = dict[int, int | None]({row["rank"]: None for row in self.rows()})
        rows: list[Row] = view.analyse(of_ranks(self.rows(), ranks), clock="recorded", lag_threshold_ns=threshold_ns).to_pylist()
        return rows

    def waits(self, threshold_ns: int = 100) -> dict[int, tuple[int, int]]:
        """Return how long the others waited for each rank that they did, and what of it in later collectives."""
        return {row["rank"]: (row["others_wait_ns"], row["propagated_wait_ns"]) for row in self.ask(straggler, threshold_ns)
                if row["rank"] is not None and row["others_wait_ns"]}


def four_ranks(*, late: int = LATE_NS, slow: int = 0, peers: int = 10, peer_bytes: int | None = 64, then: int = 50) -> Job:
    """Return the job: rank 1 late in its tensor group, whose transfer is slow; peers: by how much rank 3 is late in the other."""
    ends = 1_100 + late + 100 + slow, 1_100 + peers + 100
    return Job([
        Call("all", dict.fromkeys(range(4), 900), 1_000, 8),
        Call("t1", {2: 1_100, 3: 1_100 + peers}, ends[1], peer_bytes),
        Call("t0", {0: 1_100, 1: 1_100 + late}, ends[0]),
        Call("d0", {0: ends[0] + then, 2: ends[1] + 50}, ends[0] + then + 150, 256),
        Call("d1", {1: ends[0] + 50, 3: ends[1] + 50}, ends[0] + 200, 256)])


def test_a_late_rank_has_what_others_wait_in_the_next_group() -> None:
    """Rank 0 waits 5,000 for rank 1. Ranks 2 and 3, whose tensor group ended 4,990 earlier, wait so long for 0 and 1."""
    assert four_ranks().waits() == {1: (LATE_NS + 2 * 4_990, 2 * 4_990)}


def test_what_the_held_up_rank_adds_is_its_own() -> None:
    """Rank 0 takes 350 to the next collective where rank 2 takes 50: rank 2 waits 300 for it, and the rest for rank 1."""
    assert four_ranks(then=350).waits() == {0: (300, 0), 1: (LATE_NS + 2 * 4_990, 2 * 4_990)}


def test_what_a_slow_transfer_causes_is_nobodys() -> None:
    """The tensor group ends 3,000 later than its peer for its slow link, and 4,990 for rank 1."""
    assert four_ranks(slow=3_000).waits() == {1: (LATE_NS + 2 * 4_990, 2 * 4_990)}
    assert four_ranks(late=0, peers=0, slow=3_000).waits() == {}


def test_groups_that_are_late_alike_pass_nothing_on() -> None:
    """Rank 3 is late by 4,800 in its own tensor group: ranks 2 and 3 wait 200 in the data groups."""
    assert four_ranks(peers=4_800).waits() == {1: (LATE_NS + 2 * 200, 2 * 200), 3: (4_800, 0)}


def test_a_difference_within_the_clocks_is_passed_on_to_nobody() -> None:
    """The last of the two tensor groups arrived 200 apart; the data groups' calls begin 3,200 apart for the slow link."""
    job = four_ranks(peers=4_800, slow=3_000)
    assert job.waits(threshold_ns=199) == {1: (LATE_NS + 2 * 200, 2 * 200), 3: (4_800, 0)}
    assert job.waits(threshold_ns=200) == {1: (LATE_NS, 0), 3: (4_800, 0)}


def test_calls_of_another_kind_are_not_compared() -> None:
    """The other tensor group exchanged another payload: how much earlier it could end says nothing of this one."""
    assert four_ranks(peer_bytes=32).waits() == {1: (LATE_NS, 0)}


def test_calls_of_one_communicator_are_not_compared() -> None:
    """Ranks 0 and 2 are in one group of all: its second call had not ended on rank 2 (another stream) when d0 began there."""
    starts = dict.fromkeys(range(4), 900)
    job = Job([Call("all", starts, 1_000), Call("all", starts | {1: 6_000}, 6_100),
               Call("d0", {0: 6_150, 2: 1_100}, 6_300, 256)])
    assert job.waits() == {1: (3 * 5_100, 0)}


@pytest.mark.parametrize(("before", "passed_on"), [("all", 2 * 4_990), ("p0", 0)])
def test_who_was_last_may_be_unknown_where_one_call_released_all(before: str, passed_on: int) -> None:
    """Ranks 0 and 1 come within 50 of each other to a second call of t0: that is nobody's, but 4,990 they are late since the
    first, for rank 1. Not so where rank 1 comes from yet another group: then either of two may have held the call up."""
    job = four_ranks()
    calls = [*job.calls[:3], Call("t1", {2: 1_300, 3: 1_310}, 1_410), Call("t0", {0: 6_300, 1: 6_350}, 6_450),
             Call("d0", {0: 6_500, 2: 1_460}, 6_700, 256), Call("d1", {1: 6_500, 3: 1_460}, 6_700, 256)]
    if before == "p0":
        calls.insert(4, Call("p0", {1: 6_220, 4: 6_220}, 6_240, 16))
    assert Job(calls).waits() == {1: (LATE_NS + passed_on, passed_on)}


@pytest.mark.parametrize("says_size", [True, False])
def test_calls_of_two_and_of_three_ranks_are_not_compared(says_size: bool) -> None:
    """Where the size of a group is unknown, the ranks that were matched are counted."""
    job = Job([Call("all", dict.fromkeys(range(5), 900), 1_000, 8), Call("q", {2: 1_100, 3: 1_105, 4: 1_110}, 1_210),
               Call("p", {0: 1_100, 1: 6_100}, 6_200), Call("o", {0: 6_250, 2: 1_260}, 6_400, 256)], says_size)
    assert job.waits()[1][1] == 0


def test_calls_of_unknown_payload_are_not_compared() -> None:
    job = four_ranks()
    assert Job([replace(call, message_bytes=None) for call in job.calls]).waits() == {1: (LATE_NS, 0)}


def test_an_own_part_within_the_clocks_is_passed_on_to_nobody() -> None:
    """Rank 1 came 120 after rank 0 to t0, but only 60 of what rank 2 waits are its own: the rest is the slow call before."""
    job = Job([Call("all", dict.fromkeys(range(4), 900), 1_000, 8), Call("a", {0: 1_010, 1: 1_010}, 5_000, 16),
               Call("t1", {2: 1_100, 3: 1_110}, 1_210), Call("t0", {0: 5_050, 1: 5_170}, 5_300),
               Call("o", {0: 5_350, 2: 1_260}, 5_600, 256)])
    assert job.waits() == {1: (120, 0)}


def eight_ranks(late: int) -> Job:
    """Return a job on a cube: groups of ranks that differ in the lowest bit, then the next, then the highest; rank 7 is late."""
    ready = dict.fromkeys(range(8), 1_000)
    calls = [Call("all", dict.fromkeys(range(8), 900), 1_000, 8)]
    for bit in (1, 2, 4):
        for low in (rank for rank in range(8) if not rank & bit):
            starts = {rank: ready[rank] + 50 + late * (rank == 7 and bit == 1) for rank in (low, low | bit)}
            calls.append(Call(f"{bit}:{low}", starts, max(starts.values()) + 100, 64 * bit, step=bit))
            ready |= dict.fromkeys(starts, calls[-1].end)
    return Job(sorted(calls, key=lambda call: call.end))


def test_lateness_goes_on_from_group_to_group() -> None:
    """Rank 6 waits for rank 7, then 4 and 5, then 0 to 3: all seven for as long, and for rank 7, in the step it was late in."""
    job = eight_ranks(LATE_NS)
    assert job.waits() == {7: (7 * LATE_NS, 6 * LATE_NS)}
    by_step = [(row["step"], row["rank"], row["others_wait_ns"]) for row in job.ask(rank_skew) if row["others_wait_ns"]]
    assert by_step == [(1, 7, 7 * LATE_NS)]


@pytest.mark.parametrize(("two", "three"), [(2, 3), (3, 2)])
def test_where_two_peers_tie_the_late_rank_has_what_it_has_by_both(two: int, three: int) -> None:
    """Rank 3 is late by 3,000 to d1, which releases 1 and 3. Ranks 2 and 3 come to t1 at once, rank 1 to t0 5,000 after them.

    Rank 2 waits 5,000 in o for rank 0, which rank 1 held up. Rank 1 took 5,000 longer than rank 3, which the same call had
    released; but of what it took longer than rank 2, d1 explains 3,000. So 2,000 are its own by both, and the others nobody's.
    """
    job = Job([
        Call("all", dict.fromkeys(range(4), 900), 1_000, 8),
        Call("d0", {0: 1_010, two: 1_010}, 1_100, 256), Call("d1", {1: 1_010, three: 4_010}, 4_100, 256),
        Call("t1", {two: 4_150, three: 4_150}, 4_250), Call("t0", {0: 1_150, 1: 9_150}, 9_250),
        Call("o", {0: 9_300, two: 4_300}, 9_400, 512)])
    assert job.waits() == {1: (5_000 + 2_000, 2_000), three: (3_000 + 3_000, 3_000)}


def three_ranks(late: int) -> Job:
    """Return a job of ranks 0 to 2, which calls release at 1,000, 3,000 and 4,000: 2 comes late to g, 0 and 1 at once."""
    return Job([Call("x", {0: 900, 3: 900}, 1_000, 8), Call("y", {1: 900, 4: 900}, 3_000, 16),
                Call("z", {2: 900, 5: 900}, 4_000, 32), Call("g", {0: 3_100, 1: 3_100, 2: 3_100 + late}, 9_000)])


def test_where_two_tie_before_the_last_it_is_undecided_what_it_inherited() -> None:
    """Behind rank 0, rank 2 inherited 3,000 of 5,000, behind rank 1 1,000: 2,000 are its own by both, 1,000 inherited."""
    (row,) = (row for row in three_ranks(5_000).ask(collective_match) if (row["group_name"], row["rank"]) == ("g", 2))
    assert (row["lag_ns"], row["inherited_ns"], row["undecided_ns"]) == (5_000, 1_000, 2_000)
    (row,) = (row for row in three_ranks(5_000).ask(straggler) if row["rank"] == 2)
    assert (row["caused_delay_ns"], row["inherited_delay_ns"], row["undecided_delay_ns"]) == (2_000, 1_000, 2_000)
    assert row["others_wait_ns"] == 2 * 2_000


@pytest.mark.parametrize(("late", "verdict"), [(900, "held up"), (3_000, "late or held up"), (5_000, "straggler")])
def test_a_verdict_that_depends_on_who_was_second_last_is_left_open(late: int, verdict: str) -> None:
    """Inherited and undecided: 900 and 0; 1,000 and 2,000, which makes all of 3,000; 1,000 and 2,000 of 5,000."""
    assert [row["verdict"] for row in three_ranks(late).ask(straggler) if row["rank"] == 2] == [verdict]


def test_of_two_late_ranks_the_last_passes_on_what_it_came_after_the_other() -> None:
    """Rank 0 is late, too: without rank 1, which is late by 5,000, its tensor group would have begun 100 earlier."""
    job = four_ranks()
    calls = [*job.calls[:2], replace(job.calls[2], starts={0: 6_000, 1: 6_100}), *job.calls[3:]]
    assert Job(calls).waits(threshold_ns=50) == {1: (100 + 2 * 100, 2 * 100)}


@pytest.mark.parametrize(("other", "own", "passed_on"), [
    (1_100, 300, 4_990), (5_550, 300, 1_000), (6_500, 50, 50), (6_520, 0, 0)])
def test_what_held_up_several_ranks_is_passed_on_as_far_as_no_other_rank_was_late(
    other: int, own: int, passed_on: int,
) -> None:
    """Rank 1 holds up 0 in t0, so that both come late to p; rank 4, which nothing held up, comes to it early, late, or with 0.

    Of what rank 2 waits in o, 300 are due to rank 0, the last in p, and 4,990 to rank 1: so far as rank 4 was not late, too.
    Nothing is where the clocks, 40 apart, do not tell which of 0 and 4 was last.
    """
    job = Job([*four_ranks().calls[:3], Call("all", dict.fromkeys((4, 5), 1_010), 1_020, 8),
               Call("q", {2: 1_260, 3: 1_260, 5: 1_100}, 1_360, 32), Call("p", {0: 6_550, 1: 6_250, 4: other}, 6_700, 32),
               Call("o", {0: 6_750, 2: 1_410}, 6_900, 256)])
    waits = job.waits(threshold_ns=40)
    assert (waits.get(0, (0, 0))[1], waits[1][1]) == (own, passed_on)


def test_shares_are_whole_and_exact_however_large() -> None:
    dice = random.Random(1)
    waited = [10, 10, 10, (1 << 53) + 1, *(dice.randrange(1 << dice.randrange(1, 63)) for _ in range(500))]
    lag = [3, 3, 3, 1, *(dice.randrange(1, 1 << dice.randrange(1, 63)) for _ in range(500))]
    part = [0, 1, 3, 1, *(dice.randrange(of + 1) for of in lag[4:])]
    shares = share(*map(np.array, (waited, part, lag)))
    assert shares.tolist() == [ns * some // of for ns, some, of in zip(waited, part, lag, strict=True)]


def test_a_share_of_an_unknown_wait_is_unknown() -> None:
    assert share(np.array([MISSING]), np.array([1]), np.array([2])).tolist() == [MISSING]


# --- random jobs ---------------------------------------------------------------------------------------------------------


def random_job(dice: random.Random) -> Job:
    """Return some rounds of collectives over the axes of a grid of ranks; some ranks are late, some groups slow, or skip one."""
    sizes = [dice.choice((2, 2, 3)) for _ in range(dice.choice((2, 2, 3)))]
    ranks = list(product(*map(range, sizes)))
    ready = {place: 1_000 + dice.randrange(50) for place in ranks}
    calls: list[Call] = []
    for turn, axis in product(range(dice.randrange(1, 4)), range(len(sizes))):
        for key in sorted({(*place[:axis], *place[axis + 1:]) for place in ranks}):
            members = [place for place in ranks if (*place[:axis], *place[axis + 1:]) == key]
            if dice.random() < 0.05:
                continue
            starts = {ranks.index(place): ready[place] + dice.randrange(20) + dice.randrange(3_000) * (dice.random() < 0.15)
                      for place in members}
            end = max(starts.values()) + 100 + dice.randrange(2_000) * (dice.random() < 0.1)
            ready |= dict.fromkeys(members, end)
            payload = 64 * (axis + 1) if dice.random() < 0.95 else 32
            calls.append(Call(f"{axis}:{key}", starts, end, payload, turn))
    return Job(sorted(calls, key=lambda call: call.end))


@dataclass(frozen=True)
class Plain:
    """The definition, in loops: of each call who waited how long for whom."""

    calls: Sequence[Call]
    threshold: int

    def before(self, rank: int, start: int) -> int | None:
        """Return the last call of a rank that ended by a time."""
        ended = [(call.end, number) for number, call in enumerate(self.calls) if rank in call.starts and call.end <= start]
        return max(ended)[1] if ended else None

    def order(self, number: int) -> list[int]:
        """Return the ranks of a call, the last one last."""
        starts = self.calls[number].starts
        return sorted(starts, key=lambda rank: (starts[rank], rank))

    def last(self, number: int) -> int | None:
        """Return the last rank of a call; None where it is within the threshold of the second last."""
        second, last = self.order(number)[-2:]
        starts = self.calls[number].starts
        return last if starts[last] - starts[second] > self.threshold else None

    def released(self, number: int, rank: int) -> int | None:
        """Return the call before this one on a rank of it."""
        return self.before(rank, self.calls[number].starts[rank])

    def lag(self, number: int) -> int:
        """Return by how much the last rank of a call came later than the second last."""
        second, last = self.order(number)[-2:]
        return self.calls[number].starts[last] - self.calls[number].starts[second]

    def tied(self, number: int, place: int) -> list[int]:
        """Return the ranks of a call that may be the one at this place of their order, from the end."""
        order, starts = self.order(number), self.calls[number].starts
        return [rank for rank in order[:len(order) + place + 1] if starts[order[place]] - starts[rank] <= self.threshold]

    def inherited(self, number: int) -> tuple[int, int]:
        """Return the least and the most that the last rank of a call inherited, by those that may be the second last."""
        late = self.released(number, self.order(number)[-1])
        apart = [self.apart(self.released(number, rank), late, self.lag(number)) for rank in self.tied(number, -2)]
        return min(apart), max(apart)

    def held(self, number: int) -> int:
        """Return by how much the last rank of a call came later than those that another call had released; 0 in doubt."""
        last, starts = self.order(number)[-1], self.calls[number].starts
        behind = [starts[last] - start for rank, start in starts.items()
                  if self.released(number, rank) != self.released(number, last)]
        return min((ns if ns > self.threshold else 0 for ns in behind), default=1 << 60)

    def shares(self, number: int) -> list[tuple[int, int, int]]:
        """Return (call, its last rank, ns): whose lateness where made all ranks wait in a call how long."""
        last, starts = self.last(number), self.calls[number].starts
        if last is None:
            return []
        lag, waited = self.lag(number), sum(starts[last] - start for start in starts.values())
        left, most = self.inherited(number)
        found = [(number, last, waited * (lag - most) // lag)]
        late, compared = self.released(number, last), [self.released(number, rank) for rank in self.tied(number, -2)]
        while left and late is not None:
            call, then = self.calls[late], self.order(late)[-1]
            peers = [peer for peer in compared if peer is not None and self.calls[peer].group != call.group and (
                self.calls[peer].message_bytes, len(self.calls[peer].starts)) == (call.message_bytes, len(call.starts))]
            arrived = min([left, *(call.starts[then] - max(self.calls[peer].starts.values()) for peer in peers)])
            if not peers or arrived <= self.threshold:
                break
            before = self.released(late, then)
            compared = [self.released(peer, rank) for peer in peers for rank in self.tied(peer, -1)]
            apart = [self.apart(one, before, arrived) for one in compared]
            own = min(arrived - max(apart), self.lag(late) - self.inherited(late)[1])
            if self.last(late) is not None and own > self.threshold:
                bottom = lag - max(apart)
                found.append((late, then, waited * bottom // lag - waited * (bottom - own) // lag))
            left, late = min(min(apart), self.held(late)), before
        return found

    def apart(self, early: int | None, late: int | None, most: int) -> int:
        """Return by how much one call ended later than another, at most `most`; 0 where one is unknown or they are the same."""
        return 0 if early is None or late is None else min(most, max(0, self.calls[late].end - self.calls[early].end))


@pytest.mark.parametrize("seed", range(JOBS))
def test_random_jobs_are_what_loops_say_and_no_wait_counts_twice(seed: int) -> None:
    dice = random.Random(seed)
    job, threshold = random_job(dice), dice.choice((0, 25, 400))
    plain = Plain(job.calls, threshold)
    direct, passed_on = dict[int, int](), dict[int, int]()
    for number in range(len(job.calls)):
        for call, rank, ns in plain.shares(number):
            to = direct if call == number else passed_on
            to[rank] = to.get(rank, 0) + ns
    rows = [row for row in job.ask(straggler, threshold) if row["rank"] is not None]
    assert {row["rank"]: row["propagated_wait_ns"] for row in rows if row["propagated_wait_ns"]} == {
        rank: ns for rank, ns in passed_on.items() if ns}
    assert {row["rank"]: row["others_wait_ns"] for row in rows} == {
        row["rank"]: direct.get(row["rank"], 0) + passed_on.get(row["rank"], 0) for row in rows}
    assert sum(row["others_wait_ns"] for row in rows) <= sum(row["wait_ns"] for row in rows)
    matched = job.ask(collective_match, threshold)
    assert sum(row["wait_ns"] for row in matched) == sum(row["wait_ns"] for row in rows)


def test_random_jobs_pass_waits_on() -> None:
    """What the test above compares is no empty set."""
    found = [rows for seed in range(JOBS) if (rows := random_job(random.Random(seed)).waits(25))]
    assert 2 * sum(any(later for _, later in rows.values()) for rows in found) >= JOBS


def test_times_that_are_not_known_are_neither_first_nor_last() -> None:
    start, owner = np.array([MISSING, 5, 9, MISSING, 7]), np.array([0, 0, 0, 1, 2])
    assert [places.tolist() for places in _ordered(start, owner)] == [[1, -1, 4], [1, -1, -1], [2, -1, 4]]
