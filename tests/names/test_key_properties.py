"""Properties of kernel_key over a grammar of C++ names: spellings meet, kernels stay apart, no input breaks or slows it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.names.kernel_names import family, kernel_key, short_name
from nsightlens.names.key import parse
from tests.names import spelling

pytestmark = pytest.mark.long


@settings(max_examples=200)
@given(spelling.kernels)
def test_all_spellings_of_a_kernel_have_one_key(kernel: spelling.Function) -> None:
    spelled = {tool: spell(kernel) for tool, spell in spelling.SPELLINGS.items()}
    keys = {tool: kernel_key(name, tool) for tool, name in spelled.items()}
    assert len(set(keys.values())) == 1, (spelled, keys)
    assert {short_name(name) for name in spelled.values()} == {kernel.name}


@settings(max_examples=200)
@given(spelling.templates, st.data())
def test_another_template_argument_is_another_kernel(kernel: spelling.Function, data: st.DataObject) -> None:
    assert kernel.arguments is not None
    changed = list(kernel.arguments)
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(spelling.arguments)
    other = dataclasses.replace(kernel, arguments=tuple(changed))
    same = spelling.identity(kernel) == spelling.identity(other)
    for tool, spell in spelling.SPELLINGS.items():
        assert (kernel_key(spell(kernel), tool) == kernel_key(spell(other), tool)) == same, (spell(kernel), spell(other))


@settings(max_examples=150)
@given(spelling.kernels, spelling.kernels)
def test_two_kernels_share_a_key_only_when_they_are_one(one: spelling.Function, other: spelling.Function) -> None:
    same = spelling.identity(one) == spelling.identity(other)
    assert (kernel_key(spelling.SPELLINGS["nsys"](one)) == kernel_key(spelling.SPELLINGS["kineto"](other))) == same


TOKENS = [
    *"<>()[]{}:,*&#'\" ", "::", "const ", "void ", "f", "T1", "unnamed>::", "<unnamed>::", "(anonymous namespace)::", "{lambda(",
    "#1}", "[lambda(", ") (instance 1)]", "lambda(", "'lambda'(", "operator()", "operator<", "(int)4", "&(", "true", "4ul",
    "[abi:x]", "[local to x]::", "decltype(nullptr)", "_Z1f", "\n", "\x00", "é",
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map("".join), st.sampled_from([None, "nsys", "ncu", "kineto"]))
def test_any_text_has_a_key(name: str, tool: str | None) -> None:
    assert isinstance(kernel_key(name, tool), str)
    assert isinstance(short_name(name), str)
    assert isinstance(family(name), str)


HOSTILE: dict[str, Callable[[int], str]] = {
    "<": lambda n: "<" * n,
    "open templates": lambda n: "a<" * (n // 2),
    "nested templates": lambda n: "a<" * (n // 3) + ">" * (n // 3),
    "nested as deep as is read": lambda n: ("a<" * 390 + ">" * 390 + ",") * (n // 1171 + 1),
    "(": lambda n: "(" * n,
    "open calls": lambda n: "f(" * (n // 2),
    "open hidden parameters": lambda n: "f<a>(" * (n // 5),
    "parameters in parameters": lambda n: "f<a>(" * (n // 6) + ")" * (n // 6),
    ")": lambda n: ")" * n,
    "local names": lambda n: "f<a>(b)::" * (n // 9),
    "return types": lambda n: "R " * (n // 2) + "f<>()",
    "return types in templates": lambda n: "R<" * 100 + "f<a>(x)::y " * (n // 11),
    "lambdas": lambda n: "{lambda()#1}::operator()() const::" * (n // 34),
    "open lambdas": lambda n: "[lambda(" * (n // 8),
    "scopes": lambda n: "a::" * (n // 3),
    "const": lambda n: "const " * (n // 6),
    "spaces": lambda n: "f<" + " " * n,
    "unnamed": lambda n: "X<unnamed>::" * (n // 12),
    "tags": lambda n: "a" + "[v1]" * (n // 4),
    "digits": lambda n: "f<" + "1" * n,
    "unsigned": lambda n: "f<" + "unsigned " * (n // 9),
    "flash": lambda n: "flash_" * (n // 6) + "(",
    "copies": lambda n: "f(int)" + " [clone " * (n // 8),
}


def _steps(name: str) -> int:
    """Return how many functions were called to read the name."""
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        parse(name)
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_work_grows_with_the_length_only(make: Callable[[int], str]) -> None:
    small, large = make(4_000), make(16_000)
    assert _steps(large) <= 6 * _steps(small) + 200


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_name_of_100_kilobytes_is_read(make: Callable[[int], str]) -> None:
    name = make(100_000)
    assert len(kernel_key(name)) <= 2 * len(name)
    assert family(name)
