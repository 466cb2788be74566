"""Words are for people alone: with every word of every sentence changed, what is grouped, named and counted stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nsightlens as nl
from nsightlens.html_report.overview import Overview, overview
from nsightlens.pages import section
from nsightlens.pages.page import Renderer
from nsightlens.pages.section import Line, Section
from nsightlens.terminal.command import Command
from nsightlens.terminal.text import parts
from nsightlens.views import registry

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

SENTENCES = ("subject", "issuer", "what", "action", "against")
CAUSES = ("late rank", "API calls", "computing")
ROWS: list[dict[str, Any]] = [{
    "run": "r", "tool": "nsys", "cause": cause, "subject": "cudaMalloc", "issuer": None, "who": "rank 3",
    "total_ns": 1_500_000_000, "of_ns": 5_000_000_000, "share_pct": 30.0, "winnable_ns": 7,
    "what": "in 3 gaps, cudaMalloc", "action": "wait less",
    "against": None, "confidence": "high", "command": ["show", "cuda_api_summary"]} for cause in CAUSES]


def _changed(sentence: str | None) -> str | None:
    """Return a sentence of which every word is another one, and every sign is gone."""
    return None if sentence is None else " ".join(f"w{word[::-1]}" for word in re.findall(r"\w+", sentence))


def test_a_report_keeps_its_findings_and_their_commands() -> None:
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in (
        "profile_overview", "diagnostic_summary", "time_tree", "step_breakdown", "verdict")}
    bounds = {"run": "r", "tool": "nsys", "kind": "verdict", "text": "Of 2.000 s, computing takes 80.0 %."}
    ours, theirs = (overview("r", answers | {
        "findings": [row | {name: said(row[name]) for name in SENTENCES} for row in ROWS],
        "verdict": [bounds | {"text": said(bounds["text"])}]}) for said in (lambda text: text, _changed))
    assert _facts(ours) == _facts(theirs) and [cause for cause, *_ in _facts(ours)] == [*CAUSES]
    assert len(ours.verdict) == len(theirs.verdict) == 1


def _facts(found: Overview) -> list[tuple[object, ...]]:
    return [(card.row["cause"], card.row["who"], card.figures, card.command) for card in found.findings]


def _in_other_words(text: Text) -> Text:
    return tuple(part if isinstance(part, Command) else _changed(part) or "" for part in parts(text))


def _reworded(sections: list[Section]) -> Iterator[Section]:
    for one in sections:
        yield replace(one, title=_changed(one.title) or "", note=_in_other_words(one.note),
                      lines=tuple(Line(_in_other_words(line.text), line.mark) for line in one.lines))


def test_a_page_in_other_words_has_its_tables_and_commands(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nsightlens.pages import api, summary
    from nsightlens.pages.sections import with_absent

    made: list[list[Section]] = []

    def kept(composed: Any) -> list[Section]:
        made.append(with_absent(composed))
        return made[-1]

    monkeypatch.setattr(summary, "with_absent", kept)
    with nl.open(bundled_store) as store:
        api.summary(store, {})
    (sections,) = made
    told: list[Command] = []

    def noted(command: Command) -> str:
        told.append(command)
        return "?"

    drawn = Renderer(noted, 160).drawn(_reworded(sections))
    assert told == [command for one in sections for command in one.commands] and len(told) > 2
    grids = [Renderer(width=160).drawn([Section(columns=one.columns)]) for one in sections if one.columns]
    assert len(grids) > 8 and all(set(grid) <= set(drawn) for grid in grids)
    assert section.LEFT_OUT in {line.mark for one in sections for line in one.lines}


def test_columns_in_other_words_hold_names_of_the_same() -> None:
    views = registry.load() | registry.analyses()
    reworded = {name: replace(view, columns=tuple((column, _changed(doc) or "") for column, doc in view.columns))
                for name, view in views.items()}
    asked = [(name, word) for name in views for word in ("kernel", "op", "function", "annotation")]
    meant = [registry.under_another_name(views[name], word) for name, word in asked]
    assert meant == [registry.under_another_name(reworded[name], word) for name, word in asked] and len({*meant}) > 2
    assert reworded["top_kernels"].kernels == ["name"] and reworded["kernels_joined"].kernels == ["name", "kernel_key"]
