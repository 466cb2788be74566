"""The real recordings of ResNet-18 on CPUs (fixtures/README.md): what is stored is what a plain look at the files counts."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from tests.places import ROOT

FIXTURES = ROOT / "fixtures"


def content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    return found


@pytest.mark.parametrize(("name", "ranks"), [("resnet18_cpu", [0]), ("resnet18_cpu_ddp", [0, 1])])
def test_ranks_steps_operators_and_step_times(tmp_path: Path, name: str, ranks: list[int]) -> None:
    with nl.ingest(FIXTURES / name, store=tmp_path / "store") as store:
        counted = store.sql("SELECT rank, r.kind, r.name, r.step FROM ranges AS r JOIN processes USING (process_id)").to_pylist()
        times = store.sql("""SELECT profiler, rank, segment_name, step, p.origin_epoch_ns + t.start_ns AS start_epoch_ns,
            duration_ns FROM step_times AS t JOIN profiles AS p USING (profile_id) ORDER BY ALL""").to_pylist()
        runs = store.sql("SELECT DISTINCT run FROM profiles").column(0).to_pylist()
        sources = store.sql("SELECT DISTINCT tool, rank_source FROM processes ORDER BY ALL").to_pylist()
        warnings = store.sql("SELECT code FROM diagnostics WHERE severity <> 'info'").column(0).to_pylist()
    assert (runs, warnings) == ([name], [])
    assert sources == [{"tool": "kineto", "rank_source": "sidecar"}, {"tool": "steps", "rank_source": "content:steps"}]
    for rank in ranks:
        events = content(FIXTURES / name / "torch" / f"rank{rank:04d}.pt.trace.json.gz")["traceEvents"]
        theirs = Counter(e["name"] for e in events if e.get("ph") == "X" and e.get("cat") == "cpu_op")
        assert theirs["aten::convolution"] > 0
        assert Counter(r["name"] for r in counted if r["rank"] == rank and r["kind"] == "operator") == theirs
        steps = sorted(int(e["name"].split("#")[1]) for e in events if e["name"].startswith("ProfilerStep#"))
        assert sorted(r["step"] for r in counted if r["rank"] == rank and r["kind"] == "step") == steps == [3, 4]
    logs = [(under, rank, content(FIXTURES / name / tool / f"rank{rank:04d}.steps.json"))
            for tool, under in (("plain", "none"), ("torch", "kineto")) for rank in ranks]
    expected = [{"profiler": under, "rank": rank, "segment_name": window["name"], "step": step["step"],
                 "start_epoch_ns": step["start_epoch_ns"], "duration_ns": step["end_epoch_ns"] - step["start_epoch_ns"]}
                for under, rank, log in logs for window in log["windows"] for step in window["steps"]]
    assert times == sorted(expected, key=lambda row: tuple(row.values()))
