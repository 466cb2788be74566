"""nsightlens doctor: is this machine fit for profiling, and what mends it."""

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
    """Tell what of nsys, ncu, the GPU's counters, PyTorch, disk and RUN_DIR is fit for profiling, with the mend for what is not.

    Changes nothing, and ends with code 0 whatever it finds. With --format or --output the findings are a table.
    """
    from nsightlens.doctor import examine, verdict

    if form or output:
        import pyarrow as pa

        rows = [{"subject": f.subject, "state": f.state, "found": f.found, "mend": f.mend or None} for f in examine(run_dir)]
        schema = pa.schema([(name, pa.string()) for name in ("subject", "state", "found", "mend")])
        emit(pa.Table.from_pylist(rows, schema), form, output, wide=wide)
        return
    width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 0)).columns))
    findings = []
    for finding in examine(run_dir):
        findings.append(finding)
        state = click.style(f"{finding.state:<5}", _COLOURS[finding.state])
        first, *others = _wrap(f"{finding.subject:<{_INDENT - 6}}{finding.found}", width, 6, _INDENT)
        click.echo(f"{state} {first.lstrip()}")
        for line in [*others, *(_wrap(f"-> {finding.mend}", width, _INDENT, _INDENT + 3) if finding.mend else ())]:
            click.echo(line)
    click.echo(verdict(findings))


def _wrap(text: str, width: int, first: int, others: int) -> list[str]:
    """Return the lines of a text, indented; a path or an address is never cut."""
    return textwrap.wrap(text, width, initial_indent=" " * first, subsequent_indent=" " * others, drop_whitespace=True,
                         break_long_words=False, break_on_hyphens=False) or [""]
