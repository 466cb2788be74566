"""Answers across profiles: kept where an ingest brings most of a large store, equal to what the views compute, never old."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Self

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.pipeline import answer_across
from nsightlens.pipeline.ingest import ingest
from nsightlens.store import across, answers, catalog_opening, kept_rows
from nsightlens.store.store import CATALOG, Store
from nsightlens.store.writer import StoreWriter
from nsightlens.views.header import View
from tests.captures import kineto
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.places import ROOT

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"


def _kept(store: Path) -> set[str]:
    """Return the views that a store keeps answers across profiles of, by the code of today."""
    connection = catalog_opening.attach(store / CATALOG)
    found = connection.execute("SELECT view_name FROM catalog._across").fetchall() if across.are_kept(connection) else []
    connection.close()
    return {name for (name,) in found}


def _ranks(folder: Path, *ranks: int) -> Path:
    for rank in ranks:
        kineto(folder / f"rank{rank}.json", [("gemm_kernel", 1000.0, 10.0 + rank)], rank=rank, pid=70 + rank)
    return folder


@pytest.fixture(scope="module")
def answered(shared: Shared) -> Path:
    def make(store: Path) -> None:
        nl.ingest(SIMULATED, store=store, answers=True, jobs=1).close()

    return shared("across", make)


class _Here:
    """A pool of workers that is this process: a worker loads all that we are made of."""

    def __init__(self, _: int) -> None:
        self._cache = os.environ["XDG_CACHE_HOME"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.environ["XDG_CACHE_HOME"] = self._cache

    def submit(self, call: Callable[..., object], *given: object) -> Future[object]:
        done: Future[object] = Future()
        done.set_result(call(*given))
        return done


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two views be answered across profiles, and one of a profile, in this process."""
    busy_time = answers.answerable()["busy_time"]
    monkeypatch.setattr(answers, "answerable", lambda: {"busy_time": busy_time})
    monkeypatch.setattr(answer_across, "VIEWS", {name: answer_across.VIEWS[name] for name in ("findings", "profile_overview")})
    monkeypatch.setattr("nsightlens.pipeline.workers.Pool", _Here)


