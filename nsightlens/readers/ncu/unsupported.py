"""CSV files that look like ncu's but are another tool's or a person's: what they are, and what to do."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from nsightlens.terminal.quoting import Verbatim

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

_NSYS_TODO = (
    "Read the report itself, which has every kernel: ", Verbatim("nsys export --type sqlite REPORT.nsys-rep"),
    ", then ingest the .sqlite file; where it must be a CSV: ",
    Verbatim("nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep"))
_NVPROF_TODO = ("Profile again with nsys (timeline) and ncu (counters): ",
                Verbatim("ncu --csv --page raw --log-file FILE.csv COMMAND"))
_SOURCE_TODO = ("Ingest REPORT.ncu-rep itself, or export the counters of the report: ",
                Verbatim("ncu --import REPORT.ncu-rep --csv --page raw"))
_HAND_TODO = "Ingest ncu's own report (.ncu-rep), or what it prints with --csv --page raw."
_RESAVED_TODO = "Ingest the report that it was printed from (.ncu-rep), or the file as ncu wrote it."
_OTHER_SEPARATORS = ";\t|"
_NSYS_FIRST = {"Time (%)", "Time(%)", "Start (ns)", "Start(nsec)", "Start Time (ns)", "Total (MB)", "Total", "Duration (ns)"}
_NSYS_OTHER = re.compile(
    r"(Total Time|Avg|Med|Min|Max|StdDev|Duration|Proj Start|Orig Start|Device Time|QDur|ADur|KDur) \((ns|MB|nsec)\)"
)
_NSYS_TRACE = {"CorrId", "Strm", "Ctx", "GrdX"}
_COUNTER_WORDS = re.compile(
    r"throughput|occupancy|hit rate|\bipc\b|warps?\b|dram|\bl1\b|\bl2\b|sm__|lts__|smsp__|l1tex__|gpu__|launch__", re.IGNORECASE
)


def recognise_foreign_csv(head_text: str) -> tuple[str, str, Text] | None:
    """Return (kind, reason, what to do) of a CSV that another tool or a person made, from its first lines; None if unknown."""
    for line in head_text.removeprefix("﻿").splitlines()[:200]:
        if any({"Process ID", "Kernel Name"} <= {cell.strip('" ') for cell in line.split(sign)} for sign in _OTHER_SEPARATORS):
            return "ncu csv, saved again", "a table of ncu that another program saved: no commas part its cells", _RESAVED_TODO
        if "," not in line or line.startswith("=="):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader((line,)), [])]
        except csv.Error:
            continue
        found = _nvprof(cells) or _source_page(cells) or _nsys(cells) or _by_hand(cells)
        if found:
            return found
    return None


def _nvprof(cells: list[str]) -> tuple[str, str, Text] | None:
    names = set(cells)
    if {"Time(%)", "Time", "Calls", "Name"} <= names:
        what = "summary"
    elif cells[0] == "Device" and {"Kernel", "Invocations"} <= names and names & {"Metric Name", "Event Name"}:
        what = "metrics" if "Metric Name" in names else "events"
    elif {"Start", "Duration", "Name"} <= names and names & {"Grid X", "Correlation_ID", "SrcMemType"}:
        what = "trace"
    else:
        return None
    return f"nvprof {what} csv", "output of nvprof, which has no launch by launch counters like ncu's", _NVPROF_TODO


def _source_page(cells: list[str]) -> tuple[str, str, Text] | None:
    if cells[0] != "#" or not {"Source", "Address"} & set(cells):
        return None
    return "ncu source page csv", "ncu's source page: counters of instructions, not of launches", _SOURCE_TODO


def _nsys(cells: list[str]) -> tuple[str, str, Text] | None:
    names = set(cells)
    sums = cells[0] in _NSYS_FIRST and any(_NSYS_OTHER.fullmatch(cell) for cell in cells)
    traces = len(names & _NSYS_TRACE) >= 2
    old = cells[0] in _NSYS_FIRST and {"Average", "Minimum", "Maximum"} <= names
    if not (sums or traces or old):
        return None
    return "nsys stats csv", "a summary that `nsys stats` made of a report: it has no launches", _NSYS_TODO


def _by_hand(cells: list[str]) -> tuple[str, str, Text] | None:
    counters = [cell for cell in cells if _COUNTER_WORDS.search(cell)]
    if len(counters) < 2 or len(cells) < 3 or {"ID", "Process ID"} & set(cells):
        return None
    reason = f"a table of counters ({counters[0]}, ...) that ncu itself did not write: it has no ID, Process ID and Kernel Name"
    return "hand-made counter csv", reason, _HAND_TODO
