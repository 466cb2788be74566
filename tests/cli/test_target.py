"""What a command writes replaces its own output, a text of the user's, or nothing: no capture, and no file of a store."""

from __future__ import annotations

import json
from pathlib import Path

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
