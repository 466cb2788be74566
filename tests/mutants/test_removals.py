"""Calls without an argument, and without the call."""

from __future__ import annotations

from tests.mutants.removals import removals


def test_each_argument_and_the_call_are_removed_once() -> None:
    source = "x = f('é', b,\n      key=g(), *rest)\n"
    assert [removal.of(source) for removal in removals(source)] == [
        "x = f(b,\n      key=g(), *rest)\n", "x = f('é', key=g(), *rest)\n", "x = f('é', b,\n      *rest)\n",
        "x = f('é', b,\n      key=g())\n", "x = ('é')\n", "x = f('é', b,\n      key=None, *rest)\n"]


def test_a_generator_alone_and_a_call_without_a_first_argument() -> None:
    assert [removal.of("sum(i for i in a)\n") for removal in removals("sum(i for i in a)\n")] == ["sum()\n", "((i for i in a))\n"]
