"""A trace that is read in many pieces, as a large one is, gives the store that it gives in one."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.readers.kineto import reading
from nsightlens.schema import TABLES
from tests.places import ROOT

TRACE = next((ROOT / "fixtures" / "simulated_resnet18_ddp").rglob("rank0.pt.trace.json*"))


def _rows(store: Path) -> dict[str, list[dict[str, object]]]:
    with nl.ingest(TRACE, store=store, jobs=1) as opened:
        return {name: opened.sql(f"FROM {name} ORDER BY ALL").to_pylist() for name in TABLES
                if name not in ("files", "profiles", "runs")}


def test_a_trace_in_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _rows(tmp_path / "whole")
    monkeypatch.setattr(reading, "PIECE_BYTES", 1 << 14)
    assert _rows(tmp_path / "pieces") == whole
    assert whole["kernels"] and whole["ranges"]
