"""Fractions as integers that still sum."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nsightlens.statistics.rounding import apportioned, nearest


@given(st.lists(st.integers(0, 10**18), max_size=20), st.integers(1, 10**9))
def test_fractions_are_rounded_so_that_they_sum(parts: list[int], denominator: int) -> None:
    found = apportioned(parts, denominator, nearest(sum(parts), denominator))
    assert sum(found) == nearest(sum(parts), denominator)
    assert all(abs(part - denominator * one) < denominator for part, one in zip(parts, found, strict=True))
