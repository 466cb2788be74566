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
    ("where", (([4], "bool"), [4], [6, 1]), 0, 4 + 16 + 24 + 96),
    ("sum", ([4, 6], "[0]", "True", ""), 24, 96 + 24),
    ("sum", ([4, 6], ""), 24, 96),  # one number of a result is no traffic
    ("sum", (([4, 6], "int"), "[-1]", "False", ""), 0, 96 + 32),  # sums of integers are 64 bits wide
    ("mean", (([4, 6], HALF), "[-1]", "True", "6"), 24, 48 + 16),
    ("mean", (([4, 6], HALF), "6"), 24, 48),
    ("sum", (([4, 6], HALF), "[0]", "True"), 24, 48 + 12),  # the type was not recorded: that of what is summed
    ("amax", ([4, 6], "[0, 1]", "False"), 0, 96),
    ("argmax", ([4, 6], "-1", "False"), 0, 96 + 32),
    ("all", (([4, 6], "bool"),), 0, 24),
    ("mse_loss_backward", ([], [4], [4], "1"), 12, 48),
    ("mse_loss_backward", ([], [4], ([4], HALF), "1"), 12, 16 + 8 + 16),
    ("masked_fill_", ([4, 6], ([6], "bool"), "0."), 0, 96 + 6 + 96),
    ("native_layer_norm_backward", ([4, 6], [4, 6], "[6]", [4], ([4], "double"), [6], [6], "[True, True, True]"), 9 * 24,
     96 + 96 + 16 + 32 + 24 + 96 + 24 + 24),
    *((f"{name}_batch_norm_backward", ([2, 3, 4, 4], [2, 3, 4, 4], ([3], HALF), [5], [7], ([3], "double"), [3], *rest), 9 * 96,
       384 + 384 + 6 + 24 + 12 + 384 + 6 + 6)  # of other sizes: the running statistics, which are not read
      for name, rest in (("native", ["True"]), ("cudnn", ["1e-5", ""]), ("miopen", ["1e-5"]))),
    ("_softmax", ([4, 6], "-1", "False"), 96, 192),
    ("_softmax", (([4, 6], HALF), "-1", "True"), 96, 48 + 96),
    ("_log_softmax_backward_data", ([4, 6], [4, 6], "1", "6"), 96, 288),
    ("_softmax_backward_data", (([4, 6], HALF), ([4, 6], "float"), "1", "5"), 96, 48 + 96 + 48),  # 5: half precision
    ("native_layer_norm", ([4, 6], "[6]", [6], [6], "1e-5"), 8 * 24, 96 + 48 + 96 + 32),
    ("native_batch_norm", ([2, 3, 4, 4], [3], [3], [3], [3], "True", "0.1", "1e-5"), 8 * 96, 768 + 48 + 24 + 24),
    ("cudnn_batch_norm", ([2, 3, 4, 4], [3], [3], [3], [3], "False", "0.1", "1e-5"), 4 * 96, 768 + 48),
    ("native_batch_norm", ([2, 3, 4, 4], "", "", "", "", "True", "0.1", "1e-5"), 6 * 96, 768 + 24),  # no factor, no bias
    ("native_batch_norm", ([2, 3, 4, 4], "", "", "", "", "False", "0.1", "1e-5"), 2 * 96, 768),
    ("native_batch_norm", ([2, 3, 4, 4], [3], [3], [3], ([3], "double"), "True", "0.1", "1e-5"), 8 * 96, 768 + 60 + 36 + 24),
    ("native_group_norm", ([2, 4, 3], [4], [4], "2", "4", "3", "2", "1e-5"), 8 * 24, 96 + 32 + 96 + 32),
    ("native_group_norm", ([2, 4, 3], [4], [4], "2", "4", "3", "", "1e-5"), 8 * 24, 96 + 32 + 96),  # of how many groups: untold
    ("native_group_norm_backward",
     ([2, 4, 3], [2, 4, 3], [2, 2], ([2, 2], "double"), [4], "2", "4", "3", "2", "[True, True, True]"), 9 * 24,
     96 + 96 + 16 + 32 + 16 + 96 + 16 + 16),
    ("max_pool2d_with_indices", ([1, 2, 5, 5], "[3, 3]", "[2, 2]", "[0, 0]", "[1, 1]", "False"), 0, 200 + 8 * 12),
    ("max_pool2d_with_indices", ([1, 2, 5, 5], "[3]", "[1]", "[0]", "[1]", "False"), 0, 200 + 18 * 12),
    ("max_pool2d_with_indices", ([1, 2, 6, 6], "[3]", "[2]", "[0]", "[1]", "True"), 0, 288 + 18 * 12),
    ("max_pool2d_with_indices", ([1, 2, 2, 2], "[2]", "[3]", "[1]", "[1]", "True"), 0, 32 + 2 * 12),  # no window begins past it
    ("max_pool2d_with_indices", ([1, 2, 4, 4], "[2]", "[3]", "[1]", "[1]", "True"), 0, 128 + 8 * 12),  # nor one past that
    *((f"max_pool{n}d_with_indices_backward",
       ([1, 2, 2], [1, 2, 9], "[2]", "[2]", "[0]", "[1]", "False", ([1, 2, 2], "long int")), 4, 16 + 32 + 72) for n in (2, 3)),
    ("avg_pool2d", ([1, 2, 4, 4], "[2, 2]", "[]", "[0, 0]", "False", "True", ""), 32, 128 + 32),
    ("embedding", (([100, 8], HALF), ([5], "long int"), "-1", "False", "False"), 0, 40 + 80 + 80),
    ("embedding", (([3, 8], HALF), ([5], "long int"), "-1", "False", "False"), 0, 40 + 48 + 80),
    ("index_select", ([4, 6], "1", ([2], "long int")), 0, 16 + 32 + 32),
]


