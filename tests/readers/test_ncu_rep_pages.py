"""A report beside CSV pages of it: one profile, with the report's exact values, whatever the pages add or print otherwise."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.readers import ncu
from tests.places import ROOT
from tests.readers.ncu_reports import FIXTURE, launch, printed, save
from tests.readers.ncu_text import codes, read, told
from tests.readers.ncu_text import save as save_text

CSV = ROOT / "fixtures" / "simulated_resnet18_ddp" / "ncu"
PID = 7


@pytest.fixture()
def report(tmp_path: Path) -> Path:
    metrics = {"gpu__time_duration.sum": 25_792.0, "dram__bytes.sum": 1234.5678, "launch__device_id": 0}
    return save(tmp_path, [launch(metrics=metrics), launch("other(float)", metrics=metrics, function="other")], "k.ncu-rep")


def test_pages_printed_from_a_report_add_nothing(report: Path, tmp_path: Path) -> None:
    alone = read(report)
    page = save_text(tmp_path, printed(alone["kernels"], PID), "k.csv")
    for paths in ([report, page], [page, report]):
        assert ncu.mergeable(paths)
        both = read(*paths)
        assert both["kernels"] == alone["kernels"]
        assert codes(both) == codes(alone) | {"pages_beside_report": 2}
    assert both["profiles"][0]["format"] == "ncu raw csv + ncu report"


@pytest.mark.parametrize("name", ["void k<4>(int)", "k", "_ZN2ns1kILi4EEEvi"])
def test_pages_may_print_the_name_in_another_form(report: Path, tmp_path: Path, name: str) -> None:
    alone = read(report)
    kernels = [alone["kernels"][0] | {"name": name}]
    both = read(report, save_text(tmp_path, printed(kernels, PID), "k.csv"))
    assert both["kernels"] == alone["kernels"]


def test_the_name_without_namespaces_is_looked_for(report: Path, tmp_path: Path) -> None:
    kernels = [read(report)["kernels"][0] | {"name": "void k<4>(int)"}]
    page = ncu.probe(save_text(tmp_path, printed(kernels, PID), "k.csv"))
    assert page.identity and page.identity < ncu.probe(report).identity


def test_what_pages_print_otherwise_is_told(report: Path, tmp_path: Path) -> None:
    alone = read(report)
    page = save_text(tmp_path, printed(alone["kernels"], PID, lambda value: f"{value * 1.01:.2f}"), "k.csv")
    assert not ncu.mergeable([report, page])
    both = read(report, page)
    assert both["kernels"] == alone["kernels"]
    assert codes(both)["metric_conflict"] == 4


def test_launches_that_only_the_pages_have_are_kept(report: Path, tmp_path: Path) -> None:
    alone = read(report)
    more = [kernel | {"ncu_id": kernel["ncu_id"] + 1, "name": f"late{kernel['ncu_id']}"} for kernel in alone["kernels"]]
    page = save_text(tmp_path, printed([*alone["kernels"], more[1]], PID), "k.csv")
    both = read(report, page)
    assert both["kernels"][:2] == alone["kernels"] and [kernel["ncu_id"] for kernel in both["kernels"]] == [0, 1, 2]
    assert both["kernels"][2]["name"] == "late1" and both["kernels"][2]["metrics"]["dram__bytes.sum"] == 1234.57
    assert codes(both)["pages_beyond_report"] == 1 and codes(both)["pages_beside_report"] == 2


def test_another_kernel_of_the_same_number_is_another_launch(report: Path, tmp_path: Path) -> None:
    kernels = [read(report)["kernels"][0] | {"name": "unlike(int)", "grid_x": 99}]
    both = read(report, save_text(tmp_path, printed(kernels, PID), "k.csv"))
    assert [kernel["name"] for kernel in both["kernels"]] == ["void ns::k<(int)4>(int)", "other(float)", "unlike(int)"]


@pytest.fixture()
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for path in (CSV / "rank0.raw.csv", CSV / "rank0.details.csv", FIXTURE):
        shutil.copyfile(path, folder / path.name)
    return folder


def test_the_pages_of_the_simulated_run_agree_with_its_report(pages: Path) -> None:
    """Two raw and details pages were printed from the counters that the report holds, with two decimals and scaled units."""
    files = [pages / "rank0.ncu-rep", pages / "rank0.raw.csv", pages / "rank0.details.csv"]
    assert ncu.mergeable(files)
    both, alone = read(*files), read(files[0])
    assert both["kernels"] == alone["kernels"] and both["advice"] == alone["advice"]
    assert "metric_conflict" not in codes(both) and codes(both)["pages_beside_report"] == 14
    exact, rounded = alone["kernels"][0]["metrics"], read(files[1])["kernels"][0]["metrics"]
    assert exact.keys() == rounded.keys() and exact != rounded
    assert all(abs(exact[name] - value) <= 0.0050000001 for name, value in rounded.items())
    assert "pages_beyond_report" not in codes(both), told(both, "pages_beyond_report")


def test_a_report_and_its_pages_are_one_profile_in_the_store(pages: Path, tmp_path: Path) -> None:
    with nl.ingest([pages], store=tmp_path / "store") as store:
        files = store.sql("SELECT parse_filename(path) AS name, outcome, count(DISTINCT profile_id) AS profiles FROM files "
                          "GROUP BY ALL ORDER BY name").to_pylist()
        assert [(row["name"], row["outcome"], row["profiles"]) for row in files] == [
            ("rank0.details.csv", "read", 1), ("rank0.ncu-rep", "read", 1), ("rank0.raw.csv", "read", 1)]
        kernels = store.sql("SELECT count(*) AS n, count(DISTINCT profile_id) AS profiles FROM kernels").to_pylist()
        assert kernels == [{"n": 14, "profiles": 1}]
        assert store.view("ncu_metrics", only_metric="dram__bytes.sum").num_rows == 14


def test_pages_found_later_join_the_report(pages: Path, tmp_path: Path) -> None:
    late = pages / "rank0.raw.csv"
    kept = late.read_bytes()
    late.unlink()
    nl.ingest([pages], store=tmp_path / "store").close()
    late.write_bytes(kept)
    with nl.ingest([pages], store=tmp_path / "store") as store:
        assert store.sql("SELECT count(*) AS n, count(DISTINCT profile_id) AS profiles FROM kernels").to_pylist() == [
            {"n": 14, "profiles": 1}]


def test_the_committed_report_is_what_its_generator_writes(tmp_path: Path) -> None:
    importlib.import_module("make_simulated_ncu_report").make(tmp_path)
    for path in FIXTURE.parent.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
