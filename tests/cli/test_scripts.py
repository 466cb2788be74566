"""The command line as a program reads it: formats of one version, quiet pipes, extensions that are refused by name."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest

import nsightlens as nl
from nsightlens.cli import root
from nsightlens.pages.envelope import VERSION
from tests.cli.command_line import run


def versions(*words: str) -> dict[str, object]:
    return {"schema": f"nsightlens.{'-'.join(words)}", "version": VERSION, "nsightlens": nl.__version__}


@pytest.mark.parametrize(("asked", "tables"), [
    (["summary"], {"verdict", "profile_overview", "busy_time", "operator_summary", "top_kernels", "diagnostic_summary"}),
    (["compare", "ranks"], {"straggler", "collective_coverage", "rank_clock", "rank_balance", "kernel_by_rank"}),
])
def test_the_tables_behind_a_page(bundled_store: Path, asked: list[str], tables: set[str]) -> None:
    found = json.loads(run(*asked, "--store", bundled_store, "-f", "json").stdout)
    assert found.items() >= versions(*asked).items() and tables <= set(found["tables"])
    with nl.open(bundled_store) as store:
        for name in tables - {"top_kernels"}:  # the page asks for all of them
            assert len(found["tables"][name]) == store.view(name).num_rows > 0, name


@pytest.mark.parametrize(("asked", "view"), [(["summary"], "verdict"), (["compare", "ranks"], "straggler")])
def test_the_main_table_of_a_page(bundled_store: Path, tmp_path: Path, asked: list[str], view: str) -> None:
    with nl.open(bundled_store) as store:
        rows = store.view(view, only_tool="nsys")
    written = run(*asked, "--tool", "nsys", "--store", bundled_store, "-o", tmp_path / "x.parquet")
    assert written.returncode == 0 and pq.read_table(tmp_path / "x.parquet").equals(rows)
    written_of = pq.read_schema(tmp_path / "x.parquet").metadata
    assert {key: written_of[key.encode()].decode() for key in versions()} == {
        key: str(value) for key, value in versions(*asked).items()}
    printed = list(csv.DictReader(io.StringIO(run(*asked, "--tool", "nsys", "--store", bundled_store, "-f", "csv").stdout)))
    assert len(printed) == rows.num_rows > 0


NO_DATA = {"wrappers", "export-reports", "ingest", "refresh", "remove", "compact", "open",
           "report", "plot", "export", "completion", "help", "mcp", "baseline set", "baseline rm",
           "hta"}
"""Commands that write files, or print a path or a text."""


@pytest.mark.parametrize("asked", [["plan-ncu"], ["cache"], ["views"], ["views", "busy_time"], ["compare", "ranks"]])
def test_every_table_goes_to_a_file(bundled_store: Path, tmp_path: Path, asked: list[str]) -> None:
    """The commands of test_rows_... and of the pages do, too; doctor and scan have tests of their own."""
    store = ["--store", str(bundled_store)] if asked[0] in ("plan-ncu", "compare") else []
    for name in ("x.csv", "x.json", "x.parquet"):
        done = run(*asked, *store, "-o", tmp_path / name)
        assert done.returncode == 0 and not done.stdout and (tmp_path / name).stat().st_size > 0
    assert json.loads((tmp_path / "x.json").read_text())["version"] == VERSION


def test_every_command_that_prints_data_has_the_formats() -> None:
    context = click.Context(root)
    without = [name for name in root.list_commands(context) if name not in NO_DATA
               for command in [root.get_command(context, name)] if command is not None
               for one in (command.commands.values() if isinstance(command, click.Group) else [command])
               if f"{name} {one.name}" not in NO_DATA
               and not {"--format", "--output"} <= {option for param in one.params for option in param.opts}]
    assert not without


@pytest.mark.parametrize("where", ["FALSE", "TRUE"])
def test_rows_have_the_versions_beside_them(bundled_store: Path, where: str) -> None:
    query = f"SELECT 1 AS a, [1, 2] AS b FROM range(2) WHERE {where}"
    found = json.loads(run("sql", query, "--store", bundled_store, "-f", "json").stdout)
    assert found.items() >= versions("sql").items() and found["rows"] == [{"a": 1, "b": [1, 2]}] * (2 if where == "TRUE" else 0)


def test_the_case_of_an_extension_does_not_matter(bundled_store: Path, tmp_path: Path) -> None:
    assert run("show", "busy_time", "--store", bundled_store, "-o", tmp_path / "X.CSV").returncode == 0
    assert (tmp_path / "X.CSV").read_text().startswith("run,tool,")


@pytest.mark.parametrize(("asked", "told"), [
    (["show", "busy_time"], ".csv, .json, .parquet or .txt"), (["summary"], ".csv, .json, .parquet or .txt"),
    (["plot", "busy_time"], "there is no plot busy_time"), (["plot", "step_breakdown"], "use .png, .svg or .pdf"),
    (["compare", "runs", "a", "b"], "use .png, .svg, .pdf, .csv, .json, .parquet or .txt"), (["report"], "use .html or .htm"),
    (["export", "perfetto"], ".json or .json.gz"), (["export", "flamegraph"], "use .json"),
    (["roofline"], "use .png, .svg or .pdf"), (["plan-ncu"], ".csv, .json, .parquet or .txt"),
])
def test_an_unknown_extension_names_those_that_there_are(
    bundled_store: Path, tmp_path: Path, asked: list[str], told: str,
) -> None:
    done = run(*asked, "--store", bundled_store, "-o", tmp_path / "x.bmp")
    assert done.returncode == 2 and told in done.stderr and not (tmp_path / "x.bmp").exists()


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "table"])
def test_a_pipe_that_closes_is_silent(bundled_store: Path, form: str) -> None:
    command = f"{sys.executable} -m nsightlens show cuda_gpu_trace --store '{bundled_store}' -f {form} --wide | head -c 9 | wc -c"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("9", "")
