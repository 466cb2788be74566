"""The recordings of a side of a check: one execution each, with one figure for each question. Cycles of a process are one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nsightlens.analyses._run_judgements import judgements
from nsightlens.columns.arrays import Int
from nsightlens.diagnosis.tree import Tree
from nsightlens.diagnosis.window import leading
from nsightlens.statistics.gating import slow_share, trimmed_mean

if TYPE_CHECKING:
    from nsightlens.store.comparison import RunPlace

PLAIN = "plain"
"""What timed a recording that ran under no profiler: the workload itself, in steps.json."""
_FEWEST = 3
"""Steps from which on the first is not steady."""
_WARM_UP = "warm"
_PROFILES = """
SELECT profile_id, execution_id, origin_epoch_ns, any_value(settings['git_commit']) AS commit,
    list(DISTINCT host ORDER BY host) FILTER (host IS NOT NULL) AS hosts, list(DISTINCT pid) FILTER (pid IS NOT NULL) AS pids
FROM profiles LEFT JOIN processes USING (profile_id) WHERE profiles.run = $1 GROUP BY ALL
"""
_NUMBERED = "SELECT profile_id, recording, first_ns FROM recordings WHERE run = $1 AND tool = $2"
_STEPS = """
SELECT profile_id, min(step) AS first, max(step) AS last FROM ranges WHERE run = $1 AND tool = $2 AND kind = 'step'
GROUP BY profile_id
"""
_FILES = "SELECT profile_id, fingerprint FROM files WHERE run = $1 AND profile_id IS NOT NULL AND fingerprint IS NOT NULL"
_PEAKS = """
SELECT profile_id, max(peak_allocated_bytes) AS bytes FROM memory_peak WHERE run = $1 AND device IS NOT NULL GROUP BY profile_id
"""
_PLAIN = """
SELECT profile_id, rank, segment_number, segment_name, segment_start_ns + segment_duration_ns AS end_ns, start_ns, duration_ns
FROM step_times WHERE run = $1 AND profiler = 'none' AND start_ns IS NOT NULL ORDER BY profile_id, segment_number, start_ns
"""


@dataclass(frozen=True, slots=True)
class Recording:
    """One execution of a side, and its figures. run: whence; tool: what timed it, nsys, kineto or plain.

    begun_ns: when its first GPU work, or its first step, began, in ns since the epoch; None where not known.

    node: the hosts that it ran on; windows: how many captures of one process it is. steps: steady ones, 0 where the figure is
    that of first to last GPU work; dropped: warm-up before them. slow_pct: the share of their time above twice the median; None
    where steps were not timed one by one. communication_pct, peak_bytes: None where not recorded. drift_pct: by how much the
    last third of its steps is longer than the first; slowed_ns: by how much its kernels are, where the GPU slows down.
    """

    run: str
    tool: str
    number: int
    node: str | None
    commit: str | None
    steps: int
    dropped: int
    mean_ns: float
    trimmed_ns: float
    slow_pct: float | None
    windows: int = 1
    communication_pct: float | None = None
    peak_bytes: int | None = None
    families: Mapping[str, float] = field(default_factory=dict)
    kernels: Mapping[str, float] = field(default_factory=dict)
    drift_pct: float | None = None
    slowed_ns: int = 0
    begun_ns: int | None = None


@dataclass(slots=True)
class _Capture:
    """What is known of the captures of one recording before it is one: who ran it, and which steps."""

    run: str
    number: int
    trees: list[Tree]
    profiles: set[str]
    execution: str | None
    commit: str | None
    hosts: set[str]
    pids: set[int]
    span: tuple[int, int] | None
    first_ns: int
    prints: set[str]
    peak: int | None


def traced(places: Sequence[RunPlace], tool: str, *, per_step: bool) -> list[Recording]:
    """Return the recordings under a profiler. per_step: whether all have steps, whose figures are compared then."""
    captures = [one for place in places for one in _captures(place, tool)]
    return [_tree_figures(capture, tool, per_step) for capture in _merge_captures(captures)]


def _captures(place: RunPlace, tool: str) -> list[_Capture]:
    ask, run = place.store.sql, place.run
    about = {row["profile_id"]: row for row in ask(_PROFILES, [run]).to_pylist()}
    numbered = {row["profile_id"]: row for row in ask(_NUMBERED, [run, tool]).to_pylist()}
    steps = {row["profile_id"]: (row["first"], row["last"]) for row in ask(_STEPS, [run, tool]).to_pylist()
             if row["first"] is not None}
    peaks = {row["profile_id"]: row["bytes"] for row in ask(_PEAKS, [run]).to_pylist()}
    prints: dict[str, set[str]] = defaultdict(set)
    for row in ask(_FILES, [run]).to_pylist():
        prints[row["profile_id"]].add(row["fingerprint"])
    found: dict[int, _Capture] = {}
    for tree in trees_of(place, tool):
        row, named = about[tree.profile_id], numbered.get(tree.profile_id, {})
        number = named.get("recording") or 0
        one = found.setdefault(number, _Capture(place.name, number, [], set(), row["execution_id"], row["commit"], set(), set(),
                                                None, named.get("first_ns") or 0, set(), None))
        one.trees.append(tree)
        one.profiles.add(tree.profile_id)
        one.hosts |= {*(row["hosts"] or ())}
        one.pids |= {*(row["pids"] or ())}
        one.prints |= prints[tree.profile_id]
        one.span = _hull(one.span, steps.get(tree.profile_id))
        one.peak = max(filter(None, (one.peak, peaks.get(tree.profile_id))), default=None)
    return [found[number] for number in sorted(found)]


def _hull(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def trees_of(place: RunPlace, tool: str) -> list[Tree]:
    """Return the trees of a run under a tool."""
    return [tree for each in judgements(place.store.sql) if (each.run, each.tool) == (place.run, tool) for tree in each.trees]


def _merge_captures(captures: Sequence[_Capture]) -> list[_Capture]:
    """Return captures without those that are given twice, cycles of one process joined."""
    found: list[_Capture] = []
    for one in sorted(captures, key=lambda each: (each.first_ns, each.number)):
        if any(one.prints & known.prints for known in found):
            continue
        earlier = next((known for known in found if _is_one_process(known, one)), None)
        if earlier is None:
            found.append(one)
            continue
        earlier.trees += one.trees
        earlier.prints |= one.prints
        earlier.span = _hull(earlier.span, one.span)
        earlier.peak = max(filter(None, (earlier.peak, one.peak)), default=None)
    return found


def _is_one_process(earlier: _Capture, later: _Capture) -> bool:
    """Return whether two captures are cycles of one process: its pid, and steps that go on. Containers often start with one pid,
    so a pid alone says nothing; starts of a job record the same steps."""
    if earlier.execution and later.execution and earlier.execution != later.execution:
        return False
    same_host = not earlier.hosts or not later.hosts or earlier.hosts == later.hosts
    goes_on = bool(earlier.span and later.span and earlier.span[1] < later.span[0])
    return same_host and goes_on and bool(earlier.pids) and earlier.pids == later.pids


def _tree_figures(capture: _Capture, tool: str, per_step: bool) -> Recording:
    """Return the figures of a recording: step times are those of the GPU whose steps take longest."""
    devices: dict[str, list[str]] = defaultdict(list)
    by_gpu: dict[tuple[int | None, int], list[Tree]] = defaultdict(list)
    for tree in sorted(capture.trees, key=lambda each: (each.profile_id, each.device_id)):
        of_profile = devices[tree.profile_id]
        if tree.device_id not in of_profile:
            of_profile.append(tree.device_id)
        by_gpu[tree.rank, of_profile.index(tree.device_id)].append(tree)
    lengths = {gpu: np.concatenate([_lengths(tree, per_step) for tree in trees]) for gpu, trees in by_gpu.items()}
    gpu = max(lengths, key=lambda each: trimmed_mean(lengths[each]))
    whole = sum(tree.window.length for tree in capture.trees)
    parts = sum(tree.window.steps if per_step else 1 for tree in capture.trees)
    pieces = [piece for tree in capture.trees for piece in (*tree.computing, *tree.communication)]
    steady = lengths[gpu]
    return Recording(
        capture.run, tool, capture.number, ", ".join(sorted(capture.hosts)) or None, capture.commit,
        len(steady) if per_step else 0, sum(tree.window.dropped for tree in by_gpu[gpu]), float(steady.mean()),
        trimmed_mean(steady),
        slow_share(steady) if per_step else None, len({(tree.profile_id, tree.window_index) for tree in by_gpu[gpu]}),
        100 * sum(tree.lengths["communication"] for tree in capture.trees) / whole, capture.peak,
        _means(((piece.family, piece.ns) for piece in pieces), parts), _means(((piece.key, piece.ns) for piece in pieces), parts),
        _drift(steady) if per_step else None, max(tree.slowed_ns for tree in capture.trees), capture.first_ns or None)


def _lengths(tree: Tree, per_step: bool) -> Int:
    window = tree.window
    return np.array([end - start for start, end in pairwise(window.bounds)] if per_step else [window.length], np.int64)


def _means(pairs: Iterable[tuple[str, int]], parts: int) -> dict[str, float]:
    """Return the ns of each name in a step (or window), of so many."""
    found: dict[str, int] = defaultdict(int)
    for name, ns in pairs:
        found[name] += ns
    return {name: ns / parts for name, ns in found.items()}


def _drift(lengths: Int) -> float | None:
    """Return by how much the median of the last third of steps is above that of the first, in percent; None for few steps."""
    third = len(lengths) // 3
    if third < _FEWEST:
        return None
    first, last = float(np.median(lengths[:third])), float(np.median(lengths[-third:]))
    return 100 * (last - first) / first


def plain(places: Sequence[RunPlace]) -> list[Recording]:
    """Return the recordings that ran under no profiler, by the workload's own steps."""
    return [one for place in places for one in _plain(place)]


