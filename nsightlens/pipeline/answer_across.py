"""Answers across profiles, computed after the commit of a large ingest: what `summary` and `compare ranks` ask of all ranks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa

from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import NsightlensError
from nsightlens.pipeline import executors, memory, workers
from nsightlens.pipeline.meter import Meter, OnProgress, counter
from nsightlens.readers.measure import count_into, counted
from nsightlens.store import across, answers, catalog_opening, kept_rows
from nsightlens.store.catalog import Change
from nsightlens.store.store import CATALOG, Store
from nsightlens.store.writer import StoreWriter
from nsightlens.views.header import View

VIEWS: Mapping[str, Mapping[str, Any]] = dict.fromkeys((
    "collective_coverage", "collective_summary", "communicator_summary", "cuda_api_summary", "diagnostic_summary", "findings",
    "gpu_summary", "memory_op_summary", "mpi_call_summary", "nvtx_summary", "operator_summary", "profile_overview",
    "rank_balance", "rank_clock", "ranks_to_trace", "stage_waits", "step_time_summary", "straggler", "time_tree",
    "verdict",
), MappingProxyType({})) | {"top_kernels": {"how_many": 8}}
"""Views of scope run that the pages ask, with the parameters that they give."""
TOTALS = (("distributed_overview", ("run", "tool", "process_id"), "synchronizing_ns", "sum"),)
"""Totals over views of scope run that the pages ask: view, by which columns, of which column, how."""
_EVENTS = """
SELECT count(DISTINCT profile_id), coalesce(sum(row_count), 0) FROM catalog._parts WHERE table_name IN (SELECT unnest(?))
"""
INTERRUPTED = "the captures are in the store, without its answers across ranks"


class _Recording(Store):
    """A store that notes what it answers across profiles."""

    def __init__(self, path: Path) -> None:
        self.found: dict[tuple[str, str], pa.Table] = {}
        super().__init__(path)

    def _remembered(self, view: View, parameters: Mapping[str, object], compute: Callable[[], pa.Table]) -> pa.Table:
        rows = super()._remembered(view, parameters, compute)
        if view.scope == "run" and rows.nbytes <= kept_rows.LARGEST:
            self.found[view.name, across.question(parameters)] = rows
        return rows


def answer_across(writing: StoreWriter, change: Change, wanted: bool | None, on_progress: OnProgress | None) -> float | None:
    """Have the store, with `change` committed, keep its answers across profiles; return the seconds that took, None for none.

    wanted: as for `answer`. They are computed in a process of its own, which gives its memory back. Where they cannot be, the
    views compute. Raises KeyboardInterrupt, which says what is there.
    """
    if not _is_worth_it(writing, change, wanted):
        return None
    began = time.perf_counter()
    staging = writing.staging.absolute()
    target = staging / "across"
    try:
        with Meter(staging, {target.name: ("all ranks", len(VIEWS) + len(TOTALS))}, on_progress, "answers") as meter:
            with workers.Pool(1) as pool:
                rows = pool.submit(compute, writing.path.absolute(), target).result()
            meter.finished(target.name, "answers across ranks")
        writing.keep(rows)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None
    except Exception as exc:
        if isinstance(exc, NsightlensError | duckdb.Error | OSError) or executors.has_died(exc):
            return None
        raise
    return time.perf_counter() - began


def _is_worth_it(writing: StoreWriter, change: Change, wanted: bool | None) -> bool:
    """Return whether to answer: where nobody asked for it, if most events are new. So one rank more costs no more than itself."""
    if wanted is False or isinstance(writing.store, RemotePath) or not (change.added or wanted):
        return False
    new = sum(rows.get(table, 0) for *_, rows in change.added for table in answers.EVENTS)
    if not wanted and 2 * new < answers.WORTH_IT:
        return False
    with closing(catalog_opening.attach(writing.path / CATALOG)) as connection:
        ((profiles, every),) = connection.execute(_EVENTS, [answers.EVENTS]).fetchall()
        is_large = every >= answers.WORTH_IT and 2 * new >= every
        return profiles > 1 and (wanted or is_large) and not across.are_kept(connection)


def compute(path: Path, target: Path) -> across.Rows:
    """Return the answers across profiles of the store at `path`. Run it in a process of its own: it moves the user's cache.

    target: the file beside which the answers that are done are counted.
    """
    os.environ["XDG_CACHE_HOME"] = str(target)  # what is kept for the next question is of no use after it
    memory.give_back()
    with _Recording(path) as store, count_into(counter(target.parent, target.name)):
        for view, parameters in VIEWS.items():
            with suppress(NsightlensError):
                store.view(view, **parameters)
            counted(1)
        for view, by, of, how in TOTALS:
            with suppress(NsightlensError):
                store.totals(view, by, of, how, {})
            counted(1)
        return store.found
