"""HTA 0.5.0 on real traces, figure by figure: our views on the rows as HTA changes them (tests/peers/hta.py) give its numbers.

Integers and rounded figures are compared as printed. Where HTA computes in doubles, sums of thousands of them differ in the last
digits by the order of adding: nine digits are compared.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import BalanceWarning
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.exact_intervals import exact_intervals
from tests.peers import hta
from tests.peers.hta import UNIT
from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data"
ORACLES = sorted((DATA / "oracle").glob("hta050__*.json"))
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not ORACLES, reason="the real captures are not here")]
STATISTICS = {"count": "points", "mean": "point_mean", "std": "point_stddev", "min": "point_min", "25%": "point_p25",
              "50%": "point_median", "75%": "point_p75"}


def near(ours: float | None, theirs: float | None) -> bool:
    """Return whether two figures are the same to nine digits; unknown is only like unknown."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-7)


NOT_RECORDED = "DELETE FROM kernels WHERE name = 'Stream Wait Event'; DELETE FROM graph_executions"


class Case:
    """What HTA printed for a job, and our rows as HTA changes them."""

    def __init__(self, store: Store, oracle: Path) -> None:
        told = json.loads(oracle.read_text())
        self.name = oracle.stem.removeprefix("hta050__")
        self.told: dict[str, Any] = told["results"]
        self.errors: dict[str, str] = told.get("errors", {})
        self.paths = {int(rank): DATA / "kineto" / path for rank, path in told["trace_files"].items()}
        self.traces = hta.loaded(store, self.paths, rounding="norounding" not in oracle.name,
                                 include_last=told["include_last_profiler_step"])
        self._tables = hta.as_tables(self.traces)

    def rows(self, view: str, without: str = "", **parameters: object) -> list[dict[str, Any]]:
        """Return the rows of a view on HTA's events; without: statements that first take some of them away."""
        known = registry.load()[view]
        if "communication_pattern" in {param.name for param in known.params}:
            parameters["communication_pattern"] = hta.COMMUNICATION
        self._tables.execute("BEGIN")
        for statement in filter(None, without.split(";")):
            self._tables.execute(statement)
        sql, values = registry.query(known, parameters)
        found: list[dict[str, Any]] = self._tables.sql(sql, params=values or None).to_arrow_table().to_pylist()
        self._tables.execute("ROLLBACK")
        return found

    def by_rank(self, view: str, **parameters: object) -> dict[int, dict[str, Any]]:
        """Return the one row of each rank."""
        return {row["rank"]: row for row in self.rows(view, "", **parameters)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    paths = {DATA / "kineto" / path for oracle in ORACLES for path in json.loads(oracle.read_text())["trace_files"].values()}
    alone = sorted(path for path in paths if path.parent == DATA / "kineto")
    folders = sorted({path.parent for path in paths} - {DATA / "kineto"})
    return nl.ingest([*alone, *folders, DATA / "nsys"], store=tmp_path_factory.mktemp("hta") / "store")


@pytest.fixture(scope="module", params=ORACLES, ids=[path.stem.removeprefix("hta050__") for path in ORACLES])
def case(request: pytest.FixtureRequest, store: Store) -> Case:
    return Case(store, request.param)


def test_temporal_breakdown(case: Case) -> None:
    """Negative lengths are the one thing to undo: a lonely one takes 1 us from HTA's busy time. HTA fails on the Qwen trace."""
    rows = case.by_rank("temporal_breakdown", per="process")
    if "temporal_breakdown" not in case.told:
        assert "AssertionError" in case.errors["temporal_breakdown"] or not rows
        return
    assert len(case.told["temporal_breakdown"]) == len(rows)
    for told in case.told["temporal_breakdown"]:
        row, gpu = rows[told["rank"]], case.traces[told["rank"]].gpu
        computing = gpu[gpu["name"].map(hta.kernel_type).eq("compute")]
        unions = hta.merged(gpu)
        span = unions["end"].iloc[-1] - unions["ts"].iloc[0]
        late = row["span_ns"] / UNIT - span  # an end before its start, at the end of the trace
        missing = hta.taken_away(gpu) - late
        assert near(row["span_ns"] / UNIT - late, told["kernel_time(us)"])
        assert near(row["idle_ns"] / UNIT + missing, told["idle_time(us)"])
        assert near(row["compute_ns"] / UNIT - hta.taken_away(computing), told["compute_time(us)"])
        rest = (row["non_compute_ns"] + row["unknown_ns"]) / UNIT - hta.taken_away(gpu) + hta.taken_away(computing)
        assert near(rest, told["non_compute_time(us)"])
        if not (gpu["dur"] < 0).any() and not row["unknown_ns"]:
            assert [row["idle_pct"], row["compute_pct"], row["non_compute_pct"]] == [
                told[f"{part}_time_pctg"] for part in ("idle", "compute", "non_compute")]


def test_comm_compute_overlap(case: Case) -> None:
    rows = case.by_rank("comm_compute_overlap", per="process")
    for told in case.told["comm_comp_overlap"]:
        assert rows.get(told["rank"], {}).get("overlap_pct") == told["comp_comm_overlap_pctg"]


def test_kernel_types(case: Case) -> None:
    """Our classes are HTA's stretches; it cuts each stretch to whole us before it sums them over the ranks."""
    sums: dict[str, float] = {}
    for row in case.rows("kernel_type_breakdown", per="process"):
        sums[row["class"]] = sums.get(row["class"], 0.0) + row["total_ns"] / UNIT
    cut: dict[str, int] = {}
    for trace in case.traces.values():
        found = hta.stretches(trace.gpu)
        for kind, lengths in found.items():
            cut[kind] = cut.get(kind, 0) + sum(map(int, lengths))
            if not (trace.gpu["dur"] < 0).any() and len(case.traces) == 1:
                assert near(sums[kind], math.fsum(lengths))
    told = {"+".join(part.lower().replace("computation", "compute") for part in row["kernel_type"].split(" overlapping ")): row
            for row in case.told["gpu_kernel_breakdown"][0]}
    assert {kind: row["sum"] for kind, row in told.items()} == cut
    total = sum(cut.values())
    assert {kind: row["percentage"] for kind, row in told.items()} == {k: round(100 * v / total, 1) for k, v in cut.items()}


def _kernels(case: Case) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """Return our statistics in us by (rank, kind), under HTA's column names."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in case.rows("kernel_breakdown", how_many=None):
        kind = row["kernel_type"].upper().replace("COMPUTE", "COMPUTATION")
        one = {"name": row["name"], "count": row["instances"], "sum": row["total_ns"] / UNIT, "max": row["max_ns"] / UNIT,
               "min": row["min_ns"] / UNIT, "std": (row["stddev_ns"] or 0.0) / UNIT}
        gpu = case.traces[row["rank"]].gpu
        one |= hta.with_negative(one, gpu["dur"][gpu["name"].eq(row["name"])])
        found.setdefault((row["rank"], kind), []).append(one)
    return found


def _same(told: list[dict[str, Any]], ours: Mapping[tuple[Any, ...], Mapping[str, float]], *key: str) -> None:
    assert {tuple(row[k] for k in key) for row in told} == set(ours)
    for row in told:
        one = ours[tuple(row[k] for k in key)]
        for name in ("sum", "max", "min", "mean"):
            assert near(one[name], row[f"{name} (us)"]), (row, one)
        # HTA subtracts in doubles: the deviation of values that are equal to the last digit of a double is noise
        assert near(one["std"], row["stddev"]) or one["max"] - one["min"] < 1e-6, (row, one)


def test_kernel_breakdown(case: Case) -> None:
    ours = {(rank, kind, row["name"]): row for (rank, kind), rows in _kernels(case).items() for row in rows}
    told = case.told["gpu_kernel_breakdown"][1]
    kinds = {row["kernel_type"] for row in told}
    _same(told, {key: row for key, row in ours.items() if key[1] in kinds}, "rank", "kernel_type", "name")


def test_kernel_breakdown_with_others(case: Case) -> None:
    ours = {(rank, kind, name): row for (rank, kind), rows in _kernels(case).items()
            for name, row in hta.with_others(rows).items()}
    told = case.told["gpu_kernel_breakdown_default10"][1]
    kinds = {row["kernel_type"] for row in told}
    _same(told, {key: row for key, row in ours.items() if key[1] in kinds}, "rank", "kernel_type", "name")


def test_idle_breakdown(case: Case) -> None:
    """HTA's gaps are signed, against the row before; ours are idle time. They agree where no work overlaps in a stream."""
    for rank, trace in case.traces.items():
        told = case.told.get(f"idle_time_breakdown_rank{rank}")
        if told is None:
            assert f"idle_time_breakdown_rank{rank}" in case.errors and not len(trace.gpu)
            continue
        signed = hta.signed_gaps(trace)
        rows = case.rows("idle_breakdown", NOT_RECORDED, kernel_wait_below_ns=30 * UNIT)
        ours = {row["stream"]: row for row in rows if row["rank"] == rank}
        sums = {stream: sum(v for (s, _), v in signed.items() if s == stream) for stream in ours}
        for row in told[0]:
            category, stream = row["idle_category"], row["stream"]
            value = signed.get((stream, category), 0.0)
            assert abs(value - row["idle_time"]) <= 0.005 * (1 + 1e-9), (stream, category)
            assert row["idle_time_ratio"] == round(value / sums[stream], 2) if sums[stream] else row["idle_time_ratio"] is None
            if hta.is_plain(trace):
                assert near(ours[stream][f"{category}_ns"] / UNIT, value)


def test_queue_length(case: Case) -> None:
    """A launch and a start in the same us have no order: HTA's mean lies between both, and is ours where there is no tie."""
    if not case.told["queue_length_summary"]:
        assert not any(len(trace.gpu) for trace in case.traces.values())
        return
    queued = f"DELETE FROM api_calls WHERE name NOT IN {hta.QUEUED}"
    ours = {(row["rank"], row["stream"]): row for row in case.rows("queue_length", queued)}
    assert {(row["rank"], row["stream"]) for row in case.told["queue_length_summary"]} == set(ours)
    for told in case.told["queue_length_summary"]:
        row = ours[told["rank"], told["stream"]]
        least, most = hta.queue_bounds(case.traces[told["rank"]])[told["stream"]]
        assert row["points"] == told["queue_length_count"] and row["max_length"] == told["queue_length_max"]
        assert near(row["point_mean"], most)
        assert least * (1 - 1e-12) <= told["queue_length_mean"] <= most * (1 + 1e-12)
        if least == most:
            for theirs, name in STATISTICS.items():
                assert near(row[name], told[f"queue_length_{theirs}"]), (theirs, told)


def test_launch_statistics(case: Case) -> None:
    rank = min(case.traces)
    kernels_and_copies = f"DELETE FROM api_calls WHERE name NOT IN {hta.TIMED}"
    ours = {row["quantity"]: row for row in case.rows("launch_statistics", kernels_and_copies) if row["rank"] == rank}
    names = {"count": "launches", "mean": "avg_ns", "std": "stddev_ns", "min": "min_ns", "25%": "p25_ns", "50%": "median_ns",
             "75%": "p75_ns", "max": "max_ns"}
    trace = case.traces[rank]
    timed = trace.gpu[trace.gpu["correlation"].isin(trace.host[trace.host["name"].isin(hta.TIMED)]["correlation"])]
    for quantity in ("call_duration", "gpu_duration", "launch_delay"):
        theirs = quantity.replace("call", "cpu")
        told = {row["index"]: row[theirs] for row in case.told["cuda_kernel_launch_stats_rank0"]}
        if not told["count"]:
            assert quantity not in ours
            continue
        row = {index: ours[quantity][name] / (1 if index == "count" else UNIT) for index, name in names.items()}
        if quantity == "gpu_duration" and (timed["dur"] < 0).any():
            row |= hta.with_negative({"sum": row["mean"] * row["count"], **row}, timed["dur"])
        for index, value in told.items():
            assert near(row[index], value), (quantity, index, row[index], value)


def test_memory_bandwidth(case: Case) -> None:
    """HTA takes the bandwidths that Kineto printed; where starts and ends fall on one us, its points depend on its sort."""
    told = case.told["memory_bw_summary"]
    if not told:
        assert not any(trace.gpu["name"].map(hta.kernel_type).eq("memory").any() for trace in case.traces.values())
        return
    extremes = [{(rank, name): series.describe() for rank, trace in case.traces.items()
                 for name, series in hta.bandwidth_points(trace.gpu, starts_first).items()} for starts_first in (True, False)]
    lasting = f"UPDATE memory_ops SET duration_ns = {UNIT} WHERE duration_ns = 0"
    ours = {(row["rank"], row["direction"]): row for row in case.rows("memory_bandwidth", lasting)}
    ties = {(rank, name) for rank, trace in case.traces.items() for name in hta.has_ties(trace.gpu)}
    for row in told:
        key = row["rank"], row["name"]
        for theirs, name in (*STATISTICS.items(), ("max", "peak_bytes_per_s")):
            value, one, other = row[f"memory_bw_gbps_{theirs}"], extremes[0][key][theirs], extremes[1][key][theirs]
            if key not in ties:
                scale = 1 if theirs == "count" else UNIT / hta.BYTE / 1e9
                assert near(None if ours[key][name] is None else ours[key][name] * scale, value), (row, theirs)
            elif theirs in ("count", "max"):
                assert min(one, other) * (1 - 1e-9) <= value <= max(one, other) * (1 + 1e-9), (row, theirs, one, other)


def test_annotation_summary(case: Case) -> None:
    told = case.told["gpu_user_annotation_breakdown"]
    rows = case.rows("annotation_summary")
    ours = {(row["rank"], row["name"]): {
        "sum": row["total_ns"] / UNIT, "max": row["max_ns"] / UNIT, "min": row["min_ns"] / UNIT,
        "mean": row["total_ns"] / UNIT / row["instances"], "std": (row["stddev_ns"] or 0.0) / UNIT} for row in rows}
    _same(told or [], ours, "rank", "name")


UNITED = ("temporal_breakdown", "kernel_type_breakdown", "comm_compute_overlap", "exposed_communication", "idle_breakdown")
BOOKS: list[tuple[str, dict[str, object]]] = [
    ("idle_breakdown", {"per": "stream"}), ("kernel_breakdown", {"how_many": 3}), ("critical_path", {}),
    ("critical_path_summary", {})]
BOOKS += [(name, {"per": per}) for name in UNITED for per in ("device", "process")]


@pytest.mark.parametrize(("name", "parameters"), BOOKS)
def test_books_balance_on_every_trace(store: Store, name: str, parameters: dict[str, object]) -> None:
    """Kineto's and nsys's alike, to the ns."""
    assert store.views[name].balances
    with warnings.catch_warnings():
        warnings.simplefilter("error", BalanceWarning)
        table = store.view(name, **parameters)
    assert set(table["tool"].to_pylist()) == {"kineto", "nsys"}


def test_exact_unions_of_real_traces(store: Store) -> None:
    """The same figures computed from the files alone, in integer ns."""
    exact = json.loads((DATA / "oracle" / "exact_intervals_ns.json").read_text())
    exact = {name: truth | exact_intervals(DATA / "kineto" / name) for name, truth in exact.items() if truth["n_gpu_events"]}
    files = {row["profile_id"]: row["path"] for row in store.sql("SELECT profile_id, path FROM files").to_pylist()}
    temporal = store.view("temporal_breakdown", per="process", communication_pattern=hta.COMMUNICATION, only_tool="kineto")
    classes: dict[str, dict[str, int]] = {}
    types = store.view("kernel_type_breakdown", per="process", communication_pattern=hta.COMMUNICATION, only_tool="kineto")
    for row in types.to_pylist():
        classes.setdefault(row["profile_id"], {})[row["class"]] = row["total_ns"]
    compared = 0
    for row in temporal.to_pylist():
        truth = exact.get(str(Path(files[row["profile_id"]]).relative_to(DATA / "kineto")))
        if truth is None:
            continue
        compared += 1
        assert (row["span_ns"], row["idle_ns"], row["compute_ns"]) == (
            truth["span_ns"], truth["idle_ns"], truth["union_compute_kernel_ns"])
        parts = classes[row["profile_id"]]
        for kind, union in (("compute", "compute_kernel"), ("communication", "nccl"), ("memory", "memcpy_memset")):
            assert sum(ns for name, ns in parts.items() if kind in name.split("+")) == truth[f"union_{union}_ns"]
        both = parts["compute+communication"] + parts["compute+communication+memory"]
        assert both == truth["overlap_nccl_compute_ns"]
    assert compared >= 20
