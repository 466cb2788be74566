"""judged: what recordings say of runs; one of each says nothing."""

from __future__ import annotations

import numpy as np

from nsightlens.statistics.changes import judged


def test_one_recording_of_each_run_is_undecided_however_large_the_change() -> None:
    change = judged({"step": [100.0]}, {"step": [300.0]}, 0.01, 1.0, planned=True)["step"]
    assert (change.verdict, change.absent, change.runs, change.needed) == ("undecided", None, None, None)


def test_recordings_of_one_setting_are_rarely_called_different() -> None:
    """Recordings vary by 10 %."""
    random = np.random.default_rng(5)
    named = dict.fromkeys((2, 3, 5), 0)
    for count in named:
        for _ in range(400):
            base, other = ({"step": random.normal(100, 10, count).tolist()} for _ in range(2))
            named[count] += judged(base, other, 0.01, 1.0, planned=True)["step"].verdict in ("slower", "faster")
    assert all(count <= 33 for count in named.values()), named  # 400 * 0.05 + 3 standard deviations


def test_a_true_change_is_found_and_its_interval_excludes_0() -> None:
    change = judged({"step": [100, 101, 99]}, {"step": [110, 111, 112]}, 0.01, 1.0, planned=True)["step"]
    assert (change.verdict, change.absent, change.needed) == ("slower", None, None)
    assert change.runs is not None and change.runs.low > 0


def test_one_new_recording_is_judged_by_how_the_others_vary() -> None:
    base = [100, 101, 99, 100.5]
    assert judged({"step": base}, {"step": [120]}, 0.01, 1.0, planned=True)["step"].verdict == "slower"
    assert judged({"step": base}, {"step": [101.5]}, 0.01, 1.0, planned=True)["step"].verdict == "undecided"


def test_no_change_is_said_only_where_the_interval_shows_it() -> None:
    alike = judged({"a": [100, 100.1, 99.9]}, {"a": [100, 99.9, 100.1]}, 0.01, 5.0)["a"]
    vague = judged({"a": [100, 120, 80]}, {"a": [100, 80, 120]}, 0.01, 5.0)["a"]
    assert (alike.verdict, vague.verdict) == ("no change", "undecided")
    assert vague.needed is not None and vague.needed > 3


def test_the_planned_test_is_not_held_to_the_lists_rate() -> None:
    """p is 0.02: beyond a false-discovery rate of 0.01 among items, and a change for a test that stands alone."""
    base, other = {"step": [100, 102]}, {"step": [110, 113]}
    planned, listed = (judged(base, other, 0.01, 1.0, planned=planned)["step"] for planned in (True, False))
    assert planned.runs is not None and 0.01 < planned.runs.rate < 0.05 and planned.runs.low > 0
    assert (planned.verdict, listed.verdict) == ("slower", "undecided")


def test_what_is_named_has_an_interval_without_0_however_lenient_the_rate() -> None:
    base, other = {"step": [100, 104, 102]}, {"step": [104, 108, 103]}
    for one, two in ((base, other), (other, base)):
        change = judged(one, two, 0.5, 1.0)["step"]
        assert change.runs is not None and 0.05 < change.runs.rate < 0.5 and change.runs.low < 0 < change.runs.high
        assert change.verdict == "undecided"


def test_a_threshold_is_a_share_of_what_was_whatever_its_digits() -> None:
    """1 % of 150 ns is 1.5 ns: more than a certain change of 1.2 ns, and less than one of 1.8 ns."""
    base = {"k": [150, 150.01, 149.99]}
    for change, verdict in ((1.2, "no change"), (1.8, "slower")):
        other = {"k": [150 + change, 150.01 + change, 149.99 + change]}
        assert judged(base, other, 0.01, 1.0)["k"].verdict == verdict


def test_equal_means_of_a_coarse_clock_are_no_certainty() -> None:
    """Durations in whole microseconds: 19/6 in both recordings of one run, 3 in both of the other."""
    assert judged({"k": [19 / 6] * 2}, {"k": [3.0] * 2}, 0.01, 1.0)["k"].verdict == "undecided"
    assert judged({"k": [3.0] * 2}, {"k": [3.0] * 2}, 0.01, 1.0)["k"].verdict == "no change"


def test_recordings_that_vary_little_are_judged_by_that_alone() -> None:
    """Five and five whose means vary by 0.01 ms, from 2.68 to 2.94 ms, whatever their steps do."""
    base, other = [2.68, 2.69, 2.67, 2.68, 2.68], [2.94, 2.95, 2.93, 2.94, 2.94]
    assert judged({"step": base}, {"step": other}, 0.01, 1.0, planned=True)["step"].verdict == "slower"


def test_of_two_recordings_it_is_not_said_how_many_would_decide() -> None:
    for count, is_said in ((2, False), (3, True)):
        base, other = [100.0, 104.0, 96.0][:count], [103.0, 99.0, 107.0][:count]
        assert (judged({"a": base}, {"a": other}, 0.01, 1.0)["a"].needed is not None) == is_said


def test_what_no_recording_of_a_run_has_is_named_and_is_new_for_the_runs_where_that_is_beyond_chance() -> None:
    found = judged({"gone": [5.0, 9.0], "same": [10.0, 10.1]}, {"came": [7.0, 7.01], "same": [10.1, 10.0]}, 0.01, 1.0)
    assert {item: (change.verdict, change.absent) for item, change in found.items()} == {
        "gone": ("undecided", "vanished"), "came": ("new", "new"), "same": ("undecided", None)}


def test_an_item_that_one_recording_lacks_is_judged_by_the_others() -> None:
    change = judged({"a": [2.0]}, {"a": [2.0, 2.0]}, 0.01, 1.0)["a"]
    assert (change.base, change.other) == (2, 2)
