"""nsightlens scan: what there is, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.output import emit, output_options

if TYPE_CHECKING:
    from nsightlens.discover import Found


@click.command("scan")
@click.argument("run_dir", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run", default=None, help="Name of the run [default: sidecar, else the folder's name].")
@click.option("--rank-pattern", default=None, metavar="REGEX", help="Where file names tell the rank: its first group.")
@click.option("--all", "everything", is_flag=True, help="Also files that are no captures.")
@output_options
def command(
    run_dir: tuple[Path, ...], run: str | None, rank_pattern: str | None, everything: bool, form: str | None,
    output: Path | None, wide: bool,
) -> None:
    """Tell what each file of RUN_DIR is: format, tool version, rank and where the rank comes from. Writes nothing."""
    from nsightlens.workers import spare_pandas

    spare_pandas()
    import pyarrow as pa

    from nsightlens.discover import find

    found = find(run_dir, run=run, rank_pattern=rank_pattern)
    shown = [f for f in found if everything or f.tool or f.refused or f.sidecar_problem]
    rows = [_row(f) for f in shown]
    names = ("path", "run", "what", "version", "rank", "rank_from", "process", "bytes", "problem")
    types = [pa.string(), pa.string(), pa.string(), pa.string(), pa.int32(), pa.string(), pa.string(), pa.int64(), pa.string()]
    emit(pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(zip(names, types, strict=True))}),
         form, output, wide=wide)
    readable = sum(1 for f in found if f.tool and not f.refused)
    click.echo(f"{len(found)} files, {readable} captures, {sum(1 for f in found if f.refused)} refused, "
               f"{len(found) - len(shown)} other files not shown", err=True)


def _row(file: Found) -> tuple[object, ...]:
    rank, source = file.rank
    hints = file.probe.processes if file.probe else ()
    processes = ", ".join(f"{p.host or '?'}:{p.pid}" for p in hints if p.pid is not None)
    problem = file.sidecar_problem or (f"{file.refused.reason}. {file.refused.what_to_do}" if file.refused else None)
    version = file.probe.tool_version if file.probe else None
    return (str(file.path.relative_to(file.root)), file.run, file.kind, version, rank, source, processes or None, file.bytes,
            problem)
