"""Exceptions carry what their messages say, and survive the way between processes."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens import errors
from nsightlens.errors import no_store, not_a_choice, other_schema
from tests.places import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES: list[Exception] = [
    errors.NsightlensError("it failed"),
    errors.UsageError("there is no view x", subject="view", value="x", choices=["a", "b"], view="y"),
    not_a_choice("headroom", "by", "layer", ["op", "step"]),
    errors.ReadError("a.json", "cut", "Copy it again", "truncated"),
    errors.UnknownFormatError("a.txt", "text", "Leave it out"),
    errors.OverlapError("they overlap"),
    errors.SchemaError("table kernels has no column x", "kernels"),
    errors.ViewError(Path("a.sql"), 3, "no SELECT"),
    errors.MissingExtraError("scipy", "compare"),
    errors.StoreError("store: the disk is full", Path("store")),
    no_store(Path("store")),
    other_schema("store", 3, 12),
    errors.BalanceWarning("busy_time", "1 row: 3 ns"),
    errors.OldRulesWarning("store", 2),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: f"{type(error).__name__} {error}"[:40])
def test_they_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


def test_messages_are_made_of_the_attributes() -> None:
    error = not_a_choice("headroom", "by", "layer", ["op", "step"])
    assert str(error) == "headroom: by is one of op, step, not 'layer'"
    assert (error.view, error.subject, error.value, error.choices) == ("headroom", "by", "layer", ("op", "step"))
    store = other_schema(Path("store"), 3, 12)
    assert str(store) == ("store: written with schema 3, this nsightlens has 12. "
                          "Rebuild it from its captures first: nsightlens refresh --store store")
    assert store.path == "store" and store.what_to_do and store.what_to_do in str(store)


def test_the_page_names_every_attribute() -> None:
    public = {name for name in nl.__all__ if isinstance(getattr(nl, name), type) and issubclass(getattr(nl, name), Exception)}
    for error in EXAMPLES:
        name = type(error).__name__
        if name in public - {"NsightlensError", "UnknownFormatError"}:
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `nl.{name}`"))
            assert set(vars(error)) <= set(re.findall(r"`(\w+)`", row)), row
    assert all(f"`nl.{name}`" in PAGE for name in public)


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.BalanceWarning)
        exec(compile(code, "docs/python.md", "exec"), {})
    assert capsys.readouterr().out.count(" | ") == 2
