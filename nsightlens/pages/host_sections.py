"""Sections of `nsightlens summary` about the host: copies, calls of the API and of MPI, NVTX ranges; none without data."""

from __future__ import annotations

from collections.abc import Sequence

from nsightlens.pages.query import TIMELINE, Page, Row, best
from nsightlens.pages.section import Section, more
from nsightlens.pages.tables import Column
from nsightlens.views.figures import MISSING, duration, number, rate, share, size

_FEW = 6


def copies(asked: Page) -> list[Section]:
    """Return copies, sets and migrations by direction and kind of memory."""
    tool, rows = best(asked.ask("memory_op_summary"), TIMELINE)
    if not rows:
        return []
    shown = _longest(rows)
    columns = (
        Column("operation", [_operation(row) for row in shown], 9, text=True),
        Column("from", [row["source_memory"] or MISSING for row in shown], 5, text=True),
        Column("to", [row["destination_memory"] or MISSING for row in shown], 5, text=True),
        Column("count", [number(row["operations"]) for row in shown], 6),
        Column("total", [duration(row["total_ns"]) for row in shown], 9),
        Column("share", [share(row["time_pct"]) for row in shown], 6),
        Column("bytes", [size(row["total_bytes"]) for row in shown], 7),
        Column("rate", [rate(row["bytes_per_s"], "B") for row in shown], 7),
    )
    return [Section("Copies", asked.note("memory_op_summary", tool, "summed over streams and processes"), columns,
                    more(len(rows) - len(shown), "memory_op_summary"))]


def _operation(row: Row) -> str:
    """Return what was done: a copy by its direction, of managed memory as a migration."""
    if row["direction"] is None:
        return str(row["kind"])
    return str(row["direction"]) if row["kind"] == "memcpy" else f"{row['direction']} {row['kind']}"


def api_calls(asked: Page) -> list[Section]:
    """Return the functions of the CUDA or HIP API whose calls took the most time."""
    tool, rows = best(asked.ask("cuda_api_summary"), TIMELINE)
    note = asked.note("cuda_api_summary", tool, "CPU time, summed over threads")
    return _calls("API calls", note, rows, "calls", "cuda_api_summary")


def mpi(asked: Page) -> list[Section]:
    """Return the functions of MPI whose calls took the most time."""
    rows = asked.ask("mpi_call_summary")
    note = asked.note("mpi_call_summary", *(row["tool"] for row in rows[:1]), "summed over processes, waiting included")
    return _calls("MPI", note, rows, "instances", "mpi_call_summary")


def nvtx(asked: Page) -> list[Section]:
    """Return the NVTX ranges that took the most time on the host."""
    tool, rows = best((row for row in asked.ask("nvtx_summary") if row["kind"].startswith("nvtx_")), TIMELINE)
    about = "time on the host; shares of the sum of all ranges, though a range holds those within it"
    return _calls("NVTX ranges", asked.note("nvtx_summary", tool, about), rows, "instances", "nvtx_summary")


def _calls(title: str, note: str, rows: Sequence[Row], count: str, view: str) -> list[Section]:
    """Return the functions or ranges whose calls took the most time; no section without any."""
    if not rows:
        return []
    shown = _longest(rows)
    columns = (
        Column("name", [row["name"] or MISSING for row in shown], 9, text=True, flexible=True),
        Column("count", [number(row[count]) for row in shown], 6),
        Column("total", [duration(row["total_ns"]) for row in shown], 9),
        Column("share", [share(row["time_pct"]) for row in shown], 7),
        Column("median", [duration(row["median_ns"]) for row in shown], 5),
        Column("longest", [duration(row["max_ns"]) for row in shown], 5),
    )
    return [Section(title, note, columns, more(len(rows) - len(shown), view))]


def _longest(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -(row["total_ns"] or 0))[:_FEW]
