"""What a campaign knows goes on where it stopped, and is counted by room."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("coverage")
pytest.importorskip("cosmic_ray")
from tests.mutants import run
from tests.mutants.run import Mutant
from tests.mutants.shares import Met, State, page
from tests.places import ROOT


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """Draw these mutants."""
    found = []
    for name in ("intervals/order.py", "intervals/disjoint.py", "errors.py"):
        path = ROOT / "nsightlens" / name
        found.append(Mutant(path, path.read_text().replace("import annotations", "import division", 1)))
    monkeypatch.setattr(run, "sample_of_all", lambda count, seed: found)
    return found


def test_a_campaign_goes_on_where_it_stopped(few: list[Mutant], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    met = Met(str(few[0]), "quick", 5)
    State(tmp_path, 3, 1).note(met)
    monkeypatch.setattr(run, "sample_of_all", None)
    again = State(tmp_path, 3, 1)
    assert again.mutants == few and again.met() == {str(few[0]): met}


def test_shares_are_counted_by_room(few: list[Mutant]) -> None:
    met = {str(mutant): Met(str(mutant), killed, 7) for mutant, killed in zip(few, ("quick", "slow", ""), strict=True)}
    lines = page(few, met, 1).splitlines()
    assert [line for line in lines if line.startswith("| ")][1:] == [
        "| errors | 1 | 0 (0.0 %) | 0 (0.0 %) |", "| intervals | 2 | 1 (50.0 %) | 2 (100.0 %) |",
        "| **all** | 3 | 1 (33.3 %) | 2 (66.7 %) |"]
    assert [line for line in lines if line.startswith("- ")] == [f"- {few[1]} (7 tests)", f"- {few[2]} (7 tests)"]
