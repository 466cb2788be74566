"""Two kernels of 3.4 s that no stream allows, in a run of a tenth of a second: they are marked, said, and rule nothing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import nsightlens as nl
from nsightlens.cli.summary import command
from nsightlens.views import registry
from tests.fixtures.simulated_run import FIXTURES

_FALSE_NS = 3_400_000_000
_OF_ONE = "family = 'elementwise'"
_OF_ALL = "family = 'collective'"


@pytest.fixture(scope="module")
def stores(bundled_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[nl.Store, nl.Store]]:
    """Yield the bundled run, and the same with false ends under nsys: of two elementwise kernels and two collectives."""
    folder = tmp_path_factory.mktemp("overruns")
    run = shutil.copytree(FIXTURES / "simulated_resnet18_ddp", folder / "run")
    with nl.open(bundled_store) as true:
        name, = true.sql("SELECT any_value(run) FROM profiles").to_pydict().values()
        for which in (_OF_ONE, _OF_ALL):
            _lengthen(run / "nsys" / "rank0.sqlite", true.sql(f"""
                WITH followed AS (
                    SELECT *, lead(start_ns) OVER (PARTITION BY stream ORDER BY start_ns) - start_ns - duration_ns AS pause_ns
                    FROM kernels WHERE tool = 'nsys' AND rank = 0 QUALIFY count(*) OVER (PARTITION BY correlation_id) = 1
                ) FROM followed WHERE {which} AND overrun_ns = 0 ORDER BY pause_ns LIMIT 2"""))
        with nl.ingest(run, store=folder / "store", run=name[0]) as false:
            yield true, false


def _lengthen(report: Path, kernels: Any) -> None:
    with closing(sqlite3.connect(report)) as database, database:
        for correlation in kernels["correlation_id"].to_pylist():
            changed = database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = start + ? WHERE correlationId = ?',
                                       (_FALSE_NS, correlation))
            assert changed.rowcount == 1


def test_they_are_marked_and_listed(stores: tuple[nl.Store, nl.Store]) -> None:
    true, false = (store.sql("SELECT * FROM kernel_overruns").to_pylist() for store in stores)
    assert true == []
    assert [row["duration_ns"] for row in false] == [_FALSE_NS] * 4
    assert all(0 < row["next_start_ns"] - row["start_ns"] < 10**8 for row in false)


def test_totals_are_shown_as_recorded_and_clipped(stores: tuple[nl.Store, nl.Store]) -> None:
    for family in ("elementwise", "collective"):
        was, is_ = (next(row for row in store.view("family_summary", only_tool="nsys", only_family=family).to_pylist())
                    for store in stores)
        assert was["clipped_ns"] == was["total_ns"] < 1e9
        assert is_["total_ns"] > 2 * _FALSE_NS
        assert is_["clipped_ns"] == pytest.approx(was["total_ns"], rel=0.2)
        assert is_["time_pct"] == pytest.approx(was["time_pct"], abs=2)


@pytest.mark.parametrize("view", ["gpu_summary", "busy_time", "step_breakdown", "recommendations"])
def test_nothing_of_time_rests_on_them(stores: tuple[nl.Store, nl.Store], view: str) -> None:
    said = ("busy_pct", "utilization_pct", "tensor_core_pct", "compute_ns", "span_ns", "step_ns", "kernel_ns", "value_pct")
    figures = [name for name in said if name in dict(stores[0].views[view].columns)]
    was, is_ = (store.view(view, only_tool="nsys").select(figures).to_pylist() for store in stores)
    assert len(was) == len(is_)
    for one, other in zip(was, is_, strict=True):
        for name in figures:
            assert other[name] == (one[name] if one[name] is None else pytest.approx(one[name], rel=0.03, abs=200_000)), name


@pytest.mark.skipif("true_roofline" not in registry.known(), reason="the roofline has been taken out")
def test_no_roofline_point_rests_on_them(stores: tuple[nl.Store, nl.Store]) -> None:
    for was, is_ in zip(*(store.view("true_roofline", time="nsys").to_pylist() for store in stores), strict=True):
        assert (is_["name"], is_["max_duration_ns"] or 0) <= (was["name"], was["max_duration_ns"] or 0)
        if was["duration_ns"] is not None:
            assert is_["duration_ns"] == pytest.approx(was["duration_ns"], rel=0.02)


def test_no_clock_rests_on_them(stores: tuple[nl.Store, nl.Store]) -> None:
    for was, is_ in zip(*(store.view("rank_clock", only_tool="nsys").to_pylist() for store in stores), strict=True):
        assert is_["collectives"] == (was["collectives"] - 2 if was["rank"] else 0)
        assert is_["offset_ns"] == pytest.approx(was["offset_ns"], abs=2_000)
        assert is_["uncertainty_ns"] == (None if was["uncertainty_ns"] is None else pytest.approx(was["uncertainty_ns"], rel=0.6))


def test_the_page_warns_with_their_number_and_share(stores: tuple[nl.Store, nl.Store]) -> None:
    said = CliRunner().invoke(command, ["--store", str(stores[1].path), "--tool", "nsys"], env={"COLUMNS": "160"}).output
    assert "warning impossible_durations (nsys, 4×): 4 of " in said
    assert "as recorded" in said
    assert "clipped" in said
    clean = CliRunner().invoke(command, ["--store", str(stores[0].path), "--tool", "nsys"], env={"COLUMNS": "160"}).output
    assert "impossible" not in clean
    assert "clipped" not in clean
