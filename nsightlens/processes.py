"""The OS processes and devices of one profile, over all its windows: their ids, and the rank of each process."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from nsightlens import schema
from nsightlens.ranks import Sidecar

Row = dict[str, Any]


@dataclass(slots=True)
class Process:
    """One OS process: its id, its row of `processes`, and whether it put work on a GPU."""

    process_id: str
    row: Row
    works: bool = False


def distinguish(process_id: str, among: Collection[str]) -> str:
    """Return what people call a process among others: its number in its profile, and what tells profiles apart where it must.

    Of 'kineto-fa89dc55b09c:0' it is '0', or 'fa89dc:0' where another profile of `among` has a process 0 too.
    """
    profile, _, tail = process_id.rpartition(":")
    if sum(other.rpartition(":")[2] == tail for other in set(among)) < 2:
        return tail
    return f"{profile.rpartition('-')[2][:6]}:{tail}"


def merge(profile_id: str, windows: list[list[Row]]) -> tuple[list[Process], list[list[int]]]:
    """Return the processes of all windows, one each, and per window the number of each of its rows among them.

    Rows of two windows are one process where host and pid agree; without a pid, where their position does.
    """
    numbers: dict[object, int] = {}
    processes: list[Process] = []
    places: list[list[int]] = []
    for window in windows:
        place = []
        for position, row in enumerate(window or [dict.fromkeys(schema.PROCESSES.reader_schema.names)]):
            row.pop("process_index", None)
            key = (row["host"], row["pid"]) if row["pid"] is not None else position
            if key not in numbers:
                numbers[key] = len(processes)
                processes.append(Process(f"{profile_id}:{len(processes)}", row))
            place.append(numbers[key])
        places.append(place)
    return processes, places


def resolve_ranks(
    processes: list[Process], sidecar: Sidecar | None, hint: tuple[int | None, str | None],
) -> list[tuple[str, str]]:
    """Give the process that the file is about the rank of its sidecar, else content, else file name (`hint`).

    Several processes that worked can be told apart by content only. Returns warnings as (code, message).
    """
    workers = [p for p in processes if p.works] or processes
    named, source = hint
    if len(workers) != 1:
        if (sidecar and sidecar.rank is not None) or named is not None:
            return [("rank_of_several_processes",
                     f"{len(workers)} processes did GPU work in this one report, so the rank in its sidecar or file name "
                     "cannot be given to each of them; their rank is NULL unless the report itself tells")]
        return []
    row = workers[0].row
    content = row["rank"]
    if sidecar:
        row["host"] = sidecar.host or row["host"]
        row["world_size"] = row["world_size"] if sidecar.world_size is None else sidecar.world_size
        row["local_rank"] = row["local_rank"] if sidecar.local_rank is None else sidecar.local_rank
        if sidecar.rank is not None:
            row["rank"], row["rank_source"] = sidecar.rank, "sidecar"
            return _disagreement(content, sidecar.rank, "sidecar", "sidecar")
    if content is None and named is not None:
        row["rank"], row["rank_source"] = named, source
        return []
    return _disagreement(content, named, "file name", "content")


def _disagreement(content: int | None, other: int | None, who: str, taken: str) -> list[tuple[str, str]]:
    if content is None or other is None or content == other:
        return []
    return [("rank_disagrees", f"the {who} says rank {other}, the file itself rank {content}; the {taken} is taken")]


def identify_devices(processes: list[Process], windows: list[list[Row]], places: list[list[int]]) -> dict[tuple[int, int], Row]:
    """Return the device rows by (process number, ordinal) with their device_id; the first window wins."""
    found: dict[tuple[int, int], Row] = {}
    for window, place in zip(windows, places, strict=True):
        for row in window:
            number = place[row.pop("process_index") or 0]
            ordinal = row["device"]
            if (number, ordinal) not in found:
                row["process_id"] = processes[number].process_id
                row["device_id"] = _device_id(processes[number], row)
                found[number, ordinal] = row
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
