"""Operations and minimum bytes of each kernel launch, from the shapes of its operator: for kernels without counters.

Kineto with record_shapes, and nsys with PyTorch's emit_nvtx(record_shapes=True). Every launch of a profile that recorded
shapes has a row; where the work is not certain it is NULL, and `reason` says why. Of nested products, convolutions and
attention the innermost operator counts, so linear, which calls addmm, never counts twice. Its work goes to its one kernel of
that kind; transposes, split-K sums and other helpers get none. A backward convolution has two products of equal work: two
kernels get one each. Every other operator counts if it launched exactly one kernel itself. A multiply-add is 2 operations, as
in torch.utils.flop_counter (backward grouped convolutions: without its factor of groups; causal attention: only the pairs on
and below the diagonal, about half of its count). Convolutions count as the direct algorithm: Winograd and FFT kernels do
fewer. minimal_bytes: every operand once, the result once. Both describe the operator, not what the kernel did: tile padding,
split-K and repeated reads add to it, caches reduce the traffic.
@scope rows
@topic roofline
@needs shapes
@requires kernels, ranges
@assumes A recording that has one launch of an operator has all of its launches.
@assumes An operand takes as much memory as its shape implies: strides are not stored, so an expanded operand counts too much.
@first op, work_flop, minimal_bytes, precision, reason
@column run              Run (one workload in one configuration).
@column tool             nsys or kineto. Never add them up: they saw the same launches.
@column rank             Rank of the process; NULL where unknown.
@column profile_id       Profile; key of `profiles`.
@column process_id       OS process.
@column kernel_id        The launch; key of `kernels`.
@column op               Operator whose work it is; NULL where no operator with a formula is around the launch.
@column op_range_id      That call; key of `ranges`.
@column op_shapes        Its input shapes as the tool prints them.
@column formula          Formula that was used.
@column work_flop        Floating-point operations of the launch (integer ones of integer products); NULL where not certain.
@column minimal_bytes    Least bytes that the launch moves; NULL where not certain.
@column precision        Type of the operands: fp64, fp32, bf16, fp16, fp8, int8, ...; NULL where not recorded.
@column peak_key         Peak of the GPU that bounds it, in the words of roofline: tensor_bf16, fp32, ...; NULL where not known.
@column work_definition  How the operations were counted.
@column call_flop        Operations of the whole call; the same for all of its launches, to be counted once per op_range_id.
@column call_bytes       Least bytes of the whole call, as above.
@column call_launches    Launches of the call.
@column reason           Why work_flop or minimal_bytes is NULL; NULL where both are known.
@names operator op
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._shape_calls import OperatorCalls, Texts
from nsightlens.columns.arrays import Int
from nsightlens.op_cost import OperatorWork

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("kernel_id", pa.int64()), ("op", pa.string()), ("op_range_id", pa.int64()), ("op_shapes", pa.string()),
    ("formula", pa.string()), ("work_flop", pa.int64()), ("minimal_bytes", pa.int64()), ("precision", pa.string()),
    ("peak_key", pa.string()), ("work_definition", pa.string()), ("call_flop", pa.int64()), ("call_bytes", pa.int64()),
    ("call_launches", pa.int64()), ("reason", pa.string()),
])
_PROFILES = "SELECT DISTINCT profile_id FROM ranges WHERE kind = 'operator' AND tool <> 'ncu' AND shapes IS NOT NULL"
_LAUNCHES = f"""
SELECT run, tool, rank, profile_id, process_id, kernel_id, op_range_id, concat_ws(' ', short_name, kernel_key) AS names, family,
    tensor_cores
