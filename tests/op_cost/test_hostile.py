"""Any text for shapes, types and arguments has an answer: a work of whole numbers that are not negative, or a reason."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from nsightlens.op_cost import KNOWN, OperatorWork, work
from nsightlens.op_cost.calls import ELEMENT_BYTES
from tests.op_cost import test_streams
from tests.op_cost.test_contractions import CONVOLUTION, CONVOLUTIONS, PRODUCTS, written

TYPES = [*ELEMENT_BYTES, "c10::Half", "Scalar", "ScalarList", "TensorList", "", "Int", "c10::complex<float>", None, 3]
VALUES = ["", "0", "1", "-1", "True", "False", "[]", "[0]", "[1, 1]", "[2, 2]", "[-9]", "[true]", "[True, False, True]", "nan",
          "inf", "1e400", '"same"', "[[1]]", "None", "99999999999999999999", None]
SIZES = [0, 1, 2, 3, 7, 64, 2**31, 2**62]


def dims(chance: random.Random) -> object:
    made = [chance.choice(SIZES) for _ in range(chance.randrange(6))]
    return chance.choice([made, made, made, [], [made, made], None, "x", 3, [1.5], [-1], [True]])


def check(found: OperatorWork) -> None:
    for number in (found.flop, found.bytes, *(part.flop for part in found.parts), *(part.bytes for part in found.parts)):
        assert number is None or (type(number) is int and 0 <= number < 1 << 63), found
    assert found.reason or found.flop is not None or found.bytes is not None


VALID = [*((name, arguments) for name, arguments, *_ in (*test_streams.CALLS, *PRODUCTS)),
         *((name, (*CONVOLUTION, *rest)) for name, rest in CONVOLUTIONS)]


@pytest.mark.parametrize(("name", "arguments"), VALID, ids=range(len(VALID)))
def test_a_valid_call_with_one_thing_wrong_has_an_answer(name: str, arguments: tuple[Any, ...]) -> None:
    chance = random.Random(name)
    for _ in range(200):
        shapes, types, values = ([*column] for column in written(arguments))
        for _ in range(chance.choice([1, 1, 2])):
            column, choices = chance.choice([(shapes, None), (types, TYPES), (values, VALUES)])
            column[chance.randrange(len(column))] = dims(chance) if choices is None else chance.choice(choices)
        check(work(f"aten::{name}", json.dumps(shapes), json.dumps(types), json.dumps(values)))


def test_deep_nesting_has_an_answer() -> None:
    check(work("aten::mm", "[" * 200_000, "[" * 200_000, "[" * 200_000))
    check(work("aten::sum", "[[4], [], [], []]", None, json.dumps(["", "[" * 200_000, "", ""])))


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_any_call_has_an_answer(name: str) -> None:
    chance = random.Random(name)
    for _ in range(100):
        count = chance.randrange(20)
        shapes = json.dumps([dims(chance) for _ in range(count)])
        types = json.dumps([chance.choice(TYPES) for _ in range(count + chance.choice([0, 0, 0, 1]))])
        values = json.dumps([chance.choice(VALUES) for _ in range(count)])
        output = chance.choice([None, None, (), (2,), (2, 3, 7, 7)])
        told = [chance.choice([text, text, text, text, None, "", "{", "[[[[", "null"]) for text in (shapes, types, values)]
        check(work(name, told[0], told[1], told[2], output))
