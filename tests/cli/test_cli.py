"""The command line as a person or a nightly job uses it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from nsightlens.cli.views import command as list_views
from nsightlens.views import registry
from nsightlens.views.start import START
from nsightlens.views.topics import TOPICS
from tests.captures import kineto
from tests.cli.command_line import run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    for rank in range(2):
        kineto(folder / "base" / f"rank{rank}.json", [("gemm_kernel", 10.0, 5.0), ("\x1b[31mred\nkernel", 20.0, 1.0)], rank=rank)
    (folder / "base" / "broken.json").write_text("{")
    command = [sys.executable, "-m", "nsightlens", "ingest", str(folder / "base"), "--store", str(folder / "store")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "4 kernels" in done.stderr and "ranks 0,1" in done.stderr and "broken.json" in done.stderr
    return folder / "store"


def test_scan_tells_rank_and_source_and_writes_nothing(store: Path) -> None:
    base = store.parent / "base"
    before = sorted(base.parent.rglob("*"))
    done = run("scan", base, "--format", "json")
    rows = {row["path"]: row for row in json.loads(done.stdout)["rows"]}
    assert (rows["rank1.json"]["kind"], rows["rank1.json"]["rank"]) == ("kineto json G5", 1)
    assert rows["rank1.json"]["rank_source"] in ("content:distributedInfo", "filename")
    assert rows["broken.json"]["problem"]
    assert sorted(base.parent.rglob("*")) == before


def test_show_in_every_format(store: Path, tmp_path: Path) -> None:
    text = run("show", "kernel_summary", "--store", store)
    assert "gemm_kernel" in text.stdout and "\x1b" not in text.stdout
    rows = list(csv.DictReader(io.StringIO(run("show", "kernel_summary", "--store", store, "-f", "csv").stdout)))
    assert [(r["instances"], r["total_ns"]) for r in rows] == [("2", "10000"), ("2", "2000")]
    assert json.loads(run("show", "kernel_summary", "--store", store, "-f", "json").stdout)["rows"][0]["total_ns"] == 10000
    assert run("show", "kernel_summary", "--store", store, "-o", tmp_path / "x.parquet").returncode == 0
    assert pq.read_table(tmp_path / "x.parquet")["total_ns"].to_pylist() == [10000, 2000]


def test_parameters_and_filters(store: Path) -> None:
    rows = json.loads(run("show", "top_kernels", "how_many=1", "--store", store, "-f", "json").stdout)["rows"]
    assert len(rows) == 1
    done = run("show", "kernel_by_rank", "only_rank=1", "--store", store, "-f", "json")
    assert {row["rank"] for row in json.loads(done.stdout)["rows"]} == {1}


@pytest.mark.parametrize(("arguments", "hint"), [
    (("show", "kernel_sumary"), "kernel_summary"), (("show", "top_kernels", "how_mny=1"), "how_many"),
    (("show", "top_kernels", "5"), "name=value"), (("ingst",), "ingest"), (("sql", "SELECT nothing"), "nothing"),
    (("sql", "SELEC 1"), "SELEC"), (("ingest",), "RUN_DIR"), (("ingest", "/absent/dir"), "no such file"),
    (("show", "top_kernels", "how_many=many"), "how_many"),
])
def test_wrong_requests_exit_2_with_a_hint(store: Path, arguments: tuple[str, ...], hint: str) -> None:
    options = ["--store", str(store)] if arguments[0] in ("show", "sql", "ingest") else []
    done = run(*arguments, *options)
    assert done.returncode == 2 and done.stdout == ""
    assert hint in done.stderr


def test_no_store_exits_1_and_says_how_to_make_one(tmp_path: Path) -> None:
    done = run("show", "kernel_summary", "--store", tmp_path / "none")
    assert done.returncode == 1 and "nsightlens ingest" in done.stderr


def test_nothing_readable_exits_1(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.json").write_text("{")
    assert run("ingest", tmp_path / "run", "--store", tmp_path / "store").returncode == 1


def test_sql_from_standard_input(store: Path) -> None:
    done = run("sql", "-", "--store", store, "-f", "csv", stdin="SELECT count(*) AS n FROM kernels")
    assert done.stdout == "n\n4\n"


def test_a_closed_pipe_is_no_error(store: Path) -> None:
    command = f"{sys.executable} -m nsightlens sql 'SELECT * FROM range(200000)' --store '{store}' -f csv | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "range\n" and done.stderr == ""


@pytest.mark.parametrize(("query", "told"), [
    ("FROM straggler()", "nsightlens show straggler --store {}"),
    ("FROM timeline_kernels()", "timeline_kernels has no parameters: FROM timeline_kernels"),
    ("FROM kernel", 'DuckDB: Catalog Error: Table with name kernel does not exist!\nDid you mean "kernels"?'),
])
def test_sql_says_how_to_ask_for_a_view(store: Path, query: str, told: str) -> None:
    done = run("sql", query, "--store", store)
    assert done.returncode == 2 and told.replace("{}", str(store)) in done.stderr


@pytest.mark.parametrize("query", [
    "SELECT count(DISTINCT rank) AS n FROM critical_path", "SELECT count(DISTINCT rank) AS n FROM busy_time",
    "SELECT count(DISTINCT process_id) AS n FROM GET_IDLE_TIME_BREAKDOWN",
    "WITH critical_path AS (SELECT 1 AS rank UNION ALL SELECT 2) SELECT count(*) AS n FROM critical_path",
])
def test_sql_names_every_view_like_a_table(store: Path, query: str) -> None:
    """Also analyses, macros at their default parameters, and what other tools call them."""
    assert run("sql", query, "--store", store, "-f", "csv").stdout == "n\n2\n"


def _named(listed: str) -> list[str]:
    """Return what stands before a text or an = in the indented lines of the list, sorted."""
    return sorted(re.findall(r"^  (\w+)  ", listed, re.MULTILINE))


def _known() -> list[str]:
    """Return what `views --all` lists: the views, and what other tools call them."""
    known = registry.known()
    return sorted([*known, *(alias.name for view in known.values() for alias in view.aliases)])


def test_a_path_alone_is_summed_up(store: Path, tmp_path: Path) -> None:
    """A capture, and a store: what follows is as if `summary` had been said."""
    trace = kineto(tmp_path / "run" / "a.json")
    assert run(trace).stdout == run("summary", trace).stdout != ""
    made = store.parent / "store"
    assert run(made, "-f", "json").stdout == run("summary", "--store", made, "-f", "json").stdout
    done = run(tmp_path / "missing.json")
    assert done.returncode == 2 and "missing.json" in done.stderr


def test_help_is_a_page_of_40_lines() -> None:
    listed = run("--help").stdout
    assert len(listed.splitlines()) <= 40 and max(map(len, listed.splitlines())) <= 90


def test_views_lists_by_question_and_explains() -> None:
    first = run("views").stdout
    assert _named(first) == sorted(START) and len(first.splitlines()) <= 45
    listed = run("views", "--all").stdout
    places = [f"\n{listed}".index(f"\n{question}\n") for question in TOPICS.values()]
    assert places == sorted(places)
    one = run("views", "top_kernels").stdout
    assert "how_many := 20" in one and "CREATE MACRO" in one
    assert "nsightlens/analyses/" in run("views", "straggler").stdout
    assert "\nAssumes\n- A name is a kernel" in one
    assert "\nEmpty where\n- no modules were recorded: record with" in run("views", "module_summary").stdout


@pytest.mark.parametrize("width", [80, 120])
def test_views_are_listed_within_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    first, listed = (CliRunner().invoke(list_views, words).stdout for words in ([], ["--all"]))
    assert max(map(len, [*first.splitlines(), *listed.splitlines()])) <= width and _named(listed) == _known()


@pytest.mark.parametrize(("words", "first"), [
    (["idle"], "idle_causes"), (["get_idle_time"], "idle_breakdown"), (["IDLE", "thread"], "idle_causes"),
    (["message_bytes"], "mpi_message_size_summary"),
])
def test_views_are_found_by_words(words: list[str], first: str) -> None:
    names = [row["name"] for row in json.loads(run("views", *words, "-f", "json").stdout)["rows"]]
    text = run("views", *words).stdout
    assert names[0] == first and [line.split()[0] for line in text.splitlines() if line[:3].strip()] == names[:10]


def test_a_view_as_data() -> None:
    tables = json.loads(run("views", "cuda_gpu_sum", "-f", "json").stdout)["tables"]
    view = registry.known()["cuda_work_summary"]
    assert tables["view"][0]["name"] == view.name and tables["view"][0]["sql"] == view.sql
    assert [(row["name"], row["meaning"]) for row in tables["columns"]] == list(view.columns)
    assert {row["name"]: row["default"] for row in tables["parameters"]} == {"with_calls": "True"}
    assert run("views", "cuda_gpu_sum", "-f", "csv").stdout.startswith("name,meaning\n")
    every = json.loads(run("views", "-f", "json").stdout)["rows"]
    assert [row["name"] for row in every] == list(registry.known()) and sum(row["start"] for row in every) == len(START)
    assert all(row["question"] for row in every)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_dates_beyond_those_of_python_are_printed(store: Path, form: str) -> None:
    query = "SELECT 'infinity'::DATE AS a, '-infinity'::TIMESTAMP AS b, DATE '20000-01-01' AS c, DATE '2026-01-02' AS d"
    done = run("sql", query, "--store", store.parent / "store", "--format", form)
    assert done.returncode == 0
    assert all(text in done.stdout for text in ("infinity", "-infinity", "20000-01-01", "2026-01-02"))
