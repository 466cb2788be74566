"""One job in several folders, and several starts of it: windows of the same process, or recordings of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nsightlens as nl
from tests.captures import BASE_NS, GEMM, kineto

_NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"


def _trace(path: Path, rank: int, pid: int, seconds: int) -> None:
    kernels = [(name, 1000.0 + 100 * n + (30 * rank if name == GEMM else 60), 5.0) for n in range(6) for name in (GEMM, _NCCL)]
    kineto(path, kernels, rank=rank, pid=pid)
    trace = json.loads(path.read_text())
    trace["baseTimeNanoseconds"] = BASE_NS + seconds * 10**9
    path.write_text(json.dumps(trace))


@pytest.mark.parametrize(("pids", "recordings", "windows"), [((70, 70), 1, 2), ((70, 90), 2, 1)])
def test_folders_of_a_job_are_windows_or_recordings(
    tmp_path: Path, pids: tuple[int, int], recordings: int, windows: int,
) -> None:
    for number, pid in enumerate(pids):
        for rank in (0, 1):
            _trace(tmp_path / "run" / f"iteration_{number}" / f"rank{rank}_trace.json", rank, pid + rank, 20 * number)
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1) as store:
        assert len(set(store.view("recordings")["recording"].to_pylist())) == recordings
        assert set(store.sql("SELECT windows FROM profiles")["windows"].to_pylist()) == {windows}
        calls = store.view("collective_match").to_pylist()
        assert len({(call["execution_id"], call["call_index"]) for call in calls}) == 12
        assert len({call["execution_id"] for call in calls}) == recordings
