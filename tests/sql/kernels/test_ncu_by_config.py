"""Counters of one kernel from several passes and reports become one row; averages of --print-summary say what they are."""

from __future__ import annotations

from typing import Any

from tests.catalogs import catalog

CONFIGURATION = {"run": "base", "tool": "ncu", "rank": 0, "device": 0, "name": "k", "kernel_key": "k", "grid_x": 4, "grid_y": 1,
                 "grid_z": 1, "block_x": 32, "block_y": 1, "block_z": 1}


def _launch(number: int, duration_ns: int | None, metrics: dict[str, float | None], **more: Any) -> dict[str, Any]:
    return CONFIGURATION | {"kernel_id": number, "profile_id": f"p{number}", "process_id": f"q{number}",
                            "duration_ns": duration_ns, "metrics": list(metrics.items())} | more


def _summary(metric: str, least: float, greatest: float, average: float, profile: str = "s") -> dict[str, Any]:
    return CONFIGURATION | {"profile_id": profile, "process_id": profile, "invocations": 100, "metric": metric,
                            "minimum": least, "maximum": greatest, "average": average}


def _rows(**tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    connection = catalog(**tables)
    rows: list[dict[str, Any]] = connection.sql("SELECT * FROM ncu_by_config").to_arrow_table().to_pylist()
    return rows


def test_median_and_spread_over_reports() -> None:
    (row,) = _rows(kernels=[_launch(1, 100, {"a": 1.0, "b": 7.0}), _launch(2, 300, {"a": 5.0}),
                            _launch(3, 110, {"a": 2.0, "b": float("nan"), "c": None, "d": float("inf")})])
    assert (row["launches"], row["duration_ns"], row["min_duration_ns"], row["max_duration_ns"]) == (3, 110, 100, 300)
    assert dict(row["metrics"]) == {"a": 2.0, "b": 7.0}
    assert dict(row["metrics_min"]) == {"a": 1.0, "b": 7.0}
    assert dict(row["metrics_max"]) == {"a": 5.0, "b": 7.0}
    assert row["duration_definition"] == "gpu__time_duration.sum" and not row["summarised"]


def test_what_differs_stays_apart() -> None:
    others: list[dict[str, Any]] = [
        {"rank": 1}, {"rank": None}, {"run": "x"}, {"kernel_key": "other"}, {"grid_z": 2}, {"block_y": 2},
        {"clock_control": "none"}, {"cache_control": "none"}, {"gpu": "A"}]
    rows = _rows(kernels=[_launch(i, 10, {"a": 1.0}, **other) for i, other in enumerate([{}, {}, *others])])
    assert sorted(row["launches"] for row in rows) == [1] * len(others) + [2]
    assert len({row["configuration_id"] for row in rows}) == len(rows)


def test_launches_without_counters_keep_their_row() -> None:
    (row,) = _rows(kernels=[_launch(1, 100, {}) | {"metrics": None}])
    assert (row["launches"], row["duration_ns"], row["metrics"]) == (1, 100, None)


def test_devices_tell_the_gpu_and_other_devices_do_not() -> None:
    devices = [{"run": "base", "tool": "ncu", "profile_id": "p1", "process_id": "q1", "device": 0, "name": "A100",
                "compute_capability": "8.0", "sm_count": 108},
               {"run": "base", "tool": "ncu", "profile_id": "p1", "process_id": "q1", "device": 1, "name": "H100",
                "compute_capability": "9.0", "sm_count": 132}]
    (row,) = _rows(kernels=[_launch(1, 100, {"a": 1.0})], devices=devices)
    assert (row["gpu"], row["compute_capability"], row["sm_count"]) == ("A100", "8.0", 108)


def test_averages_of_print_summary_are_flagged_and_joined() -> None:
    (row,) = _rows(metric_summaries=[_summary("dram__bytes.sum", 10.0, 30.0, 20.0),
                                     _summary("gpu__time_active.avg", 76064.0, 78240.0, 76952.96, profile="other report")])
    assert row["summarised"] and row["launches"] == 200
    assert (row["duration_ns"], row["min_duration_ns"], row["max_duration_ns"]) == (76953, 76064, 78240)
    assert row["duration_definition"] == "gpu__time_active.avg"
    assert dict(row["metrics"]) == {"dram__bytes.sum": 20.0, "gpu__time_active.avg": 76952.96}
    assert dict(row["metrics_max"])["dram__bytes.sum"] == 30.0


def test_averages_and_launches_are_not_mixed() -> None:
    rows = _rows(kernels=[_launch(1, 100, {"a": 1.0})], metric_summaries=[_summary("a", 1.0, 1.0, 1.0)])
    assert sorted(row["summarised"] for row in rows) == [False, True]


def test_duration_from_cycles_where_no_time_was_counted() -> None:
    (row,) = _rows(kernels=[_launch(1, None, {"sm__cycles_elapsed.avg": 1500.0, "sm__cycles_elapsed.avg.per_second": 1e9})])
    assert row["duration_ns"] == 1500 and row["duration_definition"].startswith("sm__cycles_elapsed.avg /")


def test_other_tools_are_not_counted() -> None:
    assert _rows(kernels=[_launch(1, 100, {"a": 1.0}) | {"tool": "kineto"}]) == []
