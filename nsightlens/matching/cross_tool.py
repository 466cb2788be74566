"""The rows of `matches` of a run: which launch in one tool's recording is which in another tool's, one to one.

A pair has the same kernel key, grid and block, the same registers and shared memory where both tools know them, and its
place in the order of launches is certain. Of two timelines: no other pairing of its step (or stretch between steps) explains
the recordings as well (timelines.py). Of ncu, which measures a few launches: what ncu or its wrapper records leaves no other
(ncu_launches.py), or nsys knows it in both. Processes meet by rank, or where each tool has one process in the run.
Steps meet by their number, or one off where their launches say so. What is not certain is not here; the views on `matches`
count it, with the weaker grades.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens import schema
from nsightlens.columns.arrays import Int
from nsightlens.matching import ncu_launches, timelines
from nsightlens.matching.launch_sequence import Ask, LaunchSequence, recorded, tokens
from nsightlens.matching.ncu_positions import UNKNOWN
from nsightlens.matching.sequence_alignment import HOLE
from nsightlens.matching.timelines import ToolLaunches

_PROCESSES = """
SELECT run, tool, rank, profile_id, process_id, count(*) AS launches
FROM kernels WHERE run IN (SELECT unnest(?)) GROUP BY ALL ORDER BY run, tool, rank, profile_id, process_id
"""
_SCHEMA = pa.schema([(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
                     for field in schema.MATCHES.schema])
_OTHER_RUN = pa.field("other_run", pa.string())
_MOST_LAUNCHES = 3_000_000
"""Launches of a process above which its orders are not compared: memory for a few hundred bytes each would be needed."""


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Two recordings, the pairs of their items (one of two may be a hole), and what makes each pair certain."""

    one: LaunchSequence
    other: LaunchSequence
    items: Int
    evidence: list[str]

    def table(self) -> pa.Table:
        """Return the rows of `matches`: the pairs of kernels."""
        rows = np.stack([side.place[self.items[:, i]] for i, side in enumerate((self.one, self.other))], axis=1)
        kept = np.flatnonzero((rows != HOLE).all(axis=1))
        one, other = self.one.process, self.other.process
        columns = {
            "run": one["run"], "rank": one["rank"], "tool": one["tool"], "profile_id": one["profile_id"],
            "other_tool": other["tool"], "other_profile_id": other["profile_id"], "grade": "launch",
        }
        arrays = {name: pa.repeat(pa.scalar(value, _SCHEMA.field(name).type), len(kept)) for name, value in columns.items()}
        arrays |= {"kernel_id": self.one.kernel_id[rows[kept, 0]], "other_kernel_id": self.other.kernel_id[rows[kept, 1]]}
        arrays["evidence"] = pa.array(self.evidence, pa.string()).take(pa.array(kept))
        return pa.table({name: arrays[name] for name in _SCHEMA.names}, schema=_SCHEMA)


def matches(ask: Ask, runs: Iterable[str]) -> pa.Table:
    """Return the rows of `matches` of some runs; `ask` answers SQL on their kernels, calls, ranges and profiles."""
    of_runs = [ask(_PROCESSES, [[run]]).to_pylist() for run in sorted(set(runs))]
    found = (crossing.table() for processes in of_runs for crossing in _crossings(ask, processes))
    return pa.concat_tables([_SCHEMA.empty_table(), *found])


def between(ask: Ask, base: str, other: str) -> pa.Table:
    """Return the pairs of two runs of one workload, as rows of `matches` and the run of each side: `run` and `other_run`."""
    processes = sorted(ask(_PROCESSES, [[base, other]]).to_pylist(), key=lambda process: process["run"] != base)
    tables = [_SCHEMA.append(_OTHER_RUN).empty_table()]
    for crossing in _crossings(ask, processes):
        one_run, other_run = (side.process["run"] for side in (crossing.one, crossing.other))
        table = crossing.table()
        if one_run != other_run:
            tables.append(table.append_column(_OTHER_RUN, pa.repeat(other_run, table.num_rows)))
    return pa.concat_tables(tables)


def _crossings(ask: Ask, processes: list[dict[str, Any]]) -> Iterator[_Crossing]:
    """Yield what the processes that meet have in common, one rank after the other."""
    alone = Counter(process["profile_id"] for process in processes)
    for _, some in groupby(sorted(_meetings(processes), key=_group), key=_group):
        known: dict[str, LaunchSequence] = {}
        crossings = []
        for pair in some:
            is_measured = pair[1]["tool"] == "ncu"
            if is_measured and pair[0]["launches"] != pair[1]["launches"] and not ncu_launches.is_located(ask, pair[1]):
                continue
            for process in pair:
                if _name(process) not in known:
                    known[_name(process)] = recorded(ask, process)
            one, other = (known[_name(process)] for process in pair)
            single = all(alone[process["profile_id"]] == 1 for process in pair)
            crossings.append(_measured(ask, one, other, single) if is_measured else _timelines(one, other))
        yield from _carried(crossings)


