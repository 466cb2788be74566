"""Pairs of kind and number are numbered alike by the table of all possible ones and by those that occur."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens import attribution, nesting


@pytest.mark.parametrize(("kinds", "numbers"), [(1, 1), (3, 5), (40, 2), (2, 4000)])
def test_pairs(kinds: int, numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nesting, "_STRETCH", 17)
    source = np.random.default_rng(kinds)
    kind, number = (source.integers(0, most, 300).astype(np.int32) for most in (kinds, numbers))
    rows = list(zip(kind.tolist(), number.tolist(), strict=True))
    expected = sorted(set(rows))
    size, most = (int(kind.max()) + 1) * (int(number.max()) + 1), int(number.max()) + 1
    for found in (attribution._paired(kind, number), attribution._paired_by_table(kind, number, size, most)):
        assert list(zip((found.pairs >> 32).tolist(), found.numbers(slice(None)).tolist(), strict=True)) == expected
        assert [expected[code] for code in found.code.tolist()] == rows
