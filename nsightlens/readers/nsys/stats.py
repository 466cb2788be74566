"""What `nsys stats --format csv` printed: cuda_gpu_trace (every launch, copy and set) or nvtx_gpu_proj_trace (ranges and when the
GPU did what they launched), and nothing else of the report."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch, batch_of, diagnostic
from nsightlens.readers.nsys import stats_launches, stats_projections
from nsightlens.readers.nsys.identity import PRINTED, first_kernel
from nsightlens.readers.nsys.stats_cells import LAUNCHES, header
from nsightlens.readers.nsys.stats_table import SAMPLE, StatsTable, encoding, what_to_do
from nsightlens.readers.reader import Probe, ProcessHint

_HEADER_WITHIN = 200
_TOLD_BY = (b"CorrId", b"Projected Start")
_READ = {each.REPORT: each for each in (stats_launches, stats_projections)}


def is_stats(head: bytes) -> bool:
    """Return whether the head of a file is that of such a table."""
    plain = head.replace(b"\0", b"")
    if not any(column in plain for column in _TOLD_BY):
        return False
    return any(header(line) for line in head.decode(encoding(head), "replace").splitlines()[:_HEADER_WITHIN])


def probe(path: Path) -> Probe:
    """Return what the table is, and the name of its first kernel, which the report's export has, too. Raises ReadError."""
    table = StatsTable(path)
    kind = PRINTED[table.report.name]
    if table.report != LAUNCHES:
        pids = dict.fromkeys(table.integer(row, "PID") for row in islice(table.rows(), SAMPLE))
        return Probe(kind, processes=tuple(ProcessHint(pid=pid) for pid in pids))
    kernels = (row for name, row in islice(stats_launches.rows(table), SAMPLE) if name == "kernels")
    first = next(kernels, None)
    exact = first is not None and table.steps["times"] <= 1
    names = {first_kernel(first["start_ns"], first["correlation_id"])} if first and exact else set()
    return Probe(kind, processes=(ProcessHint(),), identity=frozenset(names))


def read(path: Path) -> Iterator[Batch]:
    """Yield the tables of the file. Raises ReadError where it holds no launch, or no range."""
    table = StatsTable(path)
    reader = _READ[table.report]
    yield from reader.batches(table)
    if not table.tally["rows"]:
        raise ReadError(path, f"a table of nsys stats ({table.report.name}) without a row", what_to_do(table.report.name),
                        "no_launches")
    yield "profiles", batch_of("profiles", [{
        "format": PRINTED[table.report.name], "vendor": "cuda", "events": table.tally["rows"],
        "events_lost": table.tally["rows_damaged"], "truncated": table.is_cut, "link_method": "none"}])
    yield diagnostic("warning", "reduced_input", f"nsys stats {table.report.name}: {reader.LACKS}. To have these: nsys export "
                     "--type sqlite REPORT.nsys-rep")
    yield from table.diagnostics()
