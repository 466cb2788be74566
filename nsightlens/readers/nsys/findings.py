"""Findings about a report: each says what it means for the numbers and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from nsightlens.readers.nsys.gpu import Launches
from nsightlens.readers.nsys.ranks import RankEvidence
from nsightlens.readers.nsys.report import ReportFacts, error_line, own_messages
from nsightlens.readers.nsys.source import Source
from nsightlens.readers.nsys.versions import untested

_FEW = 6
"""Kernels from which on the program did some of its work on the GPU: what it wrote last is no reason for what is missing."""
_NODE_MODE = "To see them, record with nsys profile --cuda-graph-trace=node"
_TALLIED = (
    ("no_start", "error", "rows without a start time were left out: the file is damaged"),
    ("impossible_duration", "warning", "events end before they start, or more than 100 days later: their duration is NULL"),
    ("impossible_start", "warning", "events have an impossible start time: their start and duration are NULL"),
    ("out_of_range", "warning", "values too large for their column: NULL"),
    ("missing_name", "warning", "names that the report refers to but does not contain: NULL"),
    ("unclosed_range", "info", "NVTX ranges were never closed: their duration is NULL"),
    ("duplicate_calls", "info", "records that repeat a CUDA call for its backtrace, or have no event class, were left out"),
    ("unknown_nvtx", "info", "NVTX events of unknown type were left out"),
    ("unnamed_metric", "warning", "samples of GPU metrics whose metric has no name: it is named by its number"),
    ("unplaced_sample", "info", "samples of GPUs that no process used and that have no CUDA ordinal: their device is NULL"),
    ("foreign_samples", "info", "CPU samples of no thread, or of processes without other events in the report, were left out"),
    ("samples_thinned", "warning", "CPU samples beyond the limit were left out, at random over all threads"),
    ("foreign_threads", "info", "scheduling events of no thread, or of processes without other events in the report, were left "
     "out"),
    ("scheduling_left_out", "warning", "scheduling events beyond the limit: all events of some threads were left out, "
     "first of threads that do not call CUDA"),
    ("split_stacks", "warning", "call stacks of CPU samples are split over their table: only their first part was kept"),
    ("cut_stacks", "info", "call stacks of CPU samples are too deep or too many: the innermost frames were kept"),
    ("bad_payload", "warning", "payloads of NVTX ranges shorter than their stated size: left out"),
    ("inferred_domain", "info", "NVTX ranges named like NCCL functions are in an unnamed domain: taken as NCCL's"),
)
_ERRORS = {
    1: "invalid value", 2: "out of memory", 9: "invalid configuration", 35: "driver too old", 98: "invalid device function",
    100: "no device", 209: "no kernel image for the device", 400: "invalid handle", 700: "illegal address",
    701: "out of resources", 702: "timeout", 719: "launch failure", 720: "cooperative launch too large",
}
"""Codes that launches return, the same in CUDA's runtime and driver, in words."""


