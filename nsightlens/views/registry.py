"""The views and macros of `sql/*/*.sql` and the analyses: which there are, their order, and the SQL that asks for one.

A view takes no parameters, so that `SELECT * FROM kernel_summary WHERE run = 'base'` works in any DuckDB. A macro is used
only where a parameter changes the computation: `SELECT * FROM top_kernels(how_many := 5)`. On top of that `query` gives
every view the filters only_<column> (`only_run='base'`, `only_rank=3`, or a list of values): they select rows of the
result, so that shares still refer to the whole run; None filters nothing. Names that begin with `_` are private.

What SQL cannot say is a file in `analyses/`, with the face of a view. Headers: nsightlens/views/header.py.

Views are created in a DuckDB connection that holds the tables of `schema`; what is written here is understood by DuckDB
1.4.2 and later. Sums of integers are cast back with TRY_CAST(sum(...) AS BIGINT): one beyond 63 bits, which only a damaged file
can lead to, is unknown and stops no view.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from nsightlens import schema
from nsightlens.errors import UsageError, ViewError
from nsightlens.public_calls import as_number
from nsightlens.terminal.command import Command
from nsightlens.views import search
from nsightlens.views.header import PACKAGE, Literal, Param, View, format_default, parse, parse_analysis, section

if TYPE_CHECKING:
    import duckdb

TABLES = (*schema.TABLES, "gpu_peaks")
"""Tables that a view may require."""
_FILTER = "only_"
_MADE = "_made_"
_NEAR, _SLIP = 3, 0.8


@lru_cache(maxsize=1)
def load() -> dict[str, View]:
    """Return every view by name, private ones included, each after those it requires."""
    found = (parse(file.read_text(encoding="utf-8"), file) for file in sql_files())
    return ordered({named_like_its_file(view).name: view for view in found})


def sql_files() -> list[Path]:
    """Return the files that hold a view each, by name, from the folders of all topics."""
    return sorted((PACKAGE / "sql").glob("*/*.sql"), key=lambda file: file.name)


@lru_cache(maxsize=1)
def file_names() -> frozenset[str]:
    """Return the names of all views, private ones included, without reading a file."""
    return frozenset(file.stem for file in sql_files())


def known() -> dict[str, View]:
    """Return all that can be queried, by name: the public views, and the analyses."""
    return dict(sorted({**public(load()), **analyses()}.items()))


@lru_cache(maxsize=1)
def analyses() -> dict[str, View]:
    """Return the analyses by name, from the text of their modules: nothing is imported."""
    files = sorted((PACKAGE / "analyses").glob("[!_]*.py"))
    found = (parse_analysis(file.read_text(encoding="utf-8"), file) for file in files)
    return {view.name: view for view in found if view is not None}


def named_like_its_file(view: View) -> View:
    """Return the view. Raises ViewError where its file has another name."""
    if view.file.stem != view.name:
        raise ViewError(view.file, view.line, f"it creates {view.name}: name the file {view.name}.sql")
    return view


def public(views: Mapping[str, View]) -> dict[str, View]:
    """Return the views meant for people: those whose name does not begin with an underscore."""
    return {name: view for name, view in views.items() if not name.startswith("_")}


def create(connection: duckdb.DuckDBPyConnection, *, temporary: bool = False) -> None:
    """Create all views and macros in the connection's current schema, replacing older ones, with their documentation.

    temporary: in its temporary schema instead, where they hide those of the same name, without documentation.

    DuckDB binds a view when it is made, together with all that lies below it. So each is made under another name, over empty
    tables that stand in for the views it requires, and takes the place of its own stand-in when all are made.
    Raises ViewError for a view that DuckDB refuses.
    """
    found = load().values()
    required = {name for view in found for name in view.requires}
    kind = "TEMP " if temporary else ""
    for view in found:
        if view.is_macro:
            execute(connection, view, view.sql.replace("CREATE ", f"CREATE OR REPLACE {kind}", 1))
            continue
        if not temporary:
            connection.execute(f"DROP VIEW IF EXISTS {view.name}")
        execute(connection, view, view.sql.replace(f"CREATE VIEW {view.name}", f"CREATE {kind}VIEW {_MADE}{view.name}", 1))
        if view.name in required:
            connection.execute(f"CREATE {kind}TABLE {view.name} AS FROM {_MADE}{view.name} LIMIT 0")
    for view in found:
        if not view.is_macro:
            if view.name in required:
                connection.execute(f"DROP TABLE {view.name}")
            connection.execute(f"ALTER VIEW {_MADE}{view.name} RENAME TO {view.name}")
        if not temporary:
            document(connection, view)


def execute(connection: duckdb.DuckDBPyConnection, view: View, statement: str) -> None:
    """Run the statement that creates a view, line for line that of its file. Raises ViewError for what DuckDB refuses in it."""
    import duckdb

    try:
        statements = connection.extract_statements(statement)
        if len(statements) != 1:
            raise ViewError(view.place, view.line, "a file holds one statement, which creates one view or macro")
        connection.execute(statements[0])
    except (duckdb.ProgrammingError, duckdb.NotSupportedError) as exc:
        found = re.search(r"^LINE (\d+):", str(exc), re.MULTILINE)
        raise ViewError(view.place, view.line + (int(found[1]) - 1 if found else 0), str(exc).splitlines()[0]) from exc


def document(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    """Write the documentation of a view that is there into the catalog."""
    if view.is_macro:
        connection.execute(f"COMMENT ON MACRO TABLE {view.name} IS {_quoted(_macro_comment(view))}")
        return
    connection.execute(f"COMMENT ON VIEW {view.name} IS {_quoted(_doc_and_assumptions(view))}")
    for name, doc in () if view.name.startswith("_") else view.columns:
        connection.execute(f"COMMENT ON COLUMN {view.name}.{name} IS {_quoted(doc)}")


def query(view: View, parameters: Mapping[str, object], source: str | None = None) -> tuple[str, list[object]]:
    """Return the SQL that selects from `view`, and the values to bind to it. source: what holds its rows, instead of itself.

    `parameters`: the view's own, and only_<column> for any of its columns (a value, or a list of values). Text is taken as
    the command line gives it: a number where the column or the parameter holds numbers, 'null' for None. Raises UsageError.
    """
    arguments, selected = split_parameters(view, parameters)
    call = f"({', '.join(f'{name} := ?' for name in arguments)})" if view.is_macro else ""
    conditions = [f'"{column}" IN ({", ".join("?" * len(wanted))})' if wanted else "false" for column, wanted in selected.items()]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    values = [*arguments.values(), *(one for many in selected.values() for one in many)]
    return f"SELECT * FROM {source or view.name}{call}{where}", values


def split_parameters(view: View, parameters: Mapping[str, object]) -> tuple[dict[str, object], dict[str, list[object]]]:
    """Return the view's own parameters with their values, and {column: values} that select rows. Raises UsageError."""
    arguments: dict[str, object] = {}
    selected: dict[str, list[object]] = {}
    own = {param.name: param for param in view.params}
    columns = {name for name, _ in view.columns}
    for name, value in parameters.items():
        column = name.removeprefix(_FILTER)
        if name in own:
            is_text = isinstance(own[name].default, str) and value is not None
            converted = _converted(name, value if isinstance(value, list) or not is_text else str(value), own[name].type)
            if converted is None and not own[name].takes_null:
                raise UsageError(f"{view.name}: {name} takes a value, such as its default {own[name].default}", subject=name,
                                 value=value, view=view.name)
            if converted != own[name].default:  # as a constant of the view, DuckDB sees it before it plans
                arguments[name] = converted
        elif name.startswith(_FILTER) and (column in columns or f"which_{column}" in own):
            many = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
            wanted = [_converted(name, one, _column_type(column)) for one in many]
            if one := own.get(f"which_{column}"):
                arguments |= _single(view, one, wanted, parameters)
            if wanted != [None] and column in columns:
                selected[column] = wanted
        else:
            choices = [*own, *(_FILTER + column for column in columns)]
            if (other := under_another_name(view, column)) and name.startswith(_FILTER):
                raise UsageError(f"{view.name}: there is no parameter {name}; did you mean {_FILTER}{other}?",
                                 subject="parameter", value=name, choices=sorted(choices), view=view.name)
            raise unknown("parameter", name, choices, view=view.name)
    return arguments, selected


