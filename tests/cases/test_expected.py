"""What public bug reports broke: every row of EXPECTED.tsv about rows, matches and numbers, with the value that is right.

The inputs lie beside the project, and are no part of it; where they are absent these tests skip.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.pages.query import Page
from nsightlens.pages.ranks_page import ends, mpi
from nsightlens.pages.tables import Column
from nsightlens.store.store import Store
from tests.places import ROOT

CASES = ROOT.parent / "shared" / "data" / "cases"
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")]
MS = 1_000_000
_CHECKS: dict[str, Callable[[Store], None]] = {}
_OPTIONS: dict[str, dict[str, Any]] = {"kineto/allzero_fn": {"rank_pattern": r"rank(\d+)"}}
CONCLUSIONS = frozenset((
    "nsys/s15_one_block.sqlite", "nsys/s16_problem_sizes.sqlite", "nsys/s16c_thermal.sqlite", "nsys/s03_int64min.sqlite",
    "nsys/s05_mps_4proc_1gpu.sqlite", "nsys/b2_cudaThreadSynchronize.sqlite", "nsys/b3_cudaFree.sqlite",
    "nsys/b4_overhead_before.sqlite", "nsys/b5_first_launch.sqlite", "kineto/b6_work_before_window.pt.trace.json",
    "kineto/b8_v100_tf32.pt.trace.json", "kineto/first", "kineto/firststep", "kineto/nohost_off",
))
"""What is said of these captures is tested in test_conclusions.py; their rows were right."""


def _case(name: str) -> Callable[[Callable[[Store], None]], Callable[[Store], None]]:
    def keep(check: Callable[[Store], None]) -> Callable[[Store], None]:
        _CHECKS[name] = check
        return check

    return keep


def _expected() -> list[str]:
    path = CASES / "EXPECTED.tsv"
    return [row["case"] for row in csv.DictReader(path.open(encoding="utf-8"), delimiter="\t")] if path.is_file() else []


def test_every_row_is_a_test_or_about_a_conclusion() -> None:
    assert set(_expected()) - CONCLUSIONS - _CHECKS.keys() == set()


@pytest.mark.parametrize("case", [case for case in _expected() if case not in CONCLUSIONS])
def test_what_is_right(case: str, tmp_path: Path) -> None:
    with nl.ingest(CASES / case, store=tmp_path / "store", jobs=1, **_OPTIONS.get(case, {})) as store:
        _CHECKS[case](store)


def said(store: Store) -> dict[str, int]:
    """Return the counts of diagnostics by code."""
    return {row["code"]: row["count"] for row in store.sql("SELECT code, count FROM diagnostics").to_pylist()}


def one(store: Store, view: str, *columns: str, **options: Any) -> tuple[Any, ...]:
    """Return some columns of a view's only row."""
    (row,) = store.view(view, **options).to_pylist()
    return tuple(row[name] for name in columns)


def value(store: Store, sql: str) -> Any:
    """Return the only value of a query."""
    return store.sql(sql).column(0).to_pylist()[0]


def lateness(store: Store) -> list[tuple[int, int]]:
    """Return (rank, delay that it caused in ns), of those that caused some."""
    return [(row["rank"], row["caused_delay_ns"]) for row in store.view("straggler").to_pylist() if row["caused_delay_ns"]]


def calls(store: Store) -> int:
    """Return how many collectives were matched."""
    rows = store.view("collective_match").to_pylist()
    return len({(row["execution_id"], row["group_name"], row["call_index"]) for row in rows})


@_case("nsys/s01c_one_zero.sqlite")
def _check_s01c_one_zero(store: Store) -> None:
    assert one(store, "busy_time", "span_ns", "busy_ns") == (1000 * MS, 999 * MS)
    assert said(store)["start_before_launch"] == 1


@_case("nsys/s18_before_launch.sqlite")
def _check_s18_before_launch(store: Store) -> None:
    assert said(store)["gpu_clock_behind"] == 100


@_case("nsys/r1_torchrun8.sqlite")
def _check_r1_torchrun8(store: Store) -> None:
    assert lateness(store) == [(5, 50 * MS)] and said(store)["ranks_in_order"] == 1
    assert sorted(row["wait_ns"] for row in store.view("straggler").to_pylist()) == [0, *[50 * MS] * 7]


@_case("nsys/h2_two_mpi_ranks")
def _check_h2_two_mpi_ranks(store: Store) -> None:
    (section,) = mpi(Page(store, "h2_two_mpi_ranks", {}))
    assert [cell for column in section.columns if isinstance(column, Column) for cell in column.cells] == [
        "MPI_Allreduce", "60", "91.50 ms", "0", "1.500 ms", "1"]


