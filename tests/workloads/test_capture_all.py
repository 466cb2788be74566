"""capture_all.sh on a machine without GPU, with a real PyTorch and torchrun, and `nsightlens ingest` of it without an option."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nsightlens as nl
from tests.wrappers.stage import WRAPPERS

WORDS = "--batch-size 2 --image-size 32 --warmup 2 --steps 9 --threads 1 --device cpu"
LAUNCHER = "torchrun --standalone --no-python --nproc-per-node 2"
EXECUTIONS = """
SELECT DISTINCT tool, profiler, execution_id FROM profiles LEFT JOIN step_times USING (profile_id, run, tool)
"""
RANGES = """
SELECT p.rank, p.world_size, p.rank_source, count(*) FILTER (r.kind = 'step') AS steps,
    list(DISTINCT r.step ORDER BY r.step) FILTER (r.step IS NOT NULL) AS numbers,
    count(*) FILTER (r.name = 'aten::convolution' AND r.kind = 'operator') AS convolutions,
    list(DISTINCT r.name ORDER BY r.name) FILTER (r.kind = 'annotation'
        AND r.name IN ('data', 'forward', 'backward', 'optimizer')) AS phases
FROM ranges AS r JOIN processes AS p USING (process_id) GROUP BY ALL ORDER BY p.rank
"""


def test_ranks_steps_and_operators_without_an_option(tmp_path: Path) -> None:
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    call = f"{WRAPPERS}/capture_all.sh --run-dir base --launcher '{LAUNCHER}' -- python {WRAPPERS}/workloads/training.py {WORDS}"
    done = subprocess.run(["bash", "-c", call], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "nsys skipped" in done.stderr and "ncu skipped" in done.stderr
    with nl.ingest(tmp_path / "base", store=tmp_path / "store") as store:
        assert store.sql("SELECT DISTINCT run FROM profiles").to_pylist() == [{"run": "base"}]
        seen = store.sql(RANGES).to_pylist()
        times = store.view("step_time_summary").to_pylist()
        executions = store.sql(EXECUTIONS).to_pylist()
    expected = {"world_size": 2, "rank_source": "sidecar", "steps": 3, "numbers": [7, 8, 9], "convolutions": 60,
                "phases": ["backward", "data", "forward", "optimizer"]}
    assert seen == [{"rank": rank, **expected} for rank in (0, 1)]
    assert [(t["profiler"], t["rank"], t["segment_name"], t["steps"]) for t in times] == [
        (under, rank, *window) for under in ("none", "kineto") for rank in (0, 1) for window in (("warmup", 2), ("measure", 9))]
    assert all(t["min_ns"] <= t["median_ns"] <= t["max_ns"] and t["step_ns"] > 0 for t in times)
    ids = {(e["tool"], e["profiler"]): e["execution_id"] for e in executions}
    assert len(executions) == len(ids) == 3   # one execution per tool, the same for both ranks
    assert ids["steps", "kineto"] == ids["kineto", None] != ids["steps", "none"]
