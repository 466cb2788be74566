"""The sdist and the wheel as a release builds them, and the wheel in a venv that holds nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import nsightlens as nl
from nsightlens.views import registry
from tests.places import ROOT
from tests.test_packaging import BUILT_FROM

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


def _environment() -> dict[str, str]:
    """Return the environment without what it says of nsightlens or Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("NSIGHTLENS", "PYTHONPATH"))}


def _call(*command: str | Path, cwd: Path) -> str:
    """Run a program outside the checkout; return what it printed."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built out of it, from a checkout in which somebody has worked."""
    folder = tmp_path_factory.mktemp("release")
    source = folder / "source"
    for name in ("nsightlens", "wrappers", "tests"):
        copytree(ROOT / name, source / name, ignore=ignore_patterns("__pycache__", ".*"))
    for name in BUILT_FROM:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    store = source / "nsightlens-store" / "run=base"
    store.mkdir(parents=True)
    (store / "leftover.py").write_text("")
    _call(sys.executable, "-m", "build", "--outdir", folder, source, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def site(release: Path) -> Path:
    """Return the bin folder of a new venv with the wheel and what it declares."""
    _call(sys.executable, "-m", "venv", "site", cwd=release)
    scripts = release / "site" / "bin"
    _call(scripts / "python", "-m", "pip", "install", "--quiet", next(release.glob("*.whl")), cwd=release)
    return scripts


def test_the_wheel_holds_the_package_and_the_wrappers(release: Path) -> None:
    with zipfile.ZipFile(next(release.glob("*.whl"))) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    package = {f"nsightlens/{name}" for name in _files(ROOT / "nsightlens")}
    wrappers = {f"nsightlens/_wrappers/{name}" for name in _files(ROOT / "wrappers")}
    elsewhere = wrappers | {"nsightlens/_glossary.md"}
    assert held == package | elsewhere, "package data: [tool.setuptools.package-data] in pyproject.toml; else: setup.py"


def test_the_sdist_holds_what_the_wheel_is_built_from(release: Path) -> None:
    with tarfile.open(next(release.glob("*.tar.gz"))) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    assert {*BUILT_FROM, *(f"wrappers/{name}" for name in _files(ROOT / "wrappers"))} <= held
    assert not [name for name in held if name.startswith(("tests", "nsightlens-store"))], "leave it out in MANIFEST.in"


def test_the_names_and_versions_are_those_of_the_package(release: Path, site: Path) -> None:
    assert {path.name for path in release.glob("nsightlens-*.*") if path.is_file()} == {
        f"nsightlens-{nl.__version__}.tar.gz", f"nsightlens-{nl.__version__}-py3-none-any.whl"}
    assert _call(site / "nsightlens", "--version", cwd=release).split()[-1] == nl.__version__
    listed = _call(site / "python", "-m", "pip", "list", "--format", "freeze", cwd=release)
    assert f"nsightlens=={nl.__version__}" in listed.splitlines()
    _call(site / "python", "-m", "pip", "check", cwd=release)


def test_a_run_is_read_and_answered(release: Path, site: Path) -> None:
    _call(site / "nsightlens", "ingest", RUN, "--store", "store", cwd=release)
    with nl.open(release / "store") as store:
        expected = store.view("kernel_summary").num_rows
    shown = _call(site / "nsightlens", "show", "kernel_summary", "--format", "csv", "--store", "store", cwd=release)
    assert len(shown.splitlines()) == expected + 1 > 10
    peaks = _call(site / "nsightlens", "sql", "SELECT name FROM gpu_peaks", "--format", "csv", "--store", "store", cwd=release)
    assert len(peaks.splitlines()) > 10
    for command in ("summary", "compare ranks", "report --output x.html"):
        _call(site / "nsightlens", *command.split(), "--store", "store", cwd=release)


def test_doctor_knows_what_is_installed(release: Path, site: Path) -> None:
    table = json.loads(_call(site / "nsightlens", "doctor", "--format", "json", cwd=release))["rows"]
    states = {row["subject"]: row["state"] for row in table}
    assert [states[name] for name in ("Python", "packages", "imports")] == ["good"] * 3
    absent = ("remote", "dask", "mpi", "hta")
    assert {name: states[f"extra {name}"] for name in absent} == dict.fromkeys(absent, "note")


def test_a_plain_install_draws_compares_and_hands_over_to_pandas(release: Path, site: Path) -> None:
    for name in ("base", "fused"):
        _call(site / "nsightlens", "ingest", RUN, "--run", name, "--store", "two", cwd=release)
    _call(site / "nsightlens", "roofline", "--kernel", "gemm", "--output", "x.png", "--store", "two", cwd=release)
    assert (release / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "fused" in _call(site / "nsightlens", "compare", "runs", "base", "fused", "--store", "two", cwd=release)
    counted = "import nsightlens as nl; print(len(nl.open('two').view('kernel_summary').to_pandas()))"
    assert int(_call(site / "python", "-W", "ignore", "-c", counted, cwd=release)) > 10


def test_the_views_are_all_there(release: Path, site: Path) -> None:
    rows = json.loads(_call(site / "nsightlens", "views", "--format", "json", cwd=release))["rows"]
    assert {row["name"] for row in rows} == set(registry.known())


def test_the_wrappers_come_out(release: Path, site: Path) -> None:
    _call(site / "nsightlens", "wrappers", "out", cwd=release)
    assert _files(release / "out") == _files(ROOT / "wrappers")
