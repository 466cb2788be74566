"""record_fixtures.sh with a stub ncu and Python: what it would record where a GPU is."""

from __future__ import annotations

import sys

import pytest

from tests.wrappers.stage import Stage

PAGE = """if [[ $1 == --import ]]; then
  printf '"ID","Kernel Name","gpu__time_duration.sum"\\n"","","nsecond"\\n"0","ampere_gemm","5"\\n"1","other","99"\\n'
  printf '"2","ampere_gemm","1,024"\\n"3","implicit_convolve_sgemm","7"\\n'"""


@pytest.fixture
def gpu(stage: Stage) -> Stage:
    """A machine whose Python runs nothing but what comes from standard input, and whose ncu prints four launches."""
    stage.stub("ncu", (stage.bin / "ncu").read_text().replace(
        """if [[ $1 == --import ]]; then printf '"ID","Kernel Name"\\n"0","k"\\n';""", PAGE + "; "))
    stage.stub("python3", f'#!/bin/sh\n[ "$1" != - ] || exec {sys.executable} "$@"\nexit "${{NO_GPU:-0}}"\n')
    return stage


def test_every_recording_is_made_and_the_hottest_launches_are_found(gpu: Stage) -> None:
    done = gpu.run("record_fixtures.sh", "out")
    assert done.returncode == 0, done.stderr
    sidecars = {str(p.relative_to(gpu.path / "out")): gpu.sidecar(str(p)) for p in (gpu.path / "out").rglob("*.run.json")}
    names = {path.split("/")[0] for path in sidecars}
    shapes = ("4096-4096-4096", "1024-512-768", "1000-1001-1003")
    assert names == {"nsys-resnet18", "survey-bf16", "survey-fp32"} | {
        f"gemm-{shape}-{what}" for shape in shapes for what in ("roofline", "detailed", "minimal")} | {
        f"hottest-{kind}-{precision}-{what}" for kind in ("gemm", "conv") for precision in ("bf16", "fp32")
        for what in ("roofline", "detailed")}
    assert {s["exit_code"] for s in sidecars.values()} == {0}
    hottest = {kind: sidecars[f"hottest-{kind}-bf16-roofline/ncu/rank0000.run.json"] for kind in ("gemm", "conv")}
    skips = {kind: sidecar["options"]["launch_skip"] for kind, sidecar in hottest.items()}
    assert skips == {"gemm": "602", "conv": "603"}


def test_nothing_is_recorded_without_a_gpu(gpu: Stage) -> None:
    done = gpu.run("record_fixtures.sh", "out", NO_GPU="1")
    assert done.returncode == 1 and gpu.files() == []


def test_it_names_what_failed(gpu: Stage) -> None:
    done = gpu.run("record_fixtures.sh", "out", STUB_NCU="nothing")
    assert done.returncode == 1 and "no gemm kernel in bf16" in done.stderr
    assert "not recorded:" in done.stderr.splitlines()[-1] and "hottest-conv-fp32" in done.stderr.splitlines()[-1]
