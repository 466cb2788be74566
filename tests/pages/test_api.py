"""From Python: the pages of `summary` and `compare ranks`, tables to look at, and what is said of a wrong call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.terminal.command import Command
from tests.captures import kineto
from tests.cli.command_line import run
from tests.places import ROOT

NAME = "simulated_resnet18_ddp"


@pytest.fixture
def store(bundled_store: Path) -> Iterator[nl.Store]:
    with nl.open(bundled_store) as opened:
        yield opened


def _words(text: str) -> str:
    """Return the words of a page: lines break elsewhere where commands are longer."""
    return " ".join(text.split())


def _printed(*asked: str | Path) -> str:
    """Return what the command line prints, its commands as calls of Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsightlens.cli.summary.with_store", Command.python)
        return _words(run(*asked).stdout)


def test_summary_is_the_page_and_the_tables_of_the_command(store: nl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    found = nl.summary(store)
    assert found.runs == (NAME,) and repr(found) == found.text
    monkeypatch.setenv("NSIGHTLENS_STORE", str(store.path))
    assert _words(found.text) == _printed("summary")
    assert len(found.text.splitlines()) > 60 and max(map(len, found.text.splitlines())) <= 160
    assert "nsightlens show" not in found.text and 'store.view("cuda_api_summary")' in found.text
    tables = json.loads(run("summary", "-f", "json", "--store", store.path).stdout)["tables"]
    assert list(found) == list(tables)
    assert found["verdict"].to_pylist() == tables["verdict"]


def test_summary_takes_the_filters_of_the_command(store: nl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTLENS_STORE", str(store.path))
    found = nl.summary(store, rank=[0], run=NAME)
    assert _words(found.text) == _printed("summary", "--rank", "0", "--run", NAME)
    assert {row["rank"] for row in found["gpu_summary"].to_pylist()} == {0}
    with pytest.raises(UsageError, match="rank 9: the store has ranks 0-1") as error:
        nl.summary(store, rank=9)
    assert error.value.choices == (0, 1)


def test_summary_of_captures_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    captures = kineto(tmp_path / "job" / "a.json").parent
    pages = nl.summary(captures)
    with nl.ingest(captures, tmp_path / "store") as store:
        assert pages.text == nl.summary(store).text == nl.summary(tmp_path / "store").text
    assert not list((tmp_path / "temporary").iterdir()) and pages["verdict"].num_rows


def test_compare_covers_ranks_as_the_command_does(store: nl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = nl.compare(store, ranks=True)
    assert found.text == run("compare", "ranks", "--store", store.path).stdout.strip("\n")
    assert "Rank 1 comes last:" in found.text
    tables = json.loads(run("compare", "ranks", "-f", "json", "--store", store.path).stdout)["tables"]
    assert {name: table.num_rows for name, table in found.items()} == {name: len(rows) for name, rows in tables.items()}
    with pytest.raises(UsageError, match="run x"):
        nl.compare(store, ranks=True, run="x")


def test_errors_of_compare_name_both_comparisons(store: nl.Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'nl\.ingest\("CAPTURE", run="NAME"\); .*nl\.compare\(store, ranks=True\)'):
        nl.compare(store)
    wrongs: tuple[tuple[dict[str, Any], str], ...] = (
        ({"rank": 0}, "rank"), ({"ranks": True, "base": "a"}, "base"), ({"ranks": True, "fdr": 0.1}, "fdr"))
    for wrong, subject in wrongs:
        with pytest.raises(UsageError, match=r"two runs, nl\.compare\(store, ranks=True\)") as error:
            nl.compare(store, **wrong)
        assert error.value.subject == subject
    with nl.ingest(kineto(tmp_path / "one" / "a.json"), tmp_path / "store", jobs=1) as alone, \
            pytest.raises(NsightlensError, match=r'Two runs: nl\.compare\(store, "base", "other"\)'):
        nl.compare(alone, ranks=True)
    printed = run("compare", "runs", "--store", store.path)
    assert printed.returncode == 2 and "nsightlens compare ranks" in printed.stderr


def test_what_the_runs_of_compare_differ_in_by_tool(store: nl.Store, tmp_path: Path) -> None:
    for name in ("a", "b"):
        nl.ingest(ROOT / "fixtures" / NAME, tmp_path / "store", run=name, jobs=1).close()
    with nl.open(tmp_path / "store") as two:
        assert set(nl.compare(two, tool="kineto")["tree"]["tool"].to_pylist()) == {"kineto"}
        assert "nsightlens " not in repr(nl.compare(two)), "no command of the command line"


def test_findings_name_calls_of_python(store: nl.Store) -> None:
    calls = nl.findings(store)["more"].to_pylist()
    assert calls and all(call.startswith(("store.view(", "nl.")) for call in calls if not call.startswith("nsightlens plan-ncu"))
    commands = store.view("findings")
    assert all(text.startswith("nsightlens ") for text in commands["more"].to_pylist())
    assert 'store.view(&quot;' in nl.show(commands)._repr_html_() and "nsightlens show" not in nl.show(commands)._repr_html_()
    assert "nsightlens show" not in repr(nl.show(commands.select(["cause", "more", "command"])))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("view", ["step_breakdown", "kernel_summary"])
def test_a_shown_table_prints_as_the_command_does(
    store: nl.Store, monkeypatch: pytest.MonkeyPatch, view: str, width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    printed = run("show", view, "--store", store.path).stdout.rstrip("\n").partition("\n(")[0]
    ours, _, rest = repr(nl.show(store.view(view))).partition("\n(")
    assert ours == printed and max(map(len, ours.splitlines())) <= width
    assert "--wide" not in rest and (".to_pandas()" in " ".join(rest.split()) or not rest)


def test_a_shown_table_is_still_a_table(store: nl.Store) -> None:
    table = store.view("kernel_summary")
    shown = nl.show(table, rows=2)
    assert shown.to_pandas().equals(table.to_pandas()) and pa.table(shown).equals(table)
    assert (len(shown), shown.column_names, shown["name"]) == (len(table), table.column_names, table["name"])
    assert nl.show(shown).table is table
    assert f"and {table.num_rows - 2} rows more: .to_pandas())" in " ".join(repr(shown).split())


def test_a_report_says_how_large_it_is_and_what_writes_it(store: nl.Store) -> None:
    assert repr(nl.report(store)).startswith("nsightlens report, an HTML page of 0.")
    assert "\nleft out: " in repr(nl.report(store, max_mb=0.01))


@pytest.mark.parametrize(("call", "right"), [
    (lambda nl, store, _: nl.summary(None), "nl.summary('runs/base')"),
    (lambda nl, store, _: nl.findings(None), "nl.findings(nl.open('store'))"),
    (lambda nl, store, _: nl.compare(Path("s"), "a", "b"), "nl.compare(nl.open('s'))"),
    (lambda nl, store, table: nl.report(table), "nl.report(nl.open('store'))"),
    (lambda nl, store, _: nl.read(store), "nl.read('runs/base')"),
    (lambda nl, store, _: nl.ingest(store), "nl.ingest('runs/base')"),
    (lambda nl, store, _: nl.open(store), "nl.open('runs/base')"),
    (lambda nl, store, _: nl.remove("s", run=1), "not 1 (int): run='1'"),
    (lambda nl, store, _: nl.remove("s", run=["1"]), "not ['1'] (list)"),
    (lambda nl, store, _: nl.ingest("runs", "s", run=7), "not 7 (int): run='7'"),
    (lambda nl, store, _: nl.report(store, base=7), "not 7 (int): base='7'"),
    (lambda nl, store, _: nl.show(store, "straggler"), "nl.show(store.view('straggler'))"),
    (lambda nl, store, table: nl.show({"straggler": table}, "straggler"), "nl.show(tables['straggler'])"),
    (lambda nl, store, table: nl.show(table, "straggler"), "nl.show(store.view('straggler'))"),
    (lambda nl, store, _: nl.plots.step_breakdown(store), "nl.plots.step_breakdown(store.view('step_breakdown'))"),
    (lambda nl, store, table: nl.plots.step_timeline(table, store), "nl.plots.step_timeline(store.view('step_timeline'))"),
    (lambda nl, store, _: nl.plots.top_kernels(), "nl.plots.top_kernels(store.view('top_kernels'))"),
    (lambda nl, store, table: nl.plots.step_breakdown(table), "nl.plots.step_breakdown(store.view('step_breakdown'))"),
])
def test_a_wrong_argument_gets_the_right_call(store: nl.Store, call: Callable[[Any, Any, Any], object], right: str) -> None:
    with pytest.raises(UsageError) as error:
        call(nl, store, store.view("top_kernels"))
    assert str(error.value).endswith(right)


def test_a_folder_without_captures_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NsightlensError, match=r"empty: no captures here: nothing was read"):
        nl.ingest(tmp_path / "empty", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NsightlensError, match=r"empty: no captures here: nothing was read"):
        nl.open("empty", ingest=True)
    with pytest.raises(UsageError, match=r"a folder with no file.*nl\.ingest"):
        nl.read(tmp_path / "empty")
    kineto(tmp_path / "job" / "a.json")
    assert set(nl.read(tmp_path / "job")) == set(nl.read(tmp_path / "job" / "a.json"))
    kineto(tmp_path / "job" / "b.json", pid=2)
    with pytest.raises(UsageError, match="a folder with 2 captures"):
        nl.read(tmp_path / "job")


def test_help_begins_with_what_there_is_to_call() -> None:
    text = (nl.__doc__ or "").split("store.views")[0]
    assert all(f"nl.{name}" in text for name in
               ("ingest", "open", "summary", "findings", "compare", "show", "plots", "report", "read", "remove"))


IN_NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import sys
import nsightlens as nl
assert "pyarrow" not in sys.modules and "pandas" not in sys.modules
import pyarrow as pa
table = pa.table({"total_ns": [1_500_000], "more": ["?"], "command": [["show", "headroom"]]})
html = shell.display_formatter.format(table)[0]["text/html"]
assert "1.500 ms" in html and "store.view(&quot;headroom&quot;)" in html, html
"""


def test_a_notebook_shows_arrow_tables_with_units() -> None:
    pytest.importorskip("IPython")
    subprocess.run([sys.executable, "-c", IN_NOTEBOOK], check=True)


def test_what_a_notebook_shows_already_stays() -> None:
    pytest.importorskip("IPython")
    own = ("from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
           "shell.display_formatter.formatters['text/html'].for_type_by_name('pyarrow.lib', 'Table', lambda table: 'own')\n"
           "import nsightlens, pyarrow\n"
           "assert shell.display_formatter.format(pyarrow.table({'a': [1]}))[0]['text/html'] == 'own'")
    subprocess.run([sys.executable, "-c", own], check=True)
