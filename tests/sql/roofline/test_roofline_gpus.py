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
    for path, times, base in _rates(row):
        if path in value and base in value:
            assert value[path] == pytest.approx(times * value[base], rel=0.025), path
            checked += 1
    assert checked >= 2


def _rates(row: dict[str, str]) -> list[tuple[str, float, str]]:
    """Return (peak, how many times the other, the other): what an SM does in a clock, from the architectures' white papers."""
    name, architecture = row["name"], row["architecture"]
    amd, early = architecture.startswith("CDNA"), architecture in ("CDNA", "CDNA 2")
    halves = architecture in ("Volta", "Hopper", "CDNA", "CDNA 3", "CDNA 4") or name[:4] in ("A100", "A30", "B200", "GB20")
    narrow = name.startswith("RTX ") and name != "RTX A6000"  # GeForce: half of the rate where sums are in FP32
    fp64 = 1 if architecture == "CDNA 2" else 0.5 if halves else 1 / 32 if architecture == "Turing" else 1 / 64
    tensor64 = 1 if architecture in ("Blackwell", "CDNA 4") else 2
    whole = 1 if early else 2  # int8 against half precision
    packed = 4 if name.startswith("A100") else 2
    return [
        ("fp64_flop_per_s", fp64, "fp32_flop_per_s"), ("fp64_tensor_flop_per_s", tensor64, "fp64_flop_per_s"),
        ("fp16_flop_per_s", packed if packed == 4 or architecture in ("Volta", "Turing", "Hopper") else 1, "fp32_flop_per_s"),
        ("tf32_tensor_flop_per_s", 0.5, "fp16_tensor_flop_per_s"),
        ("bf16_tensor_flop_per_s", 0.5 if name == "MI100" else 1, "fp16_tensor_flop_per_s"),
        ("fp16_tensor_acc16_flop_per_s", 2 if narrow else 1, "fp16_tensor_flop_per_s"),
        ("fp8_tensor_flop_per_s", 2, "fp16_tensor_flop_per_s"),
        ("fp8_tensor_acc16_flop_per_s", 2 if narrow else 1, "fp8_tensor_flop_per_s"),
        ("int8_tensor_flop_per_s", whole, "fp16_tensor_flop_per_s" if amd or not narrow else "fp16_tensor_acc16_flop_per_s"),
        ("int4_tensor_flop_per_s", 1 if amd else 2, "int8_tensor_flop_per_s"),
        ("fp4_tensor_flop_per_s", 2, "fp8_tensor_acc16_flop_per_s" if narrow else "fp8_tensor_flop_per_s"),
    ]


@pytest.mark.parametrize("row", _gpus(), ids=lambda row: row["name"])
def test_every_peak_but_memory_is_held_by_the_arithmetic(row: dict[str, str]) -> None:
    peaks = {name for name, text in row.items() if name.endswith("_flop_per_s") and text}
    assert peaks <= {path for path, _, _ in _rates(row)} | {"fp32_flop_per_s", "fp16_tensor_flop_per_s"}


_LINKS = {"A100 SXM4": 12 * 25, "H100 SXM5": 18 * 25, "H200 SXM": 18 * 25, "B200": 18 * 50, "MI300X": 7 * 64, "MI325X": 7 * 64}
"""GB/s per direction: links of a GPU times the rate of one. Where a bridge or the host decides, a datasheet does not know."""
_PCIE = {10**6 * round(16 * rate / 8 * 128 / 130 * 1000) for rate in (8, 16, 32)}
"""16 lanes of 8, 16 and 32 GT/s, of which 128 of 130 bits are data."""


@pytest.mark.parametrize("row", _gpus(), ids=lambda row: row["name"])
def test_links_are_lanes_times_their_rate_or_those_of_pcie(row: dict[str, str]) -> None:
    link, pcie = (int(row[name] or 0) for name in ("link_bytes_per_s", "pcie_bytes_per_s"))
    assert pcie in _PCIE | {0}
    known = next((gb for name, gb in _LINKS.items() if row["name"].startswith(name)), None)
    assert link in ((10**9 * known,) if known else (0, pcie))
    assert bool(link) == bool(row["link_ranks"])