@_case("nsys/s13_matrixMul_sample.sqlite")
def _check_s13_matrixMul_sample(store: Store) -> None:
    assert value(store, "SELECT min(family) FROM kernels WHERE contains(name, 'MatrixMul')") == "gemm"


@_case("nsys/s07_graph_trace.sqlite")
def _check_s07_graph_trace(store: Store) -> None:
    assert one(store, "busy_time", "busy_ns", "compute_ns", "graph_ns") == (11 * MS, 1 * MS, 10 * MS)
    assert said(store)["graph_kernels_hidden"] == 10


@_case("ncu/n25_tensor_peak_x512.csv")
@_case("ncu/n25b_same_without_x512.csv")
def _check_n25_tensor_peak_x512(store: Store) -> None:
    (row,) = (row for row in store.view("roofline").to_pylist() if row["level"] == "dram" and row["is_main"])
    assert row["precision"] == "fp32" and row["achieved_flop_per_s"] == pytest.approx(4975.2e9, rel=1e-5)


@_case("ncu/n10_thor_details.csv")
def _check_n10_thor_details(store: Store) -> None:
    assert one(store, "speed_of_light", "limited_by") == (None,)


@_case("ncu/n13_range.csv")
def _check_n13_range(store: Store) -> None:
    assert value(store, "SELECT grid_x FROM kernels") is None and not store.view("ncu_by_config").num_rows


@_case("ncu/n08e_de_latin1.csv")
def _check_n08e_de_latin1(store: Store) -> None:
    metrics = dict(value(store, "SELECT metrics FROM kernels"))
    assert metrics["dram__bytes.sum"] == 2e9 and metrics["gpu__time_duration.sum"] == 1_234_567.89
    assert metrics["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"] == 5e8
    assert metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"] == 65.77


@_case("ncu/n11_units.csv")
def _check_n11_units(store: Store) -> None:
    metrics = store.sql("SELECT metrics FROM kernels").column(0).to_pylist()
    assert {dict(each)["dram__bytes.sum"] for each in metrics} == {2e9}
    assert "unknown_unit" not in said(store)


@_case("ncu/n14_source_page.csv")
def _check_n14_source_page(store: Store) -> None:
    assert "source page" in value(store, "SELECT reason FROM files")


@_case("kineto/ts0")
def _check_ts0(store: Store) -> None:
    assert one(store, "busy_time", "span_ns", "busy_ns") == (1_700_000, 600_000)


@_case("kineto/far2")
def _check_far2(store: Store) -> None:
    assert one(store, "busy_time", "span_ns")[0] <= 1_550_000 and said(store)["start_before_launch"] == 2


@_case("kineto/shift")
def _check_shift(store: Store) -> None:
    assert said(store)["gpu_clock_behind"] == 100


@_case("kineto/titan")
def _check_titan(store: Store) -> None:
    assert calls(store) == 20 and lateness(store) == [(1, 6 * MS)]
    assert store.sql("SELECT windows FROM profiles").column(0).to_pylist() == [2, 2]


@_case("kineto/restart")
def _check_restart(store: Store) -> None:
    assert calls(store) == 20 and lateness(store) == [(1, 3 * MS), (1, 3 * MS)]


@_case("kineto/dropmid100")
def _check_dropmid100(store: Store) -> None:
    assert calls(store) == 99
    ((rank, late),) = lateness(store)
    assert rank == 1 and late / 99 == pytest.approx(300_000, rel=0.001)


@_case("kineto/kinds")
def _check_kinds(store: Store) -> None:
    rates = {row["operation"]: row["bus_bytes_per_s"] for row in store.view("collective_summary").to_pylist()}
    assert {rates[name] for name in ("allgather", "reducescatter", "gather", "scatter")} == {280e6}


@_case("kineto/dup")
def _check_dup(store: Store) -> None:
    time = "SELECT op, sum(duration_ns)::BIGINT AS ns, max(queue_delay_ns) AS delay FROM kernels GROUP BY op"
    found = {row["op"]: (row["ns"], row["delay"]) for row in store.sql(time).to_pylist()}
    assert (found["aten::mm"], found["aten::add"]) == ((200_000, 75_000), (100_000, 75_000))


@_case("kineto/dupev")
def _check_dupev(store: Store) -> None:
    assert store.sql("SELECT kernels, kernel_ns FROM profiles").to_pylist() == [{"kernels": 10, "kernel_ns": 1_020_000}]
    assert said(store)["repeated_events"] == 10


@_case("kineto/allzero_fn")
def _check_allzero_fn(store: Store) -> None:
    assert lateness(store) == [(1, 3 * MS)]


@_case("kineto/m3")
def _check_m3(store: Store) -> None:
    assert "merged by another program" in value(store, "SELECT reason FROM files"), "each loss is said"


