"""The true roofline: ncu's counters over undisturbed times, with launches whose numbers can be followed by hand."""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import nsightlens as nl
from nsightlens import analyses
from nsightlens.errors import UsageError
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.catalogs import asking, catalog
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
CORE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
COUNTERS = {
    CORE.format("fadd"): 1000.0, CORE.format("fmul"): 0.0, CORE.format("ffma"): 2000.0, "dram__bytes.sum": 2500.0,
    "dram__bytes.sum.peak_sustained": 1000.0, "dram__cycles_elapsed.avg.per_second": 1e9,
    "sm__cycles_elapsed.avg.per_second": 1e9, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 100.0,
}  # 5000 operations, 2500 bytes; roofs 200 GFLOP/s and 1 TB/s at 1 GHz


def kernel(number: int, tool: str, duration_ns: int | None, **more: Any) -> dict[str, Any]:
    row = {
        "kernel_id": number, "run": "base", "tool": tool, "profile_id": tool, "process_id": f"{tool}{more.get('rank', 0)}",
        "device": 0, "rank": 0, "gpu": "A100", "name": "k<1>", "short_name": "k", "kernel_key": "k<1>", "family": "other",
        "grid_x": 4, "grid_y": 1, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1, "duration_ns": duration_ns,
        "metrics": list(COUNTERS.items()) if tool == "ncu" else None,
    }
    return row | more


def pair(one: int, other: int) -> dict[str, Any]:
    return {"run": "base", "tool": "nsys", "kernel_id": one, "other_tool": "ncu", "other_kernel_id": other, "grade": "launch"}


def rated(hz: float, tool: str = "nsys", name: str = "A100") -> dict[str, Any]:
    return {"device_id": "d", "run": "base", "tool": tool, "profile_id": tool, "process_id": f"{tool}0", "device": 0,
            "name": name, "core_clock_hz": hz}


def ask(kernels: list[dict[str, Any]], level: str = "dram", matches: Sequence[dict[str, Any]] = (),
        devices: Sequence[dict[str, Any]] = (), profiles: Sequence[dict[str, Any]] = (),
        samples: Sequence[dict[str, Any]] = (), **parameters: object) -> list[dict[str, Any]]:
    connection = catalog(kernels=kernels, matches=list(matches), devices=list(devices), profiles=list(profiles),
                         device_samples=list(samples))
    rows = analyses.run(registry.known()["true_roofline"], parameters, asking(connection)).to_pylist()
    return [row for row in rows if row["level"] == level]


def test_work_and_bytes_of_ncu_over_the_median_of_nsys() -> None:
    times = [100, 110, 120, 130, 140]
    (row,) = ask([kernel(1, "ncu", 500), *(kernel(10 + i, "nsys", ns) for i, ns in enumerate(times)), kernel(20, "kineto", 90)])
    assert row["plottable"] and row["not_plottable_reason"] is None and row["warning"] is None
    assert [row[f"{name}_ns"] for name in ("min_duration", "p5_duration", "duration", "p95_duration", "max_duration")] == [
        100, 102, 120, 138, 140], "percentiles lie between launches: 5 % of the way from the first to the last"
    assert (row["time_tool"], row["launches"], row["time_grade"], row["time_ranks"], row["time_launches"]) == (
        "nsys", 5, "configuration", "same rank", "all")
    assert (row["work_flop"], row["traffic_bytes"], row["arithmetic_intensity"]) == (5000, 2500, 2.0)
    assert row["achieved_flop_per_s"] == pytest.approx(5000 / 120e-9)
    assert row["achieved_bytes_per_s"] == pytest.approx(2500 / 120e-9)
    assert (row["ncu_launches"], row["ncu_duration_ns"]) == (1, 500) and row["ncu_achieved_flop_per_s"] == pytest.approx(10e9)
    (kineto,) = ask([kernel(1, "ncu", 500), kernel(10, "nsys", 100), kernel(20, "kineto", 90)], time="kineto")
    assert (kineto["time_tool"], kineto["launches"], kineto["duration_ns"]) == ("kineto", 1, 90)


