"""nsightlens: one kernel table from Nsight Systems, Nsight Compute and the PyTorch profiler, for all ranks.

    import nsightlens as nl

    store = nl.ingest("runs/base", store="store")   read captures into a store, and open it
    store = nl.open("store")                        open it again
    nl.summary(store)                               the page to read first, also of a capture or folder: nl.summary("runs/base")
    nl.findings(store)                              what to look at, best first
    nl.compare(store, "base", "fused")              what changed from one run to another; ranks=True: the ranks of each
    nl.check("runs/before", "runs/after")           did it become slower? a verdict on recordings, with its cause
    nl.show(store.view("kernel_summary"))           a table with units, in a notebook or the interpreter; print() it in a script
    nl.plots.step_breakdown(store.view("step_breakdown"))   a chart; help(nl.plots) lists them
    nl.report(store).save("report.html")            one offline HTML page
    nl.read("rank0.pt.trace.json")["kernels"]       the tables of one capture, without a store
    nl.remove(store, run="base")                    a run out of the store

    store.views                                     what can be asked, by name
    store.view("kernel_summary", only_tool="nsys").to_pandas()
    store.sql("SELECT rank, family, sum(duration_ns) FROM timeline_kernels GROUP BY ALL")

help(nl.open) explains one of them; all errors are nl.NsightlensError. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, overload

from nsightlens.errors import (
    BalanceWarning,
    IngestWarning,
    InternalError,
    NsightlensError,
    OldRulesWarning,
    ReadError,
    SchemaError,
    StoreError,
    UnknownFormatError,
    UsageError,
    ViewError,
)
from nsightlens.public_calls import gated

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import ExitStack
    from pathlib import Path

    import pyarrow as pa

    from nsightlens import plots, recording
    from nsightlens.gate.check import Check
    from nsightlens.html_report import Report
    from nsightlens.pages.api import Pages
    from nsightlens.pages.display_table import DisplayTable
    from nsightlens.pipeline.ingest import IngestReport
    from nsightlens.pipeline.remove import Removed
    from nsightlens.store.comparison import Comparison
    from nsightlens.store.store import Store
    from nsightlens.views.header import Param, View

__version__ = "0.1.0"
__all__ = [
    "BalanceWarning", "IngestWarning", "InternalError", "NsightlensError", "OldRulesWarning", "Param",
    "ReadError", "SchemaError", "Store", "StoreError", "UnknownFormatError", "UsageError", "View", "ViewError", "__version__",
    "check", "compare", "findings", "ingest", "open", "plots", "read", "recording", "remove", "report", "show",
    "summary",
]


@gated
def ingest(
    paths: Sequence[str | Path] | str | Path, store: str | Path | None = None, *, run: str | None = None,
    rank_pattern: str | None = None, jobs: int | None = None, materialise: bool = True, answers: bool | None = None,
    executor: Executor | None = None,
) -> Store:
    """Read the captures below `paths` into the store and return it, opened. See `nsightlens.pipeline.ingest.ingest`.

    Raises NsightlensError where there are no captures and no store.
    Warns (IngestWarning) where files were refused, and where a run pools captures that may be of different workloads.
    """
    from nsightlens.pipeline.ingest import ingest as _ingest

    roots = [paths] if isinstance(paths, (str, PurePath)) else paths
    report = _ingest(roots, store, run=run, rank_pattern=rank_pattern, jobs=jobs, materialise=materialise,
                     answers=answers, executor=executor)
    _confirm_store(report, roots)
    opened = open(report.store)
    _warn_of(report, opened)
    return opened


def _confirm_store(report: IngestReport, roots: Sequence[str | Path]) -> None:
    """Raise NsightlensError where an ingest made no store, for want of captures."""
    from nsightlens.store.store import is_store

    if not report.outcomes and not is_store(report.store):
        raise NsightlensError(f"{', '.join(map(str, roots))}: no captures here: nothing was read, and there is no store at "
                              f"{report.store}. nsightlens scan shows what each file is")


def _warn_of(report: IngestReport, store: Store) -> None:
    """Warn of what an ingest refused and pooled, for the caller of `ingest` or `open`."""
    import warnings

    from nsightlens.store.checks import POOLED

    for code, reason in report.warnings(store.sql):
        how = ". nl.ingest(CAPTURES, run=NAME) names a run, and nl.remove(store, run=NAME) takes one out again"
        again = how if code in POOLED else ""
        warnings.warn(IngestWarning(str(report.store), code, reason + again), stacklevel=4)


@gated
def open(
    store: str | Path | None = None, *, views: str | Path | None = None, ingest: bool = False, run: str | None = None,
) -> Store:
    """Return the store at `store` (else $NSIGHTLENS_STORE, else ./nsightlens-store), opened for reading.

    ingest: where `store` is a run directory or a capture instead, read it first into the store that would be opened without it,
    as the run `run` (else the folder's name), with the warnings of `ingest`.
    views: a folder with views of your own (else $NSIGHTLENS_VIEWS): .sql files and Python analyses with headers like ours.
    Raises StoreError where there is no store, UsageError where there are captures instead, and ViewError for a mistake in a view
    of your own. Warns (OldRulesWarning) where profiles were read by older rules than this version's.
    """
    import warnings

    from nsightlens.errors import OldRulesWarning, UsageError
    from nsightlens.store.store import Store, holds_captures, is_store, locate
    from nsightlens.views import folder

    place, report = locate(store), None
    if ingest and store is not None and not is_store(place):
        from nsightlens.pipeline.ingest import ingest as _ingest

        report = _ingest([store], run=run)
        _confirm_store(report, [store])
        place = report.store
    elif run is not None:
        raise UsageError(f"run names captures while they are read: nl.open(CAPTURES, ingest=True, run={run!r}). Views of a store "
                         f"take only_run={run!r}", subject="run", value=run)
    elif holds_captures(place):
        from nsightlens.terminal.command import Command

        raise UsageError((f"{place} holds captures and is not a store: ", Command("ingest", (place,)), " reads them into one; "
                          f"in Python, nl.open({str(place)!r}, ingest=True)"), subject="store", value=str(place))
    opened = Store(place, folder.locate(views))
    older = len(opened.older_than_the_rules())
    if older:
        warnings.warn(OldRulesWarning(str(opened.path), older), stacklevel=3)
    if report:
        _warn_of(report, opened)
    return opened


@gated
def read(path: str | Path) -> dict[str, pa.Table]:
    """Return the tables of one capture, normalised as in a store but without one.

    Raises ReadError where it can't be read, UsageError for a folder of several.
    """
    from nsightlens.pipeline.ingest import read_one

    return read_one(path)


@gated
def remove(
    store: Store | str | Path | None = None, *, run: str | None = None, file: str | Path | None = None, dry_run: bool = False,
) -> Removed:
    """Take a run, or one capture, out of a store, and return what was removed: its str is a sentence.

    store: an open one, which then answers without the run; or a path (None: as for `open`).
    run: the run. file: a capture's path in the table files, or the end of it; with `run`, of that run. With it goes what was read
    together with it. dry_run: remove nothing, only return what would be. The captures themselves stay where they are: `ingest`
    brings them back. Raises UsageError for what the store does not have. See `nsightlens.pipeline.remove.remove`.
    """
    from nsightlens.pipeline.remove import remove as _remove
    from nsightlens.store.store import Store

    removed = _remove(store.path if isinstance(store, Store) else store, run=run, file=file, dry_run=dry_run)
    if isinstance(store, Store) and not dry_run:
        store.reopen()
    return removed


@gated
def summary(
    store: Store | str | Path, *, run: str | Sequence[str] | None = None, rank: int | Sequence[int] | None = None,
    step: int | Sequence[int] | None = None, tool: str | Sequence[str] | None = None, family: str | Sequence[str] | None = None,
) -> Pages:
    """Return the page to read first, as `nsightlens summary` prints it: print(nl.summary(store)).

    store: or the path of one, or of captures, which are read for this page alone (a large run: `ingest` it once). It is a dict of
    the tables behind the page, by view (`findings`, `gpu_summary`, …); .text is the page, as wide as the terminal (COLUMNS, else
    120). run, rank, step, tool, family: only these. Raises UsageError for what the store does not have.
    """
    from contextlib import ExitStack

    from nsightlens.pages import api
    from nsightlens.store.store import Store

    with ExitStack() as stack:
        opened = store if isinstance(store, Store) else stack.enter_context(_opened(store, stack))
        return api.summary(opened, {"run": run, "rank": rank, "step": step, "tool": tool, "family": family})


def _opened(path: str | Path, stack: ExitStack) -> Store:
    """Return the store at a path, else one of the captures there, which goes with the stack."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from nsightlens.store.store import is_store

    if is_store(Path(path)):
        return open(path)
    return ingest(path, f"{stack.enter_context(TemporaryDirectory(prefix='nsightlens-'))}/store")


@gated
def findings(store: Store, **parameters: object) -> pa.Table:
    """Return what to look at first, best first: all findings, of which `nsightlens summary` begins with three.

    They are the rows of the view findings; their column `more` names calls of Python. nl.show(nl.findings(store)) displays them.
    parameters: those of the view, such as only_run="base". Raises UsageError for others.
    """
    import pyarrow as pa

    from nsightlens.views.run_command import command_of

    table, runs = store.view("findings", **parameters), store.values_of("run")
    commands = [command_of(row, runs) for row in table.to_pylist()]
    more = pa.array([command.python() for command in commands], pa.string())
    fields = pa.array([command.fields for command in commands], table.schema.field("command").type)
    named = table.set_column(table.column_names.index("more"), "more", more)
    return named.set_column(table.column_names.index("command"), "command", fields)


@overload
def compare(
    store: Store, *, ranks: Literal[True], run: str | Sequence[str] | None = None, rank: int | Sequence[int] | None = None,
    step: int | Sequence[int] | None = None, tool: str | Sequence[str] | None = None, family: str | Sequence[str] | None = None,
) -> Pages: ...


@overload
def compare(
    store: Store, base: str | None = None, other: str | None = None, *, by: str | None = None, per: str | None = None,
    tool: str | None = None, **judging: Any,
) -> Comparison: ...


@gated
def compare(
    store: Store, base: str | None = None, other: str | None = None, *, ranks: bool = False, by: str | None = None,
    run: str | Sequence[str] | None = None, rank: int | Sequence[int] | None = None,
    step: int | Sequence[int] | None = None, tool: str | Sequence[str] | None = None, family: str | Sequence[str] | None = None,
    **judging: Any,
) -> Comparison | Pages:
    """Compare two runs, or with ranks=True the ranks of each run; printed, and in a notebook, it is the verdict or the page.

    nl.compare(store, "base", "other") returns what changed from run `base` to `other`, as `nsightlens compare` says it: a dict of
    the tables tree, comparability and differences (counters and comparability, where only ncu measured the runs), and its
    `verdict`. The names may be left out where the store has two runs. by: of what the differences are: kernel (the default),
    key, family, op, module, phase or step; tool: nsys or kineto; judging: fdr, threshold_pct and skip_steps of the view
    run_difference.

    nl.compare(store, ranks=True) returns the page of `nsightlens compare ranks`, a dict of the tables behind it (`straggler`,
    `rank_clock`, …) with its `text`. run, rank, step, tool, family: only these.

    Raises UsageError for what the store does not have.
    """
    from nsightlens.pages import api
    from nsightlens.store.comparison import compare_two_runs
    from nsightlens.terminal.command import Command

    of_ranks = {"run": run, "rank": rank, "step": step, "family": family}
    of_two = {"base": base, "other": other, "by": by, **judging}
    misplaced = [name for name, value in (of_two if ranks else of_ranks).items() if value is not None]
    if misplaced:
        why = "does not go with ranks=True" if ranks else "needs ranks=True"
        raise UsageError(f"{misplaced[0]} {why}: {_COMPARISONS}", subject=misplaced[0],
                         value=(of_two if ranks else of_ranks)[misplaced[0]])
    try:
        if ranks:
            return api.ranks(store, {**of_ranks, "tool": tool})
        asked = judging if tool is None else {"time": tool, **judging}
        return compare_two_runs(store, base, other, by=by or "kernel", **asked)
    except UsageError as exc:
        raise UsageError(exc.told(Command.python), subject=exc.subject, value=exc.value, choices=exc.choices,
                         view=exc.view) from None


@gated
def check(
    base: str | Path | Sequence[str | Path], candidate: str | Path | Sequence[str | Path], *,
    store: Store | str | Path | None = None, limit: float = 3.0, slow_steps: float = 1.0,
    max_regression: Mapping[str, float] | None = None, look: int | None = None, force: bool = False,
) -> Check:
    """Return whether the candidate became slower than the base, as `nsightlens check` does: .verdict, .exit_code, .sentences.

    base, candidate: runs of the store, or stores, captures and folders of them; one or several. store: as for `open`.
    limit: accepted growth of the step time, in percent; slow_steps: of the share of slow steps, in points; max_regression: of
    more items, {"gemm": 5}; look: 1, 2, … where recordings are added until it is decided; force: judge what is not comparable.
    The result is a dict of the tables questions, recordings, kernels, tree and verdict. Raises UsageError for what there is not.
    """
    from nsightlens.gate.check import Asked
    from nsightlens.gate.places import checked, read_quietly
    from nsightlens.store.store import Store, locate

    sides = [[str(name) for name in ([side] if isinstance(side, (str, PurePath)) else side)] for side in (base, candidate)]
    there = store if store is None or isinstance(store, Store) else locate(store)
    return checked(sides[0], sides[1], there, None, Asked(limit, slow_steps, max_regression or {}, look, force), read_quietly)


@gated
def report(store: Store, *, run: str | Sequence[str] | None = None, base: str | None = None, max_mb: float = 10) -> Report:
    """Return the report of a store: one offline HTML page, which a notebook displays. See `nsightlens.html_report.report`."""
    from nsightlens.html_report import report as _report

    return _report(store, run=run, base=base, max_mb=max_mb)


@gated
def show(table: pa.Table | DisplayTable, *, rows: int = 200) -> DisplayTable:
    """Return a table that notebooks and terminals display, times and sizes with their units. rows: how many of it are displayed.

    A script prints it: print(nl.show(table)). The result has all that the table has: nl.show(table).to_pandas(). Raises
    UsageError for what is no pyarrow.Table.
    """
    from nsightlens.pages.display_table import DisplayTable as _Shown

    if rows < 0:
        raise UsageError(f"nl.show: rows is 0 or more, not {rows}", subject="rows", value=rows)
    return _Shown(table.table if isinstance(table, _Shown) else table, rows)


_COMPARISONS = ('nl.compare(store, "base", "other") compares two runs, nl.compare(store, ranks=True) the ranks of each')


def __getattr__(name: str) -> Any:
    """Return what is imported when it is first used: Store, View, Param, plots, recording."""
    if name == "Store":
        from nsightlens.store.store import Store

        return Store
    if name in ("Param", "View"):
        from nsightlens.views import header

        return getattr(header, name)
    if name == "plots":
        return import_module("nsightlens.plots")
    if name == "recording":
        return import_module("nsightlens.recording")
    raise AttributeError(f"module 'nsightlens' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()) is not None:
    from nsightlens.pages.notebook import show_tables as _show_tables

    _show_tables(_shell)
