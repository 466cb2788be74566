"""NVTX of small nsys reports."""

from __future__ import annotations

from pathlib import Path

from tests.readers.nsys_report import codes, global_pid, report, span, strings


def test_ranges_marks_and_what_is_neither(tmp_path: Path) -> None:
    tid = global_pid(7) + 70
    found = report(
        tmp_path,
        StringIds=strings("a", "b", "c", "registered", "Domain"),
        NVTX_EVENTS=[
            span(0, None, eventType=75, domainId=3, textId=5),
            span(0, None, eventType=33, text="category"),
            span(0, None, eventType=39, text="worker"),
            span(0, None, eventType=76, domainId=3),
            span(10, 30, text="aten::mm"),
            span(12, 20, textId=4, domainId=3),
            span(13, 50, eventType=60, text="both", textId=4, endGlobalTid=tid + 1),
            span(14, 15, eventType=60, textId=4, endGlobalTid=tid),
            span(16, None, eventType=34, text="mark"),
            span(17, None, text="open"),
            span(18, 19, eventType=71, text="old"),
            span(18, 19, eventType=999, text="new"),
        ],
    )
    shown = [
        (
            row["kind"],
            row["name"],
            row.get("domain"),
            row["start_ns"],
            row.get("duration_ns"),
            row["thread"],
            row.get("end_thread"),
        )
        for row in found["ranges"]
    ]
    assert shown == [
        ("operator", "aten::mm", None, 10, 20, 70, None),
        ("nvtx_push_pop", "registered", "Domain", 12, 8, 70, None),
        ("nvtx_start_end", "both", None, 13, 37, 70, 71),
        ("nvtx_start_end", "registered", None, 14, 1, 70, None),
        ("nvtx_mark", "mark", None, 16, None, 70, None),
        ("nvtx_push_pop", "open", None, 17, None, 70, None),
        ("nvtx_start_end", "old", None, 18, 1, 70, None),
    ]
    assert codes(found)["unclosed_range"] == 1
    assert codes(found)["unknown_nvtx"] == 1


def test_domains_are_numbered_per_process(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        NVTX_EVENTS=[
            span(0, None, pid=7, eventType=75, domainId=1, text="MPI"),
            span(0, None, pid=8, eventType=75, domainId=1, text="CCCL"),
            span(1, 2, pid=8, domainId=1, text="x"),
            span(1, 2, pid=7, domainId=1, text="y"),
            span(1, 2, pid=9, domainId=1, text="z"),
            span(1, 2, pid=9, domainId=1, text="ncclAllReduce"),
            span(1, 2, pid=9, domainId=0, text="ncclAllReduce"),
        ],
    )
    assert [row.get("domain") for row in found["ranges"]] == ["CCCL", "MPI", "domain 1", "NCCL", None]
    assert codes(found)["inferred_domain"] == 1


def test_ranges_of_a_table_without_types(tmp_path: Path) -> None:
    (row,) = report(tmp_path, NVTX_EVENTS=[{"start": 1, "end": 2, "text": "t", "globalTid": global_pid(7) + 1}])["ranges"]
    assert row == {"process_index": 0, "thread": 1, "start_ns": 1, "duration_ns": 1, "name": "t"}


