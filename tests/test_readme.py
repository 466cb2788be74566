"""The sessions of the README are run, and must print what the README says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.cli import COMMANDS
from tests.places import ROOT

README = (ROOT / "README.md").read_text()


DATA = ROOT.parent / "shared" / "data" / "kineto"
TRACE = "worker0.1623143089861.pt.trace.json.gz"


def _sessions() -> list[list[tuple[str, str]]]:
    """Return the commands of each block of the README, each with what it prints."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    return [re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE) for block in blocks]


def _printed(command: str, folder: Path, **more: str) -> str:
    environment = {**os.environ, **more, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("NSIGHTLENS_STORE", None)
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    return re.sub(r"^\[\d+/\d+\] .*\n", "", done.stdout, flags=re.MULTILINE)


def _says(command: str, expected: str, printed: str) -> None:
    assert printed == expected, f"README.md: if this is what the session should print, put it there:\n$ {command}\n{printed}"


def test_the_session_is_true(tmp_path: Path) -> None:
    """One test, as each command needs what those before it made."""
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    _, bundled = _sessions()
    for command, expected in bundled:
        _says(command, expected, _printed(f"{command} 2>&1" if ">" not in command else command, tmp_path))


@pytest.mark.captures
@pytest.mark.skipif(not DATA.is_dir(), reason="the real captures are not here")
def test_the_session_of_the_public_trace_is_true(tmp_path: Path) -> None:
    """Its tables; messages on standard error are left out."""
    (tmp_path / "resnet50").mkdir()
    shutil.copyfile(DATA / f"pytorch__kineto__tb_plugin__resnet50_num_workers_0__{TRACE}", tmp_path / "resnet50" / TRACE)
    ((command, expected),), _ = _sessions()
    _says(command, expected, _printed(f"({command}) 2> messages.txt", tmp_path, COLUMNS="100"))


def test_every_command_stands_on_its_page() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    missing = [name for name in COMMANDS if f"`nsightlens {name}" not in page]
    assert not missing, f"docs/commands.md: add a row for {missing} to the table of commands"


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 140, "README.md: what, one session, one picture, start, where next; the rest goes to docs/"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_page_that_is_linked_exists(page: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8")) if "://" not in link]
    broken = [link for link in links if not (ROOT / link).is_file()]
    assert links and not broken, f"{page} links to {broken}, which are not there"


def test_every_tier_of_tests_is_explained() -> None:
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "CONTRIBUTING.md"))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`|&& )make ([a-z-]+)", pages, re.MULTILINE))
    assert named <= targets, f"the Makefile has no target {named - targets}; README.md or CONTRIBUTING.md names it"
    missing = {name for name in targets if name.startswith("test")} - named
    assert not missing, f"CONTRIBUTING.md: add {missing} to the table of tests"


def test_ci_runs_what_the_makefile_has() -> None:
    called = re.findall(r"\bmake ([\w-]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    targets = re.findall(r"^((?:test|demo|docs-)[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    # A part of make test; minutes a room, and a person to judge what survives; all of make test a second time; minutes, and
    # launchers that CI has not.
    left_out = {"test-view", "test-mutants", "test-lowest", "test-launchers"}
    assert set(called) == set(targets) - left_out, f".ci/run: call {set(targets) - left_out - set(called)}"


def test_the_index_of_the_pages_is_whole() -> None:
    links = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / "README.md").read_text()))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    there = pages | {f"../notebooks/{page.name}" for page in (ROOT / "notebooks").glob("*.ipynb")}
    assert links == there, f"docs/README.md: list {there - links}; take out {links - there}"


def test_the_python_face(tmp_path: Path) -> None:
    store = nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=tmp_path / "python-store")
    assert store.view("kernel_summary", only_tool="ncu").num_rows > 0
    assert store.views["kernel_summary"].doc and store.views["top_kernels"].params
    nl.plots.top_kernels(store.view("top_kernels", only_tool="nsys")).savefig(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text().startswith("<?xml")
