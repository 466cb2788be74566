"""What one table of an ncu file holds: launches, and per launch its metric values, texts and rule results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import Floats, Ints

TEXTS = pa.schema([("launch", pa.int64()), ("metric", pa.string()), ("value", pa.string())])
RULES = pa.schema(
    [("launch", pa.int64())]
    + [(name, pa.string()) for name in ("section", "rule", "type", "message", "speedup_type", "speedup")]
)


_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")

Codes = np.ndarray[Any, np.dtype[np.int32]] | Ints


class Launch(NamedTuple):
    """One kernel launch as its id columns print it; None where the file has no such column or cell.

    mangled, function: the symbol and the bare name, which only reports have.
    """

    pid: int | None
    ncu_id: int | None
    name: str | None
    grid: str | None
    block: str | None
    process: str | None = None
    host: str | None = None
    context: str | None = None
    stream: str | None = None
    device: str | None = None
    cc: str | None = None
    nvtx: str | None = None
    mangled: str | None = None
    function: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Return what identifies the launch: process, ID, name, grid and block, and the host."""
        return (*self[:5], self.named_host)

    @property
    def named_host(self) -> str | None:
        """Return the host. ncu names it as it was connected to: 127.0.0.1 is no name of a host."""
        return None if self.host in _LOCAL_HOSTS else self.host

    @property
    def identity(self) -> str:
        """Return the key as one text."""
        host = f" {self.named_host}" if self.named_host else ""
        return f"{self.pid} {self.ncu_id} {self.name or ''} {self.block or ''} {self.grid or ''}{host}"


class Label(NamedTuple):
    """A row of the details page without a certain raw name; `unit` is its base unit. The n-th alike has `nth` n."""

    section: str
    body: str
    label: str
    unit: str
    nth: int = 0


Name = str | Label


