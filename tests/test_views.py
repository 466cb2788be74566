"""Every view: input, query and expected rows from tests/sql, and what must hold for all of them."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from nsightlens import schema, views
from nsightlens.errors import SchemaError, UsageError
from tests.catalogues import catalogue, fill, rows_of, tables_without_rows

CASES = Path(__file__).parent / "sql"
PUBLIC = views.public(views.load())
CROSSING = ("kernels_joined", "tool_agreement", "perturbation")  # they set tools side by side, each in its own column
DEFECTS = ("kernel_overruns",)  # of captures: without one there is no row
SORTED = [name for name in PUBLIC if name != "timeline_kernels"]  # that one is a table, as large as kernels
WALL_TIME = [name for name, view in PUBLIC.items() if {"start_ns", "span_ns", "busy_ns", "idle_ns"} & dict(view.columns).keys()
             and name not in CROSSING]


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalogue()


@pytest.fixture
def connection(empty: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A catalogue without rows, and without those a test put into it before."""
    empty.execute("BEGIN")
    yield empty
    empty.execute("ROLLBACK")


def shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _cases() -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.toml")):
        cases = tomllib.loads(path.read_text())["case"]
        found += [pytest.param(case, id=f"{path.stem}-{i}") for i, case in enumerate(cases)]
    return found


@pytest.mark.parametrize("case", _cases())
def test_query_returns_expected_rows(connection: duckdb.DuckDBPyConnection, case: dict[str, str]) -> None:
    fill(connection, **{name: rows_of(name, case[name]) for name in schema.TABLES if name in case})
    if "kernels_from" in case:
        connection.execute(f"INSERT INTO kernels BY NAME {case['kernels_from']}")
    result = connection.execute(case["query"])
    header = [column[0] for column in result.description or []]
    got = [header] + [[shown(value) for value in row] for row in result.fetchall()]
    assert got == list(csv.reader(case["expected"].strip().splitlines()))