def test_the_pages_find_every_answer(answered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they ask across profiles is kept, so the lists are complete."""
    def computed(_: object, view: View, parameters: Mapping[str, object], compute: Callable[[], pa.Table]) -> pa.Table:
        assert view.scope != "run", f"{view.name} {parameters} is not kept"
        return compute()

    monkeypatch.setattr(kept_rows, "rows", computed)
    for command in (["summary"], ["compare", "ranks"]):
        done = run(*command, "--store", str(answered))
        assert done.returncode == 0 and done.stdout, done.stderr
    assert _kept(answered) >= answer_across.VIEWS.keys()


def test_answers_equal_what_the_views_compute(answered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(answered, tmp_path / "store")
    with nl.open(tmp_path / "store") as store, monkeypatch.context() as without:
        kept = {view: store.view(view, **asked) for view, asked in answer_across.VIEWS.items()}
        totals = [store.totals(*asked, {}) for asked in answer_across.TOTALS]
        without.setattr(across.Kept, "find", lambda *_: None)
        for view, asked in answer_across.VIEWS.items():
            assert kept[view].equals(store.view(view, **asked), check_metadata=True), view
        assert totals == [store.totals(*asked, {}) for asked in answer_across.TOTALS]
        assert kept["findings"].num_rows > 0 and kept["straggler"].num_rows > 0 and totals[0].num_rows > 0


def test_other_parameters_are_computed(answered: Path) -> None:
    with nl.open(answered) as store:
        assert {row["tool"] for row in store.view("rank_balance", only_tool="kineto").to_pylist()} == {"kineto"}
        assert store.view("top_kernels", how_many=2).num_rows < store.view("top_kernels", how_many=8).num_rows


@pytest.mark.usefixtures("few")
def test_a_change_drops_them_and_compaction_does_not(tmp_path: Path) -> None:
    store = tmp_path / "store"
    ingest([_ranks(tmp_path / "job", 0, 1)], store, answers=True, jobs=1)
    assert "findings" in _kept(store)
    with StoreWriter(store) as writing:
        writing.compact()
    assert "findings" in _kept(store)
    report = ingest([_ranks(tmp_path / "job", 2)], store, jobs=1)
    assert report.across_s is None and _kept(store) == set()
    with nl.open(store) as opened:
        assert opened.view("profile_overview").num_rows == 3
    report = ingest([tmp_path / "job"], store, answers=True, jobs=1)
    assert report.across_s is not None and "findings" in _kept(store)
    assert ingest([tmp_path / "job"], store, answers=True, jobs=1).across_s is None, "they are there"
    nl.remove(store, file="rank1.json")
    assert _kept(store) == set()


@pytest.mark.usefixtures("few")
def test_other_code_does_not_read_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    ingest([_ranks(tmp_path / "job", 0, 1)], store, answers=True, jobs=1)
    monkeypatch.setattr(across, "code_digest", lambda: "another")
    assert _kept(store) == set()
    with nl.open(store) as opened:
        assert opened._across.find("findings", {}) is None
    assert ingest([tmp_path / "job"], store, answers=True, jobs=1).across_s is not None


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("held", "brings", "are_kept"), [((), (0, 1), True), ((0,), (1,), True), ((0, 1), (2,), False),
                                                          ((), (0,), False)])
def test_they_are_made_where_most_is_new(
    held: tuple[int, ...], brings: tuple[int, ...], are_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = tmp_path / "store"
    for ranks in filter(None, (held, brings)):
        if ranks == brings:
            monkeypatch.setattr(answers, "WORTH_IT", 2 if len(held) + len(brings) > 1 else 1)
        report = ingest([_ranks(tmp_path / "job", *ranks)], store, jobs=1)
    assert (report.across_s is not None) is are_kept
    assert bool(_kept(store)) is are_kept


def test_a_question_may_follow_an_answer(answered: Path, tmp_path: Path) -> None:
    """DuckDB refuses the next one on a connection while a result is fetched in part."""
    shutil.copytree(answered, tmp_path / "store")
    with nl.open(tmp_path / "store") as store:
        for view, asked in answer_across.VIEWS.items():
            assert store._across.find(view, asked) is not None
            assert store._connection.sql("SELECT 1").to_arrow_table().num_rows == 1


def test_without_answers_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WORTH_IT", 1)
    assert ingest([_ranks(tmp_path / "job", 0, 1)], tmp_path / "store", answers=False, jobs=1).across_s is None
    assert _kept(tmp_path / "store") == set()


def test_too_large_rows_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest([_ranks(tmp_path / "job", 0, 1)], tmp_path / "store", jobs=1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    every = answer_across.compute(tmp_path / "store", tmp_path / "across")
    monkeypatch.setattr(kept_rows, "LARGEST", 300)
    kept = answer_across.compute(tmp_path / "store", tmp_path / "across")
    assert 0 < len(kept) < len(every) and kept.keys() == {asked for asked, rows in every.items() if rows.nbytes <= 300}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("error", [OSError("disk full"), MemoryError()])
def test_a_failure_leaves_the_store_to_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("nsightlens.store.writer.across.keep", fails)
    store = tmp_path / "store"
    assert ingest([_ranks(tmp_path / "job", 0, 1)], store, answers=True, jobs=1).across_s is None
    assert not list(store.glob(f".{CATALOG}*"))
    with Store(store) as opened:
        assert opened.view("findings").num_rows >= 0 and opened.view("profile_overview").num_rows == 2


@pytest.mark.usefixtures("few")
def test_ctrl_c_says_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nsightlens.store.writer.across.keep", interrupted)
    done = run("ingest", str(_ranks(tmp_path / "job", 0, 1)), "--answers", "--store", str(tmp_path / "store"), "--jobs", "1")
    said = "interrupted; the captures are in the store, without its answers across ranks"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, said)
    with nl.open(tmp_path / "store") as store:
        assert store.view("profile_overview").num_rows == 2


def test_ingest_says_how_long_they_took(tmp_path: Path) -> None:
    done = run("ingest", str(_ranks(tmp_path / "job", 0, 1)), "--answers", "--store", str(tmp_path / "store"), "--jobs", "1")
    assert " s of them across ranks; views are read from them" in done.stderr