def _plain(place: RunPlace) -> Iterator[Recording]:
    about = {row["profile_id"]: row for row in place.store.sql(_PROFILES, [place.run]).to_pylist()}
    ranks: dict[str, list[_Timed]] = defaultdict(list)
    profiles: dict[str, set[str]] = defaultdict(set)
    begun: dict[str, list[int]] = defaultdict(list)
    for profile, rows in _grouped(place.store.sql(_PLAIN, [place.run]).to_pylist(), "profile_id"):
        timed = _timed(rows)
        if timed:
            execution = about[profile]["execution_id"] or profile
            origin = about[profile]["origin_epoch_ns"]
            begun[execution] += [] if origin is None else [origin + row["start_ns"] for row in rows]
            ranks[execution].append(timed)
            profiles[execution].add(profile)
    for number, (execution, of_ranks) in enumerate(sorted(ranks.items())):
        hosts = {host for profile in profiles[execution] for host in about[profile]["hosts"] or ()}
        slowest = max(of_ranks, key=lambda each: each.figure)
        yield Recording(place.name, PLAIN, number, ", ".join(sorted(hosts)) or None,
                        about[min(profiles[execution])]["commit"], slowest.steps, slowest.dropped, slowest.mean, slowest.figure,
                        slowest.slow, begun_ns=min(begun[execution], default=None))


