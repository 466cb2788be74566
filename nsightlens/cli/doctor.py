"""nsightlens doctor: is this machine fit for profiling, and what mends it."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.cli.output import emit, output_options

_COLOURS = {"good": "green", "note": "yellow", "bad": "red"}
_WIDTH = 14


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
    findings = []
    for finding in examine(run_dir):
        findings.append(finding)
        click.echo(f"{click.style(f'{finding.state:<5}', _COLOURS[finding.state])} {finding.subject:<{_WIDTH}}{finding.found}")
        if finding.mend:
            click.echo(f"{'':<{_WIDTH + 6}}-> {finding.mend}")
    click.echo(verdict(findings))
