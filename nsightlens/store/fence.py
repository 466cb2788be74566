"""The fence around `Store.sql`: only queries pass, and no file but the store's own parts can be read."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import duckdb

from nsightlens.errors import UsageError

_EXPLAIN_OPTIONS = {"analyze", "verbose"}
_PIVOT_BEGINS = {"pivot", "unpivot", "from", "select", "with"}
_OF_FILES = {"attach", "copy", "export", "import", "install", "load"}
_FENCED = "disabled by configuration"
_ALLOW_FILES = "to let the statement touch other files: allow_files(), or --allow-files"

_SPILL = os.urandom(8).hex()


def raise_fence(
    connection: duckdb.DuckDBPyConnection, files: Iterable[Path] | None, spill: Path | None = None, *, is_locked: bool = True,
) -> None:
    """Keep the connection off the network, extensions and every file but `files` (None: any file), for good.

    What does not fit in memory spills into `spill`, else a folder of this process: DuckDB leaves its spill folder open to
    queries, and by default that is `.tmp` in the working directory. is_locked: no setting can be changed from then on.
    """
    connection.execute("SET temp_directory = ?", [_spill_folder() if spill is None else str(spill)])
    if files is not None:
        connection.execute("SET autoload_known_extensions = false")
        connection.execute("SET allow_community_extensions = false")
        connection.execute("SET allowed_paths = ?", [[str(file.resolve()) for file in files]])
        connection.execute("SET enable_external_access = false")
    if is_locked:
        connection.execute("SET lock_configuration = true")


def _spill_folder() -> str:
    """Return a folder of this process, or "" (nothing spills) where no folder for temporary files can be written.

    Others write into the folder for temporary files as well: they can't guess the name, and have put nothing under it.
    """
    try:
        return str(Path(tempfile.gettempdir()) / f"nsightlens-spill-{os.getpid()}-{_SPILL}")
    except FileNotFoundError:
        return ""


def single_statement(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """Return the one statement that `query` is. Raises UsageError for none, for several and for what DuckDB cannot parse."""
    try:
        query.encode()
        statements = connection.extract_statements(query)
    except duckdb.Error as exc:
        raise UsageError(f"DuckDB: {exc}") from exc
    except UnicodeEncodeError as exc:
        raise UsageError(f"the statement holds a character that no text has: {exc.object[exc.start]!a}") from exc
    if len(statements) != 1:
        raise UsageError(f"expected one SQL statement, got {len(statements)}")
    return statements[0]


def _kind(statement: duckdb.Statement) -> duckdb.StatementType | None:
    """Return the kind of a statement; None for one that DuckDB has no name for in Python."""
    with contextlib.suppress(ValueError):
        return statement.type
    return None


def refuse_all_but_queries(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise UsageError unless `query` is one SELECT (or FROM, VALUES, DESCRIBE, SHOW, SUMMARIZE, PIVOT), or EXPLAIN of one.

    EXPLAIN ANALYZE runs what it explains: what stands behind EXPLAIN must be a query itself.
    """
    statement = single_statement(connection, query)
    explained = _explained(query) if _kind(statement) == duckdb.StatementType.EXPLAIN else None
    if explained is not None:
        statement = single_statement(connection, explained)
    kind = _kind(statement)
    is_query = kind == duckdb.StatementType.SELECT or _is_pivot(statement)
    if not is_query:
        name = kind.name if kind else _words(statement.query)[0][1].upper()
        what = f"EXPLAIN of {name}" if explained is not None else name
        files = f"; {_ALLOW_FILES}" if _words(statement.query)[0][1] in _OF_FILES else ""
        if re.match(r"(?is)\s*CREATE\b.*?\b(VIEW|MACRO)\b", statement.query):
            files = "; a view of your own is a file in a folder: --views FOLDER, nl.open(..., views=FOLDER), docs/python.md"
        raise UsageError(f"a store is read-only, and {what} is not a query{files}")


def fence_refusal(error: Exception) -> str | None:
    """Return what to say where the fence kept DuckDB from a file, else None."""
    return f"DuckDB: {error}; {_ALLOW_FILES}" if _FENCED in str(error) else None


def _is_pivot(statement: duckdb.Statement) -> bool:
    """Say whether it is a PIVOT without a list of columns, which DuckDB runs as two statements: a temporary type, and a query."""
    return _kind(statement) == duckdb.StatementType.MULTI and _words(statement.query)[:1][0][1] in _PIVOT_BEGINS


def _explained(query: str) -> str:
    """Return what stands behind EXPLAIN, its options and their parentheses."""
    words = _words(query)[1:]
    while words and words[0][1] in _EXPLAIN_OPTIONS:
        words = words[1:]
    if words and words[0][1] == "(" and not _is_query_in_parentheses(words):
        depth = 0
        for place, (_, word) in enumerate(words):
            depth += (word == "(") - (word == ")")
            if depth == 0:
                words = words[place + 1:]
                break
    return query.encode()[words[0][0]:].decode() if words else ""


def _is_query_in_parentheses(words: list[tuple[int, str]]) -> bool:
    return words[1:2] != [] and words[1][1] in (*_PIVOT_BEGINS, "(", "values", "describe", "show", "summarize")


def names(query: str) -> set[str]:
    """Return the words of a query, in lower case, but those in texts: the tables and views that it reads are among them."""
    tokens = _tokens(query)
    without = (duckdb.token_type.string_const, duckdb.token_type.comment)
    return {word for _, kind, text in tokens if kind not in without for word in re.findall(r"\w+", text)}


def _words(query: str) -> list[tuple[int, str]]:
    """Return (offset in bytes, text in lower case) of the tokens of a query, comments left out."""
    return [(start, text) for start, kind, text in _tokens(query) if kind != duckdb.token_type.comment]


def _tokens(query: str) -> list[tuple[int, duckdb.token_type, str]]:
    """Return (offset in bytes, kind, text in lower case) of the tokens of a query."""
    tokens = duckdb.tokenize(query)
    content = query.encode()
    if not tokens:
        return []
    ends = [offset for offset, _ in tokens[1:]] + [len(content)]
    return [(start, kind, content[start:end].decode("utf-8", "replace").strip().lower())
            for (start, kind), end in zip(tokens, ends, strict=True)]
