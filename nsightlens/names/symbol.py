"""The cursor over an Itanium C++ symbol: position, substitutions and limits, and the rules that occur within each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from nsightlens.names.abi import STANDARD, CannotRead

MAX_TEXT = 1 << 16
"""Longest text of one part: substitutions may double with every few characters of a hostile symbol."""
MAX_WORK = 1 << 24
"""Characters built for one symbol in all."""
MAX_DEPTH = 100
"""Deepest nesting of types and arguments; real kernel names stay below 40."""

DIGITS = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[0-9]{1,9}(?![0-9])")
_SEQUENCE = re.compile(r"([0-9A-Z]*)_")

Type = tuple[str, str]
"""Text before and behind the declarator: a pointer to a function or array goes in between."""


class Grammar(NamedTuple):
    """The rules that types and expressions share with the names they occur in: each reads from a symbol and returns text."""

    encoding: Rule
    name: Rule
    unqualified: Rule
    operator_name: Rule
    template_arguments: Rule
    expression: Rule


class Symbol:
    """One pass over a symbol: `at` is the position, `seen` the substitutions, `arguments` what T_, T0_ ... stand for."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text = text
        self.grammar = grammar
        self.at = 0
        self.seen: list[Type] = []
        self.arguments: list[str] = []
        self.depth = 0
        self.work = 0
        self.in_lambda = False
        self.closed_by_arguments = False
        self.has_return_type = False
        self.qualifiers = ""

    def take(self, token: str) -> bool:
        """Step over `token` and say so, where it comes next."""
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def need(self, token: str) -> None:
        """Step over `token`, which must come next."""
        if not self.take(token):
            raise CannotRead

    def peek(self, length: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at:self.at + length]

    def match(self, pattern: re.Pattern[str]) -> str:
        """Step over what `pattern` matches; return its last group, or all of it."""
        found = pattern.match(self.text, self.at)
        if found is None:
            raise CannotRead
        self.at = found.end()
        return found.group(found.lastindex or 0)

    def built(self, text: str) -> str:
        """Return `text`, counted against the limits."""
        self.work += len(text) + 1
        if len(text) > MAX_TEXT or self.work > MAX_WORK:
            raise CannotRead
        return text

    def number(self) -> int:
        """Return the next decimal number, of nine digits at most."""
        return int(self.match(_NUMBER))

    def sequence(self) -> int:
        """Return the number of a substitution or parameter: `_` is 0, `0_` is 1, base 36."""
        digits = self.match(_SEQUENCE)
        if len(digits) > 6:
            raise CannotRead
        return int(digits, 36) + 1 if digits else 0

    def listed(self, read: Rule) -> list[str]:
        """Return what `read` returns until E."""
        items = []
        while not self.take("E"):
            items.append(read(self))
        return items

    def enter(self) -> None:
        """Count one more level of nesting."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CannotRead

    def source_name(self) -> str:
        """Return an identifier with its length before it."""
        length = self.number()
        name = self.text[self.at:self.at + length]
        if len(name) != length or not length:
            raise CannotRead
        self.at += length
        return "(anonymous namespace)" if name.startswith("_GLOBAL__N") else name

    def ordinal(self) -> int:
        """Return the number of a lambda or unnamed type, from 1: `_` is 1, `0_` is 2."""
        if self.take("_"):
            return 1
        number = self.number() + 2
        self.need("_")
        return number

    def substitution(self) -> Type:
        """Return what an S..., written earlier, stands for."""
        self.need("S")
        standard = STANDARD.get(self.peek())
        if standard:
            self.at += 1
            return standard, ""
        index = self.sequence()
        if index >= len(self.seen):
            raise CannotRead
        return self.seen[index]

    def template_parameter(self) -> str:
        """Return what a T..., an argument of the function, stands for."""
        self.need("T")
        index = 0 if self.peek() == "_" else self.number() + 1
        self.need("_")
        if self.in_lambda:
            return "auto"
        if index >= len(self.arguments):
            raise CannotRead
        return self.arguments[index]


Rule = Callable[[Symbol], str]
