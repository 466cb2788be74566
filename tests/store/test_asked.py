"""Rows of large profiles at other parameters: as the catalog computes them, profile by profile, and kept in the user's cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import nsightlens as nl
from nsightlens.cli.cache import command as cache_command
from nsightlens.errors import UsageError
from nsightlens.store import answers, asked, kept_rows, user_cache
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.captures import kineto
from tests.conftest import Shared
from tests.places import ROOT

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"
CPU = ROOT / "fixtures" / "resnet18_cpu" / "torch"
OTHERS: dict[str, object] = {
    "per": "process", "communication_pattern": ".*AllReduce.*", "range_text": "iter", "min_length": 2,
    "how_many": 2, "chunks": 7, "bins": 9,
    "below_pct": 80.0, "kernel_wait_below_ns": 1000, "long_call_ns": 4000, "long_delay_ns": 2000, "full_length": 3, "alike": True}
"""Another value for each parameter of such a view."""
ASKED = [(name, param.name) for name, view in answers.answerable().items() for param in view.params
         if view.sql and not name.startswith("_")]


@pytest.fixture(scope="module")
def store(shared: Shared) -> Iterator[Store]:
    def make(path: Path) -> None:
        rank1 = [next(SIMULATED.glob(pattern)) for pattern in ("nsys/rank1.sqlite*", "torch/rank1*pt.trace.json*")]
        nl.ingest(rank1, store=path, run="rank1", answers=False, jobs=1).close()
        nl.ingest(CPU, store=path, run="cpu", answers=False, jobs=1).close()

    with nl.open(shared("asked", make)) as found:
        yield found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, for stores that are large."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(answers, "WORTH_IT", 1)
    return tmp_path / "cache" / "nsightlens" / "rows"


def _computed(store: Store, monkeypatch: pytest.MonkeyPatch, name: str, **parameters: Any) -> pa.Table:
    with monkeypatch.context() as patched:
        patched.setattr(answers, "WORTH_IT", 1 << 60)
        return store.view(name, **parameters)


def _rows(table: pa.Table) -> list[str]:
    """Return the rows as texts: those of several profiles may come in another order."""
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.long
@pytest.mark.parametrize(("name", "parameter"), ASKED)
def test_rows_at_other_parameters_are_those_that_the_catalog_computes(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, parameter: str,
) -> None:
    other = {parameter: OTHERS[parameter]}
    found = store.view(name, **other)
    assert len(list(cache.iterdir())) == store.sql("FROM profiles").num_rows == 4, "a file for each of the profiles"
    expected = _computed(store, monkeypatch, name, **other)
    assert _rows(found) == _rows(expected) and found.schema == expected.schema


def test_every_such_parameter_changes_the_rows_of_some_view(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    changing = {parameter for name, parameter in ASKED if _rows(_computed(store, monkeypatch, name)) != _rows(
        _computed(store, monkeypatch, name, **{parameter: OTHERS[parameter]}))}
    assert changing >= OTHERS.keys() - {"range_text"}


def test_what_was_asked_is_read_from_the_cache(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.view("busy_time", per="process")
    with monkeypatch.context() as patched:
        patched.setattr(answers, "rows_at", lambda *_: pytest.fail("it was computed again"))
        assert store.view("busy_time", per="process") == first
        assert store.view("busy_time", per="process", only_tool="nsys", only_rank=1).num_rows == 1
    kept = sorted(cache.iterdir())
    kept[0].write_bytes(b"PAR1 damaged")
    assert store.view("busy_time", per="process") == first
    assert sorted(cache.iterdir()) == kept


def test_a_filter_leaves_profiles_out_before_anything_is_computed(store: Store, cache: Path) -> None:
    assert store.view("busy_time", per="process", only_tool="nsys", only_run="rank1").num_rows == 1
    assert len(list(cache.iterdir())) == 1


def test_a_capture_that_changed_is_computed_again(tmp_path: Path, cache: Path) -> None:
    kineto(tmp_path / "run" / "a.json", [("gemm", 1000.0, 10.0)])
    with nl.ingest(tmp_path / "run", tmp_path / "store") as first:
        before = first.view("busy_time", per="process").to_pylist()
    kineto(tmp_path / "run" / "a.json", [("gemm", 1000.0, 25.0)])
    with nl.ingest(tmp_path / "run", tmp_path / "store") as second:
        after = second.view("busy_time", per="process").to_pylist()
    assert (before[0]["busy_ns"], after[0]["busy_ns"]) == (10_000, 25_000)
    assert len(list(cache.iterdir())) == 2


def test_a_store_without_its_parts_computes_in_its_catalog(tmp_path: Path, cache: Path) -> None:
    kineto(tmp_path / "run" / "a.json")
    nl.ingest(tmp_path / "run", tmp_path / "store").close()
    for part in (tmp_path / "store" / "parts").rglob("*.parquet"):
        part.unlink()
    with nl.open(tmp_path / "store") as alone:
        assert alone.view("busy_time", per="process").num_rows == 1
    assert not cache.exists()


def test_what_stands_on_answers_alone_reads_them(
    store: Store, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with nl.ingest([next(SIMULATED.glob("nsys/rank1.sqlite*"))], tmp_path / "store", jobs=1) as answered:
        with monkeypatch.context() as patched:
            patched.setattr(asked, "_profiles", lambda *_: pytest.fail("its parts were looked for"))
            found = answered.view("queue_length", full_length=3)
        assert answered.view("idle_breakdown", kernel_wait_below_ns=1000).num_rows
    assert len(list(cache.iterdir())) == 1, "of idle_breakdown, whose other rows are of all work"
    expected = _computed(store, monkeypatch, "queue_length", full_length=3, only_tool="nsys", only_run="rank1")
    names = ["run", "profile_id", "process_id"]
    assert found.drop_columns(names).to_pylist() == expected.drop_columns(names).to_pylist()
    assert sum(found["full_ns"].to_pylist())


def test_a_small_store_needs_no_cache(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept_rows, "WORTH_IT", math.inf)  # no question takes so long, however busy the machine is
    assert store.view("busy_time", per="process").num_rows > 0
    assert list(tmp_path.iterdir()) == []


def test_where_no_cache_can_be_written_rows_are_computed(store: Store, cache: Path) -> None:
    cache.parent.parent.write_text("a file where the folder should be")
    assert store.view("busy_time", per="process").num_rows > 0


def test_wrong_parameters_are_refused_as_ever(store: Store, cache: Path) -> None:
    with pytest.raises(UsageError, match="busy_time: there is no parameter pre"):
        store.view("busy_time", pre="process")
    assert not cache.exists()


def test_the_cache_keeps_the_newest(tmp_path: Path) -> None:
    for number in range(5):
        place = tmp_path / f"v{number}-{number:032x}.arrow"
        user_cache.keep(place, lambda path: path.write_bytes(b"12345"), 3, 12)
    assert sorted(file.name[:2] for file in tmp_path.iterdir()) == ["v3", "v4"], "three files at most, of 12 bytes together"


def test_clear_deletes_what_lies_in_the_cache(store: Store, cache: Path) -> None:
    store.view("busy_time", per="process")
    files = len([path for path in cache.parent.rglob("*") if path.is_file()])
    said = CliRunner().invoke(cache_command, [])
    assert said.exit_code == 0 and f"{cache.parent}: {files} files, " in said.stdout and len(list(cache.iterdir())) == 4
    assert ", deleted" in CliRunner().invoke(cache_command, ["clear"]).stdout
    assert list(cache.iterdir()) == []
    assert ": 0 files, 0.0 MB" in CliRunner().invoke(cache_command, []).stdout


def test_the_views_meant_here_have_these_parameters() -> None:
    assert {parameter for _, parameter in ASKED} == OTHERS.keys()
    assert all(registry.known()[name].scope == "profile" for name, _ in ASKED)
