"""Operators that read their tensors once and write a result: element by element, reductions, norms, softmax, pooling, lookups.

Operations are the operator's own arithmetic on floating-point numbers: + - x and division count one each (exp too, in softmax);
comparisons, selections, copies and changes of sign none; other functions (gelu, sin, ...) have no agreed count: unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nsightlens.op_cost.calls import (
    INTEGERS,
    SCALAR_TYPES,
    Dims,
    Operand,
    OperatorCall,
    Unclear,
    broadcast,
    promoted,
    total_bytes,
)
from nsightlens.op_cost.works import OperatorWork

Formula = Callable[[OperatorCall], OperatorWork]
_CONVENTION = "{} per element: one each for + - x and division"


_UNCOUNTED = "its functions have no agreed operation count"
_UNTOLD = "an argument that the count depends on was not recorded"


def _work(
    call: OperatorCall, flop: int | None, read: list[Operand | None], written: list[Operand | None], definition: str = "",
    uncounted: str = _UNCOUNTED,
) -> OperatorWork:
    """Return the work of a call that reads and writes these tensors. uncounted: why `flop` is None, where it is."""
    size = total_bytes([*read, *written])
    element = next((one.type for one in read + written if one is not None and one.dims), None)
    if element in INTEGERS:
        flop, definition = 0, "integers: no floating-point operation"
    return OperatorWork(call.name.removeprefix("aten::"), "stream", flop, size, element, definition if flop is not None else "",
                        "element types were not recorded" if size is None else uncounted if flop is None else None)


def _elementwise(
    call: OperatorCall, places: tuple[int, ...], flop: int | None, result: str = "promoted", uncounted: str = _UNCOUNTED,
) -> OperatorWork:
    """Return the work of result[i] = f(a[i], b[i], ...). places: the operands; tensors behind them are buffers for the result.

    result: promoted (the type of arithmetic on them), float (likewise, but a function of integers has the default type, which
    is not recorded), bool, or first (an in-place operator writes to its first operand).
    """
    operands = [one for one in (call.optional(place) for place in places) if one is not None]
    if not operands or call.optional(places[0]) is None:
        raise Unclear("no shape of the first argument")
    in_place = result == "first" or (call.name.endswith("_") and not call.name.endswith("__"))
    dims = operands[0].dims if in_place else broadcast([one.dims for one in operands])
    type_ = "bool" if result == "bool" and not in_place else operands[0].type if in_place else promoted(operands)
    if result == "float" and type_ in INTEGERS:
        type_ = None
    written = Operand(dims, type_)
    count = None if flop is None else flop * written.count
    return _work(call, count, [*operands], [written], _CONVENTION.format(flop), uncounted)


def _scaled(call: OperatorCall, places: tuple[int, ...], alpha: int, plain: int) -> OperatorWork:
    """Return the work of an operator with a factor: `plain` operations per element, one more where it is not 1."""
    factor = call.text(alpha)
    return _elementwise(call, places, None if factor is None else plain + (factor not in ("1", "1.")), uncounted=_UNTOLD)


def _power(call: OperatorCall) -> OperatorWork:
    return _elementwise(call, (0, 1), 1 if call.text(1) in ("2", "2.") else None)


def _copy(call: OperatorCall) -> OperatorWork:
    """Return the work of copy_: the source is read, the destination written."""
    destination, source = call.tensor(0), call.tensor(1)
    return _work(call, 0, [source], [destination], "no arithmetic")


def _fill(call: OperatorCall) -> OperatorWork:
    return _work(call, 0, [], [call.tensor(0)], "no arithmetic")


# --- reductions


def _reduction(
    call: OperatorCall, flop: int, dim: int = 1, dtype: int | None = None, integers: bool = False, result: str | None = None,
) -> OperatorWork:
    """Return the work of a reduction: `flop` operations per element read. dim, dtype: places of these arguments.

    integers: whether sums of integers and booleans are 64 bits wide. result: type of the result, where it is always that.
    """
    data = call.tensor(0)
    dims = _kept(call, data.dims, dim)
    type_ = data.type
    code = None if dtype is None else call.numbers(1 if len(call.operands) == 2 else dtype, 1)
    if code is not None:
        type_ = SCALAR_TYPES.get(code[0])
    elif integers and type_ in INTEGERS:
        type_ = "long int"
    return _work(call, flop * data.count, [data], [Operand(dims, result or type_)], _CONVENTION.format(flop) + " read")


def _kept(call: OperatorCall, dims: Dims, place: int) -> Dims:
    """Return the dims that a reduction leaves. Raises Unclear where the dims reduced were not recorded."""
    if len(call.operands) <= place + 1:
        return ()
    text = call.text(place)
    if text in (None, "[]"):
        if text is None and not call.values:
            raise Unclear("the dims reduced were not recorded")
        return ()
    count = text.count(",") + 1 if text else 0
    gone = call.numbers(place, count)
    if gone is None:
        raise Unclear("the dims reduced were not recorded")
    away = {one % len(dims) for one in gone} if dims else set()
    return tuple(size for place_, size in enumerate(dims) if place_ not in away)


# --- norms

def _norm(call: OperatorCall, flop: int, beside: tuple[int, ...], stats: int) -> OperatorWork:
    """Return the work of a forward norm: `flop` operations per element and one for each parameter (weight, bias) in `beside`.

    Input and parameters are read, the result and `stats` statistics per group written.
    """
    values, parameters = call.tensor(0), [call.optional(place) for place in beside]
    groups = _groups_of(call, values)
    per_element = flop + sum(one is not None and one.dims != () for one in parameters)
    kept = Operand((groups * stats,), "double" if values.type == "double" else "float") if groups else None
    return _work(call, per_element * values.count, [values, *parameters], [values, kept], _CONVENTION.format(per_element))


def _groups_of(call: OperatorCall, values: Operand) -> int:
    """Return over how many groups of elements a layer or group norm takes its statistics, 0 where not recorded."""
    if "group_norm" in call.name:
        batch, groups = call.numbers(3, 1), call.numbers(6, 1)
        return batch[0] * groups[0] if batch and groups else 0
    shape = call.text(1)
    normalised = call.numbers(1, shape.count(",") + 1) if shape else None
    return values.count // math.prod(normalised) if normalised and math.prod(normalised) else 0


def _batch_norm(call: OperatorCall) -> OperatorWork:
    """Return the work of batch norm: 8 per element in training (mean 1, variance 3, x to (x - m) r w + b 4), else 4."""
    values, weight = call.tensor(0), call.optional(1)
    if len(values.dims) < 2:
        raise Unclear("the shapes do not fit a batch norm")
    training = call.flag(5)
    per_element = None if training is None else (8 if training else 4) - (0 if weight is not None else 2)
    beside = [call.optional(place) for place in range(1, 5)]
    # In training the running statistics are written again, and the batch's own are kept for the backward pass.
    written = [call.optional(3), call.optional(4), Operand((2 * values.dims[1],), "float")] if training else []
    count = None if per_element is None else per_element * values.count
    return _work(call, count, [values, *beside], [values, *written], _CONVENTION.format(per_element), _UNTOLD)


def _norm_backward(call: OperatorCall, tensors: tuple[int, ...], data: int, weight: int) -> OperatorWork:
    """Return the work of a backward norm in training: 9 per element (gradient of the bias 1, of the weight 4, of the input 4).

    tensors: places of what is read; data: of the input; weight: of the weight.
    """
    values, factor = call.tensor(data), call.optional(weight)
    read = [call.optional(place) for place in tensors]
    if factor is None or (call.name == "aten::native_batch_norm_backward" and not call.flag(7)):
        return _work(call, None, read, [values], uncounted=_UNTOLD)
    return _work(call, 9 * values.count, read, [values, factor, factor], _CONVENTION.format(9))


def _where(call: OperatorCall) -> OperatorWork:
    """Return the work of where: the condition and both choices read."""
    condition, choices = call.tensor(0), [one for one in (call.optional(1), call.optional(2)) if one is not None]
    result = Operand(broadcast([condition.dims, *(one.dims for one in choices)]), promoted(choices) if choices else None)
    return _work(call, 0, [condition, *choices], [result], "no arithmetic")


# --- softmax, losses, pools, lookups

def _softmax(call: OperatorCall) -> OperatorWork:
    values = call.tensor(0)
    result = replace(values, type="float") if call.flag(2) else values
    return _work(call, 4 * values.count, [values], [result], "4 per element: subtract, exp, sum, divide (or subtract)")


def _softmax_backward(call: OperatorCall) -> OperatorWork:
    gradient, result = call.tensor(0), call.tensor(1)
    code = call.numbers(3, 1)
    written = gradient if code is None else replace(gradient, type=SCALAR_TYPES.get(code[0]))
    return _work(call, 4 * gradient.count, [gradient, result], [written], "4 per element: product, sum, subtract, product")


def _max_pool(call: OperatorCall, count: int) -> OperatorWork:
    values = call.tensor(0)
    dims = _pooled(call, values.dims, count, (2, 3), 4, 5)
    return _work(call, 0, [values], [values.like(dims), Operand(dims, "long int")], "comparisons only")


def _avg_pool(call: OperatorCall, count: int) -> OperatorWork:
    values = call.tensor(0)
    dims = _pooled(call, values.dims, count, (2, 3), None, 4)
    window = math.prod(call.numbers(1, count) or ())
    return _work(call, window * math.prod(dims), [values], [values.like(dims)], "a sum and a division per element of the result")


def _pooled(call: OperatorCall, dims: Dims, count: int, steps: tuple[int, int], dilation: int | None, ceil: int) -> Dims:
    """Return the dims of a pool's result. Raises Unclear where its window was not recorded."""
    window = call.numbers(1, count)
    stride = window if call.text(steps[0]) == "[]" else call.numbers(steps[0], count)
    padding = call.numbers(steps[1], count)
    spread = (1,) * count if dilation is None else call.numbers(dilation, count)
    upwards = call.flag(ceil)
    if window is None or stride is None or padding is None or spread is None or upwards is None or len(dims) < count:
        raise Unclear("the window of the pool was not recorded")
    if min(stride) <= 0:
        raise Unclear("the window of the pool is impossible")
    sizes = []
    for n, k, s, p, d in zip(dims[-count:], window, stride, padding, spread, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        size = -(-room // s) + 1 if upwards else room // s + 1
        if size < 0:
            raise Unclear("the window of the pool is impossible")
        sizes.append(size - 1 if upwards and (size - 1) * s >= n + p else size)
    return (*dims[:-count], *sizes)


def _max_pool_backward(call: OperatorCall, indices: int) -> OperatorWork:
    gradient, values = call.tensor(0), call.tensor(1)
    return _work(call, gradient.count, [gradient, call.tensor(indices)], [values], "one addition per element of the gradient")


def _lookup(call: OperatorCall, table: int, index: int, dim: int | None) -> OperatorWork:
    """Return the work of looking up rows: indices read, as many rows read as there are indices (never more than the table)."""
    rows, places = call.tensor(table), call.tensor(index)
    axis = 0 if dim is None else (call.numbers(dim, 1) or (None,))[0]
    if axis is None or not rows.dims:
        raise Unclear("the dim looked up was not recorded")
    axis %= len(rows.dims)
    length = rows.count // max(1, rows.dims[axis])
    read = rows.like((min(places.count, rows.dims[axis]) * length,))
    return _work(call, 0, [places, read], [rows.like((places.count * length,))], "no arithmetic")


_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfc", "sqrt",
    "rsqrt", "gelu", "silu", "elu", "selu", "celu", "mish", "softplus", "hardswish", "hardsigmoid", "leaky_relu",
)
_WITHOUT_ARITHMETIC = (
    "abs", "neg", "relu", "clamp_min", "clamp_max", "clamp", "threshold", "hardtanh", "tril", "triu", "sign", "floor", "ceil",
    "round", "trunc",
)
_BINARY = {"mul": 1, "maximum": 0, "minimum": 0, "fmax": 0, "fmin": 0, "remainder": None, "fmod": None}
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__")


def _both(name: str, formula: Formula) -> dict[str, Formula]:
    """Return the operator and its in-place form."""
    return {f"aten::{name}": formula, f"aten::{name}_": formula}


def _all(names: tuple[str, ...], formula: Formula) -> dict[str, Formula]:
    return {key: value for name in names for key, value in _both(name, formula).items()}


FORMULAS: dict[str, Formula] = {
    **_all(_FUNCTIONS, partial(_elementwise, places=(0,), flop=None, result="float")),
    **_all(_WITHOUT_ARITHMETIC, partial(_elementwise, places=(0,), flop=0)),
    **{key: value for name, flop in _BINARY.items() for key, value in _both(
        name, partial(_elementwise, places=(0, 1), flop=flop)).items()},
    **_both("div", partial(_elementwise, places=(0, 1), flop=1, result="float")),
    **_all(_COMPARED, partial(_elementwise, places=(0, 1), flop=0, result="bool")),
    **{f"aten::{name}": partial(_elementwise, places=(0, 1), flop=0) for name in _BITS},
    **_all(("add", "sub", "rsub"), partial(_scaled, places=(0, 1), alpha=2, plain=1)),
    **_all(("addcmul", "addcdiv"), partial(_scaled, places=(0, 1, 2), alpha=3, plain=2)),
    **_both("pow", _power), **_both("reciprocal", partial(_elementwise, places=(0,), flop=1, result="float")),
    **_both("lerp", partial(_elementwise, places=(0, 1, 2), flop=3)),
    "aten::logical_not": partial(_elementwise, places=(0,), flop=0, result="bool"),
    "aten::bitwise_not": partial(_elementwise, places=(0,), flop=0),
    "aten::masked_fill_": partial(_elementwise, places=(0, 1), flop=0, result="first"),
    "aten::threshold_backward": partial(_elementwise, places=(0, 1), flop=0),
    "aten::sigmoid_backward": partial(_elementwise, places=(0, 1), flop=3),
    "aten::tanh_backward": partial(_elementwise, places=(0, 1), flop=3),
    **{f"aten::{name}_backward": partial(_elementwise, places=(0, 1), flop=None) for name in ("gelu", "silu", "mish")},
    "aten::native_dropout_backward": partial(_elementwise, places=(0, 1), flop=2, result="first"),
    "aten::where": _where, "aten::copy_": _copy, "aten::fill_": _fill, "aten::zero_": _fill,
    "aten::sum": partial(_reduction, flop=1, dtype=3, integers=True), "aten::mean": partial(_reduction, flop=1, dtype=3),
    "aten::amax": partial(_reduction, flop=0), "aten::amin": partial(_reduction, flop=0),
    **{f"aten::{name}": partial(_reduction, flop=0, result="long int") for name in ("argmax", "argmin")},
    **{f"aten::{name}": partial(_reduction, flop=0, result="bool") for name in ("any", "all")},
    "aten::linalg_vector_norm": partial(_reduction, flop=2, dim=2, dtype=4),
    **{f"aten::{name}": _batch_norm for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")},
    "aten::native_batch_norm_backward": partial(_norm_backward, tensors=(0, 1, 2, 5, 6), data=1, weight=2),
    "aten::cudnn_batch_norm_backward": partial(_norm_backward, tensors=(0, 1, 2, 5, 6), data=0, weight=2),
    "aten::miopen_batch_norm_backward": partial(_norm_backward, tensors=(0, 1, 2, 5, 6), data=0, weight=2),
    "aten::native_layer_norm": partial(_norm, flop=6, beside=(2, 3), stats=2),
    "aten::native_group_norm": partial(_norm, flop=6, beside=(1, 2), stats=2),
    "aten::_fused_rms_norm": partial(_norm, flop=3, beside=(2,), stats=1),
    "aten::native_layer_norm_backward": partial(_norm_backward, tensors=(0, 1, 3, 4, 5), data=1, weight=5),
    "aten::native_group_norm_backward": partial(_norm_backward, tensors=(0, 1, 2, 3, 4), data=1, weight=4),
    "aten::_softmax": _softmax, "aten::_log_softmax": _softmax,
    "aten::_softmax_backward_data": _softmax_backward, "aten::_log_softmax_backward_data": _softmax_backward,
    "aten::mse_loss": partial(_elementwise, places=(0, 1), flop=2),
    "aten::mse_loss_backward": partial(_elementwise, places=(0, 1, 2), flop=3),
    "aten::max_pool2d_with_indices": partial(_max_pool, count=2), "aten::max_pool3d_with_indices": partial(_max_pool, count=3),
    "aten::avg_pool2d": partial(_avg_pool, count=2), "aten::avg_pool3d": partial(_avg_pool, count=3),
    "aten::max_pool2d_with_indices_backward": partial(_max_pool_backward, indices=7),
    "aten::max_pool3d_with_indices_backward": partial(_max_pool_backward, indices=7),
    "aten::embedding": partial(_lookup, table=0, index=1, dim=None),
    "aten::index_select": partial(_lookup, table=0, index=2, dim=1),
}
