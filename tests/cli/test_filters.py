"""--run --rank --step --tool --family: one meaning on every command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from nsightlens.cli.filters import COLUMNS, chosen, filter_options, nearest_with, parameters_of
from nsightlens.errors import UsageError
from nsightlens.views import registry
from tests.cli.command_line import run

PUBLIC = registry.public(registry.load())


def given(**options: str | tuple[str, ...]) -> dict[str, Any]:
    """Return the keyword arguments that click hands over for those options."""
    asked = {name: (value,) if isinstance(value, str) else value for name, value in options.items()}
    return {f"only_{column}": asked.get(column, ()) for column in COLUMNS}


@pytest.mark.parametrize(("text", "numbers"), [("3", [3]), ("0,2", [0, 2]), ("0-3", [0, 1, 2, 3]), ("7, 1-2,7", [7, 1, 2])])
def test_numbers_lists_and_ranges(text: str, numbers: list[int]) -> None:
    assert chosen(given(rank=text)) == {"rank": numbers}


@pytest.mark.parametrize("text", ["x", "", "3-1", "-1", "0-999999999", "1;2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--step"):
        chosen(given(step=text))


def test_names_come_as_they_are_and_several_times() -> None:
    assert chosen(given(run=("a,b", "c"), tool="nsys")) == {"run": ["a,b", "c"], "tool": ["nsys"]}


def test_filters_become_parameters_of_the_view() -> None:
    assert parameters_of("kernel_by_rank", PUBLIC, {"rank": [1]}, {"only_tool": "nsys"}) == {
        "only_rank": [1], "only_tool": "nsys"}


def test_a_column_that_the_view_lacks_names_the_view_that_has_it() -> None:
    for asked in ({"filters": {"rank": [0]}}, {"filters": {}, "pairs": {"only_rank": "0"}}):
        with pytest.raises(UsageError, match="kernel_summary has no column rank; kernel_by_rank"):
            parameters_of("kernel_summary", PUBLIC, **asked)


def test_the_same_column_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="only_rank and --rank"):
        parameters_of("kernel_by_rank", PUBLIC, {"rank": [1]}, {"only_rank": "2"})


def test_the_nearest_view_is_the_one_with_the_most_columns_in_common() -> None:
    assert nearest_with("rank", "kernel_summary", PUBLIC)[0] == "kernel_by_rank"
    assert nearest_with("no_such_column", "kernel_summary", PUBLIC) == []


def test_the_options_are_the_five() -> None:
    command = click.command()(filter_options(lambda **_: None))
    assert [option.opts[0] for option in command.params] == [f"--{column}" for column in COLUMNS]


@pytest.mark.parametrize("asked", [
    ["show", "step_timeline"], ["summary"], ["compare", "ranks"], ["plot", "step_timeline", "-o", "x.png"]])
@pytest.mark.parametrize(("option", "known"), [
    ("--run", "simulated"), ("--tool", "kineto, ncu, nsys"), ("--rank", "ranks 0-1"), ("--step", "steps 0-4"),
    ("--family", "optimizer, collective, elementwise, memory")])
def test_a_value_that_the_store_does_not_have_is_refused_with_those_that_it_has(
    bundled_store: Path, asked: list[str], option: str, known: str,
) -> None:
    value = "77" if option in ("--rank", "--step") else "nowhere"
    done = run(*asked, option, value, "--store", bundled_store)
    assert done.returncode == 2 and f"{option} {value}: the store has {known}" in done.stderr


@pytest.mark.parametrize("asked", [
    ["plan-ncu", "--rank", "77"], ["export", "flamegraph", "--rank", "77"],
    ["export", "perfetto", "-o", "x.json", "--rank", "77"]])
def test_commands_with_some_of_the_filters_refuse_as_well(bundled_store: Path, asked: list[str]) -> None:
    done = run(*asked, "--store", bundled_store)
    assert done.returncode == 2 and "77" in done.stderr and ("0, 1" in done.stderr or "0-1" in done.stderr)


@pytest.mark.parametrize("asked", [["show", "step_timeline", "which_step=77"], ["show", "step_breakdown", "only_step=77"]])
def test_a_step_that_no_run_has_is_refused_however_it_is_asked_for(bundled_store: Path, asked: list[str]) -> None:
    done = run(*asked, "--store", bundled_store)
    assert done.returncode == 2 and "--step 77: the store has steps 0-4" in done.stderr


def test_the_examples_of_help_filters_run(bundled_store: Path) -> None:
    lines = [line for line in run("help", "filters").stdout.splitlines() if line.startswith("nsightlens ")]
    assert lines and all(run(*shlex.split(line)[1:], "--store", bundled_store).returncode == 0 for line in lines)


def test_of_several_steps_one_suffices(bundled_store: Path) -> None:
    done = run("show", "step_breakdown", "--step", "3-9", "--store", bundled_store, "-f", "csv")
    assert done.returncode == 0 and len(done.stdout.splitlines()) > 1


def test_a_page_of_one_step_knows_that_there_are_steps(bundled_store: Path) -> None:
    assert "Where a step went" in run("summary", "--step", "3", "--store", bundled_store).stdout


def test_a_view_that_is_like_none_names_what_lists_them(bundled_store: Path) -> None:
    done = run("show", "xylophone", "--store", bundled_store)
    assert done.returncode == 2 and done.stderr == ("nsightlens: there is no view xylophone; nsightlens views lists them, and "
                                                    "nsightlens views WORDS finds some\n")
