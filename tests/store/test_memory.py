"""What DuckDB may take for a question: little at first of a large store, what it takes by itself where that is not enough."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from nsightlens.store import answers
from nsightlens.store import store as store_module

_MANY = "SELECT sum(len(l)) AS n FROM (SELECT list(repeat('x', 100) || i) AS l FROM range(600000) AS t(i))"
_LIMIT = "SELECT current_setting('memory_limit') AS limit"


@pytest.fixture
def large(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that counts as large."""
    monkeypatch.setattr(answers, "WORTH_IT", 1)
    monkeypatch.setattr(store_module, "_AT_FIRST", "40MB")
    return bundled_store


def _limit(store: nl.Store) -> str:
    return str(store.sql(_LIMIT)["limit"][0].as_py())


def test_a_large_store_begins_with_little_memory_and_takes_more_where_it_must(large: Path) -> None:
    with nl.open(large) as store:
        assert _limit(store) == "38.1 MiB"
        kernels = store.view("kernel_summary").num_rows
        assert _limit(store) == "38.1 MiB"
        assert store.sql(_MANY)["n"].to_pylist() == [600_000]
        assert "GiB" in _limit(store)
        assert store.view("kernel_summary").num_rows == kernels


def test_without_the_bound_the_fence_still_stands(large: Path) -> None:
    with nl.open(large) as store:
        store.sql(_MANY)
        with pytest.raises(UsageError, match="read-only"):
            store.sql("CREATE TABLE mine (x INTEGER)")
        with pytest.raises(UsageError, match="disabled by configuration"):
            store.sql("FROM read_csv('/etc/hosts')")


def test_a_small_store_has_the_limit_of_duckdb(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        assert "GiB" in _limit(store)
