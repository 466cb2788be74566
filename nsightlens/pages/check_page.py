"""What `nsightlens check` prints, the verdict first: questions, recordings and kernels; as text, Markdown and JUnit's XML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightlens.diagnosis.difference_words import relative
from nsightlens.gate import words
from nsightlens.gate.questions import OK, SLOWER, Answer
from nsightlens.pages.section import NAME, PARAGRAPH, Section, listed
from nsightlens.pages.tables import Column
from nsightlens.views.figures import MISSING, counted, duration, number, share

if TYPE_CHECKING:
    from nsightlens.gate.check import Check

_KERNELS = 8
_HEADS = ("question", "verdict", "base", "candidate", "change (95 % interval)", "limit")


def sections(check: Check) -> list[Section]:
    """Return the page."""
    first, *others = check.sentences
    return [Section(lines=(*listed([first], PARAGRAPH), *listed(others))), _questions(check.answers), *_kernels(check),
            _recordings(check)]


def _cells(answer: Answer) -> tuple[str, ...]:
    """Return what a table says of a question, under _HEADS."""
    return (words.called(answer.question.item), words.outcome(answer), *words.side_figures(answer), words.change(answer),
            words.limit(answer))


def _questions(answers: Sequence[Answer]) -> Section:
    cells = [_cells(each) for each in answers]
    columns = [[row[place] for row in cells] for place in range(len(_HEADS))]
    return Section("Questions", _compared(answers), (
        Column(_HEADS[0], columns[0], 9, text=True, flexible=True), Column(_HEADS[1], columns[1], 9, text=True, flexible=True),
        *(Column(head, column, weight) for head, column, weight in zip(_HEADS[2:], columns[2:], (5, 5, 8, 7), strict=True))))


def _compared(answers: Sequence[Answer]) -> str:
    counts = answers[0].counts
    paired = f", paired on {answers[0].nodes} nodes" if answers[0].nodes else ""
    return f"base of {counted(counts[0], 'recording')}, candidate of {counted(counts[1], 'recording')}{paired}"


def _kernels(check: Check) -> list[Section]:
    shown = check.kernels[:_KERNELS]
    if not shown:
        return []
    names = [each.key for each in shown]
    return [Section("Kernels beyond chance", "per step, false discoveries 5 %", (
        Column("kernel", names, 9, text=True, flexible=True, shortest=NAME, kernels=names),
        Column("base", [duration(each.base) for each in shown], 7),
        Column("candidate", [duration(each.candidate) for each in shown], 7),
        Column("change", [relative(each.base, each.candidate) if each.base else "new" for each in shown], 8),
    ), listed([f"{len(check.kernels) - len(shown)} more changed."] if len(check.kernels) > len(shown) else []))]


def _recordings(check: Check) -> Section:
    rows = check["recordings"].to_pylist()
    return Section("Recordings", "the figure of each is the trimmed mean of its steady steps", (
        Column("side", [row["side"] for row in rows], 8, text=True),
        Column("run", [row["run"] for row in rows], 7, text=True, flexible=True),
        Column("timed by", [row["tool"] for row in rows], 5, text=True),
        Column("node", [row["node"] or MISSING for row in rows], 4, text=True, flexible=True),
        Column("commit", [(row["commit"] or MISSING)[:12] for row in rows], 3, text=True),
        Column("steps", [number(row["steps"]) for row in rows], 6),
        Column("warm-up", [number(row["dropped"]) for row in rows], 4),
        Column("trimmed mean", [duration(row["trimmed_ns"]) for row in rows], 9),
        Column("mean", [duration(row["mean_ns"]) for row in rows], 5),
        Column("slow steps", [share(row["slow_pct"]) for row in rows], 5)))


def markdown(check: Check) -> str:
    """Return the check for a comment on a pull request: the verdict is its first line."""
    first, *others = check.sentences
    rows = [_HEADS, tuple("---" for _ in _HEADS), *map(_cells, check.answers)]
    table = [f"| {' | '.join(map(_escaped, row))} |" for row in rows]
    return "\n".join([f"**{_escaped(first)}**", "", *table, "", *(f"- {_escaped(line)}" for line in others), "",
                      f"<sub>{_compared(check.answers)}</sub>", ""])


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is: names of kernels hold what it takes for marks."""
    return "".join(f"\\{mark}" if mark in "\\`*_[]<>|#" else mark for mark in text)


def junit(check: Check) -> str:
    """Return the check as JUnit's XML, a test case for each question, which GitLab and Jenkins list."""
    from xml.etree import ElementTree as Tree

    from nsightlens.terminal.printable import printable

    suite = Tree.Element("testsuite", name="nsightlens check", tests=str(len(check.answers)), errors="0", failures=str(
        sum(each.verdict == SLOWER for each in check.answers)), skipped=str(
            sum(each.verdict not in (OK, SLOWER) for each in check.answers)))
    for each in check.answers:
        case = Tree.SubElement(suite, "testcase", classname="nsightlens.check", name=printable(words.called(each.question.item)))
        said = printable(f"{words.outcome(each)}: {words.change(each)}, limit {words.limit(each)}")
        if each.verdict == SLOWER:
            Tree.SubElement(case, "failure", message=said).text = printable("\n".join(check.sentences), "\n")
        elif each.verdict != OK:
            Tree.SubElement(case, "skipped", message=said)
    Tree.SubElement(suite, "system-out").text = printable("\n".join(check.sentences), "\n")
    Tree.indent(suite)
    return f"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{Tree.tostring(suite, encoding='unicode')}\n"
