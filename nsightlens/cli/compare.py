"""nsightlens compare: the ranks of a run side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightlens.cli.filters import chosen, filter_options
from nsightlens.cli.output import store_option


@click.group("compare")
def command() -> None:
    """Compare the ranks of a run."""


@command.command("ranks")
@filter_options
@store_option
def ranks(store: Path | None, **filters: Any) -> None:
    """Tell who the straggler is, how far the clocks can be trusted, what is unevenly shared, and which kernels are on top.

    The figures are those of the views straggler, rank_clock, rank_balance and kernel_summary.

    \b
    nsightlens compare ranks
    nsightlens compare ranks --run base --tool kineto
    """
    import nsightlens as nl
    from nsightlens.cli import ranks_page
    from nsightlens.cli.page import heading
    from nsightlens.cli.sections import Page
    from nsightlens.errors import NsightlensError
    from nsightlens.workers import spare_pandas

    spare_pandas()
    asked = chosen(filters)
    with nl.open(store) as opened:
        overview = [row for row in opened.view("profile_overview").to_pylist() if row["tool"] in ranks_page.TIMELINE]
        runs = list(dict.fromkeys(row["run"] for row in overview if "run" not in asked or row["run"] in asked["run"]))
        compared = 0
        for run in runs:
            page = Page(opened, run, asked)
            if len({row["rank"] for row in page.ask("kernel_by_rank") if row["tool"] in ranks_page.TIMELINE} - {None}) > 1:
                compared += 1
                heading(f"Ranks of {run}")
                for section in (ranks_page.waiting, ranks_page.clocks, ranks_page.balance, ranks_page.kernels):
                    section(page)
        if not compared:
            raise NsightlensError("no run here has a timeline of two ranks or more: nsightlens scan RUN_DIR tells the ranks, "
                                  "and --rank-pattern of ingest reads them from odd file names")
        click.echo("\nMore: nsightlens show straggler, rank_skew, collective_match, rank_clock or rank_balance", err=True)
