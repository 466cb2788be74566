"""Pairs of template and number are numbered alike by the table of all possible ones and by those that occur."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.attribution import attributed_columns
from nsightlens.columns import arrays
from nsightlens.columns.spilled import whole


@pytest.mark.parametrize(("templates", "numbers"), [(1, 1), (3, 5), (40, 2), (2, 4000)])
def test_pairs(templates: int, numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 17)
    source = np.random.default_rng(templates)
    template, number = (source.integers(0, most, 300).astype(np.int32) for most in (templates, numbers))
    rows = list(zip(template.tolist(), number.tolist(), strict=True))
    expected = sorted(set(rows))
    size, most = (int(template.max()) + 1) * (int(number.max()) + 1), int(number.max()) + 1
    for found in (attributed_columns.paired(template, number), attributed_columns._paired_by_table(template, number, size, most)):
        assert list(zip((found.pairs >> 32).tolist(), found.numbers(slice(None)).tolist(), strict=True)) == expected
        assert [expected[code] for code in whole(found.code).tolist()] == rows