def test_ncu_need_not_have_timed_what_it_counted() -> None:
    (row,) = ask([kernel(1, "ncu", None), kernel(2, "nsys", 100)])
    assert row["plottable"] and row["achieved_flop_per_s"] == pytest.approx(50e9) and row["ncu_achieved_flop_per_s"] is None


def test_the_rank_that_ncu_measured_comes_first_then_all_ranks() -> None:
    here, there = kernel(10, "nsys", 100), kernel(11, "nsys", 200, rank=1)
    (row,) = ask([kernel(1, "ncu", 500), here, there])
    assert (row["rank"], row["counters_rank"], row["duration_ns"]) == (0, 0, 100)
    for measured in (2, None):  # a rank without a timeline, an unknown one
        (row,) = ask([kernel(1, "ncu", 500, rank=measured), here, kernel(11, "nsys", 104, rank=1)])
        assert (row["rank"], row["counters_rank"], row["time_ranks"], row["launches"], row["duration_ns"]) == (
            None, measured, "all ranks", 2, 102)


def test_each_rank_with_the_counters_of_another_says_so() -> None:
    timeline = [kernel(10 + rank, "nsys", 100 + rank, rank=rank) for rank in range(4)]
    rows = ask([kernel(1, "ncu", 500), kernel(2, "ncu", 500, rank=2), *timeline], ranks="each")
    assert [(row["rank"], row["counters_rank"], row["time_ranks"], row["duration_ns"], row["warning"]) for row in rows] == [
        (0, 0, "same rank", 100, None), (1, 0, "another rank", 101, "counters of rank 0"), (2, 2, "same rank", 102, None),
        (3, 0, "another rank", 103, "counters of rank 0")]
    (alone,) = ask([kernel(1, "ncu", 500), kernel(10, "nsys", 100, rank=None)], ranks="each")
    assert (alone["rank"], alone["time_ranks"]) == (None, "all ranks")


@pytest.mark.parametrize(("other", "grade", "words"), [
    ({"grid_x": 9}, "key", "with another grid or block (grade key, 1 launches): taken if grade key is asked for"),
    ({"kernel_key": "k<2>", "name": "k<2>"}, "short_name", "in other variants (grade short_name, 1 launches)"),
])
def test_worse_grades_are_refused_unless_asked(other: dict[str, Any], grade: str, words: str) -> None:
    kernels = [kernel(1, "ncu", 500), kernel(2, "nsys", 100, **other)]
    (refused,) = ask(kernels)
    assert not refused["plottable"] and words in refused["not_plottable_reason"]
    assert refused["time_grade"] == grade and refused["duration_ns"] is None and refused["achieved_flop_per_s"] is None
    (taken,) = ask(kernels, grade=grade)
    assert taken["plottable"] and (taken["time_grade"], taken["duration_ns"]) == (grade, 100)
    assert taken["warning"] in ("timed with another grid or block", "another variant was timed")


@pytest.mark.parametrize(("kernels", "reason"), [
    ([], "neither nsys nor Kineto recorded kernels of this run"),
    ([kernel(2, "nsys", 100, name="z", short_name="z", kernel_key="z")], "nsys recorded no kernel of this name"),
    ([kernel(2, "nsys", None)], "nsys recorded no kernel of this name"),
    ([kernel(2, "kineto", 100)], "nsys recorded no kernels of this run"),
])
def test_without_a_time_nothing_is_placed(kernels: list[dict[str, Any]], reason: str) -> None:
    asked: dict[str, Any] = {"time": "nsys"} if reason.endswith("kernels of this run") and kernels else {}
    (row,) = ask([kernel(1, "ncu", 500), *kernels], **asked)
    assert (row["plottable"], row["not_plottable_reason"], row["duration_ns"]) == (False, reason, None)


def test_that_the_other_tool_lacks_the_kernel_comes_before_what_ncu_should_have_counted() -> None:
    """Another collection by ncu would not help."""
    (row,) = ask([kernel(1, "ncu", 500, metrics=[("gpu__time_duration.sum", 500.0)]),
                  kernel(2, "nsys", 100, name="z", short_name="z", kernel_key="z")])
    assert row["not_plottable_reason"] == "nsys recorded no kernel of this name"


