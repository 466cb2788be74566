"""The page of `summary`: the first runs, each with its sections."""

from __future__ import annotations

from collections.abc import Sequence

import click

from nsightlens.pages.asked import Page
from nsightlens.pages.page import page_width, put
from nsightlens.pages.sections import ordered
from nsightlens.terminal.printable import printable

MOST = 3
"""Runs with a page each; of more, the user chooses."""
_NAMED = 12


def put_pages(pages: Sequence[Page], runs: Sequence[str], how_to_choose: str) -> None:
    """Put the pages of the first runs, and the names of the others. how_to_choose: what gives the page of one."""
    for number, page in enumerate(pages):
        if number:
            put()
        put(click.style(f"{printable(str(page.run))} ".ljust(page_width(), "═"), bold=True))
        for section in ordered(page):
            section(page)
    put()
    if len(runs) > len(pages):
        names = ", ".join(map(str, runs[len(pages):len(pages) + _NAMED]))
        put(printable(f"{len(runs) - len(pages)} more runs; {how_to_choose} gives the page of one: {names}"))
