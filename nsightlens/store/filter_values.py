"""Whether what is filtered on is there: the runs, ranks, steps, tools and families of a store, and the names in a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from nsightlens import schema
from nsightlens.errors import UsageError, not_a_choice
from nsightlens.names.closest import closest_first
from nsightlens.names.distinct import shortened
from nsightlens.terminal.quoting import quoted
from nsightlens.views import registry
from nsightlens.views.figures import spans
from nsightlens.views.header import View

if TYPE_CHECKING:
    import pyarrow as pa

_KERNEL = "kernel"
VALUES = {
    "run": "SELECT DISTINCT run FROM profiles",
    "rank": "SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL",
    "step": "SELECT DISTINCT step FROM ranges WHERE step IS NOT NULL",
    "tool": "SELECT DISTINCT tool FROM profiles",
    "family": "SELECT DISTINCT family FROM kernels WHERE family IS NOT NULL",
    _KERNEL: "SELECT short_name FROM kernels WHERE short_name IS NOT NULL GROUP BY ALL ORDER BY sum(duration_ns) DESC",
}
"""The query for the values that a store has of what people name."""
_OF_STORE = [column for column in VALUES if column != _KERNEL]
_CAPTURED = {*schema.TABLES["kernels"].schema.names, "item", "operator", _KERNEL, "kind", "item_kind"}.difference(_OF_STORE)
"""Columns whose values come from the captures. That none has another value, such as a verdict, is an answer."""
_NUMBERS = ("rank", "step")
_PATTERN = ("*", "…")
"""What stands for any text: * in what people write, … in names as tables and messages show them."""
_MOST = 10
_LONGEST = 60  # characters of a value that are shown


class _Store(Protocol):
    """What is asked of a Store."""

    def view(self, name: str, **parameters: object) -> pa.Table: ...

    def sql(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None) -> pa.Table: ...

    def values_of(self, column: str) -> list[Any]: ...


def values(ask: Callable[[str], pa.Table], what: str) -> list[Any]:
    """Return the values of a column in their order, or the kernels, those with the most time first. Raises UsageError."""
    if what not in VALUES:
        raise not_a_choice(None, "column", what, VALUES)
    values_there = ask(VALUES[what]).column(0).to_pylist()
    return values_there if what == _KERNEL else sorted(values_there)


def confirm(known: Callable[[str], list[Any]], filters: Mapping[str, object], spelled: str) -> None:
    """Raise UsageError for a run, rank, tool or family that the store does not have, or where it has none of the steps; name
    those that it has, the closest first.

    known: column -> the values that the store has. filters: column, only_<column> or which_<column> -> a value or several;
    None, alone or among others, is no value. spelled: how people write a filter, such as '--{}'.
    """
    for column in _OF_STORE:
        filtered = next((filters[name] for name in (column, f"only_{column}", f"which_{column}") if name in filters), None)
        wanted = [value for value in (filtered if isinstance(filtered, (list, tuple)) else [filtered]) if value is not None]
        if not wanted:
            continue
        known_values = set(map(str, known(column)))
        unknown = [value for value in wanted if str(value) not in known_values]
        if unknown and (column != "step" or len(unknown) == len(wanted)):
            kind = f"{column}{'s' * (len(known_values) > 1)} " if known_values and column in _NUMBERS else ""
            raise UsageError(f"{spelled.format(column)} {unknown[0]}: the store has {kind}{listed(known(column), unknown[0])}",
                             subject=column, value=unknown[0], choices=known(column))


def confirm_of(store: _Store, view: View, parameters: Mapping[str, object]) -> None:
    """Raise UsageError where a view is asked for a run, rank, step, tool or family that the store does not have."""
    own, selected = registry.split_parameters(view, parameters)
    confirm(store.values_of, {**own, **selected}, "only_{}")


def expanded(store: _Store, view: View, given: Mapping[str, object], parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters with which a view is asked: a name with * or … in it that no row has becomes those that it matches.

    given: parameters that come with the name by which the view was asked for. Raises UsageError for a pattern that matches none.
    """
    asked = {**given, **parameters}
    _, filters = registry.split_parameters(view, asked)
    patterns = [column for column, wanted in filters.items() if column in _CAPTURED and any(map(_is_pattern, wanted))]
    for column in patterns:
        there = _there(store, view, asked, column)
        names = list(map(str, there.left or there.all))
        asked[f"only_{column}"] = [name for value in filters[column] for name in _matching(value, names)]
        if names and not asked[f"only_{column}"]:
            raise _not_there(view, column, filters[column][0], there)
    return asked


