"""Rows of views that the catalog does not hold are kept in the user's cache while the catalog and the code stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import analyses
from nsightlens.store import kept_rows
from nsightlens.views import registry, signature
from nsightlens.views.header import View


@pytest.fixture
def computed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each analysis is added as it is computed; its time counts as long."""
    names: list[str] = []
    run = analyses.run

    def noted(view: View, parameters: Mapping[str, object], ask: analyses.Ask) -> pa.Table:
        names.append(view.name)
        return run(view, parameters, ask)

    monkeypatch.setattr(analyses, "run", noted)
    monkeypatch.setattr(kept_rows, "WORTH_IT", 0.0)
    return names


def _kept(cache: Path) -> list[Path]:
    return sorted((cache / "nsightlens" / "views").glob("*.arrow"))


def test_the_second_question_reads_what_the_first_computed(bundled_store: Path, computed: list[str], cache: Path) -> None:
    asked = [nl.open(bundled_store).view("straggler") for _ in range(2)]
    assert computed == ["straggler"] and len(_kept(cache)) == 1
    assert asked[0].num_rows > 0 and asked[1].equals(asked[0], check_metadata=True)


def test_a_view_of_one_profile_that_takes_long_is_kept(
    bundled_store: Path, computed: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = nl.open(bundled_store).view("execution_summary", only_rank=1)
    monkeypatch.setattr("nsightlens.store.store.Store._computed", None)
    assert first.num_rows > 0 and nl.open(bundled_store).view("execution_summary", only_rank=1).equals(first)


def test_other_parameters_and_filters_are_computed(bundled_store: Path, computed: list[str], cache: Path) -> None:
    with nl.open(bundled_store) as store:
        every, one = store.view("straggler"), store.view("straggler", only_rank=0)
    assert computed == ["straggler"] * 2 and len(_kept(cache)) == 2
    assert 0 < one.num_rows < every.num_rows


def test_another_catalog_at_the_same_place_is_computed_anew(bundled_store: Path, computed: list[str], tmp_path: Path) -> None:
    for _ in range(2):  # the same rows: only the file tells them apart
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        shutil.copytree(bundled_store, tmp_path / "store")
        nl.open(tmp_path / "store").view("straggler")
    assert computed == ["straggler"] * 2


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return what makes a text all the code that rows follow from."""
    def become(text: str) -> None:
        (tmp_path / "code" / "module.py").write_text(text)
        signature.code_digest.cache_clear()

    (tmp_path / "code").mkdir()
    monkeypatch.setattr(signature, "PACKAGE", tmp_path / "code")
    yield become
    signature.code_digest.cache_clear()


def test_versions_that_share_a_store_and_a_cache_find_their_own_rows(
    code: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    view, store = registry.analyses()["straggler"], tmp_path.stat()
    for version, computes in (("of old", "old"), ("of new", "new"), ("of old", "never"), ("of new", "never")):
        code(version)
        found = kept_rows.rows(store, view, {}, partial(pa.table, {"version": [computes]}))
        assert f"of {found['version'][0]}" == version


def test_a_store_that_stays_open_while_its_catalog_is_replaced_keeps_its_own_rows(
    bundled_store: Path, computed: list[str], tmp_path: Path,
) -> None:
    shutil.copytree(bundled_store, tmp_path / "store")
    before = nl.open(tmp_path / "store")
    Path(shutil.copy2(before.catalog, tmp_path / "fresh.duckdb")).replace(before.catalog)
    before.view("straggler")
    nl.open(tmp_path / "store").view("straggler")
    assert computed == ["straggler"] * 2


def test_sql_is_kept_like_analyses_and_rows_of_events_are_not(
    bundled_store: Path, computed: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with nl.open(bundled_store) as store:
        first = store.view("kernel_summary")
        assert store.view("cuda_gpu_trace").num_rows > 0, "of scope rows"
    (kept,) = _kept(cache)
    assert kept.name.startswith("kernel_summary-") and computed == []
    monkeypatch.setattr("nsightlens.store.store.Store._computed", None)
    assert nl.open(bundled_store).view("kernel_summary").equals(first, check_metadata=True)


def test_what_is_large_is_not_kept(
    bundled_store: Path, computed: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_rows, "LARGEST", 100)
    assert nl.open(bundled_store).view("straggler").nbytes > 100
    assert computed == ["straggler"] and _kept(cache) == []


def test_what_is_damaged_is_computed_again(bundled_store: Path, computed: list[str], cache: Path) -> None:
    first = nl.open(bundled_store).view("straggler")
    _kept(cache)[0].write_bytes(b"ARROW1\0\0 cut")
    assert nl.open(bundled_store).view("straggler").equals(first)
    assert computed == ["straggler"] * 2


def test_what_is_quick_is_not_kept(
    bundled_store: Path, computed: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_rows, "WORTH_IT", 3600.0)
    assert isinstance(nl.open(bundled_store).view("kernel_summary"), pa.Table)
    assert _kept(cache) == []


def test_an_analysis_that_is_quick_by_what_another_one_computed_is_kept(
    bundled_store: Path, computed: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_rows, "WORTH_IT", 3600.0)
    with nl.open(bundled_store) as store:
        store.view("straggler")
        clocks = store.view("rank_clock")
    assert nl.open(bundled_store).view("rank_clock").equals(clocks) and computed == ["straggler", "rank_clock"]


def test_totals_are_kept_where_the_rows_are_too_many(
    bundled_store: Path, computed: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ("distributed_overview", ["run", "tool", "rank"], "step_ns", "sum", {"only_tool": ["kineto"]})
    monkeypatch.setattr(kept_rows, "LARGEST", 1000)
    with nl.open(bundled_store) as store:
        rows, totals = store.view("distributed_overview", only_tool="kineto"), store.totals(*asked)
    assert rows.nbytes > 1000 and len(_kept(cache)) == 1
    expected: dict[int, int] = {}
    for row in rows.to_pylist():
        expected[row["rank"]] = expected.get(row["rank"], 0) + row["step_ns"]
    assert {row["rank"]: row["step_ns"] for row in totals.to_pylist()} == expected and len(expected) == 2
    monkeypatch.setattr("nsightlens.store.store.Store._computed", None)
    assert nl.open(bundled_store).totals(*asked).equals(totals)


def test_without_a_cache_rows_are_computed(bundled_store: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    for _ in range(2):
        assert nl.open(bundled_store).view("straggler").num_rows > 0
    assert computed == ["straggler"] * 2
