"""The notebooks run, print what they have stored, and use nothing but the public face."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode

import nsightlens as nl
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.notebooks import FOLDER, paths, prepare, read, run

pytestmark = pytest.mark.long

ROOT = FOLDER.parent
NAMES = [
    "1_quick_start",
    "2_nsys_ncu_true_roofline",
    "3_ranks_and_stragglers",
    "4_your_own_sql",
    "5_eight_ranks_one_is_late",
    "6_reading_ncu_rep",
    "7_your_own_view",
]
_LARGEST = 300_000
_IMPORTS = {"nsightlens", "nsightlens.errors", "duckdb", "pandas", "pathlib"}
_SPELLINGS_OF_NULL = re.compile(r"\b(?:None|NaN|nan)\b|<NA>")  # versions of pandas differ in it


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("notebooks"))


def _read(name: str) -> NotebookNode:
    return read(FOLDER / f"{name}.ipynb")


def _code(name: str) -> Iterator[str]:
    for cell in _read(name).cells:
        if cell.cell_type == "code":
            yield "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))


def _printed(notebook: NotebookNode) -> list[list[tuple[str, str]]]:
    """Return, per cell, what it printed: texts word by word; pictures, HTML and Markdown by their kind only."""
    found = []
    for cell in notebook.cells:
        mine = []
        for output in cell.get("outputs", []):
            texts = {"text/plain": output.text} if output.output_type == "stream" else output.data
            mine += [(kind, " ".join(_SPELLINGS_OF_NULL.sub("NULL", text).split()) if kind == "text/plain" else "")
                     for kind, text in sorted(texts.items())]
        found.append(mine)
    return found


def test_these_are_the_notebooks() -> None:
    assert [path.stem for path in paths()] == NAMES, "list them in NAMES of tests/test_notebooks.py and in docs/README.md"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_prints_what_it_has_stored(name: str, where: Path) -> None:
    """Where the figures changed on purpose: make notebooks, and read what the text around them says."""
    stored, printed = _printed(_read(name)), _printed(run(FOLDER / f"{name}.ipynb", where))
    for number, (old, new) in enumerate(zip(stored, printed, strict=True), 1):
        assert new == old, f"notebooks/{name}.ipynb, cell {number} prints something else; if that is right: make notebooks"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_and_shows_its_answers(name: str) -> None:
    cells = _read(name).cells
    assert (FOLDER / f"{name}.ipynb").stat().st_size < _LARGEST
    assert cells[0].cell_type == "markdown" and re.search("simulated", cells[0].source, re.IGNORECASE)
    assert sum(bool(cell.get("outputs")) for cell in cells) >= 5
    assert not [output for cell in cells for output in cell.get("outputs", []) if output.get("name") == "stderr"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_uses_public_names_only(name: str) -> None:
    public = {"nl": set(nl.__all__), "store": {member for member in dir(Store) if not member.startswith("_")}}
    for source in _code(name):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= _IMPORTS
            elif isinstance(node, ast.ImportFrom):
                assert node.module in _IMPORTS
            elif isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_")
                if isinstance(node.value, ast.Name):
                    assert node.attr in public.get(node.value.id, {node.attr})
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not set(re.findall(r"\b_\w+", node.value)) & registry.load().keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_points_to_what_exists_and_to_no_machine(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", "\n".join(cell.source for cell in _read(name).cells if cell.cell_type == "markdown"))
    assert links and not [link for link in links if "://" not in link and not (FOLDER / link).is_file()]
    assert not re.search(r"/(?:home|tmp|root|work|Users)/|\.venv|" + re.escape(str(ROOT)), text)
