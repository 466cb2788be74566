"""Operators that pass over their tensors once: bytes and operations worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.op_cost.test_contractions import HALF, call

CALLS: list[tuple[str, tuple[Any, ...], int | None, int]] = [
    ("add", ([4, 6], [4, 6], "1"), 24, 3 * 96),
    ("add", ([4, 6], [6], "0.5"), 48, 96 + 24 + 96),  # a factor is one more operation
    ("add_", (([4, 6], HALF), ([4, 6], "float"), "1"), 24, 48 + 96 + 48),
    ("mul", (([4, 6], HALF), ([4, 6], "float")), 24, 48 + 96 + 96),  # the result is float
    ("mul", ([4, 1], [1, 6]), 24, 16 + 24 + 96),
    ("mul", (([4], HALF), ([], "double")), 4, 16),  # a number is an argument, not a tensor
    ("mul", (([4], "bool"), ([], "bool")), 0, 8),
    ("div", ([4], "2"), 4, 32),
    ("eq", ([4], [4]), 0, 36),
    ("relu_", ([4],), 0, 32),
    ("exp", ([4],), None, 32),
    ("pow", ([4], "2"), 4, 32),
    ("pow", ([4], "3"), None, 32),
    ("threshold_backward", ([4], [4], "0"), 0, 48),
    ("addcmul_", ([4], [4], [4], "1"), 8, 64),
    ("copy_", ([4], ([4], HALF), "True"), 0, 24),
    ("fill_", ([4], "0"), 0, 16),
    ("where", (([4], "bool"), [4], "0."), 0, 36),
    ("sum", ([4, 6], "[0]", "True", ""), 24, 96 + 24),
    ("sum", ([4, 6], ""), 24, 96),  # one number of a result is no traffic
    ("sum", (([4, 6], "int"), "[-1]", "False", ""), 0, 96 + 32),  # sums of integers are 64 bits wide
    ("mean", (([4, 6], HALF), "[-1]", "True", "6"), 24, 48 + 16),
    ("amax", ([4, 6], "[0, 1]", "False"), 0, 96),
    ("argmax", ([4, 6], "-1", "False"), 0, 96 + 32),
    ("all", (([4, 6], "bool"),), 0, 24),
    ("mse_loss_backward", ([], [4], [4], "1"), 12, 48),
    ("_softmax", ([4, 6], "-1", "False"), 96, 192),
    ("_softmax", (([4, 6], HALF), "-1", "True"), 96, 48 + 96),
    ("_log_softmax_backward_data", ([4, 6], [4, 6], "1", "6"), 96, 288),
    ("_softmax_backward_data", (([4, 6], HALF), ([4, 6], "float"), "1", "5"), 96, 48 + 96 + 48),  # 5: half precision
    ("native_layer_norm", ([4, 6], "[6]", [6], [6], "1e-5"), 8 * 24, 96 + 48 + 96 + 32),
    ("native_batch_norm", ([2, 3, 4, 4], [3], [3], [3], [3], "True", "0.1", "1e-5"), 8 * 96, 768 + 48 + 24 + 24),
    ("cudnn_batch_norm", ([2, 3, 4, 4], [3], [3], [3], [3], "False", "0.1", "1e-5"), 4 * 96, 768 + 48),
    ("native_group_norm_backward", ([2, 4, 3], [2, 4, 3], [2, 2], [2, 2], [4], "2", "4", "3", "2", "[True, True, True]"), 9 * 24,
     96 + 96 + 16 + 16 + 16 + 96 + 16 + 16),
    ("max_pool2d_with_indices", ([1, 2, 5, 5], "[3, 3]", "[2, 2]", "[0, 0]", "[1, 1]", "False"), 0, 200 + 8 * 12),
    ("max_pool2d_with_indices", ([1, 2, 6, 6], "[3]", "[2]", "[0]", "[1]", "True"), 0, 288 + 18 * 12),
    ("max_pool2d_with_indices", ([1, 2, 2, 2], "[2]", "[3]", "[1]", "[1]", "True"), 0, 32 + 2 * 12),  # no window begins past it
    ("avg_pool2d", ([1, 2, 4, 4], "[2, 2]", "[]", "[0, 0]", "False", "True", ""), 32, 128 + 32),
    ("embedding", (([100, 8], HALF), ([5], "long int"), "-1", "False", "False"), 0, 40 + 80 + 80),
    ("embedding", (([3, 8], HALF), ([5], "long int"), "-1", "False", "False"), 0, 40 + 48 + 80),
    ("index_select", ([4, 6], "1", ([2], "long int")), 0, 16 + 32 + 32),
]


@pytest.mark.parametrize(("name", "arguments", "flop", "size"), CALLS)
def test_known_answers(name: str, arguments: tuple[Any, ...], flop: int | None, size: int) -> None:
    found = call(name, *arguments)
    assert (found.flop, found.bytes, found.kind) == (flop, size, "stream")
    assert (found.reason is None) == (flop is not None)


def test_a_tensor_behind_the_operands_is_a_buffer_for_the_result() -> None:
    assert call("sigmoid_backward", [4], [4], [4]).bytes == call("sigmoid_backward", [4], [4]).bytes == 48


@pytest.mark.parametrize(("name", "arguments"), [
    ("add", ([4, 6], [5], "1")), ("sum", ([4, 6], "x", "", "")), ("max_pool2d_with_indices", ([1, 2, 5, 5], "", "", "", "", "")),
    ("div", (([4], "int"), "2")), ("mean", (([4, 6], HALF), "[-1]", "True", "99")),
])
def test_what_is_not_told_is_unknown(name: str, arguments: tuple[Any, ...]) -> None:
    found = call(name, *arguments)
    assert found.bytes is None and found.reason