@dataclass(frozen=True, slots=True)
class _Timed:
    steps: int
    dropped: int
    mean: float
    figure: float
    slow: float | None


def _timed(rows: Sequence[Mapping[str, Any]]) -> _Timed | None:
    """Return the figures of the steps of a rank: from the start of one to that of the next, the last to the end of its segment.

    Where the device is done long after the last step was issued, the host ran ahead, and only the mean of a segment is true.
    """
    segments = [some for _, some in _grouped(rows, "segment_number") if _WARM_UP not in (some[0]["segment_name"] or "").lower()]
    lengths: list[Int] = []
    is_ahead = False
    for some in segments:
        starts = [row["start_ns"] for row in some]
        end = some[0]["end_ns"]
        issued = some[-1]["start_ns"] + (some[-1]["duration_ns"] or 0)
        periods: Int = np.diff(np.array([*starts, issued if end is None else end], np.int64)).astype(np.int64)
        is_ahead |= bool(end is not None and 2 * (end - issued) > np.median(periods))
        lengths.append(periods)
    if not lengths:
        return None
    every: Int = np.concatenate(lengths)
    warmed = len(rows) - len(every)
    first = 0 if is_ahead or len(every) < _FEWEST else leading(every) if warmed else leading(every[1:]) + 1
    steady = every[first:]
    mean = float(steady.mean())
    figures = (mean, None) if is_ahead else (trimmed_mean(steady), slow_share(steady))
    return _Timed(len(steady), warmed + first, mean, *figures)


def _grouped(rows: Sequence[Mapping[str, Any]], name: str) -> list[tuple[Any, list[Mapping[str, Any]]]]:
    found: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return list(found.items())
