"""The programs that nsightlens is compared with, each a whole process: `python -P benchmarks/peers.py NAME PATH`.

Every program prints one JSON object: `rows` of what it made, and `seconds` of the step that counts where that is not all of it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Found = dict[str, Any]


def hta_load(run_dir: str) -> Found:
    """Load the trace of a directory with HolisticTraceAnalysis's default backend, and nothing more."""
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=run_dir)
    return {"rows": sum(len(frame) for frame in analysis.t.traces.values())}


def json_load(file: str) -> Found:
    """Parse the trace with the standard library, which gives objects and no table."""
    with Path(file).open(encoding="utf-8") as source:
        return {"rows": len(json.load(source)["traceEvents"])}


def pandas_join(file: str) -> Found:
    """Read kernels, launching calls and names into pandas, and give each kernel its call and its name."""
    import sqlite3

    import pandas as pd

    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        kernels = pd.read_sql("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL", connection)
        calls = pd.read_sql("SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME", connection)
        strings = pd.read_sql("SELECT id, value FROM StringIds", connection)
    calls["globalPid"] = calls["globalTid"] & ~0xFFFFFF
    joined = kernels.merge(calls, how="left", on=["correlationId", "globalPid"], suffixes=("", "_call"))
    joined = joined.merge(strings.rename(columns={"id": "demangledName", "value": "name"}), how="left", on="demangledName")
    joined["duration_ns"] = joined["end"] - joined["start"]
    joined["queue_delay_ns"] = joined["start"] - joined["end_call"]
    return {"rows": len(joined), "kernel_ns": int(joined["duration_ns"].sum())}


def pandas_group_by(file: str) -> Found:
    """Let SQLite sum up the kernels by name, one statement, and hand the result to pandas."""
    import sqlite3

    import pandas as pd

    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        summary = pd.read_sql(
            'SELECT value AS name, count(*) AS instances, sum("end" - start) AS total_ns, avg("end" - start) AS avg_ns, '
            'min("end" - start) AS min_ns, max("end" - start) AS max_ns FROM CUPTI_ACTIVITY_KIND_KERNEL '
            "JOIN StringIds ON id = demangledName GROUP BY value ORDER BY total_ns DESC", connection)
    return {"rows": int(summary["instances"].sum()), "kernel_ns": int(summary["total_ns"].sum())}


def pandas_csv(file: str) -> Found:
    """Read an ncu CSV with pandas as it stands."""
    import pandas as pd

    return {"rows": len(pd.read_csv(file))}


def pandas_summary(file: str) -> Found:
    """Compute the statistics of kernel_summary on a DataFrame; only that is in `seconds`."""
    import numpy as np
    import pandas as pd

    frame = pd.read_parquet(file)
    began = time.perf_counter()
    grouped = frame.groupby(["run", "tool", "name"], observed=True)["duration_ns"]
    summary = grouped.agg(["sum", "count", "mean", "median", "min", "max", "std"])
    quantiles = grouped.quantile(np.array([0.05, 0.95])).unstack()
    summary = summary.join(quantiles).sort_values("sum", ascending=False)
    seconds = time.perf_counter() - began
    return {"rows": len(summary), "kernel_ns": int(summary["sum"].sum()), "seconds": seconds}


def store_summary(store: str) -> Found:
    """Ask a store for kernel_summary; opening it is not in `seconds`."""
    import nsightlens as nl

    with nl.open(store) as opened:
        began = time.perf_counter()
        summary = opened.view("kernel_summary")
        seconds = time.perf_counter() - began
    total = sum(summary.column("total_ns").to_pylist())
    return {"rows": summary.num_rows, "kernel_ns": total, "seconds": seconds}


PROGRAMS: dict[str, Callable[[str], Found]] = {
    "hta-load": hta_load,
    "json-load": json_load,
    "pandas-join": pandas_join,
    "pandas-group-by": pandas_group_by,
    "pandas-csv": pandas_csv,
    "pandas-summary": pandas_summary,
    "store-summary": store_summary,
}


def command(program: str, path: Path) -> list[str]:
    """Return the command line that runs a program on a file or folder."""
    assert program in PROGRAMS
    return [sys.executable, "-P", str(Path(__file__).resolve()), program, str(path)]


def found(output: str) -> Found:
    """Return what a program printed: its last line, since libraries may print before it."""
    result = json.loads(output.strip().splitlines()[-1])
    assert isinstance(result, dict)
    return result


if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]](sys.argv[2])))
