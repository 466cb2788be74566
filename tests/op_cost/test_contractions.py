"""Products, convolutions and attention: answers worked out by hand, in the ways that the tools write a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nsightlens.op_cost import OperatorWork, work

HALF, FLOAT = "c10::Half", "float"


def written(arguments: tuple[Any, ...]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return shapes, types and plain values of arguments that are [dims], ([dims], type) or plain text."""
    pairs = [([], "Scalar") if isinstance(one, str) else one if isinstance(one, tuple) else (one, FLOAT) for one in arguments]
    return [one[0] for one in pairs], [one[1] for one in pairs], [one if isinstance(one, str) else "" for one in arguments]


def call(name: str, *arguments: Any, output: tuple[int, ...] | None = None) -> OperatorWork:
    """Return the work of a call; arguments as `written` takes them."""
    shapes, types, values = (json.dumps(column) for column in written(arguments))
    return work(f"aten::{name}", shapes, types, values, output)


PRODUCTS: list[tuple[str, tuple[Any, ...], int, int]] = [
    ("mm", ([3, 5], [5, 7]), 2 * 3 * 5 * 7, 15 + 35 + 21),
    ("mv", ([3, 5], [5]), 30, 15 + 5 + 3),
    ("dot", ([5], [5]), 10, 5 + 5 + 1),
    ("vdot", ([5], [5]), 10, 5 + 5 + 1),
    ("bmm", ([2, 3, 5], [2, 5, 7]), 420, 30 + 70 + 42),
    ("addmm", ([7], [3, 5], [5, 7], "1", "1"), 210, 7 + 15 + 35 + 21),
    ("addmm", ([3, 7], [3, 5], [5, 7], "0.", "1"), 210, 15 + 35 + 21),  # beta 0: what is added is not read
    ("baddbmm", ([2, 3, 7], [2, 3, 5], [2, 5, 7], "1", "0.5"), 420, 42 + 30 + 70 + 42),
    *((name, ([3, 7], [3, 5], [5, 7], "1", "1"), 210, 21 + 15 + 35 + 21) for name in ("addmm_", "_addmm_activation")),
    *((name, ([3], [3, 5], [5], "1", "1"), 30, 3 + 15 + 5 + 3) for name in ("addmv", "addmv_")),
    ("baddbmm_", ([2, 3, 7], [2, 3, 5], [2, 5, 7], "1", "1"), 420, 42 + 30 + 70 + 42),
    *((name, ([2, 3, 7], [2, 3, 5], [2, 5, 7], "0", "1"), 420, 30 + 70 + 42) for name in ("baddbmm", "baddbmm_")),
    *((name, ([3, 7], [3, 5], [5, 7], "0", "1"), 210, 15 + 35 + 21) for name in ("addmm_", "_addmm_activation")),
    *((name, ([3], [3, 5], [5], "0", "1"), 30, 15 + 5 + 3) for name in ("addmv", "addmv_")),
    ("addbmm_", ([3, 7], [2, 3, 5], [2, 5, 7], "1", "1"), 420, 21 + 30 + 70 + 21),
    ("addbmm", ([3, 7], [2, 3, 5], [2, 5, 7], "1", "1"), 420, 21 + 30 + 70 + 21),
    ("linear", ([2, 3, 5], [7, 5], [7]), 420, 30 + 35 + 7 + 42),
    ("linear", ([5], [7, 5], ""), 70, 5 + 35 + 7),
    ("matmul", ([4, 1, 3, 5], [2, 5, 7]), 2 * 8 * 3 * 5 * 7, 60 + 70 + 8 * 21),
    ("matmul", ([3, 5], [5]), 30, 15 + 5 + 3),
]


@pytest.mark.parametrize(("name", "arguments", "flop", "elements"), PRODUCTS)
def test_products(name: str, arguments: tuple[Any, ...], flop: int, elements: int) -> None:
    found = call(name, *arguments)
    assert (found.flop, found.bytes, found.kind, found.element, found.reason) == (flop, 4 * elements, "gemm", "float", None)


def test_the_argument_that_lacks_a_shape_is_counted_from_one() -> None:
    assert call("mm", [3, 5], "").reason == "no shape of argument 2"


def test_a_product_of_half_precision_moves_half_the_bytes() -> None:
    assert call("mm", ([3, 5], HALF), ([5, 7], HALF)).bytes == 2 * (15 + 35 + 21)


