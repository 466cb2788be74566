"""Spooled rows of one profile -> rows of the stored tables, with what follows from the profile as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import linking, names, normalise, processes, schema
from nsightlens.attribution import Attribution
from nsightlens.discover import path_text
from nsightlens.errors import OverlapError
from nsightlens.kinds import KIND, Kinds, expand
from nsightlens.linking import Calls, Launched
from nsightlens.nesting import stretches
from nsightlens.normalise import MISSING, Int, Narrow, Places, nullable
from nsightlens.ranks import Selection, Sidecar
from nsightlens.readers import diagnostic
from nsightlens.schema import Table
from nsightlens.shelf import Shelf, Stretches, whole
from nsightlens.staging import Spool

SMALL = ("profiles", "processes", "devices", "diagnostics")
EARLY = ("api_calls",)
"""Tables whose rows do not depend on what is derived from other tables."""
_ID_BITS = 32
_NO_DEVICE = 0xFFFFFFFF
_GPU_WORK = ("kernels", "memory_ops", "graph_executions")


@dataclass(frozen=True, slots=True)
class Profile:
    """What is to be read as one profile: the files of each of its windows, and what is known from outside of them."""

    profile_id: str
    run: str
    tool: str
    windows: tuple[tuple[Path, ...], ...]
    sidecar: Sidecar | None = None
    rank_hint: tuple[int | None, str | None] = (None, None)


@dataclass(slots=True)
class Window:
    """What one window left: spooled rows per table, its small tables, and where its processes stand in the profile."""

    spools: dict[str, Spool]
    small: dict[str, list[dict[str, Any]]]
    processes: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shift: int = 0


def id_base(profile_id: str) -> int:
    """Return the first id of the profile's rows: 31 bits of its name, then 32 bits to count with."""
    digest = hashlib.sha256(profile_id.encode()).digest()
    return (int.from_bytes(digest[:4], "big") >> 1) << _ID_BITS


def stored_schema(table: Table) -> pa.Schema:
    """Return the columns of a table's parts: all but `run`, which the folder tells, and the number of the kind."""
    columns = [(c.name, c.packed_type) for c in table.columns if c.name != "run"]
    return pa.schema([*columns, (KIND, pa.int32())] if table.varying else columns)


def stored_kind_schema(table: Table) -> pa.Schema:
    """Return the columns of the part that holds a table's kinds."""
    return pa.schema([f for f in stored_schema(table) if f.name not in table.varying])


