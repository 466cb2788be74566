"""nsightlens refresh: a store brought up to the rules and views of this version."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.ingest import broken, refusals, say, wait
from nsightlens.cli.messages import complain, is_quiet
from nsightlens.cli.output import executor_options, store_option
from nsightlens.cli.progress import progress
from nsightlens.views.figures import counted

if TYPE_CHECKING:
    from nsightlens.pipeline.executors import Kind
    from nsightlens.pipeline.refresh import Refreshed

_MOST = 12


@click.command("refresh")
@store_option
@click.option("-j", "--jobs", type=click.IntRange(1), default=None, help="Worker processes [default: all processors].")
@executor_options
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors only.")
def command(
    store: Path | None, jobs: int | None, executor: Kind, scheduler: str | None, scheduler_file: Path | None, quiet: bool,
) -> None:
    """Update the store to this version of nsightlens after an upgrade.

    Only profiles whose rules changed (readers, launches, attribution, names) are read again from their captures. If only the
    matching changed, launches are matched again without reading. If a capture is missing, its rows stay, and a message names it.
    A store with an older schema is rebuilt from its captures; if one is missing, the old catalog stays beside the new one. Exit
    code 1 if a capture could not be read.

    \b
    nsightlens refresh
    nsightlens refresh --store nsightlens-store --jobs 4
    """
    from nsightlens.pipeline.memory import return_memory, spare_pandas

    return_memory()
    spare_pandas()
    from nsightlens.pipeline.executors import executor as on
    from nsightlens.pipeline.refresh import refresh

    quiet = quiet or is_quiet()
    with ExitStack() as stack:
        pool = stack.enter_context(on(executor, scheduler, scheduler_file))
        done = refresh(store, jobs=jobs, executor=pool, on_progress=None if quiet else progress(stack), on_wait=wait)
    if not quiet:
        _summarise(done)
    for error in done.report.refused if quiet else ():
        complain(f"nsightlens: {error}")
    if any(outcome.state == "refused" for outcome in done.report.outcomes):
        sys.exit(1)


def _summarise(done: Refreshed) -> None:
    states = [outcome.state for outcome in done.report.outcomes]
    read = states.count("replaced") + states.count("new")
    if done.rebuilt_from is not None:
        say(f"rebuilt from schema {done.rebuilt_from}: {counted(read, 'profile')} read")
    else:
        say(f"{counted(read, 'profile')} read again, {counted(done.matched, 'profile')} matched again"
            + (": the store was up to date" if not read and not done.matched else ""))
    for line in [*refusals(done.report), *broken(done.report)]:
        say(line)
    if done.gone:
        more = f" and {len(done.gone) - _MOST} more" if len(done.gone) > _MOST else ""
        fate = "their rows are kept" if done.rebuilt_from is None else "their rows are not in the rebuilt store"
        say(f"{counted(len(done.gone), 'capture')} gone, {fate}: {', '.join(done.gone[:_MOST])}{more}")
    if done.kept:
        say(f"what could not be read again is kept in {done.kept} (plain duckdb opens it; delete it when you no longer need it)")
    say(f"store: {done.report.store}")