@dataclass(frozen=True, slots=True)
class DiagnosticRow:
    """One row of `diagnostics`."""

    severity: str
    code: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reader found. rows: our table -> rows; tally: anomaly -> how often; launches: calls by name and return code;
    payloads_described: whether the report says what messages of NCCL its ranges carry."""

    rows: Counter[str]
    tally: Counter[str]
    launches: Launches
    shared_environment: bool
    evidence: RankEvidence
    devices_assumed: int
    devices_unknown: int
    payloads_described: bool


def findings(source: Source, report: ReportFacts, seen: Seen) -> Iterator[DiagnosticRow]:
    """Yield all findings, the worst first."""
    yield from _damage(source)
    yield from _missing_kernels(source, seen)
    yield from _ranks(seen)
    yield from _values(source, seen)
    yield from _clock(report)
    yield from _devices(seen)
    yield from _payloads(seen)
    if said := untested(report.schema_version):
        yield DiagnosticRow("info", "untested_schema", f"the report was read, but {said}")
    others = source.others()
    if others:
        listed = ", ".join(list(others)[:12]) + (", ..." if len(others) > 12 else "")
        yield DiagnosticRow("info", "unread_tables", f"tables with rows that are not read: {listed}", len(others))


def _payloads(seen: Seen) -> Iterator[DiagnosticRow]:
    """Yield that NCCL described what its ranges carry, and the export left it out."""
    if seen.payloads_described and not seen.tally["payloads"]:
        yield DiagnosticRow("info", "payloads_missing",
                            "NCCL's ranges carry message sizes and communicators, which this export left "
                            "out: sizes and bandwidths of collectives are unknown here. Export the report again with nsys export "
                            "--type sqlite --include-blobs=true")


def _damage(source: Source) -> Iterator[DiagnosticRow]:
    if source.truncated:
        yield DiagnosticRow("error", "truncated", "the file is shorter than its header says: all figures miss the lost part, and "
                            "the row at the cut may be wrong. Copy the file again, or export the report again")
    for table, places in sorted(source.damage.items()):
        yield DiagnosticRow("error", "damaged",
                            f"table {table} is damaged: rows are missing or wrong, and its totals may be too low. "
                            "Copy the file again, or export the report again", places)
    for name in source.stand_ins:
        yield DiagnosticRow("warning", "view_not_read",
                            f"{name} is a view (or a table of an extension), which is not read: its rows "
                            f"are missing. Make it a table: CREATE TABLE copy AS SELECT * FROM {name}, then rename the copy")
    for suffix in source.leftovers():
        yield DiagnosticRow("warning", "unfinished_export",
                            f"a {suffix} file beside the report has changes that are not in the report "
                            "and were not read. Let the program that writes it finish, or export the report again")


def _missing_kernels(source: Source, seen: Seen) -> Iterator[DiagnosticRow]:
    messages = own_messages(source)
    yield from _failed_launches(seen)
    hidden = seen.rows["graph_executions"]
    graphs = sum(count for (name, _), count in seen.launches.items() if "GraphLaunch" in name)
    if hidden:
        yield DiagnosticRow("warning", "graph_kernels_hidden",
                            "CUDA graphs were recorded as one interval per launch: their kernels "
                            f"are not in the report; graph_executions has the busy time. {_NODE_MODE}", hidden)
    elif graphs and not seen.tally["graph_nodes"]:
        severity = "info" if seen.rows["kernels"] else "warning"
        yield DiagnosticRow(severity, "graphs_unrecorded",
                            "CUDA graphs were launched, but neither they nor their kernels are in the "
                            f"report. {_NODE_MODE}", graphs)
    if seen.rows["kernels"] or hidden:
        yield from (DiagnosticRow("warning", "tool_message", f"nsys reports: {text}") for is_warning, text in messages
                    if is_warning)
    else:
        said = f" Messages in the report: {'; '.join(text for _, text in messages)}" if messages else ""
        yield _no_kernels(seen, said)
    if seen.rows["kernels"] < _FEW and (line := error_line(source)):
        yield DiagnosticRow("info", "program_error", f"the last line of the program's standard error: {line}")


def _failed_launches(seen: Seen) -> Iterator[DiagnosticRow]:
    """Yield what launches returned errors: each of them is a kernel that never ran."""
    failed = Counter({key: count for key, count in seen.launches.items() if key[1]})
    if failed:
        codes = ", ".join(f"{name} returned {code}{f' ({_ERRORS[code]})' if code in _ERRORS else ''} {count:,} times"
                          for (name, code), count in failed.most_common(4) if code is not None)
        more = f" and {len(failed) - 4} other errors" if len(failed) > 4 else ""
        yield DiagnosticRow("warning", "launches_failed", f"{failed.total():,} of {seen.launches.total():,} launches failed: "
                            f"{codes}{more}. Their kernels never ran, and what the program did next may be wrong", failed.total())


def _no_kernels(seen: Seen, said: str) -> DiagnosticRow:
    """Return why a report has no kernel. said: what the report says of it."""
    calls, copies, ranges = (seen.rows[name] for name in ("api_calls", "memory_ops", "ranges"))
    held = " and ".join(f"{count:,} {what}" for count, what in ((calls, "CUDA calls"), (copies, "copies or sets")) if count)
    launches = seen.launches.total()
    ran = sum(count for (_, code), count in seen.launches.items() if not code)
    if not held:
        read = f", only {ranges:,} NVTX ranges, which were read (the view nvtx_summary)" if ranges else ""
        return DiagnosticRow("warning", "no_cuda",
                             f"the report has no CUDA activity{read}. The program ran on the CPU only, ran its "
                             f"GPU work in a process that nsys did not follow, or nsys ran without --trace=cuda.{said}")
    if calls and not launches:
        return DiagnosticRow("warning", "no_launches", f"the report has {held} but no kernel, and none was launched while nsys "
                             f"recorded: the program launches none, or ended or failed before it did.{said}", calls + copies)
    if launches and not ran:
        return DiagnosticRow("warning", "no_kernels", f"the report has {held} but no kernel: all launches failed.{said}", calls)
    launched = f": none of {ran:,} successful launches was recorded" if launches else ""
    return DiagnosticRow("warning", "no_kernels",
                         f"the report has {held} but no kernel{launched}. nsys could not collect them (the "
                         "program ended before the buffers were flushed, a driver or container without permission, an "
                         "unsupported "
                         f"GPU, WSL).{said} Record again with --trace=cuda and let the program end normally", calls + copies)


def _ranks(seen: Seen) -> Iterator[DiagnosticRow]:
    if seen.shared_environment:
        yield DiagnosticRow("warning", "rank_of_several_processes", "nsys was started with a rank set "
                            f"({seen.evidence.environment.source}), but several processes in the report used the GPU: it cannot "
                            "be the "
                            "rank of each, so their ranks are unknown. Start one nsys per rank, or give each rank a sidecar file")
    if seen.evidence.contradictory:
        yield DiagnosticRow("warning", "rank_contradictory", "threads of one process report different ranks: its rank is unknown",
                            len(seen.evidence.contradictory))


def _values(source: Source, seen: Seen) -> Iterator[DiagnosticRow]:
    for code, severity, message in _TALLIED:
        if seen.tally[code]:
            yield DiagnosticRow(severity, code, message, seen.tally[code])
    for table, count in sorted(source.bad_values.items()):
        if count:
            yield DiagnosticRow("warning", "bad_value", f"table {table} has non-integer values in integer columns: NULL",
                                count)


def _clock(report: ReportFacts) -> Iterator[DiagnosticRow]:
    if report.session_epoch_ns is None:
        yield DiagnosticRow("info", "no_epoch", "the report lacks the start time of its session: its times cannot be aligned "
                            "with those of other reports")
    elif report.shift_ns:
        yield DiagnosticRow("info", "times_shifted",
                            f"the export shifted all times by {report.shift_ns} ns; the shift is undone here")


def _devices(seen: Seen) -> Iterator[DiagnosticRow]:
    if seen.devices_unknown:
        yield DiagnosticRow("info", "device_unknown", "the report does not describe these GPUs: their properties are unknown",
                            seen.devices_unknown)
    if seen.devices_assumed:
        yield DiagnosticRow("info", "device_assumed",
                            "the report does not map a process's device ordinals to its GPUs: the ordinal "
                            "was taken as the GPU's CUDA ordinal on the node, or as the only GPU listed", seen.devices_assumed)
