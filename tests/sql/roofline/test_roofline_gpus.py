"""gpus.csv: every product name finds its own datasheet, and the peaks agree with units times clock."""

from __future__ import annotations

import csv
import re

import pytest

from nsightlens.views.header import PACKAGE
from tests.catalogs import catalog

GPUS = PACKAGE / "gpus.csv"
NAMES = {
    "Tesla V100-SXM2-16GB": "V100 SXM2", "Tesla V100-PCIE-32GB": "V100 PCIe", "Tesla V100S-PCIE-32GB": "V100S PCIe",
    "Tesla T4": "T4", "NVIDIA A10": "A10", "NVIDIA A10G": None, "NVIDIA A30": "A30", "NVIDIA A40": "A40",
    "NVIDIA A100-SXM4-40GB": "A100 SXM4 40GB",
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40GB", "NVIDIA A100-SXM4-80GB": "A100 SXM4 80GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
    "NVIDIA A100-SXM-64GB": None, "NVIDIA RTX A6000": "RTX A6000", "NVIDIA GeForce RTX 3090": "RTX 3090",
    "NVIDIA GeForce RTX 3090 Ti": None, "NVIDIA L4": "L4", "NVIDIA L40": "L40", "NVIDIA L40S": "L40S",
    "NVIDIA GeForce RTX 4090": "RTX 4090", "NVIDIA GeForce RTX 4090 Laptop GPU": None, "NVIDIA GeForce RTX 4090 D": None,
    "NVIDIA H100 80GB HBM3": "H100 SXM5", "NVIDIA H100 PCIe": "H100 PCIe", "NVIDIA H100 NVL": "H100 NVL",
    "NVIDIA H200": "H200 SXM",
    "NVIDIA H200 NVL": "H200 NVL", "NVIDIA GH200 480GB": "GH200 96GB", "NVIDIA GH200 144G HBM3e": "GH200 144GB",
    "NVIDIA B200": "B200", "NVIDIA GB200": "GB200", "NVIDIA GeForce RTX 5070": "RTX 5070", "NVIDIA GeForce RTX 5070 Ti": None,
    "NVIDIA GeForce RTX 5090": "RTX 5090", "NVIDIA GeForce RTX 5090 (simulated)": "RTX 5090",
    "Tesla V100-DGXS-32GB": "V100 DGXS", "AMD Instinct MI100": "MI100", "AMD Instinct MI210": "MI210",
    "AMD Instinct MI250X": "MI250X", "AMD Instinct MI250X/MI250": "MI250X", "AMD Instinct MI250": None,
    "AMD Instinct MI300X": "MI300X", "AMD Instinct MI300X VF": "MI300X", "AMD Instinct MI300A": "MI300A",
    "AMD Instinct MI325X": "MI325X", "AMD Instinct MI355X": "MI355X", "AMD Radeon Graphics": None,
    "NVIDIA A100-SXM4-80GB MIG 3g.40gb": "A100 SXM4 80GB", "NVIDIA GB10": None, "": None,
}


def _gpus() -> list[dict[str, str]]:
    with GPUS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("product", NAMES)
def test_each_product_name_has_its_datasheet_and_no_other(product: str) -> None:
    query = "SELECT name FROM gpu_peaks WHERE regexp_matches(?, pattern, 'i')"
    found = [name for (name,) in catalog().execute(query, [product]).fetchall()]
    assert found == ([NAMES[product]] if NAMES[product] else [])


def test_all_datasheets_are_reached_by_a_product_name_and_name_their_source() -> None:
    rows = _gpus()
    assert {row["name"] for row in rows} == {name for name in NAMES.values() if name}
    assert all(row["source"] for row in rows)


@pytest.mark.parametrize("row", _gpus(), ids=lambda row: row["name"])
def test_datasheet_peaks_agree_with_units_times_clock(row: dict[str, str]) -> None:
    value = {name: float(text) for name, text in row.items() if re.fullmatch(r"[\d.]+", text)}
    checked = 0
    if {"sm_count", "boost_clock_hz"} <= value.keys():
        units = value["sm_count"] * value["fp32_flop_per_clock_per_sm"]
        assert value["fp32_flop_per_s"] == pytest.approx(units * value["boost_clock_hz"], rel=0.01)
        checked += 1
    if {"sm_count", "boost_clock_hz", "tensor16_flop_per_clock_per_sm"} <= value.keys():
        clock = value.get("tensor_clock_hz", value["boost_clock_hz"])
        tensor = value["sm_count"] * value["tensor16_flop_per_clock_per_sm"] * clock
        assert value["fp16_tensor_flop_per_s"] == pytest.approx(tensor, rel=0.013)
        checked += 1
    if "tf32_tensor_flop_per_s" in value:
        assert value["tf32_tensor_flop_per_s"] == pytest.approx(value["fp16_tensor_flop_per_s"] / 2, rel=0.025)
        checked += 1
    assert checked
