"""What SQL cannot say. Each module is an analysis with the face of a view: Arrow tables in, one Arrow table out.

Its docstring is a header as in sql/*/*.sql (what a row is, `@scope`, `@requires`, `@param`, `@column`, `@balance`), and its
function `analyse(ask, *, parameter=default)` computes it from what `ask(sql, values)` returns. `nsightlens show NAME`,
`store.view(NAME)` and docs/views.md take it for a view; it is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from nsightlens.analyses import _user_analysis
from nsightlens.errors import UsageError
from nsightlens.views import registry
from nsightlens.views.header import View

Ask = Callable[[str, Sequence[object]], pa.Table]
_Found = TypeVar("_Found")
_found: WeakKeyDictionary[object, dict[Callable[[Ask], Any], Any]] = WeakKeyDictionary()


def cached_per_store(ask: Ask, compute: Callable[[Ask], _Found]) -> _Found:
    """Return compute(ask), which several analyses stand on: computed once for an open store, until it is reopened."""
    store = getattr(ask, "__self__", None)
    if store is None:
        return compute(ask)
    found = _found.setdefault(store, {})
    if compute not in found:
        found[compute] = compute(ask)
    return found[compute]  # type: ignore[no-any-return]


def forget(store: object) -> None:
    """Forget what was computed once for a store: it has changed."""
    _found.pop(store, None)


def run(view: View, parameters: Mapping[str, object], ask: Ask) -> pa.Table:
    """Return the rows of an analysis that the filters among `parameters` leave. Raises UsageError for unknown parameters.

    Raises ViewError for what goes wrong in an analysis of a user's own folder.
    """
    arguments, selected = registry.split_parameters(view, parameters)
    if view.is_shipped:
        table: pa.Table = import_module(f"nsightlens.analyses.{view.name}").analyse(ask, **arguments)
    else:
        table = _user_analysis.run(view, ask, arguments)
    return select(table, selected)


def pieces(view: View, parameters: Mapping[str, object], ask: Ask) -> Iterator[pa.Table] | None:
    """Return the rows of `run` some after others, where an analysis of ours has them so (`tables`); else None."""
    if not view.is_shipped or view.sql:
        return None
    module = import_module(f"nsightlens.analyses.{view.name}")
    if not hasattr(module, "tables"):
        return None
    arguments, selected = registry.split_parameters(view, parameters)
    return (select(table, selected) for table in module.tables(ask, **arguments))


def select(table: pa.Table, selected: Mapping[str, Sequence[object]]) -> pa.Table:
    """Return the rows that have, in each of the columns, one of its values. Raises UsageError for a value of another type."""
    if not selected:
        return table
    import pyarrow.compute as pc

    for column, wanted in selected.items():
        try:
            kind = table.schema.field(column).type
            values = pa.array(wanted).cast(kind) if wanted else pa.array([], kind)
        except pa.ArrowException as exc:
            raise UsageError(f"only_{column}: {', '.join(map(str, wanted))} is no value of that column ({exc})") from exc
        table = table.filter(pc.is_in(table[column], value_set=values))
    return table
