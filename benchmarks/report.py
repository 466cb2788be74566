"""Measured programs -> the page of tables, with the bars beside the figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measure import Candidate

MB = 1_000_000
_PACKAGES = ("nsightlens", "duckdb", "pyarrow", "msgspec", "adbc-driver-sqlite", "pandas", "numpy", "HolisticTraceAnalysis")


@dataclass(frozen=True, slots=True)
class Bar:
    """What was asked for and what came out; `met` is None where it could not be measured."""

    wanted: str
    got: str
    met: bool | None


@dataclass(slots=True)
class Table:
    """One comparison: our program first, the others after it. `steps` holds the seconds of the step that counts, by program.

    base_of: of a table of several comparisons, which program of ours each is compared with.
    """

    title: str
    note: str
    programs: list[Candidate]
    bars: list[Bar] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    base_of: dict[str, Candidate] = field(default_factory=dict)


def faster(wanted: float, ours: Candidate, peer: Candidate | None, name: str) -> Bar:
    """Return the bar "at least `wanted` times as fast as the peer", in wall time."""
    text = f"at least {wanted:g}x as fast as {name}" if wanted != 1 else f"no slower than {name}"
    if peer is None:
        return Bar(text, "not measured", None)
    ratio = peer.wall_s / ours.wall_s
    return Bar(text, f"{ratio:.2f}x", ratio >= wanted)


def dearer(most: float, ours: Candidate, other: Candidate) -> Bar:
    """Return the bar "at most `most` times the other", in wall time."""
    ratio = ours.wall_s / other.wall_s
    return Bar(f"{ours.name} at most {most:g}x {other.name}", f"{ratio:.2f}x", ratio <= most)


def smaller(most_mb: int, ours: Candidate, what: str = "") -> Bar:
    """Return the bar on peak memory, judged by the resident set: an upper bound, shared pages count in each process."""
    text = f"{what} at most {most_mb} MB in all processes".lstrip()
    rss, pss = ours.peak_rss_bytes, ours.peak_pss_bytes
    if rss is None:
        return Bar(text, "not measured", None)
    return Bar(text, f"{rss / MB:.0f} MB RSS, {_mb(pss)} MB PSS", rss <= most_mb * MB)


def quicker(most_s: float, got_s: float, what: str) -> Bar:
    """Return the bar on a number of seconds."""
    return Bar(f"{what} at most {most_s:g} s", f"{got_s:.3f} s", got_s <= most_s)


def page(tables: Sequence[Table], heading: str) -> str:
    """Return the whole page as Markdown."""
    lines = ["# Benchmark results", "", heading, "", *machine(), ""]
    for table in tables:
        lines += [f"## {table.title}", "", table.note, "", *_rows(table), ""]
        lines += [f"- {_MET[bar.met]}: {bar.wanted}: {bar.got}" for bar in table.bars]
        lines += [f"- not installed, so not measured: {name}" for name in table.missing]
        lines.append("")
    lines += [_LEGEND, ""]
    return "\n".join(lines)


_MET = {True: "met", False: "**missed**", None: "unknown"}
_LEGEND = """\
Wall: median of the runs (fastest to slowest). Step: the step that counts, where that is not the whole process. CPU: user and
system time of all processes. Peak memory: highest of all runs, summed over all processes of the tree at one moment. RSS is read
every 20 ms and counts shared pages in each process. PSS counts them once, is dear to read and so is read less often: it may miss
a peak by a little. Ratio: the program's time over ours. MB = 10^6 bytes."""


def _rows(table: Table) -> list[str]:
    steps = bool(table.steps)
    header = ["program", "wall s", *(["step s"] if steps else []), "CPU s", "peak RSS MB", "peak PSS MB", "ratio"]
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for program in table.programs:
        ours = table.base_of.get(program.name, table.programs[0])
        walls = [run.wall_s for run in program.runs]
        time, base = (table.steps[program.name], table.steps[ours.name]) if steps else (program.wall_s, ours.wall_s)
        cells = [program.name, f"{program.wall_s:.3g} ({min(walls):.3g} to {max(walls):.3g})",
                 *([f"{table.steps[program.name]:.3g}"] if steps else []), f"{program.cpu_s:.3g}",
                 _mb(program.peak_rss_bytes), _mb(program.peak_pss_bytes), f"{time / base:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _mb(count: int | None) -> str:
    return "?" if count is None else f"{count / MB:.0f}"


def machine() -> list[str]:
    """Return lines about the machine, the load it was under and the versions."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    packages = ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name)))
    return [
        f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {_processor()}, {len(os.sched_getaffinity(0))} processors, "
        f"{_memory_gb():.0f} GB memory; {platform.system()} {platform.release()}",
        f"- load average (1, 5, 15 minutes) at the end: {load}",
        f"- Python {platform.python_version()}; {packages}",
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
