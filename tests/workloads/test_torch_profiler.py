"""wrappers/torch_profiler.py with a real PyTorch on the CPU, into `nsightlens ingest`."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from nsl_annotate import annotate
from torch_profiler import profile

import nsightlens as nl
from tests.places import ROOT
from tests.wrappers.stage import default_signals

WRAPPERS = ROOT / "wrappers"
PROFILER = WRAPPERS / "torch_profiler.py"
QUICK = ["--skip-first", "1", "--wait", "0", "--warmup", "1", "--active", "2"]
LOOP = """
import sys, torch
from torch import nn
model = nn.Linear(8, 4)
optimizer = torch.optim.Adam(model.parameters())
other = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.arange(80.0).view(10, 8), batch_size=1)
for batch in data:
    model(batch).sum().backward()
    if '--train' in sys.argv:
        optimizer.step()
        other.step()
        optimizer.zero_grad()
print(*sys.argv[1:])
"""


def run(*words: str | Path, env: dict[str, str] | None = None, launcher: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NSIGHTLENS_")}
    command = [*(launcher or [sys.executable]), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean | (env or {}), timeout=300)


def events(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def steps(path: Path) -> list[int]:
    return sorted(int(e["name"].split("#")[1]) for e in events(path) if e["name"].startswith("ProfilerStep#"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train me.py"
    path.write_text(LOOP)
    return path


def test_steps_end_with_the_first_optimizer(script: Path, tmp_path: Path) -> None:
    done = run(PROFILER, "--run-dir", tmp_path / "run", *QUICK, script, "--train", "a b")
    assert (done.returncode, done.stdout) == (0, "--train a b\n"), done.stderr
    trace = tmp_path / "run" / "torch" / "rank0000.pt.trace.json.gz"
    assert steps(trace) == [2, 3]
    count = Counter(e["name"] for e in events(trace))
    assert count["Optimizer.step#Adam.step"] == count["Optimizer.step#SGD.step"] == 2
    spans = [(e["name"], float(e["ts"]), float(e["ts"]) + float(e["dur"])) for e in events(trace) if "dur" in e]
    whole = [(begin, end) for name, begin, end in spans if name.startswith("ProfilerStep#")]
    for begin, end in ((begin, end) for name, begin, end in spans if name == "Optimizer.step#Adam.step"):
        assert sum(first <= begin and end <= last for first, last in whole) == 1   # no step cuts it in two
    sidecar = json.loads((tmp_path / "run" / "torch" / "rank0000.run.json").read_text())
    assert (sidecar["exit_code"], sidecar["steps"], sidecar["windows"], sidecar["torch_version"]) == (0, 10, 1, torch.__version__)
    assert sidecar["command"] == [str(script), "--train", "a b"]
    assert not list((tmp_path / "run" / "torch").glob(".*"))


def test_steps_end_with_the_batches_of_an_inference(script: Path, tmp_path: Path) -> None:
    done = run(PROFILER, "--run-dir", tmp_path / "run", *QUICK, "--steps-from", "dataloader", script)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "run" / "torch" / "rank0000.pt.trace.json.gz") == [2, 3]


def test_the_whole_run_without_steps(script: Path, tmp_path: Path) -> None:
    done = run(PROFILER, "--run-dir", tmp_path / "run", "--steps-from", "none", script)
    assert done.returncode == 0, done.stderr
    names = Counter(e["name"] for e in events(tmp_path / "run" / "torch" / "rank0000.pt.trace.json.gz"))
    assert names["aten::linear"] == 10


def test_windows_that_repeat_are_all_kept(script: Path, tmp_path: Path) -> None:
    words = ["--skip-first", "0", "--wait", "1", "--warmup", "1", "--active", "1", "--repeat", "3"]
    done = run(PROFILER, "--run-dir", tmp_path / "run", *words, script, "--train")
    assert done.returncode == 0, done.stderr
    found = sorted((tmp_path / "run" / "torch").glob("*.gz"))
    assert [p.name for p in found] == [f"rank0000{window}.pt.trace.json.gz" for window in ("", ".window1", ".window2")]
    assert [steps(p) for p in found] == [[2], [5], [8]]
    with nl.ingest([tmp_path / "run"], store=tmp_path / "store") as store:
        ranks = store.sql("SELECT DISTINCT rank, rank_source FROM processes").to_pylist()
    assert ranks == [{"rank": 0, "rank_source": "sidecar"}]


def test_too_few_steps_are_told(script: Path, tmp_path: Path) -> None:
    done = run(PROFILER, "--run-dir", tmp_path / "run", script)
    assert done.returncode == 0
    assert "nothing was recorded: 0 steps ended" in done.stderr and "--steps-from dataloader" in done.stderr


def test_a_script_that_fails_before_its_first_step_is_not_told_to_run_more(tmp_path: Path) -> None:
    failing = tmp_path / "fails.py"
    failing.write_text("raise SystemExit(3)\n")
    done = run(PROFILER, "--run-dir", tmp_path / "run", failing)
    assert done.returncode == 3
    assert "the script ended with exit code 3 after 0 steps" in done.stderr and "more steps" not in done.stderr


def test_a_script_that_ends_within_the_window_is_told(script: Path, tmp_path: Path) -> None:
    """The tenth step was the last: torch.profiler has begun an eleventh, and its range stands in the trace."""
    done = run(PROFILER, "--run-dir", tmp_path / "run", "--skip-first", "7", script, "--train")
    assert "after 1 of the window's 3 steps: ProfilerStep#10 in the trace is no step" in done.stderr
    assert steps(tmp_path / "run/torch/rank0000.pt.trace.json.gz") == [9, 10]
    done = run(PROFILER, "--run-dir", tmp_path / "whole", script, "--train")
    assert "is no step" not in done.stderr


@pytest.mark.parametrize(("line", "code"), [("sys.exit(3)", 3), ("raise ValueError('boom')", 1), ("sys.exit('no')", 1)])
def test_the_exit_code_is_the_scripts(script: Path, tmp_path: Path, line: str, code: int) -> None:
    script.write_text(LOOP + line)
    done = run(PROFILER, "--run-dir", tmp_path / "run", *QUICK, script, "--train")
    assert done.returncode == code
    assert "boom" in done.stderr if "boom" in line else True
    assert json.loads((tmp_path / "run" / "torch" / "rank0000.run.json").read_text())["exit_code"] == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_leaves_the_open_window_and_a_second_one_does_not_take_it(
    script: Path, tmp_path: Path, number: signal.Signals, code: int,
) -> None:
    endless = "import itertools, time\nfor batch in itertools.cycle(data):\n    time.sleep(0.01)"
    loop = LOOP.replace("for batch in data:", endless)
    script.write_text(loop.replace("optimizer.zero_grad()", "print('step', flush=True)"))
    schedule = ["--skip-first", "0", "--wait", "0", "--active", "100000"]
    words = [sys.executable, PROFILER, "--run-dir", tmp_path / "run", *schedule, script, "--train"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          preexec_fn=default_signals) as job:
        assert job.stdout is not None
        for _ in range(5):
            job.stdout.readline()
        job.send_signal(number)
        time.sleep(0.05)
        job.send_signal(number)
        job.communicate(timeout=120)
    assert job.returncode in (code, -number)   # the second may come when Python is on its way out
    assert len(steps(tmp_path / "run" / "torch" / "rank0000.pt.trace.json.gz")) >= 3
    assert json.loads((tmp_path / "run" / "torch" / "rank0000.run.json").read_text())["exit_code"] == abs(code) % 128 + 128


def test_an_earlier_capture_is_kept_unless_told(script: Path, tmp_path: Path) -> None:
    words: list[str | Path] = [PROFILER, "--run-dir", tmp_path / "run", *QUICK]
    assert run(*words, script, "--train").returncode == 0
    again = run(*words, script, "--train")
    assert again.returncode == 1 and "--overwrite" in again.stderr and again.stdout == ""
    (tmp_path / "run" / "torch" / "rank0000.steps.json").write_text("{}")   # of the earlier start
    assert run(*words, "--overwrite", script, "--train").returncode == 0
    assert not list((tmp_path / "run").rglob("*.steps.json"))


def test_a_rank_that_is_not_chosen_runs_untouched(script: Path, tmp_path: Path) -> None:
    env = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    done = run(PROFILER, "--run-dir", tmp_path / "run", "--ranks", "0", script, "--train", env=env)
    assert (done.returncode, done.stdout) == (0, "--train\n")
    assert not (tmp_path / "run").exists()


def test_a_module_and_spawned_workers(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").touch()
    spawning = "with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [21]))"
    (package / "train.py").write_text(
        f"import multiprocessing\ndef double(x): return 2 * x\n{LOOP}\nif __name__ == '__main__':\n    {spawning}\n")
    words = ["--run-dir", str(tmp_path / "run"), *QUICK, "-m", "mine.train", "--train"]
    done = subprocess.run([sys.executable, str(PROFILER), *words], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[42]"


def test_as_a_context_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NSIGHTLENS_RUN_ID", "NSIGHTLENS_EXECUTION_ID", "NSIGHTLENS_RUN_DIR"):
        monkeypatch.delenv(name, raising=False)
    with profile(run_dir=str(tmp_path / "base"), skip_first=0, wait=0, warmup=1, active=2, profile_memory=True) as profiler:
        for _ in range(4):
            with annotate("work"):
                torch.ones(64, 64) @ torch.ones(64, 64)
            profiler.step()
    names = Counter(e["name"] for e in events(tmp_path / "base" / "torch" / "rank0000.pt.trace.json.gz"))
    assert names["work"] == names["aten::mm"] == 2
    assert names["[memory]"] > 0


def test_this_torch_records_waits_and_says_which_profiler_runs() -> None:
    """Both interfaces are torch's own affair: a version that lacks them would be missed silently."""
    done = run("-c", f"import sys; sys.path.append({str(WRAPPERS)!r}); import torch, torch_profiler; "
               "assert torch_profiler._sync_events() is not None; "
               "assert torch._C._autograd._profiler_type().name == 'NONE'")
    assert done.returncode == 0, done.stderr


