"""What a command writes replaces its own output, a text of the user's, or nothing: no capture, and no file of a store."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import duckdb
import pytest

import nsightlens as nl
from tests.captures import kineto
from tests.cli.command_line import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a capture and the store that was made from it."""
    folder = tmp_path_factory.mktemp("target")
    kineto(folder / "trace.json", [("k", 1000.0, 10.0)], rank=0)
    nl.ingest(folder / "trace.json", folder / "store", run="run", jobs=1).close()
    return folder


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("words", [
    ["export", "perfetto", "-o", "{0}/trace.json"], ["show", "kernel_summary", "-o", "{0}/trace.json"],
    ["show", "kernel_summary", "-o", "{part}"], ["sql", "SELECT 1", "--format", "csv", "-o", "{0}/store/nsightlens.duckdb"],
    ["--log-file", "{0}/store/nsightlens.duckdb", "summary"], ["--log-file", "{0}/store/lock", "summary"],
    ["--log-file", "{0}/trace.json", "summary"], ["report", "-o", "{part}"], ["roofline", "--points", "{0}/trace.json"],
    ["report", "-o", "{0}/store/parts/new.html"], ["show", "kernel_summary", "-o", "{0}/store/parts/kernels/new.parquet"],
], ids=" ".join)
def test_a_capture_and_a_store_stay_as_they_are(folder: Path, words: list[str]) -> None:
    before = _files(folder)
    part = next((folder / "store").rglob("*.parquet"))
    done = run(*(word.format(folder, part=part) for word in words), "--store", folder / "store")
    assert done.returncode == 2
    assert _files(folder) == before


@pytest.mark.parametrize("words", [
    ["show", "kernel_summary", "-o", "k.csv"], ["show", "kernel_summary", "-o", "k.parquet"],
    ["show", "cuda_gpu_kern_sum", "-o", "n.csv"], ["report", "-o", "r.html"],
    ["export", "perfetto", "-o", "t.json"], ["export", "perfetto", "-o", "t.json.gz"],
], ids=" ".join)
def test_an_output_is_replaced_also_where_a_link_leads(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / words[-1]).symlink_to(tmp_path / "real" / words[-1])
    for _ in range(2):
        assert run(*words, "--store", folder / "store").returncode == 0
    assert (tmp_path / words[-1]).is_symlink() and (tmp_path / "real" / words[-1]).stat().st_size > 0


def test_a_timeline_of_ours_is_no_capture(folder: Path, tmp_path: Path) -> None:
    for name in ("t.json", "t.json.gz"):
        assert run("export", "perfetto", "-o", tmp_path / name, "--store", folder / "store").returncode == 0
    rows = json.loads(run("scan", tmp_path, "--format", "json").stdout)["rows"]
    assert [(row["kind"], row["verdict"]) for row in rows] == [("timeline of nsightlens", "refused")] * 2


def _database(path: Path) -> None:
    if "sqlite" in path.parent.name:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (x)")
    else:
        duckdb.connect(str(path)).execute("CREATE TABLE t (x INT)").close()


@pytest.mark.parametrize("option", ["-o", "--log-file"])
@pytest.mark.parametrize("case", ["link", "hard link", "sidecar", "link to a sidecar", "sqlite", "duckdb"])
def test_what_a_file_is_counts_and_not_what_it_is_called(folder: Path, tmp_path: Path, case: str, option: str) -> None:
    out = tmp_path / case / "x.csv"
    out.parent.mkdir()
    sidecar = out.with_name("trace.run.json")
    sidecar.write_text('{"rank": 3}')
    catalog = folder / "store" / "nsightlens.duckdb"
    if case.startswith("link"):
        out.symlink_to(catalog if case == "link" else sidecar)
    elif case == "hard link":
        (tmp_path / "text").write_text("of the user's")
        out.hardlink_to(tmp_path / "text")
    elif case == "sidecar":
        out = sidecar
    else:
        _database(out)
    before = _files(tmp_path) | _files(folder)
    command: list[str | Path] = ["show", "kernel_summary", "--store", folder / "store"]
    done = run(*command, option, out) if option == "-o" else run(option, out, *command)
    assert done.returncode == 2
    assert _files(tmp_path) | _files(folder) == before


@pytest.mark.parametrize("name", ["trace.json", "store/nsightlens.duckdb", "store/lock", "store/parts/new.html"])
def test_python_leaves_captures_and_stores_as_they_are(folder: Path, tmp_path: Path, name: str) -> None:
    before, link = _files(folder), tmp_path / "x.png"
    link.symlink_to(folder / name)
    with nl.open(folder / "store") as store:
        with pytest.raises(nl.UsageError):
            nl.report(store).save(folder / name)
        with pytest.raises(nl.UsageError):
            nl.plots.save(nl.plots.top_kernels(store.view("top_kernels")), link)
    assert _files(folder) == before
