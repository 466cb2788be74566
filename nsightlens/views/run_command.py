"""The command behind a row of a view, for one run: it names the run where the store has several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from nsightlens.terminal.command import Command

_NAMES_ITS_RUN = ("show", "compare ranks", "plan-ncu")
"""Commands that take --run."""


def command_of(row: dict[str, Any], runs: Collection[str]) -> Command:
    """Return the command of a row, with its run where the store has several. runs: all of the store."""
    return with_run(Command.of(row["command"]), row["run"], runs)


def with_run(command: Command, run: str, runs: Collection[str]) -> Command:
    """Return a command that asks for one run, where the store has several."""
    if len(runs) < 2 or command.name not in _NAMES_ITS_RUN:
        return command
    places = len(command.words)
    return Command(command.name, (*command.arguments[:places], ("--run", run), *command.arguments[places:]))
