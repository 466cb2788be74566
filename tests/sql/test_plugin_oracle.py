"""The plugin's views against what torch_tb_profiler 0.4.3 printed for real traces, each figure to its printed digits.

The rows are first changed as the plugin reads them (tests/peers/tbplugin.py); then our own views are asked. docs/architecture.md
lists the changes. The captures are not part of the project; where they are absent these tests skip.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from nsightlens.pipeline.ingest import ingest
from tests.catalogs import catalog
from tests.peers import tbplugin as plugin
from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data"
ORACLES = sorted((DATA / "oracle").glob("tbplugin043_*.json"))
WORKERS = [(path.stem, worker) for path in ORACLES for worker in json.loads(path.read_text())["workers"]]
DISTRIBUTED = [path.stem for path in ORACLES if "distributed" in json.loads(path.read_text())]
TABLES = ("kernels", "memory_ops", "graph_executions", "api_calls", "ranges", "allocations", "devices", "processes", "profiles")
ROLES = {"Kernel": "kernel_ns", "Memcpy": "memcpy_ns", "Memset": "memset_ns", "Communication": "communication_ns",
         "Runtime": "runtime_ns", "DataLoader": "data_loader_ns", "CpuOp": "cpu_exec_ns", "Other": "other_ns", "Total": "step_ns"}
RULES = {"input data loading": "data_loader", "low utilization": "gpu_utilization", "Tensor Cores eligible": "tensor_cores",
         "cost on communication": "communication", "limit of device memory": "memory"}
Rows = list[dict[str, Any]]

pytestmark = [pytest.mark.captures, pytest.mark.skipif(not ORACLES, reason="the real captures are not here")]


def _oracle(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "oracle" / f"{name}.json").read_text())
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The catalog of a store of all traces that the plugin was asked about."""
    path = tmp_path_factory.mktemp("plugin")
    files = sorted({DATA / "kineto" / file for name in ORACLES for file in _oracle(name.stem)["files"].values()})
    ingest(files, path)
    with duckdb.connect(str(path / "nsightlens.duckdb"), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return catalog()


@pytest.fixture
def con(empty: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A catalog without rows, and without those a test put into it before."""
    empty.execute("BEGIN")
    yield empty
    empty.execute("ROLLBACK")


def _read(store: duckdb.DuckDBPyConnection, file: str, con: duckdb.DuckDBPyConnection) -> str:
    """Put the rows of one file into a catalog; return its profile."""
    (profile,), = store.execute("SELECT profile_id FROM files WHERE ends_with(path, ?)", [file]).fetchall()
    for table in TABLES:
        _copy(store.sql(f"SELECT * FROM {table} WHERE profile_id = ?", params=[profile]), con, table)
    return str(profile)


def _copy(rows: duckdb.DuckDBPyRelation, con: duckdb.DuckDBPyConnection, table: str) -> None:
    con.register("_rows", rows.to_arrow_table())
    con.execute(f"INSERT INTO {table} BY NAME FROM _rows")
    con.unregister("_rows")


def _digits(value: float | None) -> float:
    """Return 12 significant digits, what a sum of doubles in any order is good for; 0 where there is nothing."""
    return float(f"{value or 0:.12g}")


def _hundredths(value: float) -> float:
    """Return two decimals of a figure as SQL rounds it: 0.075, as a double a little less, is 0.08 in DuckDB 1 and 0.07 in 2."""
    (row,) = duckdb.execute("SELECT round(?::DOUBLE, 2)", [_digits(value)]).fetchall()
    return float(row[0])


def _percent(value: float | None) -> float | None:
    """Return a ratio as the plugin prints it: in percent, to two decimals."""
    return None if value is None else round(100 * value, 2)


def _overlap(row: dict[str, Any], units: float) -> dict[str, float]:
    both = row["overlapping_ns"]
    return {"computation": (row["computation_ns"] + both) / units, "communication": (row["communication_ns"] + both) / units,
            "overlap": both / units, "other": row["other_ns"] / units}


@pytest.mark.parametrize(("name", "worker"), WORKERS)
def test_every_figure_of_the_plugin(
    store: duckdb.DuckDBPyConnection, con: duckdb.DuckDBPyConnection, name: str, worker: str,
) -> None:
    oracle = _oracle(name)
    printed = oracle["workers"][worker]
    _read(store, oracle["files"][worker], con)
    assert _kernels(con, [row["name"] for row in printed["kernel_stat_top20"]]) == [
        {**row, "sum": _digits(row["sum"]), "mean": _digits(row["mean"]), "blocks_per_sm": _hundredths(row["blocks_per_sm"]),
         "occupancy": _hundredths(row["occupancy"])} for row in printed["kernel_stat_top20"]]
    assert _digits(_ratio(con, "tc", "kernel_view")) == _digits(printed["tc_used_ratio"])
    assert printed["use_ddp"] == bool(_count(con, "name = 'DistributedDataParallel.forward' AND kind = 'operator'"))
    units = plugin.as_the_plugin_reads(con, oracle["mode"])
    assert bool(printed["comm_lib"]) == bool(_count(con, "name LIKE 'nccl:%'"))
    _steps_agree(con, printed, units)
    plugin.without_crossing_calls(con)
    assert {str(row["device"]): [row["utilization_pct"], row["sm_efficiency_pct"], row["occupancy_pct"],
                                 row["operator_tensor_core_pct"]]
            for row in plugin.rows_of(con, "FROM gpu_summary") if row["device"] is not None} == {
        gpu: [_percent(row["gpu_utilization"]), _percent(row["est_sm_efficiency"]), round(row["est_achieved_occupancy_pct"], 2),
              _percent(row["tc_ratio"])] for gpu, row in printed["gpu"].items()}
    assert _digits(_ratio(con, "eligible", "_operators")) == _digits(printed["tc_eligible_ops_kernel_ratio"])
    assert _operators(con, units, [row["name"] for row in printed["operators_top25"]]) == [
        {**row, "tc_self_ratio": _percent(row["tc_self_ratio"]), "tc_total_ratio": _percent(row["tc_total_ratio"])}
        for row in printed["operators_top25"]]
    assert _peaks(con) == {",".join(re.findall(r"CPU|CUDA|-?\d+(?=\))", device)): peak
                           for device, peak in (printed.get("peak_memory") or {}).items()}
    _recommendations_agree(con, printed["recommendations"])


def _steps_agree(con: duckdb.DuckDBPyConnection, printed: dict[str, Any], units: float) -> None:
    """Names, roles, means and overlap of the steps; the steps that the plugin drops are dropped here too, at the end."""
    steps = plugin.per_step(con, "FROM step_breakdown()")
    kept = plugin.without_trailing_steps(steps)
    costs = [{role: (row[column] or 0) / units for role, column in ROLES.items()} for row in kept]
    assert ["0" if row["step"] is None else str(row["step"]) for row in kept] == printed["steps_names"]
    assert costs == printed["steps_costs_us"]
    assert {role: sum((row[role] for row in costs), 0.0) / len(costs) for role in ROLES} == printed["avg_costs_us"]
    overlap = plugin.per_step(con, "FROM distributed_overview()")[: len(kept)]
    assert [_overlap(row, units) for row in overlap] == printed["comm_overlap"]
    con.execute("DELETE FROM ranges WHERE range_id IN ?", [[row["step_id"] for row in steps[len(kept):]]])


def _kernels(con: duckdb.DuckDBPyConnection, names: list[str]) -> Rows:
    """Return the kernel table as the plugin prints it, with the exact durations of the file and the plugin's table of names.

    names: in the plugin's order, which leaves open how equal sums follow each other.
    """
    plugin.tensor_cores_by_old_names(con)
    found = {row["name"]: row for row in plugin.rows_of(con, "FROM kernel_view ORDER BY total_ns DESC")}
    rows = [found[name] for name in names]
    assert [row["total_ns"] for row in rows] == [row["total_ns"] for row in found.values()][: len(rows)]
    return [{"name": row["name"], "tc_used": row["tensor_cores"], "count": row["calls"], "sum": _digits(row["total_ns"] / 1000),
             "mean": _digits(row["total_ns"] / 1000 / row["calls"]), "max": row["max_ns"] / 1000, "min": row["min_ns"] / 1000,
             "blocks_per_sm": row["blocks_per_sm"], "occupancy": row["estimated_occupancy_pct"]} for row in rows]


def _ratio(con: duckdb.DuckDBPyConnection, of: str, view: str) -> float | None:
    """Return a share of kernel time: on tensor cores (tc), or launched by operators eligible for them (eligible)."""
    part, whole = {"tc": ("sum(total_ns) FILTER (tensor_cores)", "sum(total_ns)"),
                   "eligible": ("sum(eligible_ns)", "sum(kernel_self_ns)")}[of]
    kept = "NOT starts_with(name, 'Optimizer.') AND name <> 'DistributedDataParallel.forward'" if of == "eligible" else "true"
    row, = plugin.rows_of(con, f"SELECT {part} / nullif({whole}, 0) AS share FROM {view} WHERE {kept}")
    return float(row["share"]) if row["share"] is not None else None


def _operators(con: duckdb.DuckDBPyConnection, units: float, names: list[str]) -> Rows:
    """Return the operator table for those names, as the plugin prints it: what is unknown is 0; the first call that ends,
    on the first thread, decides whether the operator is eligible for tensor cores."""
    first = dict(con.execute("""
        SELECT replace(name, ?, ''), arg_min(eligible, (first_ns, start_ns + duration_ns, -start_ns)) FROM (
            SELECT o.name, o.eligible, r.start_ns, r.duration_ns, min(r.start_ns) OVER (PARTITION BY r.thread) AS first_ns
            FROM _operators AS o JOIN ranges AS r USING (range_id)) GROUP BY 1""", [plugin.UNLISTED]).fetchall())
    rows = {row["name"].removeprefix(plugin.UNLISTED): row for row in plugin.rows_of(con, "FROM operator_summary()")}
    return [{"name": name, "calls": rows[name]["calls"], "device_self": (rows[name]["device_self_ns"] or 0) / units,
             "device_total": (rows[name]["device_total_ns"] or 0) / units, "host_self": rows[name]["host_self_ns"] / units,
             "host_total": rows[name]["host_total_ns"] / units, "tc_eligible": first[name],
             "tc_self_ratio": rows[name]["tensor_core_self_pct"] or 0,
             "tc_total_ratio": rows[name]["tensor_core_total_pct"] or 0} for name in names]


def _peaks(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    return {f"{row['device_type'].upper()},{-1 if row['device'] is None else row['device']}": row["peak_allocated_bytes"]
            for row in plugin.rows_of(con, "FROM memory_peak") if row["peak_allocated_bytes"] is not None}


def _recommendations_agree(con: duckdb.DuckDBPyConnection, printed: list[str]) -> None:
    """The same rules fire, with the same number where the plugin prints one (with one decimal, or with none)."""
    found = {row["rule"]: row["value_pct"] for row in plugin.rows_of(con, "FROM _plugin_rules")}
    expected = {next(rule for words, rule in RULES.items() if words in text): re.search(r"([\d.]+)%", text) for text in printed}
    assert found.keys() == expected.keys()
    for rule, number in expected.items():
        if number:
            assert f"{found[rule]:.{len(number[1].partition('.')[2])}f}" == number[1]


def _count(con: duckdb.DuckDBPyConnection, condition: str) -> int:
    row, = plugin.rows_of(con, f"SELECT count(*) AS rows FROM ranges WHERE {condition}")
    return int(row["rows"])


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_the_distributed_view(store: duckdb.DuckDBPyConnection, con: duckdb.DuckDBPyConnection, name: str) -> None:
    oracle = _oracle(name)
    together = catalog()
    workers = {}
    for worker, file in oracle["files"].items():
        workers[_read(store, file, con)] = worker
        assert plugin.as_the_plugin_reads(con, oracle["mode"]) == 1
        for table in TABLES:
            _copy(con.sql(f"FROM {table}"), together, table)
            con.execute(f"DELETE FROM {table}")
    overlap: dict[str, dict[str, list[int]]] = {}
    for row in plugin.rows_of(together, "FROM distributed_overview()"):
        four = [row["computation_ns"], row["overlapping_ns"], row["communication_ns"], row["other_ns"]]
        for step in (str(row["step"]), "all"):  # each has one step, so that the mean is the step
            overlap.setdefault(step, {})[workers[row["profile_id"]]] = four
    assert overlap == oracle["distributed"]["overlap"]["data"]
    plugin.collectives_on_the_host(together)
    wait: dict[str, dict[str, list[int]]] = {}
    for row in plugin.rows_of(together, "FROM distributed_overview()"):
        for step in (str(row["step"]), "all"):
            wait.setdefault(step, {})[workers[row["profile_id"]]] = [row["transfer_ns"], row["synchronizing_ns"]]
    assert wait == oracle["distributed"]["wait"]["data"]
    operations = {workers[row["profile_id"]]: [
        "nccl:all_reduce", row["calls"], row["total_bytes"], round(row["total_bytes"] / row["calls"]), row["latency_union_ns"],
        round(row["latency_union_ns"] / row["calls"]), row["transfer_union_ns"], round(row["transfer_union_ns"] / row["calls"])]
        for row in plugin.rows_of(together, "FROM collective_summary")}
    assert [operations[worker][1] for worker in oracle["files"]] == oracle["comm_counts"]
    assert {worker: [row] for worker, row in operations.items()} == {
        worker: ops["rows"] for worker, ops in oracle["distributed"]["ops"]["data"].items()}
