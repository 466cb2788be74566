"""The header of a view: the text of one .sql file, or of one analysis in Python -> a View.

Each .sql file holds one statement under a header of comments:

    -- What a row is, in a sentence or two.
    -- @scope profile
    -- @topic ranks     (an analysis only: the question that it is listed under, nsightlens/views/topics.py; SQL is in its folder)
    -- @needs modules   (what a capture must hold for the view to have rows: nsightlens/views/requirements.py)
    -- @requires other_view, third_view
    -- @param  how_many   What it changes.
    -- @column name       What it holds.
    -- @columns kernels   (all columns of that table, documented in schema.py)
    -- @names   kernel name, kernel_key   (columns that hold names of kernels; kernel: what other views call such a column)
    -- @first   name, total_ns   (the columns that a narrow terminal keeps longest)
    -- @alias   its_name  (what another tool calls it: `show its_name` shows the view)
    -- @alias   a_name how_many=5   (the same, with a parameter, or a filter: only_domain=NCCL)
    -- @assumes A sentence that must be true for the answer to be; one line each, at least one in a public view.
    -- @note    Which rows or times it leaves out, and which view has them: a line below its table.
    -- @note_across  The same, where there are several ranks.
    -- @balance span_ns = busy_ns + idle_ns   (books that every answer must keep; nsightlens/views/balance.py)
    CREATE VIEW name AS ...          or: CREATE MACRO name(how_many := 20) AS TABLE ...

What SQL cannot say is a Python module with a function `analyse`; its docstring is a header of the same form.

@scope says what the rows of a view depend on:

    profile   one profile alone, which the column profile_id names: other profiles in the store change nothing
    run       more than one profile: ranks, tools, counters, a whole run, or several
    rows      it has as many rows as there are events; what they depend on is left open
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as OneOf
from typing import get_args

from nsightlens import schema
from nsightlens.errors import UsageError, ViewError
from nsightlens.views.balance import Balance, parse_balance
from nsightlens.views.requirements import REQUIREMENTS
from nsightlens.views.topics import TOPICS

Literal = int | float | str | bool | None
Scope = OneOf["profile", "run", "rows"]
PACKAGE = Path(__file__).resolve().parents[1]
NO_FILE = Path("view")

_SCOPES: tuple[Scope, ...] = get_args(Scope)
_TAG = re.compile(r"@(\w+)\s*(.*)")
_TAGS = ("scope", "topic", "needs", "alias", "requires", "param", "column", "columns", "names", "first", "balance", "assumes",
         "note", "note_across")
_STATEMENT = re.compile(r"^CREATE (?P<kind>VIEW|MACRO) (?P<name>\w+)\s*(?:\((?P<params>[^)]*)\))?\s+AS\s", re.MULTILINE)

_FACE = re.compile(r"^def analyse\(.*?\)(?: -> [^:\n]+)?:", re.MULTILINE | re.DOTALL)
"""The face of an analysis. What stands below it is not looked at: parsing all of a module takes seven times as long."""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a macro: its name, what it changes, and the value it has when not given."""

    name: str
    doc: str
    default: Literal
    type: type
    """What a text given for it is converted to: an analysis annotates it, a macro has its default; str: left to DuckDB."""

    @property
    def takes_null(self) -> bool:
        """Return whether None is a value of it: it is the default, or the documentation says what NULL means."""
        return self.default is None or "NULL" in self.doc


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a view, and the parameters that go with it (as text)."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the name, and the parameters in parentheses."""
        given = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.name} ({given})" if given else self.name


