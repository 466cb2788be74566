"""The diagnostics of the ncu reader: every code, and a tally of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from nsightlens.readers.batches import Batch, diagnostic
from nsightlens.readers.budget import OVER_BUDGET

# code -> severity, message; {detail} is the first thing seen. How often stands in the column `count`.
CODES: dict[str, tuple[str, str]] = {
    "pages_merged": (
        "info", "launches found in several files of one report: each becomes one row with the metrics of all files ({detail})",
    ),
    "pages_beside_report": (
        "info", "launches of CSV pages that the report beside them also holds: the report's values are used, which are exact "
        "({detail})",
    ),
    "pages_beyond_report": (
        "warning", "launches of CSV pages that the report beside them lacks: they are kept as printed",
    ),
    "report_damaged": (
        "warning", "the report is cut or damaged: {detail}; launches before that are read",
    ),
    "launch_damaged": ("warning", "launches of the report that are damaged and cannot be read: {detail}"),
    "launch_inconsistent": (
        "warning", "launches whose configuration contradicts their counters: the report may be damaged ({detail})",
    ),
    "session_damaged": ("info", "damaged parts of the session: version, settings or process may be missing ({detail})"),
    "metric_unnamed": ("warning", "metric values whose names the report lacks; dropped"),
    "untested_version": ("info", "the report has an untested version ({detail}); it is read like earlier ones"),
    "range_results": (
        "warning", "results of ranges, which are not read. `--replay-mode kernel` or `application` measures launches",
    ),
    "settings_by_default": (
        "info", "launches for which ncu's command line does not state all of --clock-control, --cache-control and --replay-mode: "
        "ncu's defaults are assumed (base, all, kernel), but a configuration file may have changed them",
    ),
    "page_unreadable": ("error", "files of this report that could not be read; the others were: {detail}"),
    "metric_conflict": (
        "warning", "metric values printed twice that differ by more than the printed digits; the first is kept ({detail}). "
        "The files may be two reports with equal launch names: ingest them as separate runs",
    ),
    "label_contradicted": (
        "warning", "rows whose label maps to a metric with a different value in the same launch; "
        "kept in unmapped_metrics ({detail})",
    ),
    "label_unmapped": (
        "info", "rows of the details page whose label maps to no certain raw metric; kept in unmapped_metrics "
        "({detail}). `--page raw` or `--print-metric-name name` prints raw names",
    ),
    "metric_not_available": (
        "info", "cells that are n/a or empty: metrics that this GPU or this ncu lacks, or that were not collected; NULL",
    ),
    "metric_not_finite": (
        "warning", "metric values such as {detail} that are not finite: not collected, or damaged; NULL",
    ),
    "metric_flagged": ("warning", "metric values that ncu marked with (!) as unreliable ({detail}); kept"),
    "instances_dropped": ("info", "metrics printed with their instances: only the aggregate is kept ({detail})"),
    "unknown_unit": ("warning", "values in an unknown unit ({detail}); kept as printed, not scaled"),
    "no_units": (
        "warning", "launches of a table that lacks ncu's row of units below its header: values are kept as printed, "
        "not scaled ({detail}, ...), and durations are NULL. Ingest the report itself (.ncu-rep)",
    ),
    "number_locale_guessed": (
        "warning", "it is ambiguous whether the separator in {detail} marks thousands or decimals. The reading that fits the "
        "units is used: counts and ns have no decimals, scaled values (us, Mbyte) no thousands; where units do not decide, "
        "a comma marks thousands and a point decimals. Print with LC_ALL=C to avoid this",
    ),
    "number_locale_conflict": (
        "warning", "numbers that contradict the number format of the rest of the file ({detail}); kept as text in metric_texts",
    ),
    "rounded_in_print": (
        "info", "integers that ncu printed rounded ({detail}): byte counts are NULL, durations are to the nearest ns. "
        "`--print-units base` prints them in full",
    ),
    "repeated_header": ("info", "repeated headers: the file holds several outputs; all of them are read"),
    "log_lines": ("info", "lines that are not rows: ncu messages or application output; dropped"),
    "rows_lost": ("warning", "rows that are damaged and cannot be read: {detail}"),
    "truncated": ("warning", "the file ends inside a row, which is dropped: {detail}"),
    OVER_BUDGET: (
        "warning", "the file goes on without ncu rows beyond the part that is read ({detail}): any rows after that are missing. "
        "If it holds an application's output, keep only ncu's lines: grep '^\"' FILE > rows.csv",
    ),
    "text_replaced": ("warning", "bytes that are not valid text in the encoding of the file ({detail}); replaced"),
    "nul_bytes": ("warning", "NUL bytes in the text; removed"),
    "tool_message": ("warning", "messages of ncu: {detail}"),
    "summary_only": (
        "info", "rows of --print-summary: kept in metric_summaries, without single launches",
    ),
}


@dataclass(slots=True)
class Notes:
    """A tally of diagnostics: per code how often, and the first detail."""

    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, detail: str = "", count: int = 1, offset: int | None = None) -> None:
        """Count something; `detail` and `offset` (bytes) are kept the first time only."""
        if count <= 0:
            return
        if code not in self.counts:
            self.details[code] = detail if len(detail) <= 200 else f"{detail[:40]}… ({len(detail)} characters)"
            if offset is not None:
                self.offsets[code] = offset
        self.counts[code] = self.counts.get(code, 0) + count

    def extend(self, other: Notes) -> None:
        """Add the tally of another file or table."""
        for code, count in other.counts.items():
            self.add(code, other.details[code], count, other.offsets.get(code))

    def batches(self) -> list[Batch]:
        """Return one row of `diagnostics` per code."""
        return [
            diagnostic(CODES[code][0], code, CODES[code][1].format(detail=self.details[code]), count, self.offsets.get(code))
            for code, count in self.counts.items()
        ]
