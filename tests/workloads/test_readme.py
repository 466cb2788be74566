"""The lines of wrappers/README.md that need a PyTorch, each run as it stands; the others are run in tests/wrappers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wrappers.stage import WRAPPERS, readme_blocks, readme_lines

TRAIN = """
import torch
from torch import nn
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.arange(96.0).view(12, 8), batch_size=1):
    model(batch).sum().backward()
    optimizer.step()
"""
# What is added to a workload's line, so that a small machine runs it; the last of two equal options counts.
SMALL = {"training.py": " --batch-size 2 --image-size 32 --sequence 8 --width 32 --warmup 2 --steps 9 --threads 1 --device cpu",
         "gemm.py": " --m 64 --n 64 --k 64 --device cpu"}
BEFORE = "import torch\nx = torch.ones(4, 4)\nloader = [x] * 8\ndef train(batch): return batch @ batch\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wrappers").symlink_to(WRAPPERS)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    for name in ("train.py", "package/train.py"):
        (tmp_path / name).write_text(TRAIN)
    return tmp_path


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(folder), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(WRAPPERS)}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)


def annotated(trace: Path) -> list[str]:
    with gzip.open(trace) as file:
        return [e["name"] for e in json.load(file)["traceEvents"] if e.get("cat") == "user_annotation"]


@pytest.mark.parametrize("line", readme_lines(with_torch=True))
def test_each_line_records(folder: Path, line: str) -> None:
    small = next((words for name, words in SMALL.items() if name in line), "")
    done = run(folder, line.removesuffix("; done") + small + ("; done" if line.endswith("; done") else ""))
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr and "nothing was recorded" not in done.stderr
    written = [p for p in (folder / "runs").rglob("*") if p.is_file()]
    assert any(p.name.endswith(".pt.trace.json.gz" if "torch_profiler.py" in line else ".steps.json") for p in written)
    assert all(json.loads(p.read_text())["exit_code"] == 0 for p in written if p.name.endswith(".run.json"))
    ranks = {p.name[:8] for p in written}
    assert ranks == ({"rank0000", "rank0001"} if "--nproc-per-node 2" in line and "PROFRANK" not in line else {"rank0000"})


@pytest.mark.parametrize("number", range(len(readme_blocks("python"))))
def test_each_script_records(folder: Path, number: int) -> None:
    """As it stands, and what annotate names is in the trace."""
    (folder / "mine.py").write_text(BEFORE + readme_blocks("python")[number])
    inside = "profile(" in readme_blocks("python")[number]
    profiled = "python wrappers/torch_profiler.py --run-dir runs/mine --steps-from none mine.py"
    done = run(folder, "python mine.py" if inside else profiled)
    assert done.returncode == 0, done.stderr
    names = annotated(folder / "runs/mine/torch/rank0000.pt.trace.json.gz")
    if inside:
        assert [n for n in names if n.startswith("ProfilerStep#")] == ["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]
    else:
        assert [names.count(name) for name in ("forward", "block", "attention")] == [3, 3, 3]
