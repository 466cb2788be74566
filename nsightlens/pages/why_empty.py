"""The reason why a view has no rows: what no capture holds, or which filter leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nsightlens.store.filter_values import listed, values_in
from nsightlens.views.figures import spans
from nsightlens.views.requirements import REQUIREMENTS, Requirement

if TYPE_CHECKING:
    from nsightlens.store.store import Store
    from nsightlens.views.header import View

_FEW_RUNS = 3
_PLURALS = {"step": "steps", "rank": "ranks", "device": "devices", "stream": "streams", "window_index": "windows"}
_ONE = "which_"


def why_empty(store: Store, view: View, asked: Mapping[str, object]) -> list[str]:
    """Return the lines that say why `view` has no rows with these parameters.

    asked: the view's own parameters, and only_<column> -> a value or several.
    """
    missing = [_missing(store, REQUIREMENTS[name], asked) for name in view.needs
               if not _is_there(store, REQUIREMENTS[name].rows, asked)]
    if missing:
        return [f"{view.name} is empty: {text}" for text in missing]
    if of_tools := _not_of_tools(store, view, asked):
        return of_tools
    filters = {name.removeprefix("only_"): _several(value) for name, value in asked.items()
               if name.startswith("only_") and value is not None}
    others = {name: value for name, value in asked.items() if not name.startswith("only_")}
    alone = [line for name, value in others.items() if name.startswith(_ONE) and value is not None
             for line in _not_there(store, name.removeprefix(_ONE), _several(value), filters.get("run"))]
    own = {name: value for name, value in others.items() if value is not None}
    if not alone and own and store.view(view.name, **{name: value for name, value in asked.items() if name not in own}).num_rows:
        shown = ", ".join(f"{name} {', '.join(sorted(_several(value)))}" for name, value in own.items())
        return [f"{view.name} has no row with {shown}; without, it has"]
    if alone or not filters:
        return alone or [f"{view.name} is empty: these captures hold nothing that it lists. {view.summary}"]
    rows = values_in(store, view, others, filters)
    if not rows:
        return [f"{view.name} is empty without the filters, too: these captures hold nothing that it lists. {view.summary}"]
    if set(filters) == {"run"}:
        runs = ", ".join(sorted(filters["run"]))
        return [f"{view.name} has no row of run {runs}: what it lists is in other runs. {view.summary}"]
    said = [line for column, wanted in filters.items() if column != "run"
            for line in _none_of(column, wanted, _rows_of_runs(rows, filters.get("run")))]
    shown = ", ".join(f"{column} {', '.join(sorted(wanted))}" for column, wanted in filters.items())
    return said or [f"{view.name} has no row with {shown} together; it has rows with each alone"]


def _missing(store: Store, need: Requirement, asked: Mapping[str, object]) -> str:
    """Return what was not recorded and how to, or in which other form it was."""
    rows, said = need.otherwise or ("", "")
    return said if rows and _is_there(store, rows, asked) else f"{need.missing}: {need.remedy}"


def _not_of_tools(store: Store, view: View, asked: Mapping[str, object]) -> list[str]:
    """Return what each tool that is asked for did not record, or cannot; nothing where one of them recorded all."""
    tools = sorted(_several(asked["only_tool"])) if asked.get("only_tool") is not None else []
    found = {tool: [name for name in view.needs if REQUIREMENTS[name].by
                    and not _is_there(store, REQUIREMENTS[name].rows, asked, tool)]
             for tool in tools}
    if not all(found.values()):
        return []
    lines = []
    for tool, names in found.items():
        need = REQUIREMENTS[names[0]]
        why = f": {need.missing}: {need.by[tool]}" if tool in need.by else f", which does not record this: {need.remedy}"
        lines.append(f"{view.name} has no rows of {tool}{why}")
    return lines


def _is_there(store: Store, rows: str, asked: Mapping[str, object], tool: str | None = None) -> bool:
    """Return whether some capture of the runs that are asked for, and of the tool, holds what is needed."""
    runs = sorted(_several(asked["only_run"])) if asked.get("only_run") is not None else None
    of_tool = "" if tool is None else "AND tool = $tool"
    query = f"SELECT count(*) AS n FROM (FROM {rows}) WHERE ($runs IS NULL OR list_contains($runs, run)) {of_tool}"
    return bool(store.sql(query, {"runs": runs} | ({} if tool is None else {"tool": tool})).column(0)[0].as_py())


def _several(value: object) -> set[str]:
    """Return a value, or several, as texts."""
    return {str(one) for one in value} if isinstance(value, (list, tuple, set, frozenset)) else {str(value)}


def _rows_of_runs(rows: list[dict[str, Any]], runs: set[str] | None) -> list[dict[str, Any]]:
    return [row for row in rows if runs is None or str(row.get("run")) in runs]


def _not_there(store: Store, column: str, wanted: set[str], runs: set[str] | None) -> Iterator[str]:
    """Yield a line per run for a single value that no step of it has; of `step` and `rank` alone it is known which there are."""
    if column in ("step", "rank", "run"):
        yield from _none_of(column, wanted, _rows_of_runs(store.view("step_breakdown").select(["run", column]).to_pylist(), runs))


def _none_of(column: str, wanted: set[str], rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what there is of a column, per run, where none of the rows has a value that is wanted."""
    if any(str(row[column]) in wanted for row in rows):
        return
    by_run: dict[str, list[Any]] = {}
    for row in rows:
        by_run.setdefault(str(row.get("run", "the store")), []).append(row[column])
    for run, values in list(by_run.items())[:_FEW_RUNS]:
        asked = ", ".join(sorted(wanted))
        yield f"{run} has {_listed(column, [value for value in values if value is not None], asked)}, not {asked}"
    if not by_run:
        yield f"no row has {column} {', '.join(sorted(wanted))}"


def _listed(column: str, values: list[Any], wanted: str) -> str:
    """Return the values of a column as people say them: steps 5 to 10; tool kineto, nsys."""
    if not values:
        return f"no {column}"
    if all(isinstance(value, int) for value in values) and column in _PLURALS:
        return f"{_PLURALS[column]} {spans(map(str, values)).replace('-', ' to ')}"
    return f"{column} {listed(values, wanted)}"
