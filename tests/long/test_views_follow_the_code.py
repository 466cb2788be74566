"""What a store answers is what the installed version says: another version's store is asked with this version's views."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsightlens as nl
from tests.other_version import OtherVersion
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
_SUMMARY = "sql/kernels/kernel_summary.sql"


@pytest.fixture(scope="module", params=[[], ["--no-materialise"]], ids=["materialised", "parts"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of this version, made by `nsightlens ingest`."""
    folder = tmp_path_factory.mktemp("code")
    done = OtherVersion(folder).run("ingest", RUN, "--store", folder / "store", *request.param)
    assert done.returncode == 0, done.stderr
    return folder / "store"


def _show(version: OtherVersion, view: str, store: Path, *more: str) -> list[dict[str, Any]]:
    done = version.run("show", view, *more, "--store", store, "--format", "json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def _total(rows: list[dict[str, Any]]) -> int:
    return sum(row["total_ns"] for row in rows)


def test_an_edited_view_answers_at_once_and_is_stored_by_the_next_ingest(store: Path, tmp_path: Path) -> None:
    with nl.open(store) as opened:
        before = _total(opened.view("kernel_summary").to_pylist())
    stored = (store / "nsightlens.duckdb").read_bytes()
    other = OtherVersion(tmp_path).edit(_SUMMARY, "sum(duration_ns)", "1000 * sum(duration_ns)")
    assert _total(_show(other, "kernel_summary", store)) == 1000 * before
    query = "SELECT sum(total_ns)::BIGINT AS ns FROM kernel_summary"
    asked = other.run("sql", query, "--store", store, "--format", "csv", "--allow-files")
    assert asked.stdout.split() == ["ns", str(1000 * before)]
    assert (store / "nsightlens.duckdb").read_bytes() == stored, "asking writes nothing"
    again = other.run("ingest", RUN, "--store", store)
    assert "5 unchanged" in again.stderr
    with duckdb.connect(str(store / "nsightlens.duckdb"), read_only=True) as plain:
        assert plain.execute("SELECT sum(total_ns) FROM kernel_summary").fetchone() == (1000 * before,)
    with nl.open(store) as opened:
        assert _total(opened.view("kernel_summary").to_pylist()) == before


def test_an_edited_view_whose_answers_are_kept_is_computed_anew_also_below_a_macro(store: Path, tmp_path: Path) -> None:
    with nl.open(store) as opened:
        before = opened.view("top_kernels", how_many=1).to_pylist()
        rows = opened.view("kernel_by_rank").num_rows
    other = OtherVersion(tmp_path).edit("sql/kernels/kernel_by_rank.sql", "(sum(duration_ns - ", "(-sum(duration_ns - ")
    by_rank = _show(other, "kernel_by_rank", store)
    assert len(by_rank) == rows and all(row["clipped_ns"] < 0 for row in by_rank)
    shown = _show(other, "top_kernels", store, "how_many=1")
    assert len(shown) == len(before)
    for least, most in zip(shown, before, strict=True):
        assert (least["run"], least["tool"]) == (most["run"], most["tool"])
        assert least["clipped_ns"] < most["clipped_ns"], "the order is that of the edited view"


def test_versions_that_share_a_store_and_a_cache_never_show_the_rows_of_another(store: Path, tmp_path: Path) -> None:
    ours = OtherVersion(tmp_path / "ours", tmp_path / "cache")
    theirs = OtherVersion(tmp_path / "theirs", tmp_path / "cache").edit(
        "analyses/straggler.py", 'return "straggler"', 'return "the last"')
    for _ in range(2):
        assert "straggler" in [row["verdict"] for row in _show(ours, "straggler", store)]
        verdicts = [row["verdict"] for row in _show(theirs, "straggler", store)]
        assert "the last" in verdicts and "straggler" not in verdicts
    assert len(list((tmp_path / "cache" / "nsightlens" / "views").glob("straggler-*"))) == 2


def test_a_new_view_a_changed_kind_and_a_view_that_is_gone(store: Path, tmp_path: Path) -> None:
    other = OtherVersion(tmp_path)
    (other.package / "sql" / "kernels" / "doubled.sql").write_text(
        "-- Twice the time.\n-- @scope run\n-- @requires family_summary\n-- @column twice_ns  Twice.\n"
        "CREATE VIEW doubled AS SELECT 2 * total_ns AS twice_ns FROM family_summary;\n")
    (other.package / "sql" / "memory" / "memory_op_summary.sql").unlink()
    (other.package / "sql" / "kernels" / "top_kernels.sql").unlink()
    other.edit("sql/kernels/family_summary.sql", "CREATE VIEW family_summary AS",
               "-- @param times  Factor.\nCREATE MACRO family_summary(times := 1) AS TABLE")
    other.edit("sql/kernels/doubled.sql", "FROM family_summary", "FROM family_summary(times := 2)")
    with nl.open(store) as opened:
        expected = sorted(2 * row["total_ns"] for row in opened.view("family_summary").to_pylist())
    assert sorted(row["twice_ns"] for row in _show(other, "doubled", store)) == expected
    for query in ("FROM memory_op_summary", "FROM top_kernels()"):
        done = other.run("sql", query, "--store", store)
        assert done.returncode == 2, f"{query} answers with the SQL of another version"
    assert "this one does not have it" in other.run("sql", "FROM memory_op_summary", "--store", store).stderr
    alike = other.run("sql", "FROM family_summary EXCEPT FROM family_summary(times := 1)", "--store", store)
    assert alike.returncode == 0 and "(no rows)" in alike.stdout


def test_the_peaks_of_gpus_are_those_of_the_code(store: Path, tmp_path: Path) -> None:
    other = OtherVersion(tmp_path)
    path = other.package / "gpus.csv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *rows[:-1]]) + "\n")
    counted = other.run("sql", "SELECT count(*) AS n FROM gpu_peaks", "--store", store, "--format", "csv")
    assert counted.stdout.split() == ["n", str(len(rows) - 1)]
    other.run("ingest", RUN, "--store", store)
    with duckdb.connect(str(store / "nsightlens.duckdb"), read_only=True) as plain:
        assert plain.execute("SELECT count(*) FROM gpu_peaks").fetchone() == (len(rows) - 1,)
