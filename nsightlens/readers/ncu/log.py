"""The lines around the table (messages of ncu, output of the application) -> facts about the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.ncu.unsupported import recognise_foreign_csv

_VERSION = re.compile(r"^\s*Version (\d{4}\.\d[\w.]*)")
_PASSES = re.compile(r'^==PROF== Profiling "([^"]*)" - (\d+)\b.*?100%.*? - (\d+) pass')
_PROFILED = re.compile(r"^==PROF== Profiling ")
_REPORT = re.compile(r"^==PROF== Report: (.*)")
_CONSOLE = re.compile(r"^\[\d+\] .*@\S+\s*$")
_EXIT_CODE = re.compile(r"returned an error code \((-?\d+)\)")
_PERMISSION = (
    "ncu had no permission to read the GPU's performance counters (ERR_NVGPUCTRPERM)",
    "Ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run ncu with sudo or with the "
    "capability CAP_SYS_ADMIN (containers: --cap-add SYS_ADMIN); many clusters have a job flag that allows profiling.",
)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts in the log, or in a report: version, controls (None: unknown), and (name, ID, passes) of launches."""

    version: str | None
    clock_control: str | None
    cache_control: str | None
    passes: tuple[tuple[str, int, int], ...]
    messages: tuple[str, ...]
    replay_mode: str | None = None


def facts(log: Sequence[bytes]) -> LogFacts:
    """Return the facts in these lines."""
    lines = [line.decode("utf-8", errors="replace") for line in log]
    versions = [found[1] for line in lines if (found := _VERSION.match(line))]
    passes = [(found[1], int(found[2]), int(found[3])) for line in lines if (found := _PASSES.match(line))]
    text = [line for line in lines if line.startswith(("==WARNING==", "==ERROR=="))]
    clocks = any("unmodified GPU clocks" in line for line in text)
    caches = any("uncontrolled GPU caches" in line for line in text)
    messages = [line[2:].replace("==", ":", 1) for line in text if "Running with un" not in line]
    return LogFacts(
        versions[0] if versions else None, "none" if clocks else None, "none" if caches else None, tuple(passes), tuple(messages)
    )


def speaks_ncu(log: Sequence[bytes]) -> bool:
    """Return whether any line is a message of ncu."""
    return any(line.startswith((b"==PROF== ", b"==ERROR== ", b"==WARNING== ")) for line in log)


def refusal(path: Path, log: Sequence[bytes]) -> ReadError:
    """Return the error for a file of ncu without a row, with what its messages say to do."""
    lines = [line.decode("utf-8", errors="replace").strip() for line in log]
    text = "\n".join(lines)
    if "ERR_NVGPUCTRPERM" in text:
        return ReadError(path, *_PERMISSION, code="counter_permission")
    if re.search(r"driver is not compatible with Nsight Compute", text, re.IGNORECASE):
        todo = "Use an ncu that is not newer than the CUDA driver (nvidia-smi shows it), or update the driver."
        return ReadError(path, "ncu does not work with this CUDA driver", todo, code="driver_incompatible")
    if code := _EXIT_CODE.search(text):
        reason = f"ncu profiled no kernel: the application ended with error code {code[1]}"
        todo = "Run the application without ncu until it ends well, then profile it again."
        return ReadError(path, reason, todo, "application_failed")
    saved_again = recognise_foreign_csv(text)
    if saved_again:
        _, reason, advice = saved_again
        return ReadError(path, reason, advice, "foreign_format")
    return _other_refusal(path, lines)


def _other_refusal(path: Path, lines: list[str]) -> ReadError:
    report = next((found[1] for line in lines if (found := _REPORT.match(line))), None)
    if report:
        todo = f"Ingest that file: {report}"
        return ReadError(path, "this is ncu's log; the measurements went to a report file", todo, "report_elsewhere")
    if any(_CONSOLE.match(line) for line in lines):
        todo = "Ingest a saved report (.ncu-rep, ncu --export), or run ncu with --csv --page raw."
        return ReadError(path, "ncu printed its tables for people, not as CSV", todo, "not_csv")
    if any("No metrics to collect" in line for line in lines):
        todo = "Name a set or metrics that exist on this GPU: --set full, --metrics ...; ncu --list-sets lists the sets."
        return ReadError(path, "ncu had no metrics to collect", todo, "no_metrics")
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    if errors:
        reason = f"ncu failed: {errors[0][:200]}"
        return ReadError(path, reason, "Resolve what ncu reports, then profile again.", "tool_error")
    if any("No kernels were profiled" in line for line in lines) or not any(_PROFILED.match(line) for line in lines):
        names = [line for line in lines if re.match(r"\d+\. \S", line)][:5]
        seen = f" (kernels that ran: {'; '.join(name[:80] for name in names)})" if names else ""
        todo = (
            "Check the filters (--kernel-name, --launch-skip, --launch-count, --nvtx-include), and that kernels run in the "
            "process that ncu follows: --target-processes all follows children."
        )
        return ReadError(path, f"ncu profiled no kernel{seen}", todo, "no_kernels")
    todo = "Find the file that --log-file or the redirection wrote, or profile again with --csv --log-file FILE.csv."
    return ReadError(path, "there is no table in the file, only ncu's log", todo, "no_table")
