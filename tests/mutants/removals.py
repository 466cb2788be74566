"""What cosmic-ray's operators leave out: a call without one of its arguments, or its first argument in place of a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple


class Removal(NamedTuple):
    """A change of a text. line, column: of the call, which is all that places of one call share."""

    name: str
    line: int
    column: int
    begin: int
    end: int
    instead: str

    def of(self, source: str) -> str:
        """Return the changed text."""
        return source[: self.begin] + self.instead + source[self.end :]


def removals(source: str) -> Iterator[Removal]:
    """Yield the removals of each call of a module, in the order in which `ast.walk` meets the calls."""
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    lines = source.splitlines()

    def place(line: int, offset: int) -> int:
        """Return the place in the text of what ast counts in bytes of its line."""
        return starts[line - 1] + len(lines[line - 1].encode()[:offset].decode())

    def span(node: ast.expr | ast.keyword) -> tuple[int, int]:
        return place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)

    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call):
            begin, end = span(call)
            column = begin - starts[call.lineno - 1]
            spans = sorted([*map(span, call.args), *map(span, call.keywords)])
            for number, (first, last) in enumerate(spans):
                if number + 1 < len(spans):
                    last = spans[number + 1][0]
                elif number:
                    first = spans[number - 1][1]
                elif last == end:  # a generator alone, whose parentheses are those of the call
                    first, last = first + 1, last - 1
                yield Removal("RemoveArgument", call.lineno, column, first, last, "")
            alone = not call.args or isinstance(call.args[0], ast.Starred)
            instead = "None" if alone else f"({source[slice(*span(call.args[0]))]})"
            yield Removal("RemoveCall", call.lineno, column, begin, end, instead)