UNEVEN = [kernel(1, "ncu", 500), *(kernel(10 + i, "nsys", ns) for i, ns in enumerate((100, 100, 300, 300)))]


def test_launches_that_may_differ_in_work_have_no_common_time() -> None:
    (row,) = ask(UNEVEN)
    assert not row["plottable"] and row["not_plottable_reason"].startswith(
        "its launches in nsys take 0.1 to 0.3 µs (5th to 95th percentile): they may differ in work")
    assert (row["launches"], row["duration_ns"], row["achieved_flop_per_s"]) == (4, 200, None)
    (every,) = ask(UNEVEN, launches="all")
    assert every["plottable"] and every["duration_ns"] == 200 and "they may differ in work" in every["warning"]


def test_pairs_of_grade_launch_tell_which_launch_ncu_counted() -> None:
    (row,) = ask(UNEVEN, matches=[pair(12, 1)])
    assert row["plottable"] and row["warning"] is None
    assert (row["launches"], row["duration_ns"], row["time_grade"], row["time_launches"]) == (1, 300, "launch", "matched")
    even = [kernel(1, "ncu", 500), kernel(2, "ncu", 500), *(kernel(10 + i, "nsys", 100 + 10 * i) for i in range(3))]
    (half,) = ask(even, matches=[pair(10, 1)])
    assert (half["time_grade"], half["duration_ns"]) == ("configuration", 110), "of one counted launch the pair is not known"
    (whole,) = ask(even, matches=[pair(10, 1), pair(11, 2)])
    assert (whole["time_grade"], whole["time_launches"], whole["duration_ns"]) == ("launch", "all", 110)
    (matched,) = ask(even, matches=[pair(10, 1), pair(11, 2)], launches="matched")
    assert (matched["time_grade"], matched["launches"], matched["duration_ns"]) == ("launch", 2, 105)
    (unknown,) = ask(even, launches="matched")
    assert unknown["not_plottable_reason"] == "which of the launches in nsys ncu counted is not known"
    assert unknown["duration_ns"] is None


def test_the_compute_roof_stands_at_the_rated_clock_and_that_of_dram_stays() -> None:
    kernels = [kernel(1, "ncu", 500, clock_control="base"), kernel(2, "nsys", 1000)]
    (row,) = ask(kernels, devices=[rated(1.5e9)])
    assert (row["peak_flop_per_s"], row["peak_bytes_per_s"]) == (pytest.approx(300e9), 1e12)
    assert (row["roof_clock_hz"], row["ncu_clock_hz"]) == (1.5e9, 1e9)
    assert row["roof_clock_source"] == "rated clock, as stated by nsys"
    assert row["roof_pct"] == pytest.approx(100 * 5e9 / 300e9), "5000 operations in 1 µs"


def test_else_at_the_highest_clock_that_a_sidecar_tells() -> None:
    kernels = [kernel(1, "ncu", 500), kernel(2, "nsys", 1000)]
    profile = {"run": "base", "tool": "nsys", "profile_id": "nsys", "settings": [("gpu max_sm_clock_mhz", "1980")]}
    (row,) = ask(kernels, devices=[rated(0.0)], profiles=[profile])
    assert (row["roof_clock_source"], row["roof_clock_hz"]) == ("highest clock, as stated by the sidecar of nsys", 1.98e9)
    (row,) = ask(kernels, devices=[rated(1.5e9)], profiles=[profile])
    assert row["roof_clock_hz"] == 1.5e9
    two = profile | {"settings": [("gpu max_sm_clock_mhz", "1410, 1980")]}
    assert ask(kernels, devices=[rated(0.0)], profiles=[two])[0]["roof_clock_source"] == "clock under ncu"


