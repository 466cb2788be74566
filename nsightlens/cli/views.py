"""nsightlens views: the list of views, and the documentation of each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.complete import view_names
from nsightlens.cli.output import emit, emit_page, output_options, store_option, views_option
from nsightlens.pages.page import page_width
from nsightlens.pages.tables import output_width
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable
from nsightlens.views.figures import counted
from nsightlens.views.start import START

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.views.header import View

_SCOPES = {
    "profile": "its rows depend on one profile alone",
    "run": "its rows depend on several profiles: ranks, tools, counters, or runs",
    "rows": "it has as many rows as there are events",
}
_OWN = "Views of your own"
_MOST = 10
"""Views that a search prints."""


@click.command("views")
@click.argument("words", nargs=-1, metavar="[VIEW | WORDS...]", shell_complete=view_names)
@click.option("--all", "everything", is_flag=True, help="All views, and what other tools call them.")
@views_option
@store_option
@output_options
def command(
    words: tuple[str, ...], everything: bool, views: Path | None, store: Path | None, form: str | None, output: Path | None,
    wide: bool,
) -> None:
    """List the views to learn first by the question they answer, describe VIEW (its rows, scope, parameters, columns and SQL), or
    find views by WORDS, best first. Needs no store.

    VIEW may also be a name that nsys, HTA or the TensorBoard plugin uses. If there is a store, the description says whether
    ingest computed the view's rows. --format json gives the same as data.

    \b
    nsightlens views
    nsightlens views --all
    nsightlens views tensor cores
    nsightlens views busy_time
    nsightlens views get_idle_time_breakdown
    nsightlens views --views my_views/
    """
    from nsightlens.pages.envelope import About
    from nsightlens.views import folder, registry, search

    found = dict(sorted({**registry.known(), **registry.public(folder.load(folder.locate(views)))}.items()))
    question = " ".join(words)
    matching = [] if registry.is_named(question, found) else search.about(question, found, START)
    if words and not matching:
        one, _ = registry.named(question, found)
        if form or output:
            emit_page(lambda: _tables(one), lambda: _tables(one)["columns"], form, output, wide=wide,
                      about=lambda _: About("view"))
        else:
            _page(one, store)
        return
    if form or output:
        emit(_listed(found[name] for name in matching or found), form, output, wide=wide, first=("name", "summary"))
    elif matching:
        _lines([found[name] for name in matching[:_MOST]], max(map(len, matching[:_MOST])) + 4)
        if len(matching) > _MOST:
            echo(f"\n{len(matching) - _MOST} more are about some of it: --format csv lists all", err=True)
    elif everything:
        _questions(found)
    else:
        _first(found)


def _listed(views: Iterable[View]) -> pa.Table:
    import pyarrow as pa

    from nsightlens.views.topics import TOPICS

    names = ("name", "summary", "question", "scope", "start", "also_called", "parameters", "columns")
    rows = [(view.name, view.summary, TOPICS.get(view.topic), view.scope, view.name in START, [a.name for a in view.aliases],
             [param.name for param in view.params], [name for name, _ in view.columns]) for view in views]
    types = (*[pa.string()] * 4, pa.bool_(), *[pa.list_(pa.string())] * 3)
    return pa.table({name: pa.array([row[i] for row in rows], type_)
                     for i, (name, type_) in enumerate(zip(names, types, strict=True))})


def _tables(view: View) -> dict[str, pa.Table]:
    """Return what is known of a view: a row of it, its parameters and its columns."""
    import pyarrow as pa

    text = pa.schema([("name", pa.string()), ("meaning", pa.string())])
    params = [{"name": p.name, "meaning": p.doc, "default": None if p.default is None else str(p.default)} for p in view.params]
    about = _listed([view]).drop_columns(["parameters", "columns"])
    for name, value in (("doc", view.doc), ("sql", view.sql or None)):
        about = about.append_column(name, pa.array([value], pa.string()))
    return {
        "view": about.append_column("assumes", pa.array([list(view.assumes)], pa.list_(pa.string()))),
        "parameters": pa.Table.from_pylist(params, text.append(pa.field("default", pa.string()))),
        "columns": pa.Table.from_pylist([{"name": name, "meaning": doc} for name, doc in view.columns], text),
    }


def _first(views: Mapping[str, View]) -> None:
    """Print the views to learn first by question, each on a line, and views of the user's own."""
    from nsightlens.views.topics import TOPICS

    left = max(len(name) for name in START) + 4
    own = [view for view in views.values() if not view.is_shipped]
    for topic, question in (*TOPICS.items(), (None, _OWN)):
        listed = [views[name] for name in START if views[name].topic == topic] if topic else own
        if listed:
            _title(question)
        _lines(listed, left)
    echo("\nnsightlens views VIEW explains one, views WORDS finds some, views --all lists all; nsightlens show VIEW prints one",
         err=True)


