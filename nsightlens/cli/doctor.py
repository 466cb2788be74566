"""nsightlens doctor: is this machine ready for profiling, and if not, what fixes it."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import click

from nsightlens.cli.output import emit, output_options

_COLOURS = {"good": "green", "note": "yellow", "bad": "red"}
_INDENT = 20
_WIDEST, _NARROWEST = 100, 50


@click.command("doctor")
@click.argument("run_dir", required=False, type=click.Path(path_type=Path))
@output_options
def command(run_dir: Path | None, form: str | None, output: Path | None, wide: bool) -> None:
    """Check nsys, ncu, access to GPU counters, PyTorch, disk space and RUN_DIR, and say how to fix what is not ready.

    Changes nothing, and exits with 0 whatever it finds. With --format or --output the findings are a table.
    """
    from nsightlens.doctor.fitness import examine, verdict

    if form or output:
        import pyarrow as pa

        rows = [{"subject": f.subject, "state": f.state, "found": f.found, "fix": f.fix or None} for f in examine(run_dir)]
        schema = pa.schema([(name, pa.string()) for name in ("subject", "state", "found", "fix")])
        emit(pa.Table.from_pylist(rows, schema), form, output, wide=wide)
        return
    width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 0)).columns))
    findings = []
    for finding in examine(run_dir):
        findings.append(finding)
        state = click.style(f"{finding.state:<5}", _COLOURS[finding.state])
        first, *others = _wrap(f"{finding.subject:<{_INDENT - 6}}{finding.found}", width, 6, _INDENT)
        click.echo(f"{state} {first.lstrip()}")
        for line in [*others, *(_wrap(f"-> {finding.fix}", width, _INDENT, _INDENT + 3) if finding.fix else ())]:
            click.echo(line)
    click.echo(verdict(findings))


def _wrap(text: str, width: int, first: int, others: int) -> list[str]:
    """Return the lines of a text, indented; a path or an address is never cut."""
    return textwrap.wrap(text, width, initial_indent=" " * first, subsequent_indent=" " * others, drop_whitespace=True,
                         break_long_words=False, break_on_hyphens=False) or [""]
