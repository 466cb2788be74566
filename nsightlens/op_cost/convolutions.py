"""Convolutions, forward and backward: of one, two or three dimensions, grouped, dilated, transposed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nsightlens.op_cost.calls import Dims, Operand, OperatorCall, Unclear, total_bytes
from nsightlens.op_cost.works import OperatorWork, ProductWork

_DEFINITION = "2 per multiply-add of the direct algorithm, padding included"


@dataclass(frozen=True, slots=True)
class Forward:
    """Places of the arguments of a forward convolution; input and weight come first. transposed: whether, or its place."""

    stride: int
    padding: int
    dilation: int | None
    transposed: bool | int = False
    output_padding: int | None = None
    bias: int | None = None


@dataclass(frozen=True, slots=True)
class Backward:
    """Places of the arguments of a backward convolution. transposed: whether, or its place; mask: gradients asked for."""

    gradient: int
    input: int
    weight: int = 2
    transposed: bool | int = False
    mask: int = -1


FORWARD = {
    **{f"aten::conv{n}d": Forward(3, 4, 5, bias=2) for n in (1, 2, 3)},
    **{f"aten::conv_transpose{n}d": Forward(3, 4, 7, True, 5, bias=2) for n in (1, 2, 3)},
    "aten::convolution": Forward(3, 4, 5, 6, 7, bias=2), "aten::_convolution": Forward(3, 4, 5, 6, 7, bias=2),
    "aten::convolution_overrideable": Forward(3, 4, 5, 6, 7, bias=2),
    "aten::cudnn_convolution": Forward(3, 2, 4), "aten::cudnn_convolution_transpose": Forward(4, 2, 5, True, 3),
    "aten::cudnn_convolution_relu": Forward(3, 4, 5, bias=2),
    "aten::miopen_convolution": Forward(4, 3, 5, bias=2), "aten::miopen_depthwise_convolution": Forward(4, 3, 5, bias=2),
    "aten::miopen_convolution_transpose": Forward(5, 3, 6, True, 4, bias=2),
    "aten::_slow_conv2d_forward": Forward(4, 5, None, bias=3), "aten::thnn_conv2d": Forward(4, 5, None, bias=3),
    "aten::slow_conv3d_forward": Forward(4, 5, None, bias=3), "aten::slow_conv_dilated2d": Forward(4, 5, 6, bias=3),
    "aten::_conv_depthwise2d": Forward(4, 5, 6, bias=3), "aten::conv_depthwise3d": Forward(4, 5, 6, bias=3),
}
BACKWARD = {
    "aten::convolution_backward": Backward(0, 1, transposed=7, mask=10),
    "aten::convolution_backward_overrideable": Backward(0, 1, transposed=6, mask=9),
    "aten::cudnn_convolution_backward": Backward(1, 0), "aten::miopen_convolution_backward": Backward(1, 0),
    "aten::cudnn_convolution_transpose_backward": Backward(1, 0, transposed=True),
    "aten::_slow_conv2d_backward": Backward(0, 1), "aten::thnn_conv2d_backward": Backward(0, 1),
}


def forward(call: OperatorCall, places: Forward) -> OperatorWork:
    """Return the work of a forward convolution. Raises Unclear where the size of its result is not known."""
    data, weight = call.tensor(0), call.tensor(1)
    if not 2 < len(data.dims) == len(weight.dims):
        raise Unclear("the shapes do not fit a convolution")
    transposed = _transposed(call, places.transposed)
    if transposed is None:
        raise Unclear("whether the convolution is transposed was not recorded")
    result = _result(call, places, transposed, data.dims, weight.dims)
    if result is None and not transposed:
        raise Unclear("stride and padding were not recorded, and no linked backward call shows the size of the result")
    bias = None if places.bias is None else call.optional(places.bias)
    size = None if result is None else total_bytes([_needed(data, weight, result, transposed), weight, bias, data.like(result)])
    return OperatorWork(call.name.removeprefix("aten::"), "convolution", _flop(weight, data.dims if transposed else result or ()),
                        size, data.type, _DEFINITION)


def backward(call: OperatorCall, places: Backward) -> OperatorWork:
    """Return the work of a backward convolution: the gradients of its input and of its weight, a part each."""
    gradient, data, weight = call.tensor(places.gradient), call.tensor(places.input), call.tensor(places.weight)
    if not 2 < len(data.dims) == len(weight.dims) == len(gradient.dims):
        raise Unclear("the shapes do not fit a convolution")
    transposed = _transposed(call, places.transposed)
    if transposed is None:
        transposed = _told_by_channels(gradient.dims, data.dims, weight.dims)
    flop = _flop(weight, data.dims if transposed else gradient.dims)
    needed = _needed(data, weight, gradient.dims, transposed)
    size = total_bytes([gradient, weight, needed])  # two are read and one is written, whichever gradient it is
    parts = [ProductWork("input", flop, size), ProductWork("weight", flop, size)]
    wanted = _mask(call.text(places.mask if places.mask >= 0 else len(call.operands) + places.mask))
    if wanted is not None:
        parts = [part for part, is_wanted in zip(parts, wanted, strict=False) if is_wanted]
    # Both together read each of gradient, input and weight once and write the gradients of the last two.
    both = total_bytes([gradient, needed, weight, data, weight])
    return OperatorWork(call.name.removeprefix("aten::"), "convolution", None if wanted is None else flop * len(parts),
                        None if wanted is None else both if len(parts) == 2 else parts[0].bytes if parts else 0, data.type,
                        _DEFINITION,
                        None if wanted is not None else "the gradients requested were not recorded", tuple(parts))


def _flop(weight: Operand, dims: Dims) -> int:
    """Return the operations of a convolution whose larger side (result; input where transposed) has these dims.

    Each of its elements takes part in one multiply-add per element of weight[0]: groups are in the weight's second dimension.
    """
    return 2 * math.prod(dims) * math.prod(weight.dims[1:])


def _needed(data: Operand, weight: Operand, result: Dims, transposed: bool) -> Operand:
    """Return the part of the input that takes part: a stride wider than the kernel passes over the rest."""
    if transposed:
        return data
    sizes = [min(n, out * k) for n, out, k in zip(data.dims[2:], result[2:], weight.dims[2:], strict=True)]
    return data.like((*data.dims[:2], *sizes))


def _transposed(call: OperatorCall, place: bool | int) -> bool | None:
    return place if isinstance(place, bool) else call.flag(place)


def _told_by_channels(gradient: Dims, data: Dims, weight: Dims) -> bool:
    """Return whether a convolution is transposed, by its channels. Raises Unclear where they allow both."""
    plain, transposed = gradient[1] == weight[0], data[1] == weight[0]
    if plain == transposed and math.prod(gradient[1:]) != math.prod(data[1:]):
        raise Unclear("whether the convolution is transposed was not recorded")
    return not plain


def _mask(text: str | None) -> tuple[bool, bool] | None:
    """Return whether the gradients of input and weight were asked for; None where it was not recorded."""
    said = {"True": True, "1": True, "False": False, "0": False}
    flags = [said.get(one.strip()) for one in (text or "").strip("[]").split(",")]
    first, second = [*flags, None, None][:2]
    return None if first is None or second is None else (first, second)


def _result(call: OperatorCall, places: Forward, transposed: bool, data: Dims, weight: Dims) -> Dims | None:
    """Return the dims of the result: from the arguments, else from the linked backward call; None where neither has them."""
    count = len(data) - 2
    stride, padding = call.numbers(places.stride, count), call.numbers(places.padding, count)
    dilation = (1,) * count if places.dilation is None else call.numbers(places.dilation, count)
    if stride is None or padding is None or dilation is None or min(stride) <= 0:
        fits = call.output is not None and len(call.output) == len(data) and call.output[0] == data[0]
        return call.output if fits and (transposed or call.output[1] == weight[0]) else None  # type: ignore[index]
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, weight[2:], strict=True)]
    if not transposed:
        return (data[0], weight[0], *_possible(
            (n + 2 * p - s) // step + 1 for n, p, s, step in zip(data[2:], padding, spans, stride, strict=True)))
    added = None if places.output_padding is None else call.numbers(places.output_padding, count)
    groups = _groups(call)
    if added is None or groups is None:
        return None
    return (data[0], weight[1] * groups, *_possible(
        (n - 1) * step - 2 * p + s + more for n, p, s, step, more in zip(data[2:], padding, spans, stride, added, strict=True)))


def _possible(sizes: Iterable[int]) -> Dims:
    """Return the sizes. Raises Unclear where one is negative: the kernel is larger than what it moves over."""
    found = tuple(sizes)
    if min(found) < 0:
        raise Unclear("the kernel is larger than the input")
    return found


_GROUPS = {"aten::conv_transpose1d": 6, "aten::conv_transpose2d": 6, "aten::conv_transpose3d": 6, "aten::convolution": 8,
           "aten::_convolution": 8, "aten::convolution_overrideable": 8, "aten::cudnn_convolution_transpose": 6,
           "aten::miopen_convolution_transpose": 7}


def _groups(call: OperatorCall) -> int | None:
    found = call.numbers(_GROUPS[call.name], 1)
    return None if found is None else found[0]
