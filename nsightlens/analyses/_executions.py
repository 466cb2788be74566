"""The communication kernels of each execution of a store: matched over ranks as far as they can be, and the clocks that follow.

Millions of kernels are of a few thousand kinds: what the kernels of a kind have in common, all texts among it, is read once for
each kind, and of a kernel only numbers (some 40 bytes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.analyses import Ask, cached_per_store
from nsightlens.columns.arrays import MISSING, Int, Mask, Places, distinct, integers, narrow, numbered, split
from nsightlens.matching.collectives import Clock, CommunicationKernels, Kinds, Matched, clocks, match
from nsightlens.matching.messages import Messages, messages
from nsightlens.names.collectives import POINT_TO_POINT, UNEVEN, operation

_SAME = ("profile_id", "process_id", "rank", "host", "stream", "group_name", "group_size", "collective", "short_name",
         "message_bytes", "peer_rank")
"""What the kernels of a kind have in common."""
_NUMBERED = f"""
SELECT (row_number() OVER (ORDER BY {", ".join(f"k.{name}" for name in _SAME)}) - 1)::INTEGER AS kind, k.*, p.run, p.tool,
    e.execution AS execution_id, p.origin_epoch_ns
FROM (SELECT DISTINCT {", ".join(_SAME)} FROM _collective_kernels) AS k
JOIN profiles AS p ON k.profile_id = p.profile_id
JOIN _profile_executions AS e ON k.profile_id = e.profile_id
"""
_KINDS = f"""
SELECT run, tool, execution_id, rank, process_id, host, stream, group_name, group_size, peer_rank,
    coalesce(nullif(collective, ''), short_name) AS collective, short_name, message_bytes,
    origin_epoch_ns IS NOT NULL AS has_epoch
FROM ({_NUMBERED}) ORDER BY kind
"""
_KERNELS = f"""
WITH kinds AS MATERIALIZED ({_NUMBERED})
SELECT n.kind, k.kernel_id, k.start_ns + coalesce(n.origin_epoch_ns, 0) AS start_ns,
    k.duration_ns - coalesce(k.overrun_ns, 0) AS duration_ns, coalesce(k.overrun_ns, 0) = 0 AS is_possible,
    greatest(coalesce(k.group_seq, -1), -1) AS number, k.step
