"""nsightlens summary: the page to read first."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.messages import hint, say
from nsightlens.cli.output import emit_page, output_options, store_option, views_option
from nsightlens.cli.progress import steps, with_steps
from nsightlens.terminal.command import Command

_MORE = ("nsightlens views", "nsightlens show NAME")
_OF_TIMELINES = (
    "nsightlens show headroom (gains of faster kernels)",
    "nsightlens plot step_breakdown --output steps.png",
)


@click.command("summary")
@click.argument("captures", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, exists=True))
@filter_options
@store_option
@views_option
@output_options
def command(captures: tuple[Path, ...], store: Path | None, views: Path | None, form: str | None, output: Path | None, wide: bool,
            **filters: Any) -> None:
    """Print one page on each run: the verdict and its findings, what was captured, how the GPUs were used, where the steps went.

    FILE: captures or run directories to read instead of a store; nothing is left behind. Sections without data are left out;
    those that the findings concern come first.

    Times have units here; `nsightlens show VIEW` gives the same figures in ns, for programs. A section that ignores
    a filter says so ("all ranks"). The page fits COLUMNS, else the terminal, else 120 columns. --format json gives the tables
    behind the page for all runs, csv and parquet the view findings.

    \b
    nsightlens summary
    nsightlens summary --run base --rank 0
    nsightlens summary runs/base
    nsightlens summary --format json
    """
    from nsightlens.cli.captures import opened as opened_store
    from nsightlens.pages.asked import Page
    from nsightlens.pages.behind import ask_first, tables_behind
    from nsightlens.pages.sections import ordered
    from nsightlens.pages.summary import MOST, put_pages
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    asked = chosen(filters)
    with ExitStack() as stack:
        opened = opened_store(captures, store, views, stack)
        confirm(opened, asked)
        overview = opened.view("profile_overview")
        runs = [run for run in dict.fromkeys(overview["run"].to_pylist()) if "run" not in asked or run in asked["run"]]
        if form or output:
            emit_page(with_steps("summing up", lambda begin: tables_behind(opened, runs, asked, ordered, begin).tables),
                      lambda: opened.view("findings", **parameters_of("findings", opened.views, asked)), form, output, wide=wide)
            return
        answers: dict[tuple[object, ...], list[dict[str, Any]]] = {}
        if not asked:
            answers["profile_overview",] = overview.to_pylist()
        pages = [Page(opened, run, asked, answers) for run in runs[:MOST]]
        with steps("summing up") as begin:
            ask_first(pages, ordered, begin)
        put_pages(pages, runs, "--run NAME")
        say(f"More: {_more(captures, set(overview['tool'].to_pylist()))}")


def _more(captures: tuple[Path, ...], tools: set[str]) -> str:
    """Return the commands that show more of captures by these tools; of files, a store has to be made first."""
    from nsightlens.pages.asked import TIMELINE

    commands = hint("; ".join([*_MORE, *(() if tools.isdisjoint(TIMELINE) else _OF_TIMELINES)]))
    if not captures:
        return commands
    return f"first {Command('ingest', captures).shell()}, as these commands need a store; then {commands}"