def test_a_product_of_bytes_is_written_in_32_bits() -> None:
    found = call("_int_mm", ([16, 32], "signed char"), ([32, 8], "signed char"))
    assert (found.flop, found.bytes) == (2 * 16 * 32 * 8, 16 * 32 + 32 * 8 + 4 * 16 * 8)


def test_a_scaled_product_has_a_result_of_its_own_type() -> None:
    fp8 = "c10::Float8_e4m3fn"
    found = call("_scaled_mm", ([16, 32], fp8), ([32, 8], fp8), [], [], "", "", "15", "False")
    assert (found.flop, found.bytes, found.element) == (2 * 16 * 32 * 8, 16 * 32 + 32 * 8 + 2 * 16 * 8, "Float8_e4m3fn")
    factors = call("_scaled_mm", ([16, 32], fp8), ([32, 8], fp8), [16, 1], [1, 8], ([8], HALF), "", "15", "False")
    assert factors.bytes == 16 * 32 + 32 * 8 + 4 * 16 + 4 * 8 + 2 * 8 + 2 * 16 * 8


CONVOLUTION = ([8, 3, 224, 224], [64, 3, 7, 7])
RESULT = 8 * 64 * 112 * 112


CONVOLUTIONS = [
    ("conv2d", ("", "[2, 2]", "[3, 3]", "[1, 1]", "1")),
    ("conv2d", ("", "[2]", "[3]", "[1]", "1")),
    ("convolution", ("", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1")),
    ("_convolution", ("", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1", "False", "False", "True", "True")),
    ("cudnn_convolution", ("[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False", "True")),
    ("miopen_convolution", ("", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False")),
]


@pytest.mark.parametrize(("name", "rest"), CONVOLUTIONS)
def test_a_convolution_by_every_name_that_it_has_on_the_way(name: str, rest: tuple[str, ...]) -> None:
    found = call(name, *CONVOLUTION, *rest)
    assert found.flop == 2 * RESULT * 3 * 7 * 7
    assert found.bytes == 4 * (8 * 3 * 224 * 224 + 64 * 3 * 49 + RESULT)


def test_dilation_and_groups() -> None:
    found = call("convolution", [1, 8, 10, 10], [16, 2, 3, 3], [16], "[1, 1]", "[0, 0]", "[2, 2]", "False", "[0, 0]", "4")
    assert found.flop == 2 * (16 * 6 * 6) * 2 * 9  # a result of 10 - 2 x (3 - 1) = 6
    assert found.bytes == 4 * (800 + 16 * 18 + 16 + 16 * 36)


def test_one_and_three_dimensions() -> None:
    assert call("conv1d", [2, 4, 9], [6, 4, 3], "", "[1]", "[0]", "[1]", "1").flop == 2 * (2 * 6 * 7) * 4 * 3
    found = call("conv3d", [1, 2, 4, 4, 4], [5, 2, 2, 2, 2], "", "[2, 2, 2]", "[0, 0, 0]", "[1, 1, 1]", "1")
    assert found.flop == 2 * (5 * 8) * 2 * 8


def test_a_depthwise_convolution_reads_its_bias() -> None:
    found = call("_conv_depthwise2d", [2, 4, 8, 8], [4, 1, 3, 3], "[3, 3]", [4], "[1, 1]", "[1, 1]", "[1, 1]")
    assert (found.flop, found.bytes) == (2 * 512 * 9, 4 * (512 + 36 + 4 + 512))


def test_a_stride_wider_than_the_kernel_passes_over_the_rest_of_the_input() -> None:
    found = call("conv2d", [2, 4, 8, 8], [6, 4, 1, 1], "", "[2, 2]", "[0, 0]", "[1, 1]", "1")
    assert found.bytes == 4 * (2 * 4 * 16 + 24 + 2 * 6 * 16)
    back = call("convolution_backward", [2, 6, 4, 4], [2, 4, 8, 8], [6, 4, 1, 1], "[0]", "[2, 2]", "[0, 0]", "[1, 1]", "False",
                "[0, 0]", "1", "[True, True, False]")
    assert back.parts[0].bytes == back.parts[1].bytes == found.bytes


def test_a_transposed_convolution_counts_over_its_input() -> None:
    found = call("conv_transpose2d", [2, 4, 5, 5], [4, 6, 3, 3], "", "[2, 2]", "[1, 1]", "[1, 1]", "1", "[1, 1]")
    assert found.flop == 2 * (2 * 4 * 25) * 6 * 9
    assert found.bytes == 4 * (200 + 216 + 2 * 6 * 100)  # (5 - 1) x 2 - 2 + 3 + 1 = 10


def test_a_dilated_transposed_convolution_of_miopen() -> None:
    found = call("miopen_convolution_transpose", [2, 4, 5, 5], [4, 6, 3, 3], "", "[1, 1]", "[1, 1]", "[2, 2]", "[2, 2]", "1")
    assert found.bytes == 4 * (200 + 216 + 2 * 6 * 144)  # (5 - 1) x 2 - 2 + 5 + 1 = 12


def test_without_arguments_the_linked_backward_call_tells_the_result() -> None:
    """In 2021 Kineto wrote no plain arguments: stride and padding are not known."""
    shapes, types = "[[8, 3, 224, 224], [64, 3, 7, 7], [], []]", '["float", "float", "GenericList", "GenericList"]'
    assert work("aten::cudnn_convolution", shapes, types, None).flop is None
    assert "stride" in (work("aten::cudnn_convolution", shapes, types, None).reason or "")
    assert work("aten::cudnn_convolution", shapes, types, None, (8, 64, 112, 112)).flop == 2 * RESULT * 3 * 49
    for other in ((8, 32, 112, 112), (9, 64, 112, 112), (7, 64, 112, 112), (8, 64, 112)):
        assert work("aten::cudnn_convolution", shapes, types, None, other).flop is None


BACKWARD = ([8, 64, 112, 112], [8, 3, 224, 224], [64, 3, 7, 7])


@pytest.mark.parametrize(("mask", "parts"), [("True, True, False", 2), ("False, True, False", 1), ("False, False, True", 0)])
def test_a_backward_convolution_has_a_product_per_gradient(mask: str, parts: int) -> None:
    found = call("convolution_backward", *BACKWARD, "[0]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1", f"[{mask}]")
    each = 2 * RESULT * 3 * 49
    assert (found.flop, [part.flop for part in found.parts], found.reason) == (parts * each, [each] * parts, None)
    data, weight = 8 * 3 * 224 * 224, 64 * 3 * 49
    assert {part.bytes for part in found.parts} <= {4 * (RESULT + data + weight)}
    assert found.bytes == (4 * (RESULT + 2 * data + 2 * weight), 4 * (RESULT + data + weight), 0)[2 - parts]


def test_a_backward_convolution_without_arguments_tells_what_each_gradient_costs() -> None:
    shapes = json.dumps([*(list(dims) for dims in (BACKWARD[1], BACKWARD[0], BACKWARD[2])), [], []])
    found = work("aten::cudnn_convolution_backward", shapes, '["float", "float", "float", "Int", "GenericList"]', None)
    assert found.flop is None and [part.flop for part in found.parts] == [2 * RESULT * 3 * 49] * 2
    assert found.reason == "the gradients requested were not recorded"


def test_a_backward_convolution_of_one_dimension() -> None:
    found = call("convolution_backward", [2, 6, 7], [2, 4, 9], [6, 4, 3], "[0]", "[1]", "[0]", "[1]", "False", "[0]", "1",
                 "[True, True, False]")
    assert found.flop == 2 * 2 * (2 * 6 * 7) * 4 * 3


@pytest.mark.parametrize(("gradient", "data"), [([2, 4, 7, 7], [2, 6, 9, 9]), ([2, 6, 9, 9], [2, 4, 7, 7])])
def test_the_channels_tell_which_side_is_transposed(gradient: list[int], data: list[int]) -> None:
    """weight[0] is the channels of the result, and of the input where the convolution is transposed."""
    shapes = json.dumps([gradient, data, [4, 6, 3, 3]])
    found = work("aten::convolution_backward", shapes, '["float", "float", "float"]', None)
    assert [part.flop for part in found.parts] == [2 * (2 * 4 * 49) * 6 * 9] * 2


def test_channels_that_are_all_alike_do_not_tell_which_side_is_transposed() -> None:
    shapes = json.dumps([[2, 4, 7, 7], [2, 4, 9, 9], [4, 4, 3, 3]])
    found = work("aten::convolution_backward", shapes, '["float", "float", "float"]', None)
    assert found.parts == () and found.reason == "whether the convolution is transposed was not recorded"


def test_attention_counts_the_pairs_that_no_causal_mask_leaves_out() -> None:
    tensors = [([2, 4, 16, 32], HALF)] * 3
    full = call("_scaled_dot_product_flash_attention", *tensors, "0.", "False", "False", "0.1")
    causal = call("_scaled_dot_product_flash_attention", *tensors, "0.", "True", "False", "0.1")
    assert full.flop == 2 * 2 * 4 * 16 * 16 * (32 + 32)
    assert causal.flop == 2 * 2 * 4 * (16 * 17 // 2) * (32 + 32)
    assert full.bytes == causal.bytes == 2 * 4 * (2 * 4 * 16 * 32)


def test_attention_with_heads_last_and_fewer_heads_of_keys() -> None:
    query, key = ([2, 16, 8, 32], HALF), ([2, 16, 2, 32], HALF)
    found = call("_flash_attention_forward", query, key, key, "", "", "16", "16", "0.", "False", "False", "0.1", "", "", "", "")
    assert found.flop == 2 * 2 * 8 * 16 * 16 * 64
    assert found.bytes == 2 * (2 * 2 * 16 * 8 * 32 + 2 * 2 * 16 * 2 * 32)


def test_what_the_shapes_of_attention_do_not_tell_is_unknown() -> None:
    query = ([2, 16, 8, 32], HALF)
    many = call("_flash_attention_forward", query, query, query, ([3], "int"), ([3], "int"), "16", "16", "0.", "False", "False",
                "0.1", "", "", "", "")
    longer = call("_scaled_dot_product_flash_attention", query, ([2, 16, 9, 32], HALF), ([2, 16, 9, 32], HALF), "0.", "True",
                  "False", "0.1")
    assert (many.flop, longer.flop) == (None, None)
    assert "several lengths" in (many.reason or "") and "two lengths" in (longer.reason or "")


def test_a_sliding_window_leaves_pairs_out() -> None:
    query = ([2, 16, 8, 32], HALF)
    rest = ("", "", "16", "16", "0.", "False", "False", "0.1")
    assert call("_flash_attention_forward", query, query, query, *rest, "4", "0", "", "").reason == (
        "a sliding window leaves pairs out")
    assert call("_flash_attention_forward", query, query, query, *rest, "-1", "-1", "", "").flop == 2 * 2 * 8 * 16 * 16 * 64


def test_flash_attention_by_its_own_name() -> None:
    shapes, types = json.dumps([[2, 16, 8, 32]] * 3 + [[]] * 8), json.dumps([HALF] * 3 + ["Scalar"] * 8)
    values = json.dumps(["", "", "", "0.", "0.1", "True", "-1", "-1", "0.", "", "False"])
    assert work("flash_attn::_flash_attn_forward", shapes, types, values).flop == 2 * 2 * 8 * (16 * 17 // 2) * 64


def test_backward_attention_has_five_products() -> None:
    tensors = [([2, 4, 16, 32], HALF)] * 5
    found = call("_scaled_dot_product_flash_attention_backward", *tensors, ([2, 4, 16], FLOAT), "", "", "16", "16", "0.", "False",
                 "", "", "0.1")
    assert found.flop == 5 * 2 * 2 * 4 * 16 * 16 * 32


@pytest.mark.parametrize("shapes", [
    None, "", "[", "{}", "[3]", '["x", [2, 2]]', "[[2, -1], [2, 2]]", "[[2, 3], [4, 5]]", "[[], []]"])
def test_shapes_that_are_none_have_no_work_but_a_reason(shapes: str | None) -> None:
    found = work("aten::mm", shapes, '["float", "float"]', None)
    assert (found.flop, found.bytes) == (None, None) and found.reason


def test_without_types_there_are_operations_but_no_bytes() -> None:
    """PyTorch's NVTX ranges hold sizes only."""
    found = work("aten::mm", "[[3, 5], [5, 7]]", None, None)
    assert (found.flop, found.bytes, found.element) == (210, None, None)


def test_types_that_are_not_one_for_each_argument_are_unknown() -> None:
    for types in ('["float"]', '["float", "float", "float"]'):
        assert work("aten::mm", "[[3, 5], [5, 7]]", types, None).bytes is None


def test_an_unknown_operator_has_no_work() -> None:
    assert work("mylib::gemm", "[[3, 5], [5, 7]]", None, None).reason == "no formula for this operator"
