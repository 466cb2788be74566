"""The views and macros of `sql/*.sql`: their documentation, their order, and the SQL that asks for one.

Each file holds one statement under a header of comments:

    -- What a row is, in a sentence or two.
    -- @requires other_view, third_view
    -- @param  how_many   What it changes.
    -- @column name       What it holds.
    -- @columns kernels   (all columns of that table, documented in schema.py)
    -- @assumes A sentence that must be true for the answer to be; one line each, at least one in a public view.
    -- @balance span_ns = busy_ns + idle_ns   (books that every answer must keep; nsightlens/reconcile.py)
    CREATE VIEW name AS ...          or: CREATE MACRO name(how_many := 20) AS TABLE ...

A view takes no parameters, so that `SELECT * FROM kernel_summary WHERE run = 'base'` works in any DuckDB. A macro is used
only where a parameter changes the computation: `SELECT * FROM top_kernels(how_many := 5)`. On top of that `query` gives
every view the filters only_<column> (`only_run='base'`, `only_rank=3`, or a list of values): they select rows of the
result, so that shares still refer to the whole run; None filters nothing. Names that begin with `_` are private.

What SQL cannot say is a file in `analyses/`, whose docstring is a header of the same form: the face of a view.

Views are created in a DuckDB connection that holds the tables of `schema`; what is written here is understood by DuckDB
1.2 and later. Sums of integers are cast back with TRY_CAST(sum(...) AS BIGINT): one beyond 63 bits, which only a damaged file
can lead to, is unknown and stops no view.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import pyarrow as pa

from nsightlens import reconcile, schema
from nsightlens.errors import SchemaError, UsageError
from nsightlens.reconcile import Balance

if TYPE_CHECKING:
    import duckdb

Literal = int | float | str | bool | None

_TAG = re.compile(r"@(\w+)\s*(.*)")
_STATEMENT = re.compile(r"^CREATE (?P<kind>VIEW|MACRO) (?P<name>\w+)\s*(?:\((?P<params>[^)]*)\))?\s+AS\s", re.MULTILINE)
_FILTER = "only_"
_MADE = "_made_"


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a macro: its name, what it changes, and the value it has when not given."""

    name: str
    doc: str
    default: Literal


@dataclass(frozen=True, slots=True, repr=False)
class View:
    """One view, table macro or analysis: its documentation, and the statement that creates it ("" for an analysis)."""

    name: str
    doc: str
    columns: tuple[tuple[str, str], ...]
    params: tuple[Param, ...]
    requires: tuple[str, ...]
    sql: str
    is_macro: bool
    balances: tuple[Balance, ...] = ()
    assumes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Return the first sentence of the documentation."""
        return self.doc.partition(". ")[0].rstrip(".") + "."

    def __repr__(self) -> str:
        """Return the name, and the first sentence."""
        return f"<view {self.name}: {self.summary}>"

    def _repr_markdown_(self) -> str:
        """Return the documentation, as Jupyter shows it."""
        return "\n".join(_section(self))


@lru_cache(maxsize=1)
def load() -> dict[str, View]:
    """Return every view by name, private ones included, each after those it requires."""
    found = {}
    for file in sorted(resources.files("nsightlens").joinpath("sql").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            view = parse(file.read_text(encoding="utf-8"))
            if file.name != f"{view.name}.sql":
                raise SchemaError(f"sql/{file.name} creates {view.name}")
            found[view.name] = view
    return _ordered(found)


def known() -> dict[str, View]:
    """Return all that can be asked for, by name: the public views, and the analyses."""
    return dict(sorted({**public(load()), **_analyses()}.items()))


@lru_cache(maxsize=1)
def _analyses() -> dict[str, View]:
    """Return the analyses by name, from the text of their modules: nothing is imported."""
    files = sorted(resources.files("nsightlens").joinpath("analyses").iterdir(), key=lambda f: f.name)
    found = (parse_analysis(f.name.removesuffix(".py"), f.read_text(encoding="utf-8"))
             for f in files if f.name.endswith(".py") and not f.name.startswith("_"))
    return {view.name: view for view in found if view is not None}


def public(views: Mapping[str, View]) -> dict[str, View]:
    """Return the views meant for people: those whose name does not begin with an underscore."""
    return {name: view for name, view in views.items() if not name.startswith("_")}


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all views and macros in the connection's current schema, replacing older ones, with their documentation.

    DuckDB binds a view when it is made, together with all that lies below it. So each is made under another name, over empty
    tables that stand in for the views it requires, and takes the place of its own stand-in when all are made.
    """
    found = load().values()
    required = {name for view in found for name in view.requires}
    for view in found:
        if view.is_macro:
            connection.execute(view.sql.replace("CREATE ", "CREATE OR REPLACE ", 1))
            connection.execute(f"COMMENT ON MACRO TABLE {view.name} IS {_quoted(_macro_comment(view))}")
            continue
        connection.execute(f"DROP VIEW IF EXISTS {view.name}")
        connection.execute(view.sql.replace(f"CREATE VIEW {view.name}", f"CREATE VIEW {_MADE}{view.name}", 1))
        if view.name in required:
            connection.execute(f"CREATE TABLE {view.name} AS FROM {_MADE}{view.name} LIMIT 0")
    for view in found:
        if not view.is_macro:
            if view.name in required:
                connection.execute(f"DROP TABLE {view.name}")
            connection.execute(f"ALTER VIEW {_MADE}{view.name} RENAME TO {view.name}")
            _document(connection, view)


