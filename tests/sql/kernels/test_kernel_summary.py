"""kernel_summary against pandas on random durations, and against what nsys stats itself printed."""

from __future__ import annotations

import csv
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from tests.catalogs import catalog
from tests.places import ROOT

DATA = ROOT / "../shared/data/nsys"
PRINTED = sorted(DATA.glob("*_cuda_gpu_kern_sum.csv"))


def summary(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any]]:
    result = connection.execute("SELECT * FROM kernel_summary")
    columns = [column[0] for column in result.description or []]
    return {row[-1]: dict(zip(columns, row, strict=True)) for row in result.fetchall()}


def test_agrees_with_pandas() -> None:
    chance = random.Random(7)
    spread = (5, 300, 10**9)
    kernels = [{"run": "r", "tool": "nsys", "name": f"k{i % 37}", "duration_ns": 1 + chance.randrange(spread[i % 3])}
               for i in range(5000)]
    kernels += [{"run": "r", "tool": "nsys", "name": "once", "duration_ns": 12345}]
    got = pd.DataFrame(summary(catalog(kernels=kernels)).values()).set_index("name")
    times = pd.DataFrame(kernels).groupby("name")["duration_ns"]
    expected = pd.DataFrame({
        "total_ns": times.sum(), "instances": times.count(), "min_ns": times.min(), "max_ns": times.max(),
        "time_pct": 100 * times.sum() / times.sum().sum(), "avg_ns": times.mean(), "median_ns": times.median(),
        "stddev_ns": times.std(ddof=1).fillna(0.0), "p5_ns": times.quantile(0.05), "p95_ns": times.quantile(0.95),
    })
    assert list(got.index) == list(expected.sort_values("total_ns", ascending=False).index)
    expected = expected.loc[got.index]
    for column in ("total_ns", "instances", "min_ns", "max_ns", "median_ns"):
        assert (got[column] == expected[column]).all(), column
    for column in ("time_pct", "avg_ns", "stddev_ns", "p5_ns", "p95_ns"):
        assert (got[column] - expected[column]).abs().max() <= 0.0501, column


def _durations(row: dict[str, str]) -> list[int] | None:
    """Return the durations behind a printed row, where its figures leave no choice: up to three launches."""
    total, least, most = (int(row[f"{what} (ns)"]) for what in ("Total Time", "Min", "Max"))
    match int(row["Instances"]):
        case 1:
            return [total]
        case 2:
            return [least, most]
        case 3:
            return [least, total - least - most, most]
    return None


@pytest.mark.skipif(not PRINTED, reason="no captures here")
@pytest.mark.parametrize("path", PRINTED, ids=[path.stem for path in PRINTED])
def test_agrees_with_what_nsys_printed(path: Path) -> None:
    """Shares of every row; all other figures of the rows whose single durations follow from what was printed."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = {row["Name"]: found for row in rows if (found := _durations(row))}
    share = summary(catalog(kernels=[_kernel(row["Name"], int(row["Total Time (ns)"])) for row in rows]))
    exact = summary(catalog(kernels=[_kernel(name, ns) for name, found in known.items() for ns in found]))
    assert len(share) == len(rows)
    for row in rows:
        assert share[row["Name"]]["time_pct"] == float(row["Time (%)"])
        if row["Name"] not in known:
            continue
        got = exact[row["Name"]]
        whole = [got[column] for column in ("total_ns", "instances", "min_ns", "max_ns")]
        assert whole == [int(row[head]) for head in ("Total Time (ns)", "Instances", "Min (ns)", "Max (ns)")]
        for column, head in (("avg_ns", "Avg (ns)"), ("median_ns", "Med (ns)"), ("stddev_ns", "StdDev (ns)")):
            assert Decimal(str(got[column])) == Decimal(row[head]), (row["Name"], column)


def _kernel(name: str, duration_ns: int) -> dict[str, Any]:
    return {"run": "r", "tool": "nsys", "name": name, "duration_ns": duration_ns}