@dataclass(frozen=True, slots=True)
class Entries:
    """Metric values in order of launches: those of launch i begin at `starts[i]`; each has a position in `names`.

    `metric` rises within a launch; `value` is in base units.
    """

    names: list[Name]
    starts: Ints
    metric: Codes
    value: Floats

    @classmethod
    def of(cls, names: list[Name], count: int, launch: Ints, metric: Codes, value: Floats) -> Entries:
        """Return entries from the launch of each (rising, below `count`)."""
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(launch, minlength=count), out=starts[1:])
        return cls(names, starts, metric, value)

    @property
    def launch(self) -> Ints:
        """Return the launch of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(slots=True)
class Page:
    """One table of a file, or a report. `steps` returns the value of the last printed digit of each entry (computed when asked).

    untimed: launches whose gpu__time_duration is printed in a unit that is none of time.
    """

    kind: str
    launches: list[Launch]
    entries: Entries
    steps: Callable[[], Floats]
    scaled: bool = False
    texts: pa.Table = field(default_factory=TEXTS.empty_table)
    rules: pa.Table = field(default_factory=RULES.empty_table)
    sections: tuple[str, ...] = ()
    rows: int = 0
    notes: Notes = field(default_factory=Notes)
    untimed: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


_ID_COLUMNS = (
    "Process ID", "ID", "Kernel Name", "Grid Size", "Block Size", "Process Name", "Host Name", "Context", "Stream",
    "Device", "CC",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdColumns:
    """Where the id columns of a header are (-1 where absent): those of Launch in its order, and the NVTX ranges."""

    positions: tuple[int, ...]
    ranges: tuple[int, ...]
    all: frozenset[int]

    @property
    def leading(self) -> int:
        """Return how many columns they are, where they are the first ones of the header, else 0."""
        return len(self.all) if self.all == frozenset(range(len(self.all))) else 0

    @classmethod
    def of(cls, header: Sequence[str]) -> IdColumns:
        """Return where they are in `header`; Kernel Time (a timestamp of old versions) is one of `all`, but not used."""
        positions = tuple(header.index(name) if name in header else -1 for name in _ID_COLUMNS)
        ranges = tuple(i for i, name in enumerate(header) if "Push/Pop_Range" in name or "Start/Stop_Range" in name)
        unused = [i for i, name in enumerate(header) if name in ("Kernel Time", "Invocations")]
        return cls(positions, ranges, frozenset([*(p for p in positions if p >= 0), *ranges, *unused]))

    def launch(self, row: Sequence[str]) -> Launch | None:
        """Return the launch of a row, or None where its ids are no numbers (then it is no row)."""
        size = len(row)
        pid_cell, id_cell, *found = [row[p].strip() or None if 0 <= p < size else None for p in self.positions]
        pid, ncu_id = whole(pid_cell), whole(id_cell)
        if (pid is None and self.positions[0] >= 0) or (ncu_id is None and self.positions[1] >= 0):
            return None
        nvtx = " | ".join([row[p] for p in self.ranges if p < size and row[p]]) or None if self.ranges else None
        return Launch._make((pid, ncu_id, *found, nvtx, None, None))


def is_untimed(metric: Name | None, unit: str) -> bool:
    """Return whether a metric is the duration, but its base unit is not a time unit: then its value is unknown."""
    return isinstance(metric, str) and metric.startswith("gpu__time_duration.") and unit != "ns"


def whole(text: str | None) -> int | None:
    """Return a printed non-negative integer below 2^63, or None."""
    digits = text.strip() if text else ""
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def resolve(key: Ints, value: Floats, step: Floats) -> tuple[Ints, Ints]:
    """Return positions: of one entry per key, and of the entries that contradict it.

    The first entry of a key is the reference; of the entries that agree with it within the printed digits the one
    with the smallest step is kept, the first of these. Kept positions are in the order of `key`.
    """
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    starts = np.flatnonzero(np.append(True, sorted_key[1:] != sorted_key[:-1])) if len(order) else order
    sizes = np.diff(np.append(starts, len(order)))
    best = order[starts]
    several = np.flatnonzero(sizes > 1)
    if not len(several):
        return best, order[:0]
    group = np.repeat(several, sizes[several])
    inside = np.arange(len(group)) - np.repeat(np.cumsum(sizes[several]) - sizes[several], sizes[several])
    member = order[starts[group] + inside]
    reference = best[group]
    gap = np.abs(value[member] - value[reference])
    agrees = gap <= (step[member] + step[reference]) * (0.5 + 1e-9) + 1e-12 * np.abs(value[reference])
    fit = np.flatnonzero(agrees)
    fit = fit[np.lexsort((fit, step[member[fit]], group[fit]))]
    finest = fit[np.append(True, group[fit][1:] != group[fit][:-1])]
    best[group[finest]] = member[finest]
    return best, member[~agrees]


def codes_of(names: Sequence[Name]) -> tuple[list[Name], Ints]:
    """Return the distinct names in their final order (raw names by name, then labels), and the code of each given one."""
    distinct = sorted(set(names), key=lambda name: (isinstance(name, Label), name))
    code = {name: i for i, name in enumerate(distinct)}
    return distinct, np.array([code[name] for name in names], dtype=np.int64)


def table_of(schema: pa.Schema, columns: Sequence[Any]) -> pa.Table:
    """Return columns (lists or arrays, in the order of `schema`) as a table."""
    return pa.table([pa.array(c, f.type) if not isinstance(c, pa.ChunkedArray) else c.cast(f.type)
                     for c, f in zip(columns, schema, strict=True)], schema=schema)


def occurring(codes: Ints) -> Ints:
    """Return the distinct ones of codes from 0, rising."""
    return np.flatnonzero(np.bincount(codes))


def distinct(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct ones of codes below `size`, rising, and the position among them of each."""
    if size > 2**22:
        present, position = np.unique(codes, return_inverse=True)
        return present, position.reshape(-1)
    seen = np.zeros(size, dtype=np.bool_)
    seen[codes] = True
    present = np.flatnonzero(seen)
    place = np.empty(size, dtype=np.int64)
    place[present] = np.arange(len(present))
    return present, place[codes]
