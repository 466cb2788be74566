"""nsightlens export-reports: exports each .nsys-rep that has no export yet, say of a job that was killed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import click


@click.command("export-reports")
@click.argument("run_dir", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--nsys", default=None, metavar="PATH", help="The nsys to use [default: the one on PATH].")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Exports at once; each needs memory.")
def command(run_dir: tuple[Path, ...], nsys: str | None, jobs: int) -> None:
    """Export each .nsys-rep file below RUN_DIR that has no export yet to an .sqlite file beside it.

    Use it for jobs that ended or were killed before their export, and for captures from machines without nsys: run it where
    nsys is installed, then ingest anywhere. It writes only exports that are missing or incomplete. Reports of Nsight Compute
    need no export: ingest reads them directly. Exit code 1 if a report could not be exported.

    \b
    nsightlens export-reports runs/base
    nsightlens export-reports runs/ --nsys /opt/nvidia/nsight-systems/2025.5.1/bin/nsys
    """
    from nsightlens.cli.ingest import say
    from nsightlens.cli.progress import progress
    from nsightlens.discovery.export_reports import Done, export_reports, unexported
    from nsightlens.errors import ReadError
    from nsightlens.pipeline.meter import Progress
    from nsightlens.terminal.text import parts
    from nsightlens.views.figures import counted

    reports = unexported(run_dir)
    with ExitStack() as stack:
        show = progress(stack)

        def tell(number: int, done: Done) -> None:
            show(Progress(number, len(reports), Path(done.path).name if isinstance(done, ReadError) else done.name))

        outcomes = export_reports(reports, nsys, jobs, tell)
    failed = [outcome for outcome in outcomes if isinstance(outcome, ReadError)]
    for error in failed:
        say((f"  failed   {Path(error.path).name}: {error.reason}. ", *parts(error.advice)))
    exported = counted(len(outcomes) - len(failed), "report")
    say(f"{exported} exported" + (f", {len(failed)} failed" if failed else "") if reports else "every report has its export")
    if failed:
        sys.exit(1)
