"""Reports of ncu, written for tests, and CSV pages printed from what the reader makes of a report."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.places import ROOT
from tests.readers.ncu_text import ids, raw

sys.path.insert(0, str(ROOT / "fixtures"))
writer = importlib.import_module("simulated.ncu_rep")

FIXTURE = ROOT / "fixtures" / "simulated_ncu_report" / "rank0.ncu-rep"
METRICS: dict[str, Any] = {
    "gpu__time_duration.sum": 1234.0, "dram__bytes.sum": 4096.25, "launch__grid_size": 8, "launch__block_size": 64,
    "launch__thread_count": 512, "launch__device_id": 3, "launch__func_cache_config": "CachePreferNone", "a__absent.sum": None,
}


def launch(name: str = "void ns::k<(int)4>(int)", **fields: Any) -> Any:
    """Return a launch of 8 blocks of 64 threads."""
    given = {"grid": (4, 2, 1), "block": (64, 1, 1), "metrics": METRICS, "mangled": "_ZN2ns1kILi4EEEvi", "function": "k"} | fields
    return writer.Reported(name, **given)


def save(folder: Path, launches: Sequence[Any], name: str = "a.ncu-rep", **options: Any) -> Path:
    """Write a report of launches; options as in `writer.report`."""
    path = folder / name
    path.write_bytes(writer.report(launches, **options))
    return path


def printed(kernels: Sequence[dict[str, Any]], pid: int, form: Callable[[float], str] = "{:.2f}".format) -> list[str]:
    """Return the raw page that prints the counters of kernels, without a unit, in the C locale."""
    names = sorted({name for kernel in kernels for name in kernel["metrics"]})
    columns = [(name, "ns" if "__time_duration." in name else "") for name in names]
    rows = [[form(kernel["metrics"][name]) if name in kernel["metrics"] else "" for name in names] for kernel in kernels]
    of = [ids(kernel["ncu_id"], kernel["name"], pid, _axes(kernel, "grid"), _axes(kernel, "block")) for kernel in kernels]
    return raw(columns, *rows, launches=of)


def _axes(kernel: dict[str, Any], what: str) -> str:
    return f"({kernel[f'{what}_x']}, {kernel[f'{what}_y']}, {kernel[f'{what}_z']})"
