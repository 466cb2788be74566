"""One call of a framework operator as the tools print it -> its operands and its plain arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

Dims = tuple[int, ...]

ELEMENT_BYTES = {
    "float": 4, "double": 8, "Half": 2, "BFloat16": 2, "int": 4, "long int": 8, "long": 8, "long long": 8, "short": 2,
    "short int": 2, "bool": 1, "unsigned char": 1, "signed char": 1, "char": 1, "unsigned short": 2, "unsigned int": 4,
    "unsigned long": 8, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1,
    "complex<float>": 8, "complex<double>": 16,
}
"""Bytes of an element by its C++ type, namespaces left out. `Double`, `Int` and `Bool` were plain arguments in 2021."""
SCALAR_TYPES = {0: "unsigned char", 1: "signed char", 2: "short", 3: "int", 4: "long int", 5: "Half", 6: "float", 7: "double",
                11: "bool", 15: "BFloat16", 23: "Float8_e5m2", 24: "Float8_e4m3fn"}
"""c10::ScalarType, as it stands among the plain arguments -> the C++ type."""
INTEGERS = frozenset(one for one in ELEMENT_BYTES if one.rpartition(" ")[2] in ("bool", "char", "short", "int", "long"))
_WIDENING = ("bool", "unsigned char", "signed char", "short", "int", "long int", "Half", "BFloat16", "float", "double")


class Unclear(Exception):
    """The work of a call cannot be computed; the message says what the capture lacks."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor: its dims, and the type of its elements (None where the tool did not record it)."""

    dims: Dims
    type: str | None

    @property
    def count(self) -> int:
        """Return the number of elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int | None:
        """Return its size, None where the type is unknown. A tensor without dims is an argument, and counts nothing."""
        size = ELEMENT_BYTES.get(self.type or "")
        return 0 if not self.dims else None if size is None else self.count * size

    def like(self, dims: Dims) -> Operand:
        """Return a tensor of the same type."""
        return Operand(dims, self.type)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call. operands: None where an argument is no tensor. values: the plain arguments as text, None where not recorded.

    output: dims of its result, where they come from something other than its arguments.
    """

    name: str
    operands: tuple[Operand | None, ...]
    values: tuple[str | None, ...]
    output: Dims | None = None

    def tensor(self, place: int) -> Operand:
        """Return the tensor at a place. Raises Unclear where there is none."""
        found = self.optional(place)
        if found is None:
            raise Unclear(f"no shape of argument {place + 1}")
        return found

    def optional(self, place: int) -> Operand | None:
        """Return the tensor at a place, None where there is none."""
        return self.operands[place] if place < len(self.operands) else None

    def text(self, place: int) -> str | None:
        """Return the plain argument at a place, None where it was not recorded (or is None itself)."""
        return (self.values[place] or None) if place < len(self.values) else None

    def flag(self, place: int) -> bool | None:
        """Return a plain argument that is True or False, None where it was not recorded."""
        return {"True": True, "False": False}.get(self.text(place) or "")

    def numbers(self, place: int, count: int) -> Dims | None:
        """Return `count` integers of a plain argument; a single one stands for all. None where they were not recorded."""
        try:
            found = json.loads(self.text(place) or "null")
        except (ValueError, RecursionError):
            return None
        many = [found] if isinstance(found, int) else found
        if not isinstance(many, list) or not all(type(one) is int for one in many):
            return None
        return tuple(many * count) if len(many) == 1 else tuple(many) if len(many) == count else None


def parse(name: str, shapes: str | None, types: str | None, concrete: str | None, output: Dims | None = None) -> OperatorCall:
    """Return the call. Raises Unclear where no shapes were recorded, or none that are understood."""
    dims, kinds, values = (_listed(text) for text in (shapes, types, concrete))
    if dims is None:
        raise Unclear("no shapes were recorded")
    kinds = kinds if kinds is not None and len(kinds) == len(dims) else None
    values = values if values is not None and len(values) == len(dims) else None
    operands = tuple(_operand(one, None if kinds is None else kinds[place], kinds is None) for place, one in enumerate(dims))
    return OperatorCall(name, operands, tuple(one if isinstance(one, str) else None for one in values or ()), output)


def _listed(text: str | None) -> list[object] | None:
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _operand(dims: object, type_: object, untyped: bool) -> Operand | None:
    """Return the tensor of these dims; None for lists of tensors, whose types no tool records, and for what is no tensor."""
    if not isinstance(dims, list) or not all(type(one) is int and one >= 0 for one in dims):
        return None
    if untyped:
        return Operand(tuple(dims), None) if dims else None
    element = str(type_).rpartition("::")[2] if isinstance(type_, str) and "<" not in type_ else str(type_).removeprefix("c10::")
    if element in ELEMENT_BYTES:
        return Operand(tuple(dims), element)
    return Operand(tuple(dims), None) if dims else None


def total_bytes(operands: Sequence[Operand | None]) -> int | None:
    """Return the size of all tensors together, None where the type of one is unknown."""
    total = 0
    for operand in operands:
        size = 0 if operand is None else operand.bytes
        if size is None:
            return None
        total += size
    return total


def broadcast(shapes: Sequence[Dims]) -> Dims:
    """Return the common shape. Raises Unclear where there is none."""
    reversed_: list[int] = []
    for dims in shapes:
        for place, size in enumerate(reversed(dims)):
            if place == len(reversed_):
                reversed_.append(size)
            elif reversed_[place] == 1:
                reversed_[place] = size
            elif size not in (1, reversed_[place]):
                raise Unclear("the shapes do not match")
    return tuple(reversed(reversed_))


def promoted(operands: Sequence[Operand]) -> str | None:
    """Return the type of the result of arithmetic on these: PyTorch's promotion; None where it is not known."""
    shaped = [one.type for one in operands if one.dims] or [one.type for one in operands]
    kinds = set(shaped)
    if len(kinds) == 1 and len(shaped) == len(operands):
        return shaped[0]
    if not all(one in _WIDENING for one in kinds):
        return None
    if kinds == {"Half", "BFloat16"}:
        return "float"
    if {"unsigned char", "signed char"} <= kinds:
        return "short"
    widest = max(kinds, key=lambda one: _WIDENING.index(one or ""))
    beside = {one.type for one in operands if not one.dims} - {widest}
    # A number beside integers can make them floats, in the default type; beside bool it decides.
    floats = _WIDENING[6:]
    if widest not in floats and (not beside <= set(_WIDENING[:6]) or (widest == "bool" and beside)):
        return "float" if beside & set(floats) else None
    return widest
