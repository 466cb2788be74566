"""Exceptions carry what their messages say, and survive the way between processes."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import errors
from nsightlens.cli import parameters
from nsightlens.errors import no_store, not_a_choice, other_schema
from nsightlens.store.outputs import check_ending
from nsightlens.views import balance
from tests.places import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("\n## Errors\n")[2].partition("\n## ")[0]
RUN = "simulated_resnet18_ddp"
EXAMPLES: list[Exception] = [
    errors.NsightlensError("it failed"),
    errors.UsageError("there is no view x", subject="view", value="x", choices=["a", "b"], view="y"),
    not_a_choice("run_difference", "by", "layer", ["op", "step"]),
    errors.ReadError("a.json", "cut", "Copy it again", "truncated"),
    errors.UnknownFormatError("a.txt", "text", "Leave it out"),
    errors.OverlapError("they overlap"),
    errors.SchemaError("table kernels has no column x", "kernels"),
    errors.ViewError(Path("a.sql"), 3, "no SELECT"),
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
    error = not_a_choice("run_difference", "by", "layer", ["op", "step"])
    assert str(error) == "run_difference: by is one of op, step, not 'layer'"
    assert (error.view, error.subject, error.value, error.choices) == ("run_difference", "by", "layer", ("op", "step"))
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


@pytest.mark.parametrize(("ask", "subject", "value", "choice"), [
    (lambda store: balance.parse_balance("nothing"), "balance", "nothing", None),
    (lambda store: balance.reconcile(pa.table({"a": [1]}), balance.parse_balance("a = b")), "column", "b", "a"),
    (lambda store: balance.reconcile(pa.table({"a": ["x"], "b": [1]}), balance.parse_balance("a = b")), "column", "a", None),
    (lambda store: nl.open(store.path, views="no-folder"), "views", "no-folder", None),
    (lambda store: nl.ingest(ROOT / "fixtures", "store", rank_pattern="("), "rank_pattern", "(", None),
    (lambda store: nl.report(store, base=RUN, run=[RUN, RUN]), "run", [RUN, RUN], RUN),
    (lambda store: parameters(("top",)), "parameter", "top", None),
    (lambda store: check_ending(Path("x.bmp"), (".png", ".svg")), "format", ".bmp", ".svg"),
])
def test_a_wrong_request_says_what_was_wrong_and_what_there_is(
    bundled_store: Path, ask: Callable[[nl.Store], object], subject: str, value: object, choice: str | None,
) -> None:
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError) as raised:
        ask(store)
    error = raised.value
    assert (error.subject, error.value) == (subject, value)
    assert choice in error.choices if choice else error.choices == ()
