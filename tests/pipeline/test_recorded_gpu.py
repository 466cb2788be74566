"""The real recording of a training on an H100 (fixtures/README.md): what is stored is what a plain look at the files counts."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

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


_PAIRS = """
SELECT n.kernel_id AS ncu, k.start_ns AS start, m.grade, k.step, k.kernel_key = n.kernel_key AS is_alike,
    n.duration_ns / k.duration_ns AS ratio
FROM matches AS m JOIN kernels AS n ON m.other_kernel_id = n.kernel_id JOIN kernels AS k ON m.kernel_id = k.kernel_id
WHERE n.tool = 'ncu' AND k.tool = 'kineto' ORDER BY n.launch_index
"""


def _matched(folder: Path, store: Path) -> list[dict[str, Any]]:
    with nl.ingest(folder, store=store, jobs=1) as opened:
        rows: list[dict[str, Any]] = opened.sql(_PAIRS).to_pylist()
        return rows


def test_every_launch_that_ncu_measured_is_one_of_the_trace(tmp_path: Path) -> None:
    """Only the forward pass has NVTX ranges: autograd launches from a thread of its own. The filter counts on from there."""
    pairs = _matched(TRAINING, tmp_path / "store")
    assert len(pairs) == 63
    assert all(pair["grade"] == "launch" and pair["is_alike"] and pair["step"] == 5 for pair in pairs)
    assert [pair["start"] for pair in pairs] == sorted({pair["start"] for pair in pairs})
    assert sorted(pair["ratio"] for pair in pairs)[31] == pytest.approx(1, abs=0.15)


def test_a_launch_that_the_trace_lost_moves_no_other(tmp_path: Path) -> None:
    shutil.copytree(TRAINING, tmp_path / "lossy")
    path = tmp_path / "lossy" / "torch" / "rank0000.pt.trace.json.gz"
    trace = json.loads(gzip.decompress(path.read_bytes()))
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    products = [event for event in kernels if "dgrad_implicit_gemm" in event["name"]]
    trace["traceEvents"].remove(min(products, key=lambda event: event["ts"]))
    path.write_bytes(gzip.compress(json.dumps(trace).encode(), mtime=0))
    whole = {pair["ncu"]: pair["start"] for pair in _matched(TRAINING, tmp_path / "whole")}
    lossy = [pair for pair in _matched(tmp_path / "lossy", tmp_path / "store") if pair["grade"] == "launch"]
    assert lossy and all(whole[pair["ncu"]] == pair["start"] for pair in lossy)