def _is_pattern(value: object) -> bool:
    return isinstance(value, str) and any(sign in value for sign in _PATTERN)


def _matching(value: object, there: Sequence[str]) -> list[Any]:
    """Return the names that a value stands for: itself, or where it is none of them, those that its * leaves open, in any case,
    or for which it was shown."""
    if not _is_pattern(value) or value in there:
        return [value]
    from nsightlens.names.display_names import resolve_display_name

    text = str(value)
    like = re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL | re.IGNORECASE)
    return [name for name in there if like.fullmatch(name)] or resolve_display_name(text, there)


@dataclass(frozen=True, slots=True)
class _There:
    """The values of a column: all in the view, and those in the rows that the other filters leave, which said names."""

    all: list[Any]
    left: list[Any]
    said: str


def _there(store: _Store, view: View, asked: Mapping[str, object], column: str) -> _There:
    """Return the values of a column in a view, and in the rows that the other filters leave."""
    own, filters = registry.split_parameters(view, asked)
    others = {name: list(map(str, wanted)) for name, wanted in filters.items() if name != column and None not in wanted}
    rows = [row for row in values_in(store, view, own, [column, *others]) if row[column] is not None]
    remaining = [row for row in rows if all(str(row[name]) in wanted for name, wanted in others.items())]
    all_values, remaining_values = (sorted({row[column] for row in of}) for of in (rows, remaining))
    return _There(all_values, remaining_values, ", ".join(f"{name} {', '.join(wanted)}" for name, wanted in others.items())
                  if remaining_values else "")


def _not_there(view: View, column: str, value: object, there: _There) -> UsageError:
    from nsightlens.names.kernel_names import labels

    choices = there.left or there.all
    pattern = f"*{value}*"
    hint = f"; * stands for any text: 'only_{column}={pattern}'" if _matching(pattern, list(map(str, choices))) else ""
    where = view.name + (f" with {there.said}" if there.said else "")
    shown = labels(choices, _LONGEST) if column in view.kernels else {}
    return UsageError(f"only_{column} {value}: {where} has {listed(choices, value, shown)}{hint}", subject=column, value=value,
                      choices=choices, view=view.name)


def found_instead(
    store: _Store, view: View, given: Mapping[str, object], parameters: Mapping[str, object],
) -> dict[str, object] | None:
    """Return the parameters for a view that has no rows with these: with the names that are meant by those which are nowhere in
    it, but are shown in tables for others; None where there are none such.

    given: parameters that come with the name by which the view was asked for. Raises UsageError, which names the closest, for a
    name that is neither.
    """
    _, filters = registry.split_parameters(view, parameters)
    asked = {**given, **parameters}
    instead: dict[str, object] = {}
    for column, wanted in filters.items():
        if column not in _CAPTURED or not wanted or None in wanted or any(isinstance(value, bool) for value in wanted):
            continue
        there = _there(store, view, asked, column)
        if not there.all or set(map(str, wanted)) & set(map(str, there.all)) or isinstance(there.all[0], bool):
            continue
        from nsightlens.names.display_names import resolve_display_name

        names = [name for value in wanted for name in resolve_display_name(str(value), map(str, there.left or there.all))]
        if not names:
            raise _not_there(view, column, wanted[0], there)
        instead[f"only_{column}"] = names
    return {**asked, **instead} if instead else None


def values_in(store: _Store, view: View, others: Mapping[str, object], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return the distinct values of columns, and of `run`, in a view without filters. others: its own parameters."""
    names = [name for name, _ in view.columns if name in {"run", *columns}]
    if view.sql and view.scope == "rows":  # as many rows as events: none of them is fetched
        query, bound = registry.query(view, others)
        chosen = ", ".join(f'"{name}"' for name in names)
        distinct = store.sql(f"SELECT DISTINCT {chosen} FROM ({query})", bound)
    else:
        distinct = store.view(view.name, **others).select(names).group_by(names).aggregate([])
    rows: list[dict[str, Any]] = distinct.to_pylist()
    return rows


def listed(known: Iterable[Any], wanted: object, shown: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return what there is, for a message: 0-7, or ten names at most, as a shell takes them, the most like the one wanted first.

    shown: name -> what is shown for it.
    """
    known_names = sorted(set(known))
    if not known_names:
        return "none"
    if all(isinstance(value, int) for value in known_names):
        return spans(map(str, known_names))
    texts = list(map(str, known_names))
    near = closest_first(str(wanted), texts)[:_MOST]
    cut = {**shortened(near, _LONGEST), **shown}
    return ", ".join(quoted(cut[text]) for text in near) + (f" and {len(texts) - _MOST} more" if len(texts) > _MOST else "")
