"""A package of nsightlens that is missing or broken is named, in one line, with the command that installs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsightlens.cli import messages
from tests.places import ROOT

INGEST = ["ingest", "fixtures/simulated_resnet18_ddp", "--store", "STORE"]


def run_without(package: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python, and the processes that it starts, that cannot import a package."""
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "COLUMNS": "200"}
    given = [str(folder / "store") if argument == "STORE" else argument for argument in arguments]
    return subprocess.run([sys.executable, "-m", "nsightlens", *given], cwd=ROOT, env=environment, capture_output=True, text=True,
                          check=False)


@pytest.mark.parametrize("package", ["pyarrow", "duckdb", "numpy"])
def test_a_missing_package_is_one_line(tmp_path: Path, package: str) -> None:
    done = run_without(package, tmp_path, *INGEST)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"nsightlens: {package} is not installed, and nsightlens needs it: pip install nsightlens\n"
    assert "Traceback" in run_without(package, tmp_path, "--debug", *INGEST).stderr


@pytest.mark.parametrize("package", ["pyarrow", "duckdb", "numpy"])
def test_doctor_runs_without_it(tmp_path: Path, package: str) -> None:
    done = run_without(package, tmp_path, "doctor", "fixtures/simulated_resnet18_ddp")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.split()[1:2] == ["imports"])
    assert line.startswith("bad") and f"{package} cannot be imported" in line
    assert f"-> pip install --force-reinstall {package}" in done.stdout
    assert done.stdout.endswith("nsightlens cannot read captures here until its installation is repaired.\n")


def test_a_package_that_does_not_load_says_why() -> None:
    broken = messages.broken_installation(ImportError("libarrow.so.2400: cannot open\nmore", name="pyarrow.lib"))
    assert str(broken) == ("pyarrow is installed and cannot be loaded (libarrow.so.2400: cannot open): "
                           "pip install --force-reinstall pyarrow")


def test_any_other_module_is_a_defect() -> None:
    assert messages.broken_installation(ModuleNotFoundError("No module named 'x'", name="nsightlens.x")) is None
    assert messages.broken_installation(ImportError("cannot import name 'x'")) is None
