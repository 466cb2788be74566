"""nsightlens baseline: figures of recordings in a file, by name, that `check` and `history` need no captures for."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from nsightlens import __version__
from nsightlens.cli import complete
from nsightlens.cli.output import emit, output_options, store_option, views_option
from nsightlens.terminal.output import echo
from nsightlens.views.figures import counted


@click.group("baseline")
def command() -> None:
    """Keep figures of recordings in a small file, to check against without their captures.

    Files lie in ./nsightlens-baselines, or $NSIGHTLENS_BASELINES: keep them as an artifact of CI.

    \b
    nsightlens baseline set main base
    nsightlens check --baseline main --candidate base --force --on-undecided pass
    """


@command.command("set")
@click.argument("name", shell_complete=complete.baselines)
@click.argument("runs", metavar="RUN|PATH...", nargs=-1, required=True, shell_complete=complete.store_value("run"))
@store_option
@views_option
def set_(name: str, runs: tuple[str, ...], store: Path | None, views: Path | None) -> None:
    """Write the baseline NAME, or replace it: of runs of the store, stores, captures, folders of captures, other baselines.

    It holds a row for each recording: step time, slow steps, communication, memory peak, kernels, node, commit; and the GPU and
    its clocks.

    \b
    nsightlens baseline set main base
    nsightlens baseline set nightly-2026-11-28 runs/base
    """
    from nsightlens.cli.captures import read_run
    from nsightlens.gate import baselines
    from nsightlens.gate.places import Named
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    path = baselines.path_of(name)
    with ExitStack() as stack:
        named = Named(stack, store, views, read_run)
        saved = baselines.saved_sides(named.places(named.named("runs", runs)))
    baselines.write(path, saved, __version__)
    echo(f"{path}: {counted(len(saved.best), 'recording')} of {', '.join(saved.runs)}")


@command.command("list")
@output_options
def list_(form: str | None, output: Path | None, wide: bool) -> None:
    """List the baselines, a row each: runs, recordings, what timed them, commits.

    \b
    nsightlens baseline list
    nsightlens baseline list -f json
    """
    from nsightlens.gate import baselines

    emit(baselines.table(), form, output, wide=wide)


@command.command("rm")
@click.argument("name", shell_complete=complete.baselines)
def rm(name: str) -> None:
    """Delete the baseline NAME. Nothing but a file that is one is deleted.

    \b
    nsightlens baseline rm main
    """
    from nsightlens.gate import baselines

    path = baselines.known(name)
    path.unlink()
    echo(f"{path}: deleted")
