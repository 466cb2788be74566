"""The simulated run, through the whole road, against the truth that its generator wrote down."""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"


def _truth(name: str) -> list[dict[str, str]]:
    path = RUN / "truth" / name
    data = path.read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Store:
    return nl.open(bundled_store)


def test_totals_per_tool_and_rank(store: Store) -> None:
    kernels = store.sql("SELECT tool, rank, count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM kernels GROUP BY ALL").to_pylist()
    assert {(r["tool"], r["rank"]): (r["n"], r["ns"]) for r in kernels} == {
        (t["tool"], int(t["rank"])): (int(t["kernels"]), int(t["kernel_ns"])) for t in _truth("totals.tsv")}
    copies = store.sql("SELECT tool, rank, count(*) AS n, sum(duration_ns)::BIGINT AS ns, sum(bytes)::BIGINT AS bytes "
                       "FROM memory_ops GROUP BY ALL").to_pylist()
    assert {(r["tool"], r["rank"]): (r["n"], r["ns"], r["bytes"]) for r in copies} == {
        (t["tool"], int(t["rank"])): (int(t["memory_ops"]), int(t["memory_ns"]), int(t["memory_bytes"]))
        for t in _truth("totals.tsv") if t["memory_ops"]}


def test_busy_time(store: Store) -> None:
    rows = {(r["tool"], r["rank"]): r for r in store.view("busy_time", per="process").to_pylist()}
    for truth in _truth("totals.tsv"):
        if truth["busy_ns"]:
            row = rows[truth["tool"], int(truth["rank"])]
            assert [row[k] for k in ("busy_ns", "compute_ns", "communication_ns", "overlap_ns", "graph_ns")] == [
                int(truth[k]) for k in ("busy_ns", "compute_ns", "collective_ns", "overlap_ns", "graph_ns")]
            assert row["span_ns"] == int(truth["last_ns"]) - int(truth["first_ns"])


def test_every_launch_has_one_key_in_all_tools(store: Store) -> None:
    """Join rows to the truth by what each tool itself recorded, then compare the derived names."""
    keys: dict[str, set[str]] = defaultdict(set)
    by_locator: dict[tuple[str, int, int, int], Any] = {}
    for row in store.sql("SELECT tool, rank, correlation_id, ncu_id, kernel_key, duration_ns FROM kernels").to_pylist():
        locator = row["ncu_id"] if row["tool"] == "ncu" else row["correlation_id"]
        by_locator[row["tool"], row["rank"], locator, row["duration_ns"]] = row
    for launch in _truth("launches.tsv.gz"):
        for tool, locator in (("nsys", "nsys_correlation"), ("kineto", "kineto_correlation"), ("ncu", "ncu_id")):
            if launch[f"in_{tool}"] == "1":
                row = by_locator[tool, int(launch["rank"]), int(launch[locator]), int(launch[f"{tool}_duration_ns"])]
                keys[launch["ncu_kernel"] if tool == "ncu" and launch["ncu_kernel"] else launch["kernel"]].add(row["kernel_key"])
    assert all(len(found) == 1 for found in keys.values()), {k: v for k, v in keys.items() if len(v) > 1}
    assert len({next(iter(found)) for found in keys.values()}) == len(keys)


def test_launch_order_is_the_true_one(store: Store) -> None:
    """launch_index follows the truth's order of launch, wherever the tool's own order of calls was not swapped."""
    for tool in ("nsys", "kineto"):
        for rank in (0, 1):
            rows = store.sql("SELECT correlation_id FROM kernels WHERE tool = ? AND rank = ? ORDER BY launch_index",
                             [tool, rank]).to_pylist()
            true = [int(launch[f"{tool}_correlation"]) for launch in _truth("launches.tsv.gz")
                    if launch[f"in_{tool}"] == "1" and int(launch["rank"]) == rank]
            swapped = sum(1 for planted in _truth("planted.tsv") if "swap" in str(planted.values()))
            wrong = sum(a["correlation_id"] != b for a, b in zip(rows, true, strict=True))
            assert wrong <= 2 * swapped, (tool, rank, wrong)


def test_it_is_marked_as_simulated_wherever_it_shows(store: Store) -> None:
    assert set(store.sql("SELECT DISTINCT simulated FROM profiles WHERE profile_id IN (SELECT profile_id FROM files WHERE path "
                         "NOT LIKE '%nsys/rank1%')")["simulated"].to_pylist()) == {True}
    assert all("simulated" in gpu for gpu in store.sql("SELECT DISTINCT gpu FROM kernels")["gpu"].to_pylist())
    assert all("simulated" in run for run in store.sql("SELECT DISTINCT run FROM kernels")["run"].to_pylist())