@dataclass(frozen=True, slots=True, repr=False)
class View:
    """One view, table macro or analysis: its documentation, and the statement that creates it ("" for an analysis).

    scope: what its rows depend on (see above). aliases: what other tools call it. requires: the views and tables that it reads.
    names: the columns that hold names, each with what it names. first: the columns that are asked for first. needs: what a
    capture must hold for it to have rows (names of NEEDS).
    topic: the question that it is listed under (a name of TOPICS, or the user's folder).
    note, note_across: what people must know who see the table alone, and what more if it is of several ranks.
    file: where it stands; source: the whole text of that file; line: the line on which the statement (or the analysis) begins.
    """

    name: str
    doc: str
    columns: tuple[tuple[str, str], ...]
    params: tuple[Param, ...]
    requires: tuple[str, ...]
    scope: Scope
    sql: str
    is_macro: bool
    balances: tuple[Balance, ...]
    assumes: tuple[str, ...]
    file: Path
    source: str
    line: int
    aliases: tuple[Alias, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    first: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    topic: str = ""
    note: str = ""
    note_across: str = ""

    @property
    def summary(self) -> str:
        """Return the first sentence of the documentation."""
        return self.doc.partition(". ")[0].rstrip(".") + "."

    def notes(self, ranks: int) -> list[str]:
        """Return the lines for below a table. ranks: of how many it is."""
        return [note for note in (self.note, self.note_across if ranks > 1 else "") if note]

    @property
    def whole_sums(self) -> list[tuple[str, list[str]]]:
        """Return the columns that are the sum of others in each row, with these."""
        return [(book.total, [part for _, part in book.parts]) for book in self.balances
                if not book.per and all(sign > 0 for sign, _ in book.parts)]

    @property
    def kernels(self) -> list[str]:
        """Return the columns that hold names of kernels."""
        return [column for column, what in self.names if what == "kernel"]

    @property
    def is_shipped(self) -> bool:
        """Return whether the view is a part of nsightlens, not of a user's folder."""
        return self.file.is_relative_to(PACKAGE)

    @property
    def place(self) -> str:
        """Return the file of the view as people read it: below the package as nsightlens/…, elsewhere as it was given."""
        return f"nsightlens/{self.file.relative_to(PACKAGE).as_posix()}" if self.is_shipped else str(self.file)

    def __repr__(self) -> str:
        """Return the name, and the first sentence."""
        return f"<view {self.name}: {self.summary}>"

    def _repr_markdown_(self) -> str:
        """Return the documentation, as Jupyter shows it."""
        return "\n".join(section(self))


def parse(source: str, file: Path = NO_FILE) -> View:
    """Return the view that the text of one .sql file describes. Raises ViewError where its header is malformed."""
    statement = _STATEMENT.search(source)
    if statement is None:
        raise ViewError(file, 1, f"no CREATE VIEW name AS or CREATE MACRO name(…) AS TABLE in: {source[:80]!r}")
    declared = [part.strip() for part in (statement["params"] or "").split(",") if part.strip()]
    line = source.count("\n", 0, statement.start()) + 1
    lines = [re.sub(r"^--\s?", "", text) for text in source[: statement.start()].splitlines()]
    header = _Header(file, lines, 1)
    defaults = {}
    for part in declared:
        name, _, default = part.partition(":=")
        defaults[name.strip()] = _literal(default.strip(), file, line)
    return header.view(statement["name"], defaults, source, line, sql=source[statement.start():].strip(),
                       is_macro=statement["kind"] == "MACRO")


def parse_analysis(source: str, file: Path) -> View | None:
    """Return the view that the docstring of a Python module describes; None for a module without a function `analyse`.

    `analyse(ask, *, parameter=default, ...)` computes it. Raises ViewError where the module or its docstring is malformed.
    """
    face = _FACE.search(source)
    try:
        module = ast.parse(f"{source[:face.end()]} ..." if face else source)
    except SyntaxError as exc:
        raise ViewError(file, exc.lineno or 1, f"no Python: {exc.msg}") from exc
    found = next((node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "analyse"), None)
    if found is None:
        return None
    defaults: dict[str, Literal] = {}
    types = {argument.arg: _annotated(argument.annotation) for argument in found.args.kwonlyargs}
    for argument, default in zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True):
        try:
            defaults[argument.arg] = None if default is None else ast.literal_eval(default)
        except ValueError as exc:
            raise ViewError(file, argument.lineno, f"the default of {argument.arg} is no literal") from exc
    docstring = module.body[0]
    lines = (ast.get_docstring(module) or "").splitlines()
    header = _Header(file, lines, docstring.lineno)
    return header.view(file.stem, defaults, source, found.lineno, sql="", is_macro=False, types=types)


def _annotated(annotation: ast.expr | None) -> type | None:
    """Return the type that an annotation such as `int | None` names; None for one that names none of ours."""
    named = {word.id for word in ast.walk(annotation) if isinstance(word, ast.Name)} if annotation else set()
    return next((kind for kind in (bool, int, float, str) if kind.__name__ in named), None)