def test_what_pytorch_and_scripts_say_in_texts(tmp_path: Path) -> None:
    said = {
        "aten::conv2d, seq = 63, op_id = 5, sizes = [[8, 3, 2], [], [4]], input_op_ids = [(3, 0)]":
            ("operator", "aten::conv2d", 63, "[[8, 3, 2], [], [4]]"),
        "aten::conv2d, seq = 63, sizes = [[8, 3, 2]]": ("operator", "aten::conv2d", 63, "[[8, 3, 2]]"),
        "AddmmBackward, stashed seq=7": ("operator", "AddmmBackward", 7, None),
        "FlashAttnFunc, seq = 0, op_id = 9": ("operator", "FlashAttnFunc", 0, None),
        "flash_attn::_forward, op_id = 9": ("operator", "flash_attn::_forward", None, None),
        "aten::add.out": ("operator", "aten::add.out", None, None),
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 3":
            ("operator", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", None, None),
        "record_param_comms, op_id = 3": ("operator", "record_param_comms", None, None),
        "record_param_comms": ("nvtx_push_pop", "record_param_comms", None, None),
        "forward, op_id = 3": ("nvtx_push_pop", "forward", None, None),
        "nccl:all_to_all, op_id = 3": ("nvtx_push_pop", "nccl:all_to_all", None, None),
        "FSDP::pre_forward (blocks.0), op_id = 3": ("nvtx_push_pop", "FSDP::pre_forward (blocks.0)", None, None),
        "cudf::join": ("nvtx_push_pop", "cudf::join", None, None),
        "a, seq = b": ("nvtx_push_pop", "a, seq = b", None, None),
        "line\nbreak, seq = 4": ("operator", "line\nbreak", 4, None),
        "x, seq = 99999999999999999999": ("nvtx_push_pop", "x, seq = 99999999999999999999", None, None),
        "nn.Module: Conv2d_3": ("module", "nn.Module: Conv2d_3", None, None),
        "": ("nvtx_push_pop", "", None, None),
    }
    found = report(tmp_path, NVTX_EVENTS=[span(n, n + 1, text=text) for n, text in enumerate(said)])
    assert [(r["kind"], r["name"], r.get("sequence"), r.get("shapes")) for r in found["ranges"]] == list(said.values())


def test_the_calls_that_nsys_traces_itself_are_modules(tmp_path: Path) -> None:
    """Made by hand after the documentation of --pytorch=functions-trace: no public report has such ranges."""
    modules = ["Linear.forward", "torch.nn.modules.conv.Conv2d.forward", "_Block.forward"]
    others = ["Module.__call__", "Tensor.backward", "SGD.step", "forward", "linear.forward", "Linear.forward: 3"]
    found = report(tmp_path, NVTX_EVENTS=[
        span(0, None, eventType=75, domainId=3, text="PyTorch"),
        *(span(10 * n, 10 * n + 5, domainId=3, text=text) for n, text in enumerate([*modules, *others], 1)),
        span(500, 505, text="Linear.forward"),
    ])
    assert [row["name"] for row in found["ranges"] if row["kind"] == "module"] == modules
    assert {row["name"] for row in found["ranges"] if row["kind"] == "nvtx_push_pop"} == {*others, "Linear.forward"}


def test_steps_are_numbered_ranges_of_any_domain(tmp_path: Path) -> None:
    steps = {"ProfilerStep#3": 3, "step 4": 4, "Step_5": 5, "iteration: 6": 6, "iter=7": 7, "train_step 8": 8, "global step 9": 9,
             "Training Iteration 10": 10}
    others = ["step", "steps 3", "step 3 of 5", "warmup step 3", "step -", "microstep 3", "optimizer_step 3", "step 3.5",
              "step 99999999999999999999"]
    found = report(tmp_path, NVTX_EVENTS=[
        span(0, None, eventType=75, domainId=3, text="mine"),
        *(span(n, n + 1, text=text, domainId=n % 2 * 3) for n, text in enumerate([*steps, *others])),
        span(90, None, eventType=34, text="step 90"),
    ])
    assert [(r["name"], r.get("step"), r["kind"] == "step") for r in found["ranges"]] == [
        *((name, number, True) for name, number in steps.items()), *((name, None, False) for name in [*others, "step 90"])]


def test_operators_are_of_the_default_domain(tmp_path: Path) -> None:
    found = report(tmp_path, NVTX_EVENTS=[span(0, None, eventType=75, domainId=3, text="mine"),
                                          span(1, 2, text="aten::mm, seq = 3", domainId=3)])
    assert [(r["kind"], r["name"], r.get("sequence")) for r in found["ranges"]] == [("nvtx_push_pop", "aten::mm, seq = 3", None)]
