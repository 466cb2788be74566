"""The labels of ncu's details page; run with the path of ncu-labels.tsv, this file also rewrites the product's labels.tsv."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest

from nsightlens.readers.ncu import labels
from tests.places import ROOT

REPO = ROOT
SOURCE = REPO / "../shared/formats/ncu-labels.tsv"
PRODUCT = REPO / "nsightlens/readers/ncu/labels.tsv"
COLUMNS = ("section_id", "section_name", "body_item", "label", "metric", "compute_capability")
TENSOR = "SpeedOfLight_HierarchicalTensorRooflineChart"
# The section of ncu 2019 to 2020 was called otherwise; that its duration is the kernel's duration is certain.
OLD = [("SpeedOfLight", "GPU Speed Of Light", "", "Duration", "gpu__time_duration.sum", "")]


def source_rows() -> list[dict[str, str]]:
    with SOURCE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def path_of(printed: str) -> str:
    return re.sub("[ :,]+", "_", printed).lower()


def folded(row: dict[str, str]) -> dict[str, str]:
    """A row of the tensor chart with `*` for its path; the L1 counter differs from compute capability 9.0 on."""
    chart = re.fullmatch(r"(.*) \((.*)\)", row["body_item"])
    if row["section_id"] != TENSOR or not chart:
        return row
    metric = row["metric"].replace(f"tensor_{path_of(chart[2])}.", "tensor_{path}.")
    capability = row["compute_capability"]
    if "_mem_lg" in metric:
        capability = "CC_90.." if "_mem_lgds" in metric else "..CC_89"
    return row | {"body_item": f"{chart[1]} (*)", "metric": metric, "compute_capability": capability}


def distil() -> str:
    """The rows the product keeps, as the text of labels.tsv."""
    rows = [folded(row) for row in source_rows() if row["role"] != "BaseName" and ":" not in row["metric"]]
    keep = dict.fromkeys([*(tuple(row[name] for name in COLUMNS) for row in rows), *OLD])
    assert not any("{path}" not in row[4] and row[0] == TENSOR and "Tensor Operations" in row[3] for row in keep)
    return "".join("\t".join(row) + "\n" for row in [COLUMNS, *keep])


needs_source = pytest.mark.skipif(not SOURCE.exists(), reason="no ../shared")


@needs_source
def test_labels_are_what_the_source_says() -> None:
    assert PRODUCT.read_text(encoding="utf-8") == distil()


@needs_source
def test_every_label_of_the_source_means_its_metric_or_nothing() -> None:
    """A label may only mean what the source has for it; where that is one plain metric, it must mean that."""
    meanings: dict[tuple[str, str, str], set[str]] = {}
    for row in source_rows():
        meanings.setdefault((row["section_name"], row["body_item"], row["label"]), set()).add(row["metric"])
    mapped = 0
    for row in source_rows():
        key = (row["section_name"], row["body_item"], row["label"])
        first = row["compute_capability"].replace("CC_", "").partition("..")[0].partition(" ")[0]
        cc = f"{first[:-1]}.{first[-1]}" if first else "9.0"
        found = labels.raw_name(*key, "", cc)
        is_bar, plain = row["role"] == "BaseName", ":" not in row["metric"]
        l1 = "_mem_lg" in row["metric"] and row["section_id"] == TENSOR
        assert found is None or found in meanings[key] or l1
        if plain and not is_bar and len(meanings[key]) == 1 and not l1:
            assert found == row["metric"], row
            mapped += 1
    assert mapped > 2000


SOL, ROOF = "GPU Speed Of Light Throughput", "GPU Speed Of Light Roofline Chart"
TENSORS = "GPU Speed Of Light Hierarchical Roofline Chart (Tensor Core)"


@pytest.mark.parametrize(
    ("row", "cc", "metric"),
    [
        ((SOL, "", "Duration", "ns"), "9.0", "gpu__time_duration.sum"),
        ((SOL, None, "Duration", "ns"), None, "gpu__time_duration.sum"),
        (("SpeedOfLight", None, "Duration", "ns"), None, "gpu__time_duration.sum"),
        (("GPU Speed Of Light", None, "Duration", "ns"), None, "gpu__time_duration.sum"),
        ((SOL, None, "DRAM Frequency", "hz"), "8.7", None),  # integrated memory has no such counter
        ((SOL, None, "DRAM Frequency", "hz"), "12.1", None),
        ((SOL, None, "DRAM Frequency", "hz"), "12.0", "dram__cycles_elapsed.avg.per_second"),
        ((SOL, None, "DRAM Frequency", "hz"), "n/a", "dram__cycles_elapsed.avg.per_second"),
        ((ROOF, None, "SM Frequency", "hz"), "9.0", None),  # two clocks have this label, and no column tells which
        ((ROOF, "Single Precision Roofline", "SM Frequency", "hz"), "9.0", "sm__cycles_elapsed.avg.per_second"),
        (
            (TENSORS, "DRAM Roofline (Op:hmma Src:fp16 Dst:fp32 Sparsity:off)", "Theoretical Tensor Operations", "inst"),
            "9.0",
            "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained",
        ),
        (
            (TENSORS, "L2 Cache Achieved Value (Src:fp4,fp6,fp8 Dst:fp16)", "Tensor Operations Per Cycle", "inst"),
            "10.0",
            "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp16.sum.per_cycle_elapsed",
        ),
        (
            (TENSORS, "L1/TEX Cache Achieved Value (Src:int8)", "L1/TEX Cache Bandwidth", "byte/s"),
            "7.5",
            "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second",
        ),
        (
            (TENSORS, "L1/TEX Cache Achieved Value (Src:int8)", "L1/TEX Cache Bandwidth", "byte/s"),
            "9.0",
            "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second",
        ),
        ((TENSORS, "L1/TEX Cache Achieved Value (Src:int8)", "L1/TEX Cache Bandwidth", "byte/s"), None, None),
        (("Any Section", None, "Made Up (some__metric.sum)", ""), "9.0", "some__metric.sum"),
        ((SOL, None, "Duration (gpu__time_duration.sum)", "ns"), "9.0", "gpu__time_duration.sum"),
        ((SOL, None, "gpu__time_duration.sum", "ns"), "9.0", "gpu__time_duration.sum"),
        ((labels.COMMAND_LINE, None, "flop_count_sp.sum", ""), "9.0", "flop_count_sp.sum"),
        ((labels.COMMAND_LINE, None, "two words", ""), "9.0", None),
        (("Any Section", None, "Duration", "ns"), "9.0", None),
        ((SOL, None, "Duration", "%"), "9.0", None),
        ((SOL, None, "Memory Throughput", "byte/s"), "9.0", None),
        ((SOL, None, "SM Frequency", "cycle"), "9.0", None),
        ((SOL, None, "Elapsed Cycles", "byte"), "9.0", None),
    ],
)
def test_meaning(row: tuple[str, str | None, str, str], cc: str | None, metric: str | None) -> None:
    assert labels.raw_name(*row, cc) == metric


@pytest.mark.parametrize(
    ("metric", "unit", "contradicts"),
    [
        ("dram__bytes.sum.per_second", "byte/s", False),
        ("dram__bytes.sum.per_second", "inst/s", True),
        ("a__b.pct", "%", False),
        ("a__b.pct", "inst", True),
        ("a__b.pct", "", False),
        ("a__b.sum", "%", True),
        ("lts__x_cycles.sum.per_second", "hz", False),
        ("lts__x_cycles.sum.per_second", "byte/s", False),
        ("a__b.sum.per_second", "cycle", True),
        ("gpu__time_duration.sum", "hz", True),
        ("a__b.ratio", "hz", True),
        ("a__b.ratio", "inst/cycle", False),
        ("dram__bytes.sum", "byte", False),
        ("dram__bytes.sum", "cycle", True),
        ("derived__a_pct", "%", False),
        ("launch__shared_mem_per_block_static", "byte/block", False),
    ],
)
def test_contradictions(metric: str, unit: str, contradicts: bool) -> None:
    assert labels.contradicts(metric, unit) == contradicts


if __name__ == "__main__":
    SOURCE = Path(sys.argv[1])
    PRODUCT.write_text(distil(), encoding="utf-8")
