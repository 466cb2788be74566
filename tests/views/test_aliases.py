"""Names that other tools have for views, and docs/from_other_tools.md, which lists them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

import nsightlens as nl
from nsightlens.cli.complete import view_names
from nsightlens.errors import UsageError, ViewError
from nsightlens.views import header, registry
from tests.captures import kineto
from tests.cli.command_line import run
from tests.places import ROOT

OTHERS, _, _REPORTS = (ROOT / "docs" / "from_other_tools.md").read_text(encoding="utf-8").partition("\n## From nsys stats\n")
PAGE = _REPORTS.partition("\n### nsys stats\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]
ALIASES = {alias.name: (view, dict(alias.parameters)) for view in registry.known().values() for alias in view.aliases}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aliases")
    kineto(folder / "base" / "trace.json")
    nl.ingest(folder / "base", store=folder / "store", jobs=1).close()
    return folder / "store"


def test_a_name_is_of_one_view_and_of_no_other_view_or_table() -> None:
    names = [alias.name for view in registry.known().values() for alias in view.aliases]
    assert len(names) == len(set(names))
    assert not set(names) & {*registry.known(), *registry.TABLES}


def test_a_view_answers_by_both_names(store: Path) -> None:
    with nl.open(store) as opened:
        for name, (view, parameters) in ALIASES.items():
            assert opened.view(name).equals(opened.view(view.name, **parameters)), name


def test_show_and_views_know_them(store: Path) -> None:
    ours = json.loads(run("show", "kernel_summary", "--store", store, "-f", "json").stdout)["rows"]
    assert ours and json.loads(run("show", "cuda_gpu_kern_sum", "--store", store, "-f", "json").stdout)["rows"] == ours
    shares = json.loads(run("show", "cuda_gpu_sum", "--store", store, "-f", "json").stdout)["rows"]
    assert {row["category"] for row in shares} == {"kernel"}
    again = run("show", "cuda_gpu_sum", "with_calls=true", "--tool", "kineto", "--store", store, "-f", "json").stdout
    assert {row["category"] for row in json.loads(again)["rows"]} == {"kernel", "call"}
    assert re.search(r"^  cuda_gpu_kern_sum +(= kernel_summary)$", run("views", "--all").stdout, re.MULTILINE)
    page = run("views", "cuda_gpu_sum").stdout
    assert page.startswith("cuda_work_summary") and "cuda_gpu_sum (with_calls=false)" in page


def test_the_shell_completes_them() -> None:
    argument = click.Argument(["view"])
    found = view_names(click.Context(click.Command("show")), argument, "cuda_gpu_kern")
    assert [(one.value, one.help) for one in found] == [
        ("cuda_gpu_kern_gb_sum", "= kernel_by_config"), ("cuda_gpu_kern_sum", "= kernel_summary")]
    assert [one.value for one in view_names(click.Context(click.Command("show")), argument, "kernel_s")] == ["kernel_summary"]


def test_options_behind_a_colon_and_wrong_names_are_told_about(store: Path) -> None:
    done = run("show", "cuda_gpu_kern_sum:base", "--store", store)
    assert done.returncode == 2 and "options behind a colon are nsys's" in done.stderr and "kernel_summary" in done.stderr
    with nl.open(store) as opened, pytest.raises(UsageError, match="did you mean cuda_gpu_kern_sum"):
        opened.view("cuda_gpu_kernel_sum")
    assert "did you mean osrt_sum" in run("show", "osrt_sums:rows=3", "--store", store).stderr


def test_an_alias_gives_parameters_that_the_view_has() -> None:
    text = ("-- Doc.\n-- @scope run\n-- @alias other {}\n-- @param n  N.\n-- @column a  A.\n"
            "CREATE MACRO v(n := 1) AS TABLE SELECT n AS a;")
    assert header.parse(text.format("n=2")).aliases == (header.Alias("other", (("n", "2"),)),)
    with pytest.raises(ViewError, match="@alias other gives m, which is no parameter and no filter"):
        header.parse(text.format("m=2"))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_counterpart_of_the_page_exists(row: list[str]) -> None:
    """And is what `show` gives under nsys's name: the same view, with the same parameters."""
    names, counterpart, why = re.findall(r"`([^`]+)`", row[0]), re.match(r"`([^`]+)`", row[1]), row[2]
    assert why, "say where it differs, or why there is none"
    if counterpart is None:
        assert row[1] in ("none", "as above")
        assert all((name in ALIASES or name in registry.known()) == (row[1] == "as above") for name in names)
        return
    view, *given = counterpart[1].split()
    parameters = dict(pair.split("=") for pair in given)
    registry.split_parameters(registry.known()[view], parameters)
    for name in names:
        if name in ALIASES:
            assert (ALIASES[name][0].name, ALIASES[name][1]) == (view, parameters)
        elif "recipe" not in PAGE[: PAGE.index(row[0])]:
            assert name == view, f"@alias {name} is missing in {registry.known()[view].place}"


def test_every_alias_stands_on_the_page() -> None:
    listed = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[0])}
    theirs = dict(re.findall(r"^\| `(\w+)` \| `(\w+)`", OTHERS, re.MULTILINE))
    assert set(ALIASES) == (listed & set(ALIASES)) | set(theirs)
    assert theirs == {name: ALIASES[name][0].name for name in theirs}