class Assembly:
    """Spooled rows -> rows of the stored tables."""

    def __init__(self, profile: Profile, windows: list[Window], narrow: Narrow, kinds: dict[str, Kinds], shelf: Shelf) -> None:
        self.profile = profile
        self.windows = windows
        self.base = id_base(profile.profile_id)
        self._narrow = narrow
        self._kinds = kinds
        self._shelf = shelf
        self._links: dict[str, tuple[Stretches, Stretches]] = {}
        self._align()
        self.processes, places = processes.merge(profile.profile_id, [w.small["processes"] for w in windows])
        for window, place in zip(windows, places, strict=True):
            window.processes = np.array(place, dtype=np.int64)
        self._process = {name: self._processes_of_kinds(name) for name in kinds}
        for number in {n for name in _GPU_WORK for n in np.flatnonzero(np.bincount(self._process[name])).tolist()}:
            self.processes[number].works = True
        self.warnings = processes.resolve_ranks(self.processes, profile.sidecar, profile.rank_hint)
        self.devices = processes.identify_devices(self.processes, [w.small["devices"] for w in windows], places)
        self._attribution = self._begin_attribution() if narrow.rows("ranges") else None
        self._calls = self._take_calls()

    def _processes_of_kinds(self, table: str) -> Int:
        """Return the process number of each kind."""
        local = self._narrow.take(table, "process_index")
        found = [self.windows[window].processes[local[first:end]] for window, first, end in self._kinds[table].stretches()]
        return np.concatenate(found)

    def _align(self) -> None:
        """Shift the later windows onto the origin of the first."""
        origins = [w.small["profiles"][0]["origin_epoch_ns"] if w.small["profiles"] else None for w in self.windows]
        for window, origin in zip(self.windows, origins, strict=True):
            if origin is not None and origins[0] is not None:
                window.shift = origin - origins[0]
        spans = sorted(self._gpu_spans())
        if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
            raise OverlapError(f"{self.profile.profile_id}: its windows overlap")

    def _gpu_spans(self) -> list[tuple[int, int]]:
        """Return first start and last end of GPU work of each window that has some, on the profile's origin."""
        spans = zip(self._narrow.gpu_spans, self.windows, strict=False)
        return [(span[0] + window.shift, span[1] + window.shift) for span, window in spans if span]

    def _take_work(self, table: str, kind: Stretches) -> tuple[npt.NDArray[Any], Stretches, Stretches]:
        """Return process number, correlation id and start of each row of `table`."""
        owner = self._process[table]
        owner = owner.astype(np.min_scalar_type(int(owner.max(initial=0))))
        if len(owner) and (owner == owner[0]).all():
            process = np.broadcast_to(owner[0], len(kind))
        else:
            process = np.empty(len(kind), dtype=owner.dtype)
            for some in stretches(len(kind)):
                process[some] = owner[kind[some]]
        start = self._narrow.column(table, "start_ns")
        if any(shifts := [w.shift for w in self.windows]):
            shifted = whole(start).copy()
            shifted[shifted != MISSING] += self._narrow.per_window(table, shifts)[shifted != MISSING]
            start = self._shelf.keep(shifted)
        return process, self._narrow.column(table, "correlation_id"), start

    def _take_calls(self) -> Calls:
        kind = self._narrow.column("api_calls", "kind")
        process, correlation, start = self._take_work("api_calls", kind)
        if self._attribution:
            self._attribution.add_calls(kind, start)
        if self.profile.tool == "kineto" and len(process) and (process != process[0]).any():
            # its GPU work does not tell whose it is: an id that calls of several processes have leads to none of them
            ids = whole(correlation)
            correlation = np.where(linking.used_by_several(process, ids), 0, ids)
        return Calls(process, correlation, start, self._narrow.column("api_calls", "duration_ns"))

    def derive(self) -> None:
        """Derive what follows from the profile as a whole, once. Until then only the tables in EARLY have their rows."""
        self._link("memory_ops")
        process, kind, correlation, start, links = self._link("kernels")
        del self._calls
        if self._attribution:
            self._attribution.finish()
        self.codes = self._narrow.take("kernels", "name")
        self.derived = self._narrow.names.derived()
        time = linking.launch_time(process, correlation, start, links)
        del links
        order = linking.launch_order(process, time, correlation, start, self._narrow.column("kernels", "ncu_id"))
        del start, correlation, time
        alike = self._alike()
        like = np.empty(len(kind), dtype=np.int32)
        for some in stretches(len(kind)):
            like[some] = alike[kind[some]]
        numbers = linking.number_launches(process, order, like)
        self._place = numbers.place
        self._launch_index, self._nth = self._shelf.keep(numbers.launch_index), self._shelf.keep(numbers.nth)

    def _link(self, table: str) -> tuple[npt.NDArray[Any], Stretches, Stretches, Stretches, Launched]:
        """Link GPU work to its calls; return process number, kind, correlation id, start and launching call of each row."""
        kind = self._narrow.column(table, "kind")
        process, correlation, start = self._take_work(table, kind)
        links = linking.link(process, correlation, self._calls, start, self._shelf)
        if self._attribution:
            self._attribution.add_work(table, kind, links)
        self._links[table] = links.call, links.queue_delay
        return process, kind, correlation, start, links

    def _alike(self) -> Places:
        """Return a number per kind of kernels, the same for those with one process, key and configuration."""
        like = self._narrow.take("kernels", "configuration")
        like ^= normalise.hash_of(self.derived["kernel_key"])[self.codes]
        numbers = np.unique(like, return_inverse=True)[1].astype(np.int64)
        of_process = numbers * len(self.processes) + self._process["kernels"]
        alike: Places = np.unique(of_process, return_inverse=True)[1].astype(np.int32)
        return alike

    def _begin_attribution(self) -> Attribution:
        windows = [(window.processes, window.shift) for window in self.windows]
        return Attribution(self._narrow, self._kinds, self._process, windows, self.base, self._shelf)

    def rows(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Yield the stored rows of one table."""
        if table.name in SMALL:
            yield self._small(table)
            return
        done = 0
        kinds = self._generations(table) if table.varying else iter(())
        first, known = 0, None
        for index, window in enumerate(self.windows):
            for batch in window.spools.get(table.name, ()):
                if not table.varying:
                    yield self._assemble(table, batch, index, done)
                else:
                    codes = batch.column(KIND).to_numpy()
                    while len(codes) and (known is None or codes[0] >= first + known.num_rows):
                        first, known = next(kinds)
                    if known is not None:
                        yield self._assemble_of_kinds(table, batch, window, done, expand(known, codes - first))
                done += batch.num_rows

    def kinds(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Yield the stored kinds of one table, in the order of their numbers."""
        attribution = self._attribution
        for first, kinds in self._generations(table):
            if attribution and attribution.splits(table.name):
                yield _conformed(attribution.kinds(table.name, first, kinds), stored_kind_schema(table), table.name)
            else:
                yield kinds

    def _generations(self, table: Table) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (number of the first, kinds) per stretch of kinds that were remembered together."""
        target = stored_kind_schema(table)
        for window, first, batch in self._kinds[table.name].read():
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            rows = slice(first, first + batch.num_rows)
            self._stamp(columns, batch.num_rows, window)
            columns.pop("process_index")
            self._add_process(columns, self._process[table.name][rows])
            if table.name == "kernels":
                self._name(columns, rows)
            columns[KIND] = pa.array(np.arange(rows.start, rows.stop, dtype=np.int32))
            yield first, _conformed(columns, target, table.name)

    def _assemble_of_kinds(
        self, table: Table, batch: pa.RecordBatch, window: Window, done: int, columns: dict[str, pa.Array],
    ) -> pa.RecordBatch:
        columns |= {name: batch.column(name) for name in batch.schema.names}
        if window.shift:
            columns["start_ns"] = pc.add(columns["start_ns"], window.shift)
        rows = slice(done, done + batch.num_rows)
        if table.name == "kernels":
            columns["kernel_id"] = pa.array(self._place[rows].astype(np.int64) + self.base)
            columns["launch_index"] = pa.array(self._launch_index[rows].astype(np.int64))
            columns["nth"] = pa.array(self._nth[rows].astype(np.int64))
            self._add_links(columns, "kernels", rows)
        else:
            columns[str(table.row_id)] = pa.array(np.arange(rows.start, rows.stop, dtype=np.int64) + self.base)
        if table.name == "memory_ops":
            self._add_links(columns, "memory_ops", rows)
        if self._attribution:
            self._attribution.add_columns(table.name, columns, rows)
        return _conformed(columns, stored_schema(table), table.name)

    def _assemble(self, table: Table, batch: pa.RecordBatch, index: int, done: int) -> pa.RecordBatch:
        rows, window = batch.num_rows, self.windows[index]
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        process = columns.pop("process_index", None)
        kernel_row = columns.pop("kernel_row", None)
        self._stamp(columns, rows, index)
        if table.row_id:
            columns[table.row_id] = pa.array(np.arange(done, done + rows, dtype=np.int64) + self.base)
        if process is not None:
            self._add_process(columns, window.processes[process.to_numpy(zero_copy_only=False)])
        if kernel_row is not None:
            first = self._narrow.first_row("kernels", index)
            columns["kernel_id"] = pa.array(self._place[kernel_row.to_numpy() + first].astype(np.int64) + self.base)
        for time in ("start_ns", "at_ns"):
            if window.shift and time in columns:
                columns[time] = pc.add(columns[time], window.shift)
        if self._attribution:
            self._attribution.add_columns(table.name, columns, slice(done, done + rows))
        if table.name == "metric_summaries":
            named = columns["name"].dictionary.to_pylist()
            keys = [names.kernel_key(name, self.profile.tool) for name in named]
            columns["kernel_key"] = normalise.lookup(columns["name"].indices.to_numpy(zero_copy_only=False), keys)
            on_tensor_cores = [names.tensor_cores(name, names.family(name)) for name in named]
            columns["tensor_cores"] = pa.array(on_tensor_cores, pa.bool_()).take(columns["name"].indices)
        return _conformed(columns, stored_schema(table), table.name)

    def _stamp(self, columns: dict[str, pa.Array], rows: int, window: int) -> None:
        columns["tool"] = _constant(self.profile.tool, rows)
        columns["profile_id"] = _constant(self.profile.profile_id, rows)
        columns["window_index"] = pa.array(np.full(rows, window, dtype=np.int32))

    def _add_process(self, columns: dict[str, pa.Array], numbers: Int) -> None:
        columns["process_id"] = normalise.lookup(numbers, [p.process_id for p in self.processes])
        columns["host"] = normalise.lookup(numbers, [p.row["host"] for p in self.processes])
        for name in ("rank", "pid"):
            values = np.array([MISSING if p.row[name] is None else p.row[name] for p in self.processes], dtype=np.int64)
            columns[name] = nullable(values[numbers])
        if "device" in columns:
            places, found = self._device_places(numbers, columns["device"])
            columns["device_id"] = normalise.lookup(places, [d["device_id"] for d in found])
            columns["gpu"] = normalise.lookup(places, [d["name"] for d in found])

    def _device_places(self, numbers: Int, device: pa.Array) -> tuple[Int, list[dict[str, Any]]]:
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

    def _name(self, columns: dict[str, pa.Array], kinds: slice) -> None:
        """Add what follows from the kernel's name alone, and shared_bytes from its parts."""
        for name, values in self.derived.items():
            if name == "tensor_cores":
                columns[name] = pa.array(values, pa.bool_()).take(pa.array(self.codes[kinds]))
            elif name != "name" or columns["name"].null_count:
                columns[name] = normalise.lookup(self.codes[kinds], values)
        both = pc.add(columns["static_shared_bytes"], columns["dynamic_shared_bytes"])
        columns["shared_bytes"] = pc.coalesce(columns["shared_bytes"], both)

    def _add_links(self, columns: dict[str, pa.Array], table: str, rows: slice) -> None:
        calls, delays = self._links[table]
        call = calls[rows].astype(np.int64)
        columns["launch_id"] = nullable(np.where(call >= 0, call + self.base, MISSING))
        columns["queue_delay_ns"] = nullable(delays[rows])

    def _small(self, table: Table) -> pa.RecordBatch:
        listed: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
            "processes": lambda: ({**p.row, "process_id": p.process_id} for p in self.processes),
            "devices": self.devices.values,
            "profiles": lambda: [self._profile_row()],
            "diagnostics": self._diagnostics,
        }
        stamp = {"tool": self.profile.tool, "profile_id": self.profile.profile_id}
        return schema.rows_to_batch([{**row, **stamp} for row in listed[table.name]()], stored_schema(table), table.name)

    def _profile_row(self) -> dict[str, Any]:
        heads = [w.small["profiles"][0] for w in self.windows if w.small["profiles"]]
        row = dict(heads[0]) if heads else {}
        for total in ("events", "events_lost"):
            counted = [h[total] for h in heads]
            row[total] = sum(counted) if counted and None not in counted else None
        row["truncated"] = any(h["truncated"] for h in heads)
        row["first_bad_byte"] = next((h["first_bad_byte"] for h in heads if h["first_bad_byte"] is not None), None)
        for name in ("kernels", "memory_ops", "api_calls", "ranges"):
            row[name] = self._narrow.rows(name)
        sidecar = self.profile.sidecar
        row |= asdict(sidecar.selection if sidecar else Selection())
        row["settings"] = [*(row.get("settings") or ()), *(sidecar.settings if sidecar else ())] or None
        return row | self._gpu_totals() | {
            "execution_id": sidecar.execution if sidecar else None,
            "simulated": sidecar.simulated if sidecar else False,
            "windows": len(self.windows),
            "rules_version": normalise.RULES_VERSION,
        }

    def _gpu_totals(self) -> dict[str, int | None]:
        shifted = self._gpu_spans()
        return {
            "kernel_ns": self._narrow.kernel_ns,
            "gpu_first_ns": min((first for first, _ in shifted), default=None),
            "gpu_last_ns": max((last for _, last in shifted), default=None),
        }

    def _diagnostics(self) -> list[dict[str, Any]]:
        rows = []
        for code, message in self.warnings:
            rows.extend(diagnostic("warning", code, message)[1].to_pylist())
        for window, paths in zip(self.windows, self.profile.windows, strict=True):
            rows.extend({"path": path_text(paths[0]), **row} for row in window.small["diagnostics"])
        return [{"path": path_text(self.profile.windows[0][0]), **row} for row in rows]


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([value]))


def _conformed(columns: dict[str, pa.Array], target: pa.Schema, table: str) -> pa.RecordBatch:
    wanted = {name: columns[name] for name in target.names if name in columns}
    return schema.conform(pa.RecordBatch.from_pydict(wanted), target, table)
