"""nsightlens ingest: captures into the store, with an honest summary."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.messages import complain, fitted, is_quiet
from nsightlens.cli.output import PathOrUrl, executor_options, store_option
from nsightlens.cli.progress import progress
from nsightlens.terminal.colour import painted
from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo
from nsightlens.terminal.text import parts
from nsightlens.terminal.wrapping import printable_text
from nsightlens.views.figures import counted, spans

if TYPE_CHECKING:
    from nsightlens.errors import ReadError
    from nsightlens.pipeline.executors import Kind
    from nsightlens.pipeline.ingest import IngestReport
    from nsightlens.store.store import Store
    from nsightlens.terminal.text import Text

_MOST = 12
_FEW = 3
NO_CAPTURES = "no captures here: nothing was read. nsightlens scan shows what each file is"


@click.command("ingest")
@click.argument("run_dir", nargs=-1, required=True, type=PathOrUrl())
@store_option
@click.option("--run", default=None, help="Name of the run [default: from the sidecar, else the folder's name].")
@click.option("--rank-pattern", default=None, metavar="REGEX", help="Regular expression whose first group is the rank in a file "
                                                                    "name.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=None, help="Worker processes [default: all processors].")
@click.option("--no-materialise", is_flag=True, help="Keep large tables in Parquet only (for data too large to store twice). "
              "Only for a new store.")
@executor_options
@click.option("--answers/--no-answers", default=None, help="Compute the views of each profile now, so that queries only "
              "read them [default: those of summary and compare, from a million launches, calls and ranges on].")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors only.")
def command(
    run_dir: tuple[Path, ...], store: Path | None, run: str | None, rank_pattern: str | None, jobs: int | None,
    executor: Kind, scheduler: str | None, scheduler_file: Path | None, no_materialise: bool, answers: bool | None, quiet: bool,
) -> None:
    """Read nsys exports, ncu reports and CSVs, and PyTorch-profiler traces below RUN_DIR into the store.

    Captures of one folder are one run, and add up: give what is to be compared a --run of its own. Ingest reads only new and
    changed files. It reports a file that it cannot read, says what to do, and goes on with the others. Exit code 1 if there are
    captures but none could be read.

    \b
    nsightlens ingest runs/base
    nsightlens ingest runs/base --executor dask --scheduler-file scheduler.json
    mpiexec -n 65 python -m mpi4py.futures -m nsightlens ingest runs/base --executor mpi
    """
    from nsightlens.pipeline.memory import return_memory, spare_pandas

    return_memory()
    spare_pandas()
    from nsightlens.pipeline.executors import executor as on
    from nsightlens.pipeline.ingest import ingest

    quiet = quiet or is_quiet()
    with ExitStack() as stack:
        pool = stack.enter_context(on(executor, scheduler, scheduler_file))
        report = ingest(run_dir, store, run=run, rank_pattern=rank_pattern, jobs=jobs, materialise=not no_materialise,
                        answers=answers, executor=pool, on_progress=None if quiet else progress(stack), on_wait=wait)
    failed = not any(o.state != "refused" for o in report.outcomes)
    if not quiet:
        _summarise(report)
    for error in report.refused if quiet else ():
        complain(("nsightlens: ", *parts(error.text)))
    if quiet and failed and not report.refused:
        complain(f"nsightlens: {NO_CAPTURES}")
    if failed:
        sys.exit(1)


def wait(holder: str) -> None:
    echo(f"waiting for another ingest into this store to finish ({holder})", err=True)


def _summarise(report: IngestReport) -> None:
    import nsightlens as nl
    from nsightlens.store.store import locate

    states = [o.state for o in report.outcomes]
    outcomes = ", ".join(f"{states.count(s)} {s}" for s in ("new", "replaced", "unchanged", "refused") if states.count(s))
    joined = sum(len(o.paths) for o in report.outcomes)
    pages = f" from {counted(joined, 'file')}" if joined > len(states) else ""
    say(f"{counted(report.files_seen, 'file')} seen; {counted(len(states), 'profile')}{pages}: {outcomes or 'none'}"
         + (f"; {counted(len(report.duplicates), 'duplicate file')} set aside" if report.duplicates else ""))
    for line in [*refusals(report), *_kept(report), *_copied(report), *broken(report)]:
        say(line)
    if not states and not report.refused:
        say(NO_CAPTURES)
        return
    with nl.open(report.store) as store:
        contents(store, {o.run for o in report.outcomes})
    if report.answers_s is not None:
        every = report.answers_s + (report.across_s or 0)
        across = f", {report.across_s:.1f} s of them across ranks" if report.across_s is not None else ""
        say(f"answers: {every:.1f} s{across}; views are read from them (nsightlens views VIEW)")
    if report.refused and not any(state != "refused" for state in states):
        say(f"nothing was read: {counted(len(report.refused), 'file')} refused, for the reasons above")
        return
    named = None if report.store == locate(None) else report.store
    say((f"store: {report.store}   next: ", Command("summary").shell(named)))


def _copied(report: IngestReport) -> list[str]:
    """Return a line where captures at URLs could not be read where they lie."""
    from nsightlens.discovery.remote import RemotePath

    copied = [path for outcome in report.outcomes if outcome.tool == "nsys" and outcome.state in ("new", "replaced")
              for path in outcome.paths if isinstance(path, RemotePath)]
    return [f"  {counted(len(copied), 'nsys report')} copied to a temporary folder (SQLite reads local files only) and deleted "
            f"after reading: {_some([path.name for path in copied])}"] if copied else []


def _kept(report: IngestReport) -> list[str]:
    """Return a line per run that keeps the rows of captures recorded over."""
    runs: dict[str, list[str]] = {}
    for run, path in report.kept:
        runs.setdefault(run, []).append(path.name)
    return [f"  run {run} keeps its rows of {counted(len(names), 'capture')} overwritten since ({_some(names)})"
            for run, names in runs.items()]


def broken(report: IngestReport) -> list[str]:
    """Return a line per part of the store that is missing or damaged still."""
    lines = [f"  error    {part}: missing or damaged; ingest its capture again" for part in report.broken_parts[:_MOST]]
    if len(report.broken_parts) > _MOST:
        lines.append(f"  … and {counted(len(report.broken_parts) - _MOST, 'other part')}")
    return lines


def refusals(report: IngestReport) -> list[Text]:
    """Return a line per reason, with the files that it holds for and one command for all of them."""
    by_reason: dict[tuple[str, str], list[ReadError]] = {}
    for error in report.refused:
        remedy = error.code if error.code in ("needs_export", "archive") else error.what_to_do
        by_reason.setdefault((error.kind, remedy), []).append(error)
    return _few([_refused([error.path for error in errors],
                          f"{errors[0].reason if len(errors) == 1 else reason}. ", _remedy(errors))
                 for (reason, _), errors in by_reason.items()])


def refusals_of(store: Store) -> list[Text]:
    """Return a line per reason why files of a store were refused."""
    return _few([_refused(row["paths"], row["reason"]) for row in store.sql(_REFUSED).to_pylist()])


def _refused(paths: list[str], why: str, remedy: Text = "") -> Text:
    return f"  refused  {_some([Path(path).name for path in paths])}: {why}", *parts(remedy)


def _few(lines: list[Text]) -> list[Text]:
    """Return the first lines of refusals, and what shows the others."""
    if len(lines) > _MOST:
        every = Command("sql", ("FROM files WHERE outcome = 'refused'",))
        lines[_MOST:] = [(f"  … and {len(lines) - _MOST} other reasons: ", every)]
    return lines


def _remedy(errors: list[ReadError]) -> Text:
    from nsightlens.discovery import export, unsupported
    from nsightlens.discovery.remote import path_of

    advice_for_all = {"needs_export": export.advice_for_all, "archive": unsupported.advice_for_all}.get(errors[0].code)
    if len(errors) == 1 or advice_for_all is None:
        return errors[0].advice
    return advice_for_all([path_of(error.path) for error in errors])


_REFUSED = """
SELECT reason, list(path ORDER BY path) AS paths FROM files WHERE outcome = 'refused' GROUP BY reason ORDER BY min(path)
"""
_PROFILES = """
SELECT run, tool, count(*) AS profiles, sum(kernels)::BIGINT AS kernels, sum(memory_ops)::BIGINT AS memory_ops,
    sum(kernel_ns)::BIGINT AS kernel_ns, sum(ranges)::BIGINT AS ranges, sum(events)::BIGINT AS events