def _group(meeting: tuple[dict[str, Any], dict[str, Any]]) -> int:
    """Return the rank of a meeting (-1: unknown): what is known of others there may tell more of it."""
    ranks = [side["rank"] for side in meeting if side["rank"] is not None]
    return ranks[0] if ranks else -1


def _name(process: dict[str, Any]) -> str:
    return f"{process['profile_id']} {process['process_id']}"


def _meetings(processes: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the processes of different tools or runs that are the same rank, or the only ones; nsys first, ncu last."""
    tools = {"nsys": 0, "kineto": 1, "ncu": 2}
    ordered = sorted(processes, key=lambda p: tools[p["tool"]])
    only = Counter((process["run"], process["tool"]) for process in processes)
    places: dict[int | None, list[int]] = defaultdict(list)
    for place, process in enumerate(ordered):
        places[process["rank"]].append(place)
    places[None] = [place for place, process in enumerate(ordered) if only[process["run"], process["tool"]] == 1]
    pairs = {pair for alike in places.values() for pair in combinations(alike, 2)}
    for one, other in ((ordered[first], ordered[second]) for first, second in sorted(pairs)):
        if (one["run"] == other["run"] or one["tool"] == "ncu") and one["tool"] == other["tool"]:
            continue
        if max(one["launches"], other["launches"]) > _MOST_LAUNCHES:
            continue
        ranked = one["rank"] is not None and other["rank"] is not None
        if not ranked or one["rank"] == other["rank"]:
            yield one, other


def _timelines(one: LaunchSequence, other: LaunchSequence) -> _Crossing:
    of_rows = tokens(one.table, other.table)
    stepped = all((side.step != UNKNOWN).any() for side in (one, other))
    recordings = []
    for side, mine in zip((one, other), of_rows, strict=True):
        kept = np.flatnonzero(~side.graph)
        step = side.step[kept] if stepped else np.full(len(kept), UNKNOWN)
        recordings.append(ToolLaunches(side.tokens(mine)[kept], kept, timelines.segments(step, UNKNOWN)))
    found = timelines.pairs(recordings[0], timelines.renumbered(*recordings) if stepped else recordings[1])
    return _Crossing(one, other, found.pairs, [_evidence(segment, stepped) for segment in found.segment.tolist()])


def _measured(ask: Ask, one: LaunchSequence, other: LaunchSequence, alone: bool) -> _Crossing:
    found = ncu_launches.pairs(ask, one, other, alone)
    return _Crossing(one, other, found.pairs, found.evidence)


def _carried(crossings: list[_Crossing]) -> list[_Crossing]:
    """Return the crossings of a rank, those of Kineto and ncu with what follows from nsys's with both.

    nsys may know of the launch only, and lack its kernel. Where two ways disagree, neither holds.
    """
    tools = {id(crossing): (crossing.one.process["tool"], crossing.other.process["tool"]) for crossing in crossings}
    done = []
    for crossing in crossings:
        ways = [(through, last) for through in crossings for last in crossings
                if tools[id(crossing)] == ("kineto", "ncu") and tools[id(through)] == ("nsys", "kineto")
                and through.other is crossing.one and last.one is through.one and last.other is crossing.other]
        done.append(_united(crossing, ways) if ways else crossing)
    return done


def _united(crossing: _Crossing, ways: list[tuple[_Crossing, _Crossing]]) -> _Crossing:
    """Return a crossing of Kineto and ncu with the pairs that crossings (nsys and Kineto, nsys and ncu) lead to."""
    of_rows, of_measured = tokens(crossing.one.table, crossing.other.table)
    token = crossing.one.tokens(of_rows)
    pairs = {(item, row): why for (item, row), why in zip(crossing.items.tolist(), crossing.evidence, strict=True)}
    for through, last in ways:
        twin = np.full(len(through.one.place), -1, dtype=np.int64)
        twin[through.items[:, 0]] = through.items[:, 1]
        for (item, row), why in zip(last.items.tolist(), last.evidence, strict=True):
            if twin[item] >= 0 and token[twin[item]] == of_measured[row]:
                pairs.setdefault((int(twin[item]), row), f"through nsys: {why}")
    items, rows = Counter(item for item, _ in pairs), Counter(row for _, row in pairs)
    certain = {pair: why for pair, why in pairs.items() if items[pair[0]] == rows[pair[1]] == 1}
    joined = np.array(list(certain), dtype=np.int64).reshape(len(certain), 2)
    return replace(crossing, items=joined, evidence=list(certain.values()))


def _evidence(segment: int, stepped: bool) -> str:
    if not stepped:
        return "whole recording"
    return "before the first step" if segment < 0 else f"{'after ' * (segment % 2)}step {segment // 2}"
