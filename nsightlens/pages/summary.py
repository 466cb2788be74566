"""The page of `summary`: the first runs, each with its sections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from nsightlens.pages.page import Renderer
from nsightlens.pages.sections import with_absent
from nsightlens.terminal.printable import printable

if TYPE_CHECKING:
    from nsightlens.pages.section import Absent, Section

MOST = 3
"""Runs with a page each; of more, the user chooses."""
_NAMED = 12


def pages_drawn(
    renderer: Renderer, pages: Sequence[Sequence[Sequence[Section | Absent]]], runs: Sequence[str], how_to_choose: str,
) -> str:
    """Return the pages of the first runs, and the names of the others. how_to_choose: what gives the page of one."""
    drawn = [[renderer.ruled(str(run)), *renderer.drawn(with_absent(parts)), ""] for run, parts in zip(runs, pages, strict=False)]
    others = runs[len(pages):]
    names = ", ".join(map(str, others[:_NAMED]))
    rest = [printable(f"{len(others)} more runs; {how_to_choose} gives the page of one: {names}")] if others else []
    return "\n".join([*chain(*drawn), *rest])