def test_annotate_vanishes_inside_compile() -> None:
    @annotate
    def inner(x: Any) -> Any:
        with annotate("double"):
            return x * 2

    compiled = torch.compile(lambda x: inner(x) + 1, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]


def test_annotate_costs_little_where_nobody_listens() -> None:
    names = Counter[str]()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler, annotate("seen"):
        pass
    with annotate("unseen"):
        time.sleep(0)
    names.update(e.name for e in profiler.events())
    assert names["seen"] == 1 and names["unseen"] == 0


def test_two_ranks_through_torchrun_into_the_table(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    training = ["--batch-size", "2", "--image-size", "32", "--warmup", "1", "--steps", "3", "--threads", "1"]
    where = ["--run-dir", str(tmp_path / "ddp"), "--run-id", "ddp"]
    done = run(PROFILER, *where, *QUICK, WRAPPERS / "workloads" / "training.py", *training, launcher=launcher)
    assert done.returncode == 0, done.stderr
    assert "on 2 x cpu" in done.stdout
    with nl.ingest([tmp_path / "ddp"], store=tmp_path / "store") as store:
        rows = store.sql("""SELECT p.run, p.rank, p.rank_source, p.world_size, count(*) FILTER (r.kind = 'step') AS steps,
            count(*) FILTER (r.name = 'aten::convolution') AS convolutions, count(*) FILTER (r.name = 'forward') AS forwards,
            count(*) FILTER (r.name LIKE 'gloo:all_reduce%') > 0 AS reduces
            FROM ranges r JOIN processes p USING (process_id) GROUP BY ALL ORDER BY p.rank""").to_pylist()
    expected = {"steps": 2, "convolutions": 40, "forwards": 2, "reduces": True}
    assert rows == [{"run": "ddp", "rank": r, "rank_source": "sidecar", "world_size": 2, **expected} for r in (0, 1)]
    written = [json.loads((tmp_path / "ddp" / "torch" / f"rank000{r}.steps.json").read_text()) for r in (0, 1)]
    sidecars = [json.loads((tmp_path / "ddp" / "torch" / f"rank000{r}.run.json").read_text()) for r in (0, 1)]
    assert len({w["execution_id"] for w in written + sidecars}) == 1
    assert [[len(w["steps"]) for w in log["windows"]] for log in written] == [[1, 3], [1, 3]]
