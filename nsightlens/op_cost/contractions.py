"""Operators made of matrix products: products, convolutions, attention. One function per kind of operator, and a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nsightlens.op_cost.calls import SCALAR_TYPES, Operand, OperatorCall, Unclear, broadcast, total_bytes
from nsightlens.op_cost.convolutions import BACKWARD, FORWARD, backward, forward
from nsightlens.op_cost.works import OperatorWork

Formula = Callable[[OperatorCall], OperatorWork]


def _product(call: OperatorCall, left: Operand, right: Operand, result: Operand, inner: int, added: Operand
             | None) -> OperatorWork:
    """Return the work of result = left x right (+ added), `inner` products summed for each element."""
    return OperatorWork(call.name.removeprefix("aten::"), "gemm", 2 * result.count * inner,
                        total_bytes([left, right, added, result]),
                        left.type, "2 x elements of the result x inner dimension")


def _matrices(call: OperatorCall, first: int, added: int | None = None, beta: int | None = None) -> OperatorWork:
    """Return the work of mm, bmm, mv, dot and those that add a third operand: batch dimensions first, then the matrix."""
    left, right = call.tensor(first), call.tensor(first + 1)
    if not left.dims or not right.dims:
        raise Unclear("the shapes do not fit a product")
    *batch, rows, inner = left.dims if len(left.dims) > 1 else (1, *left.dims)
    columns = right.dims[-1] if len(right.dims) == len(left.dims) > 1 else 1
    expected = (*batch, inner, columns) if len(right.dims) > 1 else (inner,)
    if right.dims != expected:
        raise Unclear("the shapes do not fit a product")
    beside = None if added is None or (beta is not None and _is_zero(call.text(beta))) else call.optional(added)
    type_ = "int" if call.name == "aten::_int_mm" else left.type  # sums of products of bytes need more room
    return _product(call, left, right, Operand((*batch, rows, columns), type_), inner, beside)


def _is_zero(text: str | None) -> bool:
    try:
        return text is not None and float(text) == 0
    except ValueError:
        return False


def _summed(call: OperatorCall) -> OperatorWork:
    """Return the work of addbmm: the products of all batches, added up in one matrix."""
    left, right = call.tensor(1), call.tensor(2)
    batch, rows, inner = _three(left)
    result = left.like((rows, _three(right)[2]))
    beside = None if _is_zero(call.text(3)) else call.optional(0)
    return OperatorWork("addbmm", "gemm", 2 * batch * result.count * inner, total_bytes([left, right, beside, result]), left.type,
                        "2 x elements of the result x inner dimension x batches")


def _three(operand: Operand) -> tuple[int, int, int]:
    if len(operand.dims) != 3:
        raise Unclear("the shapes do not fit a batched product")
    return operand.dims[0], operand.dims[1], operand.dims[2]


def _linear(call: OperatorCall) -> OperatorWork:
    rows, weight = call.tensor(0), call.tensor(1)
    if not rows.dims or len(weight.dims) != 2 or rows.dims[-1] != weight.dims[1]:
        raise Unclear("the shapes do not fit a linear layer")
    return _product(call, rows, weight, rows.like((*rows.dims[:-1], weight.dims[0])), weight.dims[1], call.optional(2))


def _matmul(call: OperatorCall) -> OperatorWork:
    left, right = call.tensor(0), call.tensor(1)
    if not left.dims or not right.dims or left.dims[-1] != right.dims[-2 if len(right.dims) > 1 else 0]:
        raise Unclear("the shapes do not fit a product")
    batch = broadcast([left.dims[:-2], right.dims[:-2]])
    result = left.like((*batch, *left.dims[-2:-1], *(right.dims[-1:] if len(right.dims) > 1 else ())))
    return _product(call, left, right, result, left.dims[-1], None)


def _scaled(call: OperatorCall) -> OperatorWork:
    """Return the work of _scaled_mm; its result has a type of its own, whose place changed with torch 2.5."""
    found = _matrices(call, 0)
    code = call.numbers(6, 1) if (call.optional(2) or Operand((), None)).type == "float" else None
    result = Operand((call.tensor(0).dims[0], call.tensor(1).dims[1]), SCALAR_TYPES.get(code[0]) if code else None)
    size = total_bytes([call.tensor(0), call.tensor(1), call.optional(2), call.optional(3), call.optional(4), result])
    return OperatorWork(found.formula, found.kind, found.flop, size, found.element, found.definition)


# --- attention

_CAUSAL = {
    "aten::scaled_dot_product_attention": 5,
    "aten::_scaled_dot_product_flash_attention": 4, "aten::_scaled_dot_product_flash_attention_backward": 11,
    "aten::_flash_attention_forward": 8, "aten::_flash_attention_backward": 11,
    "aten::_scaled_dot_product_efficient_attention": 6, "aten::_scaled_dot_product_efficient_attention_backward": 11,
    "aten::_scaled_dot_product_cudnn_attention": 6, "aten::_scaled_dot_product_cudnn_attention_backward": 14,
    "flash_attn::_flash_attn_forward": 5, "flash_attn::_flash_attn_backward": 11,
}
"""Place of is_causal."""
_MOVED = {
    ("aten::_scaled_dot_product_flash_attention", 10): 7, ("aten::_scaled_dot_product_efficient_attention", 5): 4,
    ("aten::_scaled_dot_product_efficient_attention", 6): 4, ("aten::_scaled_dot_product_cudnn_attention", 7): 4,
}
"""(operator, number of its arguments) -> the same, where other releases of PyTorch have it elsewhere."""
_WINDOW = {
    ("aten::_flash_attention_forward", 13): 11, ("aten::_flash_attention_forward", 15): 11,
    ("aten::_flash_attention_forward", 17): 11, ("aten::_flash_attention_forward", 18): 14,
    ("aten::_flash_attention_backward", 17): 15, ("flash_attn::_flash_attn_forward", 11): 6,
    ("flash_attn::_flash_attn_backward", 18): 12, ("flash_attn::_flash_attn_backward", 19): 12,
}
"""Place of the two widths of a sliding window, which leaves pairs out."""
_MASK_TYPE = {"aten::_efficient_attention_forward": 9, "aten::_efficient_attention_backward": 14}
"""Place of custom_mask_type: 0 none, 1 causal from the top left, 2 causal from the bottom right."""


def _attention(call: OperatorCall, first: int, heads_last: bool, products: int, lengths: tuple[int, ...] = ()) -> OperatorWork:
    """Return the work of attention: `products` products over the pairs of query and key that no causal mask leaves out.

    heads_last: dims are (batch, sequence, heads, head dimension), else (batch, heads, sequence, head dimension). products: 2
    forward (scores, values), 5 backward. lengths: arguments with cumulative sequence lengths; shapes alone do not fix the work.
    """
    query, key, value = (call.tensor(first + place) for place in range(3))
    if any(call.optional(place) is not None for place in lengths):
        raise Unclear("sequences of several lengths: shapes do not determine the work")
    if {len(query.dims), len(key.dims), len(value.dims)} != {4}:
        raise Unclear("the shapes do not fit attention")
    at, heads = (1, 2) if heads_last else (2, 1)
    rows, columns = query.dims[at], key.dims[at]
    pairs, definition = _pairs(call, rows, columns)
    wide, deep = query.dims[3], value.dims[3]
    per_pair = wide + deep if products == 2 else 3 * wide + 2 * deep
    result = query.like((*query.dims[:3], deep))
    moved = [query, key, value, result]  # backward: those and the gradients of all four
    size = total_bytes(moved if products == 2 else moved * 2)
    return OperatorWork(call.name.partition("::")[2], "attention", 2 * query.dims[0] * query.dims[heads] * pairs * per_pair, size,
                        query.type, definition)


def _pairs(call: OperatorCall, rows: int, columns: int) -> tuple[int, str]:
    """Return how many (query, key) pairs count, and in words. Raises Unclear where the capture lacks it."""
    causal: bool | None
    place = _MASK_TYPE.get(call.name)
    if place is not None:
        code = call.numbers(place, 1)
        causal = None if code is None else code[0] != 0
    else:
        causal = call.flag(_MOVED.get((call.name, len(call.operands)), _CAUSAL[call.name]))
    window = _WINDOW.get((call.name, len(call.operands)))
    if window is not None and {call.text(window), call.text(window + 1)} - {None, "-1"}:
        raise Unclear("a sliding window leaves pairs out")
    if causal is None:
        raise Unclear("whether a causal mask leaves out half of the pairs was not recorded")
    if not causal:
        return rows * columns, "2 per multiply-add, all pairs of query and key (a mask given as a tensor leaves out none)"
    if rows != columns:
        raise Unclear("a causal mask between sequences of two lengths: its place was not recorded")
    return rows * (rows + 1) // 2, "2 per multiply-add, pairs on and below the diagonal (kernels compute whole tiles: more)"


_SDPA = partial(_attention, first=0, heads_last=False, products=2)

FORMULAS: dict[str, Formula] = {
    "aten::mm": partial(_matrices, first=0), "aten::bmm": partial(_matrices, first=0), "aten::mv": partial(_matrices, first=0),
    "aten::dot": partial(_matrices, first=0), "aten::vdot": partial(_matrices, first=0),
    "aten::_int_mm": partial(_matrices, first=0), "aten::_scaled_mm": _scaled,
    "aten::addmm": partial(_matrices, first=1, added=0, beta=3), "aten::addmm_": partial(_matrices, first=1, added=0, beta=3),
    "aten::addmv": partial(_matrices, first=1, added=0, beta=3), "aten::addmv_": partial(_matrices, first=1, added=0, beta=3),
    "aten::baddbmm": partial(_matrices, first=1, added=0, beta=3), "aten::baddbmm_": partial(_matrices, first=1, added=0, beta=3),
    "aten::_addmm_activation": partial(_matrices, first=1, added=0, beta=3),
    "aten::addbmm": _summed, "aten::addbmm_": _summed, "aten::linear": _linear, "aten::matmul": _matmul,
    "aten::scaled_dot_product_attention": _SDPA,
    "aten::_scaled_dot_product_flash_attention": _SDPA,
    "aten::_scaled_dot_product_efficient_attention": _SDPA,
    "aten::_scaled_dot_product_cudnn_attention": _SDPA,
    "aten::_flash_attention_forward": partial(_attention, first=0, heads_last=True, products=2, lengths=(3, 4)),
    "aten::_efficient_attention_forward": partial(_attention, first=0, heads_last=True, products=2, lengths=(4, 5)),
    "aten::_scaled_dot_product_flash_attention_backward": partial(
        _attention, first=1, heads_last=False, products=5, lengths=(6, 7)),
    "aten::_scaled_dot_product_efficient_attention_backward": partial(_attention, first=1, heads_last=False, products=5),
    "aten::_scaled_dot_product_cudnn_attention_backward": partial(
        _attention, first=1, heads_last=False, products=5, lengths=(9, 10)),
    "aten::_flash_attention_backward": partial(_attention, first=1, heads_last=True, products=5, lengths=(6, 7)),
    "aten::_efficient_attention_backward": partial(_attention, first=1, heads_last=True, products=5, lengths=(6, 7)),
    "flash_attn::_flash_attn_forward": partial(_attention, first=0, heads_last=True, products=2),
    "flash_attn::_flash_attn_backward": partial(_attention, first=1, heads_last=True, products=5),
    **{name: partial(forward, places=places) for name, places in FORWARD.items()},
    **{name: partial(backward, places=places) for name, places in BACKWARD.items()},
}