def _document(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    connection.execute(f"COMMENT ON VIEW {view.name} IS {_quoted(_doc_and_assumptions(view))}")
    for name, doc in () if view.name.startswith("_") else view.columns:
        connection.execute(f"COMMENT ON COLUMN {view.name}.{name} IS {_quoted(doc)}")


def query(view: View, parameters: Mapping[str, object]) -> tuple[str, list[object]]:
    """Return the SQL that selects from `view`, and the values to bind to it.

    `parameters`: the view's own, and only_<column> for any of its columns (a value, or a list of values). Text is taken as
    the command line gives it: a number where the column or the parameter holds numbers, 'null' for None. Raises UsageError.
    """
    arguments, selected = asked(view, parameters)
    call = f"({', '.join(f'{name} := ?' for name in arguments)})" if view.is_macro else ""
    conditions = [f'"{column}" IN ({", ".join("?" * len(wanted))})' if wanted else "false" for column, wanted in selected.items()]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT * FROM {view.name}{call}{where}", [*arguments.values(), *(one for many in selected.values() for one in many)]


def asked(view: View, parameters: Mapping[str, object]) -> tuple[dict[str, object], dict[str, list[object]]]:
    """Return the view's own parameters with their values, and {column: values} that select rows. Raises UsageError."""
    arguments: dict[str, object] = {}
    selected: dict[str, list[object]] = {}
    own = {param.name: param for param in view.params}
    columns = {name for name, _ in view.columns}
    for name, value in parameters.items():
        column = name.removeprefix(_FILTER)
        if name in own:
            arguments[name] = _converted(name, value, _literal_type(own[name].default))
        elif name.startswith(_FILTER) and column in columns:
            many = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
            wanted = [_converted(name, one, _column_type(column)) for one in many]
            if wanted != [None]:
                selected[column] = wanted
        else:
            choices = [*own, *(_FILTER + column for column in columns)]
            raise UsageError(f"{view.name}: {did_you_mean('parameter', name, choices)}")
    return arguments, selected


def filtered(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the filters among `parameters`, by the column that each selects on."""
    return {name.removeprefix(_FILTER): value for name, value in parameters.items()
            if name.startswith(_FILTER) and value is not None}


def did_you_mean(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name that is none of `known`: the nearest ones, else all."""
    listed = sorted(known)
    near = difflib.get_close_matches(name, listed, n=3, cutoff=0.5)
    return f"there is no {kind} {name}; " + (f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(listed)}")


def parse(text: str) -> View:
    """Return the view that the text of one .sql file describes. Raises SchemaError where its header is malformed."""
    statement = _STATEMENT.search(text)
    if statement is None:
        raise SchemaError(f"no CREATE VIEW or CREATE MACRO … AS TABLE in: {text[:80]!r}")
    name, is_macro = statement["name"], statement["kind"] == "MACRO"
    declared = [part.strip() for part in (statement["params"] or "").split(",") if part.strip()]
    defaults = {part.partition(":=")[0].strip(): _literal(part.partition(":=")[2].strip()) for part in declared}
    lines = [re.sub(r"^--\s?", "", line) for line in text[: statement.start()].splitlines()]
    return _described(f"sql/{name}.sql", name, lines, defaults, text[statement.start():].strip(), is_macro)


def parse_analysis(name: str, source: str) -> View | None:
    """Return the view that the docstring of analyses/<name>.py describes; None for a module without `analyse`.

    `analyse(ask, *, parameter=default, ...)` computes it. Raises SchemaError where the docstring is malformed.
    """
    module = ast.parse(source)
    found = next((node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "analyse"), None)
    if found is None:
        return None
    pairs = zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True)
    defaults = {arg.arg: None if default is None else ast.literal_eval(default) for arg, default in pairs}
    lines = (ast.get_docstring(module) or "").splitlines()
    return _described(f"analyses/{name}.py", name, lines, defaults, "", is_macro=False)


def _described(where: str, name: str, lines: Iterable[str], defaults: Mapping[str, Literal], sql: str, is_macro: bool) -> View:
    doc: list[str] = []
    tags: dict[str, list[str]] = {"requires": [], "param": [], "column": [], "columns": [], "balance": [], "assumes": []}
    for line in lines:
        if tag := _TAG.fullmatch(line.strip()):
            if tag[1] not in tags:
                raise SchemaError(f"{where}: unknown tag @{tag[1]}")
            tags[tag[1]].append(tag[2].strip())
        elif line.strip():
            doc.append(line.strip())
    columns = [_name_and_doc(where, text) for text in tags["column"]]
    columns += [(c.name, c.doc) for table in tags["columns"] for c in schema.TABLES[table].columns]
    return View(
        name=name,
        doc=" ".join(doc),
        columns=tuple(columns),
        params=_params(where, defaults, dict(_name_and_doc(where, text) for text in tags["param"])),
        requires=tuple(word for line in tags["requires"] for word in re.split(r"[,\s]+", line) if word),
        sql=sql,
        is_macro=is_macro,
        balances=tuple(_balance(where, text, dict(columns)) for text in tags["balance"]),
        assumes=tuple(tags["assumes"]),
    )


def markdown() -> str:
    """Return the documentation page of all public views (docs/views.md)."""
    lines = [
        "# Views", "",
        "Generated by `python -m nsightlens.views` from the headers of `sql/*.sql` and `analyses/*.py`.", "",
        "A view is asked with `nsightlens show NAME`, `store.view(\"NAME\")` or `SELECT * FROM NAME`; a macro is called in SQL:",
        "`SELECT * FROM top_kernels(how_many := 5)`. `show` and `store.view` also take `only_<column>=value` for every column",
        "of the result: it selects rows, so that shares still refer to the whole run.", "",
    ]
    lines += [f"- [{name}](#{name}): {view.summary}" for name, view in known().items()] + [""]
    for view in known().values():
        lines += _section(view)
    return "\n".join(lines)


def _section(view: View) -> list[str]:
    lines = [f"## {view.name}", "", view.doc, ""]
    if view.assumes:
        lines += ["Assumes:", "", *(f"- {text}" for text in view.assumes), ""]
    if view.params:
        lines += ["| parameter | default | meaning |", "|---|---|---|"]
        lines += [f"| {p.name} | {_shown(p.default)} | {_cell(p.doc)} |" for p in view.params] + [""]
    lines += ["| column | meaning |", "|---|---|"]
    lines += [f"| {name} | {_cell(doc)} |" for name, doc in view.columns] + [""]
    return lines + [line for balance in view.balances for line in (f"Balances: `{balance}`", "")]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _shown(value: Literal) -> str:
    return "NULL" if value is None else str(value)


def _ordered(views: Mapping[str, View]) -> dict[str, View]:
    """Return the views, each after those it requires, else in the order given."""
    ordered: dict[str, View] = {}

    def place(name: str, on_the_way: tuple[str, ...]) -> None:
        if name in on_the_way:
            raise SchemaError(f"views require each other: {' -> '.join((*on_the_way, name))}")
        for other in views[name].requires:
            if other in views:
                place(other, (*on_the_way, name))
            elif other not in schema.TABLES:
                raise SchemaError(f"sql/{name}.sql requires {other}, which is neither a view nor a table")
        ordered.setdefault(name, views[name])

    for name in views:
        place(name, ())
    return ordered


def _name_and_doc(where: str, text: str) -> tuple[str, str]:
    name, _, doc = text.partition(" ")
    if not doc.strip():
        raise SchemaError(f"{where}: {name!r} has no documentation")
    return name, doc.strip()


def _balance(where: str, text: str, columns: Mapping[str, str]) -> Balance:
    """Return the books that a header states. Raises SchemaError for a column that the view does not have."""
    found = reconcile.parse(text)
    unknown = {found.total, *found.per, *(column for _, column in found.parts)} - set(columns)
    if unknown:
        raise SchemaError(f"{where}: @balance names {', '.join(sorted(unknown))}, which is no column")
    return found


def _params(where: str, defaults: Mapping[str, Literal], docs: Mapping[str, str]) -> tuple[Param, ...]:
    if set(defaults) != set(docs):
        raise SchemaError(f"{where}: @param lines and the parameters differ")
    return tuple(Param(name, docs[name], default) for name, default in defaults.items())


def _literal(sql: str) -> Literal:
    """Return the Python value of an SQL literal that stands as a default."""
    if sql.startswith("'"):
        return sql[1:-1].replace("''", "'")
    if sql.lower() in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[sql.lower()]
    try:
        return int(sql)
    except ValueError:
        return float(sql)


def _literal_type(default: Literal) -> type:
    return str if default is None else type(default)


def _column_type(column: str) -> type:
    """Return the Python type of a result column's values, as far as the schema tells; text otherwise, which DuckDB casts."""
    for table in schema.TABLES.values():
        index = table.schema.get_field_index(column)
        if index >= 0:
            type_ = table.schema.field(index).type
            return int if pa.types.is_integer(type_) else float if pa.types.is_floating(type_) else str
    return str


def _converted(name: str, value: object, type_: type) -> object:
    if not isinstance(value, str):
        return value
    if value.lower() == "null":
        return None
    try:
        if type_ is bool:
            return {"true": True, "false": False}[value.lower()]
        return type_(value)
    except (ValueError, KeyError) as exc:
        wanted = {int: "a whole number", float: "a number", bool: "true or false"}[type_]
        raise UsageError(f"{name} takes {wanted}, not {value!r}") from exc


def _macro_comment(view: View) -> str:
    lines = [f"{param.name} := {_shown(param.default)}: {param.doc}" for param in view.params]
    return "\n".join([_doc_and_assumptions(view), *lines, *(f"{name}: {doc}" for name, doc in view.columns)])


def _doc_and_assumptions(view: View) -> str:
    return "\n".join([view.doc, *(f"Assumes: {text}" for text in view.assumes)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
