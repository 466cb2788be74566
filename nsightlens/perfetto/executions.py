"""Which processes to draw, and which of them share a time axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nsightlens.errors import UsageError
from nsightlens.intervals.coverage import union
from nsightlens.perfetto.reading import FOREVER, Slices, slices

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_APART_NS = 60_000_000_000
"""Captures of a run further apart than that count as two executions, unless a sidecar says otherwise."""

_PROCESSES = """
SELECT DISTINCT p.run, p.tool, p.profile_id, p.process_id, p.rank, p.host, p.pid, p.name, f.execution_id, f.origin_epoch_ns
FROM processes AS p
JOIN profiles AS f ON p.profile_id = f.profile_id
WHERE p.tool <> 'ncu'
ORDER BY p.run, p.tool, p.rank, p.host, p.pid, p.process_id
"""
_STEPS = """
SELECT min(start_ns) AS first_ns, max(start_ns + duration_ns) - 1 AS last_ns
FROM ranges
WHERE process_id = $process AND kind = 'step' AND step BETWEEN $first_step AND $last_step
"""
_KNOWN_STEPS = "SELECT min(step) AS first, max(step) AS last FROM ranges WHERE kind = 'step'"


@dataclass(frozen=True, slots=True)
class DrawnProcess:
    """One OS process of a profile, the time to draw of it (relative to its profile's origin), and where its rows lie."""

    run: str
    tool: str
    profile_id: str
    process_id: str
    rank: int | None
    host: str | None
    pid: int | None
    name: str | None
    execution_id: str | None
    origin_epoch_ns: int | None
    window: tuple[int, int] = FOREVER
    slices: Slices | None = None

    @property
    def rows(self) -> int:
        """Return the rows to draw."""
        return self.slices.rows if self.slices else 0

    @property
    def span(self) -> tuple[int, int]:
        """Return first start and last end on the axis of the origin: epoch ns where that is known."""
        assert self.slices
        origin = self.origin_epoch_ns or 0
        return origin + self.slices.first_ns, origin + self.slices.last_ns


@dataclass(frozen=True, slots=True)
class Execution:
    """Processes that share a time axis, and its zero: epoch ns, or ns of their profile where the epoch is unknown."""

    name: str
    processes: tuple[DrawnProcess, ...]
    zero_ns: int

    @property
    def zero_epoch_ns(self) -> int | None:
        """Return the epoch time of the zero; None where the captures lack it."""
        return None if self.processes[0].origin_epoch_ns is None else self.zero_ns

    def zero_of(self, process: DrawnProcess) -> int:
        """Return the start_ns of `process` that is drawn at zero."""
        return self.zero_ns - (process.origin_epoch_ns or 0)


def find(
    store: Store, runs: list[str] | None, ranks: list[int] | None, steps: tuple[int, int] | None,
) -> list[Execution]:
    """Return the executions to draw, in the order of runs. Raises UsageError where a filter leaves none, with the choices."""
    every = [DrawnProcess(**row) for row in store.sql(_PROCESSES).to_pylist()]
    chosen = _only(every, "run", runs)
    chosen = _only(chosen, "rank", ranks)
    if steps:
        chosen = _windows(store, chosen, steps)
    sliced = [replace(process, slices=slices(store, process.process_id, process.window)) for process in chosen]
    return _grouped(process for process in sliced if process.rows)


def _only(processes: list[DrawnProcess], column: str, wanted: list[Any] | None) -> list[DrawnProcess]:
    if not wanted:
        return processes
    found = [process for process in processes if getattr(process, column) in wanted]
    missing = [value for value in wanted if all(getattr(process, column) != value for process in processes)]
    if missing:
        known = sorted({value for process in processes if (value := getattr(process, column)) is not None})
        shown = ", ".join(map(str, known)) or "none"
        raise UsageError(f"no timeline of {column} {', '.join(map(str, missing))}; there are: {shown}")
    return found


def _windows(store: Store, processes: list[DrawnProcess], steps: tuple[int, int]) -> list[DrawnProcess]:
    """Return the processes that have such steps, each with the time of them."""
    found = []
    for process in processes:
        asked = {"process": process.process_id, "first_step": steps[0], "last_step": steps[1]}
        window = store.sql(_STEPS, asked).to_pylist()[0]
        if window["first_ns"] is not None and window["last_ns"] is not None:
            found.append(replace(process, window=(window["first_ns"], window["last_ns"])))
    if not found:
        known = store.sql(_KNOWN_STEPS).to_pylist()[0]
        said = "the store knows no steps" if known["first"] is None else f"there are steps {known['first']} to {known['last']}"
        raise UsageError(f"no process has steps {steps[0]} to {steps[1]}; {said}")
    return found


def _grouped(processes: Iterable[DrawnProcess]) -> list[Execution]:
    """Return the processes by execution: by the sidecar's word, else by run, tool and closeness in time.

    A process whose capture has no sidecar belongs to the one execution of its run and tool beside which it lies in time.
    """
    order = list(processes)
    named: dict[tuple[str, str], list[DrawnProcess]] = {}
    apart: dict[tuple[str, str], list[DrawnProcess]] = {}  # nothing shows how they align with others
    rest: dict[tuple[str, str], list[DrawnProcess]] = {}
    for process in order:
        if process.origin_epoch_ns is None:
            apart.setdefault((process.run, process.profile_id), []).append(process)
        elif process.execution_id:
            named.setdefault((process.run, process.execution_id), []).append(process)
    known = {key: list(members) for key, members in named.items()}
    for process in order:
        if process.origin_epoch_ns is not None and not process.execution_id:
            beside = [key for key, members in known.items() if key[0] == process.run
                      and any(one.tool == process.tool and _near(one.span, process.span) for one in members)]
            one_of = named[beside[0]] if len(beside) == 1 else rest.setdefault((process.run, process.tool), [])
            one_of.append(process)
    clusters = [*named.values(), *(cluster for members in rest.values() for cluster in _clusters(members)), *apart.values()]
    place = {process.process_id: number for number, process in enumerate(order)}
    found = [sorted(cluster, key=lambda one: place[one.process_id]) for cluster in clusters]
    found.sort(key=lambda cluster: (cluster[0].run, cluster[0].origin_epoch_ns is None, min(one.span for one in cluster)))
    return _distinct(found)


def _near(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] + _APART_NS and other[0] <= one[1] + _APART_NS


def _clusters(processes: list[DrawnProcess]) -> list[list[DrawnProcess]]:
    """Return the processes in groups whose captures overlap in time or nearly do, earliest first."""
    ordered = sorted(processes, key=lambda process: process.span)
    start, end = np.array([process.span for process in ordered], np.int64).reshape(-1, 2).T
    bounds = np.searchsorted(start, union(start, end + _APART_NS).start).tolist()
    return [ordered[begin:stop] for begin, stop in pairwise([*bounds, len(ordered)])]


def _distinct(clusters: list[list[DrawnProcess]]) -> list[Execution]:
    """Return the executions of these processes, with names that differ."""
    seen: dict[str, int] = {}
    named = []
    for cluster in clusters:
        name = f"{cluster[0].run} · {' + '.join(sorted({process.tool for process in cluster}))}"
        seen[name] = seen.get(name, 0) + 1
        name += f" ({seen[name]})" if seen[name] > 1 else ""
        named.append(Execution(name, tuple(cluster), min(process.span[0] for process in cluster)))
    return named
