"""The signature of a view changes with all that its rows follow from, and with nothing else."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from nsightlens.views import registry, signature
from nsightlens.views.header import PACKAGE, View

EVERY: dict[str, View] = {**registry.load(), **registry.analyses()}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package, which signatures are made from."""
    shutil.copytree(PACKAGE, tmp_path / "nsightlens", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(signature, "PACKAGE", tmp_path / "nsightlens")
    _forget()
    yield tmp_path / "nsightlens"
    _forget()


def _forget() -> None:
    for kept in (signature._foundation, signature._digest_of, signature._imported_by):
        kept.cache_clear()


def _changed(before: dict[str, str], views: dict[str, View] = EVERY) -> set[str]:
    after = signature.signatures(views)
    return {name for name in before if before[name] != after[name]}


def _standing_on(name: str) -> set[str]:
    found = {name}
    while more := {other for other, view in EVERY.items() if found & set(view.requires)} - found:
        found |= more
    return found


def test_every_view_has_one_of_its_own() -> None:
    found = signature.signatures(EVERY)
    assert found.keys() == EVERY.keys() and len(set(found.values())) == len(EVERY)
    assert found == signature.signatures(dict(reversed(EVERY.items()))), "whatever their order"


@pytest.mark.parametrize("name", ["kernel_summary", "_stream_work", "_ncu_metric", "straggler"])
def test_the_text_of_a_view_changes_what_stands_on_it(name: str) -> None:
    edited = dataclasses.replace(EVERY[name], source=EVERY[name].source + "\n-- edited")
    assert _changed(signature.signatures(EVERY), {**EVERY, name: edited}) == _standing_on(name)


@pytest.mark.parametrize(("file", "changed"), [
    ("analyses/_walk.py", {"critical_path", "critical_path_summary", "headroom"}),
    ("op_cost/contractions.py", {"shape_work", "shape_agreement", "headroom", "mfu", "true_roofline"}),
    ("matching/collectives.py", {"collective_coverage", "collective_match", "communicator_summary", "findings", "mfu",
                                 "rank_clock", "rank_skew", "stage_waits", "straggler", "time_tree", "tree_difference",
                                 "verdict"}),
    ("plots/frame.py", set()),
])
def test_a_module_changes_the_analyses_that_import_it(package: Path, file: str, changed: set[str]) -> None:
    before = signature.signatures(EVERY)
    path = package / file
    path.write_text(path.read_text() + "\n# edited\n")
    _forget()
    assert _changed(before) == changed & EVERY.keys(), "a feature may have been taken out (tests/long/test_removal.py)"


def test_peaks_and_duckdb_change_every_one(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signature.signatures(EVERY)
    monkeypatch.setattr(duckdb, "__version__", f"{duckdb.__version__.partition('.')[0]}.999.0")
    _forget()
    assert _changed(before) == set()
    monkeypatch.setattr(duckdb, "__version__", "999.0.0")
    _forget()
    assert _changed(before) == set(EVERY)
    monkeypatch.undo()
    monkeypatch.setattr(signature, "PACKAGE", package)
    (package / "gpus.csv").write_text((package / "gpus.csv").read_text() + "\n")
    _forget()
    assert _changed(before) == set(EVERY)


def test_imports_inside_of_functions_count(package: Path) -> None:
    source = ('"""Doc."""\nfrom nsightlens.names import (  # all of these\n    key as by_key,\n    typenames,\n)\n'
              "def analyse(ask):\n    from nsightlens.names import label\n    import nsightlens.op_cost.works\n")
    found = signature.imports(dataclasses.replace(EVERY["straggler"], source=source))
    names = {file.relative_to(package).as_posix() for file in found}
    assert {"names/__init__.py", "names/key.py", "names/typenames.py", "names/label.py"} <= names
    assert {"op_cost/__init__.py", "op_cost/works.py"} <= names
