"""25 questions with known answers: the calls give the figure, in few calls and bytes, and the docs say so."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest

import nsightlens as nl
from tests.mcp.questions import CAPTURES, PAGE, QUESTIONS, measured
from tests.places import ROOT

_TABLE = PAGE.read_text(encoding="utf-8")
MOST_CALLS, MOST_BYTES = 3, 6_000
WHOLE = 25
"""Questions, where no feature was taken out (tests/long/test_removal.py), which makes answers shorter."""


@pytest.mark.captures
@pytest.mark.parametrize("where", [where for where in CAPTURES if where != "demo"])
def test_the_calls_give_the_figure(where: str) -> None:
    if not CAPTURES[where].exists():
        pytest.skip("the real captures are not here")
    _confirm(where)


@pytest.mark.slow
def test_the_calls_give_the_figure_of_the_demo() -> None:
    _confirm("demo")


def _confirm(where: str) -> None:
    results = measured(where, CAPTURES[where])
    assert {question.text: figure for question, figure, _ in results} == {
        question.text: question.figure for question in QUESTIONS if question.where == where}
    for question, _, size in results:
        said = _said_size(question.where, question.text)
        assert len(QUESTIONS) < WHOLE or abs(size / 1000 - said) < 0.4, (
            f"docs/assistant_questions.md: {question.text} {size / 1000:.1f}; run: python -m tests.mcp.questions")


def _said_size(where: str, text: str) -> float:
    (line,) = (line for line in _TABLE.splitlines() if line.startswith(f"| {where}: {text} |"))
    return float(line.split("|")[-2])


def test_few_calls_and_bytes() -> None:
    assert len(QUESTIONS) == len(re.findall(r"^\| \w.*\d \|$", _TABLE, re.MULTILINE)) <= WHOLE
    assert {question.where for question in QUESTIONS} == set(CAPTURES)
    assert median(len(question.calls) for question in QUESTIONS) <= MOST_CALLS
    assert median(_said_size(question.where, question.text) for question in QUESTIONS) <= MOST_BYTES / 1000
    for question in QUESTIONS:
        line = f"| {question.where}: {question.text} | {', '.join(f'`{name}`' for name, _ in question.calls)} |"
        assert line in _TABLE, "docs/assistant_questions.md: run: python -m tests.mcp.questions"


def test_the_example_is_what_summary_says(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        (said,) = (row["text"] for row in store.view("verdict", only_tool="nsys").to_pylist() if row["kind"] == "verdict")
    assert f'"text": "{said}"' in (ROOT / "docs" / "assistant.md").read_text(encoding="utf-8")
