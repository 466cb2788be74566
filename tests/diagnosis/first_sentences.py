"""How a page's first sentences are read, and judged against a row of verdicts.tsv, as its README says."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data"
VERDICTS = DATA / "oracle" / "verdicts.tsv"
Row = dict[str, str]
CAUSES = {
    "tensor_cores_unused": {"FP32", "tensor cores"}, "low_fill": {"low fill", "small blocks"}, "memory_bound": {"memory"},
    "latency_bound": {"latency"}, "launch_bound": {"launching", "operators", "host"}, "one_pause": {"pause", "host"},
    "sync_call": {"waiting", "API calls"}, "data_loader": {"data loader", "input"}, "straggler": {"late rank"},
    "copies": {"copies"}, "startup": {"start-up"},
}
"""Which causes of a verdict or its findings stand for a word of the column detail."""

_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}
_FIGURE = re.compile(r"(\d[\d,]*(?:\.\d+)?) ?(ns|us|µs|ms|s|%)(?!\w)")
_OF_CAUSE = {"computing": "computing_ns", "host": "idle_ns", "input": "idle_ns", "copies": "copies_ns", "start-up": "startup_ns"}
_WITHIN, _POINTS = 0.1, 0.5


def rows() -> list[Row]:
    """Return the rows of verdicts.tsv; none where it is not there."""
    if not VERDICTS.is_file():
        return []
    with VERDICTS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def is_counted(row: Row) -> bool:
    """Return whether a row is one of those that must be right: sure, and informative."""
    return row["certainty"] == "sure" and row["informative"] == "y"


def details(row: Row) -> set[str]:
    """Return the words of a row's detail that a cause stands for."""
    return CAUSES.keys() & set(re.findall(r"\w+", row["detail"]))


def unsaid(row: Row, causes: set[str]) -> set[str]:
    """Return the words of a row's detail that no cause of the verdict and its findings stands for."""
    return {word for word in details(row) if not CAUSES[word] & causes}


def first_sentences(page: str) -> str:
    """Return the first two sentences of a page's first paragraph."""
    lines = [line for line in page.splitlines() if "═" not in line]
    paragraph = re.split(r"\n\s*(?:\n|- )", "\n".join(lines).strip())[0]
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", " ".join(paragraph.split()))
    return " ".join(sentences[:2])


def faults(row: Row, page: str, cause: str) -> Iterator[str]:
    """Yield in what a page differs from a row; cause: the one that leads on the page."""
    first, whole = first_sentences(page), " ".join(page.split())
    accepted = {row["cause"], *row["also"].split(";")}
    if not row["tool"].startswith("ncu") and cause not in accepted:
        yield f"leads with {cause}, expected {row['cause']}"
    yield from (f"does not say {pattern[:60]!r}" for pattern in row["must_match"].split(" ;; ")
                if pattern and not re.search(pattern, first, re.IGNORECASE))
    if row["informative"] == "y" and not row["tool"].startswith("ncu") and not _has_amount(row, first):
        yield f"names neither {row['amount_ns']} ns nor {row['share_pct']} %"
    yield from forbidden(row, first, whole)


def forbidden(row: Row, first: str, whole: str) -> Iterator[str]:
    """Yield what a page says and must not."""
    for pattern in filter(None, row["must_not_match"].split(" ;; ")):
        text = first if pattern.startswith("first:") else whole
        found = re.search(pattern.removeprefix("first:"), text, re.IGNORECASE)
        if found:
            yield f"must not say {found[0][:90]!r}"


def sums(cell: str) -> int:
    """Return the sum of a cell such as 'GPU0:5;GPU1:7'."""
    return sum(int(part.rpartition(":")[2]) for part in cell.split(";") if part)


def _has_amount(row: Row, first: str) -> bool:
    wanted = [float(row["amount_ns"])] if row["amount_ns"] else []
    column = _OF_CAUSE.get(row["cause"])
    if column and row[column]:
        wanted.append(float(sums(row[column])))
    share = float(row["share_pct"]) if row["share_pct"] else None
    if not wanted and share is None:
        return True
    for digits, unit in _FIGURE.findall(first):
        value = float(digits.replace(",", ""))
        if unit == "%":
            if share is not None and (abs(value - share) <= _POINTS or abs(value - share) <= _WITHIN * share):
                return True
        elif any(abs(value * _UNITS[unit] - ns) <= _WITHIN * ns for ns in wanted):
            return True
    return False


def capture(row: Row) -> Path:
    """Return where the capture of a row lies."""
    return DATA / row["capture"]
