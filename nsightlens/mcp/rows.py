"""Tools that look: runs, views and their rows, statements, kernels by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nsightlens.errors import UsageError
from nsightlens.mcp.answers import MOST_ROWS, Answer
from nsightlens.pages.envelope import About, window_of
from nsightlens.pages.why_empty import why_empty
from nsightlens.schema import TABLES
from nsightlens.store.filter_values import confirm
from nsightlens.terminal.command import Argument, Command
from nsightlens.views import registry, search
from nsightlens.views.start import START

if TYPE_CHECKING:
    from nsightlens.mcp.session import Session
    from nsightlens.store.store import Store
    from nsightlens.views.header import View

OF_RUNS = ("run", "tool", "ranks", "gpus", "kernels", "kernel_ns", "gpu_span_ns", "truncated", "simulated", "errors", "warnings")
_KERNELS = """
FROM (SELECT run, tool, name, any_value(family) AS family, count(*) AS launches, sum(duration_ns) AS total_ns,
  round(100 * sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY run, tool), 2) AS time_pct,
  mode(op) AS op, count(DISTINCT op) AS ops, mode(op_shapes) AS op_shapes, mode(module) AS module,
  count(DISTINCT module) AS modules
FROM kernels WHERE {where} GROUP BY run, tool, name) WHERE {named} ORDER BY total_ns DESC, run, tool, name"""


def runs(session: Session) -> Answer:
    """List the runs of the store: which tools recorded them, ranks, GPUs, kernels and their time. Begin here."""
    return show(session, "profile_overview", columns=list(OF_RUNS))


def views(session: Session, question: str = "") -> Answer:
    """List views, each of which answers a question. question: words to look for, such as "idle time"; none: those to learn
    first.
    """
    known = session.store.views
    names = search.about(question, known, START) if question else [name for name in START if name in known]
    if not names:
        raise UsageError(f"no view is about {question!r}: ask with one word, or without, which lists those to learn first",
                         subject="question", value=question)
    listed = [{"name": name, "summary": known[name].summary} for name in names]
    return Answer(Command("views", tuple(question.split())), {"": pa.Table.from_pylist(listed)}, About("views"),
                  more="ask with other words; the resource nsightlens://views has all")


def describe_view(session: Session, name: str, limit: int | None = None) -> Answer:
    """Say what the rows of a view are, its parameters and its columns. name: of the view, or what another tool calls it. limit:
    columns.
    """
    _refuse_tables(name, session.store)
    view, _ = registry.named(name, session.store.views)
    text = pa.schema([("name", pa.string()), ("meaning", pa.string())])
    about = {"name": view.name, "doc": view.doc, "scope": view.scope, "assumes": list(view.assumes)}
    params = [{"name": each.name, "meaning": f"{each.doc} Default: {each.default}"} for each in view.params]
    columns = [{"name": column, "meaning": meaning} for column, meaning in view.columns]
    return Answer(Command("views", (view.name,)), {
        "view": pa.Table.from_pylist([about]), "parameters": pa.Table.from_pylist(params, text),
        "columns": pa.Table.from_pylist(columns, text)}, About("view"), limit, "ask with limit")


def show(
    session: Session, view: str, filters: dict[str, object] | None = None, columns: list[str] | None = None, sort: str = "",
    limit: int | None = None,
) -> Answer:
    """Return rows of a view. filters: {column: value or list of values}, and the view's own parameters; in names * stands for
    any text. columns: only these; none: all but ids. sort: a column, -column for the largest first. limit: rows (at most
    1,000, and 64 kB).
    """
    store = session.store
    _refuse_tables(view, store)
    found, given = registry.named(view, store.views)
    asked = {**given, **registry.with_filters(found, filters or {})}
    known = [name for name, _ in found.columns]
    for name in [*(columns or []), *([sort.removeprefix("-")] if sort else [])]:
        if name not in known:
            raise registry.unknown("column", name, known, view=found.name)
    rows = _first(store, found, asked, None if sort else _most(limit) + 1)
    if sort:
        rows = rows.sort_by([(sort.removeprefix("-"), "descending" if sort.startswith("-") else "ascending")])
    table = rows.slice(0, _most(limit))
    return Answer(
        Command("show", (found.name, *_filters(asked), *([("--columns", ",".join(columns))] if columns else []),
                         *([("--sort", sort)] if sort else []))),
        {"": table.select(columns or [name for name in known if not name.endswith("_id")])},
        About("show", window=window_of(asked), not_recorded=lambda: [] if table.num_rows else why_empty(store, found, asked),
              notes=lambda: found.notes(2) if table.num_rows else []),
        limit, left=rows.num_rows - table.num_rows, is_cut=not sort)


def _refuse_tables(name: str, store: Store) -> None:
    if name in TABLES and name not in store.views:
        raise UsageError((f"{name} is a table, not a view: ", Command("sql", (f"FROM {name} LIMIT 10",)),
                          "; its columns: ", Command("sql", (f"DESCRIBE {name}",)), " and nsightlens://tables"), subject="view",
                         value=name)


def _first(store: Store, view: View, asked: Mapping[str, Any], most: int | None) -> pa.Table:
    """Return the first rows of a view; most: None: all that there are."""
    def batches() -> Iterator[pa.RecordBatch]:
        count = 0
        for batch in store.batches(view.name, **asked):
            yield batch
            count += batch.num_rows
            if most is not None and count >= most:
                return

    return pa.Table.from_batches(batches()).slice(0, most)


def _most(limit: int | None) -> int:
    return MOST_ROWS if limit is None else min(limit, MOST_ROWS)


def _filters(asked: Mapping[str, object]) -> list[Argument]:
    """Return the arguments of a command for parameters of a view."""
    return [f"{name}={value}" for name, values in asked.items()
            for value in (values if isinstance(values, (list, tuple)) else [values])]


def sql(session: Session, statement: str, limit: int | None = None) -> Answer:
    """Run one SQL query (DuckDB), read-only; every view and table can be named. Tables hold the rows of all runs and tools:
    filter by run and tool, or sums count launches once for each tool. limit: rows (at most 1,000, and 64 kB).
    """
    rows = session.store.sql(statement, most=_most(limit) + 1)
    table = rows.slice(0, _most(limit))
    return Answer(Command("sql", (statement,)), {"": table}, About("sql"), limit, "ask with limit, or aggregate",
                  left=rows.num_rows - table.num_rows, is_cut=True)


def kernels(
    session: Session, run: str | None = None, tool: str | None = None, rank: int | None = None, name: str = "",
    limit: int | None = None,
) -> Answer:
    """List kernels by their time, with the operator, its shapes and the module that launched most of them; of how many that is,
    ops and modules say. name: part of the kernel's name. time_pct is the share of all kernels of the run and tool; a tool that
    did not record operators has null there.
    """
    wanted = {"run": run, "tool": tool, "rank": rank}
    where = [f"{column} = {registry.literal(value)}" for column, value in wanted.items() if value is not None]
    named = f"contains(lower(name), {registry.literal(name.lower())})" if name else "true"
    statement = _KERNELS.format(where=" AND ".join(where) or "true", named=named).strip()
    store = session.store
    confirm(store.values_of, {column: value for column, value in wanted.items() if value is not None}, "{}")
    table = store.sql(statement, most=MOST_ROWS)
    absent = [] if table.num_rows or not name else [f"no kernel's name has {name!r}"]
    return Answer(Command("sql", (" ".join(statement.split()),)), {"": table},
                  About("sql", window=window_of(wanted), not_recorded=lambda: absent), limit,
                  "ask with limit, or with part of a name")