class _Header:
    """The lines of a header, sorted by their tags; each keeps its line number in the file. An indented line continues its tag."""

    def __init__(self, file: Path, lines: Iterable[str], first_line: int) -> None:
        self._file = file
        self._doc: list[str] = []
        self._tags: dict[str, list[tuple[int, str]]] = {tag: [] for tag in _TAGS}
        last: list[tuple[int, str]] = []  # lines of the tag above, which an indented line continues
        for number, line in enumerate(lines, first_line):
            if tag := _TAG.fullmatch(line.strip()):
                if tag[1] not in self._tags:
                    raise ViewError(file, number, f"unknown tag @{tag[1]}; there are @{', @'.join(_TAGS)}")
                last = self._tags[tag[1]]
                last.append((number, tag[2].strip()))
            elif last and line.startswith("  ") and line.strip():
                last[-1] = (last[-1][0], f"{last[-1][1]} {line.strip()}")
            elif line.strip():
                self._doc.append(line.strip())

    def view(self, name: str, defaults: Mapping[str, Literal], source: str, line: int, *, sql: str, is_macro: bool,
             types: Mapping[str, type | None] | None = None) -> View:
        """Return the view that the header documents. types: of its parameters, where its source names them. Raises ViewError."""
        columns, params = self._columns(), self._params(defaults, line, types or {})
        called = {name for name, _ in columns}
        return View(
            name=name, doc=" ".join(self._doc), columns=columns, params=params, requires=self._words("requires"),
            scope=self._scope(), sql=sql, is_macro=is_macro,
            balances=tuple(self._balance(*tag, called) for tag in self._tags["balance"]),
            assumes=tuple(text for _, text in self._tags["assumes"]), file=self._file, source=source, line=line,
            aliases=tuple(self._alias(*tag, {*(param.name for param in params), *(f"only_{name}" for name in called)})
                          for tag in self._tags["alias"]),
            names=self._names(called), first=self._first(called), needs=self._needs(), topic=self._topic(),
            **{tag: " ".join(text for _, text in self._tags[tag]) for tag in ("note", "note_across")},
        )

    def _topic(self) -> str:
        """Return the topic: that of the tag, else the folder. Raises ViewError for one that TOPICS does not have."""
        for number, text in self._tags["topic"]:
            if text not in TOPICS:
                raise ViewError(self._file, number, f"@topic {text}: there are {', '.join(TOPICS)}")
            return text
        return self._file.parent.name

    def _needs(self) -> tuple[str, ...]:
        """Return what a capture must hold. Raises ViewError for what NEEDS does not have."""
        found: list[str] = []
        for number, text in self._tags["needs"]:
            found += [word for word in re.split(r"[,\s]+", text) if word]
            if unknown := set(found) - REQUIREMENTS.keys():
                raise ViewError(self._file, number, f"@needs {', '.join(sorted(unknown))}: there are {', '.join(REQUIREMENTS)}")
        return tuple(found)

    def _first(self, columns: set[str]) -> tuple[str, ...]:
        """Return the columns that are asked for first. Raises ViewError for one that the view does not have."""
        found: list[str] = []
        for number, text in self._tags["first"]:
            found += self._existing("first", number, text, columns)
        return tuple(found)

    def _names(self, columns: set[str]) -> tuple[tuple[str, str], ...]:
        """Return the columns that hold names, each with what it names. Raises ViewError for one that the view does not have."""
        named = [(number, *text.partition(" ")) for number, text in self._tags["names"]]
        return tuple((column, what) for number, what, _, listed in named
                     for column in self._existing("names", number, listed, columns))

    def _existing(self, tag: str, number: int, text: str, columns: set[str]) -> list[str]:
        """Return the columns that a tag lists. Raises ViewError for one that the view does not have."""
        found = [word for word in re.split(r"[,\s]+", text) if word]
        if unknown := set(found) - columns:
            raise ViewError(self._file, number, f"@{tag} names {', '.join(sorted(unknown))}, which is no column")
        return found

    def _alias(self, number: int, text: str, params: set[str]) -> Alias:
        name, *given = text.split()
        parameters = tuple((key, value) for key, _, value in (pair.partition("=") for pair in given))
        unknown = {key for key, _ in parameters} - params
        if unknown:
            raise ViewError(
                self._file, number, f"@alias {name} gives {', '.join(sorted(unknown))}, which is no parameter and no filter")
        return Alias(name, parameters)

    def _words(self, tag: str) -> tuple[str, ...]:
        """Return the names that the lines of a tag list."""
        return tuple(word for _, text in self._tags[tag] for word in re.split(r"[,\s]+", text) if word)

    def _scope(self) -> Scope:
        for number, text in self._tags["scope"]:
            for scope in _SCOPES:
                if text == scope:
                    return scope
            raise ViewError(self._file, number, f"@scope is {', '.join(_SCOPES[:-1])} or {_SCOPES[-1]}, not {text!r}")
        raise ViewError(self._file, 1, f"no @scope: what its rows depend on ({', '.join(_SCOPES)})")

    def _columns(self) -> tuple[tuple[str, str], ...]:
        columns = [self._name_and_doc(*tag) for tag in self._tags["column"]]
        for number, table in self._tags["columns"]:
            if table not in schema.TABLES:
                raise ViewError(self._file, number, f"there is no table {table}")
            columns += [(column.name, column.doc) for column in schema.TABLES[table].columns]
        return tuple(columns)

    def _params(self, defaults: Mapping[str, Literal], line: int, types: Mapping[str, type | None]) -> tuple[Param, ...]:
        docs = dict(self._name_and_doc(*tag) for tag in self._tags["param"])
        if set(defaults) != set(docs):
            raise ViewError(self._file, line, f"@param lines and the parameters differ: {_listed(docs)}, and {_listed(defaults)}")
        return tuple(Param(name, docs[name], default, types.get(name) or (str if default is None else type(default)))
                     for name, default in defaults.items())

    def _name_and_doc(self, number: int, text: str) -> tuple[str, str]:
        name, _, doc = text.partition(" ")
        if not doc.strip():
            raise ViewError(self._file, number, f"{name!r} has no documentation")
        return name, doc.strip()

    def _balance(self, number: int, text: str, columns: set[str]) -> Balance:
        """Return the books that a header states. Raises ViewError for a column that the view does not have."""
        try:
            found = parse_balance(text)
        except UsageError as exc:
            raise ViewError(self._file, number, str(exc)) from exc
        unknown = {found.total, *found.per, *(column for _, column in found.parts)} - columns
        if unknown:
            raise ViewError(self._file, number, f"@balance names {', '.join(sorted(unknown))}, which is no column")
        return found


