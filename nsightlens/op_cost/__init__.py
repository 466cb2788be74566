"""Operator name and shapes -> the work of a call: operations, and the least bytes it can move. Strings in, integers out.

Two operations per multiply-add, as torch.utils.flop_counter counts; each operand is read once and each result written once.
An operator that is not here, or whose arguments were not recorded, has no work, but a reason.
"""

from __future__ import annotations

from nsightlens.op_cost import contractions, streams
from nsightlens.op_cost.calls import Dims as Dims
from nsightlens.op_cost.calls import Unclear, parse
from nsightlens.op_cost.works import OperatorWork as OperatorWork

CONTRACTIONS = frozenset(contractions.FORMULAS)
"""Operators made of matrix products: of those inside one another, the innermost counts."""
KNOWN = CONTRACTIONS | frozenset(streams.FORMULAS)

_IMPOSSIBLE = 1 << 63


def work(name: str, shapes: str | None, types: str | None, concrete: str | None, output: Dims | None = None) -> OperatorWork:
    """Return the work of one call. shapes, types, concrete: columns of `ranges`; output: dims of its result where known."""
    formula = contractions.FORMULAS.get(name) or streams.FORMULAS.get(name)
    if formula is None:
        return OperatorWork(name, reason="no formula for this operator")
    try:
        found = formula(parse(name, shapes, types, concrete, output))
    except Unclear as exc:
        return OperatorWork(name, reason=str(exc))
    numbers = (found.flop, found.bytes, *(part.flop for part in found.parts), *(part.bytes for part in found.parts))
    if any(number is not None and not 0 <= number < _IMPOSSIBLE for number in numbers):
        return OperatorWork(name, reason="the shapes are impossible")
    return found
