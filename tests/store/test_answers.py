"""Answers: what is kept of a view equals what it computes, and nothing is read that is not today's, or not of every profile."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nsightlens as nl
from nsightlens.store import answers, swept
from nsightlens.store.store import CATALOG, Store
from nsightlens.views import registry
from tests.captures import in_groups, kineto
from tests.conftest import Shared
from tests.places import ROOT
from tests.readers.nsys_report import base, global_pid, span, strings, write
from tests.readers.test_nsys_cpu_samples import chain
from tests.readers.test_nsys_cpu_samples import sample as cpu_sample
from tests.readers.test_nsys_tables import gpus, named, sample

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"
CPU = ROOT / "fixtures" / "resnet18_cpu" / "torch"
KEPT = answers.answerable()
ASKED = sorted(name for name in KEPT if not name.startswith("_"))
GEMM = ("gemm_kernel", 1000.0, 10.0)


def _made(answered: bool) -> Callable[[Path], None]:
    """Return what makes the store: the answers of one run in one ingest, of the other in a second one."""
    def make(store: Path) -> None:
        nl.ingest(SIMULATED, store=store, answers=answered, jobs=1).close()
        nl.ingest(CPU, store=store, run="cpu", answers=answered, jobs=1).close()
        write(store.parent / f"sampled-{answered}" / "report.sqlite", base(
            StringIds=strings("void gemm<float>(float*)", "gemm", "cudaLaunchKernel_v7000", "_Z4gemmIfEvPT_", "CUDA profiling",
                              "main", "/home/me/app"),
            COMPOSITE_EVENTS=[cpu_sample(1), cpu_sample(2, start=500), cpu_sample(3, start=600)],
            SAMPLING_CALLCHAINS=[*chain(1, (3, 7), (6, 7)), *chain(2, (6, 7)), *chain(3, (3, 7), (6, 7))],
            NVTX_EVENTS=[span(0, 90, text="step[DECODE bs=1]")], TARGET_INFO_GPU=gpus(0),
            TARGET_INFO_GPU_METRICS=named(0, "SMs Active [Throughput %]"),
            GPU_METRICS=[sample(1100, 40), sample(1200, 60)],
            PROFILER_OVERHEAD=[{"start": 0, "end": 7, "globalTid": global_pid(7) + 70, "nameId": 5}]))
        nl.ingest(store.parent / f"sampled-{answered}", store=store, run="sampled", answers=answered, jobs=1).close()
        trace = kineto(store.parent / f"staged-{answered}" / "rank0.json", [("ncclDevKernel_SendRecv", 10.0, 50.0)], rank=0)
        in_groups(trace, [("5", "PIPELINE_MODEL_PARALLEL_GROUP", [0, 1])], {"ncclDevKernel_SendRecv": "5"})
        nl.ingest(trace.parent, store=store, run="staged", answers=answered, jobs=1).close()

    return make


@pytest.fixture(scope="module")
def asked(shared: Shared) -> Iterator[Store]:
    """The store without answers."""
    with nl.open(shared("computed", _made(False))) as found:
        yield found


@pytest.fixture(scope="module")
def answered(shared: Shared) -> Iterator[Store]:
    """The same with answers."""
    with nl.open(shared("answered", _made(True))) as found:
        yield found


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the answers of a few views only, with what they stand on: a sweep, one that is seldom asked for, an analysis."""
    every = {**registry.load(), **registry.analyses()}

    def below(name: str) -> set[str]:
        return {name}.union(*(below(other) for other in every[name].requires if other in every))

    chosen = below("busy_time") | below("queue_length") | below("critical_path_summary")
    monkeypatch.setattr(answers, "answerable", lambda: {name: view for name, view in KEPT.items() if name in chosen})


@pytest.mark.long
@pytest.mark.parametrize("name", ASKED)
def test_an_answer_is_what_the_view_computes_in_its_order(name: str, asked: Store, answered: Store) -> None:
    assert asked.kept(name) is None
    profiles, rows, _ = answered.kept(name) or (0, 0, 0.0)
    assert profiles == answered.sql("SELECT count(*) AS n FROM profiles").to_pylist()[0]["n"]
    computed = asked.view(name)
    kept = answered.view(name)
    assert kept.schema == computed.schema
    assert kept.to_pylist() == computed.to_pylist()
    assert rows == computed.num_rows


def test_most_answers_have_rows_here(asked: Store) -> None:
    assert [name for name in ASKED if not asked.view(name).num_rows] == []


