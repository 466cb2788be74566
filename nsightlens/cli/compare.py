"""nsightlens compare: the ranks of a run, or two runs, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightlens.cli.filters import chosen, filter_options
from nsightlens.cli.output import emit, output_options, store_option


@click.group("compare")
def command() -> None:
    """Compare the ranks of a run, or two runs of one workload."""


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


@command.command("runs")
@click.argument("base")
@click.argument("other")
@click.option("--what", default="kernel", help="kernel (key and launch configuration), key, family, op, module or phase.")
@click.option("--rate", default=0.01, show_default=True, help="Share of false ones among the changes named.")
@click.option("--threshold", "threshold_pct", default=1.0, show_default=True, help="Smallest change that is named, in percent.")
@click.option("--skip-steps", default=0, show_default=True, help="Steps at the start of each run that are left out (warm-up).")
@store_option
@output_options
def runs(
    base: str, other: str, what: str, rate: float, threshold_pct: float, skip_steps: int, store: Path | None,
    form: str | None, output: Path | None, wide: bool,
) -> None:
    """Tell what changed from run BASE to run OTHER, beyond chance: first what makes them hard to compare, then the items.

    Replicates are the training steps. --format json or csv gives the whole table (the view run_difference) instead of the page.

    \b
    nsightlens compare runs before after
    nsightlens compare runs before after --what family --format json
    """
    import nsightlens as nl
    from nsightlens.cli import runs_page
    from nsightlens.workers import spare_pandas

    spare_pandas()
    with nl.open(store) as opened:
        asked = {"base": base, "other": other, "rate": rate, "threshold_pct": threshold_pct, "skip_steps": skip_steps}
        table = opened.view("run_difference", what=what, **asked)
        if form or output:
            emit(table, form, output, wide=wide)
            return
        runs_page.comparability(opened, base, other)
        runs_page.changes(table.to_pylist(), what, threshold_pct)
        if what != "family":
            runs_page.changes(opened.view("run_difference", what="family", **asked).to_pylist(), "family", threshold_pct)