FROM _collective_kernels AS k
JOIN kinds AS n ON {" AND ".join(f"k.{name} IS NOT DISTINCT FROM n.{name}" for name in _SAME)}
"""
_UNNAMED = re.compile(r"(?i)send_?recv|^coalesced$")
"""Operations and kernels that may be any exchange: of two ranks, or of all."""
_US = 1000


@dataclass(frozen=True)
class Execution:
    """The communication kernels of one execution under one tool, what could be matched of them, and the clocks that follow.

    kinds: what their kinds say. unsized: of each kind, whether its payload says nothing of the call. calls: the kernels;
    kernel_id, step: of each (see `arrays.wide`). messages: sends and receives with their other end. left_out: ranks that take no
    part, and why.
    """

    run: str
    tool: str
    execution_id: str | None
    hosts: dict[int, str | None]
    kinds: pa.Table
    unsized: Mask
    calls: CommunicationKernels
    kernel_id: npt.NDArray[Any]
    step: npt.NDArray[Any]
    matched: list[Matched]
    messages: Messages
    clocks: dict[int, Clock]
    left_out: dict[int, str]

    @cached_property
    def ranks(self) -> list[tuple[int, slice]]:
        """Return where the kernels of each rank are; those of unknown rank have MISSING."""
        return _by_rank(integers(self.kinds["rank"]), self.calls.kind)

    def shares_clock(self, rank: int) -> bool:
        """Return whether a rank and its reference name no two hosts, and the fitted clocks do not speak against one clock."""
        clock = self.clocks[rank]
        hosts = {self.hosts[rank], self.hosts[clock.reference]} - {None}
        return len(hosts) < 2 and clock.drift == 0 and abs(clock.offset) <= clock.uncertainty

    def corrected(self, times: Int) -> Int:
        """Return times of all kernels on the clock of their reference; MISSING where nothing ties the two."""
        found = np.full(len(times), MISSING)
        for rank, mine in self.ranks:
            clock = self.clocks.get(rank)
            if clock is not None:
                shift = 0 if self.shares_clock(rank) else np.rint(clock.offset + clock.drift * (times[mine] - clock.at))
                found[mine] = times[mine] - np.asarray(shift, dtype=np.int64)
        return found

    def recorded(self, times: Int) -> Int:
        """Return times of all kernels as the files have them; MISSING for a file without an epoch, where one has it."""
        has_epoch = self.kinds["has_epoch"].to_numpy()
        is_matched = np.zeros(len(has_epoch), dtype=np.bool_)
        for group in self.matched:
            is_matched[self.calls.kind[group.place]] = True
        return np.where((has_epoch | ~np.any(has_epoch & is_matched))[self.calls.kind], times, MISSING)

    def uncertainty(self) -> Int:
        """Return by how many ns times of each kind may be misplaced; MISSING where the clock of its rank could not be fitted."""
        known, which = np.unique(self.calls.kinds.rank, return_inverse=True)
        clocks = [self.clocks.get(rank) for rank in known.tolist()]
        return np.array([MISSING if clock is None else round(clock.uncertainty) for clock in clocks], dtype=np.int64)[which]


def executions(ask: Ask) -> list[Execution]:
    """Return every execution with communication kernels. A rank that two processes claim takes no part."""
    return cached_per_store(ask, _executions)


def _executions(ask: Ask) -> list[Execution]:
    kinds = ask(_KINDS, [])
    keys = _by_execution(kinds)
    which, place = (np.zeros(kinds.num_rows, dtype=np.int32) for _ in range(2))
    for number, (_, mine) in enumerate(keys):
        which[mine], place[mine] = number, np.arange(len(mine))
    kernels = _sorted(_kernels(ask), numbered(which, integers(kinds["rank"])))
    end = np.cumsum(np.bincount(which[kernels["kind"]], minlength=len(keys)))
    kernels["kind"] = place[kernels["kind"]]
    parts = (slice(first, last) for first, last in zip([0, *end[:-1].tolist()], end.tolist(), strict=False))
    return [_execution(*key, kinds.take(pa.array(mine)), {name: column[part] for name, column in kernels.items()})
            for (key, mine), part in zip(keys, parts, strict=True)]


def _by_execution(kinds: pa.Table) -> list[tuple[tuple[str, str, str | None], Int]]:
    """Return the kinds of each execution. Those that name none belong to the only one that their run and tool have."""
    columns = [distinct(kinds[name]) for name in ("run", "tool", "execution_id")]
    parts: dict[tuple[str, str], dict[str | None, Int]] = {}
    for _, mine in split(np.arange(kinds.num_rows), numbered(*(codes for codes, _ in columns))):
        run, tool, execution = (values[codes[mine[0]]] for codes, values in columns)
        parts.setdefault((str(run), str(tool)), {})[execution] = mine
    every: list[tuple[tuple[str, str, str | None], Int]] = []
    for (run, tool), found in sorted(parts.items(), key=lambda item: item[0]):
        if None in found and len(found) == 2:
            found = {next(filter(None, found)): np.sort(np.concatenate([*found.values()]))}
        every += [((run, tool, execution), mine)
                  for execution, mine in sorted(found.items(), key=lambda item: (item[0] is None, item[0]))]
    return every


def _kernels(ask: Ask) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the kernels, as narrow as they are."""
    table = ask(_KERNELS, [])
    columns = dict(zip(table.column_names, table.columns, strict=True))
    del table  # so that each column goes when its array is there
    found: dict[str, npt.NDArray[Any]] = {name: columns.pop(name).to_numpy() for name in ("kind", "is_possible")}
    found["start"] = integers(columns.pop("start_ns"))
    return found | {name: narrow(integers(columns.pop(name))) for name in ("number", "duration_ns", "kernel_id", "step")}


def _sorted(kernels: dict[str, npt.NDArray[Any]], track: Places) -> dict[str, npt.NDArray[Any]]:
    """Return the kernels in the order of tracks, starts and ids. track: of each kind."""
    of_kernel = track[kernels["kind"]]
    order = _in_runs(of_kernel)
    for _, mine in split(order, of_kernel[order]):
        start = kernels["start"][mine]
        if np.any(start[1:] <= start[:-1]):
            mine[:] = mine[np.lexsort((kernels["kernel_id"][mine], start))]
    return {name: kernels.pop(name)[order] for name in [*kernels]}


def _in_runs(keys: Places) -> Places:
    """Return the order of keys, equal ones in theirs: quick where long runs have one key each, as profile after profile has."""
    first = np.flatnonzero(np.diff(keys, prepend=-1)).astype(np.int32)
    moved = np.argsort(keys[first], kind="stable")
    length = np.diff(first, append=np.int32(len(keys)))[moved]
    order = np.arange(len(keys), dtype=np.int32)
    order += np.repeat(first[moved] - (np.cumsum(length, dtype=np.int32) - length), length)
    return order


