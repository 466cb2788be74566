"""What was met in a trace besides its rows: counts, malformed places, telltale signs. Adds up over chunks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_MAX_CATEGORIES = 100
_INVALID = re.compile("[\udc80-\udcff]")


@dataclass(slots=True)
class Places:
    """How often something was met, of which kinds, and at which byte of the (decompressed) file first."""

    kinds: Counter[str] = field(default_factory=Counter)
    first: int | None = None

    @property
    def count(self) -> int:
        """Return how often."""
        return self.kinds.total()

    def note(self, at: int, kind: str = "", count: int = 1) -> None:
        """Count `count` more of `kind`, the first of them at byte `at`."""
        self.kinds[kind] += count
        self.first = at if self.first is None else min(at, self.first)

    def note_invalid(self, data: bytes | memoryview, at: int) -> None:
        """Count the bytes of `data`, which begins at byte `at`, that are no UTF-8."""
        try:
            str(data, "utf-8")
        except UnicodeDecodeError as exc:
            invalid = _INVALID.findall(str(data, "utf-8", "surrogateescape"))
            self.note(at + exc.start, count=len(invalid))

    def add(self, other: Places) -> None:
        """Count what `other` has counted."""
        if other.first is not None:
            self.kinds += other.kinds
            self.first = other.first if self.first is None else min(other.first, self.first)


@dataclass(slots=True)
class Tally:
    """Counts over some events of a trace.

    complete: events with ph X. unstored: those by category that no table takes. passed: events with another ph, by category
    (flows) or name. begun: events of ph B that a table would take as complete ones. replaced: bytes that are no UTF-8. appended:
    events of another trace behind the end of this one. own_ids, borrowed_ids: GPU work and calls whose External id is a link, or
    repeats the correlation id. samples: values of counters. odd_stacks: stacks of operators that are left out. odd_values: values
    in the place of numbers that are none, or not as Kineto writes them. pids: of CPU-side rows. cpu_pids: those labelled CPU.
    ended: the last event was the marker that Kineto writes last; None where there was no event. tracks: (device, pid) of kernels,
    which are one number in what Kineto writes. labels: the text before the number in pids that are text, where Kineto writes
    numbers. callers: such pids of API calls. groups: process groups that kernels name, with their descriptions and ranks.
    """

    complete: int = 0
    unstored: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    malformed: Places = field(default_factory=Places)
    replaced: Places = field(default_factory=Places)
    lost: Places = field(default_factory=Places)
    too_long: Places = field(default_factory=Places)
    appended: Places = field(default_factory=Places)
    impossible: int = 0
    untimed: int = 0
    own_ids: int = 0
    borrowed_ids: int = 0
    gpu_rows: int = 0
    operators: int = 0
    samples: int = 0
    odd_stacks: int = 0
    begun: int = 0
    odd_values: int = 0
    pids: dict[int, None] = field(default_factory=dict)
    cpu_pids: dict[int, None] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    devices: set[int] = field(default_factory=set)
    tracks: set[tuple[int, int]] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    callers: set[str] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)
    groups: dict[tuple[str | int, str | None, str], None] = field(default_factory=dict)
    ended: bool | None = None

    def add(self, later: Tally) -> None:
        """Add the counts of the events that follow."""
        self.unstored = _bounded(self.unstored + later.unstored)
        self.passed = _bounded(self.passed + later.passed)
        for name in ("complete", "impossible", "untimed", "own_ids", "borrowed_ids", "gpu_rows", "operators", "samples",
                     "odd_stacks", "begun", "odd_values"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        for name in ("malformed", "replaced", "lost", "too_long", "appended"):
            getattr(self, name).add(getattr(later, name))
        for name in ("pids", "cpu_pids", "process_names", "devices", "tracks", "labels", "callers", "marks", "groups"):
            getattr(self, name).update(getattr(later, name))
        self.ended = self.ended if later.ended is None else later.ended

    @property
    def has_events(self) -> bool:
        """Return whether there was any event."""
        return bool(self.complete or self.samples or self.passed or self.pids or self.cpu_pids)

    @property
    def shared_devices(self) -> int:
        """Return how many devices have kernels under several pids: someone put traces of several processes together."""
        return sum(count > 1 for count in Counter(device for device, _ in self.tracks).values())


def _bounded(counts: Counter[str]) -> Counter[str]:
    """Return the counts with all but the most frequent under "others": categories are the writer's, and may be endless."""
    if len(counts) <= _MAX_CATEGORIES:
        return counts
    kept = Counter(dict(counts.most_common(_MAX_CATEGORIES)))
    kept["others"] += counts.total() - kept.total()
    return kept
