"""Each name of one convolution or attention has the same work, wherever it has its arguments."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from nsightlens.op_cost import contractions, convolutions
from tests.op_cost.signatures import (
    BACKWARD_CONVOLUTIONS,
    CONVOLUTIONS,
    HEADS_FIRST,
    HEADS_LAST,
    OF_OTHER_RELEASES,
    called,
)
from tests.op_cost.test_contractions import HALF


def test_the_signature_of_each_convolution_and_attention_is_known() -> None:
    assert set(convolutions.FORWARD) == set(CONVOLUTIONS)
    assert set(convolutions.BACKWARD) == set(BACKWARD_CONVOLUTIONS)
    assert {name for name in contractions.FORMULAS if "attention" in name or "attn" in name} == set(HEADS_FIRST | HEADS_LAST)


@pytest.mark.parametrize(("name", "transposed"), [
    *((name, "transpose" in name) for name in CONVOLUTIONS),
    *((name, True) for name, signature in CONVOLUTIONS.items() if "transposed" in signature.split())])
def test_a_convolution(name: str, transposed: bool) -> None:
    """All numbers differ, so that none can stand for another."""
    found = re.search(r"(\d)d", name)
    axes, signature = int(found[1]) if found else 2, CONVOLUTIONS[name]
    plain = {"stride": [2] * axes, "padding": [3] * axes, "dilation": [4] * axes, "groups": 2}
    texts = {key: str(value) for key, value in plain.items()}
    if transposed:
        size, side = 5, (5 - 1) * 2 - 2 * 3 + (4 * 2 + 1) + 1
        data, weight, result = [2, 4] + [size] * axes, [4, 3] + [3] * axes, [2, 6] + [side] * axes
        larger = data
    else:
        spans = 4 * 2 + 1 if "dilation" in signature.split() else 3
        size, side = 20, (20 + 2 * 3 - spans) // 2 + 1
        data, weight, result = [2, 8] + [size] * axes, [6, 4] + [3] * axes, [2, 6] + [side] * axes
        larger = result
    texts |= {"transposed": str(transposed), "output_padding": str([1] * axes)}
    given = texts | {"input": data, "weight": weight, "bias": [6]}
    work = called(name, signature, given)
    assert work.flop == 2 * math.prod(larger) * math.prod(weight[1:])
    bias = 6 if "bias" in signature.split() else 0
    assert work.bytes == 4 * (math.prod(data) + math.prod(weight) + bias + math.prod(result))


def test_the_groups_of_a_transposed_convolution_are_one_number() -> None:
    arguments = {"input": [2, 4, 5, 5], "weight": [4, 3, 3, 3], "stride": "[2, 2]", "padding": "[1, 1]", "dilation": "[1, 1]",
                 "output_padding": "[1, 1]", "groups": "[2, 2]"}
    work = called("aten::conv_transpose2d", CONVOLUTIONS["aten::conv_transpose2d"], arguments)
    assert (work.flop, work.bytes) == (2 * 200 * 27, None)


@pytest.mark.parametrize("name", BACKWARD_CONVOLUTIONS)
def test_a_backward_convolution(name: str) -> None:
    """The channels do not tell which side is transposed: the operator or its argument does."""
    small, large = [2, 6, 9, 9], [2, 6, 20, 20]
    gradient, data = (large, small) if "transpose_" in name else (small, large)
    given = {"gradient": gradient, "input": data, "weight": [6, 6, 3, 3], "transposed": "False",
             "output_mask": "[False, True, False]"}
    work = called(name, BACKWARD_CONVOLUTIONS[name], given)
    assert [part.name for part in work.parts] == ["weight"]
    assert work.flop == work.parts[0].flop == 2 * math.prod(small) * 6 * 9
    assert work.bytes == work.parts[0].bytes == 4 * (math.prod(small) + math.prod(large) + 6 * 6 * 9)


def _attention(name: str, signature: str, **more: Any) -> tuple[int | None, str | None]:
    """Return operations per head, and the reason where there are none: 2 x 4 heads, 32 numbers wide."""
    heads = [2, 16, 4, 32] if name in HEADS_LAST else [2, 4, 16, 32]
    work = called(name, signature, dict.fromkeys(("gradient", "query", "key", "value", "out"), (heads, HALF)) | more)
    return None if work.flop is None else work.flop // (2 * 4), work.reason


@pytest.mark.parametrize(("name", "signature"), [
    *(HEADS_FIRST | HEADS_LAST).items(), *OF_OTHER_RELEASES])
def test_an_attention(name: str, signature: str) -> None:
    products = 5 if "backward" in name else 2
    words = signature.split()
    mask = "custom_mask_type" if "custom_mask_type" in words else "is_causal"
    full, causal = ("0", "1") if mask == "custom_mask_type" else ("False", "True")
    assert _attention(name, signature, **{mask: full}) == (products * 2 * 16 * 16 * 32, None)
    assert _attention(name, signature, **{mask: causal}) == (products * 2 * (16 * 17 // 2) * 32, None)
    assert _attention(name, signature)[0] is None, "whether there is a mask was not recorded"
    for lengths in {"cum_seq_q", "cum_seq_k"} & set(words):
        assert "several lengths" in (_attention(name, signature, **{mask: full, lengths: ([3], "int")})[1] or "")
    for width in {"left", "right"} & set(words):
        assert _attention(name, signature, **{mask: full, width: "0"})[1] == "a sliding window leaves pairs out"
        assert _attention(name, signature, **{mask: full, width: "-1"})[1] is None
