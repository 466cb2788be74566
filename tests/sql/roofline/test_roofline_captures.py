"""Rooflines of real captures, from the file to the row: against what NVIDIA's chart says, walked out of the CSV here."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from tests.places import ROOT

REPOSITORY = ROOT
SIMULATED = REPOSITORY / "fixtures" / "simulated_resnet18_ddp"
SHARED = REPOSITORY / "../shared/data/ncu"
CHARTS = sorted(SHARED.glob("CodeGandee*_ncu.section_SpeedOfLight_RooflineChart.csv"))
GIGA = 1e9
UNITS = {"Gbyte/s": 1e9, "Mbyte/s": 1e6, "Ghz": 1e9, "Mhz": 1e6, "us": 1e3, "ms": 1e6, "ns": 1.0}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Rows of the view for each real capture, each in a run of its own, named after its file."""
    if not CHARTS:
        pytest.skip("the real captures are not here")
    folder = tmp_path_factory.mktemp("roofline")
    runs = set()
    for file in SHARED.glob("*.csv"):
        run = file.name.partition("_ncu.")[0] if file.name.startswith("CodeGandee") else file.stem
        if file.name.startswith("Giotyp") and "multi_kernels" in file.name:
            run = "Giotyp"
        if "PAIR" not in run:
            runs.add(folder / run)
            (folder / run).mkdir(exist_ok=True)
            shutil.copy(file, folder / run)
    with nl.ingest(sorted(runs), store=folder / "store") as store:
        found: list[dict[str, Any]] = store.view("roofline").to_pylist()
    return found


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _cells(path: Path) -> dict[tuple[str, str], float]:
    """Return {(body item, label): value} of a details page, scaled to base units."""
    with path.open(newline="") as file:
        head, *lines = csv.reader(file)
    cells = {}
    for line in lines:
        row = dict(zip(head, line, strict=False))
        if row.get("Metric Value") not in ("", "n/a", None):
            scale = UNITS.get(row["Metric Unit"], 1.0)
            cells[row.get("Body Item Label", ""), row["Metric Name"]] = _number(row["Metric Value"]) * scale
    return cells


def _row(rows: list[dict[str, Any]], run: str, precision: str, level: str = "dram") -> dict[str, Any]:
    (found,) = [r for r in rows if r["run"].endswith(run) and r["precision"] == precision and r["level"] == level]
    return found


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.name[26:43])
@pytest.mark.parametrize(("precision", "item", "letter"), [("fp32", "Single", "F"), ("fp64", "Double", "D")])
def test_chart_values_are_those_of_nvidias_chart(
    rows: list[dict[str, Any]], chart: Path, precision: str, item: str, letter: str,
) -> None:
    cells = _cells(chart)
    achieved, roof = f"{item} Precision Achieved Value", f"{item} Precision Roofline"
    per_cycle = cells[achieved, f"Predicated-On {letter}FMA Operations Per Cycle"] + sum(
        cells[achieved, f"Predicated-On {letter}{op} Thread Instructions Executed Per Cycle"] for op in ("ADD", "MUL"))
    row = _row(rows, chart.name.partition("_ncu.")[0], precision)
    assert row["ncu_chart_flop_per_s"] == pytest.approx(per_cycle * cells[achieved, "SM Frequency"])
    assert row["ncu_chart_bytes_per_s"] == pytest.approx(cells[achieved, "DRAM Bandwidth"])
    assert row["peak_flop_per_s"] == pytest.approx(
        cells[roof, f"Theoretical Predicated-On {letter}FMA Operations"] * cells[roof, "SM Frequency"])
    assert row["peak_bytes_per_s"] == pytest.approx(
        cells[roof, "Theoretical DRAM Bytes Accessible"] * cells[roof, "DRAM Frequency"])