@_case("kineto/a5c")
def _check_a5c(store: Store) -> None:
    assert said(store)["second_trace"] > 10


@_case("kineto/a2")
def _check_a2(store: Store) -> None:
    assert value(store, "SELECT count(*) FROM frames WHERE name = '{\"device\": \"cpu\", \"dtype\": \"float32\"}(12): run'") == 1


@_case("kineto/be")
def _check_be(store: Store) -> None:
    assert said(store)["begin_end_events"] == 32


@_case("kineto/a9b")
def _check_a9b(store: Store) -> None:
    assert value(store, "SELECT origin_epoch_ns FROM profiles") == 1_747_028_000_000_000_000
    assert value(store, "SELECT min(start_ns) FROM kernels") == 60_000


@_case("nsys/s17_report.sqlite")
@_case("nsys/s17b_half_lost.sqlite")
@_case("kineto/lostk")
def _check_s17_report(store: Store) -> None:
    rows = store.sql("SELECT count, message FROM diagnostics WHERE code = 'launches_without_kernel'").to_pylist()
    at_the_end = sum("(and 1 at its end)" in row["message"] for row in rows)
    lost = value(store, "SELECT (SELECT count(*) FROM api_calls) - (SELECT count(*) FROM kernels)")
    assert sum(row["count"] for row in rows) + at_the_end == lost, "none of these captures records a graph"


@_case("nsys/s20_recursive_range.sqlite")
def _check_s20_recursive_range(store: Store) -> None:
    assert one(store, "nvtx_gpu_projection", "gpu_ns") == (46 * MS,)
    assert value(store, "SELECT sum(duration_ns)::BIGINT FROM kernels WHERE range_path IS NOT NULL") == 46 * MS


@_case("nsys/s08_start_end_range.sqlite")
def _check_s08_start_end_range(store: Store) -> None:
    by_path = value(store, "SELECT sum(duration_ns)::BIGINT FROM kernels WHERE range_path = 'train_step'")
    assert one(store, "nvtx_gpu_projection", "gpu_ns") == (by_path,) == (10 * MS,)


@_case("nsys/h1_saxpy_mpi_tables.sqlite")
def _check_h1_saxpy_mpi_tables(store: Store) -> None:
    communication, other = one(store, "step_breakdown", "communication_ns", "other_ns")
    assert (round(communication / MS, 1), round(other / MS, 1)) == (244.1, 765.5)


@_case("kineto/zerocta")
def _check_zerocta(store: Store) -> None:
    assert one(store, "comm_compute_overlap", "communication_ns", "overlap_ns", "exposed_communication_ns") == (
        1_200_000, 300_000, 900_000)
    assert one(store, "exposed_communication", "total_ns", "exposed_ns") == (1_200_000, 900_000)
    tree = {row["node"]: row["total_ns"] for row in store.view("time_tree").to_pylist() if row["depth"] == 1}
    assert (tree["communication"], tree["copies"]) == (900_000, 0)
    assert "communication" in {row["bound_by"] for row in store.view("critical_path").to_pylist()}


@_case("kineto/pp")
def _check_pp(store: Store) -> None:
    rows = {row["stage"]: row for row in store.view("stage_waits").to_pylist()}
    assert (rows[0]["wait_ns"], rows[1]["peer_stage"], rows[1]["wait_ns"]) == (0, 0, 3_030_000)
    assert rows[1]["wait_ns"] / rows[1]["messages"] == 505_000 and rows[1]["total_ns"] / rows[1]["messages"] == 605_000
    (leaf,) = (row for row in store.view("time_tree").to_pylist() if row["node"] == "waiting for stage 0")
    assert (leaf["rank"], leaf["total_ns"]) == (1, 5 * 505_000), "the first step is not judged"
    assert ("other end", "stage 0") in {(row["cause"], row["subject"]) for row in store.view("findings").to_pylist()}
    (section,) = ends(Page(store, "pp", {}))
    assert [cell for column in section.columns if isinstance(column, Column) for cell in column.cells[:1]] == [
        "1 (stage 1)", "0 (stage 0)", "3.030 ms", "600.0 µs", "6"]


@_case("kineto/b7_graph_without_grid.pt.trace.json")
def _check_b7_graph_without_grid(store: Store) -> None:
    assert one(store, "gpu_summary", "sm_efficiency_pct") == (None,)


@_case("nsys/s21_page_faults.sqlite")
def _check_s21_page_faults(store: Store) -> None:
    assert one(store, "kernel_page_faults", "fault_ns", "faults", "fault_pct") == (90 * MS, 230_400, 90.0)
    assert [row["total_ns"] for row in store.view("time_tree").to_pylist() if row["node"] == "page faults"] == [90 * MS]
