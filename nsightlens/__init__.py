"""nsightlens: one kernel table from Nsight Systems, Nsight Compute and the PyTorch profiler, for all ranks.

    import nsightlens as nl
    store = nl.ingest(["runs/base"], store="store")     # then, or later: nl.open("store")
    store.view("kernel_summary").to_pandas()
    store.sql("SELECT rank, family, sum(duration_ns) FROM timeline_kernels GROUP BY ALL")

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nsightlens.errors import (
    BalanceWarning,
    IngestWarning,
    MissingExtraError,
    NsightlensError,
    OldRulesWarning,
    ReadError,
    SchemaError,
    StoreError,
    UnknownFormatError,
    UsageError,
    ViewError,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    import pyarrow as pa

    from nsightlens import plots, recording
    from nsightlens.html_report import Report
    from nsightlens.html_report.shown import Shown
    from nsightlens.pipeline.ingest import Report as IngestReport
    from nsightlens.pipeline.remove import Removed
    from nsightlens.store.comparison import Comparison
    from nsightlens.store.store import Store
    from nsightlens.views.header import Param, View

__version__ = "0.1.0"
__all__ = [
    "BalanceWarning", "IngestWarning", "MissingExtraError", "NsightlensError", "OldRulesWarning", "Param", "ReadError",
    "SchemaError", "Store", "StoreError", "UnknownFormatError", "UsageError", "View", "ViewError", "__version__", "compare",
    "findings", "ingest", "open", "plots", "read", "recording", "remove", "report", "show",
]


def ingest(
    paths: Sequence[str | Path] | str | Path, store: str | Path | None = None, *, run: str | None = None,
    rank_pattern: str | None = None, jobs: int | None = None, materialise: bool = True, answers: bool | None = None,
    executor: Executor | None = None,
) -> Store:
    """Read the captures below `paths` into the store and return it, opened. See `nsightlens.pipeline.ingest.ingest`.

    Warns (IngestWarning) where files were refused, and where a run pools captures that may be of different workloads.
    """
    from pathlib import Path as _Path

    from nsightlens.pipeline.ingest import ingest as _ingest

    roots = [paths] if isinstance(paths, (str, _Path)) else list(paths)
    report = _ingest(roots, store, run=run, rank_pattern=rank_pattern, jobs=jobs, materialise=materialise,
                     answers=answers, executor=executor)
    opened = open(report.store)
    _warn_of(report, opened)
    return opened


def _warn_of(report: IngestReport, store: Store) -> None:
    """Warn of what an ingest refused and pooled, for the caller of `ingest` or `open`."""
    import warnings

    for code, reason in report.warnings(store.sql):
        warnings.warn(IngestWarning(str(report.store), code, reason), stacklevel=3)


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
        place = report.store
    elif run is not None:
        raise UsageError(f"run names captures while they are read: nl.open(CAPTURES, ingest=True, run={run!r}). Views of a store "
                         f"take only_run={run!r}", subject="run", value=run)
    elif holds_captures(place):
        raise UsageError(f"{place} holds captures and is not a store: nsightlens ingest {place} reads them into one; in Python, "
                         f"nl.open({str(place)!r}, ingest=True)", subject="store", value=str(place))
    opened = Store(place, folder.locate(views))
    older = len(opened.older_than_the_rules())
    if older:
        warnings.warn(OldRulesWarning(str(opened.path), older), stacklevel=2)
    if report:
        _warn_of(report, opened)
    return opened


def read(path: str | Path) -> dict[str, pa.Table]:
    """Return the tables of one capture, normalised as in a store but without one. Raises ReadError where it can't be read."""
    from nsightlens.pipeline.ingest import read_one

    return read_one(path)


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


def findings(store: Store, **parameters: object) -> pa.Table:
    """Return what to look at first, best first: the findings that `nsightlens summary` begins with (the view findings).

    parameters: those of the view, such as only_run="base". Raises UsageError for others.
    """
    return store.view("findings", **parameters)


def compare(
    store: Store, base: str | None = None, other: str | None = None, *, by: str | None = None, per: str = "run", **judging: Any,
) -> Comparison:
    """Return what changed from run `base` to run `other`, as `nsightlens compare runs` judges it: tables by name.

    They are comparability, step, waterfall and differences; printed, and in a notebook, it shows its `verdict`.
    base, other: may be left out where the store has two runs. by: kernel (the default), key, family, op, module, phase or step;
    per: run or rank; judging: time, fdr, threshold_pct and skip_steps of the view run_difference. Raises UsageError.
    """
    from nsightlens.store.comparison import of_runs

    return of_runs(store, base, other, by=by, per=per, **judging)


def report(store: Store, *, run: str | Sequence[str] | None = None, base: str | None = None, max_mb: float = 10) -> Report:
    """Return the report of a store: one offline HTML page, which a notebook displays. See `nsightlens.html_report.report`."""
    from nsightlens.html_report import report as _report

    return _report(store, run=run, base=base, max_mb=max_mb)


def show(table: pa.Table, *, rows: int = 200) -> Shown:
    """Return a table that a notebook displays, times and sizes with their units. rows: how many of it are displayed.

    Raises UsageError for what is no pyarrow.Table.
    """
    import pyarrow

    from nsightlens.html_report.shown import Shown as _Shown

    if not isinstance(table, pyarrow.Table):
        raise UsageError(f"nl.show displays a pyarrow.Table, such as store.view('kernel_summary'), not a {type(table).__name__}",
                         subject="table", value=table)
    return _Shown(table, rows)


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
