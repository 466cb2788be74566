"""Work of CUDA graphs as PyTorch of 2026 exports it with cuda_graph_annotations: lanes, annotations, collectives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.kineto_text import event, kernel, read, trace

# as torch/profiler's exporter in Python writes them: all values but the streams as text, after Kineto's own arguments
COLLECTIVE = {"Collective name": "allreduce", "In msg nelems": "1024", "Out msg nelems": "1024", "Group size": "8",
              "Process Group Name": "5", "Process Group Description": "tp", "Process Group Ranks": "[0, 1]",
              "dtype": "bfloat16", "Seq": "17"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


def _node(name: str = "k", **args: Any) -> str:
    return kernel(name=name, **{"graph id": 3, "graph node id": (3 << 32) + 5, **args})


@pytest.mark.parametrize("odd", [[], [event("something_new", "x", "1.0")]], ids=["typed", "odd"])
def test_the_stream_is_that_on_which_the_work_ran_not_its_lane(path: Path, odd: list[str]) -> None:
    copy = {"device": 0, "stream": 62, "original_stream": 0, "correlation": 9, "bytes": 8}
    found = read(path, trace(
        _node(stream=62, original_stream=143), _node(stream=7, annotated_stream=61), kernel(stream=20),
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", "2000009.0", "1.0", copy, pid=0, tid=62), *odd))
    assert [row["stream"] for row in found["kernels"]] == [143, 7, 20]
    assert [row["stream"] for row in found["memory_ops"]] == [0]


@pytest.mark.parametrize("odd", [[], [event("something_new", "x", "1.0")]], ids=["typed", "odd"])
def test_annotations_of_nodes_are_columns(path: Path, odd: list[str]) -> None:
    found = read(path, trace(
        _node().replace('"graph id": 3', '"graph id": 3, "name": "attention"'), _node(module_fqn="layers.0.attention.wq"),
        kernel(), kernel(module_fqn="no.node"), *odd))
    rows = [(row["annotation"], row["annotated_module"]) for row in found["kernels"]]
    assert rows == [("attention", None), (None, "layers.0.attention.wq"), (None, None), (None, None)]


def test_collectives_of_replayed_graphs_have_what_the_capture_said(path: Path) -> None:
    (row,) = read(path, trace(_node("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", **COLLECTIVE)))["kernels"]
    told = ("collective", "message_bytes", "group_size", "group_name", "group_seq")
    assert tuple(row[name] for name in told) == ("allreduce", 2048, 8, "5", 17)
