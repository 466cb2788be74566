"""Sections of `nsightlens summary` about the host: copies, calls of the API and of MPI, NVTX ranges; none without data."""

from __future__ import annotations

from collections.abc import Sequence

from nsightlens.pages import page
from nsightlens.pages.asked import TIMELINE, Page, Row, best
from nsightlens.pages.page import grid, heading
from nsightlens.pages.tables import Column
from nsightlens.views.figures import MISSING, duration, number, rate, share, size

_FEW = 6


def copies(asked: Page) -> None:
    """Print copies, sets and migrations by direction and kind of memory."""
    tool, rows = best(asked.ask("memory_op_summary"), TIMELINE)
    if not rows:
        return
    shown = _longest(rows)
    heading("Copies", asked.note("memory_op_summary", tool, "summed over streams and processes"))
    grid([
        Column("operation", [_operation(row) for row in shown], 9, text=True),
        Column("from", [row["source_memory"] or MISSING for row in shown], 5, text=True),
        Column("to", [row["destination_memory"] or MISSING for row in shown], 5, text=True),
        Column("count", [number(row["operations"]) for row in shown], 6),
        Column("total", [duration(row["total_ns"]) for row in shown], 9),
        Column("share", [share(row["time_pct"]) for row in shown], 6),
        Column("bytes", [size(row["total_bytes"]) for row in shown], 7),
        Column("rate", [rate(row["bytes_per_s"], "B") for row in shown], 7),
    ])
    page.more(len(rows) - len(shown), "memory_op_summary")


def _operation(row: Row) -> str:
    """Return what was done: a copy by its direction, of managed memory as a migration."""
    if row["direction"] is None:
        return str(row["kind"])
    return str(row["direction"]) if row["kind"] == "memcpy" else f"{row['direction']} {row['kind']}"


def api_calls(asked: Page) -> None:
    """Print the functions of the CUDA or HIP API whose calls took the most time."""
    tool, rows = best(asked.ask("cuda_api_summary"), TIMELINE)
    if rows:
        heading("API calls", asked.note("cuda_api_summary", tool, "summed over threads: GPU work may run meanwhile"))
        _calls(rows, "calls", "cuda_api_summary")


def mpi(asked: Page) -> None:
    """Print the functions of MPI whose calls took the most time."""
    rows = asked.ask("mpi_call_summary")
    if rows:
        heading("MPI", asked.note("mpi_call_summary", rows[0]["tool"], "summed over processes, waiting included"))
        _calls(rows, "instances", "mpi_call_summary")


def nvtx(asked: Page) -> None:
    """Print the NVTX ranges that took the most time on the host."""
    tool, rows = best((row for row in asked.ask("nvtx_summary") if row["kind"].startswith("nvtx_")), TIMELINE)
    if rows:
        about = "time on the host; shares of the sum of all ranges, though a range holds those within it"
        heading("NVTX ranges", asked.note("nvtx_summary", tool, about))
        _calls(rows, "instances", "nvtx_summary")


def _calls(rows: Sequence[Row], count: str, view: str) -> None:
    shown = _longest(rows)
    grid([
        Column("name", [row["name"] or MISSING for row in shown], 9, text=True, flexible=True),
        Column("count", [number(row[count]) for row in shown], 6),
        Column("total", [duration(row["total_ns"]) for row in shown], 9),
        Column("share", [share(row["time_pct"]) for row in shown], 7),
        Column("median", [duration(row["median_ns"]) for row in shown], 5),
        Column("longest", [duration(row["max_ns"]) for row in shown], 5),
    ])
    page.more(len(rows) - len(shown), view)


def _longest(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -(row["total_ns"] or 0))[:_FEW]
