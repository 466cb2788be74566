"""What `show` prints: the columns, order and rows that are asked for, in every format."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nsightlens.cli.show import command
from nsightlens.errors import UsageError
from nsightlens.names.kernel_names import labels


def show(store: Path, *arguments: str, columns: int = 120) -> Result:
    asked = [*arguments, "--store", str(store)]
    return CliRunner().invoke(command, asked, catch_exceptions=False, env={"COLUMNS": str(columns)})


def test_columns_order_and_limit(bundled_store: Path) -> None:
    asked = ["kernel_summary", "--tool", "nsys", "--columns", "name,total_ns", "--sort=-total_ns", "--limit", "3"]
    rows = list(csv.DictReader(show(bundled_store, *asked, "-f", "csv").stdout.splitlines()))
    every = json.loads(show(bundled_store, "kernel_summary", "--tool", "nsys", "-f", "json").stdout)["rows"]
    longest = sorted((row["total_ns"] for row in every), reverse=True)[:3]
    assert [list(row) for row in rows] == [["name", "total_ns"]] * 3 and [int(row["total_ns"]) for row in rows] == longest
    table = show(bundled_store, *asked).stdout.splitlines()
    assert table[0].split() == ["name", "total"] and table[5:] == ["(the first 3 rows)"]


def test_whose_rows_a_limit_leaves_is_said(bundled_store: Path) -> None:
    """Ranks follow one another in operator_summary."""
    asked = ["operator_summary", "--tool", "kineto", "--limit", "2"]
    cut = show(bundled_store, *asked).stdout
    assert "(the first 2 rows, all of rank 0: the next are of other ranks)" in cut and "per=run" in cut
    of_one = show(bundled_store, *asked, "--rank", "1").stdout
    assert "(the first 2 rows)" in of_one and "per=run" not in of_one
    assert "(the first" not in show(bundled_store, "operator_summary", "--limit", "100000").stdout
    assert "(the first" not in show(bundled_store, "operator_summary", "--limit", "0").stdout


def test_all_ranks_together_are_the_sum_of_each(bundled_store: Path) -> None:
    def rows(*more: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(
            show(bundled_store, "operator_summary", "--tool", "kineto", *more, "-f", "json").stdout)["rows"]
        return found

    summed: dict[object, int] = defaultdict(int)
    for row in rows():
        assert isinstance(row["device_self_ns"], int) and row["rank"] is not None
        summed[row["name"]] += row["device_self_ns"]
    together = rows("per=run")
    assert len(together) == len(summed) and {row["rank"] for row in together} == {None}
    assert {row["name"]: row["device_self_ns"] for row in together} == summed


def test_a_note_below_the_table_says_what_it_leaves_out(bundled_store: Path) -> None:
    note = "(Counts only time between the first and the last GPU work.)"
    assert note in show(bundled_store, "busy_time").stdout
    assert note not in show(bundled_store, "busy_time", "-f", "csv").stdout
    assert note not in show(bundled_store, "busy_time", "--tool", "ncu").stdout, "of no rows there is nothing to say"


def test_people_read_units_unless_they_ask_for_more(bundled_store: Path) -> None:
    asked = ["busy_time", "--tool", "nsys", "--columns", "rank,span_ns"]
    assert " ms" in show(bundled_store, *asked).stdout
    exact = show(bundled_store, *asked, "--exact").stdout
    assert " ms" not in exact and "span_ns" in exact


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_a_table_fits_into_columns_and_says_what_it_leaves_out(bundled_store: Path, columns: int) -> None:
    for view in ("straggler", "recommendations", "step_breakdown", "kernel_summary"):
        lines = show(bundled_store, view, columns=columns).stdout.splitlines()
        assert max(map(len, lines)) <= columns
        if columns == 80 and view in ("straggler", "recommendations"):
            assert {"straggler": "verdict", "recommendations": "advice"}[view] in next(
                lines[n - 1] for n, line in enumerate(lines) if line.startswith("─"))


@pytest.mark.parametrize(("view", "shown"), [
    ("idle_breakdown", ["host_wait", "kernel_wait", "other"]), ("gpu_use_over_time", ["bin", "work_pct", "start_ns"])])
def test_the_answer_has_room_on_a_narrow_terminal(bundled_store: Path, view: str, shown: list[str]) -> None:
    lines = show(bundled_store, view, "--tool", "nsys", columns=80).stdout.splitlines()
    assert set(shown) <= set(next(lines[n - 1] for n, line in enumerate(lines) if line.startswith("─")).split())


def test_use_over_time_is_a_screenful_for_each_gpu(bundled_store: Path) -> None:
    rows = json.loads(show(bundled_store, "gpu_use_over_time", "--tool", "nsys", "-f", "json").stdout)["rows"]
    assert {row["rank"] for row in rows} == {0, 1} and len(rows) == 2 * 40


def test_what_is_sorted_by_has_room(bundled_store: Path) -> None:
    def header(*asked: str) -> str:
        lines = show(bundled_store, "kernel_summary", "--tool", "nsys", *asked, columns=80).stdout.splitlines()
        return next(lines[n - 1] for n, line in enumerate(lines) if line.startswith("─"))

    assert "stddev" not in header() and "stddev" in header("--sort=-stddev_ns")


@pytest.mark.parametrize("option", ["--columns", "--sort"])
def test_a_column_that_is_not_there(bundled_store: Path, option: str) -> None:
    with pytest.raises(UsageError, match="kernel_summary has no column 'totl_ns'; did you mean total_ns"):
        show(bundled_store, "kernel_summary", option, "totl_ns")


@pytest.mark.parametrize(("view", "instead"), [
    ("kernel_summary", r"ask for rows by name: nsightlens show kernel_summary 'only_name=\*gemm\*'"),
    ("busy_time", "no --kernel, and busy_time no column with names of kernels")])
def test_kernel_is_no_option_and_the_error_says_what_to_ask(bundled_store: Path, view: str, instead: str) -> None:
    with pytest.raises(UsageError, match=instead):
        show(bundled_store, view, "--kernel", "gemm")


@pytest.mark.parametrize(("view", "pair", "said"), [
    ("top_kernels", "limit=3", "there is no parameter limit; write --limit 3"),
    ("busy_time", "step=3", "busy_time has no column step; "),
])
def test_a_parameter_that_a_view_lacks_is_answered_with_what_works(bundled_store: Path, view: str, pair: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        show(bundled_store, view, pair)


@pytest.mark.parametrize(("view", "pair"), [
    ("step_breakdown", "step=3"), ("step_timeline", "step=3"), ("kernel_summary", "name=*gemm*"), ("top_kernels", "tool=nsys")])
def test_a_column_is_a_filter(bundled_store: Path, view: str, pair: str) -> None:
    rows = show(bundled_store, view, pair, "-f", "csv").stdout
    assert rows == show(bundled_store, view, f"only_{pair}", "-f", "csv").stdout != show(bundled_store, view, "-f", "csv").stdout
    with pytest.raises(UsageError, match="are the same filter"):
        show(bundled_store, view, pair, f"only_{pair}")


def test_a_file_in_the_place_of_a_view_is_read_first(bundled_store: Path, tmp_path: Path) -> None:
    file = tmp_path / "my run.sqlite"
    file.touch()
    with pytest.raises(UsageError, match=re.escape(f"is a file, not a view: read it with nsightlens ingest '{file}'")):
        show(bundled_store, str(file))
    with pytest.raises(UsageError, match="is a folder, not a view"):
        show(bundled_store, str(tmp_path))


def test_a_kernel_has_one_name_in_every_view(bundled_store: Path) -> None:
    views = (
        "kernel_summary", "operator_kernels", "kernel_launch_summary", "kernel_breakdown",
        "headroom",
    )
    names = [labels([row["name"]])[row["name"]] for row in
             json.loads(show(bundled_store, "operator_kernels", "-f", "json").stdout)["rows"] if "<" in row["name"]]
    shown = {view: show(bundled_store, view, columns=250).stdout for view in views}
    assert names and [view for view, text in shown.items() if not any(name in text for name in names)] == []
    assert not any("void " in text for text in shown.values())
