"""Counts as English has them."""

from __future__ import annotations

import pytest

from nsightlens.views.figures import counted, counted_both, is_date


@pytest.mark.parametrize(("count", "what", "said"), [
    (1, "file", "1 file"), (0, "file", "0 files"), (2160, "kernel", "2,160 kernels"), (1, "process", "1 process"),
    (2, "process", "2 processes"),
])
def test_one_is_singular(count: int, what: str, said: str) -> None:
    assert counted(count, what) == said


def test_two_sides() -> None:
    assert counted_both(3, 1, "recording") == "3 and 1 recordings"
    assert counted_both(1, 1, "process") == "1 process each"


@pytest.mark.parametrize("ns", [None, True, 10**17 - 1, 2**63, 1.7e18, "1700000000000000000"])
def test_what_is_no_date(ns: object) -> None:
    assert is_date(1_700_000_000_000_000_000) and not is_date(ns)