@pytest.mark.parametrize(("devices", "control", "said"), [
    ([], "base", "locked clock of ncu"), ([], "none", "clock under ncu, not locked"), ([], None, "clock under ncu"),
    ([rated(0.9e9)], "base", "locked clock of ncu"),                    # slower than what ncu saw
    ([rated(1.5e9), rated(1.6e9, "kineto")], "base", "locked clock of ncu"),   # two GPUs of one name that differ
    ([rated(1.5e9, name="H100")], "base", "locked clock of ncu"),       # of another GPU
])
def test_otherwise_the_roofs_are_those_of_ncu_and_marked(devices: list[dict[str, Any]], control: str | None, said: str) -> None:
    (row,) = ask([kernel(1, "ncu", 500, clock_control=control), kernel(2, "nsys", 1000)], devices=devices)
    assert (row["roof_clock_source"], row["roof_clock_hz"], row["peak_flop_per_s"]) == (said, 1e9, 200e9)


def sampled(at_ns: int, hz: float, metric: str = "GPC Clock Frequency") -> dict[str, Any]:
    return {"run": "base", "tool": "nsys", "profile_id": "nsys", "device_id": "d", "at_ns": at_ns, "metric": metric, "value": hz,
            "unit": "hz"}


def launched(number: int, start_ns: int, **more: Any) -> dict[str, Any]:
    return kernel(number, "nsys", 1000, device_id="d", start_ns=start_ns, **more)


SAMPLES = [sampled(5000, 1.8e9), sampled(6000, 1.2e9), sampled(7000, 1.4e9)]
LAUNCHES = [kernel(1, "ncu", 500, clock_control="base"), launched(2, 4000), launched(3, 5000), launched(4, 6000)]


def test_a_sampled_clock_comes_before_the_rated_one() -> None:
    (row,) = ask(LAUNCHES, devices=[rated(1.5e9)], samples=SAMPLES)
    assert row["roof_clock_source"] == "sampled GPC clock of these launches, by nsys"
    assert [row[f"{which}roof_clock_hz"] for which in ("", "min_", "max_")] == [1.4e9, 1.2e9, 1.8e9]
    assert row["sampled_launches"] == 3 and row["ncu_clock_hz"] == 1e9
    assert (row["peak_flop_per_s"], row["peak_bytes_per_s"]) == (pytest.approx(280e9), 1e12)
    assert row["roof_pct"] == pytest.approx(100 * 5e9 / 280e9)


def test_a_sampled_clock_may_be_below_that_of_ncu() -> None:
    (row,) = ask(LAUNCHES[:2], devices=[rated(1.5e9)], samples=[sampled(5000, 0.8e9)])
    assert (row["roof_clock_hz"], row["peak_flop_per_s"]) == (0.8e9, pytest.approx(160e9))


def test_the_clock_of_the_gpc_is_compared_with_that_of_the_gpc() -> None:
    """Under ncu the GPC ran at 1.25 times the clock of the SM: so it did when 1.5 GHz were sampled of it."""
    both = COUNTERS | {"gpc__cycles_elapsed.avg.per_second": 1.25e9}
    counted = [kernel(1, "ncu", 500, metrics=list(both.items())), launched(2, 4000)]
    (row,) = ask(counted, samples=[sampled(5000, 1.5e9)])
    assert (row["roof_clock_hz"], row["min_roof_clock_hz"]) == (pytest.approx(1.2e9), pytest.approx(1.2e9))
    (row,) = ask(counted, samples=[sampled(5000, 1.5e9), sampled(5000, 1.3e9, "SM Clock Frequency")])
    assert (row["roof_clock_hz"], row["roof_clock_source"]) == (1.3e9, "sampled SM clock of these launches, by nsys")


@pytest.mark.parametrize("samples", [
    [sampled(3000, 1.2e9), sampled(4000, 1.2e9)],        # of the time before the launch
    [sampled(7000, 1.2e9), sampled(8000, 1.2e9)],        # from 2 µs behind its end on, and 1 µs apart
    [sampled(5000, 1.2e9) | {"device_id": "other"}], [sampled(5000, 1.2e9) | {"profile_id": "other"}],
    [sampled(5000, 1.2e9, "SYS Clock Frequency")], [sampled(5000, 0.0)],
])
def test_where_no_sample_covers_a_launch_the_rated_clock_stays(samples: list[dict[str, Any]]) -> None:
    (row,) = ask(LAUNCHES[:2], devices=[rated(1.5e9)], samples=samples)
    assert (row["roof_clock_hz"], row["roof_clock_source"]) == (1.5e9, "rated clock, as stated by nsys")
    assert row["sampled_launches"] is row["min_roof_clock_hz"] is row["max_roof_clock_hz"] is None


