"""Small profiles share parts, and the store answers as if each had its own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import nsightlens as nl
from nsightlens.errors import StoreError
from nsightlens.schema import TABLES, TEMPLATE
from nsightlens.store import compaction
from nsightlens.store.bundle import Bundle, standing
from nsightlens.store.store import Store
from nsightlens.store.writer import StoreWriter
from tests.captures import kineto
from tests.long.test_refresh import _content
from tests.places import ROOT

RANKS = 12
SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"


def _capture(run: Path, rank: int, kernels: int = 3, name: str = "gemm") -> Path:
    launches = [(f"{name}_{rank % 3}_{number % 2}", 1000.0 + 20 * number, 8.0 + rank) for number in range(kernels)]
    return kineto(run / f"rank{rank}.json", launches, rank=rank, pid=100 + rank)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for rank in range(RANKS):
        _capture(tmp_path / "base", rank, kernels=rank + 1)
    return tmp_path / "base"


def _ingest(run: Path, store: Path, **options: Any) -> None:
    nl.ingest(run, store=store, jobs=1, **options).close()


def _apart(monkeypatch: pytest.MonkeyPatch, run: Path, store: Path, **options: Any) -> None:
    """Ingest with a part of its own for every profile."""
    with monkeypatch.context() as patched:
        patched.setattr(compaction, "FULL_BYTES", 0)
        _ingest(run, store, **options)


def _parts(store: Path, table: str) -> list[Path]:
    return sorted(store.glob(f"parts/{table}/*/*.parquet"))


def _kernels_of_parts(store: Path) -> list[tuple[Any, ...]]:
    """Return rank, name and duration of all kernels in the parts, as another engine reads them, with what their templates say."""
    query = f"""
        WITH k AS (FROM read_parquet('{store}/parts/kernels/*/*.parquet', filename = true)),
             t AS (FROM read_parquet('{store}/parts/_kernels_templates/*/*.parquet', filename = true))
        SELECT k.rank, k.name, k.duration_ns, t.rank, t.name, count(*) FROM k LEFT JOIN t ON k.{TEMPLATE} = t.{TEMPLATE}
        AND parse_filename(k.filename) = parse_filename(t.filename) GROUP BY ALL ORDER BY ALL"""
    return duckdb.connect().execute(query).fetchall()


def _of_store(store: Path) -> list[tuple[Any, ...]]:
    with nl.open(store) as opened:
        rows = opened.sql("SELECT rank, name, duration_ns, count(*) AS n FROM kernels GROUP BY ALL ORDER BY ALL").to_pylist()
    return [(r["rank"], r["name"], r["duration_ns"], r["rank"], r["name"], r["n"]) for r in rows]


@pytest.mark.parametrize("materialise", [True, False])
def test_many_small_profiles_share_parts(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, materialise: bool,
) -> None:
    _ingest(run, tmp_path / "store", materialise=materialise)
    _apart(monkeypatch, run, tmp_path / "apart", materialise=materialise)
    assert (len(_parts(tmp_path / "store", "kernels")), len(_parts(tmp_path / "apart", "kernels"))) == (1, RANKS)
    assert _content(tmp_path / "store") == _content(tmp_path / "apart")
    assert _kernels_of_parts(tmp_path / "store") == _of_store(tmp_path / "apart")
    assert sum(row[-1] for row in _kernels_of_parts(tmp_path / "store")) == sum(range(1, RANKS + 1))


@pytest.mark.long
@pytest.mark.parametrize("materialise", [True, False])
def test_a_profile_that_changed_leaves_its_shared_parts(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, materialise: bool,
) -> None:
    _ingest(run, tmp_path / "store", materialise=materialise)
    (run / "rank3.json").unlink()
    _capture(run, 3, kernels=40, name="other")
    (run / "rank4.json").write_text((run / "rank4.json").read_text().replace('"dur": 12.0', '"dur": 99.5'))
    _ingest(run, tmp_path / "store", materialise=materialise)
    _apart(monkeypatch, run, tmp_path / "apart", materialise=materialise)
    assert _of_store(tmp_path / "store") == _of_store(tmp_path / "apart") == _kernels_of_parts(tmp_path / "store")
    assert {row[2] for row in _kernels_of_parts(tmp_path / "store") if row[0] == 4} == {99_500}
    assert len(_parts(tmp_path / "store", "kernels")) == 3


def test_a_table_of_which_no_row_is_left_has_no_part(run: Path, tmp_path: Path) -> None:
    _ingest(run, tmp_path / "store")
    with duckdb.connect(str(tmp_path / "store" / "nsightlens.duckdb"), read_only=True) as plain:
        (whole,) = standing(plain.execute("FROM _parts").fetchall(), tmp_path / "store")
    first, *others = whole.profiles
    one = replace(whole, rows={**whole.rows, "devices": {first: 1}})
    (tmp_path / "new").mkdir()
    left = compaction.without(one, {first}, tmp_path / "new")
    assert left is not None and set(one.files) - set(left.files) == {"devices"}
    assert left.profiles == others
    assert set(pq.read_table(left.files["kernels"])["profile_id"].to_pylist()) == set(others)
    assert compaction.without(one, {first, *others}, tmp_path / "new") is None


@pytest.mark.long
def test_profiles_that_come_one_by_one_are_merged_now_and_then(tmp_path: Path) -> None:
    run, store = tmp_path / "base", tmp_path / "store"
    counts = []
    for rank in range(2 * compaction.FEW + 3):
        _capture(run, rank, kernels=rank + 1)
        _ingest(run, store)
        counts.append(len(_parts(store, "kernels")))
    assert max(counts) == compaction.FEW and counts[compaction.FEW] < compaction.FEW
    assert _kernels_of_parts(store) == _of_store(store) and len({row[0] for row in _of_store(store)}) == len(counts)


def _sized(*sizes: int) -> list[Bundle]:
    return [Bundle("r", {}, {"kernels": {f"p{number}": 1}}, size << 20) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(("sizes", "few", "expected"), [
    ((1,) * 8, 8, [[1]] * 8),
    ((1,) * 9, 8, [[1] * 9]),
    ((9, 2, 30, 1), 3, [[1, 2], [9], [30]]),
    ((1, 2, 6, 18), 0, [[1, 2, 6, 18]]),
    ((1, 2, 6, 18), 3, [[1, 2, 6, 18]]),
    ((1, 3, 10, 31), 3, [[1], [3], [10], [31]]),
    ((20, 20, 10), 0, [[10, 20], [20]]),
    ((40, 1, 1), 0, [[40], [1, 1]]),
    ((), 8, []),
])
def test_bundles_of_like_size_are_merged_up_to_a_full_one(sizes: tuple[int, ...], few: int, expected: list[list[int]]) -> None:
    found = [[one.size >> 20 for one in group] for group in compaction.packed(_sized(*sizes), few)]
    assert sorted(found) == sorted(expected)


def test_compact_merges_what_an_ingest_left(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _apart(monkeypatch, run, tmp_path / "store")
    before = _content(tmp_path / "store"), _of_store(tmp_path / "store")
    with StoreWriter(tmp_path / "store") as writing:
        writing.compact()
    assert len(_parts(tmp_path / "store", "kernels")) == 1
    assert (_content(tmp_path / "store"), _of_store(tmp_path / "store")) == before
    assert _kernels_of_parts(tmp_path / "store") == before[1]


@pytest.mark.long
def test_tools_and_runs_keep_their_rows_through_compact(tmp_path: Path) -> None:
    """Every table of nsys, ncu and Kineto profiles, through parts that they share."""
    for name, materialise in (("kept", False), ("plain", True)):
        for again in ("one", "two"):
            shutil.copytree(SIMULATED, tmp_path / again, dirs_exist_ok=True)
            nl.ingest(tmp_path / again, store=tmp_path / name, run=again, jobs=1, materialise=materialise).close()
    before = _content(tmp_path / "kept")
    with StoreWriter(tmp_path / "kept", materialise=False) as writing:
        writing.compact()
    assert _content(tmp_path / "kept") == before == _content(tmp_path / "plain")
    for table in TABLES.values():
        if table.name in ("kernels", "api_calls", "ranges", "memory_ops"):
            assert len(_parts(tmp_path / "kept", table.name)) == 2, "one of each run"


@pytest.mark.long
def test_answers_of_profiles_in_shared_parts(run: Path, tmp_path: Path) -> None:
    for name, answers in (("first", True), ("later", None)):
        _ingest(run, tmp_path / name, answers=answers)
    (run / "rank0.json").write_text((run / "rank0.json").read_text().replace('"dur": 8.0', '"dur": 9.5'))
    for name in ("first", "later"):
        _ingest(run, tmp_path / name, answers=True)
    _ingest(run, tmp_path / "asked", answers=False)
    views = ("busy_time", "kernel_summary", "idle_breakdown", "cuda_api_summary")
    with nl.open(tmp_path / "first") as first, nl.open(tmp_path / "later") as later, nl.open(tmp_path / "asked") as asked:
        assert _kept(first) == _kept(later) == (RANKS, RANKS)
        for view in views:
            rows = asked.view(view).to_pylist()
            assert first.view(view).to_pylist() == later.view(view).to_pylist() == rows != []


def _kept(store: Store) -> tuple[int, int]:
    found = store.kept("busy_time")
    assert found is not None
    return found[:2]


@pytest.mark.long
@pytest.mark.parametrize("materialise", [True, False])
def test_a_shared_part_that_is_lost_is_made_again_from_all_its_captures(run: Path, tmp_path: Path, *, materialise: bool) -> None:
    store = tmp_path / "store"
    _ingest(run, store, materialise=materialise)
    before = _of_store(store)
    _parts(store, "kernels")[0].unlink()
    if not materialise:
        with nl.open(store) as opened, pytest.raises(StoreError, match=r"missing\. Make it again: nsightlens ingest") as caught:
            opened.sql("FROM kernels")
        assert str(run) in str(caught.value) and len(str(caught.value)) < 1000
    _ingest(run, store, materialise=materialise)
    assert _of_store(store) == before == _kernels_of_parts(store)


def test_a_store_of_an_older_schema_is_not_compacted(run: Path, tmp_path: Path) -> None:
    _ingest(run, tmp_path / "store")
    with duckdb.connect(str(tmp_path / "store" / "nsightlens.duckdb")) as plain:
        plain.execute("UPDATE _store SET schema_version = schema_version - 1")
    with StoreWriter(tmp_path / "store") as writing, pytest.raises(StoreError, match="nsightlens refresh"):
        writing.compact()
    assert len(_parts(tmp_path / "store", "kernels")) == 1


def test_the_parts_are_listed_by_profile(run: Path, tmp_path: Path) -> None:
    _ingest(run, tmp_path / "store")
    with nl.open(tmp_path / "store") as opened:
        rows = opened.sql("SELECT p.rank, row_count FROM _parts JOIN processes AS p USING (profile_id) "
                          "WHERE table_name = 'kernels' ORDER BY rank").to_pylist()
    assert [(row["rank"], row["row_count"]) for row in rows] == [(rank, rank + 1) for rank in range(RANKS)]
