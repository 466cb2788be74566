"""The pages of the views: what each is, its columns, its first rows on the bundled run, and its SQL."""

from __future__ import annotations

from collections.abc import Mapping

import nsightlens as nl
from nsightlens.errors import NsightlensError
from nsightlens.pages.arrow import as_text
from nsightlens.pages.tables import Style
from nsightlens.views.header import section
from nsightlens.views.topics import TOPICS

_ROWS, _WIDTH = 8, 110
_INTRODUCTION = (
    "# Views", "",
    "`nsightlens show NAME`, `store.view(\"NAME\")` and `SELECT * FROM NAME` ask the same; a macro is called in SQL:",
    "`SELECT * FROM top_kernels(how_many := 5)`. `only_<column>=value` selects rows, so that shares still refer to the",
    "whole run. Each page has the columns, the first rows on the bundled run, and the SQL.", "",
)


def example(store: nl.Store, view: nl.View) -> str:
    """Return the first rows of a view as `nsightlens show` prints them; why there are none where there are none."""
    try:
        table = store.view(view.name)
    except NsightlensError as exc:
        return f"nsightlens: {exc}"
    return as_text(table, Style(width=_WIDTH, units=True, first=view.first, rows=_ROWS)).rstrip()


def view_page(view: nl.View, shown: str) -> str:
    """Return the page of a view. shown: its example."""
    language = "sql" if view.file.suffix == ".sql" else "python"
    lines = [f"# {view.name}", *section(view)[1:]]
    lines += ["## On the bundled run", "", "The run is simulated: no figure is a measurement.", ""]
    lines += ["```console", f"$ nsightlens show {view.name}", shown, "```", ""]
    lines += [f"## {'SQL' if language == 'sql' else 'Source'}", "", f"```{language}"]
    return "\n".join([*lines, *view.source.splitlines()[view.line - 1:], "```", ""])


def view_index(views: Mapping[str, nl.View]) -> str:
    """Return the list of all views, by the question that they answer."""
    lines = [*_INTRODUCTION]
    for topic, question in TOPICS.items():
        lines += [f"## {question}", ""]
        lines += [f"- [{name}]({name}.md): {view.summary}" for name, view in views.items() if view.topic == topic] + [""]
    return "\n".join(lines)