FROM kernels WHERE tool <> 'ncu' AND profile_id IN ({_PROFILES})
ORDER BY run, tool, rank, profile_id, process_id, launch_index, kernel_id"""
_OPERATORS = f"""
WITH RECURSIVE around AS (
    SELECT op_range_id AS range_id FROM kernels WHERE tool <> 'ncu' AND op_range_id IS NOT NULL AND profile_id IN ({_PROFILES})
    UNION
    SELECT r.op_parent_id FROM around AS a JOIN ranges AS r USING (range_id) WHERE r.op_parent_id IS NOT NULL
)
SELECT range_id, op_parent_id, name, shapes, types, concrete_inputs
FROM around JOIN ranges USING (range_id) ORDER BY range_id"""
_RESULTS = """
SELECT b.forward_id, min(coalesce(b.shapes, c.shapes)) AS shapes
FROM ranges AS b LEFT JOIN ranges AS c ON c.op_parent_id = b.range_id AND c.name = 'aten::convolution_backward'
WHERE b.forward_id IS NOT NULL AND regexp_matches(b.name, 'Conv.*Backward')
GROUP BY b.forward_id
HAVING min(coalesce(b.shapes, c.shapes)) = max(coalesce(b.shapes, c.shapes)) ORDER BY b.forward_id"""

_HELPER = re.compile(
    r"split_?k_?reduce|reduce_?split_?k|im2d?2?col|col2im|vol2col|nchw\w*nhwc|nhwc\w*nchw|compute\w*offsets|generatewinogradtiles|"
    r"dot_do_o|convert_dq|splitkv_combine|(?:pre|post)process|flip_filter", re.IGNORECASE)
"""Kernels of a product's family that do none of its multiply-adds."""
_OF_INPUT = re.compile(r"dgrad|bwd_data|backward_data|igemm_bwd", re.IGNORECASE)
_OF_WEIGHT = re.compile(r"wgrad|bwd_weight|backward_weight|igemm_wrw", re.IGNORECASE)
FAMILIES = {"gemm": ("gemm",), "convolution": ("convolution", "gemm"), "attention": ("attention",)}
"""Families of kernels whose bytes alone say nothing of how fast they could be, and which kernels do a product of each kind."""
_PRECISION = {
    "double": "fp64", "float": "fp32", "Half": "fp16", "BFloat16": "bf16", "signed char": "int8", "unsigned char": "uint8",
    "int": "int32", "long": "int64", "long int": "int64", "bool": "bool",
    **{f"Float8_{kind}": "fp8" for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")},
}
_TENSOR_PEAK = {"fp16": "tensor_fp16", "bf16": "tensor_bf16", "fp8": "tensor_fp8", "int8": "tensor_int8"}


class Launch(NamedTuple):
    """A launch of the call in question. own: the operator that launched it, inside that call."""

    names: str
    family: str | None
    tensor_cores: bool | None
    own: str


class WorkFigures(NamedTuple):
    """What is said of a launch: the columns of the result that it decides."""

    formula: str | None = None
    work_flop: int | None = None
    minimal_bytes: int | None = None
    precision: str | None = None
    peak_key: str | None = None
    work_definition: str | None = None
    call_flop: int | None = None
    call_bytes: int | None = None
    call_launches: int | None = None
    reason: str | None = None


def analyse(ask: Ask) -> pa.Table:
    """Return the work of each launch, in the order of launches."""
    launches, calls = ask(_LAUNCHES, []), OperatorCalls(ask(_OPERATORS, []), ask(_RESULTS, []))
    own = calls.index_of(launches["op_range_id"])
    owner = np.where(own >= 0, calls.owner[own], -1) if len(calls.ids) else own
    verdicts: dict[WorkFigures, int] = {}
    code = np.zeros(len(own), dtype=np.int64)
    for place in np.unique(own[owner < 0]).tolist():
        unknown = WorkFigures(reason="no operator around the launch" if place < 0 else f"no formula for {calls.name(place)}")
        code[(owner < 0) & (own == place)] = verdicts.setdefault(unknown, len(verdicts))
    order = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0):]
    names, families, tensor_cores = (Texts(launches[name]) for name in ("names", "family", "tensor_cores"))
    for rows in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1) if len(order) else ():
        place = int(owner[rows[0]])
        group = [Launch(names[row], families[row], tensor_cores[row], calls.name(int(own[row])) or "") for row in rows.tolist()]
        for row, verdict in zip(rows.tolist(), _verdicts(group, calls, place), strict=True):
            code[row] = verdicts.setdefault(verdict, len(verdicts))
    return _table(launches, calls, owner, code, list(verdicts))


def _table(launches: pa.Table, calls: OperatorCalls, owner: Int, code: Int, verdicts: list[WorkFigures]) -> pa.Table:
    at = pa.array(np.where(owner >= 0, owner, 0), mask=owner < 0)
    columns = {"op": calls.names.of(at), "op_range_id": pa.array(calls.ids).take(at), "op_shapes": calls.shapes.of(at)}
    for place, name in enumerate(WorkFigures._fields):
        columns[name] = pa.array([verdict[place] for verdict in verdicts], _SCHEMA.field(name).type).take(pa.array(code))
    return pa.table({name: columns[name] if name in columns else launches[name] for name in _SCHEMA.names}).cast(_SCHEMA)


