"""Books: what balances, what does not and by how much; the published tables; every view that states books."""

from __future__ import annotations

import warnings
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import nsightlens as nl
from nsightlens.cli.reconcile import command
from nsightlens.errors import BalanceWarning, ReadError, UsageError, ViewError
from nsightlens.store.store import Store
from nsightlens.views import header, registry
from nsightlens.views.balance import Balance, parse_balance, reconcile, unbalanced
from tests.captures import in_groups, kineto
from tests.places import ROOT
from tests.readers.nsys_report import base, global_pid, write

PUBLISHED = ROOT / "tests" / "published"
SLIDE = "total_us = kernel_us + memcpy_us + memset_us + runtime_us + data_loader_us + cpu_exec_us + other_us"
RANKS = "kernel_us = idle_us + compute_us + non_compute_us"


@pytest.mark.parametrize(("text", "expected"), [
    ("span = busy + idle", Balance("span", ((1, "busy"), (1, "idle")))),
    ("idle = -busy + span", Balance("idle", ((-1, "busy"), (1, "span")))),
    ("step_ns=total_ns per rank, step", Balance("step_ns", ((1, "total_ns"),), ("rank", "step"))),
])
def test_books_are_read_and_printed(text: str, expected: Balance) -> None:
    assert parse_balance(text) == expected
    assert parse_balance(str(expected)) == expected


@pytest.mark.parametrize("text", ["", "a", "a =", "= a", "a = b c", "a = b ++ c", "a = b +", "a = b per"])
def test_what_states_no_balance_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="states no balance"):
        parse_balance(text)


@given(st.lists(st.tuples(st.integers(), st.integers(), st.integers(-2, 2)), max_size=20))
def test_exactly_the_rows_that_are_off_are_found(rows: list[tuple[int, int, int]]) -> None:
    limited = [(a % 10**15, b % 10**15, d) for a, b, d in rows]
    table = pa.table({"row": list(range(len(rows))), "total": [a + b - d for a, b, d in limited],
                      "a": [a for a, _, _ in limited], "b": [b for _, b, _ in limited]})
    off = reconcile(table, parse_balance("total = a + b"))
    assert off["row"].to_pylist() == [row for row, (_, _, d) in enumerate(limited) if d]
    assert off["difference"].to_pylist() == [d for _, _, d in limited if d]


def test_parts_in_rows_are_summed_per_group() -> None:
    table = pa.table({"step": [1, 1, 2, 2, 3], "part": [4, 6, 4, 5, 7], "whole": [10, 10, 10, 10, None]})
    assert reconcile(table, parse_balance("whole = part per step")).to_pylist() == [
        {"step": 2, "whole": 10, "sum_of_parts": 9, "difference": -1}]


def test_rows_of_one_group_that_state_different_totals_do_not_balance() -> None:
    table = pa.table({"step": [1, 1], "part": [4, 6], "whole": [10, 11]})
    assert reconcile(table, parse_balance("whole = part per step"))["difference"].to_pylist() == [-1]


def test_the_unknown_is_not_judged() -> None:
    table = pa.table({"a": pa.array([1, None, 3]), "b": [2, 2, 2], "total": [3, 9, 6]})
    assert reconcile(table, parse_balance("total = a + b"))["total"].to_pylist() == [6]


def test_a_double_holds_no_exact_number() -> None:
    with pytest.raises(UsageError, match="no exact number"):
        reconcile(pa.table({"a": [1.0], "b": [1.0]}), parse_balance("a = b"))


def test_a_sentence_per_broken_balance() -> None:
    table = pa.table({"rank": [3], "a": [1], "total": [3]})
    assert unbalanced(table, [parse_balance("total = a")]) == [
        "total = a: 1 do not balance; the first: rank 3, total 3, sum_of_parts 1, difference -2"]


def test_the_slide_balances() -> None:
    done = CliRunner().invoke(command, [str(PUBLISHED / "step_time_slide.csv"), SLIDE])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "balances (1 row)" in done.stderr


def test_the_eight_ranks_balance_but_for_rank_0() -> None:
    done = CliRunner().invoke(command, [str(PUBLISHED / "temporal_breakdown_8_ranks.csv"), RANKS, "--format", "csv"])
    assert done.exit_code == 1
    assert done.stdout.splitlines() == ["rank,non_compute_pct,kernel_us,sum_of_parts,difference", "0,43.51,2033570,2043570,10000"]


@pytest.mark.parametrize("text", ["", "a,b\n1\n", "a,a\n1,2\n", "\x00\xff"])
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="latin-1")
    done = CliRunner().invoke(command, [str(path), "a = b"])
    assert done.exit_code == 1
    assert isinstance(done.exception, ReadError)


@pytest.mark.usefixtures("cache")
def test_a_view_whose_books_are_off_warns(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = """-- Two parts of each kind.
-- @scope run
-- @column kind      Kind.
-- @column part_ns   Part.
-- @column whole_ns  Whole.
-- @balance whole_ns = part_ns per kind
CREATE VIEW family_summary AS SELECT 1"""
    wrong = header.parse(sql)
    monkeypatch.setattr(registry, "query", lambda view, parameters, source: (
        "FROM (VALUES ('a', 1, 3), ('a', 2, 3), ('b', 1, 3)) AS t(kind, part_ns, whole_ns)"
        + (" WHERE part_ns = 2" if parameters else ""), []))
    monkeypatch.setattr(registry, "load", lambda: {wrong.name: wrong})
    said = "family_summary: .* 1 do not balance; the first: kind b"
    with nl.open(bundled_store) as store, pytest.warns(BalanceWarning, match=said):
        assert store.view(wrong.name, only_part_ns=2).num_rows == 1


def test_books_name_columns_of_the_view() -> None:
    with pytest.raises(ViewError, match="@balance names idle"):
        header.parse("-- V.\n-- @scope run\n-- @column a  A.\n-- @balance a = idle\nCREATE VIEW v AS SELECT 1 AS a")


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("sampled")
    samples = [{"id": id_, "start": 1000 + id_, "globalTid": global_pid(7) + 70} for id_ in range(1, 4)]
    stacks = [{"id": id_, "symbol": 2 - depth, "module": 4, "unresolved": 0, "stackDepth": depth}
              for id_ in (1, 2) for depth in range(id_)]
    write(folder / "report.sqlite", base(COMPOSITE_EVENTS=samples, SAMPLING_CALLCHAINS=stacks))
    stage = kineto(folder / "stage.json", [("ncclDevKernel_SendRecv", 1000.0, 10.0)], rank=0)
    in_groups(stage, [("5", "mesh_pp", [0, 1])], {"ncclDevKernel_SendRecv": "5"})
    return nl.ingest([folder / "report.sqlite", stage], store=folder / "store", jobs=1)


@pytest.mark.parametrize("name", [name for name, view in registry.public(registry.load()).items() if view.balances])
def test_every_view_that_states_books_keeps_them(store: Store, sampled: Store, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", BalanceWarning)
        table = (sampled if name.startswith(("cpu_sample", "pipeline")) else store).view(name)
    assert table.num_rows, "the simulated run has everything but CPU samples and pipelines: books of no row prove nothing"


def test_decimals_of_a_csv_are_exact() -> None:
    table = pa.table({"a": ["0.1"], "b": ["0.2"], "total": ["0.3"]})
    assert reconcile(table, parse_balance("total = a + b")).num_rows == 0
    assert reconcile(table, parse_balance("a = b"))["difference"].to_pylist() == [Decimal("0.1")]
