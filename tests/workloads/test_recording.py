"""nl.recording with a real PyTorch on the CPU: blocks of a program, its ranks, and the store at the end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nsightlens as nl
from tests.places import ROOT

RANKS = """
import sys
import torch, torch.distributed
import nsightlens as nl
torch.distributed.init_process_group('gloo')
with nl.recording.torch_profile(sys.argv[1], ingest=sys.argv[2]) as recording:
    with nl.recording.annotate('mine'):
        torch.ones(4, 4) @ torch.ones(4, 4)
    {end}
rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 'alone'
if recording.store:
    ranks = recording.store.sql('SELECT DISTINCT rank FROM processes ORDER BY rank')['rank'].to_pylist()
    print('rank', rank, 'has ranks', ranks, flush=True)
"""


def linear(times: int = 1) -> None:
    model = torch.nn.Linear(8, 4)
    for _ in range(times):
        model(torch.ones(2, 8)).sum().backward()


def sidecar(run_dir: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run_dir / "torch" / "rank0000.run.json").read_text())
    return found


def operators(store: nl.Store) -> dict[str, int]:
    rows = store.sql("SELECT name, count(*) AS n FROM ranges GROUP BY name").to_pylist()
    return {row["name"]: row["n"] for row in rows}


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("NSIGHTLENS_")}
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False, timeout=300,
                          env=env | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})


def torchrun(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *words)


def test_a_block_is_recorded_whole_and_ingested(tmp_path: Path) -> None:
    with nl.recording.torch_profile(tmp_path / "base", ingest=tmp_path / "store") as recording, nl.recording.annotate("mine"):
        linear(times=3)
    assert recording.store is not None
    with recording.store as store:
        found = operators(store)
        runs = store.sql("SELECT DISTINCT run, tool FROM profiles").to_pylist()
    assert (found["aten::linear"], found["mine"]) == (3, 1) and not [name for name in found if name.startswith("ProfilerStep")]
    assert runs == [{"run": "base", "tool": "kineto"}]
    assert (sidecar(tmp_path / "base")["exit_code"], sidecar(tmp_path / "base")["windows"]) == (0, 1)


def test_a_schedule_records_its_steps(tmp_path: Path) -> None:
    with nl.recording.torch_profile(tmp_path / "base", skip_first=1, wait=0, active=2, ingest=tmp_path / "store") as recording:
        for _ in range(5):
            linear()
            recording.step()
    assert recording.store is not None
    with recording.store as store:
        found = operators(store)
    assert sorted(name for name in found if name.startswith("ProfilerStep#")) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert found["aten::linear"] == 2


def test_a_second_recording_replaces_the_first_only_when_asked(tmp_path: Path) -> None:
    with nl.recording.torch_profile(tmp_path):
        linear()
    with pytest.raises(nl.NsightlensError, match="another run_dir, or use overwrite"), nl.recording.torch_profile(tmp_path):
        pass
    with nl.recording.torch_profile(tmp_path, overwrite=True):
        linear()


def test_what_fails_passes_through_and_is_not_ingested(tmp_path: Path) -> None:
    with (pytest.raises(ZeroDivisionError),
          nl.recording.torch_profile(tmp_path / "base", ingest=tmp_path / "store")):
        linear()
        _ = 1 / 0
    assert (tmp_path / "base/torch/rank0000.pt.trace.json.gz").is_file() and sidecar(tmp_path / "base")["exit_code"] == 1
    assert not (tmp_path / "store").exists()


def test_steps_without_a_schedule_are_warned_of(tmp_path: Path) -> None:
    with nl.recording.torch_profile(tmp_path) as recording, pytest.warns(UserWarning, match="give a schedule, such as active=3"):
        recording.step()


@pytest.mark.parametrize(("options", "says"), [({"active": 3}, "nothing was recorded"), ({"active": 0}, "active counts from 1")])
def test_a_schedule_that_records_nothing_is_an_error(tmp_path: Path, options: dict[str, int], says: str) -> None:
    with (pytest.raises(nl.NsightlensError, match=says),
          nl.recording.torch_profile(tmp_path / "base", ingest=tmp_path / "store", **options) as recording):
        recording.step()


def test_rank_0_ingests_what_all_ranks_wrote(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS.format(end=""))
    done = torchrun(tmp_path / "train.py", tmp_path / "base", tmp_path / "store")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "rank 0 has ranks [0, 1]\n"


def test_ranks_that_cannot_wait_for_each_other_are_told_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS.format(end="torch.distributed.destroy_process_group()"))
    done = torchrun(tmp_path / "train.py", tmp_path / "base", tmp_path / "store")
    assert done.returncode == 1
    assert f"the recordings are kept: nsightlens ingest {tmp_path / 'base'}" in done.stderr
    assert len(list((tmp_path / "base" / "torch").glob("*.pt.trace.json.gz"))) > 0


def test_under_the_wrapper_its_ranges_are_the_same_and_a_second_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS.format(end="").replace("torch.distributed.init_process_group('gloo')", ""))
    words = ["--run-dir", str(tmp_path / "whole"), "--steps-from", "none", str(tmp_path / "train.py")]
    done = run(ROOT / "wrappers" / "torch_profiler.py", *words, tmp_path / "base", tmp_path / "store")
    assert done.returncode == 1
    assert "UsageError: a recording is running in this process already" in done.stderr


def test_the_scripts_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    before = "import torch\nloader = [torch.ones(4, 4)] * 8\ndef train(batch): return batch @ batch\n"
    for number, block in enumerate(blocks):
        (tmp_path / f"{number}.py").write_text(before + block)
        done = subprocess.run([sys.executable, f"{number}.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=300)
        assert done.returncode == 0 and "nothing was recorded" not in done.stderr, done.stderr
    assert (tmp_path / "runs/base/torch/rank0000.pt.trace.json.gz").is_file()
