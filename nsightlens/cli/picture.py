"""Options of the commands that draw: how large a picture is, its title, its resolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def picture_options(command: _Command) -> _Command:
    """Add --size, --title and --dpi."""
    inches = click.FloatRange(1, 100)
    for option in (
        click.option("--dpi", type=click.IntRange(10, 2400), default=200, show_default=True, help="Dots per inch of a PNG."),
        click.option("--title", default=None, metavar="TEXT", help="Title of the picture; '' for none."),
        click.option("--size", type=(inches, inches), default=None, metavar="WIDTH HEIGHT",
                     help="Size of the picture in inches: 3.5 2.8 fits a column of a paper."),
    ):
        command = option(command)
    return command
