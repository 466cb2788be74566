"""The roofline: work, bytes, roofs and the reasons for not placing a kernel, from counters written as ncu prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest

from nsightlens.names import kernel_names as names
from nsightlens.views import registry
from tests.catalogs import asking, catalog

CORE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = "sm__ops_path_tensor_{}.sum"
FP32 = {CORE.format("fadd"): 10.0, CORE.format("fmul"): 20.0, CORE.format("ffma"): 100.0}
DRAM = {"dram__bytes.sum": 1000.0}

# What ncu printed of v2_kernel_0001 (RTX 5090): the roofline chart, the metrics page, the speed of light.
GEMV = {
    "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2": 158.12,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": 79.06,
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": 1.97,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": 0.0,
    "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2": 43520.0,
    "smsp__cycles_elapsed.avg.per_second": 2.15e9, "sm__cycles_elapsed.avg.per_second": 2.15e9,
    "gpc__cycles_elapsed.avg.per_second": 1.99e9, "gpc__cycles_elapsed.max": 13485.0,
    "dram__bytes.sum.per_second": 345.14e9, "dram__bytes_read.sum": 2.33e6, "dram__bytes_write.sum": 0.0,
    "dram__bytes.sum.peak_sustained": 128.0, "dram__cycles_elapsed.avg.per_second": 13.72e9,
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 0.0,
}


def launch(metrics: Mapping[str, float | None], number: int = 0, **more: Any) -> dict[str, Any]:
    row = {
        "kernel_id": number, "run": "base", "tool": "ncu", "profile_id": "p", "process_id": "q", "device": 0, "rank": 0,
        "name": "kernel", "short_name": "kernel", "family": "other", "grid_x": 4, "grid_y": 1, "grid_z": 1,
        "block_x": 128, "block_y": 1, "block_z": 1, "duration_ns": 1000, "metrics": list(metrics.items()),
    }
    row["kernel_key"] = more.get("name", "kernel")
    row["tensor_cores"] = names.tensor_cores(str(row["kernel_key"]), more.get("family", "other"))
    return row | more


def device(cc: str | None = None, name: str | None = None, sm_count: int | None = None, **more: Any) -> dict[str, Any]:
    return {"device_id": "d", "run": "base", "tool": "ncu", "profile_id": "p", "process_id": "q", "device": 0,
            "compute_capability": cc, "name": name, "sm_count": sm_count} | more


def ask(connection: duckdb.DuckDBPyConnection, level: str | None = "dram", **parameters: object) -> list[dict[str, Any]]:
    sql, values = registry.query(registry.load()["roofline"], parameters)
    rows: list[dict[str, Any]] = asking(connection)(sql, values).to_pylist()
    return [row for row in rows if level in (None, row["level"])]


def one(metrics: Mapping[str, float | None], precision: str | None = "fp32", level: str = "dram", cc: str | None = None,
        gpu: str | None = None, **more: Any) -> dict[str, Any]:
    rows = ask(catalog(kernels=[launch(metrics, gpu=gpu, **more)], devices=[device(cc)]), level)
    found = [row for row in rows if row["precision"] == precision]
    assert len(found) == 1, [row["precision"] for row in rows]
    return found[0]


def apart(cases: Sequence[tuple[dict[str, Any], dict[str, Any]]], level: str | None = "dram") -> list[list[dict[str, Any]]]:
    """Return the rows of each launch on its device, each pair a run of its own: as if asked for alone, in one question."""
    ids = [{"run": f"run{i}", "profile_id": f"p{i}", "process_id": f"q{i}"} for i in range(len(cases))]
    kernels = [kernel | own | {"kernel_id": i} for i, ((kernel, _), own) in enumerate(zip(cases, ids, strict=True))]
    devices = [made | own | {"device_id": own["run"]} for (_, made), own in zip(cases, ids, strict=True)]
    rows = ask(catalog(kernels=kernels, devices=devices), level)
    return [[row for row in rows if row["run"] == own["run"]] for own in ids]


def test_a_tensor_pipe_that_is_hardly_busy_is_no_proof_and_what_was_counted_is_named() -> None:
    """Constants are loaded on that pipe, too: at 2 % or less nothing but a name shows that products run there."""
    pipe, reason = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "not_plottable_reason"
    row = one({pipe: 0.8, **FP32, **DRAM}, "tensor")
    slight = "its tensor pipe is 0.8 % busy: operations of tensor cores cannot be excluded, and were not counted"
    assert row[reason].startswith(f"{slight} (--precision fp32 or --precision all shows what was): collect")
    counted = one({pipe: 0.8, **FP32, **DRAM})
    assert counted["plottable"] and counted["warning"] == f"{slight}: this may not be its performance"
    busy = one({pipe: 12.5, **FP32, **DRAM}, "tensor")
    assert busy[reason].startswith("this kernel runs on the tensor cores")


def test_the_peak_of_a_tensor_pipe_is_no_activity() -> None:
    """The hierarchical tensor section prints the peak, 512 per SM and cycle, beside a pipe that was idle."""
    idle = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0,
            "derived__smsp__inst_executed_pipe_tensor_x512": 0.0}
    row = one({**idle, "derived__sm__inst_executed_pipe_tensor_x512": 40960.0, **FP32, **DRAM}, cc="8.6")
    assert row["is_main"] and row["plottable"] and row["warning"] is None


def test_double_precision_beside_a_tensor_pipe_that_is_hardly_busy_has_its_point() -> None:
    work = {CORE.format(op): 100.0 for op in ("dadd", "dmul", "dfma")}
    row = one({"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0.8, **work, **DRAM}, "fp64")
    assert row["is_main"] and row["plottable"] and row["warning"] is None


@pytest.mark.parametrize(("hz", "share"), [(1.41e9, 50.0), (0.705e9, 100.0), (None, None)])
def test_the_roof_of_a_datasheet_stands_at_the_clock_that_was_measured(hz: float | None, share: float | None) -> None:
    """An A100 does 19.5 TFLOP/s in FP32 at 1.41 GHz; at half the clock half of that is all it can do."""
    half = {CORE.format(op): 19.5e6 / 2 if op == "fadd" else 0.0 for op in ("fadd", "fmul", "ffma")}
    clock = {"sm__cycles_elapsed.avg.per_second": hz} if hz else {}
    row = one({**half, **clock, **DRAM}, cc="8.0", gpu="NVIDIA A100-SXM4-80GB")
    assert row["datasheet_peak_flop_per_s"] == 19.5e12
    assert row["datasheet_roof_pct"] == (None if share is None else pytest.approx(share))


def test_golden_chart_value_roofs_and_own_value() -> None:
    row = one(GEMV, duration_ns=6750, cc="12.0")
    assert row["plottable"] and row["is_main"] and row["not_plottable_reason"] is None
    assert row["ncu_chart_flop_per_s"] == pytest.approx(344.2e9, abs=0.05e9)
    assert row["ncu_chart_clock_hz"] == 2.15e9
    assert row["ncu_chart_bytes_per_s"] == 345.14e9
    assert row["ncu_chart_arithmetic_intensity"] == pytest.approx(0.997, abs=0.0005)
    assert row["peak_flop_per_s"] == pytest.approx(93.57e12, abs=0.005e12)
    assert row["peak_bytes_per_s"] == pytest.approx(1756e9, abs=0.5e9)
    assert row["ridge_point"] == pytest.approx(93.568e12 / 1756.16e9)
    assert row["achieved_flop_per_s"] == pytest.approx((158.12 + 1.97) * 2.15e9)
    assert row["achieved_bytes_per_s"] == pytest.approx(2.33e6 / 6.75e-6)
    assert row["arithmetic_intensity"] == pytest.approx(row["work_flop"] / 2.33e6)
    assert row["level_definition"] == "dram__bytes"
    assert row["roof_pct"] == pytest.approx(100 * 345.19e9 / 1756.16e9, rel=1e-4)


def test_rates_are_per_cycle_of_the_sub_partitions_not_of_the_gpc() -> None:
    """The matrix has 896 x 1280 elements: one fused multiply-add each. The clock of the GPCs would give 7 % less."""
    row = one({**GEMV, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": 0.0}, duration_ns=6750)
    assert row["work_flop"] == pytest.approx(2 * 896 * 1280, rel=0.0025)
    assert row["work_definition"] == "rate per smsp cycle x cycles (add, mul x1, fma x2)"


def test_counts_win_over_rates_and_the_chart_keeps_its_clock() -> None:
    row = one({**GEMV, **FP32}, duration_ns=6750)
    assert row["work_flop"] == 10 + 20 + 2 * 100
    assert row["work_definition"] == "counts (add, mul x1, fma x2)"
    assert row["achieved_flop_per_s"] == pytest.approx(230 / 6.75e-6)
    assert row["ncu_chart_flop_per_s"] == pytest.approx(344.2e9, abs=0.05e9)


def test_elapsed_cycles_win_over_clock_times_duration() -> None:
    row = one({**GEMV, "smsp__cycles_elapsed.avg": 1000.0}, duration_ns=6750)
    assert row["work_flop"] == pytest.approx(160.09 * 1000)


def test_every_form_of_a_counter_gives_the_same_work() -> None:
    forms = {".sum": 50.0, ".sum.per_second": 50e6, ".sum.per_cycle_elapsed": 0.05}
    cases = [(launch({f"{unit}__sass_thread_inst_executed_op_{op}_pred_on{form}": value for op in ("dadd", "dmul", "dfma")}
                     | DRAM | {f"{unit}__cycles_elapsed.avg.per_second": 1e9}), device())
             for unit in ("smsp", "sm") for form, value in forms.items()]
    works = [row["work_flop"] for rows in apart(cases) for row in rows if row["precision"] == "fp64"]
    assert works == pytest.approx([4 * 50] * 6)


def test_half_precision_instructions_are_pairs_in_every_build() -> None:
    half = {CORE.format(op) + ".per_cycle_elapsed": 1.0 for op in ("hadd", "hmul", "hfma")}
    clock = {"smsp__cycles_elapsed.avg.per_second": 1e9}
    new = one({**half, **clock, **DRAM, "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4": 4.0,
               "derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x4": 400.0}, "fp16")
    old = one({**half, **clock, **DRAM, "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2": 2.0,
               "derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x2": 200.0}, "fp16")
    assert new["work_flop"] == old["work_flop"] == pytest.approx((2 + 2 + 4) * 1000)
    assert new["peak_flop_per_s"] == old["peak_flop_per_s"] == pytest.approx(400e9)
    assert new["ncu_chart_flop_per_s"] == pytest.approx(8e9)
    assert old["ncu_chart_flop_per_s"] == pytest.approx(4e9), "what the older build drew"


def test_a_missing_instruction_makes_the_work_unknown() -> None:
    row = one({CORE.format("ffma"): 100.0, CORE.format("fadd"): None, **DRAM})
    assert row["work_flop"] is None and not row["plottable"]
    assert "fp32 add, mul not counted" in row["not_plottable_reason"] and "fadd,fmul,ffma" in row["not_plottable_reason"]


TENSOR_COUNTERS: list[tuple[dict[str, float | None], dict[str, float]]] = [
    ({"src_bf16_dst_fp32": 8, "src_bf16_dst_fp32_sparsity_off": 6, "src_bf16_dst_fp32_sparsity_on": 2}, {"bf16_dst_fp32": 8}),
    ({"src_bf16_dst_fp32_sparsity_off": 6, "src_bf16_dst_fp32_sparsity_on": 2},
     {"bf16_dst_fp32": 6, "bf16_dst_fp32_sparsity_on": 2}),
    ({"src_bf16_dst_fp32": 9, "op_hmma_src_bf16_dst_fp32_sparsity_off": 4, "op_hgmma_src_bf16_dst_fp32_sparsity_off": 5},
     {"bf16_dst_fp32": 9}),
    ({"op_hmma_src_bf16_dst_fp32_sparsity_off": 4, "op_hgmma_src_bf16_dst_fp32_sparsity_off": 5}, {"bf16_dst_fp32": 9}),
    ({"src_fp16": 7, "op_hmma_src_fp16_dst_fp32_sparsity_off": 3, "op_hmma_src_fp16_dst_fp16_sparsity_off": 4}, {"fp16": 7}),
    ({"src_fp16_dst_fp32": 3, "src_fp16_dst_fp16": 4}, {"fp16_dst_fp32": 3, "fp16_dst_fp16": 4}),
    ({"src_fp4_dst_fp32": 1, "src_fp4_fp6_fp8_dst_fp32": 2}, {"fp4_dst_fp32": 1, "fp4_fp6_fp8_dst_fp32": 2}),
    ({"op_bgmma_src_int1": 5, "src_int1": None}, {"int1": 5}),
    ({"src_int8_sparsity_off": 5, "op_igmma_src_int8_sparsity_off": 5, "op_igmma_src_int8_sparsity_on": 1},
     {"int8": 5, "int8_sparsity_on": 1}),
]


def test_tensor_operations_are_counted_once() -> None:
    cases = [(launch({TENSOR.format(name): value for name, value in counters.items()} | DRAM), device())
             for counters, _ in TENSOR_COUNTERS]
    for rows, (_, expected) in zip(apart(cases), TENSOR_COUNTERS, strict=True):
        assert {row["precision"]: row["work_flop"] for row in rows} == {f"tensor_{k}": v for k, v in expected.items()}
        assert sum(row["is_main"] for row in rows) == 1


def test_tensor_roof_is_that_of_the_instructions_in_use() -> None:
    hmma, hgmma = (TENSOR.format(f"op_{op}_src_bf16_dst_fp32_sparsity_off") for op in ("hmma", "hgmma"))
    metrics = {
        hmma: 5.0, f"{hmma}.peak_sustained": 2048.0, f"{hmma}.per_cycle_elapsed": 3.0,
        hgmma: 0.0, f"{hgmma}.peak_sustained": 4096.0, f"{hgmma}.per_cycle_elapsed": 0.0,
        "sm__cycles_elapsed.avg.per_second": 1e9, **DRAM,
    }
    row = one(metrics, "tensor_bf16_dst_fp32")
    assert row["peak_flop_per_s"] == 2048e9
    assert row["ncu_chart_flop_per_s"] == 3e9
    assert row["work_definition"] == "counts (sum of hgmma, hmma)"


def test_tensor_rates_refer_to_sm_cycles() -> None:
    row = one({TENSOR.format("src_fp64") + ".per_cycle_elapsed": 4.0, "sm__cycles_elapsed.avg.per_second": 2e9,
               "smsp__cycles_elapsed.avg.per_second": 1e9, **DRAM}, "tensor_fp64")
    assert row["work_flop"] == pytest.approx(4 * 2e9 * 1e-6)


def test_volta_instructions_have_512_operations_and_only_there() -> None:
    metrics = {"sm__inst_executed_pipe_tensor.sum": 3.0, **DRAM}
    assert one(metrics, "tensor_fp16", cc="7.0")["work_flop"] == 3 * 512
    ampere = one(metrics, "tensor", cc="8.0")
    assert ampere["work_flop"] is None and "sm__ops_path_tensor_src" in ampere["not_plottable_reason"]


HARDLY_ACTIVE: list[tuple[str, str, float, str]] = [
    ("void at::native::vectorized_elementwise_kernel<4, add>(int)", "elementwise", 0.957, "fp32"),
    ("void at::native::vectorized_elementwise_kernel<4, add>(int)", "elementwise", 2.1, "tensor"),
    ("my_kernel", "other", 0.957, "tensor"),
]


def test_a_hardly_active_tensor_pipe_may_have_loaded_constants() -> None:
    """HFMA2.MMA runs in that pipe: kernels that are known not to compute there are FP32, and unknown ones are left open."""
    pipe = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
    cases = [(launch({pipe: active_pct, **FP32, **DRAM}, name=name, family=family), device("9.0"))
             for name, family, active_pct, _ in HARDLY_ACTIVE]
    for rows, (name, _, active_pct, precision) in zip(apart(cases), HARDLY_ACTIVE, strict=True):
        (main,) = [row for row in rows if row["is_main"]]
        assert (main["precision"], main["plottable"]) == (precision, precision == "fp32"), (name, active_pct)


WITHOUT_TENSOR_COUNTS: list[tuple[str, str, dict[str, float | None]]] = [
    ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "gemm", {}),
    ("volta_h884gemm_64x128_ldg8_nn", "gemm", {}),
    ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel", "gemm", {}),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel", "gemm", {}),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)", "gemm", {}),
    ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", "gemm", {}),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)", "attention", {}),
    ("cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16_knob_7", "attention", {}),
    ("turing_int8_i8816cudnn_int8_256x128_ldg16_relu_nt_v1", "convolution", {}),
    ("my_kernel", "other", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 12.5}),
    ("my_kernel", "other", {"sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active": 1.5}),
    ("ampere_bf16_s16816gemm", "gemm", {TENSOR.format("src_fp16_dst_fp32"): 0.0, TENSOR.format("src_bf16_dst_fp32"): None}),
]


def test_tensor_kernels_without_tensor_counts_are_not_placed() -> None:
    cases = [(launch({**FP32, **DRAM, **metrics}, name=name, family=family), device("9.0"))
             for name, family, metrics in WITHOUT_TENSOR_COUNTS]
    for rows, (name, _, metrics) in zip(apart(cases, None), WITHOUT_TENSOR_COUNTS, strict=True):
        main = [row for row in rows if row["is_main"]]
        assert {row["precision"] for row in main} == {"tensor"} and all(row["work_flop"] is None for row in main), name
        assert not any(row["plottable"] for row in main) and all("--set roofline" in row["not_plottable_reason"] for row in main)
        (asked,) = [row for row in rows if row["precision"] == "fp32" and row["level"] == "dram"]
        assert asked["plottable"] and not asked["is_main"], name
        assert asked["warning"].endswith(f"this {'may not be' if 1.5 in metrics.values() else 'is not'} its performance"), name


OF_CUDA_CORES: list[tuple[str, str, dict[str, float], bool]] = [
    ("ampere_sgemm_128x64_nn", "gemm", {}, False),
    ("enable_if<!T7, void>::type kernel<cublasGemvTensorStridedBatched<const __nv_bfloat16>, float>>(T13)", "other", {}, False),
    ("void lgamma_kernel<float>(int)", "elementwise", {}, False),
    ("ampere_bf16_s16816gemm", "gemm", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0.0}, False),
    ("my_gemm", "gemm", {"sm__inst_executed_pipe_tensor.sum": 0.0}, False),
    ("my_gemm", "gemm", {TENSOR.format("src_bf16_dst_fp32"): 0.0}, False),
    ("void flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<64>>(Flash_bwd_params)", "attention",
     {"sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_active": 0.0}, False),
    ("my_gemm", "gemm", {}, True),
    ("triton_mm", "gemm", {"sm__inst_executed_pipe_tensor.sum.peak_sustained": 540.0}, True),
]


def test_kernels_of_the_cuda_cores_are_placed() -> None:
    cases = [(launch({**FP32, **DRAM, **metrics}, name=name, family=family), device())
             for name, family, metrics, _ in OF_CUDA_CORES]
    for rows, (name, _, metrics, cautious) in zip(apart(cases), OF_CUDA_CORES, strict=True):
        (row,) = (row for row in rows if row["precision"] == "fp32")
        assert row["plottable"] and bool(row["warning"]) is cautious, (name, metrics)


IDLE_PIPES: list[tuple[str, dict[str, float], str]] = [
    ("9.0", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0}, "fp32"),
    ("10.0", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0}, "tensor"),
    ("10.3", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0,
              "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0}, "fp32"),
    ("10.0", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 0.0,
              "sm__inst_executed_pipe_tc.avg.pct_of_peak_sustained_active": 40.0}, "tensor"),
]


def test_an_idle_tensor_pipe_overrules_the_name_where_it_is_the_only_one() -> None:
    cases = [(launch({**FP32, **DRAM, **idle}, name="s16816gemm", family="gemm"), device(cc)) for cc, idle, _ in IDLE_PIPES]
    for rows, (cc, _, precision) in zip(apart(cases), IDLE_PIPES, strict=True):
        assert {row["precision"] for row in rows if row["is_main"]} == {precision}, cc


@pytest.mark.parametrize("zero", [{TENSOR.format("src_bf16_dst_fp32"): 0.0}, {
    CORE.format(op): 0.0 for op in ("dadd", "dmul", "dfma")}])
def test_operations_that_were_not_collected_are_unknown_not_zero(zero: dict[str, float]) -> None:
    (main,) = [row for row in ask(catalog(kernels=[launch({**DRAM, **zero})])) if row["is_main"]]
    assert main["precision"] == "fp32" and main["work_flop"] is None and main["roof_pct"] is None
    assert "fp32 add, mul, fma not counted" in main["not_plottable_reason"]


RATES = {CORE.format(op) + ".per_cycle_elapsed": value for op, value in (("fadd", 1.0), ("fmul", 2.0), ("ffma", 100.0))}


@pytest.mark.parametrize(("rates", "flop"), [
    ({**RATES, "smsp__cycles_elapsed.avg.per_second": 2e9}, 203 * 2e9),
    ({name.replace("per_cycle_elapsed", "per_second"): 1e9 * value for name, value in RATES.items()}, 203 * 1e9),
])
def test_rates_place_a_kernel_without_a_duration(rates: dict[str, float], flop: float) -> None:
    roofs = {"derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2": 1e4, "sm__cycles_elapsed.avg.per_second": 2e9,
             "dram__bytes.sum.peak_sustained": 100.0, "dram__cycles_elapsed.avg.per_second": 1e10}
    row = one({**rates, **roofs, "dram__bytes.sum.per_second": 1e11}, duration_ns=None)
    assert row["plottable"] and row["is_main"] and row["duration_ns"] is row["work_flop"] is row["traffic_bytes"] is None
    assert row["achieved_flop_per_s"] == pytest.approx(flop) and row["achieved_bytes_per_s"] == 1e11
    assert row["arithmetic_intensity"] == pytest.approx(flop / 1e11)
    assert row["roof_pct"] == pytest.approx(100 * max(flop / 2e13, 1e11 / 1e12))


def test_what_the_launches_achieved_at_least_and_at_most() -> None:
    """From rates of each launch where these give the work, else from the spread of the durations."""
    clock = {"smsp__cycles_elapsed.avg.per_second": 2e9}
    rated = [launch({**{name: value * share for name, value in RATES.items()}, **clock,
                     "dram__bytes.sum.per_second": share * 1e9}, number) for number, share in enumerate((1.0, 3.0, 2.0))]
    (row,) = [row for row in ask(catalog(kernels=rated)) if row["is_main"]]
    flop, moved = ([row[f"{end}achieved_{what}_per_s"] for end in ("min_", "", "max_")] for what in ("flop", "bytes"))
    assert flop == pytest.approx([203 * 2e9 * share for share in (1, 2, 3)]) and moved == pytest.approx([1e9, 2e9, 3e9])
    counted = [launch({**FP32, **DRAM}, number, duration_ns=ns) for number, ns in enumerate((1000, 4000, 2000))]
    (row,) = [row for row in ask(catalog(kernels=counted)) if row["is_main"]]
    flop = [row[f"{end}achieved_flop_per_s"] for end in ("min_", "", "max_")]
    assert flop == pytest.approx([230 / 4e-6, 230 / 2e-6, 230 / 1e-6])


def test_tensor_rates_place_a_kernel_without_a_duration() -> None:
    row = one({TENSOR.format("src_fp16") + ".per_cycle_elapsed": 4.0, "sm__cycles_elapsed.avg.per_second": 2e9,
               "dram__bytes.sum.per_second": 1e9}, "tensor_fp16", duration_ns=None)
    assert row["plottable"] and row["is_main"] and row["achieved_flop_per_s"] == 8e9 and row["arithmetic_intensity"] == 8


@pytest.mark.parametrize("metrics", [
    {**RATES, "smsp__cycles_elapsed.avg.per_second": 2e9, **DRAM}, {**FP32, "dram__bytes.sum.per_second": 1e9}])
def test_a_count_beside_a_rate_needs_a_duration(metrics: dict[str, float]) -> None:
    row = one(metrics, duration_ns=None)
    assert not row["plottable"] and row["not_plottable_reason"].startswith("no duration")


@pytest.mark.parametrize(("on_tensor_cores", "precision"), [(True, "tensor"), (False, "fp32"), (None, "fp32")])
def test_summaries_tell_tensor_kernels_by_their_name_too(on_tensor_cores: bool | None, precision: str) -> None:
    summary = {"run": "base", "tool": "ncu", "profile_id": "p", "process_id": "q", "device": 0, "name": "k", "kernel_key": "k",
               "tensor_cores": on_tensor_cores, "grid_x": 1, "invocations": 4}
    counted = [summary | {"metric": metric, "average": value} for metric, value in (FP32 | DRAM).items()]
    (row,) = (row for row in ask(catalog(metric_summaries=counted, devices=[device("9.0")])) if row["is_main"])
    assert row["precision"] == precision and row["summarised"]


def test_main_precision_is_that_of_most_operations() -> None:
    rows = ask(catalog(kernels=[launch({**FP32, **DRAM, TENSOR.format("src_bf16_dst_fp32"): 231.0})]))
    assert {row["precision"]: row["is_main"] for row in rows} == {"fp32": False, "tensor_bf16_dst_fp32": True}


def test_no_counters_says_what_to_collect() -> None:
    row = one({"gpu__time_duration.sum": 1000.0}, None)
    assert "--print-details all" in row["not_plottable_reason"]


def test_no_work_has_a_bandwidth_and_no_place() -> None:
    row = one(dict.fromkeys(FP32, 0.0) | DRAM)
    assert not row["plottable"] and "0 fp32 operations" in row["not_plottable_reason"]
    assert row["achieved_bytes_per_s"] == pytest.approx(1e9)


def test_no_traffic_and_no_duration_are_told() -> None:
    assert "no DRAM traffic was counted" in one(FP32)["not_plottable_reason"]
    assert "0 bytes at DRAM" in one({**FP32, "dram__bytes.sum": 0.0})["not_plottable_reason"]
    assert "no duration" in one({**FP32, **DRAM}, duration_ns=None)["not_plottable_reason"]


def test_integrated_memory_has_no_dram_roof() -> None:
    ccs = ("8.7", "11.0", "12.1")
    found = apart([(launch({**FP32, "dram__bytes.sum": None}, gpu="NVIDIA A30"), device(cc)) for cc in ccs])
    for cc, rows in zip(ccs, found, strict=True):
        (row,) = (row for row in rows if row["precision"] == "fp32")
        assert "integrated memory" in row["not_plottable_reason"] and cc in row["not_plottable_reason"]
        assert row["datasheet_peak_bytes_per_s"] is None


BYTES: list[tuple[str, str | None, dict[str, float | None], str | None, float | None]] = [
    ("dram", None, {"dram__bytes_read.sum": 5, "dram__bytes_write.sum": 2}, "dram__bytes", 7),
    ("dram", None, {"dram__bytes_op_read.sum": 5, "dram__bytes_op_write.sum": 3}, "dram__bytes", 8),
    ("dram", None, {"dram__sectors_read.sum": 5, "dram__sectors_write.sum": 0}, "dram__bytes", 160),
    ("dram", None, {"dram__bytes.sum.per_second": 9e6}, "dram__bytes", 9),
    ("dram", None, {"dram__bytes_read.sum": 5, "dram__bytes_write.sum": None}, None, None),
    ("l2", None, {"lts__lts2xbar_cycles_active.sum": 2, "lts__t_bytes.sum": 9}, "lts__lts2xbar x 32", 64),
    ("l2", None, {"derived__lts__lts2xbar_bytes.sum.per_second": 64e6, "lts__t_bytes.sum": 9}, "lts__lts2xbar x 32", 64),
    ("l2", None, {"l1tex__m_xbar2l1tex_read_bytes.sum.per_second": 5e6, "lts__t_bytes.sum": 9},
     "l1tex__m_xbar2l1tex_read_bytes", 5),
    ("l2", None, {"lts__t_bytes.sum": 9}, "lts__t_bytes", 9),
    ("l2", None, {"lts__t_sectors_op_read.sum": 1, "lts__t_sectors_op_write.sum": 2, "lts__t_sectors_op_atom.sum": 0,
                  "lts__t_sectors_op_red.sum": 3}, "lts__t_sectors of read, write, atom, red x 32", 192),
    ("l2", None, {"lts__lts2xbar_cycles_active.sum.peak_sustained": 160, "lts__t_bytes.sum": 9}, "lts__t_bytes", 9),
    ("l1", "7.0", {"l1tex__lsu_writeback_active.sum": 1, "l1tex__lsu_writeback_active_mem_lg.sum": 2,
                   "l1tex__lsu_writeback_active_mem_lgds.sum": 3}, "l1tex__lsu_writeback x 128", 128),
    ("l1", "8.9", {"l1tex__lsu_writeback_active.sum": 1, "l1tex__lsu_writeback_active_mem_lg.sum": 2,
                   "l1tex__lsu_writeback_active_mem_lgds.sum": 3}, "l1tex__lsu_writeback_mem_lg x 128", 256),
    ("l1", "10.0", {"l1tex__lsu_writeback_active.sum": 1, "l1tex__lsu_writeback_active_mem_lg.sum": 2,
                    "l1tex__lsu_writeback_active_mem_lgds.sum": 3}, "l1tex__lsu_writeback_mem_lgds x 128", 384),
    ("l1", "9.0", {"derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second": 7e6}, "l1tex__lsu_writeback_mem_lgds x 128", 7),
    ("l1", "8.0", {"l1tex__t_bytes.sum": 4}, "l1tex__t_bytes", 4),
]


def test_bytes_of_each_level_by_their_definition() -> None:
    cases = [(launch({**FP32, **metrics}), device(cc)) for _, cc, metrics, _, _ in BYTES]
    for rows, (level, _, metrics, definition, traffic) in zip(apart(cases, None), BYTES, strict=True):
        (row,) = (row for row in rows if (row["level"], row["precision"]) == (level, "fp32"))
        assert row["level_definition"] == definition, metrics
        assert row["traffic_bytes"] == (pytest.approx(traffic) if traffic else None), metrics
        assert row["plottable"] is (traffic is not None), metrics


MEMORY_ROOFS: list[tuple[str, dict[str, float], float | None]] = [
    ("l2", {"lts__lts2xbar_cycles_active.sum": 2, "lts__lts2xbar_cycles_active.sum.peak_sustained": 160,
            "lts__t_bytes.sum.peak_sustained": 9999, "lts__cycles_elapsed.avg.per_second": 1e9}, 160 * 32 * 1e9),
    ("l1", {"l1tex__t_bytes.sum": 2, "l1tex__t_bytes.sum.peak_sustained": 10, "l1tex__cycles_elapsed.avg.per_second": 2e9}, 20e9),
    ("dram", {"dram__bytes.sum": 2, "dram__bytes.sum.peak_sustained": 10}, None),
]


def test_memory_roofs_have_the_definition_and_clock_of_the_level() -> None:
    cases = [(launch({**FP32, **metrics}), device()) for _, metrics, _ in MEMORY_ROOFS]
    for rows, (level, _, roof) in zip(apart(cases, None), MEMORY_ROOFS, strict=True):
        assert [row["peak_bytes_per_s"] for row in rows if (row["level"], row["precision"]) == (level, "fp32")] == [roof]


def test_measured_above_theoretical_is_not_clipped() -> None:
    row = one({**FP32, **DRAM, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 0.1,
               "sm__cycles_elapsed.avg.per_second": 1e9, "dram__bytes.sum.peak_sustained": 1000.0,
               "dram__cycles_elapsed.avg.per_second": 1e9})
    assert row["achieved_flop_per_s"] > row["peak_flop_per_s"]
    assert row["roof_pct"] == pytest.approx(115)


def test_counters_of_several_reports_join() -> None:
    rows = [launch(FP32, 1, profile_id="a", process_id="a", duration_ns=900), launch(DRAM, 2, profile_id="b", process_id="b"),
            launch(DRAM, 3, grid_x=5), launch(DRAM, 4, rank=1), launch(DRAM, 5, clock_control="none"),
            launch(DRAM, 6, gpu="other GPU"), launch(DRAM, 7, run="other")]
    found = [row for row in ask(catalog(kernels=rows)) if row["plottable"]]
    assert [(row["launches"], row["duration_ns"], row["min_duration_ns"], row["max_duration_ns"]) for row in found] == [
        (2, 950, 900, 1000)]


PARTS_OF_NAMES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["GemmA", "gemm_b", "x"]), ({"kernel": "GEMM"}, ["GemmA", "gemm_b"]), ({"kernel": "m_"}, ["gemm_b"]),
    ({"kernel": "ns::x"}, ["x"]), ({"kernel_regex": "^[a-z]"}, ["gemm_b", "x"]), ({"kernel": "none such"}, []),
    ({"kernel": "%"}, []), ({"only_name": "x"}, ["x"]),
]


def test_kernels_are_chosen_by_part_of_the_name() -> None:
    kernels = [launch({**FP32, **DRAM}, i, name=name, kernel_key=key)
               for i, (name, key) in enumerate([("GemmA", "G"), ("gemm_b", "g"), ("x", "ns::x")])]
    connection = catalog(kernels=kernels)
    for parameters, chosen in PARTS_OF_NAMES:
        assert [row["name"] for row in ask(connection, **parameters)] == chosen, parameters


def test_datasheet_by_product_name_or_as_given() -> None:
    metrics = {**FP32, **DRAM, TENSOR.format("src_bf16_dst_fp32"): 500.0, TENSOR.format("src_fp16_dst_fp16_sparsity_on"): 1.0}
    a100 = catalog(kernels=[launch(metrics)], devices=[device("8.0", "NVIDIA A100-SXM4-80GB", 108)])
    rows = {row["precision"]: row for row in ask(a100)}
    assert rows["fp32"]["datasheet_peak_flop_per_s"] == 19.5e12
    assert rows["tensor_bf16_dst_fp32"]["datasheet_peak_flop_per_s"] == 312e12
    assert rows["tensor_bf16_dst_fp32"]["datasheet_peak_bytes_per_s"] == 2039e9
    assert rows["tensor_fp16_dst_fp16_sparsity_on"]["datasheet_peak_flop_per_s"] is None, "dense peaks only"
    unnamed = catalog(kernels=[launch(metrics)], devices=[device("8.0")])
    assert {row["datasheet_gpu"] for row in ask(unnamed)} == {None}
    assert {row["datasheet_gpu"] for row in ask(unnamed, assume_gpu="a100 sxm4 40gb")} == {"A100 SXM4 40GB"}
    assert {row["datasheet_peak_bytes_per_s"] for row in ask(unnamed, assume_gpu="a100 sxm4 40gb")} == {1555e9}


SLICES: list[tuple[str, int | None, float | None, float | None]] = [
    ("NVIDIA A100-SXM4-40GB", None, 19.5e12, 1555e9),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, 19.5e12 * 14 / 108, None),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, None, None),
    ("NVIDIA A100-SXM4-40GB", 124, None, None),
]


def test_a_slice_has_its_share_of_the_compute_peak_only() -> None:
    cases = [(launch({**FP32, **DRAM}), device("8.0", name, sm_count)) for name, sm_count, _, _ in SLICES]
    for (row, *_), (name, _, flop, moved) in zip(apart(cases), SLICES, strict=True):
        assert row["datasheet_peak_flop_per_s"] == (pytest.approx(flop) if flop else None), name
        assert row["datasheet_peak_bytes_per_s"] == moved, name


def test_simulated_captures_say_so() -> None:
    profiles = [{"run": "base", "tool": "ncu", "profile_id": "p", "simulated": True}]
    assert ask(catalog(kernels=[launch({**FP32, **DRAM})], profiles=profiles))[0]["simulated"] is True
    assert one({**FP32, **DRAM})["simulated"] is False


def test_other_tools_have_no_roofline() -> None:
    assert ask(catalog(kernels=[launch({**FP32, **DRAM}, tool="nsys")])) == []


def test_datasheet_against_the_ceilings_that_the_author_of_a_real_capture_computed() -> None:
    """They took the driver's boost clock of 2.625 GHz, where the datasheet has 2.512 GHz."""
    row = one({**FP32, **DRAM}, gpu="NVIDIA GeForce RTX 5070")
    assert row["datasheet_peak_flop_per_s"] == pytest.approx(32.256e12 * 2.512 / 2.625, rel=0.002)
    assert row["datasheet_peak_bytes_per_s"] == 672e9
