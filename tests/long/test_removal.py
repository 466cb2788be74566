"""A feature is the files that bear its name: without them, their lines in tuples and what requires them, the suite is green.

Of the suite those tests run that can see the difference: they name the feature or what requires it, or they ask a module that
lists features for its list. The slow ones of the latter are left to the suite itself.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from nsightlens.views import registry
from tests.places import ROOT
from tests.test_architecture import ROOMS

TUPLES = (
    "nsightlens/cli/__init__.py", "nsightlens/pages/sections.py", "nsightlens/cli/summary.py", "nsightlens/plots/__init__.py",
    "nsightlens/html_report/assets.py", "nsightlens/html_report/page/main.js", "nsightlens/views/start.py",
    "nsightlens/mcp/server.py", "tests/cli/test_completion.py", "tests/cli/test_scripts.py", "tests/pages/test_why_empty.py",
    "tests/cli/test_views_option.py", "tests/mcp/test_server.py", "tests/mcp/questions.py", "tests/cli/test_json.py",
    "tests/cli/test_show.py", "tests/test_language.py", "tests/test_notebooks.py", "tests/cli/test_captures.py", "Makefile",
    "nsightlens/terminal/quoting.py", "tests/cli/test_secrets.py", "tests/store/test_hostile_catalogs.py",
    "tests/terminal/test_output.py",
)
"""Files that name a feature in a line of its own: of a tuple, of an example, of the demo."""


BLIND = (*ROOMS[:ROOMS.index("views")], "recording", "wrappers", "launchers", "fuzz", "browser", "workloads", "mutants", "long")
"""Folders of tests of rooms that can import no view, of the capture scripts, and of what is run apart."""
LISTING = {name.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".") for name in TUPLES
           if name.startswith("nsightlens/") and name.endswith(".py")} | {"nsightlens.views.registry", "nsightlens.views.folder"}
"""Modules that list features."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the checkout, a git repository of its own."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / "copy" / name)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path / "copy", check=True)
    return tmp_path / "copy"


def requiring(stem: str) -> set[str]:
    """Return the views and analyses that require, directly or not, a view whose file git finds under *stem*."""
    views = registry.load() | registry.analyses()
    files = {path.stem: path for path in registry.sql_files()}
    gone = {name for name in views if stem in str(files.get(name, name))}
    found = gone
    while more := {name for name, view in views.items() if set(view.requires) & found} - found:
        found = found | more
    return found - gone


def remove(copy: Path, stem: str) -> None:
    """Take the files whose path holds `stem` out of the copy, and every line that names them alone."""
    subprocess.run(["git", "rm", "-rqf", f"*{stem}*"], cwd=copy, check=True)
    for name in TUPLES:
        lines = (copy / name).read_text().splitlines(keepends=True)
        (copy / name).write_text("".join(line for line in lines if stem not in line))
    for page in (*copy.glob("*.md"), *copy.glob("docs/*.md"), *copy.glob("notebooks/*.ipynb")):
        page.write_text(without(stem, page.read_text()))


def without(stem: str, page: str) -> str:
    """Return a page without the commands, links and rows of tables (by the first cell, or a cell that is its name) of `stem`."""
    page = re.sub(rf"^\$ .*{stem}.*\n(?:(?!\$ |```).*\n)*", "", page, flags=re.MULTILINE)  # a command and what it prints
    of_it = re.compile(rf"\]\([^)]*{stem}[^)]*\)|^\| `(?:nsightlens )?\w*{stem}|^\| [^|`]*{stem}|^\|.*\| `{stem}` \|")
    return "".join(line for line in page.splitlines(keepends=True) if not of_it.search(line))


def imported(path: Path) -> set[str]:
    """Return the names that a file imports, with their modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def with_helpers(path: Path) -> set[Path]:
    """Return a file of tests with those of ours that it imports, directly or not, but for what all have (conftest.py)."""
    found, left = set(), {path}
    while left:
        found |= left
        named = {ROOT / f"{name.replace('.', '/')}.py" for one in left for name in imported(one) if name.startswith("tests.")}
        left = {one for one in named if one.is_file() and one.name != "conftest.py"} - found
    return found


def seeing(copy: Path, words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files of quick and slow tests in the copy that name one of these words, and those that only ask for a list."""
    names = re.compile(rf"\b(?:\w*_)?(?:{'|'.join(words)})(?:_\w*)?\b")
    naming, listing = [], []
    for place in sorted(path.relative_to(copy) for path in copy.glob("tests/**/test_*.py")):
        if place.parts[1] in BLIND:
            continue
        files = with_helpers(ROOT / place)
        if any(names.search(file.read_text(encoding="utf-8")) for file in files):
            naming.append(str(place))
        elif any(imported(file) & LISTING for file in files):
            listing.append(str(place))
    return naming, listing


def run(copy: Path, *command: str) -> str:
    """Return what a command prints in the copy, whose package is the one that is imported."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"without the feature, {' '.join(command)} says:\n{done.stdout[-8000:]}"
    return done.stdout


@pytest.mark.parametrize("stem", ["roofline"])
def test_the_suite_is_green_without(stem: str, copy: Path) -> None:
    assert requiring(stem) == {"headroom", "mfu", "shape_agreement"}
    for name in (stem, *sorted(requiring(stem))):
        remove(copy, name)
    assert not [path for path in copy.rglob(f"*{stem}*") if ".git" not in path.parts]
    for page, maker in (("docs/views.md", "registry"), ("nsightlens/store/view_queries.pyi", "stubs")):
        (copy / page).write_text(run(copy, sys.executable, "-m", f"nsightlens.views.{maker}"))
    run(copy, sys.executable, "-m", "ruff", "check", ".")
    naming, listing = seeing(copy, (stem, *requiring(stem)))
    for files, which in ((naming, "not captures and not long"), (listing, "not captures and not long and not slow")):
        assert len(files) > 20
        run(copy, sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", which, *files)
    printed = run(copy, "make", "demo", "--old-file=.venv/.core", f"BIN={Path(sys.executable).parent}")
    assert "kernels" in printed and not list((copy / "demo-output").glob("*.png"))