def _single(view: View, param: Param, wanted: list[object], parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the parameter which_step of a view that shows one step, from a filter on steps. Raises UsageError for several."""
    column = param.name.removeprefix("which_")
    if len(wanted) != 1 or parameters.get(param.name) not in (None, *wanted):
        raise UsageError(f"{view.name} takes a single {column}", subject=column, value=wanted, view=view.name)
    return {param.name: wanted[0]} if wanted != [None] else {}


def under_another_name(view: View, column: str) -> str | None:
    """Return the column of names in a view that holds what other views call `column`: `name` for op in operator_summary."""
    wanted = {"op": "operator"}.get(column, column)
    return next((name for name, what in view.names if what == wanted and name != column), None)


def with_filters(view: View, parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters with each that is a column of the view, and no parameter of it, as the filter on that column.

    Raises UsageError for a column that is filtered twice.
    """
    own = {param.name for param in view.params}
    columns = {name for name, _ in view.columns} | {name.removeprefix("which_") for name in own if name.startswith("which_")}
    found: dict[str, object] = {}
    for name, value in parameters.items():
        filter_ = f"{_FILTER}{name}" if name in columns - own else name
        if filter_ in found:
            column = filter_.removeprefix(_FILTER)
            raise UsageError(f"{view.name}: {column} and {_FILTER}{column} are the same filter; give one of them",
                             subject="parameter", value=name, view=view.name)
        found[filter_] = value
    return found


def filtered(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the filters among `parameters`, by the column that each selects on."""
    return {name.removeprefix(_FILTER): value for name, value in parameters.items()
            if name.startswith(_FILTER) and value is not None}


def is_named(name: str, views: Mapping[str, View]) -> bool:
    """Return whether a name is that of a view, or another tool's for one, maybe with nsys's options."""
    stem = name.partition(":")[0]
    return stem in views or any(alias.name == stem for view in views.values() for alias in view.aliases)


def named(name: str, views: Mapping[str, View]) -> tuple[View, dict[str, object]]:
    """Return the view that a name stands for, and the parameters that come with it: it may be another tool's name for the view.

    Raises UsageError for a name that is none, and for nsys's `name:option`.
    """
    stem, colon, _ = name.partition(":")
    aliases = {alias.name: (view, alias) for view in views.values() for alias in view.aliases}
    if not is_named(name, views):
        raise unknown("view", name, [*views, *aliases], "nsightlens views lists them, and nsightlens views WORDS finds some",
                      near=search.about(stem, views))
    view = views[stem] if stem in views else aliases[stem][0]
    if colon:
        raise UsageError((f"{name}: options behind a colon are nsys's. ", Command("show", (stem,)), " has the rows without "
                          "them; ", Command("views", (stem,)), f" lists the columns and parameters of {view.name}"),
                         subject="view", value=name)
    return view, {} if stem in views else dict(aliases[stem][1].parameters)


def unknown(kind: str, name: str, known: Iterable[str], listed_by: str = "", view: str | None = None,
            near: Sequence[str] = ()) -> UsageError:
    """Return the error for a name that is none of `known`: it names the nearest ones, else what lists them, else all.

    view: the view that has these parameters or columns. near: names that mean the same: they come behind those that look like
    a slip of the pen, and before those that are only spelt alike.
    """
    listed = sorted(known)
    slips = difflib.get_close_matches(name, listed, n=_NEAR, cutoff=_SLIP)
    near = slips or near[:_NEAR] or difflib.get_close_matches(name, listed, n=_NEAR)
    there = listed_by or f"there are {', '.join(listed)}"
    hint = f"did you mean {' or '.join(near)}?" if near else there
    where = f"{view}: " if view else ""
    return UsageError(f"{where}there is no {kind} {name}; {hint}", subject=kind, value=name, choices=listed, view=view)


def markdown() -> str:
    """Return the documentation page of all public views (docs/views.md)."""
    lines = [
        "# Views", "",
        "Generated by `python -m nsightlens.views.registry` from the headers of `sql/*/*.sql` and `analyses/*.py`.", "",
        "Query a view with `nsightlens show NAME`, `store.view(\"NAME\")` or `SELECT * FROM NAME`; a macro is called in SQL:",
        "`SELECT * FROM top_kernels(how_many := 5)`. `show` and `store.view` also take `only_<column>=value` for every column",
        "of the result: it selects rows, so that shares still refer to the whole run.", "",
    ]
    lines += [f"- [{name}](#{name}): {view.summary}" for name, view in known().items()] + [""]
    for view in known().values():
        lines += section(view)
    return "\n".join(lines)


def ordered(views: Mapping[str, View], others: Collection[str] = ()) -> dict[str, View]:
    """Return the views, each after those it requires, else in the order given. others: views that are there besides these.

    Raises ViewError for a view that requires itself, or what is neither a view nor a table.
    """
    found: dict[str, View] = {}

    def place(view: View, on_the_way: tuple[str, ...]) -> None:
        if view.name in on_the_way:
            raise ViewError(view.file, view.line, f"views require each other: {' -> '.join((*on_the_way, view.name))}")
        for other in view.requires:
            if other in views:
                place(views[other], (*on_the_way, view.name))
            elif other not in TABLES and other not in others:
                lines = enumerate(view.source.splitlines(), 1)
                line = next(number for number, text in lines if "@requires" in text and other in text)
                raise ViewError(view.file, line, f"it requires {other}, which is neither a view nor a table")
        found.setdefault(view.name, view)

    for view in views.values():
        place(view, ())
    return found


def _column_type(column: str) -> type:
    """Return the Python type of a result column's values, as far as the schema says; text otherwise, which DuckDB casts."""
    for table in schema.TABLES.values():
        index = table.schema.get_field_index(column)
        if index >= 0:
            type_ = table.schema.field(index).type
            return int if pa.types.is_integer(type_) else float if pa.types.is_floating(type_) else str
    return str


def _converted(name: str, value: object, type_: type) -> object:
    """Return a value as one of the type; text for it as the command line gives it. Raises UsageError."""
    if isinstance(value, str) and value.lower() == "null":
        return None
    if value is None or (type_ is str and not isinstance(value, list)):  # what is no text, DuckDB casts
        return value
    found: object = value
    if isinstance(value, str):
        with suppress(ValueError, KeyError):
            found = {"true": True, "false": False}[value.lower()] if type_ is bool else type_(value)
    found = found if type_ is bool else as_number(found, type_)
    if isinstance(found, bool if type_ is bool else (int, float)):
        return found
    wanted = {int: "a whole number of 64 bits", float: "a finite number", bool: "true or false", str: "one value"}[type_]
    raise UsageError(f"{name} takes {wanted}, not {value!r}", subject=name, value=value)


def _macro_comment(view: View) -> str:
    lines = [f"{param.name} := {format_default(param.default)}: {param.doc}" for param in view.params]
    return "\n".join([_doc_and_assumptions(view), *lines, *(f"{name}: {doc}" for name, doc in view.columns)])


def _doc_and_assumptions(view: View) -> str:
    return "\n".join([view.doc, *(f"Assumes: {text}" for text in view.assumes)])


def literal(value: Literal) -> str:
    """Return a default as SQL has it."""
    return "NULL" if value is None else _quoted(value) if isinstance(value, str) else str(value).lower()


def identifier(name: str) -> str:
    """Return the name of a table, view or column as SQL has it, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