@pytest.mark.parametrize(("name", "parameters"), [
    ("busy_time", {"per": "process"}), ("idle_breakdown", {"kernel_wait_below_ns": 1}), ("busy_time", {"per": "device"}),
    ("step_breakdown", {"communication_pattern": "^elementwise"}), ("kernel_breakdown", {"how_many": None}),
    ("busy_time", {"only_rank": 1}), ("kernel_breakdown", {"how_many": 2, "only_rank": 0}),
    ("critical_path_summary", {"only_rank": 1}),
    ("critical_path_summary", {"which_step": 3}),
])
def test_parameters_and_filters_mean_what_they_mean_without(
    name: str, parameters: dict[str, object], asked: Store, answered: Store,
) -> None:
    rows = asked.view(name, **parameters).to_pylist()
    assert rows
    assert answered.view(name, **parameters).to_pylist() == rows


@pytest.mark.long
def test_views_that_cross_profiles_are_the_same_on_answers(asked: Store, answered: Store) -> None:
    across = [name for name, view in asked.views.items()
              if view.scope == "run" and not {"base", "other"} & {param.name for param in view.params}]
    assert len(across) > 20
    for name in across:
        assert answered.view(name).to_pylist() == asked.view(name).to_pylist(), name


def test_plain_duckdb_reads_answers_and_computes_other_parameters(asked: Store, answered: Store) -> None:
    with closing(duckdb.connect(str(answered.path / CATALOG), read_only=True)) as plain:
        plan = str(plain.execute("EXPLAIN FROM busy_time()").fetchall())
        assert "_answer_busy_time" in plan
        assert "memory_ops" not in plan
        for call in ("busy_time()", "busy_time(per := 'process')"):
            assert plain.execute(f"SELECT span_ns, busy_ns FROM {call}").fetchall() == [
                tuple(row.values()) for row in asked.sql(f"SELECT span_ns, busy_ns FROM {call}").to_pylist()]


@pytest.mark.usefixtures("few")
def test_a_profile_without_an_answer_lets_every_view_compute(tmp_path: Path) -> None:
    """A row of one profile alone would be a wrong answer to a question about both."""
    first, second = kineto(tmp_path / "one" / "rank0.json", [GEMM]), kineto(tmp_path / "two" / "rank0.json", [GEMM])
    with nl.ingest(first, store=tmp_path / "store", answers=True) as store:
        assert store.kept("busy_time")
    with nl.ingest(second, store=tmp_path / "store", answers=False) as store:
        assert store.kept("busy_time") is None
        assert store.view("busy_time").num_rows == 2
        assert store.view("critical_path_summary")["run"].unique().to_pylist() == ["one", "two"]
    with nl.ingest(second, store=tmp_path / "store", answers=True) as store:  # nothing new but its answers
        assert (store.kept("busy_time") or ())[:2] == (2, 2)
        assert store.view("busy_time").num_rows == 2


@pytest.mark.usefixtures("few")
def test_answers_come_and_go_with_their_profile(tmp_path: Path) -> None:
    trace = kineto(tmp_path / "one" / "rank0.json", [GEMM])
    nl.ingest(trace, store=tmp_path / "store", answers=True).close()
    kineto(trace, [GEMM, ("gemm_kernel", 2000.0, 30.0)])
    with nl.ingest(trace, store=tmp_path / "store", answers=True) as store:
        assert store.view("busy_time")["busy_ns"].to_pylist() == [40_000]
        profiles = store.sql("SELECT profile_id FROM profiles").to_pylist()
        assert store.sql("SELECT DISTINCT profile_id FROM _answers").to_pylist() == profiles
        assert store.sql("SELECT DISTINCT profile_id FROM _answer_busy_time").to_pylist() == profiles


@pytest.mark.usefixtures("few")
def test_an_answer_of_another_definition_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = kineto(tmp_path / "one" / "rank0.json", [GEMM])
    store = tmp_path / "store"
    nl.ingest(trace, store=store, answers=True).close()
    now = answers._signatures()
    monkeypatch.setattr(answers, "_signatures", lambda: now | {"critical_path_summary": "another", "busy_time": "another"})
    with nl.open(store) as opened:
        assert opened.kept("critical_path_summary") is None
        assert opened.kept("queue_length")
    with nl.ingest(trace, store=store, answers=True) as opened:  # the next ingest answers them again
        assert opened.kept("critical_path_summary")
        assert opened.sql("SELECT DISTINCT signature FROM _answers WHERE view_name = 'busy_time'").to_pylist() == [
            {"signature": "another"}]
        assert opened.view("busy_time").num_rows == 1


