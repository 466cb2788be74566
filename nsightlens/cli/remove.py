"""nsightlens remove: a run, or one capture, out of the store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nsightlens.cli.complete import capture_paths, store_value
from nsightlens.cli.ingest import say, wait
from nsightlens.cli.output import store_option


@click.command("remove")
@click.option("--run", default=None, metavar="NAME", shell_complete=store_value("run"),
              help="The run to remove, or the run of --file.")
@click.option("--file", default=None, metavar="PATH", shell_complete=capture_paths,
              help="The capture to remove: its path in the table files, or the end of it.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask (it asks at a terminal only).")
@store_option
def command(store: Path | None, run: str | None, file: str | None, dry_run: bool, yes: bool) -> None:
    """Take a run, or one capture of a run, out of the store.

    For what was ingested or pooled by mistake. The captures themselves stay where they are, and a later ingest brings them back.
    With a file goes what was read together with it, such as the other pages of an ncu report, and with the last capture of a run
    the run. If the removal is killed, the store is as it was.

    \b
    nsightlens remove --run base --dry-run
    nsightlens remove --run base
    nsightlens remove --file torch/rank0.pt.trace.json.gz
    """
    from nsightlens.pipeline.memory import return_memory
    from nsightlens.pipeline.remove import remove

    return_memory()
    if sys.stdin.isatty() and sys.stderr.isatty() and not (yes or dry_run):
        say(str(remove(store, run=run, file=file, dry_run=True)))
        click.confirm("Remove?", abort=True, err=True)
    removed = remove(store, run=run, file=file, dry_run=dry_run, on_wait=wait)
    say(str(removed))
    if not removed.whole_run:
        for path in removed.files:
            say(f"  {path}")
    say(f"store: {removed.store}")
