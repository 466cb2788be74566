"""What an IDE shows for store.view is what the headers of the views say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from nsightlens.views import registry, stubs
from tests.places import ROOT

STUBS = ROOT / "nsightlens" / "store" / "view_queries.pyi"


def test_the_stubs_are_up_to_date() -> None:
    up_to_date = STUBS.read_text(encoding="utf-8") == stubs.stubs()
    assert up_to_date, "nsightlens/store/view_queries.pyi is not what the views say; run: make docs"


def test_every_view_has_an_overload_with_its_parameters_and_columns() -> None:
    found = {}
    for node in ast.walk(ast.parse(STUBS.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and not isinstance(node.args.args[1].annotation, ast.Name):
            name = node.args.args[1].annotation
            assert isinstance(name, ast.Subscript)
            first = name.slice.elts[0] if isinstance(name.slice, ast.Tuple) else name.slice
            found[ast.literal_eval(first)] = ({arg.arg for arg in node.args.kwonlyargs}, ast.get_docstring(node) or "")
    for known, view in registry.known().items():
        parameters, text = found.pop(known)
        assert {param.name for param in view.params} <= parameters
        assert all(f"{column}: " in text for column, _ in view.columns), known
    assert not found


@pytest.mark.long
def test_a_type_checker_reads_them(tmp_path: Path) -> None:
    """A name of ours has its own parameters; any other text is a view of the user's."""
    script = tmp_path / "asks.py"
    script.write_text("""import nsightlens as nl

with nl.open("store") as store:
    reveal_type(store.view("top_kernels", how_many=3, only_tool="nsys"))
    reveal_type(store.view("my_own_view", anything=1))
    store.view(5)
""")
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--config-file=", str(script)], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    said = [line.partition("asks.py:")[2] for line in done.stdout.splitlines() if "asks.py:" in line]
    assert said[0].startswith("4: note: Revealed type") and said[1].startswith("5: note: Revealed type"), done.stdout
    assert said[2].startswith("6: error: No overload variant of \"view\" of \"ViewQueries\" matches"), done.stdout
