"""NVIDIA's binary reports: recognised by content, and converted by the vendor's own command where it is installed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nsightlens.errors import ReadError

_LAST_LINES = 3


@dataclass(frozen=True, slots=True)
class Report:
    """One kind of binary report: the tool that reads it and what its export is called."""

    kind: str
    tool: str
    suffix: str
    magic: bytes


REPORTS = (
    Report("nsys report (binary)", "nsys", ".sqlite", b"NVIDIA Tegra Profiler Report "),
    Report("ncu report (binary)", "ncu", ".csv", b"NVR\0"),
)


def recognise(head: bytes) -> Report | None:
    """Return which binary report begins with `head`, or None."""
    return next((report for report in REPORTS if head.startswith(report.magic)), None)


def command(report: Report, path: Path, output: Path) -> list[str]:
    """Return the command line that converts `path`; ncu's goes to standard output, nsys's into `output`."""
    if report.tool == "nsys":
        return ["nsys", "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(output), str(path)]
    return ["ncu", "--import", str(path), "--csv", "--page", "raw", "--print-units", "base"]


def advice(report: Report, path: Path) -> str:
    """Return the sentence that tells how to convert `path` by hand."""
    output = path.with_suffix(report.suffix)
    line = shlex.join(command(report, path, output))
    if report.tool == "ncu":
        line = f"LC_ALL=C {line} > {shlex.quote(str(output))}"
    return f"Run where {report.tool} is installed: {line}   and ingest again"


def convert(report: Report, path: Path, output: Path) -> Path:
    """Return `output`, the export of `path`, made by the vendor's tool unless it is there already.

    Raises ReadError where the tool is not installed or fails; a failed conversion leaves nothing behind.
    """
    if output.is_file():
        return output
    if shutil.which(report.tool) is None:
        raise ReadError(path, f"a binary {report.tool} report, and {report.tool} is not on PATH here",
                        advice(report, path), "needs_export")
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f".{os.getpid()}.{output.name}")
    try:
        _run(report, path, part)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return output


def _run(report: Report, path: Path, part: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    arguments = command(report, path, part)
    try:
        done = subprocess.run(arguments, env=environment, capture_output=True, check=False)
        if report.tool == "ncu" and done.returncode == 0:
            part.write_bytes(done.stdout)
    except OSError as exc:
        raise ReadError(path, f"{report.tool} could not be started: {exc}", advice(report, path), "export_failed") from exc
    if done.returncode != 0 or not part.is_file():
        said = " | ".join((done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:])
        raise ReadError(path, f"{report.tool} could not convert it (exit code {done.returncode}): {said}",
                        advice(report, path), "export_failed")
