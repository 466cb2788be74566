"""`make new-view`, in a copy: what it writes runs at once, and failing tests name everything that is left to fill in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from tests.new_view import LIMITS, lay_out, with_row
from tests.places import ROOT

_COPIED = ("nsightlens", "tests", "docs")
_SQL, _CASE = "nsightlens/sql/memory/view_of_the_test.sql", "tests/sql/memory/view_of_the_test.toml"
_ANSWER = "run,tool,launches\nbase,kineto,1\nbase,nsys,2"


def _python(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def _tests_of_the_view(folder: Path) -> tuple[int, str]:
    chosen = "view_of_the_test or test_headers or public_view_has_a_test or every_view_has_its_row or page_of_views"
    return _python(folder, "-m", "pytest", "tests/views/test_registry.py", "tests/test_limits.py", "-k", chosen)


def _fill_in(file: Path, *pairs: tuple[str, str]) -> None:
    text = file.read_text()
    for pattern, filled in pairs:
        text, count = re.subn(pattern, filled, text)
        assert count, pattern
    file.write_text(text)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "nsightlens"
    for name in _COPIED:
        copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return folder


@pytest.mark.long
def test_the_suite_leads_from_the_layout_to_a_view(copy: Path) -> None:
    code, printed = _python(copy, "-m", "tests.new_view", "view_of_the_test", "memory")
    assert code == 0, printed
    assert all(text in printed for text in (_SQL, _CASE, "docs/limits.md", "make test-view NAME=view_of_the_test"))

    code, printed = _tests_of_the_view(copy)
    assert code == 1
    assert f"{_SQL}:1: -- TODO" in printed and f"{_CASE}:2: about" in printed and "docs/limits.md:" in printed
    assert f"`expected` in {_CASE}" in printed and "base,nsys,2" in printed
    assert "run: make docs" in printed

    _fill_in(copy / _SQL, ("TODO: what a row.*", "Launches of each tool."), ("TODO: what it holds.*", "Kernel launches."),
             ("TODO: what must.*", "A launch is a row of the kernels that the tool recorded."))
    _fill_in(copy / _CASE, ("TODO: what this case[^\"]*", "tools stay apart"), ("TODO: the header.*", _ANSWER))
    _fill_in(copy / "docs" / "limits.md", (r"(`view_of_the_test` \|).*TODO.*", r"\1 yes | yes | no | yes | kernels of graphs |"))
    code, printed = _python(copy, "-m", "nsightlens.views.registry")
    (copy / "docs" / "views.md").write_text(printed)
    code, printed = _tests_of_the_view(copy)
    assert code == 0, printed


@pytest.mark.parametrize(("name", "topic", "message"), [
    ("Slow", "memory", "cannot name a view"),
    ("../slow", "memory", "cannot name a view"),
    ("slow", "../memory", "TOPIC is one of capture, gpu"),
    ("kernel_summary", "memory", "kernel_summary already"),
    ("straggler", "memory", "straggler already"),
    ("kernels", "memory", "kernels already"),
])
def test_what_cannot_be_laid_out_is_refused(name: str, topic: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        lay_out(name, topic)


@pytest.mark.parametrize("name", ["aaa", "kernel_sums", "zzz"])
def test_a_row_stands_in_its_place_and_nothing_else_moves(name: str) -> None:
    before = LIMITS.read_text(encoding="utf-8").splitlines()
    after = with_row("\n".join([*before, ""]), name).splitlines()
    row = next(line for line in after if line.startswith(f"| `{name}`"))
    place = after.index(row)
    assert after[:place] + after[place + 1:] == before
    neighbours = [line.split("`")[1] for line in after[place - 1:place + 2] if line.startswith("| `")]
    assert neighbours == sorted(neighbours) and len(neighbours) >= 2


def test_make_calls_it() -> None:
    done = subprocess.run(["make", "-n", "--no-print-directory", "new-view", "NAME=view_of_the_test", "TOPIC=memory"], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].endswith("-m tests.new_view view_of_the_test memory")
