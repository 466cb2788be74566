"""From Python: the tables of `compare runs`, the findings of `summary`, and a store opened from a run directory."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.errors import IngestWarning, UsageError
from tests.captures import GEMM, kineto
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
    with nl.open(two_runs) as store, pytest.raises(UsageError, match="nope") as error:
        nl.compare(store, "base", "nope")
    assert (error.value.subject, error.value.value, error.value.choices) == ("run", "nope", ("base", "fused"))


def test_compare_takes_the_two_runs_of_the_store_and_prints_its_verdict(two_runs: Path) -> None:
    with nl.open(two_runs) as store:
        found, named = nl.compare(store), nl.compare(store, "base", "fused")
    assert found.runs == ("base", "fused") and found == named
    assert found.verdict[0].startswith("A step takes ") and found.verdict[1].startswith("One recording of each")
    assert repr(found).splitlines()[:3] == ["fused against base", *found.verdict]
    assert found.verdict[0] in found._repr_html_() and found._repr_html_().count("<table>") == 1
    assert "window" in found._repr_html_()
    with_names = run("compare", "runs", "base", "fused", "--store", two_runs)
    assert run("compare", "runs", "--store", two_runs).stdout == with_names.stdout
    assert run("compare", "runs", "base", "--store", two_runs).returncode == 2


def test_what_the_recordings_differ_in_stands_below_the_verdict(two_runs: Path) -> None:
    with nl.open(two_runs) as store:
        found = nl.compare(store)
    properties = [row | {"same": row["property"] not in ("GPU", "world size") and row["same"]}
                  for row in found["comparability"].to_pylist()]
    found["comparability"] = pa.Table.from_pylist(properties)
    line = "The recordings differ in GPU, world size: see comparability."
    assert line in repr(found).splitlines() and f"<p>{line}</p>" in found._repr_html_()


def test_of_several_runs_the_findings_ask_for_theirs(two_runs: Path) -> None:
    with nl.open(two_runs) as store:
        rows = nl.findings(store).to_pylist()
    assert {row["run"] for row in rows} == {"base", "fused"}
    assert all(f'run="{row["run"]}"' in row["more"] for row in rows if "store." in row["more"])


def test_one_run_alone_says_how_to_add_another(bundled_store: Path) -> None:
    done = run("compare", "runs", "--store", bundled_store)
    assert done.returncode == 2 and "To add one: nsightlens ingest" in done.stderr


def test_ingest_warns_of_refused_files_and_of_pooled_workloads(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    kineto(folder / "a.json", pid=1)
    kineto(folder / "b.json", [(GEMM, 60e6, 10.0)], pid=2)
    (folder / "broken.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.warns(IngestWarning) as raised:
        nl.ingest(folder, tmp_path / "store").close()
    assert {one.filename for one in raised} == {__file__}
    said = [pickle.loads(pickle.dumps(one.message)) for one in raised]
    assert [one.code for one in said] == ["refused", "times_pooled"]
    assert "broken.sqlite" in said[0].reason
    assert "nl.ingest(CAPTURES, run=NAME)" in said[1].reason and "nl.remove(store, run=NAME)" in said[1].reason


def test_an_ingest_without_doubts_warns_of_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nl.ingest(NSYS, tmp_path / "store").close()


def test_open_names_the_run_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        with nl.open(NSYS, ingest=True, run=name) as store:
            runs = store.sql("SELECT DISTINCT run FROM files ORDER BY run")["run"].to_pylist()
    assert runs == ["one", "two"]
    with pytest.raises(UsageError, match="only_run='one'"):
        nl.open("nsightlens-store", run="one")


def test_findings_are_those_of_the_view(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        ours, rows = (table.drop_columns("more") for table in (nl.findings(store, only_tool="nsys"),
                                                               store.view("findings", only_tool="nsys")))
        assert ours.equals(rows)
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