FROM profiles WHERE run IN (SELECT unnest(?)) GROUP BY ALL ORDER BY run, tool
"""
_RANKS = """
SELECT run, tool, list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL) AS ranks, max(world_size) AS world_size
FROM processes WHERE run IN (SELECT unnest(?)) GROUP BY ALL
"""
_NOTES = """
SELECT severity, code, list(DISTINCT path ORDER BY path) FILTER (path IS NOT NULL) AS paths,
    list(DISTINCT message ORDER BY message) AS messages
FROM diagnostics
WHERE run IN (SELECT unnest(?)) AND severity <> 'info' AND profile_id IS NOT NULL
GROUP BY severity, code ORDER BY severity, code
"""


def contents(store: Store, runs: set[str]) -> None:
    """Say what the store holds of runs."""
    names = sorted(runs)
    ranks = {(r["run"], r["tool"]): r for r in store.sql(_RANKS, [names]).to_pylist()}
    for row in store.sql(_PROFILES, [names]).to_pylist():
        is_untimed = row["kernels"] and row["kernel_ns"] is None
        kernel_time = "time unknown" if is_untimed else f"{(row['kernel_ns'] or 0) / 1e6:,.3f} ms"
        content = (f"{counted(row['kernels'], 'kernel')} ({kernel_time}), "
                   f"{counted(row['memory_ops'], 'memory operation')}")
        if not row["kernels"] and row["ranges"]:
            content += f", {counted(row['ranges'], 'range')}"
        if row["tool"] == "steps":
            content = f"{counted(row['events'], 'step')} timed by the workload itself"
        say(f"  {row['run']}  {row['tool']:<6}  {counted(row['profiles'], 'profile')}, {content}, "
             f"{_ranks(ranks.get((row['run'], row['tool'])))}")
    notes = store.sql(_NOTES, [names]).to_pylist()
    for note in notes[:_MOST]:
        files = [Path(path).name for path in note["paths"] or ()]
        file_names = f" ({_some(files)})" if files else ""
        more_messages = f" (and {counted(len(note['messages']) - 1, 'other message')})" if len(note["messages"]) > 1 else ""
        say(f"{note['code']}{file_names}: {note['messages'][0]}{more_messages}", note["severity"])
    if notes:
        say(("  all: ", Command("show", ("diagnostic_summary",))))


def _ranks(row: dict[str, Any] | None) -> str:
    """Return which ranks there are, and how many of the job are missing."""
    ranks = (row or {}).get("ranks") or []
    if not ranks:
        return "rank unknown"
    shown = ",".join(map(str, ranks)) if len(ranks) <= _MOST else f"{ranks[0]}…{ranks[-1]} ({len(ranks)})"
    who = f"rank{'' if len(ranks) == 1 else 's'} {shown}"
    world = (row or {}).get("world_size")
    missing = sorted(set(range(world)) - set(ranks)) if world else []
    if not missing:
        return who
    return f"{who} of {world}; missing: {spans(map(str, missing))}"


def _some(names: list[str]) -> str:
    """Return the first few names, and how many more there are."""
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")


def say(text: Text, severity: str = "") -> None:
    """Print a message of an ingest. severity: the word before it, which has a colour."""
    before = f"  {painted('severity', severity, severity.ljust(8))} " if severity else ""
    echo(fitted((before, *printable_text(text)), sys.stderr), err=True, styled=True)
