"""The labels of ncu's details page; run with the path of ncu-labels.tsv, this file also rewrites the product's labels.tsv."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest

from nsightlens.readers.ncu import labels

REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "../shared/formats/ncu-labels.tsv"
PRODUCT = REPO / "nsightlens/readers/ncu/labels.tsv"
COLUMNS = ("section_id", "section_name", "body_item", "label", "metric", "compute_capability")
TENSOR = "SpeedOfLight_HierarchicalTensorRooflineChart"
# The section of ncu 2019 to 2020 was called otherwise; that its duration is the kernel's duration is certain.
OLD = [("SpeedOfLight", "GPU Speed Of Light", "", "Duration", "gpu__time_duration.sum", "")]


def source_rows() -> list[dict[str, str]]:
    with SOURCE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def path_of(printed: str) -> str:
    return re.sub("[ :,]+", "_", printed).lower()


def folded(row: dict[str, str]) -> dict[str, str]:
    """A row of the tensor chart with `*` for its path; the L1 counter differs from compute capability 9.0 on."""
    chart = re.fullmatch(r"(.*) \((.*)\)", row["body_item"])
    if row["section_id"] != TENSOR or not chart:
        return row
    metric = row["metric"].replace(f"tensor_{path_of(chart[2])}.", "tensor_{path}.")
    capability = row["compute_capability"]
    if "_mem_lg" in metric:
        capability = "CC_90.." if "_mem_lgds" in metric else "..CC_89"
    return row | {"body_item": f"{chart[1]} (*)", "metric": metric, "compute_capability": capability}


def distil() -> str:
    """The rows the product keeps, as the text of labels.tsv."""
    rows = [folded(row) for row in source_rows() if row["role"] != "BaseName" and ":" not in row["metric"]]
    keep = dict.fromkeys([tuple(row[name] for name in COLUMNS) for row in rows] + OLD)
    assert not any("{path}" not in row[4] and row[0] == TENSOR and "Tensor Operations" in row[3] for row in keep)
    return "".join("\t".join(row) + "\n" for row in [COLUMNS, *keep])


needs_source = pytest.mark.skipif(not SOURCE.exists(), reason="no ../shared")


@needs_source
def test_labels_are_what_the_source_says() -> None:
    assert PRODUCT.read_text(encoding="utf-8") == distil()


if __name__ == "__main__":
    SOURCE = Path(sys.argv[1])
    PRODUCT.write_text(distil(), encoding="utf-8")
