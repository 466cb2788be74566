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
# So are its breakdowns: real reports of 2020 hold the same lists of metrics under these names.
_PARTS = "{UNIT}: {COMPOUND_NAME}"
OLD = [("SpeedOfLight", "GPU Speed Of Light", "", "Duration", "gpu__time_duration.sum", ""),
       ("SpeedOfLight", "GPU Speed Of Light", "SOL SM Breakdown", _PARTS,
        "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed", ""),
       ("SpeedOfLight", "GPU Speed Of Light", "SOL Memory Breakdown", _PARTS,
        "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "")]


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


def is_kept(metric: str) -> bool:
    """Counters, and the parts of a throughput."""
    return ":" not in metric or metric.startswith("breakdown:")


def distil() -> str:
    """The rows the product keeps, as the text of labels.tsv."""
    rows = [folded(row) for row in source_rows() if row["role"] != "BaseName" and is_kept(row["metric"])]
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
        if row["label"] == _PARTS:
            continue  # no label, but the form of one: see test_parts_of_a_throughput
        is_bar, plain = row["role"] == "BaseName", ":" not in row["metric"]
        l1 = "_mem_lg" in row["metric"] and row["section_id"] == TENSOR
        assert found is None or found in meanings[key] or l1
        if plain and not is_bar and len(meanings[key]) == 1 and not l1:
            assert found == row["metric"], row
            mapped += 1
    assert mapped > 2000


REPORTS = sorted((REPO / "../shared/data/ncu/rep").glob("*.ncu-rep"))
DPHPC = REPO / "../shared/data/ncu/lukas-ruettgers__dphpc-gemm__ncu_benchmark_output.csv"
COMPUTE, MEMORY = "Compute Throughput Breakdown", "Memory Throughput Breakdown"


@pytest.mark.skipif(not REPORTS or not DPHPC.exists(), reason="the real captures are not here")
def test_parts_of_a_throughput_are_metrics_that_real_reports_list() -> None:
    """What is printed of one capture against what other reports list; some parts exist on the GPU of the first only."""
    listed: set[bytes] = set()
    for report in REPORTS:
        listed.update(re.findall(rb"[a-z][a-z0-9]*__[a-z0-9_]+\.avg\.pct_of_peak_sustained_elapsed", report.read_bytes()))
    with DPHPC.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(line for line in lines if line.startswith('"'))
                if row["Body Item Label"] in (COMPUTE, MEMORY)]
    named = {row["Metric Name"]: labels.raw_name(row["Section Name"], row["Body Item Label"], row["Metric Name"], "%", row["CC"])
             for row in rows}
    assert len(named) == 54 and None not in named.values()
    new = {label for label, metric in named.items() if str(metric).encode() not in listed}
    assert {label for label in new if not label.startswith("SYSLTS: ")} == {
        "SM: Pipe Aluheavy Cycles Active", "L2: D Decomp Input Sectors"}


SOL, ROOF = "GPU Speed Of Light Throughput", "GPU Speed Of Light Roofline Chart"
TENSORS = "GPU Speed Of Light Hierarchical Roofline Chart (Tensor Core)"


@pytest.mark.parametrize(
    ("row", "cc", "metric"),
    [
        ((SOL, "", "Duration", "ns"), "9.0", "gpu__time_duration.sum"),
        ((SOL, COMPUTE, "SM: Pipe Tensor Cycles Active", "%"), "12.0",
         "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"),
        ((SOL, COMPUTE, "IDC: Request Cycles Active", "%"), "7.0",
         "idc__request_cycles_active.avg.pct_of_peak_sustained_elapsed"),
        ((SOL, MEMORY, "L1: M Xbar2l1tex Read Sectors", "%"), "8.0",
         "l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed"),
        ((SOL, MEMORY, "L2: T Sectors", "%"), "8.0", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"),
        ((SOL, MEMORY, "DRAM: Dram Sectors", "%"), "8.0", "fbpa__dram_sectors.avg.pct_of_peak_sustained_elapsed"),
        ((SOL, MEMORY, "DRAM: Cycles Active", "%"), "8.0", "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"),
        (("GPU Speed Of Light", "SOL SM Breakdown", "SM: Issue Active", "%"), "7.0",
         "sm__issue_active.avg.pct_of_peak_sustained_elapsed"),
        ((SOL, COMPUTE, "SM: Pipe Tensor Cycles Active", "ns"), "12.0", None),  # the unit contradicts
        ((SOL, COMPUTE, "Tensor", "%"), "12.0", None),
        ((SOL, "", "SM: Pipe Tensor Cycles Active", "%"), "12.0", None),  # not in a breakdown
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
