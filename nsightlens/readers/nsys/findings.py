"""What a user should be told about a report: each finding says what it means for the numbers and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from nsightlens.readers.nsys.ranks import Evidence
from nsightlens.readers.nsys.report import Report, own_words
from nsightlens.readers.nsys.source import Source

_NODE_MODE = "To see them, record with nsys profile --cuda-graph-trace=node"
_TALLIED = (
    ("no_start", "error", "rows without a start time were left out: the file is damaged"),
    ("impossible_duration", "warning", "events end before they start, or above 100 days later: their duration is NULL"),
    ("impossible_start", "warning", "events start at a time that no clock shows: their start and duration are NULL"),
    ("out_of_range", "warning", "values too large for their column: NULL"),
    ("nameless", "warning", "the report lacks the text of names that it refers to: NULL"),
    ("never_closed", "info", "NVTX ranges were never closed: their duration is NULL"),
    ("repeated_calls", "info", "records that repeat a CUDA call for its backtrace, or are of no class of calls, were left out"),
    ("unknown_nvtx", "info", "NVTX events of a type that is not known were left out"),
    ("inferred_domain", "info", "NVTX ranges named like NCCL's functions lie in a domain without a name: taken as NCCL's"),
)
_GRAPH_LAUNCHES = frozenset({"cudaGraphLaunch", "cuGraphLaunch", "cudaGraphLaunch_ptsz", "cuGraphLaunch_ptsz"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of `diagnostics`."""

    severity: str
    code: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reading met. rows: our table -> rows; tally: what was odd in them -> how often."""

    rows: Counter[str]
    tally: Counter[str]
    api_names: frozenset[str]
    shared_environment: bool
    evidence: Evidence
    devices_assumed: int
    devices_unknown: int


def findings(source: Source, report: Report, seen: Seen) -> Iterator[Finding]:
    """Yield all findings, the worst first."""
    yield from _damage(source)
    yield from _missing_kernels(source, seen)
    yield from _ranks(seen)
    yield from _values(source, seen)
    yield from _clock(report)
    yield from _devices(seen)
    others = source.others()
    if others:
        listed = ", ".join(others[:12]) + (", ..." if len(others) > 12 else "")
        yield Finding("info", "unread_tables", f"these tables hold rows that are not read: {listed}", len(others))


def _damage(source: Source) -> Iterator[Finding]:
    if source.truncated:
        yield Finding("error", "truncated", "the file is shorter than its header says: every number lacks what is missing, and "
                      "the row that the cut goes through may be wrong. Copy it again, or export the report again")
    for table, places in sorted(source.damage.items()):
        yield Finding("error", "damaged", f"table {table} could not be read in full: its totals are too low. "
                      "Copy the file again, or export the report again", places)
    for suffix in source.leftovers():
        yield Finding("warning", "unfinished_export", f"a {suffix} file beside the report holds changes that are not in it and "
                      "were not read. Let the program that writes the report finish, or export it again")


def _missing_kernels(source: Source, seen: Seen) -> Iterator[Finding]:
    words = own_words(source)
    hidden = seen.rows["graph_executions"]
    if hidden:
        yield Finding("warning", "graph_kernels_hidden", "CUDA graphs were recorded as one interval per launch: their kernels "
                      f"are not in the report and stand in graph_executions as busy time. {_NODE_MODE}", hidden)
    elif _GRAPH_LAUNCHES & seen.api_names and not seen.tally["graph_nodes"]:
        yield Finding("info", "graphs_unrecorded", "CUDA graphs were launched, but neither they nor their kernels are in the "
                      f"report. {_NODE_MODE}")
    if seen.rows["kernels"] or hidden:
        yield from (Finding("warning", "tool_message", f"nsys said: {text}") for is_warning, text in words if is_warning)
        return
    said = f" The report itself says: {'; '.join(text for _, text in words)}" if words else ""
    calls = seen.rows["api_calls"] + seen.rows["memory_ops"]
    if calls:
        yield Finding("warning", "no_kernels", "the report has CUDA calls or copies but no kernel: none was launched, or nsys "
                      "could not collect them (the program ended before the buffers were flushed, a driver or container without "
                      f"permission, an unsupported GPU, WSL).{said} Record again with --trace=cuda and let the program end "
                      "normally", calls)
    else:
        yield Finding("info", "no_cuda", "the report has no CUDA activity: a run on the CPU only, or nsys ran without "
                      f"--trace=cuda.{said}")


def _ranks(seen: Seen) -> Iterator[Finding]:
    if seen.shared_environment:
        yield Finding("warning", "rank_of_several_processes", "nsys was started with a rank set "
                      f"({seen.evidence.environment.source}), but several processes of the report used the GPU: it cannot be the "
                      "rank of each, so theirs are unknown. Start one nsys per rank, or give each rank a sidecar file")
    if seen.evidence.contradictory:
        yield Finding("warning", "rank_contradictory", "a process has threads that name different ranks: its rank is unknown",
                      len(seen.evidence.contradictory))


def _values(source: Source, seen: Seen) -> Iterator[Finding]:
    for code, severity, message in _TALLIED:
        if seen.tally[code]:
            yield Finding(severity, code, message, seen.tally[code])
    for table, count in sorted(source.bad_values.items()):
        if count:
            yield Finding("warning", "bad_value", f"table {table} has values that are no integers where integers belong: NULL",
                          count)


def _clock(report: Report) -> Iterator[Finding]:
    if report.session_epoch_ns is None:
        yield Finding("info", "epoch_unknown", "the report does not tell when its session started: its times cannot be placed "
                      "beside those of other reports")
    elif report.shift_ns:
        yield Finding("info", "times_shifted", f"the export shifted all times by {report.shift_ns} ns: undone here")


def _devices(seen: Seen) -> Iterator[Finding]:
    if seen.devices_unknown:
        yield Finding("info", "device_unknown", "the report does not describe these GPUs: what they are is unknown",
                      seen.devices_unknown)
    if seen.devices_assumed:
        yield Finding("info", "device_assumed", "the report lists several GPUs without a map from a process's device numbers to "
                      "them: the number was taken as the GPU's CUDA number on the node", seen.devices_assumed)