def _verdicts(group: list[Launch], calls: OperatorCalls, place: int) -> list[WorkFigures]:
    """Return what is said of each launch of a call: its work to those that certainly did it, the reason to the others."""
    if calls.wrapped[place]:
        return [WorkFigures(reason="an operator inside this one has counted")] * len(group)
    work = calls.work(place)
    unknown = WorkFigures(call_flop=work.flop, call_bytes=work.bytes, call_launches=len(group))
    together = unknown._replace(reason=f"{len(group)} kernels share the work of one call")
    if len(group) == 1:
        busy = [True]
    elif work.kind == "stream":
        return [_known(launch, work, together) for launch in group]
    else:
        busy = [launch.family in FAMILIES[work.kind] and not _HELPER.search(launch.names) for launch in group]
    found = [unknown._replace(reason=f"a helper of {work.formula}, which does none of its multiply-adds")] * len(group)
    does = [row for row, is_busy in enumerate(busy) if is_busy]
    for row in does:
        found[row] = _known(group[row], work, unknown)
        if _is_certain(group, does, row, work):
            found[row] = _verdict(found[row], work)
        else:
            reason = f"kernels of the call: {len(does)}, products: {max(1, len(work.parts))}; they cannot be distinguished"
            found[row] = found[row]._replace(reason=reason)
    return found


def _known(launch: Launch, work: OperatorWork, unknown: WorkFigures) -> WorkFigures:
    """Return what is known of a launch that does work of a call, whether all of it or not."""
    precision = _PRECISION.get(work.element or "")
    return unknown._replace(precision=precision, peak_key=_peak(work, precision, launch.tensor_cores))


def _is_certain(group: list[Launch], does: list[int], row: int, work: OperatorWork) -> bool:
    """Return whether one of the launches that do a call's work does a whole product of it.

    Of a backward convolution: where there are as many as products, where one may be all that was asked for, and where
    operator or kernel names say which gradient each is of and this one is alone with its own.
    """
    if not work.parts:
        return len(does) == 1
    sides = Counter(_side(group[other]) for other in does)
    if len(does) == len(work.parts) or (len(does) == 1 and work.flop is None):
        return None in sides or max(sides.values()) == 1  # two kernels of one gradient: that of the other is missing
    return None not in sides and sides[_side(group[row])] == 1


def _side(launch: Launch) -> str | None:
    """Return which gradient a kernel computes, by the operator inside that launched it, else by its name."""
    for side, pattern in (("input", _OF_INPUT), ("weight", _OF_WEIGHT)):
        if launch.own.endswith(f"_backward_{side}"):
            return side
        if not launch.own.endswith(("_backward_input", "_backward_weight")) and pattern.search(launch.names):
            return side
    return None


def _verdict(known: WorkFigures, work: OperatorWork) -> WorkFigures:
    """Return what is said of a launch that does a whole product, or all of the call."""
    flop, size = (work.parts[0].flop, work.parts[0].bytes) if work.parts else (work.flop, work.bytes)
    reason = None
    if flop is None or size is None:
        reason = "element types were not recorded" if work.reason is None or work.parts else work.reason
    definition = None if flop is None else f"from shapes: {work.definition}"
    return known._replace(formula=work.formula, work_flop=flop, minimal_bytes=size, work_definition=definition, reason=reason)


def _peak(work: OperatorWork, precision: str | None, tensor_cores: bool | None) -> str | None:
    """Return the peak that bounds a launch: element-wise work is computed in fp32; fp32 products on tensor cores are TF32."""
    if precision == "fp64":
        return "fp64" if work.kind == "stream" or tensor_cores is False else "tensor_fp64" if tensor_cores else None
    if work.kind == "stream":
        return "fp32" if precision in ("fp32", "fp16", "bf16") else None
    if precision == "fp32":
        return None if tensor_cores is None else "tensor_tf32" if tensor_cores else "fp32"
    return _TENSOR_PEAK.get(precision or "")
