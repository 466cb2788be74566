"""The OS processes and devices of one profile, over all its windows: their ids, and the rank of each process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from nsightlens import schema
from nsightlens.discovery.ranks import Sidecar

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Process:
    """One OS process: its id, and its row of `processes`."""

    process_id: str
    row: Row


def merge(profile_id: str, windows: Sequence[Sequence[Row]]) -> tuple[list[Process], list[list[int]]]:
    """Return the processes of all windows, one each, and per window the number of each of its rows among them.

    Rows of two windows are one process where host and pid agree; without a pid, where their position does.
    """
    numbers: dict[object, int] = {}
    processes: list[Process] = []
    places: list[list[int]] = []
    for window in windows:
        place = []
        for position, row in enumerate(window or [dict.fromkeys(schema.PROCESSES.reader_schema.names)]):
            key = (row["host"], row["pid"]) if row["pid"] is not None else position
            if key not in numbers:
                numbers[key] = len(processes)
                processes.append(Process(f"{profile_id}:{len(processes)}", _without_index(row)))
            place.append(numbers[key])
        places.append(place)
    return processes, places


def _without_index(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "process_index"}


def resolve_ranks(
    processes: Sequence[Process], working: Set[int], communicating: Set[int], sidecar: Sidecar | None,
    hint: tuple[int | None, str | None],
) -> tuple[tuple[Process, ...], tuple[tuple[str, str], ...]]:
    """Return the processes, that which the file is about with the rank of the user's pattern (`hint`), else sidecar, else
    content, else file name (`hint`).

    working, communicating: the numbers of those that did GPU work, and of those with kernels of a communication library. Only
    content distinguishes several of them, or else, where all communicate, their order. Also returns warnings as (code, message).
    """
    candidates = sorted(working) or range(len(processes))
    if len(candidates) != 1:
        warnings = _warning_of_several(len(candidates), sidecar, hint)
        if warnings or working != communicating or any(processes[number].row["rank"] is not None for number in working):
            return tuple(processes), warnings
        return _ranks_in_order(processes, candidates)
    number = candidates[0]
    row, warnings = _ranked(processes[number].row, sidecar, hint)
    ranked = replace(processes[number], row=row)
    return (*processes[:number], ranked, *processes[number + 1 :]), warnings


def _ranks_in_order(
    processes: Sequence[Process], candidates: Sequence[int],
) -> tuple[tuple[Process, ...], tuple[tuple[str, str], ...]]:
    """Return the processes, the candidates with ranks in the order of their pids, in which a launcher starts them."""
    ranked = list(processes)
    for rank, number in enumerate(sorted(candidates, key=lambda number: (processes[number].row["pid"] or 0, number))):
        row = {**processes[number].row, "rank": rank, "rank_source": "order of processes"}
        ranked[number] = replace(processes[number], row=row)
    message = (f"{len(candidates)} processes of this one report communicate, and nothing in it names their ranks: they are "
               "taken in the order of their process ids")
    return tuple(ranked), (("ranks_in_order", message),) if candidates else ()


def _warning_of_several(
    count: int, sidecar: Sidecar | None, hint: tuple[int | None, str | None],
) -> tuple[tuple[str, str], ...]:
    if (sidecar is None or sidecar.rank is None) and hint[0] is None:
        return ()
    return (("rank_of_several_processes",
             f"{count} processes did GPU work in this one report, so the rank in its sidecar or file name "
             "cannot be given to each of them; their rank is NULL unless the report itself names it"),)


def _ranked(
    row: Row, sidecar: Sidecar | None, hint: tuple[int | None, str | None],
) -> tuple[Row, tuple[tuple[str, str], ...]]:
    """Return the row of the process that the file is about, and warnings."""
    named, source = hint
    content = row["rank"]
    if sidecar:
        row = {**row, "host": sidecar.host or row["host"],
               "world_size": row["world_size"] if sidecar.world_size is None else sidecar.world_size,
               "local_rank": row["local_rank"] if sidecar.local_rank is None else sidecar.local_rank}
    if named is not None and source == "pattern":  # what a person says outranks what files say
        return {**row, "rank": named, "rank_source": source}, ()
    if sidecar and sidecar.rank is not None:
        warnings = _disagreement(content, sidecar.rank, "sidecar", "sidecar")
        return {**row, "rank": sidecar.rank, "rank_source": "sidecar"}, warnings
    if content is None and named is not None:
        return {**row, "rank": named, "rank_source": source}, ()
    return row, _disagreement(content, named, "file name", "content")


def _disagreement(content: int | None, other: int | None, who: str, taken: str) -> tuple[tuple[str, str], ...]:
    if content is None or other is None or content == other:
        return ()
    return (("rank_disagrees", f"the {who} says rank {other}, the file itself rank {content}; the {taken}'s is used"),)


def identify_devices(
    processes: Sequence[Process], windows: Sequence[Sequence[Row]], places: Sequence[Sequence[int]],
) -> dict[tuple[int, int], Row]:
    """Return the device rows by (process number, ordinal) with their device_id; the first window wins."""
    found: dict[tuple[int, int], Row] = {}
    for window, place in zip(windows, places, strict=True):
        for row in window:
            number = place[row["process_index"] or 0]
            owner = processes[number]
            ids = {"process_id": owner.process_id, "device_id": _device_id(owner, row)}
            found.setdefault((number, row["device"]), _without_index(row) | ids)
    return found


def _device_id(owner: Process, row: Row) -> str:
    host = owner.row["host"]
    if row["uuid"]:
        return f"{host}/{row['uuid']}" if host else str(row["uuid"])
    if row["pci"] and host:
        return f"{host}/{row['pci']}"
    return unnamed_device(owner.process_id, row["device"])


def unnamed_device(process_id: str, ordinal: int | None) -> str:
    """Return the id of a device of which only the process and the ordinal in it are known."""
    return f"{process_id}/gpu{'?' if ordinal is None else ordinal}"
