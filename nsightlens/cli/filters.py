"""The filters --run --rank --step --tool --family: the same on every command that prints a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nsightlens.cli.complete import store_value
from nsightlens.errors import UsageError
from nsightlens.terminal.command import Command
from nsightlens.terminal.quoting import quoted

if TYPE_CHECKING:
    from nsightlens.store.store import Store
    from nsightlens.views.header import View

COLUMNS = ("run", "rank", "step", "tool", "family")
_T = TypeVar("_T", bound=Callable[..., Any])
_NUMBERED = ("rank", "step")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_MOST = 10_000  # numbers in a range


def filter_options(function: _T) -> _T:
    """Add --run, --rank, --step, --tool and --family; each may come several times."""
    helps = {"run": "Only this run.", "rank": "Only these ranks: 3, 0,2 or 0-7.", "step": "Only these steps: 3, 0,2 or 0-7.",
             "tool": "Only what this tool recorded: nsys, ncu or kineto.", "family": "Only kernels of this family."}
    for column in reversed(COLUMNS):
        metavar = "NUMBERS" if column in _NUMBERED else "NAME"
        function = click.option(f"--{column}", f"only_{column}", multiple=True, metavar=metavar, help=helps[column],
                                shell_complete=store_value(column))(function)
    return function


def chosen(options: Mapping[str, Any]) -> dict[str, list[object]]:
    """Return {column: values} of the filters that were given, from the keyword arguments of a command. Raises UsageError."""
    found: dict[str, list[object]] = {}
    for column in COLUMNS:
        given: tuple[str, ...] = options[f"only_{column}"]
        values = [number for text in given for number in _numbers(column, text)] if column in _NUMBERED else list(given)
        if values:
            found[column] = list(dict.fromkeys(values))
    return found


def confirm(store: Store, filters: Mapping[str, object]) -> None:
    """Raise UsageError for a run, rank, tool or family that the store does not have, or where it has none of the steps.

    filters: column -> values, as `chosen` gives them, or only_<column> or which_<column> -> a value or several, as a view is
    asked.
    """
    from nsightlens.store import filter_values

    filter_values.confirm(store.values_of, filters, "--{}")


def _numbers(column: str, text: str) -> list[int]:
    """Return the numbers that people write as 3, 0,2 or 0-7."""
    found: list[int] = []
    for part in text.split(","):
        span = _SPAN.fullmatch(part.strip())
        if span is None:
            raise UsageError(f"--{column} {text}: give a number, a list (0,2) or a range (0-7)", subject=column, value=text)
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first or last - first >= _MOST:
            raise UsageError(f"--{column} {text}: a range is ascending and has at most {_MOST:,} numbers",
                             subject=column, value=text)
        found.extend(range(first, last + 1))
    return found


def parameters_of(name: str, views: Mapping[str, View], filters: Mapping[str, list[object]],
                  pairs: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the parameters for view `name`: KEY=VALUE arguments, and filters as only_<column>.

    Raises UsageError for a column that the view lacks, naming a view that has it, and for a column that is filtered twice.
    """
    asked: dict[str, object] = dict(pairs or {})
    if name in views:
        from nsightlens.views.registry import with_filters

        asked = with_filters(views[name], asked)
    for column, values in filters.items():
        if f"only_{column}" in asked:
            raise UsageError(f"only_{column} and --{column} are the same filter; give one of them",
                             subject=column, value=values, view=name)
        asked[f"only_{column}"] = values
    if name in views:
        for key, value in asked.items():
            _check(name, views, key, value)
    return asked


def _check(name: str, views: Mapping[str, View], key: str, value: object) -> None:
    view, column = views[name], key.removeprefix("only_")
    own = {param.name for param in view.params}
    if key in own or (column != key and (column in dict(view.columns) or f"which_{column}" in own)):
        return
    instead = _as_option(key, value) if key not in COLUMNS else []
    if column == key and instead:
        raise UsageError(f"{name}: there is no parameter {key}; write {' or '.join(instead)}", subject="parameter", value=key,
                         choices=[*own, *(f"only_{one}" for one, _ in view.columns)], view=name)
    others = nearest_with(column, name, views)
    if others:
        from nsightlens.views.registry import under_another_name

        mine = under_another_name(view, column)
        meant = f"; did you mean only_{mine}?" if mine else ";"
        having = f"{' and '.join(others)} {'has' if len(others) == 1 else 'have'} it"
        raise UsageError((f"{name} has no column {column}{meant} {having}: ", Command("show", (others[0],))),
                         subject="column", value=column, choices=[column for column, _ in view.columns], view=name)


def _as_option(key: str, value: object) -> list[str]:
    """Return the option of the command at work that a parameter seems to mean, as it is written."""
    context = click.get_current_context(silent=True)
    options = [one for one in context.command.params if isinstance(one, click.Option)] if context else []
    return [f"--{key} {quoted(str(value))}" for one in options if f"--{key}" in one.opts and not one.is_flag and not one.hidden]


def nearest_with(column: str, name: str, views: Mapping[str, View], how_many: int = 2) -> list[str]:
    """Return the views that have `column`, those first that share the most columns with view `name`."""
    def shared(other: str) -> float:
        mine, theirs = _names(views[name].columns), _names(views[other].columns)
        return len(mine & theirs) / len(mine | theirs)

    having = [other for other, view in views.items() if other != name and column in _names(view.columns)]
    return sorted(having, key=lambda other: (-shared(other), other))[:how_many]


def _names(columns: Iterable[tuple[str, str]]) -> set[str]:
    return {name for name, _ in columns}