def test_what_another_version_answered_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_signatures", lambda: {"busy_time": "new", "queue_length": "same"})
    with closing(duckdb.connect(str(tmp_path / "catalog.duckdb"))) as connection:
        connection.execute("CREATE TABLE profiles AS SELECT unnest(['P', 'Q']) AS profile_id")
        connection.execute("CREATE TABLE _answers AS SELECT 'busy_time' AS view_name, 'P' AS profile_id, 'old' AS signature "
                           "UNION ALL SELECT 'queue_length', 'P', 'same' UNION ALL SELECT 'view_that_is_gone', 'P', 'old'")
        for name in ("busy_time", "queue_length", "view_that_is_gone"):
            connection.execute(f"CREATE TABLE _answer_{name} AS SELECT 'P' AS profile_id")
        answers.take_in(connection, [])
        assert connection.execute("SELECT view_name FROM _answers").fetchall() == [("queue_length",)]
        assert answers._tables(connection) == ["_answer_queue_length"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("answered", [False, True])
def test_an_ingest_drops_what_another_version_answered(answered: bool, tmp_path: Path) -> None:
    """That version's busy_time had other figures, and a column that ours has not."""
    trace, store = kineto(tmp_path / "one" / "rank0.json", [GEMM]), tmp_path / "store"
    nl.ingest(trace, store=store, answers=True).close()
    with closing(duckdb.connect(str(store / CATALOG))) as plain:
        plain.execute("UPDATE _answer_busy_time SET busy_ns = 7")
        plain.execute("ALTER TABLE _answer_busy_time ADD COLUMN of_another_version BIGINT")
        plain.execute("UPDATE _answers SET signature = 'another' WHERE view_name = 'busy_time'")
    second = kineto(tmp_path / "two" / "rank0.json", [GEMM, ("gemm_kernel", 2000.0, 30.0)])
    with nl.ingest(second, store=store, answers=answered) as opened:
        assert sorted(opened.view("busy_time")["busy_ns"].to_pylist()) == [10_000, 40_000]
        assert opened.sql("SELECT count(*) AS n FROM _answers WHERE signature = 'another'").to_pylist() == [{"n": 0}]
        held = opened.sql("SELECT count(*) AS n FROM duckdb_columns() WHERE column_name = 'of_another_version'").to_pylist()
        assert held == [{"n": 0}]


@pytest.mark.usefixtures("few")
def test_a_view_that_cannot_be_answered_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = answers._answer

    def fail(connection: duckdb.DuckDBPyConnection, view: nl.View, rows: pa.Table | None) -> None:
        if view.name == "_gpu_states":
            raise duckdb.OutOfMemoryException("no room")
        real(connection, view, rows)

    monkeypatch.setattr(answers, "_answer", fail)
    with nl.ingest(kineto(tmp_path / "one" / "rank0.json", [GEMM]), store=tmp_path / "store", answers=True) as store:
        assert store.kept("_gpu_states") is None
        assert store.kept("busy_time")
        assert store.view("busy_time")["busy_ns"].to_pylist() == [10_000]


def test_a_full_disk_leaves_the_store_without_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(answers, "compute", full)
    with nl.ingest(kineto(tmp_path / "one" / "rank0.json", [GEMM]), store=tmp_path / "store", answers=True) as store:
        assert store.kept("busy_time") is None
        assert store.view("busy_time")["busy_ns"].to_pylist() == [10_000]


def test_a_store_without_answers_pays_nothing_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To sign the analyses takes longer than to read a small trace."""
    def sign() -> dict[str, str]:
        raise AssertionError("signed for nothing")

    monkeypatch.setattr(answers, "_signatures", sign)
    for rank in range(2):
        trace = kineto(tmp_path / "one" / f"rank{rank}.json", [GEMM], rank=rank, pid=70 + rank)
        nl.ingest(trace, store=tmp_path / "store", jobs=1).close()


@pytest.mark.usefixtures("few")
def test_small_stores_compute_and_large_ones_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = kineto(tmp_path / "one" / "rank0.json", [GEMM])
    with nl.ingest(trace, store=tmp_path / "small") as store:
        assert store.kept("busy_time") is None
    monkeypatch.setattr(answers, "WORTH_IT", 1)
    with nl.ingest(trace, store=tmp_path / "large") as store:
        assert store.kept("busy_time")
        assert store.kept("queue_length")
        assert not store.kept("critical_path_summary"), "seldom asked for, and dear"
    with nl.ingest(trace, store=tmp_path / "large", answers=True) as store:
        assert store.kept("critical_path_summary")


def test_rows_of_a_sweep_are_read_by_the_views_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are more than a row group of DuckDB (122,880 rows)."""
    count = 361_010
    places = pa.array(range(count), pa.int64())
    same = {"run": "r", "tool": "nsys", "profile_id": "P", "process_id": "P:0", "window_index": 0, "gpu_activities": 1,
            "total_ns": 5, **dict.fromkeys(swept._STATES, False)}
    starts = pc.multiply(places, 10)
    states = {"step_id": places, "step": places, "start_ns": starts, "end_ns": pc.add(starts, 5),
              **{name: pa.array([value] * count) for name, value in same.items()}}
    steps = {name: values for name, values in states.items() if name not in (*swept._STATES, "total_ns")}
    swept_rows = {"_step_states": pa.table(states), "_steps": pa.table(steps | {"host_start_ns": places, "host_end_ns": places})}
    monkeypatch.setattr(swept, "sweep", lambda *_: swept_rows)
    monkeypatch.setattr(answers, "_show_parts",
                        lambda made, *_: made.execute("INSERT INTO profiles BY NAME SELECT 'P' AS profile_id"))
    answers.compute({}, {"_steps", "step_breakdown"}, tmp_path / "answers.duckdb", 2, None)
    with closing(duckdb.connect(tmp_path / "answers.duckdb", read_only=True)) as made:
        found = made.execute("SELECT count(*), sum(other_ns), count(DISTINCT step_id) FROM _answer_step_breakdown").fetchall()
        noted = made.execute("SELECT view_name, row_count FROM _answers ORDER BY ALL").fetchall()
    assert found == [(count, 5 * count, count)]
    assert noted == [("_steps", count), ("step_breakdown", count)]


def test_seldom_asked_views_are_no_part_of_the_pages() -> None:
    """What summary and compare read stands on no view that is left out by default."""
    every = {**registry.load(), **registry.analyses()}

    def below(name: str) -> set[str]:
        return {name}.union(*(below(other) for other in every[name].requires if other in every))

    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "nsightlens" / "pages").glob("*.py"))
    asked = set(re.findall(r'(?:ask|best)\(\s*(?:page\.ask\()?"([a-z_]+)"', pages)) & set(every)
    assert len(asked) > 12
    assert {name for view in asked for name in below(view)} & answers.SELDOM == set()
    assert set(answers.answerable()) >= answers.SELDOM


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.long
def test_batches_in_one_process_or_in_several(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WORTH_IT", 2)
    for rank in range(3):
        kineto(tmp_path / "job" / f"rank{rank}.json", [("gemm_kernel", 1000.0, 10.0 + rank)], rank=rank, pid=70 + rank)
    with nl.ingest(tmp_path / "job", store=tmp_path / "store", jobs=jobs, answers=True) as store:
        assert store.view("busy_time")["busy_ns"].to_pylist() == [10_000, 11_000, 12_000]
        assert (store.kept("busy_time") or ())[:2] == (3, 3)
    assert not list((tmp_path / "store").glob(".nsightlens-scratch-*"))


@pytest.mark.usefixtures("few")
def test_refresh_answers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nsightlens.pipeline.refresh import refresh

    nl.ingest(kineto(tmp_path / "one" / "rank0.json", [GEMM]), store=tmp_path / "store").close()
    monkeypatch.setattr(answers, "WORTH_IT", 1)
    refresh(tmp_path / "store")
    with nl.open(tmp_path / "store") as store:
        assert store.kept("busy_time")


@pytest.mark.usefixtures("few")
def test_a_store_that_was_moved_keeps_its_answers(tmp_path: Path) -> None:
    nl.ingest(kineto(tmp_path / "one" / "rank0.json", [GEMM]), store=tmp_path / "store", answers=True).close()
    shutil.move(tmp_path / "store", tmp_path / "elsewhere")
    with nl.open(tmp_path / "elsewhere") as store:
        assert store.kept("busy_time")
        assert json.loads(json.dumps(store.view("busy_time").to_pylist()))[0]["busy_ns"] == 10_000
