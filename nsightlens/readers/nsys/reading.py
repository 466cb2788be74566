"""One pass over a report: its tables in order, then what is to be said about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial

import pyarrow as pa

from nsightlens.errors import ReadError
from nsightlens.readers.batches import Batch, batch_of
from nsightlens.readers.nsys import directives, gpu, host, memory_usage, mpi
from nsightlens.readers.nsys import ranges as nvtx
from nsightlens.readers.nsys import unified_memory as um
from nsightlens.readers.nsys.columns import Names, raw
from nsightlens.readers.nsys.cpu_samples import cpu_samples
from nsightlens.readers.nsys.devices import Devices
from nsightlens.readers.nsys.findings import Seen, findings
from nsightlens.readers.nsys.metrics import COLUMNS as METRIC_COLUMNS
from nsightlens.readers.nsys.metrics import Metrics
from nsightlens.readers.nsys.payloads import Payloads
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.ranks import gather
from nsightlens.readers.nsys.report import describe
from nsightlens.readers.nsys.scheduling import thread_states
from nsightlens.readers.nsys.source import (
    CPU_PAGE_FAULTS,
    CUDA_EVENT,
    CUDA_OVERHEAD,
    DECOMPRESSION,
    GPU_METRICS,
    GPU_PAGE_FAULTS,
    GRAPH_TRACE,
    HOST_FUNCTION,
    KERNEL,
    MEMCPY,
    MEMORY_USAGE,
    MEMSET,
    NVTX,
    OS_API,
    PROFILER_OVERHEAD,
    RUNTIME,
    SYNCHRONIZATION,
    Kind,
    Source,
)

Convert = Callable[[pa.RecordBatch], pa.RecordBatch]


class ReportReading:
    """The reading of one report: what was met so far."""

    def __init__(self, source: Source, jobs: int) -> None:
        self.source = source
        self.report = describe(source)
        self.labels = nvtx.labels(source)
        self.evidence = gather(source, self.labels.threads)
        self.processes = Processes(source, self.report, self.evidence)
        self.kernel_names = {name: Names(source.strings) for name in ("name", "mangled_name")}
        self.api_names = Names(source.strings, gpu.without_version)
        self.os_names = Names(source.strings)
        self.mpi_names = Names(source.strings)
        self.directive_names = Names(source.strings)
        self.fault_names = {name: Names(source.strings) for name in um.NAMED}
        self.overhead_names = Names(source.strings)
        self.rows: Counter[str] = Counter()
        self.tally: Counter[str] = Counter()
        self.devices = Devices(source, self.tally)
        self.launches: gpu.Launches = Counter()
        self.payloads = Payloads(source, self.tally, jobs)
        self._jobs = jobs

    def batches(self) -> Iterator[Batch]:
        """Yield every table; raise ReadError if the report is so damaged that no event is left."""
        for table, name, columns, convert in self._tables():
            for batch in self.source.batches(table, columns, self._jobs):
                # a record of a CUDA event is no stretch of time: it has no start
                yield from self._with_owners(name, convert(self._started(batch) if "start" in columns else batch))
        for made in (cpu_samples, thread_states):
            for name, batch in made(self.source, self.processes, self.report.base_ns, self.tally, self._jobs):
                yield from self._with_owners(name, batch)
        if self.source.damage and not self.rows:
            raise ReadError(self.source.path, "the file is damaged: no event can be read", "Export the report again", "damaged")
        yield "profiles", batch_of("profiles", [self._profile()])
        yield "diagnostics", self._diagnostics()

    def _tables(self) -> Iterator[tuple[str, str, Mapping[str, Kind], Convert]]:
        base, tally, processes = self.report.base_ns, self.tally, self.processes
        yield KERNEL, "kernels", gpu.KERNEL_COLUMNS, lambda b: gpu.kernels(b, processes, base, self.kernel_names, tally)
        yield MEMCPY, "memory_ops", gpu.MEMCPY_COLUMNS, lambda b: gpu.copies(b, processes, base, tally)
        yield MEMSET, "memory_ops", gpu.MEMSET_COLUMNS, lambda b: gpu.sets(b, processes, base, tally)
        yield DECOMPRESSION, "memory_ops", gpu.DECOMPRESSION_COLUMNS, lambda b: gpu.decompressions(b, processes, base, tally)
        yield GRAPH_TRACE, "graph_executions", gpu.GRAPH_COLUMNS, lambda b: gpu.graph_executions(b, processes, base, tally)
        yield RUNTIME, "api_calls", gpu.API_COLUMNS, lambda b: gpu.api_calls(b, processes, base, self.api_names, tally,
                                                                                self.launches)
        yield NVTX, "ranges", nvtx.COLUMNS | self.payloads.columns, lambda b: nvtx.ranges(
            b, self.source, processes, self.labels, self.payloads, base, tally)
        yield SYNCHRONIZATION, "synchronizations", host.SYNCHRONIZATION_COLUMNS, lambda b: host.synchronizations(
            b, processes, base, tally)
        yield CUDA_EVENT, "cuda_events", host.CUDA_EVENT_COLUMNS, lambda b: host.cuda_events(b, processes, base, tally)
        yield HOST_FUNCTION, "host_functions", host.HOST_FUNCTION_COLUMNS, lambda b: host.host_functions(
            b, processes, base, tally)
        yield CUDA_OVERHEAD, "overheads", host.OVERHEAD_COLUMNS, lambda b: host.cuda_overheads(
            b, processes, base, self.overhead_names, tally)
        yield PROFILER_OVERHEAD, "overheads", host.OVERHEAD_COLUMNS, lambda b: host.profiler_overheads(
            b, processes, base, self.overhead_names, tally)
        yield OS_API, "os_calls", host.OS_COLUMNS, lambda b: host.os_calls(b, processes, base, self.os_names, tally)
        yield CPU_PAGE_FAULTS, "page_faults", um.CPU_COLUMNS, lambda b: um.cpu_page_faults(
            b, processes, base, self.fault_names, tally)
        yield GPU_PAGE_FAULTS, "page_faults", um.GPU_COLUMNS, lambda b: um.gpu_page_faults(b, processes, base, tally)
        yield MEMORY_USAGE, "allocations", memory_usage.COLUMNS, lambda b: memory_usage.allocations(b, processes, base, tally)
        for table, kind in mpi.KINDS.items():
            yield table, "mpi_calls", mpi.COLUMNS, partial(
                mpi.calls, kind=kind, processes=processes, base_ns=base, names=self.mpi_names, tally=tally)
        for table, kind in directives.KINDS.items():
            yield table, "ranges", directives.COLUMNS, partial(
                directives.ranges, kind=kind, processes=processes, base_ns=base, names=self.directive_names, tally=tally)
        # last: they belong to the processes and devices that the others have
        metrics = Metrics(self.source, processes, self.devices)
        yield GPU_METRICS, "device_samples", METRIC_COLUMNS, lambda b: metrics.samples(b, base, tally)

    def _started(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have a start: nsys writes none without, so one without is debris of a damaged page."""
        start = raw(batch, "start")
        self.tally["no_start"] += start.null_count
        return batch.filter(start.is_valid()) if start.null_count else batch

    def _with_owners(self, name: str, batch: pa.RecordBatch) -> Iterator[Batch]:
        if not batch.num_rows:
            return
        self.rows[name] += batch.num_rows
        if (new := self.processes.fresh()) is not None:
            yield "processes", new
        if "device" in batch.schema.names and (new := self.devices.fresh(batch, self.processes.pids())) is not None:
            yield "devices", new
        yield name, batch

    def _diagnostics(self) -> pa.RecordBatch:
        seen = Seen(self.rows, self.tally, self.launches, self.processes.shared_environment,
                    self.evidence, self.devices.assumed, self.devices.unknown, self.payloads.are_described)
        return batch_of("diagnostics", [asdict(each) for each in findings(self.source, self.report, seen)])

    def _profile(self) -> dict[str, object]:
        report, source = self.report, self.source
        version = f" {report.schema_version}" if report.schema_version and source.kind == "nsys sqlite" else ""
        cuda = any(self.rows[name] for name in ("kernels", "memory_ops", "graph_executions", "api_calls"))
        return {
            "tool_version": report.exporter,
            "capture_version": report.capturer,
            "format": source.kind + version,
            "vendor": "cuda" if cuda else "cpu",
            "origin_epoch_ns": report.origin_epoch_ns,
            "events": self.rows.total(),
            "truncated": source.truncated,
            "unread": list(source.others().items()) or None,
        }
