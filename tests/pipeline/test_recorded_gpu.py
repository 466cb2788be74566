"""The real recording of a training on an H100 (fixtures/README.md): what is stored is what a plain look at the files counts."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import nsightlens as nl
from tests.places import ROOT

TRAINING = ROOT / "fixtures" / "resnet18_h100"


def test_pages_with_the_longest_header_are_read(tmp_path: Path) -> None:
    """The header of this raw page has 95 KB, more than a look at the beginning of a file sees."""
    page = TRAINING / "ncu" / "rank0000.raw.csv.gz"
    rows = list(csv.reader(gzip.decompress(page.read_bytes()).decode().splitlines()))
    duration = rows[0].index("gpu__time_duration.sum")
    with nl.ingest(TRAINING, store=tmp_path / "store", jobs=1) as store:
        refused = store.sql("SELECT path FROM files WHERE outcome = 'refused'").num_rows
        durations = store.sql("SELECT duration_ns FROM kernels WHERE tool = 'ncu' ORDER BY ALL").column(0).to_pylist()
        warnings = store.sql("SELECT code FROM diagnostics WHERE severity <> 'info'").column(0).to_pylist()
    assert len(",".join(rows[0])) > 1 << 16
    assert (refused, warnings) == (0, [])
    assert durations == sorted(int(row[duration]) for row in rows[2:])
