"""From Python: the tables of `compare runs`, the findings of `summary`, and a store opened from a run directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from tests.cli.command_line import run
from tests.places import ROOT

NSYS = ROOT / "fixtures/simulated_resnet18_ddp/nsys"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("comparison") / "store"
    for name in ("base", "fused"):
        nl.ingest(NSYS, store, run=name).close()
    return store


def test_compare_returns_the_tables_of_the_command(two_runs: Path) -> None:
    done = run("compare", "runs", "base", "fused", "--by", "op", "--skip-steps", "1", "-f", "json", "--store", two_runs)
    printed = json.loads(done.stdout)["tables"]
    with nl.open(two_runs) as store:
        found = nl.compare(store, "base", "fused", by="op", skip_steps=1)
    assert {name: table.num_rows for name, table in found.items()} == {name: len(rows) for name, rows in printed.items()}
    assert found["differences"].to_pylist() == printed["differences"] and found["differences"].num_rows > 1


def test_compare_refuses_what_is_not_there(two_runs: Path) -> None:
    with nl.open(two_runs) as store, pytest.raises(UsageError, match="nope"):
        nl.compare(store, "base", "nope")


def test_findings_are_those_of_the_view(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        assert nl.findings(store, only_tool="nsys").equals(store.view("findings", only_tool="nsys"))
        assert nl.findings(store).num_rows > 0


def test_open_reads_a_run_directory_where_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="holds captures and is not a store"):
        nl.open(NSYS)
    with nl.open(NSYS, ingest=True) as store:
        assert store.path == tmp_path / "nsightlens-store" or store.path == Path("nsightlens-store")
        rows = store.view("kernel_summary").num_rows
    assert rows > 0
    with nl.open(tmp_path / "nsightlens-store", ingest=True) as store:  # a store already: it is opened
        assert store.view("kernel_summary").num_rows == rows
