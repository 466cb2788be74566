"""Each communicator's transfer times compared with those of its peers: which process group has a slow link.

A row is one communicator (process group) with one operation and payload. Transfer is collective_match's: from the start of the
last rank to the end, so it excludes waiting for late ranks, except for ranks that were not captured. Peers are the other
communicators of the same execution, tool, operation, payload and size. A communicator is slow if its median is at least 1.5
times that of its peers (the median of their medians), and above it by more than the clocks' error.
@scope run
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, _profile_executions, profiles
@assumes Communicators of one size that do the same should take the same time: one that spans more nodes is naturally slower.
@assumes One and a half times is a rule of thumb; fewer than two peers give no comparison.
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@first group_name, verdict, excess_ns, members, transfer_ns, peers_ns
@column run              Run.
@column tool             nsys or kineto.
@column execution_id     Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
@column group_name       Process group, where the trace names it.
@column method           How its calls were matched (see collective_match).
@column members          Its captured ranks, such as '5 to 1021 by 8' or '0, 1, 4'.
@column ranks            How many of its ranks were captured.
@column group_size       Ranks of the process group; NULL where unknown (then peers are of as many captured ranks).
@column collective       Operation as the trace names it, else the kernel's short name.
@column message_bytes    Payload on each rank; NULL where unknown, or where it differs from rank to rank.
@column calls            Matched calls.
@column transfer_ns      Median of their transfer times, over calls and ranks; NULL where its ranks are on no common clock.
@column peers            Other communicators of its size that do the same.
@column peers_ns         Median of their transfer_ns.
@column excess_ns        (transfer_ns - peers_ns) * calls: what the communicator took longer than its peers in total.
@column uncertainty_ns   Median of how far its clocks may be off; NULL where unknown.
@column verdict          slow; slow or waiting (for a rank without a capture); as its peers; cannot tell (peers, clocks, bytes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses.collective_match import ComparedRanks, compared
from nsightlens.columns.arrays import MISSING, Int, Places, distinct, integers, median, numbered, split

SLOW, WAITING = "slow", "slow or waiting"
_FROM = 1.5
_FEWEST = 2
_MANY = 8
_SAME = ("run", "tool", "execution_id", "collective", "message_bytes")
_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("group_name", pa.string()),
    ("method", pa.string()), ("members", pa.string()), ("ranks", pa.int64()), ("group_size", pa.int64()),
    ("collective", pa.string()), ("message_bytes", pa.int64()), ("calls", pa.int64()), ("transfer_ns", pa.int64()),
    ("peers", pa.int64()), ("peers_ns", pa.int64()), ("excess_ns", pa.int64()), ("uncertainty_ns", pa.int64()),
    ("verdict", pa.string()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per communicator, operation and payload; of an execution slow ones first, by what they took longer."""
    return pa.Table.from_pylist(judged(compared(ask)), schema=_SCHEMA)


def judged(executions: Iterable[ComparedRanks]) -> list[dict[str, Any]]:
    """Return the same rows of executions whose ranks are compared."""
    return beside_peers([row for execution in executions for row in _communicators(execution)])


def beside_peers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return communicators with what their times are beside those of their peers, in order."""
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["transfer_ns"] is not None:
            alike.setdefault((*(row[name] for name in _SAME), row["group_size"] or -row["ranks"]), []).append(row)
    for peers in alike.values():
        times = np.array([row["transfer_ns"] for row in peers])
        for place, row in enumerate(peers):
            row |= _against(row, np.delete(times, place))
    rows.sort(key=lambda row: (
        row["run"], row["tool"], row["execution_id"] or "", row["verdict"] not in (SLOW, WAITING), row["verdict"] == WAITING,
        -(row["excess_ns"] or 0), row["group_name"] or "", row["collective"] or "", row["message_bytes"] or 0, row["members"]))
    return rows


def _against(row: dict[str, Any], peers: Int) -> dict[str, Any]:
    """Return what a communicator's time is beside that of its peers."""
    if len(peers) < _FEWEST:
        return {"peers": len(peers)}
    usual, mine = round(float(np.median(peers))), row["transfer_ns"]
    found = {"peers": len(peers), "peers_ns": usual, "excess_ns": (mine - usual) * row["calls"]}
    if row["uncertainty_ns"] is None or row["message_bytes"] is None:
        return found
    is_slow = mine >= _FROM * usual and mine - usual > row["uncertainty_ns"]
    slow = SLOW if row["group_size"] in (None, row["ranks"]) else WAITING
    return found | {"verdict": slow if is_slow else "as its peers"}


