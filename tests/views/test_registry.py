"""Every view: input, query and expected rows from tests/sql, and what must hold for all of them."""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from nsightlens import schema
from nsightlens.errors import UsageError, ViewError
from nsightlens.views import header, registry
from tests.catalogs import catalog, fill, rows_of, tables_without_rows
from tests.places import ROOT

CASES = ROOT / "tests" / "sql"
PUBLIC = registry.public(registry.load())


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


@pytest.fixture
def connection(empty: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A catalog without rows, and without those a test put into it before."""
    empty.execute("BEGIN")
    yield empty
    empty.execute("ROLLBACK")


def shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _cases() -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*/*.toml")):
        cases = tomllib.loads(path.read_text())["case"]
        found += [pytest.param(path, case, id=f"{path.stem}-{i}") for i, case in enumerate(cases)]
    return found


def _file(name: str) -> str:
    """Return the file of a view, for messages."""
    return str({**registry.load(), **registry.known()}[name].file.relative_to(ROOT))


def test_headers_and_cases_leave_nothing_to_fill_in() -> None:
    """What `make new-view` leaves open, and what anybody has put off."""
    places = [*(ROOT / _file(name) for name in registry.load()), *CASES.glob("*/*.toml"), ROOT / "docs" / "limits.md"]
    left = [f"{path.relative_to(ROOT)}:{number}: {line}" for path in places
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if "TODO" in line and (path.suffix != ".md" or line.startswith("| `"))]
    assert not left, "\n".join(["fill in what begins with TODO:", *left, "then run: make docs && make test-view NAME=…"])


@pytest.mark.parametrize(("path", "case"), _cases())
def test_query_returns_expected_rows(connection: duckdb.DuckDBPyConnection, path: Path, case: dict[str, str]) -> None:
    fill(connection, **{name: rows_of(name, case[name]) for name in schema.TABLES if name in case})
    if "kernels_from" in case:
        connection.execute(f"INSERT INTO kernels BY NAME {case['kernels_from']}")
    result = connection.execute(case["query"])
    header = [column[0] for column in result.description or []]
    got = [header] + [[shown(value) for value in row] for row in result.fetchall()]
    expected = list(csv.reader(case["expected"].strip().splitlines()))
    assert got == expected, "\n".join([
        f"{case['query']} gives", *map(_as_csv, got),
        f"If the statement is wrong, change {_file(path.stem)}; if that is the answer, `expected` in {path.relative_to(ROOT)}."])


def _as_csv(row: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(row)
    return text.getvalue()


@pytest.mark.parametrize("name", registry.load())
def test_documented_columns_are_the_real_ones(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    view = registry.load()[name]
    described = connection.execute(f"DESCRIBE {registry.query(view, {})[0]}").fetchall()
    assert [row[0] for row in described] == [column for column, _ in view.columns], f"{_file(name)}: its @column lines are others"
    wide = [row[0] for row in described if row[1] == "HUGEINT"]
    assert not wide, f"{_file(name)}: Arrow has no integer as wide as {wide}: write TRY_CAST(sum(...) AS BIGINT)"


def test_headers_say_what_rows_and_columns_hold() -> None:
    for name, view in registry.load().items():
        assert view.doc, f"{_file(name)}: the header begins with what a row is"
        undocumented = [column for column, doc in view.columns if not doc]
        undocumented += [param.name for param in view.params if not param.doc]
        assert not undocumented, f"{_file(name)}: say what {undocumented} hold"


def test_headers_say_what_is_assumed() -> None:
    for name, view in registry.known().items():
        assert view.assumes, f"{_file(name)}: the header needs an @assumes line"
        assert len(set(view.assumes)) == len(view.assumes), f"{_file(name)}: an @assumes line stands twice"
        for text in view.assumes:
            said = text.endswith(".") and len(text.split()) >= 6 and text not in view.doc
            assert said, f"@assumes of {name} is no sentence of its own: {text}"


def _below(name: str) -> set[str]:
    """Return the views that a view is made of, itself included."""
    return {name}.union(*(_below(other) for other in registry.load()[name].requires if other in registry.load()))


@pytest.mark.parametrize(("word", "names"), [
    ("step", [name for name in PUBLIC if "_steps" in _below(name)]),
    ("communicat", [name for name, view in PUBLIC.items() if "communication_pattern" in {p.name for p in view.params}]),
    ("launch", ["idle_breakdown", "kernel_launch_summary", "kernel_launch_trace", "launch_statistics", "queue_length",
                "queue_length_series"]),
    ("work", [name for name in PUBLIC if {"idle_ns", "gap_ns"} & dict(PUBLIC[name].columns).keys()]),
    ("collective", ["collective_match", "rank_clock", "rank_skew", "straggler"]),
    ("program", ["kernels_joined", "match_report", "tool_agreement", "tool_match"]),
])
def test_views_say_the_assumption_that_they_inherit(word: str, names: list[str]) -> None:
    """What a step is, which kernels communicate, what an idle time presumes: stated by every view that rests on it."""
    assert names
    silent = [name for name in names if word not in " ".join(registry.known()[name].assumes)]
    assert not silent, f"{silent} rest on what a {word!r} is: say in an @assumes line of their headers what they take it to be"


def test_every_public_view_has_a_test() -> None:
    """By input, query and expected rows, or by a test file elsewhere that asks for them."""
    with_rows = {path.stem for path in CASES.glob("*/*.toml")}
    tests = "".join(path.read_text() for path in CASES.parent.rglob("test_*.py") if path.parent != Path(__file__).parent)
    asked = with_rows.union(*re.findall(r'"(\w+)"|FROM (\w+)', tests))
    untested = PUBLIC.keys() - asked
    assert not untested, f"no test asks for {untested}: write rows and the expected answer into tests/sql/<topic>/NAME.toml"


def test_no_macro_parameter_is_named_like_a_column() -> None:
    columns = {c.name for table in schema.TABLES.values() for c in table.columns}
    columns |= {column for view in registry.load().values() for column, _ in view.columns}
    clashes = [(view.name, p.name) for view in registry.load().values() for p in view.params if p.name in columns]
    assert not clashes, f"a parameter named like a column matches every row: rename (view, parameter) {clashes}"


def test_headers_require_what_the_statement_reads() -> None:
    for name, view in registry.load().items():
        words = set(re.findall(r"\b(?:FROM|JOIN|,)\s+(\w+)", view.sql))
        missing = {word for word in words if word in registry.load()} - {name} - set(view.requires)
        assert not missing, f"{view.place}: its @requires lack {', '.join(missing)}"
        unused = {other for other in view.requires if not re.search(rf"\b{other}\b", view.sql)}
        assert not unused, f"{view.place}: its @requires name {', '.join(unused)}, which it does not read"


def test_comments_tell_the_documentation(connection: duckdb.DuckDBPyConnection) -> None:
    found = dict(connection.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
    found |= dict(connection.execute("SELECT function_name, comment FROM duckdb_functions() WHERE NOT internal").fetchall())
    for view in registry.load().values():
        assert view.doc in found[view.name]
        assert all(f"Assumes: {text}" in found[view.name] for text in view.assumes)
    query = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'kernel_summary'"
    columns = connection.execute(query).fetchall()
    assert columns == list(registry.load()["kernel_summary"].columns)


def test_views_can_be_created_again_over_older_ones(connection: duckdb.DuckDBPyConnection) -> None:
    registry.create(connection)
    assert connection.execute("SELECT count(*) FROM kernel_summary").fetchone() == (0,)


def test_views_survive_the_renaming_of_the_file(tmp_path: Path) -> None:
    """A catalog is attached under its file's name: nothing in a view may remember the old one."""
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{tmp_path / 'new.duckdb'}' AS fresh (STORAGE_VERSION 'v1.2.0')")
    connection.execute("USE fresh")
    tables_without_rows(connection)
    registry.create(connection)
    connection.execute("USE memory; DETACH fresh")
    (tmp_path / "new.duckdb").rename(tmp_path / "other name.duckdb")
    moved = duckdb.connect(str(tmp_path / "other name.duckdb"), read_only=True)
    for view in registry.load().values():
        moved.execute(*registry.query(view, {})).fetchall()


@pytest.mark.parametrize(("parameters", "names"), [
    ({}, ["a", "b", "a", "a"]),
    ({"only_run": "base"}, ["a", "b", "a"]),
    ({"only_run": "base", "only_tool": "nsys"}, ["a", "b"]),
    ({"only_run": ["fused", "base"], "only_name": ("a",)}, ["a", "a", "a"]),
    ({"only_run": None}, ["a", "b", "a", "a"]),
    ({"only_run": "null"}, ["a", "b", "a", "a"]),
    ({"only_run": "nothing such"}, []),
    ({"only_run": "' OR true --"}, []),
    ({"only_run": []}, []),
    ({"only_instances": "2"}, ["a"]),
])
def test_filters_select_rows_of_the_result(
    connection: duckdb.DuckDBPyConnection, parameters: dict[str, Any], names: list[str],
) -> None:
    text = "run,tool,name,duration_ns\nbase,kineto,a,3\nbase,nsys,b,1\nbase,nsys,a,3\nfused,ncu,a,5\nfused,ncu,a,4"
    fill(connection, kernels=rows_of("kernels", text))
    got = connection.execute(*registry.query(PUBLIC["kernel_summary"], parameters)).fetchall()
    assert sorted(row[-1] for row in got) == sorted(names)


def test_a_share_survives_the_filter(connection: duckdb.DuckDBPyConnection) -> None:
    fill(connection, kernels=rows_of("kernels", "run,tool,name,duration_ns\nbase,nsys,a,3\nbase,nsys,b,1"))
    got = connection.execute(*registry.query(PUBLIC["kernel_summary"], {"only_name": "b"})).fetchall()
    assert [row[2] for row in got] == [25.0]


@pytest.mark.parametrize(("view", "parameters", "values"), [
    ("top_kernels", {"how_many": "5"}, [5]),
    ("top_kernels", {"how_many": 5}, [5]),
    ("top_kernels", {"how_many": "null"}, [None]),
    ("top_kernels", {"only_run": "base", "how_many": "5"}, [5, "base"]),
    ("kernel_by_rank", {"only_rank": "3"}, [3]),
    ("kernel_by_rank", {"only_rank": ["3", 4]}, [3, 4]),
    ("busy_time", {"communication_pattern": "^nccl", "per": "process"}, ["^nccl", "process"]),
])
def test_values_are_bound_and_converted(
    connection: duckdb.DuckDBPyConnection, view: str, parameters: dict[str, Any], values: list[object],
) -> None:
    sql, bound = registry.query(PUBLIC[view], parameters)
    assert bound == values
    connection.execute(sql, bound)


@pytest.mark.parametrize(("view", "parameters", "message"), [
    ("top_kernels", {"howmany": 5}, "did you mean how_many"),
    ("kernel_summary", {"only_rnu": "x"}, "did you mean only_run"),
    ("kernel_summary", {"only_rank": 0}, "no parameter only_rank"),
    ("kernel_summary", {"run": "x"}, "only_run"),
    ("kernel_summary", {'only_run" = 1; --': "x"}, "no parameter"),
    ("top_kernels", {"how_many": "many"}, "how_many takes a whole number of 64 bits, not 'many'"),
    ("kernel_by_rank", {"only_rank": "first"}, "only_rank takes a whole number"),
])
def test_wrong_parameters_name_the_choices(view: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        registry.query(PUBLIC[view], parameters)


NUMBERS = [(view.name, param.name) for view in registry.analyses().values() for param in view.params
           if param.type in (int, float)]


@pytest.mark.parametrize(("name", "parameter"), NUMBERS)
def test_a_number_for_an_analysis_may_be_text(name: str, parameter: str) -> None:
    """As a command line has it, also where there is none by default."""
    view = registry.analyses()[name]
    given, _ = registry.split_parameters(view, {parameter: "5000"})
    assert [type(value) for value in given.values()] == [next(one.type for one in view.params if one.name == parameter)]
    with pytest.raises(UsageError, match=f"{parameter} takes a"):
        registry.split_parameters(view, {parameter: "many"})


def test_intervals_are_united_over_devices_or_processes_only(connection: duckdb.DuckDBPyConnection) -> None:
    fill(connection, kernels=rows_of("kernels", "run,tool,start_ns,duration_ns\nbase,nsys,0,1"))
    with pytest.raises(duckdb.Error, match="per is device or process"):
        connection.execute(*registry.query(PUBLIC["busy_time"], {"per": "rank"})).fetchall()


@pytest.mark.parametrize(("text", "message"), [
    ("-- Doc.\nSELECT 1", "no CREATE"),
    ("-- Doc.\n-- @colum a  A.\nCREATE VIEW v AS SELECT 1 AS a;", "unknown tag @colum"),
    ("-- Doc.\n-- @scope run\n-- @column a\nCREATE VIEW v AS SELECT 1 AS a;", "no documentation"),
    ("-- Doc.\n-- @scope run\nCREATE MACRO v(x := 1) AS TABLE SELECT x;", "@param lines"),
])
def test_malformed_headers_are_defects(text: str, message: str) -> None:
    with pytest.raises(ViewError, match=message):
        header.parse(text)


def test_header_is_parsed() -> None:
    view = header.parse("-- First\n-- second.\n-- @scope rows\n-- @requires a, b\n-- @requires c\n"
                       "-- @param how_many  Rows.\n-- @param which  Name.\n-- @column x  An x.\n"
                       "-- @assumes One thing.\n-- @assumes Another.\n"
                       "CREATE MACRO m(how_many := 2.5, which := 'it''s') AS TABLE\nSELECT 1 AS x;\n")
    assert (view.name, view.doc, view.requires, view.is_macro) == ("m", "First second.", ("a", "b", "c"), True)
    assert view.scope == "rows"
    assert [(p.name, p.default) for p in view.params] == [("how_many", 2.5), ("which", "it's")]
    assert view.columns == (("x", "An x."),)
    assert view.assumes == ("One thing.", "Another.")


def test_a_view_shows_itself() -> None:
    view = header.parse("-- A row is x. More.\n-- @scope profile\n-- @assumes All is well here, always.\n-- @column x  An x.\n"
                       "CREATE VIEW v AS SELECT 1 AS x;")
    assert repr(view) == "<view v: A row is x.>" and view.summary == "A row is x."
    shown = view._repr_markdown_()
    assert shown.startswith("## v") and "- All is well here, always." in shown and "| x | An x. |" in shown


def test_an_indented_line_continues_its_tag_and_another_the_doc() -> None:
    view = header.parse("-- Doc.\n-- @scope rows\n-- @param  p  A number, or\n--           none.\n-- @column x  An x, and\n"
                        "--            a y.\n-- More doc.\nCREATE MACRO v(p := 1) AS TABLE SELECT 1 AS x;")
    assert (view.doc, view.columns, view.params[0].doc) == ("Doc. More doc.", (("x", "An x, and a y."),), "A number, or none.")


def test_views_stand_after_what_they_require() -> None:
    seen: set[str] = set()
    for name, view in registry.load().items():
        assert {other for other in view.requires if other in registry.load()} <= seen
        seen.add(name)


def test_files_are_short_and_their_keywords_upper() -> None:
    for view in registry.load().values():
        code = re.sub(r"'[^']*'|--[^\n]*", "", view.sql)
        assert len(view.sql.splitlines()) <= 60, f"{_file(view.name)}: over 60 lines; move a part into a private view, _x.sql"
        lower = re.findall(r"\b(?:select|from|where|group by|order by|join|create|union|over|with)\b", code)
        assert not lower, f"{_file(view.name)}: write the keywords {lower} in upper case"
        mixed = [word for word in re.findall(r"\b[a-z_0-9]*[A-Z]\w*\b", code) if word != word.upper()]
        assert not mixed, f"{_file(view.name)}: names are snake_case: {mixed}"


def test_the_page_of_views_is_up_to_date() -> None:
    up_to_date = (ROOT / "docs" / "views.md").read_text(encoding="utf-8") == registry.markdown()
    assert up_to_date, "docs/views.md is not what the headers of the views say; run: make docs"
