"""headroom: books that balance, roofs worked out by hand, and the simulated run, whose work is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import analyses
from nsightlens.analyses import headroom
from nsightlens.analyses._peaks import Peak, no_peaks
from nsightlens.analyses._roofs import LaunchWork, roof
from nsightlens.errors import UsageError
from nsightlens.store.store import Store
from nsightlens.views import registry
from nsightlens.views.balance import unbalanced
from tests.catalogs import asking, catalog
from tests.places import ROOT

A100 = Peak({"tensor_bf16": 312e12, "fp32": 19.5e12}, 1555e9)


def products(flop: float | None, size: float | None, key: str | None = "tensor_bf16") -> LaunchWork:
    return LaunchWork(((key, flop),), size, "shapes")


@pytest.mark.parametrize(("work", "is_contraction", "ns", "bound"), [
    (products(312e9, 1e6), True, 1_000_000, "compute"),
    (products(312e6, 1555e6), True, 1_000_000, "memory"),
    (products(None, 1555e6), False, 1_000_000, "memory"),  # of an element-wise kernel the bytes are enough
    (products(None, 1555e6), True, None, None),
    (products(312e9, None), True, None, None),
    (products(312e9, 1e6, None), True, None, None),
    (products(5.0, 1555e6, "int32"), False, 1_000_000, "memory"),
    (LaunchWork((("tensor_bf16", 312e9), ("fp32", 39e9)), 1e6, "counters"), True, 2_000_000, "compute"),  # units work at once
])
def test_the_roof_of_a_launch(work: LaunchWork, is_contraction: bool, ns: int | None, bound: str | None) -> None:
    found = roof(work, A100, is_contraction)
    assert (found.ns, found.bound) == (ns, bound)
    assert (found.reason is None) == (ns is not None)


def test_a_gpu_without_peaks_and_a_slice_of_one_have_no_roof() -> None:
    assert roof(products(1, 1), None, True, no_peaks("Some GPU")).reason == (
        "no datasheet peaks of Some GPU: assume_gpu with force_gpu=true uses those of another GPU, by its name in gpu_peaks")
    assert no_peaks(None).startswith("the GPU is not named in the capture")
    assert roof(products(1, 1), Peak({"tensor_bf16": 1e12}, None), True).reason == (
        "a slice of a GPU: its bandwidth is unknown")


SHAPES = ("[[1024, 1024], [1024, 1024]]", '["c10::BFloat16", "c10::BFloat16"]')
ROOF = round(1e9 * 2 * 1024**3 / 312e12)  # 6883 ns


Rows = list[dict[str, Any]]


def answered(kernels: Rows, *, copies: Rows | None = None, device: dict[str, Any] | None = None, **parameters: Any) -> Rows:
    """Return headroom of kernels launched by aten::mm on an A100. device: what is known of it besides its name."""
    who = {"run": "r", "tool": "kineto", "profile_id": "p", "process_id": "q", "window_index": 0}
    rows = [who | {"kernel_id": i, "launch_index": i, "start_ns": 20_000 * i, "duration_ns": 10_000, "name": f"k{i}",
                   "kernel_key": f"k{i}", "family": "gemm", "tensor_cores": True, "device_id": "g", "stream": 7,
                   "gpu": "NVIDIA A100-SXM4-40GB", "grid_x": 1, "op": "aten::mm", "op_range_id": i, "step": 3} | kernel
            for i, kernel in enumerate(kernels)]
    ranges = [who | {"range_id": i, "kind": "operator", "name": "aten::mm", "shapes": SHAPES[0], "types": SHAPES[1]}
              for i in range(len(rows))]
    connection = catalog(kernels=rows, ranges=ranges, memory_ops=[who | copy for copy in copies or []],
                           devices=[{"run": "r", "device_id": "g"} | device] if device else [],
                           processes=[{"run": "r", "tool": "kineto", "profile_id": "p", "process_id": "q"}])
    ask = asking(connection)
    view = registry.known()["headroom"]
    table = analyses.run(view, parameters, ask)
    assert table.column_names == [name for name, _ in view.columns] and not unbalanced(table, view.balances)
    rows_found: Rows = table.to_pylist()
    return rows_found


def test_time_is_at_the_roof_or_above_it_or_unknown_or_without_one() -> None:
    collective = {"family": "collective", "op_range_id": None, "name": "nccl"}
    rows = answered([{}, {"op_range_id": None, "name": "other"}, collective, {"duration_ns": 5000}],
                    copies=[{"kind": "memcpy", "direction": "HtoD", "duration_ns": 700}], by="step")
    known = {row["item"]: row for row in rows}
    assert set(known) == {"3", None}
    three = known["3"]
    assert (three["launches"], three["gpu_ns"], three["no_roof_ns"], three["unknown_roof_ns"]) == (4, 35_000, 10_000, 10_000)
    assert (three["at_roof_ns"], three["headroom_ns"], three["launches_above_roof"]) == (ROOF + 5000, 10_000 - ROOF, 1)
    assert (three["bound_by"], three["work_source"], three["reason"]) == ("compute", "shapes", "no operator around the launch")
    assert (known[None]["no_roof_ns"], known[None]["gpu_ns"], known[None]["gain_limit"]) == (700, 700, None)


def test_what_is_unknown_is_null_and_comes_last() -> None:
    """Of the first kernel no operator is known, the second is a collective, the third as fast as its roof."""
    unknown = ("max_gain_ns", "headroom_ns", "at_roof_ns", "launches_above_roof")
    rows = answered([{"op_range_id": None, "duration_ns": 50_000}, {"family": "collective"}, {"duration_ns": ROOF}])
    assert [(row["gpu_ns"], *(row[name] for name in unknown)) for row in rows] == [
        (ROOF, 0, 0, ROOF, 0), (50_000, None, None, None, None), (10_000, None, None, None, None)]
    assert [(row["unknown_roof_ns"], row["no_roof_ns"]) for row in rows] == [(0, 0), (50_000, 0), (0, 10_000)]


def test_kernels_that_do_a_call_together_share_its_roof_per_operator_and_have_none_alone() -> None:
    kernels = [{"op_range_id": 0, "duration_ns": ns} for ns in (10_000, 20_000, 5)]
    together = answered(kernels, by="op")[0]
    assert (together["at_roof_ns"], together["headroom_ns"], together["unknown_roof_ns"]) == (ROOF, 30_005 - ROOF, 0)
    assert {(row["unknown_roof_ns"] == row["gpu_ns"], row["reason"]) for row in answered(kernels)} == {
        (True, "kernels of the call: 3, products: 1; they cannot be distinguished")}


def test_a_helper_of_a_product_is_above_the_roof_of_its_operator() -> None:
    kernels = [{}, {"op_range_id": 0, "family": "memory"}]
    row = answered(kernels, by="op")[0]
    assert (row["at_roof_ns"], row["headroom_ns"]) == (ROOF, 20_000 - ROOF)
    assert [row["unknown_roof_ns"] for row in answered(kernels, by="family") if row["item"] == "memory"] == [10_000]


def test_the_gain_is_no_more_than_the_time_on_the_critical_path() -> None:
    """Both kernels run at once in two streams, and the longer one ends last: the other is in its shadow."""
    rows = answered([{"start_ns": 0, "duration_ns": 50_000}, {"start_ns": 0, "duration_ns": 20_000, "stream": 8}], by="key")
    assert [(row["item"], row["headroom_ns"], row["max_gain_ns"], row["critical_path_ns"], row["gain_limit"])
            for row in rows] == [
        ("k0", 50_000 - ROOF, 50_000 - ROOF, 50_000, "critical path"), ("k1", 20_000 - ROOF, 0, 0, "critical path")]


def test_a_roof_that_is_unknown_in_part_leaves_a_bound() -> None:
    """Nothing is known of how fast the second kernel could be, so that all its time on the path may be won; a third is hidden."""
    kernels: list[dict[str, Any]] = [
        {"start_ns": 0, "duration_ns": 50_000}, {"start_ns": 50_000, "duration_ns": 30_000, "op_range_id": None},
        {"start_ns": 0, "duration_ns": 20_000, "stream": 8, "op_range_id": None}]
    (row,) = answered(kernels, by="family")
    assert (row["headroom_ns"], row["unknown_roof_ns"]) == (50_000 - ROOF, 50_000)
    assert row["max_gain_ns"] == 80_000 - ROOF
    (row,) = answered([kernel | {"process_id": None} for kernel in kernels], by="family")
    assert row["max_gain_ns"] == 100_000 - ROOF


def test_kernels_of_a_call_gain_no_more_than_their_time_on_the_critical_path() -> None:
    """They share the roof of the call by their time; the shorter one runs in the shadow of the longer one."""
    kernels = [{"op_range_id": 0, "start_ns": 0, "duration_ns": 50_000},
               {"op_range_id": 0, "start_ns": 0, "duration_ns": 20_000, "stream": 8}]
    (row,) = answered(kernels, by="op")
    assert (row["headroom_ns"], row["max_gain_ns"], row["critical_path_ns"]) == (
        70_000 - ROOF, 50_000 - ROOF * 50_000 // 70_000, 50_000)
    (row,) = answered([kernel | {"process_id": None} for kernel in kernels], by="op")
    assert (row["headroom_ns"], row["max_gain_ns"], row["critical_path_ns"]) == (70_000 - ROOF, 70_000 - ROOF, None)


def test_without_a_process_there_is_no_path_and_the_gain_is_the_headroom() -> None:
    rows = answered([{"process_id": None}])
    assert [(row["max_gain_ns"], row["critical_path_ns"], row["gain_limit"]) for row in rows] == [
        (10_000 - ROOF, None, "own time")]


def test_another_gpu_can_be_assumed_and_an_unknown_item_is_refused() -> None:
    assert answered([{"gpu": "Some GPU"}])[0]["reason"] == no_peaks("Some GPU")
    faster = answered([{"gpu": "Some GPU"}], assume_gpu="NVIDIA H100 80GB HBM3", force_gpu=True)[0]
    assert faster["at_roof_ns"] == round(1e9 * 2 * 1024**3 / 989.4e12)
    assert answered([{"gpu": None}], assume_gpu="h100 sxm5")[0]["at_roof_ns"] == faster["at_roof_ns"]
    with pytest.raises(UsageError, match="force_gpu needs assume_gpu"):
        answered([{}], force_gpu=True)
    with pytest.raises(UsageError, match="no datasheet for 'Voodoo 2'; there are: A10"):
        answered([{"gpu": "Some GPU"}], assume_gpu="Voodoo 2")
    with pytest.raises(UsageError, match="by is one of kernel, key"):
        headroom.analyse(lambda sql, values: pa.table({}), by="colour")


def test_an_assumed_gpu_is_for_one_without_a_name_and_must_fit_it() -> None:
    """As with roofline: a name in the capture wins, compute capability and SMs speak against another, and force is unchecked."""
    assert answered([{}], assume_gpu="h100 sxm5")[0]["at_roof_ns"] == ROOF  # an A100 is one
    assert answered([{"gpu": "Some GPU"}], assume_gpu="h100 sxm5")[0]["reason"] == no_peaks("Some GPU")
    fits, faster = {"compute_capability": "9.0", "sm_count": 132}, round(1e9 * 2 * 1024**3 / 989.4e12)
    for device, why in [
        (fits, None), (fits | {"sm_count": 114}, "it has 132 SMs, the report's GPU 114"),
        (fits | {"compute_capability": "12.0"}, "it has compute capability 9.0, the report's GPU 12.0"),
    ]:
        row = answered([{"gpu": None}], device=device, assume_gpu="h100 sxm5")[0]
        assert row["at_roof_ns"] == (None if why else faster)
        assert row["reason"] == (why and f"H100 SXM5 not used: {why}; force_gpu=true takes it all the same")
        forced = answered([{"gpu": None}], device=device, assume_gpu="h100 sxm5", force_gpu=True)[0]
        assert (forced["at_roof_ns"], forced["reason"]) == (faster, None)


def test_a_gpu_with_more_sms_than_its_datasheet_has_no_roof() -> None:
    assert answered([{}], device={"sm_count": 132})[0]["unknown_roof_ns"] == 10_000
    assert answered([{}], device={"sm_count": 108})[0]["at_roof_ns"] == ROOF


@pytest.fixture(scope="module")
def simulated(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.mark.parametrize("by", ["kernel", "family", "op", "module", "phase", "step"])
def test_the_books_of_the_simulated_run_balance(simulated: Store, by: str) -> None:
    table = simulated.view("headroom", by=by)
    assert not unbalanced(table, simulated.views["headroom"].balances)
    spent = simulated.sql("""
        SELECT sum(duration_ns)::BIGINT AS ns, count(*) AS launches FROM (
            SELECT duration_ns FROM timeline_kernels UNION ALL SELECT duration_ns FROM memory_ops WHERE tool = 'nsys'
            UNION ALL SELECT duration_ns FROM graph_executions)""").to_pylist()[0]
    rows = table.to_pylist()
    assert (sum(row["gpu_ns"] for row in rows), sum(row["launches"] for row in rows)) == (spent["ns"], spent["launches"])
    assert {row["tool"] for row in rows} == {"nsys"}
    known = [row for row in rows if row["headroom_ns"] is not None]
    assert known and all(row["max_gain_ns"] <= row["headroom_ns"] + row["unknown_roof_ns"] <= row["gpu_ns"]
                         and row["max_gain_ns"] <= (row["critical_path_ns"] or 0) for row in known)
    assert all(row["gpu_ns"] == row["unknown_roof_ns"] + row["no_roof_ns"] for row in rows if row not in known)


def test_the_stem_of_the_simulated_run_is_as_far_from_its_roof_as_its_truth_says(simulated: Store) -> None:
    """512 x 64 results of 112 x 112 with 147 multiply-adds each, 976,243,072 bytes, on an A100 of 40 GB."""
    row = next(row for row in simulated.view("headroom", by="kernel", only_rank=0).to_pylist()
               if "fprop" in row["item"] and "indexed" in row["item"])
    roof_ns = round(max(1e9 * 120_846_286_848 / 312e12, 1e9 * 976_243_072 / 1555e9))
    known, rest = divmod(row["at_roof_ns"], roof_ns)
    assert (rest, row["bound_by"], row["launches_above_roof"]) == (0, "memory", 0) and 4 <= known <= row["launches"]


def test_work_from_shapes_is_what_ncu_counted_in_the_simulated_run(simulated: Store) -> None:
    """The simulated kernels do exactly their operator's work (fixtures/simulated_resnet18_ddp/truth/ncu_launches.tsv)."""
    rows = simulated.view("shape_agreement").to_pylist()
    found = {row["op"]: (row["flop_ratio"], row["flop_verdict"], row["bytes_ratio"]) for row in rows if row["family"] in (
        "gemm", "convolution")}
    assert found["aten::mm"] == found["aten::cudnn_convolution"] == (1.0, "agree", 1.0)
    assert sum(row["flop_verdict"] == "agree" for row in rows) == 4 and {row["grade"] for row in rows} == {"launch"}
    norm = next(row for row in rows if row["op"] == "aten::cudnn_batch_norm")
    assert (norm["bytes_ratio"], norm["flop_ratio"]) == (1.5, None)  # the input is read twice


