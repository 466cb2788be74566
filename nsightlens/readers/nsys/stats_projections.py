"""The rows of `nsys stats --report nvtx_gpu_proj_trace`: NVTX ranges that launched GPU work, and when the GPU did that work.

The times of the host become `ranges`, those of the GPU `range_projections`: the work itself is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from nsightlens import schema
from nsightlens.readers.batches import Batch, batch_of, conform, diagnostic
from nsightlens.readers.nsys import framework
from nsightlens.readers.nsys.columns import MAX_DURATION_NS, MAX_TIME_NS
from nsightlens.readers.nsys.stats_cells import PROJECTIONS
from nsightlens.readers.nsys.stats_table import NOTHING, StatsTable

REPORT = PROJECTIONS
LACKS = ("it has the ranges that launched GPU work, when they were open on the host and when the GPU did that work, and nothing "
         "else: no launches, no API calls, no ranges without GPU work")
_BATCH = 1 << 15
_STYLES = {"PushPop": "nvtx_push_pop", "StartEnd": "nvtx_start_end"}
_NCCL = re.compile(r"NCCL:(nccl[A-Z].*)", re.DOTALL)
_UNNAMED_DOMAIN = ":"
"""What newer versions print before a range of the default domain; older ones print nothing there."""


def batches(table: StatsTable) -> Iterator[Batch]:
    """Yield the processes, ranges and range_projections."""
    domains_told = _tells_domains([name for name, start in zip(table.sampled("Name"), table.sampled("Orig Start"), strict=True)
                                   if start not in NOTHING])
    processes: dict[int | None, int] = {}
    done = 0
    rows = table.rows()
    while some := list(islice(rows, _BATCH)):
        found = [row for text in some if (row := _row(text, table)) is not None]
        for pid in dict.fromkeys(row["pid"] for row in found):
            if pid not in processes:
                processes[pid] = len(processes)
                yield "processes", batch_of("processes", [{"process_index": processes[pid], "pid": pid}])
        ranges = [row for row in found if row["name"] is not None]
        yield "ranges", _ranges(ranges, processes, table, domains_told=domains_told)
        numbers = iter(range(done, done + len(ranges)))
        yield "range_projections", batch_of("range_projections", [
            {"process_index": processes[row["pid"]], "range_row": None if row["name"] is None else next(numbers),
             "thread": row["thread"], "start_ns": row["projected"], "duration_ns": row["projected_ns"],
             "launches": row["launches"]} for row in found])
        done += len(ranges)
    yield from _notes(table)


def _tells_domains(names: Sequence[str]) -> bool:
    """Return whether all names of ranges are domain:name, that of the default domain being empty."""
    return all(":" in name for name in names) and any(name.startswith(_UNNAMED_DOMAIN) for name in names)


def _row(text: dict[str, str], table: StatsTable) -> dict[str, Any] | None:
    """Return the values of a row, with name None where it is work outside of all ranges; None for a row without a time."""
    is_range = bool(text["Orig Start"] or text["Style"])
    projected = table.time(text, "Projected Start", -MAX_TIME_NS, MAX_TIME_NS)
    start = table.time(text, "Orig Start", -MAX_TIME_NS, MAX_TIME_NS) if is_range else None
    if projected is None or (is_range and start is None):
        table.tally["rows_damaged"] += 1
        return None
    table.tally["rows"] += 1
    table.tally["outside_of_ranges"] += not is_range
    return {
        "pid": table.integer(text, "PID"), "thread": table.integer(text, "TID"), "name": text["Name"] if is_range else None,
        "start": start, "duration": table.time(text, "Orig Duration", 0, MAX_DURATION_NS) if is_range else None,
        "projected": projected, "projected_ns": table.time(text, "Projected Duration", 0, MAX_DURATION_NS),
        "launches": table.integer(text, "NumGPUOps"), "kind": _STYLES.get(text["Style"]),
    }


def _ranges(
    rows: Sequence[dict[str, Any]], processes: dict[int | None, int], table: StatsTable, *, domains_told: bool,
) -> pa.RecordBatch:
    """Return rows of `ranges`."""
    named = [_named(row["name"], table, domains_told=domains_told) for row in rows]
    domain = pa.array([domain for domain, _ in named], pa.string()).dictionary_encode()
    kind = pa.array([row["kind"] for row in rows], pa.string()).dictionary_encode()
    columns = {
        "process_index": pa.array([processes[row["pid"]] for row in rows], pa.int32()),
        "thread": pa.array([row["thread"] for row in rows], pa.int64()),
        "start_ns": pa.array([row["start"] for row in rows], pa.int64()),
        "duration_ns": pa.array([row["duration"] for row in rows], pa.int64()),
        **framework.recognised(kind, pa.array([name for _, name in named], pa.string()), domain), "domain": domain,
    }
    return conform(pa.RecordBatch.from_pydict(columns), schema.TABLES["ranges"].reader_schema, "ranges")


def _named(printed: str, table: StatsTable, *, domains_told: bool) -> tuple[str | None, str]:
    """Return (domain, name) of what is printed as domain:name. domains_told: the default domain is printed, too, as nothing."""
    domain, colon, name = printed.partition(":")
    if not colon:
        return None, printed
    if domains_told or not domain:
        return domain or None, name
    nccl = _NCCL.fullmatch(printed)
    if nccl:
        return "NCCL", nccl[1]
    table.tally["domain_unknown"] += 1
    return None, printed


def _notes(table: StatsTable) -> Iterator[Batch]:
    """Yield what is to be said of ranges, beyond what holds for every table."""
    for code, message in (
            ("domain_unknown", "names with a colon, before which this version of nsys may have put a domain: "
             "they are kept as printed, without a domain"),
            ("outside_of_ranges", "rows of GPU work outside all ranges: they are in range_projections without a range")):
        if table.tally[code]:
            yield diagnostic("info", code, message, table.tally[code])