def section(view: View) -> list[str]:
    """Return the documentation of a view as lines of Markdown."""
    lines = [f"## {view.name}", "", view.doc, "", f"Scope: {view.scope}.", ""]
    if notes := view.notes(ranks=2):
        lines += [f"Note: {' '.join(notes)}", ""]
    if view.aliases:
        lines += [f"Also called: {', '.join(f'`{alias}`' for alias in view.aliases)}.", ""]
    if view.needs:
        lines += ["Empty where:", "", *(f"- {REQUIREMENTS[name].missing}: {REQUIREMENTS[name].remedy}" for name in view.needs),
                  ""]
    if view.assumes:
        lines += ["Assumes:", "", *(f"- {text}" for text in view.assumes), ""]
    if view.params:
        lines += ["| parameter | default | meaning |", "|---|---|---|"]
        lines += [f"| {p.name} | {format_default(p.default)} | {_cell(p.doc)} |" for p in view.params] + [""]
    lines += ["| column | meaning |", "|---|---|"]
    lines += [f"| {name} | {_cell(doc)} |" for name, doc in view.columns] + [""]
    return lines + [line for balance in view.balances for line in (f"Balances: `{balance}`", "")]


def format_default(value: Literal) -> str:
    """Return a default as the documentation shows it."""
    return "NULL" if value is None else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _literal(sql: str, file: Path, line: int) -> Literal:
    """Return the Python value of an SQL literal that stands as a default. Raises ViewError where it is none."""
    if sql.startswith("'"):
        return sql[1:-1].replace("''", "'")
    if sql.lower() in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[sql.lower()]
    try:
        return int(sql)
    except ValueError:
        pass
    try:
        return float(sql)
    except ValueError as exc:
        raise ViewError(file, line, f"the default {sql!r} is no literal") from exc
