"""nsightlens summary: the page to read first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.messages import say, with_store
from nsightlens.cli.output import emit_page, output_options, store_option, views_option
from nsightlens.cli.progress import steps
from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo
from nsightlens.terminal.text import joined, written

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.pages.section import Absent, Section
    from nsightlens.terminal.text import Text

_MORE: tuple[Text, ...] = ((Command("views"),), (Command("show", ("NAME",)),))
_OF_TIMELINES: tuple[Text, ...] = (
    (Command("show", ("headroom",)), " (gains of faster kernels)"),
    (Command("plot", ("step_breakdown", ("--output", "steps.png"))),),
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
    behind the page for all runs, csv and parquet the view verdict.

    \b
    nsightlens summary
    nsightlens summary --run base --rank 0
    nsightlens summary runs/base
    nsightlens summary --format json
    """
    from nsightlens.cli.captures import opened as opened_store
    from nsightlens.pages.collected_page import CollectedPage, compose
    from nsightlens.pages.envelope import About, judged_windows, window_of
    from nsightlens.pages.page import Renderer
    from nsightlens.pages.section import texts_absent
    from nsightlens.pages.sections import ordered
    from nsightlens.pages.summary import MOST, pages_drawn
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    asked = chosen(filters)
    with ExitStack() as stack:
        opened = opened_store(captures, store, views, stack)
        confirm(opened, asked)
        overview = opened.view("profile_overview")
        runs = [run for run in dict.fromkeys(overview["run"].to_pylist()) if "run" not in asked or run in asked["run"]]
        whole = CollectedPage(opened, "", asked)
        is_data = bool(form or output)

        def parts() -> list[list[Sequence[Section | Absent]]]:
            with steps("summing up") as begin:
                return compose([replace(whole, run=run) for run in (runs if is_data else runs[:MOST])], ordered, begin)

        if is_data:
            absent: list[str] = []

            def tables() -> Mapping[str, pa.Table]:
                absent.extend(map(written, chain.from_iterable(map(texts_absent, parts()))))
                return whole.tables

            def about(behind: Mapping[str, pa.Table]) -> About:
                window = {**window_of(asked), "judged": judged_windows(behind["time_tree"])}
                return About(window=window, not_recorded=lambda: absent)

            emit_page(tables, lambda: opened.view("verdict", **parameters_of("verdict", opened.views, asked)), form, output,
                      wide=wide, about=about)
            return
        echo(pages_drawn(Renderer(with_store), parts(), runs, "--run NAME"), styled=True)
        say(_more(captures, set(overview["tool"].to_pylist())))


def _more(captures: tuple[Path, ...], tools: set[str]) -> Text:
    """Return the commands that show more: of captures by these tools in a store; of one file or folder its report."""
    from nsightlens.pages.query import TIMELINE

    if captures:
        return ("Next: ", Command("report", (*captures, ("--open",))) if len(captures) == 1 else Command("ingest", captures))
    return ("More: ", *joined("; ", [*_MORE, *(() if tools.isdisjoint(TIMELINE) else _OF_TIMELINES)]))