def _execution(run: str, tool: str, execution_id: str | None, kinds: pa.Table, kernels: dict[str, npt.NDArray[Any]]) -> Execution:
    rank, (process, _), (host, hosts) = integers(kinds["rank"]), distinct(kinds["process_id"]), distinct(kinds["host"])
    owners = {number: len(np.unique(mine)) for number, mine in split(process, rank) if number != MISSING}
    kind, start = kernels["kind"], kernels["start"]
    end = start + kernels["duration_ns"]
    by_rank = {number: mine for number, mine in _by_rank(rank, kind) if number != MISSING}
    resolution = {number: 1 if np.any(start[mine] % _US) or np.any(end[mine] % _US) else _US for number, mine in by_rank.items()}
    names = _names(kinds)
    group, groups = distinct(kinds["group_name"])
    payload = np.where(names.uneven, MISSING, integers(kinds["message_bytes"]))
    kernel = np.where(group < 0, distinct(kinds["short_name"])[0], -1)
    in_numbers = {
        "rank": narrow(rank), "token": numbered(names.name, kernel, payload), "stream": distinct(kinds["stream"])[0],
        "group": group, "group_size": np.maximum(integers(kinds["group_size"]), 0),
        "resolution": np.array([resolution.get(number, 1) for number in rank.tolist()])}
    is_one = np.array([owners.get(number) == 1 for number in rank.tolist()], dtype=np.bool_)
    of_kinds = Kinds(**{name: column.astype(np.int32) for name, column in in_numbers.items()}, paired=names.paired,
                     takes_part=is_one & ~names.two_ranks)
    calls = CommunicationKernels(kind, start, end, kernels["number"], kernels["step"], kernels["is_possible"], of_kinds,
                                 [str(name) for name in groups])
    matched = match(calls)
    fitted = clocks(calls, matched)
    placed = {number for group in matched for number in np.unique(calls.rank(group.place)).tolist()}
    of_ranks = {number: hosts[host[kind[mine.stop - 1]]] for number, mine in by_rank.items()}
    sent = messages(calls, np.where(is_one, _channels(kinds, names, rank, group), -1), numbered(integers(kinds["message_bytes"])))
    return Execution(run, tool, execution_id, of_ranks, kinds, names.unsized, calls, kernels["kernel_id"], kernels["step"],
                     matched, sent, fitted, _left_out(owners, placed, fitted, set(np.unique(calls.rank(sent.place)).tolist())))


def _channels(kinds: pa.Table, names: _Names, rank: Int, group: Int) -> Int:
    """Return a number for communicator, sender and receiver of each kind; -1 where one is unknown, or it is neither."""
    peer = integers(kinds["peer_rank"])
    sender, receiver = np.where(names.receives, peer, rank), np.where(names.receives, rank, peer)
    return np.where(names.two_ranks & (group >= 0) & (peer != MISSING) & (peer != rank), numbered(group, sender, receiver), -1)


def _by_rank(rank: Int, kind: Places) -> list[tuple[int, slice]]:
    """Return where the kernels of each rank are, those of unknown rank (MISSING) included. rank: of each kind."""
    of_kernel = narrow(rank)[kind]
    first = np.flatnonzero(np.diff(of_kernel, prepend=of_kernel[:1] - 1))
    last = [*first[1:].tolist(), len(kind)]
    return [(int(rank[kind[begin]]), slice(begin, end)) for begin, end in zip(first.tolist(), last, strict=True)]


@dataclass(frozen=True, slots=True)
class _Names:
    """What kinds are by their names: name (a number for the operation, else for the name), and five sorts of them.

    unsized: whose payload says nothing of the call: uneven ones and barriers.
    """

    name: Int
    two_ranks: Mask
    receives: Mask
    paired: Mask
    uneven: Mask
    unsized: Mask


def _names(kinds: pa.Table) -> _Names:
    (collective_code, collectives), (kernel_code, kernels) = distinct(kinds["collective"]), distinct(kinds["short_name"])
    pair = numbered(collective_code, kernel_code)
    _, first_kind, pair_of_kind = np.unique(pair, return_index=True, return_inverse=True)
    names: list[tuple[str | None, str]] = []
    for kind in first_kind.tolist():
        collective, kernel = collectives[collective_code[kind]] or "", kernels[kernel_code[kind]] or ""
        names.append((operation(collective) or operation(kernel), collective))
    codes: dict[str, int] = {}
    name = np.array([codes.setdefault(op or collective, len(codes)) for op, collective in names], dtype=np.int64)
    traits = [[op in POINT_TO_POINT, op == "recv", op is None and bool(_UNNAMED.search(collective)), op in UNEVEN,
               op in UNEVEN or op == "barrier"]
              for op, collective in names]
    two_ranks, receives, paired, uneven, unsized = np.array(traits, dtype=bool).reshape(-1, 5)[pair_of_kind].T
    return _Names(name[pair_of_kind], two_ranks, receives, paired, uneven, unsized)


def _left_out(owners: Mapping[int, int], placed: set[int], fitted: Mapping[int, Clock], messaging: set[int]) -> dict[int, str]:
    """Return why ranks with communication kernels take no part. messaging: those of which messages could be matched."""
    found: dict[int, str] = {}
    for rank, processes in sorted(owners.items()):
        if processes > 1:
            found[rank] = f"{processes} processes claim it"
        elif len(owners) == 1:
            found[rank] = "no other rank was captured"
        elif rank not in placed and rank in messaging:
            found[rank] = "of its calls only sends and receives could be matched (stage_waits)"
        elif rank not in placed:
            found[rank] = "none of its calls could be matched with another rank's"
        elif rank not in fitted:
            found[rank] = "too few of its calls could be matched to set its clock"
    return found
