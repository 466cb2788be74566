"""The work of one operator call as a value: operations and least bytes, None where unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ProductWork:
    """One of several products that a call computes, each by a kernel of its own."""

    name: str
    flop: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """Operations and least bytes of one call, None where unknown.

    kind: family of the kernels that do the work; 'stream' for what reads and writes each element. element: type of the
    elements that are computed with. definition: how the operations are counted. parts: what is asked of a call with several
    products; where a call does not record which, all that it may compute, and `flop` is None.
    """

    formula: str
    kind: Literal["gemm", "convolution", "attention", "stream"] = "stream"
    flop: int | None = None
    bytes: int | None = None
    element: str | None = None
    definition: str = ""
    reason: str | None = None
    parts: tuple[ProductWork, ...] = ()
