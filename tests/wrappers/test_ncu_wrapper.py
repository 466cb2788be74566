"""ncu_wrapper.sh: one set, a filter that never meets a collective, pages, and clear last lines."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from tests.wrappers.stage import Stage


def option(call: list[str], name: str) -> str:
    return call[call.index(name) + 1]


def test_what_is_asked_is_run_and_written_down(stage: Stage) -> None:
    done = stage.run(
        "ncu_wrapper.sh",
        "--set",
        "detailed",
        "-k",
        "ampere_sgemm_128x64_nn",
        "-s",
        "3",
        "-c",
        "4",
        "--clock-control",
        "none",
        "--cache-control=none",
        "--replay-mode",
        "application",
        "--run-dir",
        "r",
        "sh",
        "-c",
        "exit 3",
        STUB_NCU_CODE="0",
    )
    assert done.returncode == 3
    (call,) = stage.calls("ncu.--set")
    asked = {
        "--set": "detailed",
        "--kernel-name": "ampere_sgemm_128x64_nn",
        "--launch-skip": "3",
        "--launch-count": "4",
        "--clock-control": "none",
        "--cache-control": "none",
        "--replay-mode": "application",
        "--kernel-name-base": "function",
        "--target-processes": "all",
    }
    assert {name: option(call, name) for name in asked} == asked
    written = stage.sidecar("r/ncu/rank0000.run.json")
    assert (
        written["options"]
        | {
            "set": "detailed",
            "kernel_name": "ampere_sgemm_128x64_nn",
            "launch_skip": "3",
            "launch_count": "4",
            "clock_control": "none",
            "cache_control": "none",
            "replay_mode": "application",
        }
        == written["options"]
    )
    assert (written["tool"], written["tool_version"], written["exit_code"]) == ("ncu", "2025.2.0.0", 3)


def test_pages_in_the_c_locale_and_base_units(stage: Stage) -> None:
    stage.run("ncu_wrapper.sh", "--run-dir", "r", "env", LC_ALL="C.UTF-8")
    profile, pages = stage.calls("ncu.--set"), stage.calls("ncu.--import")
    report = str(stage.path / "r/ncu/rank0000.ncu-rep")
    assert profile[0][0] == "LC_ALL=C.UTF-8"  # the application keeps its locale
    common = ["LC_ALL=C", "--import", report, "--csv", "--print-units", "base", "--rename-kernels", "off", "--page"]
    assert pages == [[*common, "raw"], [*common, "details", "--print-details", "all"]]
    assert {"r/ncu/rank0000.raw.csv", "r/ncu/rank0000.details.csv"} <= set(stage.files())


def test_options_of_an_older_ncu(stage: Stage) -> None:
    stage.run("ncu_wrapper.sh", "--run-dir", "r", "true", STUB_NCU_HELP="--details-all")
    pages = stage.calls("ncu.--import")
    assert "--rename-kernels" not in pages[0] and pages[1][-2:] == ["details", "--details-all"]


def test_the_minimal_list(stage: Stage) -> None:
    stage.run("ncu_wrapper.sh", "--set", "minimal", "--run-dir", "r", "true")
    (call,) = stage.calls("ncu.--metrics")
    names = option(call, "--metrics").split(",")
    assert (
        "--set" not in call and len(names) == len(set(names)) and all(re.fullmatch(r"[a-z][a-z0-9_.]+", name) for name in names)
    )
    assert {
        "gpu__time_duration.sum",
        "dram__bytes.sum",
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "l1tex__lsu_writeback_active_mem_lgds.sum",
    } <= set(names)


COLLECTIVES = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "ncclKernel_AllGather_RING_LL",
    "cross_device_reduce_1stage",
    "multimem_all_reduce_kernel",
    "nvshmemi_transfer",
    "reduce_scatter_kernel",
    "one_shot_all_reduce_kernel",
    "allreduce_fusion_kernel_oneshot_lamport",
]
KERNELS = ["ampere_sgemm_128x64_nn", "vectorized_elementwise_kernel", "Kernel2", "reduce_kernel", "n", "ncc", "all",
           "nvjet_tst_64x8", "multi_tensor_apply_kernel", "cross_entropy",
           "one_hot", "_unique", "αβ", "sm90_xmma_gemm", "cudnn::bn_fw"]


def found_by_grep(expression: str, names: list[str]) -> list[str]:
    """Return the names in which POSIX finds the expression: an engine without lookahead."""
    done = subprocess.run(["grep", "-E", "-e", expression], input="\n".join(names), text=True, capture_output=True, check=False)
    return done.stdout.splitlines()


def test_without_a_name_all_but_collectives_are_measured_whatever_engine_ncu_has(stage: Stage) -> None:
    """ncu documents no engine: nothing but what all of them have, found by search as well as by a match of the whole name."""
    stage.run("ncu_wrapper.sh", "--kernel-name-base", "demangled", "--run-dir", "r", "true")
    (call,) = stage.calls("ncu.--set")
    assert option(call, "--kernel-name-base") == "function"
    expression = option(call, "--kernel-name").removeprefix("regex:")
    assert "?" not in expression and "\\" not in expression
    names = [*KERNELS, *COLLECTIVES]
    assert [name for name in names if re.search(expression, name)] == KERNELS
    assert [name for name in names if re.fullmatch(expression, name)] == KERNELS
    assert found_by_grep(expression, names) == KERNELS


@pytest.mark.parametrize("asked", ["regex:gemm", "regex:^void", "regex:reduce_kernel", "regex:[Kk]ernel2", "regex:a b'c$"])
def test_an_expression_is_passed_on_as_it_is(stage: Stage, asked: str) -> None:
    stage.run("ncu_wrapper.sh", "-k", asked, "--run-dir", "r", "true")
    (call,) = stage.calls("ncu.--set")
    assert option(call, "--kernel-name") == asked


def test_an_expression_that_cannot_be_checked_is_said(stage: Stage) -> None:
    done = stage.run("ncu_wrapper.sh", "-k", "regex:^(?!nccl)", "--run-dir", "r", "true")
    assert done.returncode == 0 and "cannot be checked" in done.stderr


@pytest.mark.parametrize("name", [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "void vllm::cross_device_reduce_1stage<float, 2>(RankData*)", "regex:^nccl",
    "regex:ncclDev", "regex:.*", "regex:", "regex:kernel|Kernel", "regex:Reduce|gemm"])
def test_asking_for_a_collective_is_refused(stage: Stage, name: str) -> None:
    done = stage.run("ncu_wrapper.sh", "-k", name, "echo", "started")
    assert (done.returncode, done.stdout) == (2, "") and "collective" in done.stderr


@pytest.mark.parametrize(
    ("name", "base", "expected"),
    [
        ("gemm_kernel", "function", "gemm_kernel"),
        ("cutlass_80_tensorop_s16816gemm", "demangled", None),
        ("void foo<int, (bool)1>(T1*)", "demangled", r"void foo<int, \(bool\)1>\(T1\*\)"),
        ("at::native::reduce_kernel", "demangled", None),
        ("regex:g(e|m)", "function", None),
        (r"regex:foo\(int", "demangled", None),
    ],
)
def test_names_are_compared_with_what_they_are(stage: Stage, name: str, base: str, expected: str | None) -> None:
    stage.run("ncu_wrapper.sh", "-k", name, "--run-dir", "r", "true")
    (call,) = stage.calls("ncu.--set")
    assert option(call, "--kernel-name-base") == base
    assert (expected or name) in option(call, "--kernel-name")


def test_the_base_name_of_cutlass_is_warned_of(stage: Stage) -> None:
    assert "every CUTLASS kernel" in stage.run("ncu_wrapper.sh", "-k", "Kernel2", "--run-dir", "r", "true").stderr


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("permission", ["ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0"]),
        ("nothing", ["none matched -k nope", "--launch-skip 9"]),
    ],
)
def test_no_report_has_a_last_line_with_the_fix(stage: Stage, what: str, words: list[str]) -> None:
    done = stage.run("ncu_wrapper.sh", "-k", "nope", "-s", "9", "--run-dir", "r", "sh", "-c", "exit 5", STUB_NCU=what)
    assert done.returncode == 5
    assert all(word in done.stderr.splitlines()[-1] for word in words), done.stderr
    assert stage.calls("ncu.--import") == []


def test_a_page_that_fails_leaves_no_half_file(stage: Stage) -> None:
    done = stage.run("ncu_wrapper.sh", "--run-dir", "r", "true", STUB_NCU_IMPORT="1")
    assert done.returncode == 0 and "could not print" in done.stderr.splitlines()[-1]
    assert not [name for name in stage.files() if "csv" in name]


def test_several_ranks_are_warned_and_only_rank_0_is_measured(stage: Stage) -> None:
    for rank in "01":
        done = stage.run("ncu_wrapper.sh", "--run-dir", "r", "true", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2")
        assert ("wait (MPI or NCCL)" in done.stderr) == (rank == "0")
    assert len(stage.calls("ncu.--set")) == 1
    assert "wait (MPI or NCCL)" not in stage.run("ncu_wrapper.sh", "--run-dir", "s", "true").stderr


def test_a_missing_ncu_is_told_before_the_start(stage: Stage) -> None:
    stage.without("ncu")
    done = stage.run("ncu_wrapper.sh", "--run-dir", "r", "echo", "started")
    assert (done.returncode, done.stdout) == (127, "")


def test_dry_run_prints_what_a_run_does(stage: Stage) -> None:
    words = ["--run-dir", "a b", "-k", "regex:g(e|m)", "echo", "it's"]
    dry = stage.run("ncu_wrapper.sh", "--dry-run", *words)
    assert stage.files() == []
    stage.run("ncu_wrapper.sh", *words)
    lines = [shlex.split(line) for line in dry.stdout.splitlines() if not line.startswith("#")]
    (profile,) = [line for line in lines if line[0] == "ncu"]
    assert [w for w in profile[1:] if "-r0000" not in w] == [w for w in stage.calls("ncu.--set")[0][1:] if "-r0000" not in w]
    assert [line[3:-2] for line in lines if "--import" in line] == [call[1:] for call in stage.calls("ncu.--import")]
