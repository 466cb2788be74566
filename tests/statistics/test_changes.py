"""judged: what recordings say of runs, and what the steps of one recording say of that recording alone."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.statistics.changes import Recording, _of_steps, judged


def recordings(*means: float, steps: int = 10, spread: float = 1.0, seed: int = 0) -> list[Recording]:
    """Return recordings whose steps vary around a mean of their own."""
    random = np.random.default_rng(seed)
    found = []
    for mean in means:
        noise = random.normal(0, spread, steps)
        found.append(Recording.of(mean + noise - noise.mean()))
    return found


def test_one_recording_of_each_run_is_undecided_however_large_the_change() -> None:
    change = judged({"step": recordings(100)}, {"step": recordings(300)}, 0.01, 1.0, planned=True)["step"]
    assert (change.verdict, change.seen, change.runs, change.needed) == ("undecided", "longer", None, 2)
    assert change.recordings is not None and 198 < change.recordings.low < change.recordings.high < 202


def test_recordings_of_one_setting_are_rarely_called_different() -> None:
    """Recordings vary by 10 %, their steps by 1 %: judged by steps, nearly all pairs would differ."""
    random = np.random.default_rng(5)
    named = dict.fromkeys((2, 3, 5), 0)
    for count in named:
        for trial in range(400):
            base, other = ({"step": recordings(*random.normal(100, 10, count), seed=trial)} for _ in range(2))
            named[count] += judged(base, other, 0.01, 1.0, planned=True)["step"].verdict in ("slower", "faster")
    assert all(count <= 33 for count in named.values()), named  # 400 * 0.05 + 3 standard deviations


def test_a_true_change_is_found_and_its_interval_excludes_0() -> None:
    change = judged({"step": recordings(100, 101, 99)}, {"step": recordings(110, 111, 112)}, 0.01, 1.0, planned=True)["step"]
    assert (change.verdict, change.seen, change.needed) == ("slower", None, None)
    assert change.runs is not None and change.runs.low > 0


def test_one_new_recording_is_judged_by_how_the_others_vary() -> None:
    base = recordings(100, 101, 99, 100.5)
    assert judged({"step": base}, {"step": recordings(120)}, 0.01, 1.0, planned=True)["step"].verdict == "slower"
    assert judged({"step": base}, {"step": recordings(101.5)}, 0.01, 1.0, planned=True)["step"].verdict == "undecided"


def test_no_change_is_said_only_where_the_interval_shows_it() -> None:
    alike = judged({"a": recordings(100, 100.1, 99.9)}, {"a": recordings(100, 99.9, 100.1)}, 0.01, 5.0)["a"]
    vague = judged({"a": recordings(100, 120, 80)}, {"a": recordings(100, 80, 120)}, 0.01, 5.0)["a"]
    assert (alike.verdict, vague.verdict) == ("no change", "undecided")
    assert vague.needed is not None and vague.needed > 3


def test_the_planned_test_is_not_held_to_the_lists_rate() -> None:
    """p is 0.02: beyond a false-discovery rate of 0.01 among items, and a change for a test that stands alone."""
    base, other = {"step": recordings(100, 102)}, {"step": recordings(110, 113)}
    planned, listed = (judged(base, other, 0.01, 1.0, planned=planned)["step"] for planned in (True, False))
    assert planned.runs is not None and 0.01 < planned.runs.rate < 0.05 and planned.runs.low > 0
    assert (planned.verdict, listed.verdict) == ("slower", "undecided")


def test_what_is_named_has_an_interval_without_0_however_lenient_the_rate() -> None:
    base, other = {"step": recordings(100, 104, 102)}, {"step": recordings(104, 108, 103)}
    for one, two in ((base, other), (other, base)):
        change = judged(one, two, 0.5, 1.0)["step"]
        assert change.runs is not None and 0.05 < change.runs.rate < 0.5 and change.runs.low < 0 < change.runs.high
        assert change.verdict == "undecided"


def test_a_threshold_is_a_share_of_what_was_whatever_its_digits() -> None:
    """1 % of 150 ns is 1.5 ns: more than a certain change of 1.2 ns, and less than one of 1.8 ns."""
    base = {"k": recordings(150, 150.01, 149.99, spread=0.01)}
    for change, verdict in ((1.2, "no change"), (1.8, "slower")):
        other = {"k": recordings(150 + change, 150.01 + change, 149.99 + change, spread=0.01)}
        assert judged(base, other, 0.01, 1.0)["k"].verdict == verdict


def test_equal_means_of_a_coarse_clock_are_no_certainty() -> None:
    """Durations in whole microseconds: 19/6 in both recordings of one run, 3 in both of the other."""
    base, other = [Recording.of(np.array([3.0, 3, 3, 3, 3, 4]))] * 2, [Recording.of(np.full(6, 3.0))] * 2
    assert judged({"k": base}, {"k": other}, 0.01, 1.0)["k"].verdict == "undecided"


def test_what_no_recording_of_a_run_has_is_named_and_is_new_for_the_runs_where_that_is_beyond_chance() -> None:
    found = judged({"gone": recordings(5, 9), "same": recordings(10, 10)}, {"came": recordings(*[7.0] * 2, spread=0.001),
                                                                         "same": recordings(10, 10)}, 0.01, 1.0)
    assert {item: (change.verdict, change.seen) for item, change in found.items()} == {
        "gone": ("undecided", "vanished"), "came": ("new", "new"), "same": ("undecided", None)}


@pytest.mark.parametrize(("steps", "seen"), [(4, "no interval"), (5, "longer")])
def test_few_steps_give_no_interval_of_two_recordings(steps: int, seen: str) -> None:
    change = judged({"a": recordings(100, steps=steps)}, {"a": recordings(120, steps=steps)}, 0.01, 1.0)["a"]
    assert (change.seen, change.verdict, change.recordings is None) == (seen, "undecided", seen == "no interval")


def test_an_item_that_one_recording_lacks_is_judged_by_the_others() -> None:
    change = judged({"a": [Recording.of(np.array([1.0, 3.0]))]}, {"a": [Recording.of(np.full(3, 2.0))] * 2}, 0.01, 1.0)["a"]
    assert (change.base, change.other) == (2, 2)


def test_a_recording_is_mean_variance_and_count() -> None:
    assert Recording.of(np.array([1.0, 2.0, 6.0])) == Recording(3.0, 7.0, 3)
    single = Recording.of(np.array([5.0]))
    assert (single.mean, single.count) == (5.0, 1) and np.isnan(single.variance)


def test_the_mean_of_a_recording_varies_with_its_steps() -> None:
    assert _of_steps([Recording(1.0, 8.0, 2), Recording(1.0, 9.0, 1)]) == 2.0, "of one step nothing is known"
