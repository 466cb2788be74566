"""What several analyses stand on is computed once for an open store, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens import analyses
from nsightlens.analyses import Ask, _executions, collective_match


def test_an_open_store_is_asked_once_and_another_one_again(bundled_store: Path) -> None:
    asked = []

    def compute(ask: Ask) -> int:
        asked.append(ask("SELECT 1", []).num_rows)
        return len(asked)

    with nl.open(bundled_store) as one, nl.open(bundled_store) as other:
        assert [analyses.cached_per_store(store._ask, compute) for store in (one, one, other, one)] == [1, 1, 2, 1]
        plain = lambda query, values: one._ask(query, values)  # noqa: E731
        assert [analyses.cached_per_store(plain, compute) for _ in range(2)] == [3, 4]


def test_views_of_collectives_match_them_once(bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matched = []
    executions, compared = _executions._executions, collective_match._compared

    def counted(ask: Ask) -> list[_executions.Execution]:
        matched.append("matched")
        return executions(ask)

    def also_counted(ask: Ask) -> list[collective_match.ComparedRanks]:
        matched.append("compared")
        return compared(ask)

    monkeypatch.setattr(_executions, "_executions", counted)
    monkeypatch.setattr(collective_match, "_compared", also_counted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is kept from another test
    with nl.open(bundled_store) as store:
        for view in ("straggler", "collective_coverage", "communicator_summary", "rank_clock", "findings"):
            assert store.view(view).num_rows, view
    assert matched == ["compared", "matched"]
