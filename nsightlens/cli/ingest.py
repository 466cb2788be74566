"""nsightlens ingest: captures into the store, with an honest summary."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsightlens.cli.output import store_option

if TYPE_CHECKING:
    from nsightlens.road import Progress, Report
    from nsightlens.store import Store

_MOST = 12
_FEW = 3


@click.command("ingest")
@click.argument("run_dir", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
@click.option("--run", default=None, help="Name of the run [default: sidecar, else the folder's name].")
@click.option("--rank-pattern", default=None, metavar="REGEX", help="Where file names tell the rank: its first group.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=None, help="Worker processes [default: all processors].")
@click.option("--no-materialise", is_flag=True, help="Leave large tables in Parquet only (for sets too large to hold twice). "
              "Counts for a new store.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors only.")
def command(
    run_dir: tuple[Path, ...], store: Path | None, run: str | None, rank_pattern: str | None, jobs: int | None,
    no_materialise: bool, quiet: bool,
) -> None:
    """Read the nsys exports, ncu CSVs and PyTorch-profiler traces below RUN_DIR into the store.

    Only what is new or has changed is read again. A file that cannot be read is named, with what to do, and never stops the
    others. Exit code 1 where captures were found but none could be read.
    """
    from nsightlens.workers import spare_pandas

    spare_pandas()
    from nsightlens.road import ingest

    with ExitStack() as stack:
        report = ingest(run_dir, store, run=run, rank_pattern=rank_pattern, jobs=jobs, materialise=not no_materialise,
                        on_progress=None if quiet else _progress(stack), on_wait=_wait)
    failed = bool(report.refused) and not any(o.state != "refused" for o in report.outcomes)
    if not quiet:
        _summarise(report)
    for error in report.refused if quiet else ():
        click.echo(f"nsightlens: {error}", err=True)
    if failed:
        sys.exit(1)


def _wait(holder: str) -> None:
    click.echo(f"waiting for another ingest into this store to end ({holder})", err=True)


def _progress(stack: ExitStack) -> Callable[[Progress], None]:
    """Return a callback: a bar on a terminal, a line per profile elsewhere."""
    if not sys.stderr.isatty():
        def line(step: Progress) -> None:
            if step.label:
                click.echo(f"[{step.done}/{step.total}] {step.label}", err=True)
        return line
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    bar = stack.enter_context(Bar(TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                                  TextColumn("{task.description}", markup=False), console=Console(stderr=True), transient=True))
    task = bar.add_task("", total=None)
    return lambda step: bar.update(task, completed=step.done, total=step.total, description=step.label)


def _summarise(report: Report) -> None:
    import nsightlens as nl
    from nsightlens.errors import StoreError
    from nsightlens.store import locate

    states = [o.state for o in report.outcomes]
    counted = ", ".join(f"{states.count(s)} {s}" for s in ("new", "replaced", "unchanged", "refused") if states.count(s))
    _say(f"{_count(report.files_seen, 'file')} seen; {_count(len(states), 'profile')}: {counted or 'none'}"
         + (f"; {_count(len(report.duplicates), 'duplicate file')} set aside" if report.duplicates else ""))
    for line in _refusals(report):
        _say(line)
    try:
        with nl.open(report.store) as store:
            _contents(store, {o.run for o in report.outcomes})
    except StoreError:
        _say("nothing was stored")
        return
    option = "" if report.store == locate(None) else f" --store {report.store}"
    _say(f"store: {report.store}   next: nsightlens show kernel_summary{option}")


def _refusals(report: Report) -> list[str]:
    """Return a line per reason, with the files that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for error in report.refused:
        by_reason.setdefault(f"{error.reason}. {error.what_to_do}", []).append(Path(error.path).name)
    lines = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
        lines.append(f"  refused  {', '.join(names[:_FEW])}{more}: {reason}")
    if len(lines) > _MOST:
        lines[_MOST:] = [f"  … and {len(lines) - _MOST} other reasons: nsightlens sql \"FROM files WHERE outcome = 'refused'\""]
    return lines


def _contents(store: Store, runs: set[str]) -> None:
    overview = store.sql(
        "SELECT run, tool, count(*) AS profiles, sum(kernels) AS kernels, sum(memory_ops) AS memory_ops, "
        "sum(kernel_ns) AS kernel_ns FROM profiles WHERE run IN (SELECT unnest(?)) GROUP BY ALL ORDER BY run, tool",
        [sorted(runs)]).to_pylist()
    ranks = store.sql("SELECT run, tool, string_agg(DISTINCT rank, ',' ORDER BY rank) AS ranks "
                      "FROM processes WHERE run IN (SELECT unnest(?)) GROUP BY ALL", [sorted(runs)]).to_pylist()
    by_key = {(r["run"], r["tool"]): r for r in ranks}
    for row in overview:
        rank = by_key.get((row["run"], row["tool"]), {"ranks": None})
        known = f"ranks {_shorten(rank['ranks'])}" if rank["ranks"] else "rank unknown"
        _say(f"  {row['run']}  {row['tool']:<6}  {_count(row['profiles'], 'profile')}, {row['kernels']:,} kernels "
             f"({int(row['kernel_ns']) / 1e6:,.3f} ms), {row['memory_ops']:,} memory operations, {known}")
    notes = store.sql("SELECT severity, code, sum(count) AS times, count(DISTINCT path) AS files, min(message) AS message "
                      "FROM diagnostics WHERE run IN (SELECT unnest(?)) AND severity <> 'info' AND code NOT IN "
                      "(SELECT code FROM diagnostics WHERE profile_id IS NULL) GROUP BY ALL ORDER BY severity, code",
                      [sorted(runs)]).to_pylist()
    for note in notes[:_MOST]:
        files = f" ({note['files']} files)" if note["files"] > 1 else ""
        _say(f"  {note['severity']:<8} {note['code']}{files}: {note['message']}")
    if notes:
        _say("  all: nsightlens show diagnostic_summary")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _shorten(ranks: str) -> str:
    numbers = ranks.split(",")
    return ranks if len(numbers) <= _MOST else f"{numbers[0]}…{numbers[-1]} ({len(numbers)})"


def _say(text: str) -> None:
    from nsightlens.cli.output import printable

    click.echo(printable(text), err=True)