def _lines(views: Sequence[View], left: int) -> None:
    """Print each view on one line. left: columns before what it is."""
    for view in views:
        summary = textwrap.shorten(view.summary, max(output_width() - left, 30), placeholder=" …")
        echo(f"  {view.name:<{left - 2}}{summary}")


def _questions(views: Mapping[str, View]) -> None:
    """Print all views by question, and what other tools call them."""
    from nsightlens.views.topics import TOPICS

    for topic, question in (*TOPICS.items(), (None, _OWN)):
        some = [one for one in views.values() if (one.topic if one.is_shipped else None) == topic]
        if some:
            _title(question)
            _entries(some)
            echo()
    _title("What nsys, HTA and the TensorBoard plugin call them")
    aliases = sorted((alias.name, one.name) for one in views.values() for alias in one.aliases)
    left = max(len(name) for name, _ in aliases) + 2
    for alias, name in aliases:
        echo(f"  {alias:<{left}}= {name}")


def _title(text: str) -> None:
    echo(click.style(text, bold=True), styled=True)


def _entries(views: Iterable[View]) -> None:
    """Print names with what they are beside them."""
    listed = list(views)
    left = max(len(view.name) for view in listed) + 4
    width = max(output_width(), left + 30)
    for view in listed:
        echo(textwrap.fill(f"  {view.name:<{left - 2}}{view.summary}", width, subsequent_indent=" " * left))


def _page(one: View, store: Path | None) -> None:
    """Print the documentation of a view."""
    from nsightlens.store.store import is_store, locate

    width = page_width()
    echo(click.style(printable(one.name), bold=True) + "\n", styled=True)
    echo(textwrap.fill(one.doc, width))
    echo(f"\n{click.style('Scope', bold=True)}: {one.scope} ({_SCOPES[one.scope]})", styled=True)
    if one.aliases:
        echo(f"{click.style('Also called', bold=True)}: {printable(', '.join(map(str, one.aliases)))}", styled=True)
    if one.scope == "profile" and is_store(locate(store)):
        echo(_kept(locate(store), one.name))
    _conditions(one, width)
    if one.params:
        echo(click.style("\nParameters", bold=True), styled=True)
        _list([(f"{parameter.name} := {_format_default(parameter.default)}", parameter.doc) for parameter in one.params], width)
    echo(click.style("\nColumns", bold=True), styled=True)
    _list(one.columns, width)
    echo(click.style("\nDefinition", bold=True), styled=True)
    echo(one.sql.strip() or f"Computed in Python: {one.place}")


def _conditions(one: View, width: int) -> None:
    """Print where a view is empty, and what it assumes."""
    from nsightlens.views.requirements import REQUIREMENTS

    empty = [f"{REQUIREMENTS[name].missing}: {REQUIREMENTS[name].remedy}" for name in one.needs]
    for title, texts in (("Empty where", empty), ("Assumes", one.assumes)):
        if texts:
            echo(click.style(f"\n{title}", bold=True), styled=True)
        for text in texts:
            echo(textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  "))


def _kept(path: Path, view: str) -> str:
    """Return what the store holds of a view's rows."""
    from nsightlens.store.store import Store

    with Store(path) as store:
        found = store.kept(view)
    if found is None:
        return f"{path}: computed on demand"
    profiles, rows, seconds = found
    return (f"{path}: {counted(rows, 'row')} of {counted(profiles, 'profile')}, computed at ingest in {seconds:.2f} s; "
            "queries with default parameters read them from there")


def _list(entries: Sequence[tuple[str, str]], width: int) -> None:
    """Print names with what they mean beside them, wrapped."""
    left = max(len(name) for name, _ in entries) + 4
    for name, doc in entries:
        first, *rest = textwrap.wrap(doc, max(30, width - left)) or [""]
        echo(f"  {name:<{left - 2}}{first}")
        for line in rest:
            echo(" " * left + line)


def _format_default(default: object) -> str:
    return "NULL" if default is None else repr(default) if isinstance(default, str) else str(default).lower()