@pytest.fixture(scope="module")
def chart_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Rows of the view for each real capture of `--section SpeedOfLight_RooflineChart` alone, in a run named after its file."""
    if not CHARTS:
        pytest.skip("the real captures are not here")
    folder = tmp_path_factory.mktemp("charts")
    for file in CHARTS:
        (folder / file.name.partition("_ncu.")[0]).mkdir()
        shutil.copy(file, folder / file.name.partition("_ncu.")[0])
    with nl.ingest(sorted(folder.iterdir()), store=folder / "store") as store:
        found: list[dict[str, Any]] = store.view("roofline", only_level="dram").to_pylist()
    return found


def test_the_section_made_for_rooflines_alone_places_its_kernel(chart_rows: list[dict[str, Any]]) -> None:
    """16 of 23 real files were refused for want of a duration, which rates do not need."""
    placed = 0
    for chart in CHARTS:
        cells = _cells(chart)
        main = _row(chart_rows, chart.name.partition("_ncu.")[0], "fp32")
        placed += main["is_main"] and main["plottable"]
        assert main["is_main"] is (main["warning"] is None or "may run" in main["warning"]), "tensor kernels by their names"
        achieved = "Single Precision Achieved Value"
        flop = cells[achieved, "SM Frequency"] * (cells[achieved, "Predicated-On FFMA Operations Per Cycle"] + sum(
            cells[achieved, f"Predicated-On F{op} Thread Instructions Executed Per Cycle"] for op in ("ADD", "MUL")))
        moved = cells[achieved, "DRAM Bandwidth"]
        assert main["duration_ns"] is None
        assert main["achieved_flop_per_s"] == pytest.approx(flop) and main["achieved_bytes_per_s"] == pytest.approx(moved)
        assert main["plottable"] is (flop > 0)
        assert flop == 0 or main["arithmetic_intensity"] == pytest.approx(flop / moved)
        roof = max(flop / main["peak_flop_per_s"], moved / main["peak_bytes_per_s"])
        assert main["roof_pct"] == pytest.approx(100 * roof)
    assert placed >= 10


def test_an_idle_tensor_pipe_on_the_details_page_overrules_the_name(rows: list[dict[str, Any]]) -> None:
    """A CUTLASS kernel with VoltaTensorOp in its name, on a GPU that runs it on CUDA cores: its breakdown says so."""
    found = [row for row in rows if "dphpc" in row["run"] and row["level"] == "dram" and row["is_main"]]
    assert [(row["precision"], row["launches"]) for row in found] == [("fp32", 4)]
    assert found[0]["plottable"] and found[0]["warning"] is None
    slowest, fastest = found[0]["min_achieved_flop_per_s"], found[0]["max_achieved_flop_per_s"]
    assert slowest == pytest.approx(2.229e12, abs=0.0005e12) and found[0]["min_achieved_bytes_per_s"] == 98.06e9
    assert slowest < found[0]["achieved_flop_per_s"] < fastest
    assert found[0]["peak_flop_per_s"] == pytest.approx(22.118e12, abs=0.0005e12)
    assert found[0]["peak_bytes_per_s"] == pytest.approx(441.28e9, abs=0.005e9)


def test_fp32_that_a_details_page_does_not_hold_is_unknown(rows: list[dict[str, Any]]) -> None:
    """Its tensor counters are 0, which says nothing of the CUDA cores."""
    row = _row(rows, "v1_kernel_0002", "fp32")
    assert row["is_main"] and row["work_flop"] is None and "fp32 add, mul, fma not counted" in row["not_plottable_reason"]


def test_golden_values(rows: list[dict[str, Any]]) -> None:
    gemv = _row(rows, "v2_kernel_0001", "fp32")
    assert gemv["plottable"]
    assert gemv["ncu_chart_flop_per_s"] / GIGA == pytest.approx(344.2, abs=0.05)
    assert gemv["ncu_chart_bytes_per_s"] / GIGA == pytest.approx(345.14, abs=0.005)
    assert gemv["ncu_chart_arithmetic_intensity"] == pytest.approx(0.997, abs=0.0005)
    assert gemv["ncu_chart_clock_hz"] == 2.15e9
    assert gemv["peak_flop_per_s"] / 1e12 == pytest.approx(93.57, abs=0.005)
    assert gemv["peak_bytes_per_s"] / GIGA == pytest.approx(1756, abs=0.5)
    assert gemv["achieved_bytes_per_s"] / GIGA == pytest.approx(2.33e6 / 6.75e-6 / GIGA)
    gemm = _row(rows, "v2_kernel_0003", "tensor_bf16_dst_fp32")
    assert gemm["is_main"] and gemm["plottable"]
    assert gemm["achieved_flop_per_s"] / 1e12 == pytest.approx(54.4, abs=0.05)


@pytest.mark.parametrize(("kernel", "operations"), [
    ("0001", 2 * 896 * 1280 + 32 * 896),  # a matrix of 896 x 1280 times a vector: fma; sums within the 32 threads of a row
    ("0003", 3 * 152 * 4 * 32 * 32),  # alpha * sum + beta * c, for every element of the tiles of 32 x 32
    ("0010", 2 * 14400 * 512),  # bfloat16 addition: one fma for each of 512 elements per block
    ("0011", 2283 * 512),  # multiplication
    ("0014", 2 * 1142 * 1024),
    ("0015", 4565 * 256),
])
def test_work_is_what_the_kernel_must_do(rows: list[dict[str, Any]], kernel: str, operations: int) -> None:
    """ncu printed rates of 3 or 4 digits and a clock of 3: the elements of the launch come out within those digits."""
    assert _row(rows, f"v2_kernel_{kernel}", "fp32")["work_flop"] == pytest.approx(operations, rel=0.005)


def test_kernels_without_floating_point_work_are_not_placed(rows: list[dict[str, Any]]) -> None:
    copy = [row for row in rows if row["run"].endswith("v2_kernel_0008") and row["level"] == "dram"]
    assert len([row for row in copy if row["is_main"]]) == 1
    assert all("0 " in row["not_plottable_reason"] for row in copy)


def test_flash_attention_on_b200_is_not_placed(rows: list[dict[str, Any]]) -> None:
    """The tensor pipe was busy; the report has no operation counts."""
    flash = [row for row in rows if "sdpa_flash" in row["run"] and "flash_fwd" in row["name"] and row["is_main"]]
    assert flash
    assert {row["precision"] for row in flash} == {"tensor"}
    assert all(not row["plottable"] and "--set roofline" in row["not_plottable_reason"] for row in flash)


def test_print_summary_joins_traffic_and_time_of_two_reports(rows: list[dict[str, Any]]) -> None:
    (row,) = [row for row in rows if row["run"] == "Giotyp" and row["name"] == "kernel_A" and row["level"] == "dram"]
    assert row["summarised"] and row["duration_ns"] == 76953
    assert row["traffic_bytes"] == pytest.approx(32 * (806_261.76 + 15_106.60))


def test_every_row_is_placed_or_says_why(rows: list[dict[str, Any]]) -> None:
    assert len({row["run"] for row in rows}) > 20
    for row in rows:
        assert row["plottable"] is (row["not_plottable_reason"] is None)
        assert not row["plottable"] or (row["achieved_flop_per_s"] > 0 and row["arithmetic_intensity"] > 0)
    main = [(row["configuration_id"], row["level"]) for row in rows if row["is_main"]]
    assert len(main) == len(set(main)) == len({(row["configuration_id"], row["level"]) for row in rows})


def test_the_gemm_of_the_simulated_job(bundled_store: Path) -> None:
    with (SIMULATED / "truth" / "ncu_launches.tsv").open(newline="") as file:
        truth = {int(t["ncu_id"]): t for t in csv.DictReader(file, delimiter="\t") if t["kernel"] == "fc_forward"}
    with nl.open(bundled_store) as store:
        rows = [r for r in store.view("roofline", kernel="128x256_ldg8_f2f_stages_64x3_tn").to_pylist()
                if r["level"] == "dram" and r["plottable"] and str(r["precision"]).startswith("tensor")]
    assert len(rows) == 1
    flops = {float(t["tensor_flops"]) for t in truth.values()}
    assert flops == {2.0 * 512 * 1000 * 512} and rows[0]["work_flop"] in flops
    rates = sorted(float(t["tensor_flops_per_s"]) for t in truth.values())
    assert rates[0] * (1 - 1e-6) <= rows[0]["achieved_flop_per_s"] <= rates[-1] * (1 + 1e-6)


def test_simulated_job_against_its_truth(bundled_store: Path) -> None:
    """Every launch that is alone in its configuration, at all levels, against what its generator wrote down."""
    with (SIMULATED / "truth" / "ncu_launches.tsv").open(newline="") as file:
        truth = {int(row["duration_ns"]): row for row in csv.DictReader(file, delimiter="\t")}
    with nl.open(bundled_store) as store:
        found = [row for row in store.view("roofline").to_pylist() if row["launches"] == 1 and row["is_main"]]
    assert len(found) == 3 * len({row["configuration_id"] for row in found}) > 20
    for row in found:
        expected = truth[row["duration_ns"]]
        unit = "tensor" if row["precision"].startswith("tensor") else "fp32"
        level = row["level"]
        assert row["plottable"] and "simulated" in row["gpu"]
        for column, key in {
            "work_flop": f"{unit}_flops", "achieved_flop_per_s": f"{unit}_flops_per_s", "traffic_bytes": f"{level}_bytes",
            "achieved_bytes_per_s": f"{level}_bytes_per_s", "arithmetic_intensity": f"{unit}_flops_per_{level}_byte",
            "ncu_chart_flop_per_s": f"chart_{unit}_flops_per_s", "peak_flop_per_s": f"{unit}_roof_flops_per_s",
            "peak_bytes_per_s": f"{level}_roof_bytes_per_s",
        }.items():
            assert row[column] == pytest.approx(float(expected[key]), rel=1e-4), (row["name"], level, column)
