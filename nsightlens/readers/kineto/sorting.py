"""Events of one chunk -> the rows of each table, still as events, in the order of the file; all others are counted."""

from __future__ import annotations

from typing import Any

from nsightlens.readers.kineto import categories, fast_structs, values
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.events import Args, Event

Rows = dict[str, list[Event]]


def sort(events: list[Event], tally: Tally) -> Rows:
    """Return the events that become rows, by table. GPU work is recognised by its category, never by having a stream."""
    if events and isinstance(events[0], fast_structs.Known):
        return _sort_typed(events, tally)
    rows: Rows = {table: [] for table in categories.TABLE_OF.values()}
    others: list[Event] = []
    flows: list[Event] = []
    takers = {category: rows[table].append for category, table in categories.TABLE_OF.items()}
    takers |= dict.fromkeys(categories.FLOWS, flows.append)
    for event in events:
        takers.get(event.cat, others.append)(event)  # type: ignore[arg-type]
    for table, listed in rows.items():
        rows[table] = [event for event in listed if event.ph == "X"]
        tally.complete += len(rows[table])
        if len(rows[table]) < len(listed):
            others += [event for event in listed if event.ph != "X"]
    strange = [event for event in flows if event.ph == "X"]
    others += strange
    tally.passed["flows"] += len(flows) - len(strange)
    rows["ranges"], rows["frame_calls"] = _ranges_and_frames(rows["ranges"])
    rows["device_samples"], others = _counters(others)
    rows["allocations"] = _allocations(others, tally)
    tally.marks |= categories.CATEGORIES & {event.cat for event in events}
    if events:
        tally.ended = events[-1].name == categories.END_MARKER
    return rows


def _sort_typed(events: list[Any], tally: Tally) -> Rows:
    """Return what `sort` does, of typed events: the type of an event has all that it needs."""
    kinds: set[Any] = set(map(type, events))
    rows: Rows = {table: [] for table in (*categories.TABLE_OF.values(), "allocations")}
    others: list[Any] = []
    skipped: list[Any] = []
    takers = {kind: rows[kind.table].append if kind.table else others.append for kind in kinds}
    takers |= {kind: skipped.append for kind in kinds if kind.flow}
    for event in events:
        takers[type(event)](event)
    tally.passed["flows"] += len(skipped)
    tally.complete += sum(len(rows[table]) for table in rows if table != "allocations")
    tally.marks |= {kind.cat for kind in kinds}
    if any(kind.cat == categories.FRAME for kind in kinds):
        rows["ranges"], rows["frame_calls"] = _ranges_and_frames(rows["ranges"])
    if rows["allocations"]:
        tally.marks.add(categories.MEMORY)
    _allocations(others, tally)
    tally.ended = False
    return rows


def _ranges_and_frames(listed: list[Event]) -> tuple[list[Event], list[Event]]:
    """Return the ranges, and the frames of Python functions. A module is both: it was called, and people think in modules."""
    frames = [e for e in listed if e.cat == categories.FRAME]
    if not frames:
        return listed, frames
    return [e for e in listed if e.cat != categories.FRAME or is_module(e.name)], frames


def is_module(name: object) -> bool:
    """Return whether a frame of this name is the call of an nn.Module."""
    return type(name) is str and name.startswith(categories.MODULE)


def _counters(others: list[Event]) -> tuple[list[Event], list[Event]]:
    """Return the counters that have a series, and the other events."""
    found = [event for event in others if event.ph == categories.COUNTER and event.args and isinstance(event.args, dict)]
    taken = set(map(id, found))
    return found, [event for event in others if id(event) not in taken] if found else others


def _allocations(others: list[Event], tally: Tally) -> list[Event]:
    """Return the allocations among events that no other table takes, and count the rest."""
    found = []
    for event in others:
        if event.ph == "i" and event.name == categories.MEMORY and event.args:
            found.append(event)
            tally.marks.add(categories.MEMORY)
        elif event.ph == "X":
            tally.complete += 1
            tally.unstored[event.cat or "no category"] += 1
        else:
            tally.passed[categories.PHASES.get(event.ph or "", "others")] += 1
            tally.begun += event.ph == "B" and event.cat in categories.TABLE_OF
            if event.ph == "M" and event.args:
                _note_label(event, event.args, tally)
    return found


def _note_label(event: Event, args: Args, tally: Tally) -> None:
    pid = process_id(event.pid)
    if pid is None:
        return
    if event.name == "process_labels" and args.labels == "CPU":
        tally.cpu_pids[pid] = None
    elif event.name == "process_name" and isinstance(args.name, str):
        tally.process_names[pid] = args.name


def process_id(raw: object) -> int | None:
    """Return the pid of an OS process; None for tracks with a name ("Spans") or a number that no process has."""
    pid = values.integer(raw)
    return pid if pid is not None and 0 < pid < 1 << 31 else None
