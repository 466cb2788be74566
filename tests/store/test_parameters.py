"""Views of scope profile at other parameters than the default ones, in a store that has the answers of the default ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store import answers
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.conftest import Shared
from tests.places import ROOT

SIMULATED = ROOT / "fixtures" / "simulated_resnet18_ddp"
OTHERS: dict[str, object] = {
    "per": "process", "communication_pattern": ".*AllReduce.*", "range_text": "iter", "min_length": 2,
    "how_many": 2, "chunks": 7, "bins": 9,
    "below_pct": 80.0, "kernel_wait_below_ns": 1000, "long_call_ns": 4000, "long_delay_ns": 2000, "full_length": 3, "alike": True}
"""Another value for each parameter of such a view."""
ASKED = [(name, param.name) for name, view in answers.answerable().items() for param in view.params
         if view.sql and not name.startswith("_")]


def _store(shared: Shared, has_answers: bool) -> Store:
    def make(path: Path) -> None:
        rank1 = [next(SIMULATED.glob(pattern)) for pattern in ("nsys/rank1.sqlite*", "torch/rank1*pt.trace.json*")]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(answers, "WORTH_IT", 0)
            nl.ingest(rank1, store=path, answers=has_answers, jobs=1).close()

    return nl.open(shared(f"parameters-{has_answers}", make))


@pytest.fixture(scope="module")
def stores(shared: Shared) -> Iterator[tuple[Store, Store]]:
    """One that has no answers, and one that has."""
    with _store(shared, has_answers=False) as plain, _store(shared, has_answers=True) as answered:
        yield plain, answered


@pytest.mark.long
@pytest.mark.parametrize(("name", "parameter"), ASKED)
def test_rows_at_other_parameters_are_the_same_beside_answers(stores: tuple[Store, Store], name: str, parameter: str) -> None:
    plain, answered = (store.view(name, **{parameter: OTHERS[parameter]}) for store in stores)
    assert plain == answered


def test_every_such_parameter_changes_the_rows_of_some_view(stores: tuple[Store, Store]) -> None:
    def rows(name: str, **parameters: Any) -> list[Any]:
        found: list[Any] = stores[0].view(name, **parameters).to_pylist()
        return found

    changing = {parameter for name, parameter in ASKED if rows(name) != rows(name, **{parameter: OTHERS[parameter]})}
    assert changing >= OTHERS.keys() - {"range_text", "communication_pattern"}


def test_the_views_meant_here_have_these_parameters() -> None:
    assert {parameter for _, parameter in ASKED} == OTHERS.keys()
    assert all(registry.known()[name].scope == "profile" for name, _ in ASKED)
