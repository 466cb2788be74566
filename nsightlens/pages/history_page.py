"""What `nsightlens history` prints: what changed first, then the changes and the runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nsightlens.gate import words
from nsightlens.gate.history_words import change, figure
from nsightlens.pages.section import LEFT_OUT, PARAGRAPH, Section, listed
from nsightlens.pages.tables import Column
from nsightlens.views.figures import MISSING, number

if TYPE_CHECKING:
    from nsightlens.gate.history import History

_RUNS, _COMMIT = 30, 12


def sections(history: History) -> list[Section]:
    """Return the page."""
    first, *others = history.sentences
    return [Section(lines=(*listed([first], PARAGRAPH), *listed(others))), *_changes(history), _runs(history)]


def _changes(history: History) -> list[Section]:
    rows, question = history.changes, history.question
    if not rows:
        return []
    return [Section("Changes", "of level, beyond chance; false in 1 % of series", (
        Column("from run", [row.run for row in rows], 9, text=True, flexible=True),
        Column("begun (UTC)", [_date(row.begun_ns) for row in rows], 4, text=True),
        Column("commit", [(row.commit or MISSING)[:_COMMIT] for row in rows], 5, text=True),
        Column("before", [figure(question, row.base) for row in rows], 7),
        Column("after", [figure(question, row.candidate) for row in rows], 7),
        Column("change", [change(question, row) for row in rows], 8),
        Column("runs", [f"{row.base_runs}, {row.candidate_runs}" for row in rows], 3)))]


def _runs(history: History) -> Section:
    rows = history.points[-_RUNS:]
    older = len(history.points) - len(rows)
    return Section("Runs", f"timed by {rows[0].tool}; each with the mean of its recordings", (
        Column("run", [row.run for row in rows], 9, text=True, flexible=True),
        Column("begun (UTC)", [_date(row.begun_ns) for row in rows], 4, text=True),
        Column("commit", [(row.commit or MISSING)[:_COMMIT] for row in rows], 5, text=True),
        Column("recordings", [number(row.recordings) for row in rows], 3),
        Column(words.called(history.question.item), [figure(history.question, row.value) for row in rows], 9),
        Column("level", [f"{'→ ' if row.has_changed else ''}{row.level + 1}" for row in rows], 6),
    ), listed([f"{older:,} older ones are not shown; -f csv has all."] if older else [], LEFT_OUT))


def _date(begun_ns: int | None) -> str:
    if begun_ns is None:
        return MISSING
    try:
        return f"{datetime.fromtimestamp(begun_ns / 1e9, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return MISSING
