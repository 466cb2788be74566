"""Text as ncu prints it, written for tests, and what our reader makes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nsightlens.readers import ncu
from nsightlens.schema import TABLES

IDS = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
OLD_IDS = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream")
METRIC = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
METRIC_ALL = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
RULE = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
SUMMARY = ("Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC", "Invocations")
SOL = "GPU Speed Of Light Throughput"
COMMAND = "Command line profiler metrics"
DURATION = ("gpu__time_duration.sum", "ns", "1000")

Tables = dict[str, list[dict[str, Any]]]


def line(cells: Iterable[str]) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def ids(
    ncu_id: int = 0, name: str = "k(int)", pid: int = 7, grid: str = "(4, 1, 1)", block: str = "(32, 2, 1)", cc: str = "9.0"
) -> tuple[str, ...]:
    return (str(ncu_id), str(pid), "app", "127.0.0.1", name, "1", "7", block, grid, "0", cc)


def metrics(*rows: tuple[str, str, str], of: Sequence[str] | None = None, header: bool = True) -> list[str]:
    """Shape A: rows of (raw name, unit, value)."""
    head = [line((*IDS, *METRIC))] if header else []
    return head + [line((*(of or ids()), COMMAND, *row)) for row in rows]


def details(*rows: tuple[str, str, str, str], of: Sequence[str] | None = None, header: bool = True) -> list[str]:
    """Shape B: metric rows of (section, label, unit, value), ragged as ncu prints them."""
    head = [line((*IDS, *METRIC, *RULE))] if header else []
    return head + [line((*(of or ids()), *row)) + "," for row in rows]


def details_all(*rows: tuple[str, str, str, str, str], of: Sequence[str] | None = None) -> list[str]:
    """Shape C: metric rows of (section, body item, label, unit, value)."""
    return [line((*IDS, *METRIC_ALL, *RULE))] + [line((*(of or ids()), *row)) + "," for row in rows]


def rule(
    section: str, name: str, kind: str, text: str, speedup: tuple[str, str] = ("", ""), of: Sequence[str] | None = None
) -> str:
    return line((*(of or ids()), section, "", "", "", name, kind, text, *speedup))


def raw(columns: Sequence[tuple[str, str]], *rows: Sequence[str], launches: Sequence[Sequence[str]] | None = None) -> list[str]:
    """Shape D: columns of (raw name, unit), a row of values per launch."""
    head = [line((*IDS, *(name for name, _ in columns))), line(("",) * len(IDS) + tuple(unit for _, unit in columns))]
    return head + [line((*(launches[i] if launches else ids(i)), *row)) for i, row in enumerate(rows)]


def save(folder: Path, text: str | bytes | Sequence[str], name: str = "report.csv") -> Path:
    path = folder / name
    if not isinstance(text, str | bytes):
        text = "\n".join(text) + "\n"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(*paths: Path, **options: Any) -> Tables:
    """Every table as rows; kernels have their metrics as a dict, and the contract of `read` is checked."""
    found: Tables = defaultdict(list)
    for table, batch in ncu.read(list(paths), **options):
        assert batch.schema == TABLES[table].reader_schema
        batch.validate(full=True)
        found[table] += batch.to_pylist()
    assert len(found["profiles"]) == 1
    for kernel in found["kernels"]:
        assert len(dict(kernel["metrics"])) == len(kernel["metrics"])
        kernel["metrics"] = dict(kernel["metrics"])
    for table in ("kernels", "devices", "metric_summaries"):
        assert all(0 <= row["process_index"] < len(found["processes"]) for row in found[table])
    for table in ("metric_texts", "unmapped_metrics", "advice"):
        assert all(0 <= row["kernel_row"] < len(found["kernels"]) for row in found[table])
    return found


def codes(tables: Tables) -> dict[str, int]:
    """Diagnostic code -> count."""
    assert len({row["code"] for row in tables["diagnostics"]}) == len(tables["diagnostics"])
    return {row["code"]: row["count"] for row in tables["diagnostics"]}


def told(tables: Tables, code: str) -> str:
    """The message of a diagnostic."""
    return str(next(row["message"] for row in tables["diagnostics"] if row["code"] == code))