def test_a_time_of_another_gpu_is_a_caution_and_scales_nothing() -> None:
    (row,) = ask([kernel(1, "ncu", 500), kernel(2, "nsys", 1000, gpu="H100")], devices=[rated(1.5e9, name="H100")])
    assert row["plottable"] and row["warning"] == "timed on another GPU, H100" and row["roof_clock_hz"] == 1e9


def test_more_traffic_than_the_roof_allows_is_a_caution() -> None:
    slow = COUNTERS | {"dram__bytes.sum.peak_sustained": 10.0}
    (row,) = ask([kernel(1, "ncu", 500, metrics=list(slow.items())), kernel(2, "nsys", 100)])
    assert row["roof_pct"] == pytest.approx(250.0) and row["warning"] == (
        "more DRAM traffic than the roof allows: caches keep what ncu flushes between launches")


def test_what_the_counters_lack_is_said_first() -> None:
    bare = kernel(1, "ncu", 500, metrics=[("gpu__time_duration.sum", 500.0)])
    (row,) = ask([bare, kernel(2, "nsys", 100)])
    assert not row["plottable"] and "no operations were counted" in row["not_plottable_reason"] and row["duration_ns"] == 100


@pytest.mark.parametrize("wrong", [{"time": "ncu"}, {"grade": "launch"}, {"ranks": "all"}, {"launches": "some"},
                                   {"work": "none"}])
def test_unknown_choices_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is one of"):
        ask([kernel(1, "ncu", 500)], **wrong)


