"""Ids for the rows of a profile: its processes and devices over all windows, on one clock."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import MISSING, Int, lookup, nullable
from nsightlens.columns.gathered import GPU_WORK, GatheredColumns
from nsightlens.columns.row_templates import RowTemplates
from nsightlens.columns.spilled import whole
from nsightlens.errors import OverlapError
from nsightlens.pipeline import processes
from nsightlens.pipeline.processes import Process, Row
from nsightlens.pipeline.profile_rows import ProfileInput, ProfileRows, WindowRows

Warned = tuple[str, str, int]
"""Code, message and count of a warning."""
_LIBRARY = re.compile(r"[nr]ccl(?:Dev)?Kernel")
_ID_BITS = 32
_NO_DEVICE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class ProfileIdentity:
    """A profile whose rows can be stamped with where they come from.

    base: the first id of its rows. shifts: per window, what to add to its times. gpu_spans: first start and last end of GPU work
    of each window that has some, on the profile's origin. local_processes: per window, the number of each of its processes.
    process_of: per table, the number of the process of each template. devices: by process number and ordinal.
    """

    profile: ProfileInput
    base: int
    windows: tuple[WindowRows, ...]
    shifts: tuple[int, ...]
    gpu_spans: tuple[tuple[int, int], ...]
    processes: tuple[Process, ...]
    local_processes: tuple[Int, ...]
    process_of: Mapping[str, Int]
    devices: Mapping[tuple[int, int], Row]
    warnings: tuple[Warned, ...]

    def stamp(self, rows: int, window: int) -> dict[str, pa.Array]:
        """Return the columns that tell the tool, the profile and the window of some rows."""
        return {
            "tool": _constant(self.profile.tool, rows),
            "profile_id": _constant(self.profile.profile_id, rows),
            "window_index": pa.array(np.full(rows, window, dtype=np.int32)),
        }

    def process_columns(self, numbers: Int, device: pa.Array | None) -> dict[str, pa.Array]:
        """Return the columns of processes of these numbers, and of the devices with these ordinals in them."""
        columns = {"process_id": lookup(numbers, [p.process_id for p in self.processes]),
                   "host": lookup(numbers, [p.row["host"] for p in self.processes])}
        for name in ("rank", "pid"):
            values = np.array([MISSING if p.row[name] is None else p.row[name] for p in self.processes], dtype=np.int64)
            columns[name] = nullable(values[numbers])
        if device is not None:
            places, found = self._device_places(numbers, device)
            columns["device_id"] = lookup(places, [d["device_id"] for d in found])
            columns["gpu"] = lookup(places, [d["name"] for d in found])
        return columns

    def _device_places(self, numbers: Int, device: pa.Array) -> tuple[Int, list[Row]]:
        """Return per row a position in a list of devices, and that list."""
        ordinal = pc.fill_null(device, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        pairs, places = np.unique((numbers << 32) | (ordinal & _NO_DEVICE), return_inverse=True)
        found = []
        for pair in pairs.tolist():
            process, number = pair >> 32, pair & _NO_DEVICE
            ordinal_or_none = None if number == _NO_DEVICE else number
            unknown = {"device_id": processes.unnamed_device(self.processes[process].process_id, ordinal_or_none), "name": None}
            found.append(self.devices.get((process, number), unknown))
        return places.reshape(-1), found


def id_base(profile_id: str) -> int:
    """Return the first id of the profile's rows: 31 bits of its name, then 32 bits to count with."""
    digest = hashlib.sha256(profile_id.encode()).digest()
    return (int.from_bytes(digest[:4], "big") >> 1) << _ID_BITS


def identify(recorded: ProfileRows) -> ProfileIdentity:
    """Return whose the rows of a profile are. Raises OverlapError where its windows overlap."""
    profile, windows = recorded.profile, recorded.windows
    shifts = _shifts(windows)
    spans = _gpu_spans(recorded.columns, shifts, profile.profile_id)
    found, places = processes.merge(profile.profile_id, [w.small["processes"] for w in windows])
    local = tuple(np.array(place, dtype=np.int64) for place in places)
    process_of = {name: _template_processes(recorded.columns, name, templates, local) for name,
                  templates in recorded.templates.items()}
    working = {number for name in GPU_WORK for number in np.flatnonzero(np.bincount(process_of[name])).tolist()}
    communicating = _communicating(recorded.columns, process_of["kernels"])
    ranked, warnings = processes.resolve_ranks(found, working, communicating, profile.sidecar, profile.rank_hint)
    devices = processes.identify_devices(ranked, [w.small["devices"] for w in windows], places)
    warned = tuple((code, message, 1) for code, message in warnings)
    return ProfileIdentity(profile, id_base(profile.profile_id), windows, shifts, spans, ranked, local, process_of, devices,
                           warned)


def _communicating(columns: GatheredColumns, process: Int) -> set[int]:
    """Return the numbers of the processes with kernels of a communication library. process: that of each template."""
    named = np.array([bool(_LIBRARY.match(name or "")) for name, _ in columns.names], dtype=np.bool_)
    codes = whole(columns.look("kernels", "name"))
    return set(process[named[codes]].tolist()) if named.any() else set()


def _shifts(windows: Sequence[WindowRows]) -> tuple[int, ...]:
    """Return what brings the times of each window onto the origin of the first, as far as both origins are known."""
    origins = [w.small["profiles"][0]["origin_epoch_ns"] if w.small["profiles"] else None for w in windows]
    return tuple(0 if origin is None or origins[0] is None else origin - origins[0] for origin in origins)


def _gpu_spans(columns: GatheredColumns, shifts: Sequence[int], profile_id: str) -> tuple[tuple[int, int], ...]:
    spans = tuple((span[0] + shift, span[1] + shift) for span, shift in zip(columns.gpu_spans, shifts, strict=True) if span)
    if any(later[0] < earlier[1] for earlier, later in pairwise(sorted(spans))):
        raise OverlapError(f"{profile_id}: its windows overlap")
    return spans


def _template_processes(columns: GatheredColumns, table: str, templates: RowTemplates, local: Sequence[Int]) -> Int:
    """Return the process number of each template. local: per window, the number of each of its processes."""
    index = columns.take(table, "process_index")
    return np.concatenate([local[window][index[first:end]] for window, first, end in templates.generations])


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([value]))
