"""Whether what is filtered on is there: the runs, ranks, steps, tools and families of a store, and the names in a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nsightlens import schema
from nsightlens.errors import UsageError
from nsightlens.names.closest import closest_first
from nsightlens.names.distinct import shortened
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
_CAPTURED = {*schema.TABLES["kernels"].schema.names, "item", "operator", _KERNEL}.difference(_OF_STORE)
"""Columns whose values come from the captures. That none has another value, such as a verdict, is an answer."""
_NUMBERS = ("rank", "step")
_ANY = "*"
_MOST = 10
_LONGEST = 60  # characters of a value that are shown


class _Store(Protocol):
    """What is asked of a Store."""

    def view(self, name: str, **parameters: object) -> pa.Table: ...

    def sql(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None) -> pa.Table: ...

    def values_of(self, column: str) -> list[Any]: ...


def values(ask: Callable[[str], pa.Table], what: str) -> list[Any]:
    """Return the values of a column in their order, or the kernels, those with the most time first."""
    found = ask(VALUES[what]).column(0).to_pylist()
    return found if what == _KERNEL else sorted(found)


def confirm(known: Callable[[str], list[Any]], filters: Mapping[str, object], spelled: str) -> None:
    """Raise UsageError for a run, rank, tool or family that the store does not have, or where it has none of the steps; name
    those that it has, the closest first.

    known: column -> the values that the store has. filters: column, only_<column> or which_<column> -> a value or several;
    None, alone or among others, is no value. spelled: how people write a filter, such as '--{}'.
    """
    for column in _OF_STORE:
        given = next((filters[name] for name in (column, f"only_{column}", f"which_{column}") if name in filters), None)
        wanted = [value for value in (given if isinstance(given, (list, tuple)) else [given]) if value is not None]
        if not wanted:
            continue
        there = set(map(str, known(column)))
        unknown = [value for value in wanted if str(value) not in there]
        if unknown and (column != "step" or len(unknown) == len(wanted)):
            kind = f"{column}{'s' * (len(there) > 1)} " if there and column in _NUMBERS else ""
            raise UsageError(f"{spelled.format(column)} {unknown[0]}: the store has {kind}{listed(known(column), unknown[0])}",
                             subject=column, value=unknown[0], choices=known(column))


def confirm_of(store: _Store, view: View, parameters: Mapping[str, object]) -> None:
    """Raise UsageError where a view is asked for a run, rank, step, tool or family that the store does not have."""
    own, selected = registry.asked(view, parameters)
    confirm(store.values_of, {**own, **selected}, "only_{}")


def expanded(store: _Store, view: View, given: Mapping[str, object], parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters with which a view is asked: a name with * in it, which no row has, becomes the names that it matches.

    given: parameters that come with the name by which the view was asked for. Raises UsageError for a pattern that matches none.
    """
    asked = {**given, **parameters}
    _, filters = registry.asked(view, asked)
    patterns = {column: wanted for column, wanted in filters.items()
                if column in _CAPTURED and any(isinstance(value, str) and _ANY in value for value in wanted)}
    if not patterns:
        return asked
    others = {name: value for name, value in asked.items() if name.removeprefix("only_") not in filters}
    rows = values_in(store, view, others, patterns)
    for column, wanted in patterns.items():
        there = sorted({str(row[column]) for row in rows if row[column] is not None})
        asked[f"only_{column}"] = [name for value in wanted for name in _matching(value, there)]
        if there and not asked[f"only_{column}"]:
            raise _not_there(view, column, wanted[0], there)
    return asked


def _matching(value: object, there: Sequence[str]) -> list[Any]:
    """Return the names that a value stands for: itself, or where it is none of them and has a *, those like it in any case."""
    if not isinstance(value, str) or _ANY not in value or value in there:
        return [value]
    like = re.compile(".*".join(map(re.escape, value.split(_ANY))), re.DOTALL | re.IGNORECASE)
    return [name for name in there if like.fullmatch(name)]


def _not_there(view: View, column: str, value: object, there: Iterable[Any]) -> UsageError:
    choices = sorted(there)
    pattern = f"*{value}*"
    hint = f"; * stands for any text: 'only_{column}={pattern}'" if _matching(pattern, list(map(str, choices))) else ""
    return UsageError(f"only_{column} {value}: {view.name} has {listed(choices, value)}{hint}", subject=column, value=value,
                      choices=choices, view=view.name)


def confirm_in(store: _Store, view: View, given: Mapping[str, object], parameters: Mapping[str, object]) -> None:
    """Raise UsageError for a name that is nowhere in a view, which has no rows with these parameters; name the closest.

    given: parameters that come with the name by which the view was asked for.
    """
    _, filters = registry.asked(view, parameters)
    others = {name: value for name, value in parameters.items() if name.removeprefix("only_") not in filters}
    asked = {column: set(map(str, wanted)) for column, wanted in filters.items() if column in _CAPTURED and None not in wanted}
    if not asked:
        return
    rows = values_in(store, view, {**given, **others}, asked)
    for column, wanted in asked.items():
        there = {row[column] for row in rows if row[column] is not None}
        if there and not wanted & set(map(str, there)) and not any(isinstance(value, bool) for value in there):
            raise _not_there(view, column, filters[column][0], there)


def values_in(store: _Store, view: View, others: Mapping[str, object], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return the distinct values of columns, and of `run`, in a view without filters. others: its own parameters."""
    names = [name for name, _ in view.columns if name in {"run", *columns}]
    if view.sql and view.scope == "rows":  # as many rows as events: none of them is fetched
        query, bound = registry.query(view, others)
        chosen = ", ".join(f'"{name}"' for name in names)
        found = store.sql(f"SELECT DISTINCT {chosen} FROM ({query})", bound)
    else:
        found = store.view(view.name, **others).select(names).group_by(names).aggregate([])
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def listed(known: Iterable[Any], wanted: object) -> str:
    """Return what there is, for a message: 0-7; of more than ten names those that are most like the one wanted."""
    there = sorted(set(known))
    if not there:
        return "none"
    if all(isinstance(value, int) for value in there):
        return spans(map(str, there))
    texts = list(map(str, there))
    shown = closest_first(str(wanted), texts)[:_MOST] if len(texts) > _MOST else texts
    cut = shortened(shown, _LONGEST)
    return ", ".join(cut[text] for text in shown) + (f" and {len(texts) - _MOST} more" if len(texts) > _MOST else "")
