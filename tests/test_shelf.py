"""A shelved column has the stretches of the column, whatever its type and length, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nsightlens import staging
from nsightlens.staging import Shelf


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, rows: int) -> None:
    monkeypatch.setattr(staging, "_SHELVED_BYTES", 1)
    values: npt.NDArray[Any] = np.arange(rows).astype(kind)
    kept = Shelf(tmp_path).keep(values)
    for first, end in ((0, rows), (0, 1), (rows // 3, rows // 2), (rows, rows + 5)):
        some = kept[first:end]
        assert some.dtype == values.dtype
        assert some.tolist() == values[first:end].tolist()
    assert list(tmp_path.iterdir()) == []


def test_short_columns_stay_in_memory(tmp_path: Path) -> None:
    values = np.arange(10)
    assert Shelf(tmp_path).keep(values) is values
