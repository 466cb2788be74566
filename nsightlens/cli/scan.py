"""nsightlens scan: what there is, before anything is written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.messages import say
from nsightlens.cli.output import PathOrUrl, emit, output_options
from nsightlens.terminal.text import parts, written
from nsightlens.views.figures import counted

if TYPE_CHECKING:
    from nsightlens.discovery.files import CaptureFile
    from nsightlens.terminal.text import Text


@click.command("scan")
@click.argument("run_dir", nargs=-1, required=True, type=PathOrUrl())
@click.option("--run", default=None, help="Name of the run [default: from the sidecar, else the folder's name].")
@click.option("--rank-pattern", default=None, metavar="REGEX", help="Regular expression whose first group is the rank in a file "
                                                                    "name.")
@output_options
def command(
    run_dir: tuple[Path, ...], run: str | None, rank_pattern: str | None, form: str | None, output: Path | None, wide: bool,
) -> None:
    """Identify each file of RUN_DIR: whether ingest reads it, its format, tool version, and rank with its source.

    Writes nothing. `problem` says why ingest refuses a file and what to do, or that an nsys report has an untested schema.
    `unread` counts the rows in event tables of nsys reports that ingest does not read. A warning names runs that mix captures
    of different GPUs or programs.

    \b
    nsightlens scan runs/base
    nsightlens scan runs/base -f csv
    """
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    import pyarrow as pa

    from nsightlens.discovery import mixed_workloads
    from nsightlens.discovery.files import find

    found = find(run_dir, run=run, rank_pattern=rank_pattern)
    rows = [_row(f) for f in found]
    names = ("path", "verdict", "kind", "run", "version", "rank", "rank_source", "process", "bytes", "unread", "problem")
    types = [pa.int32() if n == "rank" else pa.int64() if n == "bytes" else pa.string() for n in names]
    texts = {written(text): text for f in found if (text := _problem(f))}
    emit(pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(zip(names, types, strict=True))}),
         form, output, wide=wide, first=("path", "verdict", "kind", "rank", "problem"), texts=texts)
    verdicts = Counter(row[1] for row in rows)
    say(f"{counted(len(found), 'file')}: " + ", ".join(f"{verdicts[v]} {v}" for v in ("read", "refused", "ignored")))
    for mixed in mixed_workloads.mixed_runs(found):
        say(f"warning: {mixed.message}. {mixed_workloads.REMEDY}")


def _row(file: CaptureFile) -> tuple[object, ...]:
    from nsightlens.discovery.files import path_text

    rank, source = file.rank
    hints = file.probe.processes if file.probe else ()
    processes = ", ".join(f"{p.host or '?'}:{p.pid}" for p in hints if p.pid is not None)
    version = file.probe.tool_version if file.probe else None
    unread = ", ".join(f"{table} {rows}" for table, rows in file.probe.unread.items()) if file.probe else None
    verdict = "refused" if file.refused else "read" if file.tool else "ignored"
    run = file.run if verdict == "read" else None
    return (path_text(file.path.relative_to(file.root)), verdict, file.kind, run, version, rank, source, processes or None,
            file.bytes, unread or None, written(_problem(file)) or None)


def _problem(file: CaptureFile) -> Text:
    """Return what is wrong with a file and what to do, with commands as values; nothing where all is well."""
    from nsightlens.discovery.files import path_text

    refused, note = file.refused, file.probe.note if file.probe else None
    problem = file.sidecar_problem or ((f"{refused.reason}. ", *parts(refused.advice)) if refused else note or "")
    return tuple(type(part)(path_text(part)) if isinstance(part, str) else part for part in parts(problem))
