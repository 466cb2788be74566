"""The verdict on two runs, in one sentence."""

from __future__ import annotations

import pytest

from nsightlens.views.run_sentences import Row, verdict


def step(**of: object) -> Row:
    return {"base_ns": 10_000, "other_ns": 9_000, "change_pct": -10.0, "verdict": "undecided", "low_ns": -3, "needed": 4} | of


def item(verdict: str, in_recordings: str | None = None, recordings: int = 3) -> Row:
    return {"verdict": verdict, "in_recordings": in_recordings, "base_recordings": recordings, "other_recordings": recordings}


MEANS = "a step takes 9.000 µs instead of 10.00 µs (-10.0 %)."


@pytest.mark.parametrize(("row", "expected"), [
    (step(verdict="faster"), f"new is faster than old: {MEANS}"),
    (step(verdict="no change"), f"new is as fast as old to within 1 %: {MEANS}"),
    (step(), f"Undecided whether new is slower or faster than old, as its recordings vary too much; in these, {MEANS}"),
    (step(low_ns=None),
     f"Undecided whether new is slower or faster than old, as that takes 4 recordings of each; in these, {MEANS}"),
])
def test_of_steps(row: Row, expected: str) -> None:
    assert verdict(row, [], ("old", "new"), "kernel", 1.0) == [expected]


@pytest.mark.parametrize(("rows", "expected"), [
    ([item("slower"), item("slower"), item("new"), item("undecided", "new")],
     "new differs from old: of 4 families, 2 are slower, 1 only in new."),
    ([item("no change")], "new does not differ from old: of 1 family, none changed by 1 %."),
    ([item("no change"), item("undecided")],
     "Undecided whether new differs from old: of 2 families, none is known to have changed."),
    ([item("undecided", "vanished", 1), item("undecided", "alike", 1)],
     "Undecided whether new differs from old, as one recording of each does not show how they vary; of 2 families in these two, "
     "1 is only in old."),
    ([item("undecided", "alike", 1)],
     "Undecided whether new differs from old, as one recording of each does not show how they vary; of 1 family in these two, "
     "none clearly differs."),
])
def test_without_steps_of_items(rows: list[Row], expected: str) -> None:
    assert verdict(None, rows, ("old", "new"), "family", 1.0) == [expected]


def test_nothing_to_compare_gives_no_verdict() -> None:
    assert verdict(None, [], ("old", "new"), "kernel", 1.0) == []
