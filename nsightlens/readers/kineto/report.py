"""A whole trace -> its rows of processes, process groups, devices, profiles and diagnostics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsightlens.readers import budget
from nsightlens.readers.batches import Batch, batch_of, diagnostic
from nsightlens.readers.budget import OVER_BUDGET
from nsightlens.readers.kineto import categories
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.envelope import Clock, TraceHeader
from nsightlens.readers.kineto.generation import generation, vendor
from nsightlens.readers.kineto.identity import host_in_name
from nsightlens.readers.kineto.stream import Problem
from nsightlens.readers.kineto.values import integer
from nsightlens.readers.reader import program_name

_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read. closed: its array of events has an end. cut_at: where the file ends before its end."""

    path: Path
    header: TraceHeader
    clock: Clock
    tally: Tally
    closed: bool
    cut_at: int | None
    problems: list[Problem]
    begin: bytes

    def batches(self) -> Iterator[Batch]:
        """Yield the rows of processes, process groups, devices, profiles and diagnostics."""
        yield "processes", batch_of("processes", self._processes())
        groups = self.header.process_groups(self.tally.groups)
        if groups:
            yield "process_groups", batch_of("process_groups", groups)
        devices = self._devices()
        if devices:
            yield "devices", batch_of("devices", devices)
        yield "profiles", batch_of("profiles", [self._profile()])
        yield from self._diagnostics()

    def _processes(self) -> list[dict[str, object]]:
        pids: list[int | None] = list(self.tally.pids or self.tally.cpu_pids) or [None]
        if not self.tally.pids:
            pids = pids[:1]
        rank = self.header.distributed("rank")
        return [
            {
                "pid": pid,
                "host": self.header.host or host_in_name(self.path, pid),
                "name": program_name(self.tally.process_names.get(pid)) if pid is not None else None,
                "rank": rank,
                "rank_source": None if rank is None else "content:distributedInfo",
                "world_size": self.header.distributed("world_size"),
            }
            for pid in pids
        ]

    def _devices(self) -> list[dict[str, object]]:
        """Return the devices that had work, with their properties from the trace; ordinals beyond its list are rows too."""
        known = self._listed_devices()
        return [{"process_index": 0, "device": number, **properties(known.get(number, {}))}
                for number in sorted(self.tally.devices)]

    def _listed_devices(self) -> dict[int, dict[str, Any]]:
        """Return the properties of devices by ordinal. ROCm numbers a device otherwise there than in events: one is the other
        where the trace lists one and used one."""
        known, used = self.header.devices, self.tally.devices
        return dict(zip(used, known.values(), strict=True)) if len(known) == len(used) == 1 else known

    def _profile(self) -> dict[str, object]:
        name = generation(self.header, self.clock, self.tally.marks, self.begin)
        lost = self.tally.lost
        at = [b for b in (lost.first, self.tally.too_long.first, self.cut_at) if b is not None]
        truncated = self.cut_at is not None or any(p.code == "truncated" for p in self.problems)
        all_there = self.closed or bool(self.tally.ended)
        return {
            "capture_version": self.header.capture_version,
            "format": f"kineto {name}" if name else "kineto",
            "vendor": vendor(self.header, self.tally),
            "origin_epoch_ns": self.clock.epoch_ns(self.header.base_ns),
            "events": self.tally.complete,
            "events_lost": lost.count + self.tally.too_long.count if all_there else None,
            "truncated": truncated,
            "first_bad_byte": min(at, default=None),
            "link_method": self._link_method(),
        }

    def _link_method(self) -> str:
        if self.tally.own_ids > self.tally.borrowed_ids:
            return "external_id"
        return "containment" if self.tally.operators and self.tally.gpu_rows else "none"

    def _diagnostics(self) -> Iterator[Batch]:
        yield from self._about_the_file()
        yield from self._about_the_events()

    def _about_the_file(self) -> Iterator[Batch]:
        tally = self.tally
        is_spent = any(problem.code == OVER_BUDGET for problem in self.problems)
        if self.cut_at is not None and not is_spent:
            missing = "no event is missing" if self.closed or tally.ended else "the number of missing events is unknown"
            yield diagnostic("warning", "truncated", f"The trace is cut short; {missing}. If the original is complete, "
                                                     "copy it again.",
                             byte_offset=self.cut_at)
        for problem in self.problems:
            if problem.code != "truncated" or self.cut_at is None:
                yield diagnostic("warning", problem.code, problem.message)
        if tally.malformed.count:
            what = _listed(tally.malformed.kinds)
            yield diagnostic("warning", "malformed_json", f"The JSON is malformed and was repaired where possible: {what}.",
                             tally.malformed.count, tally.malformed.first)
        if tally.lost.count:
            yield diagnostic("warning", "events_lost", "Events are damaged beyond repair and missing from all tables.",
                             tally.lost.count, tally.lost.first)
        if tally.appended.count:
            yield diagnostic("warning", "second_trace", "Behind its end the file holds another trace, whose events are not read: "
                             "split the file, and ingest each.", tally.appended.count, tally.appended.first)
        if tally.too_long.count:
            yield diagnostic("warning", OVER_BUDGET, f"Events of more than {budget.BUDGET.longest >> 20} MiB are missing from "
                             "all tables: no profiler writes such texts. The file is damaged: copy it again, or record again.",
                             tally.too_long.count, tally.too_long.first)
        if tally.replaced.count:
            yield diagnostic("warning", "text_replaced", "Bytes of the trace are not UTF-8: they are stored as U+FFFD, "
                             "everything else as it is.", tally.replaced.count, tally.replaced.first)

    def _about_the_events(self) -> Iterator[Batch]:
        tally = self.tally
        if self._listed_devices().keys() != self.header.devices.keys():
            yield diagnostic("info", "device_assumed", "The trace lists its one device under another number than its events do: "
                             "it was taken as the device of the events.")
        if not (tally.complete or tally.passed or tally.samples) and "[memory]" not in tally.marks and self.cut_at is None:
            yield diagnostic("warning", "no_events", "The trace has no events: the profiler ran, but recorded nothing.")
        if tally.begun:
            yield diagnostic("warning", "begin_end_events", "Events are written as a begin and an end, which no version of the "
                             "PyTorch profiler does: they are not read. Ingest the trace as the profiler wrote it.", tally.begun)
        if tally.impossible:
            yield diagnostic("warning", "impossible_duration", "Durations below 0 or above 100 days are NULL; the events are "
                             "kept.", tally.impossible)
        if tally.untimed:
            yield diagnostic("warning", "missing_time", "Unreadable starts and durations of events are NULL.",
                             tally.untimed)
        if tally.odd_values:
            yield diagnostic("warning", "odd_values", "Values in the place of numbers are no integers as Kineto writes them "
                             "(fractions, exponents, texts, more than 63 bits): kept where they are whole numbers, else NULL.",
                             tally.odd_values)
        if tally.odd_stacks:
            yield diagnostic("warning", "odd_stacks", "Operator stacks are left out that have no frame, or more than "
                             f"{categories.MOST_FRAMES:,} frames or {categories.LONGEST_STACK:,} characters.", tally.odd_stacks)
        if len(tally.pids) > 1 and tally.gpu_rows:
            yield diagnostic("warning", "several_processes", "The trace holds several processes, and its GPU work does not name "
                             "its process: the work is assigned to the process that calls the GPU API first. If several "
                             "processes have calls with its correlation id, its call and operator are unknown.", len(tally.pids))
        if tally.shared_devices:
            yield diagnostic("warning", "shared_devices", "Kernels on one device ordinal have several process ids: the trace "
                             "seems to be merged from several processes, whose devices count as one here. Ingest the original "
                             "traces instead.", tally.shared_devices)
        unknown = Counter({cat: count for cat, count in tally.unstored.items() if cat not in categories.IDLE_CATEGORIES})
        if unknown and not tally.gpu_rows:
            yield diagnostic("warning", "no_gpu_work", "The trace has no GPU work in known categories. If these events "
                             f"are accelerator work, no table or sum includes them: {_listed(unknown)}.",
                             unknown.total())
        if self.clock.epoch_ns(self.header.base_ns) is None and tally.complete:
            yield diagnostic("info", "no_epoch", "The trace has no epoch time: its times are relative only.")
        if tally.unstored:
            passed = f" {_listed(tally.passed)} are ignored in every trace." if tally.passed else ""
            yield diagnostic("info", "events_not_stored", "Events ignored, of categories that have no table: "
                             f"{_listed(tally.unstored)}.{passed}", tally.unstored.total())


def properties(recorded: dict[str, Any]) -> dict[str, object]:
    """Return the columns of `devices` from an entry of deviceProperties."""
    major, minor = integer(recorded.get("computeMajor")), integer(recorded.get("computeMinor"))
    name = recorded.get("name")
    return {
        "name": name if isinstance(name, str) and name else None,
        "compute_capability": None if major is None or minor is None else f"{major}.{minor}",
        "sm_count": _within(recorded.get("numSms"), 31),
        "memory_bytes": _within(recorded.get("totalGlobalMem"), 63),
        "threads_per_sm": _within(recorded.get("maxThreadsPerMultiprocessor"), 31),
    }


def _within(value: object, bits: int) -> int | None:
    number = integer(value)
    return number if number is not None and 0 < number < 1 << bits else None


def _listed(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name[:_NAME_LENGTH]} {count}" for name, count in ordered)
