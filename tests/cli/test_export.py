"""nsightlens export: what it writes, what it says, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsightlens.pipeline.ingest import ingest
from tests.captures import kineto
from tests.cli.command_line import run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    for rank in range(2):
        kineto(folder / "base" / f"rank{rank}.json", [("gemm_kernel", 10.0, 5.0), ("add_kernel", 20.0, 1.0)], rank=rank)
    ingest([folder / "base"], folder / "store", jobs=1)
    return folder / "store"


def test_the_timeline_is_written_and_counted(store: Path, tmp_path: Path) -> None:
    done = run("export", "perfetto", "--store", store, "-o", tmp_path / "t.json", "--rank", "0-1", "--run", "base")
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 processes in 1 execution; 4 kernels, 0 memory operations, 4 arrows" in done.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert f"{len(events):,} events" in done.stderr
    quiet = run("export", "perfetto", "--store", store, "-o", tmp_path / "t.json", "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["-o", "-"], 2, "must end in .json or .json.gz"),
    (["-o", "t.csv"], 2, "must end in .json or .json.gz"),
    ([], 2, "Missing option '-o'"),
    (["-o", "t.json", "--rank", "5"], 2, "no timeline of rank 5; there are: 0, 1"),
    (["-o", "t.json", "--rank", "first"], 2, "give a number, a list (0,2) or a range (0-7)"),
    (["-o", "t.json", "--step", "0,2"], 2, "--step takes consecutive steps, as in 0-2"),
    (["-o", "t.json", "--step", "3-4"], 2, "the store knows no steps"),
    (["-o", "none/t.json"], 1, "none/t.json: cannot be written (No such file or directory)"),
])
def test_refusals_say_why(store: Path, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    placed = [str(tmp_path / word) if word.endswith((".json", ".csv")) else word for word in arguments]
    done = run("export", "perfetto", "--store", store, *placed)
    assert done.returncode == code and message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_flame_graphs_are_printed_or_written(tmp_path: Path) -> None:
    trace = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1_750_000_000 * 10**9, "traceEvents": [
        {"ph": "X", "cat": "python_function", "name": "a.py(1): main", "pid": 7, "tid": 7, "ts": 1, "dur": 90, "args": {}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 2, "dur": 9, "args": {}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 3, "dur": 1,
         "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"correlation": 1}}]}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    ingest([tmp_path / "trace.json"], tmp_path / "store", jobs=1)
    printed = run("export", "flamegraph", "--store", tmp_path / "store", "--format", "collapsed")
    assert (printed.returncode, printed.stdout, printed.stderr) == (0, "a.py(1): main 5000\n", "")
    written = run("export", "flamegraph", "--store", tmp_path / "store", "--weight", "host", "-o", tmp_path / "host.json")
    assert (written.returncode, written.stdout) == (0, "")
    assert written.stderr == f"{tmp_path / 'host.json'}: 1 stack of 1 process; open it at speedscope.app\n"
    assert json.loads((tmp_path / "host.json").read_text())["profiles"][0]["weights"] == [90_000]
    refused = run("export", "flamegraph", "--store", tmp_path / "store", "-o", tmp_path / "none" / "x.json")
    assert refused.returncode == 1 and "cannot be written (No such file or directory)" in refused.stderr


def test_stacks_of_operators_tell_no_host_time(tmp_path: Path) -> None:
    """Torch 1.8 to 1.10 wrote the stack of each operator, and no call of a function."""
    where = {"ph": "X", "pid": 7, "tid": 1, "ts": 1.0, "dur": 90.0}
    operator = where | {"cat": "Operator", "name": "aten::mm", "args": {"Call stack": "train.py(9): main"}}
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [operator]}))
    run("ingest", tmp_path / "t.json", "--store", tmp_path / "store")
    done = run("export", "flamegraph", "--store", tmp_path / "store", "--weight", "host")
    assert (done.returncode, done.stdout) == (2, "") and "--weight gpu" in done.stderr


def test_a_store_without_stacks_has_no_flame_graph(store: Path) -> None:
    done = run("export", "flamegraph", "--store", store)
    assert (done.returncode, done.stdout) == (2, "") and "with_stack=True" in done.stderr
    done = run("export", "flamegraph", "--weight", "cpu_samples", "--store", store)
    assert (done.returncode, done.stdout) == (2, "") and "nsys --sample" in done.stderr