def _truth(name: str) -> list[dict[str, str]]:
    data = (RUN / "truth" / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.mark.parametrize("tool", ["nsys", "kineto"])
def test_points_of_the_simulated_run_equal_the_truth(store: Store, tool: str) -> None:
    """Of every configuration that ncu counted: work, bytes, the median time of its launches, and their quotients."""
    names = {row["ncu"]: row["kernel"] for row in _truth("names.tsv")}
    counted = {row["kernel"]: row for row in _truth("ncu_launches.tsv")}
    times: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for row in _truth("launches.tsv.gz"):
        if row["rank"] == "0" and row[f"in_{tool}"] == "1":
            times[row["kernel"], row["grid"], row["block"]].append(int(row[f"{tool}_duration_ns"]))
    seen = set()
    for row in store.view("true_roofline", time=tool, only_is_main=True, launches="all", work="counters").to_pylist():
        kernel_name = names[row["name"]]
        place = (kernel_name, *("x".join(str(row[f"{what}_{axis}"]) for axis in "xyz") for what in ("grid", "block")))
        true = counted[kernel_name]
        seen.add(kernel_name)
        if place not in times:
            assert kernel_name == "conv_256_variant" and row["not_plottable_reason"] == f"{tool} recorded no kernel of this name"
            continue
        flop = float(true["tensor_flops"]) or float(true["fp32_flops"])
        if kernel_name == "relu_forward":  # counted in two sizes: a row of the truth for each
            (flop,) = {float(one["fp32_flops"]) for one in _truth("ncu_launches.tsv")
                       if one["kernel"] == kernel_name and float(one["fp32_flops"]) == row["work_flop"]}
        moved = flop / float(true[f"{'tensor' if float(true['tensor_flops']) else 'fp32'}_flops_per_{row['level']}_byte"])
        assert row["plottable"] and (row["rank"], row["counters_rank"], row["time_tool"]) == (0, 0, tool)
        assert row["launches"] == len(times[place])
        assert abs(row["duration_ns"] - median(times[place])) <= 0.5
        assert (row["min_duration_ns"], row["max_duration_ns"]) == (min(times[place]), max(times[place]))
        assert row["work_flop"] == flop and row["traffic_bytes"] == pytest.approx(moved, rel=1e-9)
        assert row["achieved_flop_per_s"] == pytest.approx(flop / row["duration_ns"] * 1e9, rel=1e-12)
        assert row["achieved_bytes_per_s"] == pytest.approx(moved / row["duration_ns"] * 1e9, rel=1e-9)
    assert seen == set(counted)


def test_where_launches_differ_in_size_only_those_that_ncu_counted_are_taken(store: Store) -> None:
    """bn_forward runs at one grid for several sizes: its median belongs to none of them that ncu counted."""
    (name,) = {row["ncu"] for row in _truth("names.tsv") if row["kernel"] == "bn_forward"}
    rows = [row for row in store.view("true_roofline", only_is_main=True, only_level="dram").to_pylist() if row["name"] == name]
    counted = [int(row["nsys_duration_ns"]) for row in _truth("launches.tsv.gz")
               if row["in_ncu"] == "1" and row["kernel"] == "bn_forward"]
    (row,) = rows
    if row["plottable"]:
        assert (row["time_launches"], row["time_grade"], row["duration_ns"]) == ("matched", "launch", median(counted))
    else:
        assert "they may differ in work" in row["not_plottable_reason"] and row["achieved_flop_per_s"] is None


@pytest.mark.parametrize("tool", ["nsys", "kineto"])
def test_kernels_that_nothing_counted_are_placed_by_their_shapes(store: Store, tool: str) -> None:
    rows = store.view("true_roofline", time=tool, work="shapes", ranks="each").to_pylist()
    names = {row[tool]: row["kernel"] for row in _truth("names.tsv")}
    assert {row["level"] for row in rows} == {"dram"} and all(row["plottable"] and row["work_source"] == "shapes" for row in rows)
    assert all("upper bound" in row["warning"] and row["ncu_achieved_flop_per_s"] is None for row in rows)
    counted = {(row["kernel_key"], row["grid_x"], row["grid_y"], row["grid_z"])
               for row in store.view("true_roofline", time=tool, work="counters").to_pylist()}
    assert not counted & {(row["kernel_key"], row["grid_x"], row["grid_y"], row["grid_z"]) for row in rows}
    (row, other) = (row for row in rows if names[row["name"]] == "fc_weight_gradient")
    assert (row["rank"], other["rank"]) == (0, 1)
    m, n, k = 1000, 512, 512  # a gradient of 1000 x 512 over a batch of 512, in bf16
    assert (row["work_flop"], row["traffic_bytes"]) == (2 * m * n * k, 2 * (m * k + k * n + m * n))
    assert row["precision"] == "tensor_bf16"
    times = [int(one[f"{tool}_duration_ns"]) for one in _truth("launches.tsv.gz")
             if one["kernel"] == "fc_weight_gradient" and one["rank"] == "0" and one[f"in_{tool}"] == "1"]
    assert row["launches"] == len(times) and abs(row["duration_ns"] - median(times)) <= 0.5
    assert row["achieved_flop_per_s"] == pytest.approx(1e9 * row["work_flop"] / row["duration_ns"])
    assert row["datasheet_peak_flop_per_s"] == 312e12 and row["datasheet_peak_bytes_per_s"] == 1555e9
    share = max(row["achieved_flop_per_s"] / 312e12, row["achieved_bytes_per_s"] / 1555e9)
    assert row["datasheet_roof_pct"] == pytest.approx(100 * share)


def test_shapes_and_counters_stand_in_one_table(store: Store) -> None:
    both, counted, shaped = (store.view("true_roofline", work=work).to_pylist() for work in ("any", "counters", "shapes"))
    assert both == [*counted, *shaped] and counted and shaped
    total = [row["launches"] * row["duration_ns"] for row in shaped]
    assert total[0] >= max(total) * 0.99, "most time first"
    gemms = store.view("true_roofline", work="shapes", kernel_regex="^ampere_bf16_s16816gemm")["short_name"].to_pylist()
    assert gemms and all(name.startswith("ampere_bf16_s16816gemm") for name in gemms)