@pytest.mark.parametrize("name", views.load())
def test_documented_columns_are_the_real_ones(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    view = views.load()[name]
    described = connection.execute(f"DESCRIBE {views.query(view, {})[0]}").fetchall()
    assert [row[0] for row in described] == [column for column, _ in view.columns]
    assert "HUGEINT" not in {row[1] for row in described}, "Arrow has no such integer: it would become a double or a decimal"


@pytest.mark.parametrize("name", views.load())
def test_every_view_is_documented(name: str) -> None:
    view = views.load()[name]
    assert view.doc
    assert all(doc for _, doc in view.columns)
    assert all(param.doc for param in view.params)


@pytest.mark.parametrize("name", views.known())
def test_every_public_view_says_what_it_assumes(name: str) -> None:
    view = views.known()[name]
    assert view.assumes
    assert len(set(view.assumes)) == len(view.assumes)
    for text in view.assumes:
        assert text.endswith(".") and len(text.split()) >= 6 and text not in view.doc, text


def _below(name: str) -> set[str]:
    """Return the views that a view is made of, itself included."""
    return {name}.union(*(_below(other) for other in views.load()[name].requires if other in views.load()))


@pytest.mark.parametrize(("word", "names"), [
    ("step", [name for name in PUBLIC if "_steps" in _below(name)]),
    ("communicat", [name for name, view in PUBLIC.items() if "communication_pattern" in {p.name for p in view.params}]),
    ("launch", [name for name in PUBLIC if _below(name) & {"_launches", "_gaps", "queue_length_series"}]),
    ("work", [name for name in PUBLIC if {"idle_ns", "gap_ns"} & dict(PUBLIC[name].columns).keys()]),
    ("collective", ["collective_match", "rank_clock", "rank_skew", "straggler"]),
    ("program", ["kernels_joined", "match_report", "tool_agreement", "tool_match"]),
])
def test_views_say_the_assumption_that_they_inherit(word: str, names: list[str]) -> None:
    """What a step is, which kernels communicate, what an idle time presumes: stated by every view that rests on it."""
    assert names
    assert [name for name in names if word not in " ".join(views.known()[name].assumes)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_public_views_are_tested(name: str) -> None:
    """By input, query and expected rows, or by a test file elsewhere that asks for them."""
    others = (path.read_text() for path in CASES.parent.rglob("test_*.py") if path.name != "test_views.py")
    assert (CASES / f"{name}.toml").exists() or any(f'"{name}"' in text or f"FROM {name}" in text for text in others)


def test_no_macro_parameter_is_named_like_a_column() -> None:
    columns = {c.name for table in schema.TABLES.values() for c in table.columns}
    columns |= {column for view in views.load().values() for column, _ in view.columns}
    assert not {p.name for view in views.load().values() for p in view.params} & columns


@pytest.mark.parametrize("name", views.load())
def test_requires_names_what_the_statement_reads(name: str) -> None:
    view = views.load()[name]
    words = set(re.findall(r"\b(?:FROM|JOIN|,)\s+(\w+)", view.sql))
    assert {word for word in words if word in views.load()} - {name} <= set(view.requires)
    assert {other for other in view.requires if not re.search(rf"\b{other}\b", view.sql)} == set()


def _launches(tool: str) -> dict[str, list[dict[str, Any]]]:
    """Return what `tool` tells of the same 240 launches: four ranks and GPUs, two runs, one of them all ties."""
    kernels, copies, calls, ranges = [], [], [], []
    for i in range(240):
        where: dict[str, Any] = {
            "run": ("base", "fused")[i % 2], "tool": tool, "profile_id": f"{tool}-{i % 2}", "process_id": f"{tool}-{i % 4}",
            "window_index": i % 3 % 2, "rank": i % 4, "device_id": f"gpu{i % 4}", "gpu": "H100",
            "start_ns": None if tool == "ncu" else i // 4 * 10 + i // 120 * 20_000,
            "duration_ns": 1 + i % 2 * (i * 7 % 13) + (1000 if tool == "ncu" else 0),
        }
        metrics = [("gpu__time_duration.sum", 5.0 * (i % 3)), ("dram__bytes.sum", 64.0)] if tool == "ncu" else None
        number = i + {"nsys": 0, "kineto": 1000, "ncu": 2000}[tool]
        links = {} if tool == "ncu" else {"launch_id": number, "range_id": number, "op_range_id": number}
        kernels.append(where | links | {
            "kernel_id": number, "ncu_id": i if tool == "ncu" else None,
            "name": f"k{i % 5}", "short_name": f"k{i % 5}", "kernel_key": f"k{i % 5}", "metrics": metrics,
            "family": ("gemm", "collective", "other", None)[i % 5 % 4], "grid_x": i // 4 % 2, "grid_y": 1, "grid_z": 1,
            "block_x": 32, "block_y": 1, "block_z": 1,
        })
        if tool != "ncu":
            copies.append(where | {"kind": "memcpy", "direction": ("HtoD", "DtoH")[i % 3 % 2], "bytes": i, "memory_op_id": i})
            host = {key: where[key] for key in ("run", "tool", "profile_id", "process_id", "window_index", "start_ns")}
            calls.append(host | links | {"thread": i % 4, "duration_ns": 1 + i % 3, "name": f"cuda{i % 2}"})
            ranges.append(host | {"range_id": number, "thread": i % 4, "duration_ns": 5, "depth": 0,
                                  "kind": ("operator", "annotation")[i % 7 % 2], "name": f"r{i % 3}"})
    profiles = [{"run": ("base", "fused")[i], "tool": tool, "profile_id": f"{tool}-{i}", "kernels": 120} for i in range(2)]
    processes = [{"run": ("base", "fused")[i % 2], "tool": tool, "profile_id": f"{tool}-{i % 2}", "process_id": f"{tool}-{i}",
                  "rank": i, "host": "node"} for i in range(4)]
    diagnostics = [{"run": "base", "tool": tool, "profile_id": f"{tool}-0", "path": f"/{tool}{i % 3}", "severity": "warning",
                    "code": f"c{i % 2}", "count": 1, "message": f"m{i % 4}"} for i in range(12)]
    return {"kernels": kernels, "memory_ops": copies, "graph_executions": [], "api_calls": calls, "ranges": ranges,
            "profiles": profiles, "processes": processes, "diagnostics": diagnostics}


def _together(*tools: str) -> dict[str, list[dict[str, Any]]]:
    parts = [_launches(tool) for tool in tools]
    return {name: [row for part in parts for row in part[name]] for name in parts[0]}


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[Any, ...]]:
    rows = connection.execute(*views.query(views.load()[name], {})).fetchall()
    return [tuple(str(value) if isinstance(value, dict) else value for value in row) for row in rows]


@pytest.fixture(scope="module")
def single() -> dict[str, duckdb.DuckDBPyConnection]:
    return {tool: catalogue(**_launches(tool)) for tool in ("nsys", "kineto", "ncu")}


@pytest.fixture(scope="module")
def all_tools() -> duckdb.DuckDBPyConnection:
    return catalogue(**_together("nsys", "kineto", "ncu"))


@pytest.mark.parametrize("name", [
    name for name, view in PUBLIC.items() if "other_tool" not in dict(view.columns) and name not in CROSSING])
def test_no_view_adds_up_the_tools(
    name: str, single: dict[str, duckdb.DuckDBPyConnection], all_tools: duckdb.DuckDBPyConnection,
) -> None:
    """Three tools saw the same launches: each row of the result is one that a single tool gives alone."""
    alone = Counter(row for tool in single.values() for row in _rows(tool, name))
    rows = Counter(_rows(all_tools, name))
    assert rows or not alone
    assert not rows - alone


@pytest.mark.parametrize("name", WALL_TIME)
def test_ncu_durations_never_enter_wall_time(
    name: str, single: dict[str, duckdb.DuckDBPyConnection], all_tools: duckdb.DuckDBPyConnection,
) -> None:
    assert _rows(single["ncu"], name) == []
    with_ncu = Counter(_rows(all_tools, name))
    assert (with_ncu or name in DEFECTS) and with_ncu == Counter(_rows(catalogue(**_together("nsys", "kineto")), name))


def test_timeline_is_that_of_nsys_alone(
    single: dict[str, duckdb.DuckDBPyConnection], all_tools: duckdb.DuckDBPyConnection,
) -> None:
    assert sorted(_rows(all_tools, "timeline_kernels")) == sorted(_rows(single["nsys"], "timeline_kernels"))


@pytest.mark.parametrize("name", SORTED)
def test_the_order_ends_in_a_unique_key(name: str, all_tools: duckdb.DuckDBPyConnection) -> None:
    query = views.query(PUBLIC[name], {})[0]
    order = PUBLIC[name].sql.rpartition("ORDER BY")[2].rstrip(";")
    bare = [re.sub(r"( DESC)?( NULLS \w+)?$", "", key.strip()) for key in order.split(",")]
    keys = ", ".join(re.sub(r"^\w+\.", "", key).removesuffix("_order") for key in bare)  # level_order is the order of level
    counted = all_tools.execute(f"SELECT count(*), count(DISTINCT ({keys})) FROM ({query})").fetchone()
    assert counted and counted[0] == counted[1]


@pytest.mark.parametrize("name", SORTED)
def test_rows_and_their_order_do_not_depend_on_storage_order(name: str, all_tools: duckdb.DuckDBPyConnection) -> None:
    backwards = catalogue(**{table: rows[::-1] for table, rows in _together("nsys", "kineto", "ncu").items()})
    assert _rows(backwards, name) == _rows(all_tools, name)


def test_comments_tell_the_documentation(connection: duckdb.DuckDBPyConnection) -> None:
    found = dict(connection.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
    found |= dict(connection.execute("SELECT function_name, comment FROM duckdb_functions() WHERE NOT internal").fetchall())
    for view in views.load().values():
        assert view.doc in found[view.name]
        assert all(f"Assumes: {text}" in found[view.name] for text in view.assumes)
    query = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'kernel_summary'"
    columns = connection.execute(query).fetchall()
    assert columns == list(views.load()["kernel_summary"].columns)


def test_views_can_be_created_again_over_older_ones(connection: duckdb.DuckDBPyConnection) -> None:
    views.create(connection)
    assert connection.execute("SELECT count(*) FROM kernel_summary").fetchone() == (0,)


def test_views_survive_the_renaming_of_the_file(tmp_path: Path) -> None:
    """A catalogue is attached under its file's name: nothing in a view may remember the old one."""
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{tmp_path / 'new.duckdb'}' AS fresh (STORAGE_VERSION 'v1.2.0')")
    connection.execute("USE fresh")
    tables_without_rows(connection)
    views.create(connection)
    connection.execute("USE memory; DETACH fresh")
    (tmp_path / "new.duckdb").rename(tmp_path / "other name.duckdb")
    moved = duckdb.connect(str(tmp_path / "other name.duckdb"), read_only=True)
    for view in views.load().values():
        moved.execute(*views.query(view, {})).fetchall()


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
    got = connection.execute(*views.query(PUBLIC["kernel_summary"], parameters)).fetchall()
    assert sorted(row[-1] for row in got) == sorted(names)


def test_a_share_survives_the_filter(connection: duckdb.DuckDBPyConnection) -> None:
    fill(connection, kernels=rows_of("kernels", "run,tool,name,duration_ns\nbase,nsys,a,3\nbase,nsys,b,1"))
    got = connection.execute(*views.query(PUBLIC["kernel_summary"], {"only_name": "b"})).fetchall()
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
    sql, bound = views.query(PUBLIC[view], parameters)
    assert bound == values
    connection.execute(sql, bound)


@pytest.mark.parametrize(("view", "parameters", "message"), [
    ("top_kernels", {"howmany": 5}, "did you mean how_many"),
    ("kernel_summary", {"only_rnu": "x"}, "did you mean only_run"),
    ("kernel_summary", {"only_rank": 0}, "no parameter only_rank"),
    ("kernel_summary", {"run": "x"}, "only_run"),
    ("kernel_summary", {'only_run" = 1; --': "x"}, "no parameter"),
    ("top_kernels", {"how_many": "many"}, "how_many takes a whole number, not 'many'"),
    ("kernel_by_rank", {"only_rank": "first"}, "only_rank takes a whole number"),
])
def test_wrong_parameters_name_the_choices(view: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        views.query(PUBLIC[view], parameters)


def test_intervals_are_united_over_devices_or_processes_only() -> None:
    connection = catalogue(**_launches("nsys"))
    with pytest.raises(duckdb.Error, match="per is device or process"):
        connection.execute(*views.query(PUBLIC["busy_time"], {"per": "rank"})).fetchall()


@pytest.mark.parametrize(("text", "message"), [
    ("-- Doc.\nSELECT 1", "no CREATE"),
    ("-- Doc.\n-- @colum a  A.\nCREATE VIEW v AS SELECT 1 AS a;", "unknown tag @colum"),
    ("-- Doc.\n-- @column a\nCREATE VIEW v AS SELECT 1 AS a;", "no documentation"),
    ("-- Doc.\nCREATE MACRO v(x := 1) AS TABLE SELECT x;", "@param lines"),
])
def test_malformed_headers_are_defects(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        views.parse(text)


def test_header_is_parsed() -> None:
    view = views.parse("-- First\n-- second.\n-- @requires a, b\n-- @requires c\n"
                       "-- @param how_many  Rows.\n-- @param which  Name.\n-- @column x  An x.\n"
                       "-- @assumes One thing.\n-- @assumes Another.\n"
                       "CREATE MACRO m(how_many := 2.5, which := 'it''s') AS TABLE\nSELECT 1 AS x;\n")
    assert (view.name, view.doc, view.requires, view.is_macro) == ("m", "First second.", ("a", "b", "c"), True)
    assert [(p.name, p.default) for p in view.params] == [("how_many", 2.5), ("which", "it's")]
    assert view.columns == (("x", "An x."),)
    assert view.assumes == ("One thing.", "Another.")


def test_a_view_shows_itself() -> None:
    view = views.parse("-- A row is x. More.\n-- @assumes All is well here, always.\n-- @column x  An x.\n"
                       "CREATE VIEW v AS SELECT 1 AS x;")
    assert repr(view) == "<view v: A row is x.>" and view.summary == "A row is x."
    shown = view._repr_markdown_()
    assert shown.startswith("## v") and "- All is well here, always." in shown and "| x | An x. |" in shown


def test_views_stand_after_what_they_require() -> None:
    seen: set[str] = set()
    for name, view in views.load().items():
        assert {other for other in view.requires if other in views.load()} <= seen
        seen.add(name)


def test_files_are_short_and_their_keywords_upper() -> None:
    for view in views.load().values():
        code = re.sub(r"'[^']*'|--[^\n]*", "", view.sql)
        assert len(view.sql.splitlines()) <= 60, view.name
        assert not re.search(r"\b(select|from|where|group by|order by|join|create|union|over|with)\b", code), view.name
        assert code == re.sub(r"\b[a-z_0-9]*[A-Z]\w*\b", lambda m: m[0].upper(), code), f"mixed case in {view.name}"


def test_the_page_of_views_is_up_to_date() -> None:
    page = Path(__file__).parents[1] / "docs" / "views.md"
    assert page.read_text(encoding="utf-8") == views.markdown(), "run: python -m nsightlens.views > docs/views.md"
