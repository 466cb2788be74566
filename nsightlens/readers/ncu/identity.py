"""A cheap look at a file: its kind, the processes in it, and which launches it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nsightlens.readers.ncu.lines import tables
from nsightlens.readers.ncu.log import refusal
from nsightlens.readers.ncu.long import end_of_run, kind_of, leading_cells
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.page import IdColumns, Launch
from nsightlens.readers.ncu.text import HeaderLine, blocks, cells
from nsightlens.readers.reader import Origin


@dataclass(frozen=True, slots=True)
class Look:
    """What a file is, and what it names."""

    kind: str
    pids: tuple[int, ...]
    identity: frozenset[str]
    origin: Origin
    log: list[bytes]


def look(path: Path) -> Look:
    """Return the facts in the id columns of a file. Raises ReadError where it has no row."""
    notes, log = Notes(), list[bytes]()
    found = tables(blocks(path, notes), _Launches, notes, log)
    launches = {name: launch for rows in found for name, launch in rows.found.items()}
    if not launches:
        raise refusal(path, log)
    pids = dict.fromkeys(launch.pid for launch in launches.values() if launch.pid is not None)
    kinds = sorted({rows.kind for rows in found if rows.found})
    return Look(" + ".join(kinds), tuple(pids), frozenset(launches), origin(launches.values()), log)


def origin(launches: Iterable[Launch], gpus: Iterable[str] = ()) -> Origin:
    """Return what the id columns say of GPUs and programs. gpus: product names, which they lack."""
    found = list(launches)
    capabilities = frozenset(launch.cc for launch in found if launch.cc)
    return Origin(frozenset(gpus), capabilities, frozenset(launch.process for launch in found if launch.process))


@dataclass(slots=True)
class _Launches:
    """The launches of a table by identity; nothing but the id cells of its rows is looked at."""

    header: HeaderLine
    found: dict[str, Launch] = field(default_factory=dict)
    _ids: IdColumns = field(init=False)
    _leading: re.Pattern[bytes] = field(init=False)
    _long: bool = field(init=False)
    _prefix: bytes = b""

    def __post_init__(self) -> None:
        """Find the id columns."""
        self._ids = IdColumns.of(self.header.cells)
        self._long = self.header.shape == "long"
        self._leading = leading_cells(self._ids.leading)

    @property
    def kind(self) -> str:
        """Return the page of ncu that the table is."""
        return kind_of(self.header) if self.header.shape == "long" else "raw" if self.header.shape == "wide" else "summary"

    def fast(self, data: bytes, start: int) -> int:
        """Take lines whose id cells come first and are quoted."""
        if not self._ids.leading:
            return start
        while (stop := data.find(b"\n", start)) >= 0:
            if not (self._prefix and data.startswith(self._prefix, start)):
                ids = self._leading.match(data, start, stop)
                if ids is None or not self.accept(cells(ids[0][:-1]) or (), ids[0]):
                    return start
                self._prefix = ids[0]
            after = end_of_run(data, start, self._prefix) if self._long else stop + 1
            if after == start:
                return start
            start = after
        return start

    def accept(self, row: Sequence[str], line: bytes) -> bool:
        """Take the id cells of one row; False where they are none."""
        launch = self._ids.launch(row)
        if launch is not None:
            summed = "" if "ID" in self.header.cells else "summary "
            self.found.setdefault(summed + launch.identity, launch)
        return launch is not None