def test_the_view_is_documented_in_its_page() -> None:
    page = (ROOT / "docs" / "roofline.md").read_text()
    assert all(f"`{name}`" in page for name in ("headroom", "shape_work", "shape_agreement"))
    assert json.dumps(list(headroom._ITEMS)) == json.dumps(["kernel", "key", "family", "op", "module", "phase", "step"])


DATA = ROOT.parent / "shared" / "data" / "kineto"


@pytest.mark.captures
@pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")
def test_no_real_launch_that_no_cache_can_hold_is_faster_than_its_roof(tmp_path: Path) -> None:
    """Two models on an H100: 66.9 TFLOP/s, 989.4 on tensor cores, 3352 GB/s, 50 MB of L2. A formula too high would show."""
    names = ("AMD-AGI__TraceLens__h100__owlv2-large.json.gz", "AMD-AGI__TraceLens__h100__Qwen1.5-0.5B.json.gz")
    store = nl.ingest([DATA / name for name in names], store=tmp_path / "store")
    spent = dict(zip(*store.sql("SELECT kernel_id, duration_ns FROM kernels").to_pydict().values(), strict=True))
    peaks = {"fp32": 66.9e12, "tensor_bf16": 989.4e12, None: float("inf")}
    shares = []
    for row in store.view("shape_work").to_pylist():
        if (row["minimal_bytes"] or 0) > 60e6 or (row["work_flop"] or 0) > 1e10:
            least = max(1e9 * (row["work_flop"] or 0) / peaks[row["peak_key"]], 1e9 * (row["minimal_bytes"] or 0) / 3352e9)
            shares.append(least / spent[row["kernel_id"]])
    assert len(shares) > 700 and max(shares) < 1 and sorted(shares)[len(shares) // 2] > 0.3
    table = store.view("headroom")
    assert not unbalanced(table, store.views["headroom"].balances)
    top = next(row for row in table.to_pylist() if "SoftMaxForward" in row["item"])
    assert (top["bound_by"], top["unknown_roof_ns"], top["launches"]) == ("memory", 0, 120)
    assert top["at_roof_ns"] == 120 * round(1e9 * 2 * 2 * 16 * 5185 * 5185 / 3352e9) and top["max_gain_ns"] > 0.7 * top["gpu_ns"]
