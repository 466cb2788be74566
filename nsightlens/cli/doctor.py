"""nsightlens doctor: is nsightlens well installed, is this machine ready for profiling, and if not, what fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.output import emit, output_options
from nsightlens.pages.page import page_width
from nsightlens.pages.tables import output_width
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable
from nsightlens.terminal.wrapping import printable_text, wrapped

if TYPE_CHECKING:
    from nsightlens.doctor.fitness import CheckResult

_COLOURS = {"good": "green", "note": "yellow", "bad": "red"}
_INDENT = 20


@click.command("doctor")
@click.argument("run_dir", required=False, type=click.Path(path_type=Path))
@click.option("--deep", is_flag=True, help="Also record one kernel with nsys and with ncu, read it back, and delete it.")
@output_options
def command(run_dir: Path | None, deep: bool, form: str | None, output: Path | None, wide: bool) -> None:
    """Check this installation, nsys, ncu, access to GPU counters, PyTorch, disk space and RUN_DIR, and suggest fixes.

    Changes nothing (--deep deletes what it records) and always exits with 0. With --format or --output the
    findings are a table.

    \b
    nsightlens doctor
    nsightlens doctor runs/base --format json
    """
    from nsightlens.doctor.fitness import verdict

    if form or output:
        import pyarrow as pa

        rows = [{"subject": f.subject, "state": f.state, "found": f.found, "fix": f.fix or None}
                for f in _findings(run_dir, deep)]
        schema = pa.schema([(name, pa.string()) for name in ("subject", "state", "found", "fix")])
        emit(pa.Table.from_pylist(rows, schema), form, output, wide=wide)
        return
    width = page_width()
    findings = []
    for finding in _findings(run_dir, deep):
        findings.append(finding)
        state = click.style(f"{finding.state:<5}", _COLOURS[finding.state])
        subject = printable(f"{'':6}{finding.subject:<{_INDENT - 6}}{finding.found}")
        first, *others = wrapped(subject, width, indent=" " * _INDENT, cuts=False)
        echo(f"{state} {first.lstrip()}", styled=True)
        fix = (f"{'':{_INDENT}}-> ", *printable_text(finding.remedy)) if finding.remedy else ""
        for line in [*others, *wrapped(fix, width, indent=" " * (_INDENT + 3), cuts=False)]:
            echo(line)
    echo(verdict(findings))


def _findings(run_dir: Path | None, deep: bool) -> Iterator[CheckResult]:
    from nsightlens.doctor.deep import record_one_kernel
    from nsightlens.doctor.fitness import BAD, examine
    from nsightlens.doctor.installation import examine_installation
    from nsightlens.recording.wrappers import source
    from nsightlens.store import user_cache

    sound = True
    for finding in examine_installation(user_cache.folder(), output_width()):
        sound = sound and finding.state != BAD
        yield finding
    yield from examine(run_dir, captures=sound)
    if deep and sound:
        yield from record_one_kernel(source(), run_dir)
