"""nsightlens history: a figure of runs over time, and where its level changed."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.cli import complete
from nsightlens.cli.output import emit_page, output_options, store_option, views_option
from nsightlens.terminal.output import echo


@click.command("history")
@click.argument("runs", metavar="RUN|PATH...", nargs=-1, shell_complete=complete.store_value("run"))
@click.option("--item", default="step", show_default=True, metavar="ITEM",
              help="The figure: step (its time), slow_steps, exposed_communication, memory_peak, a family of kernels, or a "
                   "kernel's whole name.")
@output_options
@store_option
@views_option
def command(
    runs: tuple[str, ...], item: str, form: str | None, output: Path | None, wide: bool, store: Path | None, views: Path | None,
) -> None:
    """One figure of runs over time, and where its level changed beyond chance: of runs of the store (all, unless some are named),
    stores, captures, or files that `nsightlens baseline set` wrote.

    Runs stand in the order of their times. A run counts once, with the mean of its recordings. A series without a change is said
    to have one in 1 % at most; a change shows from 10 runs on, and when three runs are behind it.

    \b
    nsightlens history
    nsightlens history --item gemm base fused
    nsightlens history nsightlens-baselines/nightly-*.json
    """
    from nsightlens.cli.captures import read_run
    from nsightlens.cli.messages import with_store
    from nsightlens.gate.history import history
    from nsightlens.pages import history_page
    from nsightlens.pages.page import Renderer
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    found = history(runs, item, store, views, read_run)
    if form or output:
        emit_page(lambda: found, lambda: found["runs"], form, output, wide=wide)
    else:
        echo("\n".join(Renderer(with_store).drawn(history_page.sections(found))), styled=True)
