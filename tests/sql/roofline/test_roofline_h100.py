"""Products of known work on an H100 (fixtures/README.md): ncu counted that work, and the roofs are dense ones."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

import nsightlens as nl
from tests.places import ROOT

GEMM = ROOT / "fixtures" / "gemm_h100"
DENSE_BF16_PER_CYCLE = 132 * 4096
"""Operations of the dense tensor cores of an H100 SXM5: 4,096 per cycle and SM (datasheet: 989.4 TFLOP/s at 1.83 GHz)."""


def cells(page: Path) -> list[list[str]]:
    return list(csv.reader(gzip.decompress(page.read_bytes()).decode().splitlines()))


@pytest.mark.parametrize(("folder", "precision", "operations"), [
    ("4096-4096-4096-bf16", "tensor_bf16_dst_fp32", 2 * 4096**3),
    ("2048-2048-2048-fp64", "tensor_fp64", 2 * 2048**3),
])
def test_counted_work_of_a_known_product(tmp_path: Path, folder: str, precision: str, operations: int) -> None:
    with nl.ingest(GEMM / folder, store=tmp_path / "store", jobs=1) as store:
        points = store.view("roofline", only_level="dram").to_pylist()
    assert [point["work_flop"] for point in points if point["precision"] == precision and point["is_main"]] == [operations]


def test_padded_tiles_of_a_product_on_cuda_cores(tmp_path: Path) -> None:
    with nl.ingest(GEMM / "1000-1001-1003-fp32", store=tmp_path / "store", jobs=1) as store:
        (work,) = (point["work_flop"] for point in store.view("roofline", only_level="dram").to_pylist()
                   if point["precision"] == "fp32")
    known = 2 * 1000 * 1001 * 1003
    tiles = 2 * 1024 * 1024 * 1008  # 16 x 8 tiles of 64 x 128, and steps of 8 along k
    assert known <= work <= 1.001 * tiles


def test_roof_of_dense_operations_is_the_dense_one(tmp_path: Path) -> None:
    """ncu gives a counter that sparsity does not divide the peak of sparse operations, twice the dense one."""
    with nl.ingest(GEMM / "4096-4096-4096-bf16", store=tmp_path / "store", jobs=1) as store:
        (point,) = (point for point in store.view("roofline", only_level="dram").to_pylist() if point["is_main"])
    counter = "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.pct_of_peak_sustained_elapsed"
    rows = cells(GEMM / "4096-4096-4096-bf16" / "ncu" / "rank0000.raw.csv.gz")
    printed = [float(row[rows[0].index(counter)]) for row in rows[2:]]
    assert point["peak_flop_per_s"] == pytest.approx(DENSE_BF16_PER_CYCLE * point["roof_clock_hz"])
    assert point["roof_pct"] == pytest.approx(sum(printed) / len(printed), rel=0.005)
