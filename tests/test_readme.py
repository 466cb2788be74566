"""The sessions of the README are run, and must print what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def _session() -> list[tuple[str, str]]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    return [(command, output) for block in blocks
            for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("readme")
    (path / "fixtures").symlink_to(ROOT / "fixtures")
    return path


@pytest.mark.parametrize(("command", "expected"), _session(), ids=lambda text: text[:30])
def test_the_session_is_true(folder: Path, command: str, expected: str) -> None:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("NSIGHTLENS_STORE", None)
    done = subprocess.run(["bash", "-c", f"{command} 2>&1" if ">" not in command else command], cwd=folder, env=environment,
                          text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    printed = re.sub(r"^\[\d+/\d+\] .*\n", "", done.stdout, flags=re.MULTILINE)
    assert (done.returncode, printed) == (0, expected)


def test_every_command_stands_in_the_readme() -> None:
    assert not [name for name in COMMANDS if f"`nsightlens {name}" not in README]


def test_every_page_that_is_linked_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert links and not [link for link in links if not (ROOT / link).is_file()]


def test_the_index_of_the_pages_is_whole() -> None:
    links = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / "README.md").read_text()))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert links == pages | {f"../notebooks/{page.name}" for page in (ROOT / "notebooks").glob("*.ipynb")}


def test_the_python_face(folder: Path) -> None:
    store = nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=folder / "python-store")
    assert store.view("kernel_summary", only_tool="ncu").num_rows > 0
    assert store.views["roofline"].doc and store.views["top_kernels"].params
    nl.plots.roofline(store.view("roofline", kernel="s16816gemm")).savefig(folder / "x.svg")
    assert (folder / "x.svg").read_text().startswith("<?xml")
