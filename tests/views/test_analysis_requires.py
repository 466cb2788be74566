"""Analyses declare with @requires the views and tables that they ask for: all that their queries name, and no others."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import analyses
from nsightlens.store.store import Store
from nsightlens.views import registry, signature
from tests.conftest import Shared
from tests.places import ROOT

ASKABLE = {*registry.load(), *registry.TABLES}
ROOMS = ("analyses", "diagnosis", "matching")
"""Where an analysis and what it imports may hold queries."""


def _named(query: str) -> set[str]:
    return set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", query)) & ASKABLE


def _queries(source: str) -> list[str]:
    """Return the string constants of a module, but not its docstrings."""
    module = ast.parse(source)
    documented = (node for node in ast.walk(module) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
    docstrings = {id(node.body[0].value) for node in documented if isinstance(node.body[0], ast.Expr)}
    return [node.value for node in ast.walk(module)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings]


def _two_runs(folder: Path) -> None:
    for run in ("base", "other"):
        captures = shutil.copytree(ROOT / "fixtures" / "simulated_resnet18_ddp", folder / run)
        nl.ingest(captures, store=folder / "store", run=run, jobs=1).close()


@pytest.fixture(scope="module")
def two_runs(shared: Shared) -> Store:
    return nl.open(shared("two-runs", _two_runs) / "store")


@pytest.mark.parametrize("name", registry.analyses())
def test_requires_names_what_the_queries_name(name: str) -> None:
    view = registry.analyses()[name]
    imported = [file.read_text(encoding="utf-8") for file in signature.imports(view) if file.parent.name in ROOMS]
    named = {word for source in (view.source, *imported) for query in _queries(source) for word in _named(query)}
    assert set(view.requires) == named, f"{view.place}: its @requires, and FROM and JOIN of its queries"
    assert len(view.requires) == len(set(view.requires))


@pytest.mark.long
@pytest.mark.parametrize("name", registry.analyses())
def test_an_analysis_asks_for_nothing_else(name: str, two_runs: Store) -> None:
    view, asked = registry.analyses()[name], set()

    def ask(query: str, values: Sequence[object]) -> pa.Table:
        asked.update(_named(query))
        return two_runs._ask(query, values)

    analyses.run(view, {}, ask)
    assert asked and asked <= set(view.requires)
