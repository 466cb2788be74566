"""Words are for people alone: with every word of every sentence changed, what is grouped, named and counted stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import pytest

import nsightlens as nl
from nsightlens.html_report.overview import overview
from nsightlens.pages import findings_page, section
from nsightlens.pages.asked import Page
from nsightlens.pages.page import Renderer
from nsightlens.pages.section import Line, Section
from nsightlens.terminal.command import Command
from nsightlens.terminal.text import parts
from nsightlens.views.finding import Finding
from tests.finding_rows import ROW, findings

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

SENTENCES = ("what", "evidence", "why", "against")
ROWS: list[dict[str, Any]] = [
    ROW | {"evidence": "it arrived last in 5 of 8 matched collectives; its host is late"},
    *(ROW | {"rule": "headroom", "rank": rank, "subject": subject, "what": f"the kernel {subject} runs at 2{rank} % of its roof",
             "command": ["show", "headroom"]} for rank in (0, 1) for subject in ("a", "b")),
    *(ROW | {"rule": "api_call", "rank": rank, "subject": "cudaMalloc", "what": f"the GPU idles in cudaMalloc ({rank} calls)",
             "command": ["show", "cuda_api_summary"]} for rank in (0, 1)),
    ROW | {"rule": "profiler", "rank": None, "subject": "kineto", "what": "kineto itself held up threads",
           "command": ["show", "profiler_share"]},
    ROW | {"rule": "host", "rank": 0, "what": "the GPU idles",
           "command": ["show", "critical_path", "--rank=0", "--sort=-duration_ns"]},
]


def _changed(sentence: str | None) -> str | None:
    """Return a sentence of which every word is another one, and every sign is gone."""
    return None if sentence is None else " ".join(f"w{word[::-1]}" for word in re.findall(r"\w+", sentence))


def _facts(found: list[Finding]) -> list[tuple[object, ...]]:
    names = "cause", "subject", "tool", "others", "who", "ranks", "processes", "figures", "amount", "command"
    return [tuple(getattr(finding, name) for name in names) for finding in found]


@pytest.mark.parametrize("runs", [("r",), ("r", "other run")])
def test_findings_are_grouped_and_named_by_values(runs: tuple[str, ...]) -> None:
    other = [row | {name: _changed(row[name]) for name in SENTENCES} for row in ROWS]
    assert _facts(findings(*ROWS, runs=runs)) == _facts(findings(*other, runs=runs))
    assert len(findings(*ROWS)) == 6


def test_the_sections_of_findings_keep_commands_and_figures() -> None:
    ours, theirs = (_of_findings([row | {name: said(row[name]) for name in SENTENCES} for row in ROWS])
                    for said in (lambda text: text, _changed))
    assert [one.commands for one in ours] == [one.commands for one in theirs] and len(ours[1].commands) == 6
    figures = [figure for finding in findings(*ROWS) for figure in finding.figures]
    for sections in (ours, theirs):
        drawn = " ".join(" ".join(map(click.unstyle, Renderer(lambda command: "?", 10_000).drawn(sections))).split())
        assert all(figure in drawn for figure in figures) and drawn.count("?") == 6


def test_a_report_keeps_its_findings_and_their_commands() -> None:
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in (
        "profile_overview", "diagnostic_summary", "busy_time", "gpu_summary", "step_breakdown", "verdict")}
    bounds = {"run": "r", "tool": "nsys", "kind": "verdict", "text": "Of 2.000 s, computing takes 80.0 %."}
    ours, theirs = (overview("r", answers | {
        "findings": [row | {name: said(row[name]) for name in SENTENCES} for row in ROWS],
        "verdict": [bounds | {"text": said(bounds["text"])}]}) for said in (lambda text: text, _changed))
    assert _facts(list(ours.findings)) == _facts(list(theirs.findings)) and len(ours.verdict) == len(theirs.verdict) == 1


def _of_findings(rows: list[dict[str, Any]]) -> list[Section]:
    class Asked(Page):
        def ask(self, view: str, **parameters: object) -> list[dict[str, Any]]:
            return rows if view == "findings" else []

        def note(self, view: str, *texts: str) -> str:
            return ""

    class Runs:
        def values_of(self, column: str) -> list[str]:
            return ["r"]

    asked = Asked(cast(nl.Store, Runs()), "r", {})
    return [made for part in (findings_page.verdict, findings_page.findings) for made in part(asked)]


def _in_other_words(text: Text) -> Text:
    return tuple(part if isinstance(part, Command) else _changed(part) or "" for part in parts(text))


def _reworded(sections: list[Section]) -> Iterator[Section]:
    for one in sections:
        yield replace(one, title=_changed(one.title) or "", note=_in_other_words(one.note),
                      lines=tuple(Line(_in_other_words(line.text), line.mark) for line in one.lines))


def test_a_page_in_other_words_has_its_tables_and_commands(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nsightlens.pages import from_python, summary
    from nsightlens.pages.sections import with_absent

    made: list[list[Section]] = []

    def kept(composed: Any) -> list[Section]:
        made.append(with_absent(composed))
        return made[-1]

    monkeypatch.setattr(summary, "with_absent", kept)
    with nl.open(bundled_store) as store:
        from_python.summary(store, {})
    (sections,) = made
    told: list[Command] = []

    def noted(command: Command) -> str:
        told.append(command)
        return "?"

    drawn = Renderer(noted, 160).drawn(_reworded(sections))
    assert told == [command for one in sections for command in one.commands] and len(told) > 3
    grids = [Renderer(width=160).drawn([Section(columns=one.columns)]) for one in sections if one.columns]
    assert len(grids) > 8 and all(set(grid) <= set(drawn) for grid in grids)
    assert section.LEFT_OUT in {line.mark for one in sections for line in one.lines}