def _communicators(found: ComparedRanks) -> Iterator[dict[str, Any]]:
    """Yield the communicators of an execution, not yet compared. Groups of one name that were matched alike count as one."""
    execution = found.execution
    named = [(group.group, group.method) for group in execution.matched]
    codes = {name: number for number, name in enumerate(dict.fromkeys(named))}
    sizes, payloads = (integers(execution.kinds[name]) for name in ("group_size", "message_bytes"))
    said = execution.kinds.select(["collective", "message_bytes", "group_size"])
    kind = numbered(distinct(execution.kinds["collective"])[0], payloads, sizes)
    of_group = np.array([codes[name] for name in named])[found.group]
    for _, parts in _by_communicator(found, of_group, kind):
        first, calls = parts[0].first, _different(np.concatenate([part.call_index for part in parts]))
        transfer, uncertainty = (_known(median(np.concatenate(values))) for values in (
            [part.transfer for part in parts], [part.uncertainty for part in parts]))
        group = execution.matched[found.group[found.call[first]]]
        yield {"run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id, "group_name": group.group,
               "method": group.method, **said.slice(int(execution.calls.kind[first]), 1).to_pylist()[0],
               "members": _members([part.rank for part in parts]), "ranks": len(parts), "calls": calls,
               "transfer_ns": transfer, "uncertainty_ns": uncertainty, "peers": 0, "peers_ns": None, "excess_ns": None,
               "verdict": "cannot tell"}


@dataclass(frozen=True, slots=True)
class _Part:
    """What one rank did of a communicator: its first part, and columns of all."""

    rank: int
    first: int
    call_index: Int
    transfer: Int
    uncertainty: Int


def _by_communicator(found: ComparedRanks, of_group: Int, of_kind: Places) -> list[tuple[int, list[_Part]]]:
    """Return the parts of each communicator with one operation and payload, rank by rank. of_group: of each call."""
    every: dict[int, list[_Part]] = {}
    for rank, mine in found.by_rank:
        call = found.call[mine]
        transfer, uncertainty, index = found.transfer(mine), found.arrivals.lag_limit[call], found.call_index[call]
        key = of_group[call] * (int(of_kind.max()) + 1) + of_kind[found.execution.calls.kind[mine]]
        for number, those in split(np.arange(len(mine)), key):
            part = _Part(rank, int(mine[those[0]]), index[those], transfer[those], uncertainty[those])
            every.setdefault(number, []).append(part)
    return sorted(every.items())


def _different(values: Int) -> int:
    """Return how many different values there are."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(values))))


def _known(value: int) -> int | None:
    return None if value == MISSING else value


def _members(ranks: Sequence[int]) -> str:
    """Return ranks as people say them: '0 to 7', '5 to 1021 by 8', '0, 1, 4', '127 ranks, 5 to 1021'."""
    steps = np.unique(np.diff(ranks))
    if len(ranks) > 2 and len(steps) == 1:
        return f"{ranks[0]} to {ranks[-1]}" + (f" by {steps[0]}" if steps[0] > 1 else "")
    return ", ".join(map(str, ranks)) if len(ranks) <= _MANY else f"{len(ranks)} ranks, {ranks[0]} to {ranks[-1]}"