PER_ELEMENT: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sigmoid", "erf",
                     "erfc", "sqrt", "rsqrt", "gelu", "silu", "elu", "selu", "celu", "mish", "softplus", "hardswish",
                     "hardsigmoid", "leaky_relu"), (1, None)),
    **dict.fromkeys(("abs", "neg", "relu", "clamp_min", "clamp_max", "clamp", "threshold", "hardtanh", "tril", "triu", "sign",
                     "floor", "ceil", "round", "trunc"), (1, 0)),
    "reciprocal": (1, 1), "mul": (2, 1), "div": (2, 1), "maximum": (2, 0), "minimum": (2, 0), "fmax": (2, 0), "fmin": (2, 0),
    "remainder": (2, None), "fmod": (2, None), "lerp": (3, 3),
}
"""Operator with an in-place form -> how many tensors it reads, and operations per element."""
BACKWARD = {"threshold": 0, "sigmoid": 3, "tanh": 3, "gelu": None, "silu": None, "mish": None, "native_dropout": 2}


def test_operators_that_work_element_by_element() -> None:
    told = {name: (call(name, *[[4, 6]] * places), places, flop) for name, (places, flop) in PER_ELEMENT.items()}
    told |= {f"{name}_": (call(f"{name}_", *[[4, 6]] * places), places, flop) for name, (places, flop) in PER_ELEMENT.items()}
    told |= {f"{name}_backward": (call(f"{name}_backward", [4, 6], [4, 6]), 2, flop) for name, flop in BACKWARD.items()}
    for name in ("amax", "amin", "linalg_vector_norm"):
        arguments = ("2", "[0, 1]") if name == "linalg_vector_norm" else ("[0, 1]",)
        told[name] = call(name, [4, 6], *arguments, "False", ""), 0, 2 if name == "linalg_vector_norm" else 0
    found = {name: (work.flop, work.bytes) for name, (work, _, _) in told.items()}
    assert found == {name: (None if flop is None else 24 * flop, 96 * (places + 1)) for name, (_, places, flop) in told.items()}


def test_what_compares_writes_booleans_but_for_what_works_in_place() -> None:
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"):
        assert (call(name, [4], [4]).flop, call(name, [4], [4]).bytes) == (0, 36), name
        assert (call(f"{name}_", [4], [4]).flop, call(f"{name}_", [4], [4]).bytes) == (0, 48), name
    assert call("logical_not", [4]).bytes == 20
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"):
        assert call(name, ([4], "bool"), ([4], "bool")).bytes == 12, name
    assert call("bitwise_not", ([4], "bool")).bytes == 8


@pytest.mark.parametrize(("type_", "size"), [
    ("float", 4), ("double", 8), ("c10::Half", 2), ("c10::BFloat16", 2), ("int", 4), ("long int", 8), ("long", 8),
    ("long long", 8), ("short", 2),
    ("short int", 2), ("bool", 1), ("unsigned char", 1), ("signed char", 1), ("char", 1), ("unsigned short", 2),
    ("unsigned int", 4), ("unsigned long", 8), ("c10::Float8_e4m3fn", 1), ("c10::Float8_e5m2", 1), ("c10::Float8_e4m3fnuz", 1),
    ("c10::Float8_e5m2fnuz", 1), ("c10::complex<float>", 8), ("c10::complex<double>", 16)])
def test_the_size_of_an_element(type_: str, size: int) -> None:
    assert call("fill_", ([3, 5], type_), "0").bytes == 15 * size


@pytest.mark.parametrize(("name", "arguments", "flop", "size"), CALLS)
def test_known_answers(name: str, arguments: tuple[Any, ...], flop: int | None, size: int) -> None:
    found = call(name, *arguments)
    assert (found.flop, found.bytes, found.kind) == (flop, size, "stream")
    assert (found.reason is None) == (flop is not None)


@pytest.mark.parametrize(("code", "size"), [
    (0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 2), (6, 4), (7, 8), (11, 1), (15, 2), (23, 1), (24, 1)])
def test_a_type_among_the_arguments_is_a_number_of_c10(code: int, size: int) -> None:
    assert call("sum", [4, 6], "[1]", "False", str(code)).bytes == 96 + 4 * size


def test_a_tensor_behind_the_operands_is_a_buffer_for_the_result() -> None:
    assert call("sigmoid_backward", [4], [4], [4]).bytes == call("sigmoid_backward", [4], [4]).bytes == 48


@pytest.mark.parametrize(("name", "arguments"), [
    ("add", ([4, 6], [5], "1")), ("sum", ([4, 6], "x", "", "")), ("max_pool2d_with_indices", ([1, 2, 5, 5], "", "", "", "", "")),
    ("index_select", ([4, 6], "[0, 1]", ([2], "long int"))),
    ("div", (([4], "int"), "2")), ("mean", (([4, 6], HALF), "[-1]", "True", "99")),
])
def test_what_is_not_told_is_unknown(name: str, arguments: tuple[Any, ...]) -> None:
    found = call(name, *arguments)
    assert found.bytes is None and found.reason
