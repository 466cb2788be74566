"""The roofline of ncu's own reports (.ncu-rep): points and roofs without CSV pages and without the name of a GPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import nsightlens as nl
from tests.places import ROOT
from tests.readers.ncu_reports import FIXTURE

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"
GPU = "NVIDIA A100-SXM4-40GB (simulated)"


def test_a_report_alone_is_drawn(tmp_path: Path) -> None:
    with nl.ingest([FIXTURE], store=tmp_path / "store") as store:
        points = store.view("roofline", kernel="gemm").to_pylist()
    assert any(row["plottable"] for row in points)
    assert {row["gpu"] for row in points} == {GPU}


def test_beside_timelines_it_gives_the_true_roofline_and_the_plan(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SIMULATED, run, ignore=shutil.ignore_patterns("*.csv", "torch", "truth"))
    shutil.copyfile(FIXTURE, run / "ncu" / FIXTURE.name)
    with nl.ingest([run], store=tmp_path / "store") as store:
        assert {row["tool"] for row in store.sql("SELECT DISTINCT tool FROM kernels").to_pylist()} == {"nsys", "ncu"}
        points = [row for row in store.view("true_roofline", kernel="gemm", time="nsys").to_pylist() if row["plottable"]]
        assert points and {row["gpu"] for row in points} == {GPU}
        assert store.view("ncu_plan").num_rows
