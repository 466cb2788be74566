"""nsightlens hta: the files of a run, handed to HTA as they are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.captures import kineto
from tests.cli.command_line import run

KERNELS = [("gemm_kernel", 10.0, 5.0), ("ncclDevKernel_AllReduce", 20.0, 1.0)]


def _in_its_own_process(
    *arguments: str | Path, stdin: str | None = None, environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "nsightlens", *map(str, arguments)], capture_output=True, text=True, check=False,
                          input=stdin, env={**os.environ, **(environment or {})})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hta")
    for rank in (3, 1):
        kineto(folder / "base" / f"it's rank{rank}.json", KERNELS, rank=rank, pid=70 + rank)
    kineto(folder / "alone" / "trace.json", KERNELS)
    kineto(folder / "gone" / "trace.json", KERNELS, rank=0, pid=90)
    done = run("ingest", folder / "base", folder / "alone", folder / "gone", "--store", folder / "store")
    assert done.returncode == 0, done.stderr
    (folder / "gone" / "trace.json").unlink()
    return folder / "store"


def test_the_code_names_each_rank_and_file(store: Path) -> None:
    done = run("hta", "base", "--print", "--store", store)
    assert done.returncode == 0, done.stderr
    files = next(node.value for node in ast.parse(done.stdout).body if isinstance(node, ast.Assign))
    base = store.parent / "base"
    assert ast.literal_eval(files) == {rank: str(base / f"it's rank{rank}.json") for rank in (1, 3)}


def test_an_unknown_rank_is_said(store: Path) -> None:
    done = run("hta", "alone", "--print", "--store", store)
    assert "trace.json" in done.stdout and "rank unknown; passed to HTA as rank 0" in done.stderr


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (("nothing",), 2, "run nothing has no PyTorch traces in the store; those that have: alone, base"),
    (("gone",), 1, "not found at the path it was ingested from"),
    (("base", "--window", "4"), 2, "no window 4; there are 0"),
])
def test_what_cannot_be_handed_over(store: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run("hta", *arguments, "--print", "--store", store)
    assert done.returncode == code and message in done.stderr


def test_without_hta_it_says_what_to_install(store: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['hta'] = None\n")
    done = _in_its_own_process("hta", "base", "--store", store, environment={"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}"})
    assert done.returncode == 1 and "pip install 'nsightlens[hta]'" in done.stderr and "Traceback" not in done.stderr


def test_hta_opens_them(store: Path) -> None:
    pytest.importorskip("hta")
    before = {path: path.read_bytes() for path in (store.parent / "base").iterdir()}
    code = "print(sorted(trace.t.traces), len(trace.get_temporal_breakdown(visualize=False)))\n"
    done = _in_its_own_process("hta", "base", "--store", store, stdin=code)
    assert "[1, 3] 2" in done.stdout, done.stderr
    assert {path: path.read_bytes() for path in (store.parent / "base").iterdir()} == before
