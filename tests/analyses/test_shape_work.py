"""shape_work: whose work a launch is, and when that is certain; and ResNet-50's known operations on a real capture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.analyses import shape_work
from nsightlens.op_cost import work
from nsightlens.views import registry
from tests.catalogs import asking, catalog
from tests.places import ROOT

Call = tuple[int, int | None, str, str | None, str | None]
MM = ("[[3, 5], [5, 7]]", '["float", "float"]')
DATA = ROOT.parent / "shared" / "data" / "kineto"


def analysed(calls: Sequence[Call], kernels: Sequence[tuple[int | None, str, str]], **told: Any) -> pa.Table:
    """Return shape_work of kernels (op, name, family). calls: id, parent, name, shapes, types."""
    ranges = [{"run": "r", "tool": "kineto", "profile_id": "p", "process_id": "q", "kind": "operator", "range_id": place,
               "op_parent_id": parent, "name": name, "shapes": shapes, "types": types} | told.get("ranges", {}).get(place, {})
              for place, parent, name, shapes, types in calls]
    launches = [{"run": "r", "tool": "kineto", "profile_id": "p", "process_id": "q", "kernel_id": number, "launch_index": number,
                 "op_range_id": op, "short_name": name, "kernel_key": name, "family": family, "tensor_cores": False}
                for number, (op, name, family) in enumerate(kernels)]
    connection = catalog(ranges=ranges, kernels=launches)
    ask = asking(connection)
    table = shape_work.analyse(ask)
    assert table.column_names == [name for name, _ in registry.known()["shape_work"].columns]
    return table


def worked(calls: Sequence[Call], kernels: Sequence[tuple[int | None, str, str]], **told: Any) -> list[tuple[Any, ...]]:
    """Return (op, work_flop, minimal_bytes, reason) per kernel."""
    rows = analysed(calls, kernels, **told).to_pylist()
    return [(row["op"], row["work_flop"], row["minimal_bytes"], row["reason"]) for row in rows]


def test_the_innermost_product_counts_once() -> None:
    linear = ("[[3, 5], [7, 5], [7]]", '["float", "float", "float"]')
    addmm = ("[[7], [3, 5], [5, 7], [], []]", '["float", "float", "float", "Scalar", "Scalar"]')
    rows = worked([(1, None, "aten::linear", *linear), (2, 1, "aten::addmm", *addmm)], [(2, "sgemm", "gemm"), (1, "odd", "gemm")])
    assert rows[0] == ("aten::addmm", 210, 4 * (7 + 15 + 35 + 21), None)
    assert rows[1][1:] == (None, None, "an operator inside this one has counted")


def test_an_operator_without_a_formula_works_for_the_product_around_it() -> None:
    rows = worked([(1, None, "aten::mm", *MM), (2, 1, "mylib::helper", None, None)], [(2, "my_gemm", "gemm")])
    assert rows == [("aten::mm", 210, 4 * 71, None)]


def test_only_the_kernel_of_the_product_carries_it() -> None:
    kernels = [(1, "transpose", "memory"), (1, "sgemm", "gemm"), (1, "splitKreduce_kernel", "gemm")]
    rows = worked([(1, None, "aten::mm", *MM)], kernels)
    assert [row[1] for row in rows] == [None, 210, None]
    assert rows[0][3] == rows[2][3] == "a helper of mm, which does none of its multiply-adds"


def test_two_kernels_of_one_product_are_not_told_apart() -> None:
    rows = worked([(1, None, "aten::mm", *MM)], [(1, "winograd_data", "gemm"), (1, "sgemm", "gemm")])
    assert [row[1:] for row in rows] == [(None, None, "kernels of the call: 2, products: 1; they cannot be distinguished")] * 2


def test_the_work_of_the_whole_call_stands_at_all_of_its_launches() -> None:
    kernels = [(1, "transpose", "memory"), (1, "winograd_data", "gemm"), (1, "sgemm", "gemm")]
    table = analysed([(1, None, "aten::mm", *MM)], kernels)
    found = {(row["call_flop"], row["call_bytes"], row["call_launches"], row["op_range_id"]) for row in table.to_pylist()}
    assert found == {(210, 4 * 71, 3, 1)}


def test_a_lone_kernel_carries_the_product_whatever_its_family() -> None:
    assert worked([(1, None, "aten::mm", *MM)], [(1, "strange", "other")])[0][1] == 210


def test_other_operators_count_where_they_launched_one_kernel() -> None:
    add = ("[[4], [4], []]", '["float", "float", "Scalar"]')
    calls = [(1, None, "aten::add", *add), (2, None, "aten::relu", "[[4]]", '["float"]')]
    rows = worked(calls, [(1, "add", "elementwise"), (2, "relu", "elementwise"), (2, "more", "elementwise")],
                  ranges={1: {"concrete_inputs": '["", "", "1"]'}})
    assert rows[0] == ("aten::add", 4, 48, None)
    assert [row[3] for row in rows[1:]] == ["2 kernels share the work of one call"] * 2


def test_a_copy_inside_a_product_is_not_its_work() -> None:
    copy = ("[[3, 5], [3, 5], []]", '["float", "float", "Scalar"]')
    rows = worked([(1, None, "aten::mm", *MM), (2, 1, "aten::copy_", *copy)], [(2, "copy", "memory"), (1, "sgemm", "gemm")])
    assert rows == [("aten::copy_", 0, 120, None), ("aten::mm", 210, 4 * 71, None)]


def test_launches_without_an_operator_or_a_formula_say_so() -> None:
    rows = worked([(1, None, "mylib::x", "[[3]]", None)], [(None, "a", "gemm"), (1, "b", "gemm")])
    assert rows == [(None, None, None, "no operator around the launch"), (None, None, None, "no formula for mylib::x")]


BACKWARD = ("[[2, 4, 9, 9], [2, 8, 9, 9], [8, 4, 3, 3]]", '["float", "float", "float"]')
FLOP = 2 * (2 * 8 * 81) * 4 * 9
BYTES = 4 * (2 * 4 * 81 + 2 * 8 * 81 + 8 * 36)


def test_each_kernel_of_a_backward_convolution_has_one_of_its_products() -> None:
    """The operators inside tell which in 2021, kernel names later; the work of both is equal."""
    calls: list[Call] = [(1, None, "aten::cudnn_convolution_backward", *BACKWARD),
                         (2, 1, "aten::cudnn_convolution_backward_input", "[[], [2, 8, 9, 9]]", None),
                         (3, 1, "aten::cudnn_convolution_backward_weight", "[[], [2, 8, 9, 9]]", None)]
    rows = worked(calls, [(2, "scalePackedTensor", "elementwise"), (2, "dgrad", "convolution"), (3, "sgemm", "gemm")])
    assert [row[:3] for row in rows[1:]] == [("aten::cudnn_convolution_backward", FLOP, BYTES)] * 2
    winograd = worked(calls, [(2, "dgrad", "convolution"), (3, "wgradData", "convolution"), (3, "sgemm", "gemm")])
    assert [row[1] for row in winograd] == [FLOP, None, None]
    named = worked(calls[:1], [(1, "x_dgrad_y", "convolution"), (1, "wgrad1", "convolution"), (1, "wgrad2", "convolution")])
    assert [row[1] for row in named] == [FLOP, None, None]
    halves = worked(calls[:1], [(1, "wgrad1", "convolution"), (1, "wgrad2", "convolution")])
    assert [row[1] for row in halves] == [None, None]


def test_one_kernel_for_two_gradients_that_were_asked_for_is_not_certain() -> None:
    shapes = "[[2, 8, 9, 9], [2, 4, 9, 9], [8, 4, 3, 3], [], [], [], [], [], [], [], []]"
    values = json.dumps(["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"])
    calls: list[Call] = [(1, None, "aten::convolution_backward", shapes, json.dumps(["float"] * 3 + ["Scalar"] * 8))]
    rows = worked(calls, [(1, "conv", "convolution")], ranges={1: {"concrete_inputs": values}})
    assert rows[0][1:] == (None, None, "kernels of the call: 1, products: 2; they cannot be distinguished")
    untold = worked(calls, [(1, "conv", "convolution")])
    assert (untold[0][1], untold[0][3]) == (2 * (2 * 8 * 81) * 4 * 9, None), "one may be all that was asked for"


def test_a_forward_convolution_finds_its_result_at_the_backward_call() -> None:
    calls: list[Call] = [
        (1, None, "aten::convolution", "[[2, 4, 9, 9], [8, 4, 3, 3]]", '["float", "float"]'),
        (2, 1, "aten::cudnn_convolution", "[[2, 4, 9, 9], [8, 4, 3, 3]]", '["float", "float"]'),
        (3, None, "ConvolutionBackward0", "[[2, 8, 9, 9]]", '["float"]'),
    ]
    rows = worked(calls, [(2, "implicit_gemm", "convolution")], ranges={3: {"forward_id": 1}})
    assert rows[0][:2] == ("aten::cudnn_convolution", FLOP)
    called: list[Call] = [*calls[:2], (3, None, "ConvolutionBackward0", None, None),
                          (4, 3, "aten::convolution_backward", "[[2, 8, 9, 9], [2, 4, 9, 9], [8, 4, 3, 3]]", None)]
    assert worked(called, [(2, "implicit_gemm", "convolution")], ranges={3: {"forward_id": 1}})[0][1] == FLOP
    assert "stride" in worked(calls, [(2, "implicit_gemm", "convolution")])[0][3]


@pytest.mark.parametrize("shapes", ["[", "{}", "[[1.5]]", "[3]", "[" * 100_000])
def test_a_backward_call_whose_shapes_are_none_tells_nothing(shapes: str) -> None:
    calls: list[Call] = [(1, None, "aten::cudnn_convolution", "[[2, 4, 9, 9], [8, 4, 3, 3]]", '["float", "float"]'),
                         (2, None, "ConvolutionBackward0", shapes, None)]
    assert worked(calls, [(1, "conv", "convolution")], ranges={2: {"forward_id": 1}})[0][1] is None


def test_ncu_and_profiles_without_shapes_have_no_row() -> None:
    assert worked([(1, None, "aten::mm", None, None)], [(1, "sgemm", "gemm")]) == []


@pytest.mark.parametrize(("type_", "tensor_cores", "peak"), [
    ("float", False, "fp32"), ("float", True, "tensor_tf32"), ("float", None, None), ("c10::Half", None, "tensor_fp16"),
    ("c10::BFloat16", True, "tensor_bf16"), ("double", True, "tensor_fp64"), ("double", False, "fp64"),
])
def test_the_peak_of_a_product(type_: str, tensor_cores: bool | None, peak: str | None) -> None:
    launch = shape_work.Launch("gemm", "gemm", tensor_cores, "aten::mm")
    found = work("aten::mm", MM[0], json.dumps([type_] * 2), None)
    assert shape_work._known(launch, found, shape_work.WorkFigures()).peak_key == peak


@pytest.mark.captures
@pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")
def test_a_real_resnet_50_does_8_gflop_per_image(tmp_path: Path) -> None:
    """4.09 G multiply-adds per image of 224 x 224 in the forward pass, at 32 images a step; the backward pass twice that
    but for the gradient of the first convolution's input, which nobody asks for. The recording has 6 steps."""
    trace = DATA / "pytorch__kineto__tb_plugin__resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz"
    store = nl.ingest([trace], store=tmp_path / "store")
    rows = store.sql("""
        SELECT f.name, f.shapes, f.types, b.shapes AS result FROM ranges AS f LEFT JOIN ranges AS b ON b.forward_id = f.range_id
            AND b.name LIKE '%ConvolutionBackward%'
        WHERE f.name IN ('aten::cudnn_convolution', 'aten::addmm')""").to_pylist()
    results = [tuple(json.loads(row["result"])[0]) if row["result"] else None for row in rows]
    found = [work(row["name"], row["shapes"], row["types"], None, dims) for row, dims in zip(rows, results, strict=True)]
    assert all(one.flop is not None for one in found)
    per_image = sum(one.flop or 0 for one in found) / 6 / 32
    assert per_image == 2 * 4_089_184_256
    backward = store.sql("SELECT name, shapes, types FROM ranges WHERE name = 'aten::cudnn_convolution_backward'").to_pylist()
    each = [work(r["name"], r["shapes"], r["types"], None).parts[0].flop for r in backward]
    assert sum(each) == sum(one.flop or 0 for one in found if one.formula == "cudnn_convolution")
    launches = store.view("shape_work").to_pylist()
    single = [r for r in launches if r["op"] == "aten::cudnn_convolution" and r["work_flop"]]
    assert len(single) == 258 and {r["peak_key"] for r in single} == {"fp32"}
    others = {r["reason"] for r in launches if r["op"] == "aten::cudnn_convolution" and not r["work_flop"]}
    assert others == {"kernels of the call: 4, products: 1; they cannot be distinguished",
                      "a helper of cudnn_convolution, which does none of its multiply-adds"}
