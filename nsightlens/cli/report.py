"""nsightlens report: the store, or a run directory, as one HTML file to view and share."""

from __future__ import annotations

import webbrowser
from contextlib import ExitStack
from pathlib import Path

import click

from nsightlens.cli.complete import store_value
from nsightlens.cli.output import store_option, views_option
from nsightlens.cli.progress import steps
from nsightlens.cli.target import Target
from nsightlens.terminal.output import echo


@click.command("report")
@click.argument("run_dir", required=False, type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--output", type=Target(), default=Path("report.html"), show_default=True,
              help="File to write.")
@click.option("--run", "runs", multiple=True, metavar="NAME", help="Only this run; with --base, the run to judge.",
              shell_complete=store_value("run"))
@click.option("--base", metavar="NAME", shell_complete=store_value("run"),
              help="Compare --run with this run: the report then has a tab for what changed.")
@click.option("--max-mb", type=click.FloatRange(min=1), default=10, show_default=True,
              help="Size limit of the file, in MB. Beyond it, steps are merged or left out, and the page says so.")
@click.option("--open", "is_opened", is_flag=True, help="Open the report in the browser.")
@store_option
@views_option
def command(run_dir: Path | None, output: Path, runs: tuple[str, ...], base: str | None, max_mb: float, is_opened: bool,
            store: Path | None, views: Path | None) -> None:
    """Write the store, or the captures below RUN_DIR, as one HTML page: findings, steps, operators, kernels, a timeline, ranks.

    The file needs no network and no server: it opens from disk in any browser, and can be mailed. Every number in it comes
    from a view, and the page names the command that prints it. RUN_DIR is read without writing a store.

    \b
    nsightlens report -o report.html --open
    nsightlens report runs/base -o base.html
    nsightlens report --run fused --base base -o change.html
    """
    from nsightlens.cli.captures import opened
    from nsightlens.html_report import report
    from nsightlens.html_report.report import ENDINGS
    from nsightlens.store.outputs import check_ending

    check_ending(output, ENDINGS)
    with ExitStack() as stack:
        store_read = opened([run_dir] if run_dir else [], store, views, stack)
        begin = stack.enter_context(steps("writing the report"))
        page = report(store_read, run=list(runs), base=base, max_mb=max_mb, on_step=begin)
    page.save(output)
    for text in page.left_out:
        echo(f"left out: {text}", err=True)
    echo(f"written: {output} ({len(page.html.encode()) / 1e6:.1f} MB); open it in a browser", err=True)
    if is_opened:
        webbrowser.open(output.resolve().as_uri())
