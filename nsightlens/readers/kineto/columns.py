"""Rows of one chunk, as events -> a batch per table.

`process_index` numbers the processes of the chunk (the order of `Tally.pids`); -1 stands for work on a GPU, whose pid is
the device, and for a pid that no process has. Whoever puts the chunks together renumbers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsightlens.readers import Batch
from nsightlens.readers.kineto import times, values, words
from nsightlens.readers.kineto.fields import Fields, Lists
from nsightlens.readers.kineto.times import UNKNOWN, Ns

Columns = dict[str, pa.Array]

_INT32 = pa.int32()


def batches(fields: Fields, origin_ns: int) -> list[Batch]:
    """Return a batch per table that has rows, times relative to `origin_ns`.

    Raises times.InexactTime where the events must be decoded as `exact` ones.
    """
    builder = Builder(fields, origin_ns)
    made = {
        "kernels": builder.kernels, "memory_ops": builder.memory_ops, "api_calls": builder.api_calls,
        "ranges": builder.ranges, "allocations": builder.allocations,
    }
    return [(table, pa.RecordBatch.from_pydict(make(fields.tables[table])))
            for table, make in made.items() if table in fields.tables]


class Builder:
    """Makes the columns of one chunk's rows, and counts in its tally what a value told beside."""

    def __init__(self, fields: Fields, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._are_integers = fields.typed
        self._tally = fields.tally
        self._process_numbers = {pid: number for number, pid in enumerate(fields.tally.pids)}

    def kernels(self, told: Lists) -> Columns:
        """Return the columns of GPU kernels."""
        registers, node = self._numbers(told["registers"]), self._numbers(told["graph_node_id"])
        self._tally.marks.update(mark for mark, column in (("registers", registers), ("graph_node_id", node))
                                 if bool((column != UNKNOWN).any()))
        return {
            "name": values.texts(told["name"]),
            **self._times(told), **self._on_device(told), **self._links(told),
            **_dimensions("grid", told["grid"]), **_dimensions("block", told["block"]),
            "registers_per_thread": _int32(registers),
            "shared_bytes": times.column(self._numbers(told["shared_bytes"])),
            "blocks_per_sm": values.floats(told["blocks_per_sm"]),
            "warps_per_sm": values.floats(told["warps_per_sm"]),
            "estimated_occupancy_pct": values.floats(told["occupancy"]),
            "graph_id": times.column(_not_zero(self._numbers(told["graph_id"]))),
            "graph_node_id": times.column(_not_zero(node)),
            **(_collectives(told) if any(one is not None for one in told["collective"]) else {}),
        }

    def memory_ops(self, told: Lists) -> Columns:
        """Return the columns of copies and sets; direction and memories stand in the name, ROCm's also in `kind`."""
        name = values.texts(told["name"])
        kind = [words.KIND_OF[cat] for cat in told["cat"]]
        label = [f"{n} {k}" if one == "memcpy" else None for n, k, one in zip(told["name"], told["kind"], kind, strict=True)]
        return {
            "kind": values.repeated(kind), "name": name,
            **self._times(told), **self._on_device(told), **self._links(told),
            "direction": values.mapped(values.texts(label), words.direction),
            "source_memory": values.mapped(name, words.source_memory),
            "destination_memory": values.mapped(name, words.destination_memory),
            "bytes": values.integers(told["bytes"]),
            "graph_node_id": times.column(_not_zero(self._numbers(told["graph_node_id"]))),
        }

    def api_calls(self, told: Lists) -> Columns:
        """Return the columns of runtime and driver calls."""
        name = values.mapped(values.texts(told["name"]), words.api_name)
        if any(one is not None and one.startswith("hip") for one in name.dictionary.to_pylist()):
            self._tally.marks.add("hip")
        return {
            "name": name, "api": values.mapped(values.repeated(told["cat"]), words.KIND_OF.get),
            "process_index": self._process(told["pid"]), "thread": self._integers(told["tid"]),
            **self._times(told), **self._links(told),
        }

    def ranges(self, told: Lists) -> Columns:
        """Return the columns of operators, annotations, modules and steps."""
        name = values.texts(told["name"])
        kind = values.mapped(values.repeated(told["cat"]), words.KIND_OF.get)
        self._tally.operators += int(np.count_nonzero(_is(kind, "operator")))
        shapes = told["shapes"]
        if any(told["shapes_old"]):
            shapes = [old if new is None else new for new, old in zip(shapes, told["shapes_old"], strict=True)]
        return {
            "name": name, **_kinds_and_steps(name, kind), **self._tracks(told, kind), **self._times(told),
            "shapes": values.json_texts(shapes),
            "types": values.json_texts(told["types"]),
            "concrete_inputs": values.json_texts(told["concrete_inputs"]),
            "sequence": self._integers(told["sequence"]),
            "forward_thread": times.column(_not_zero(self._numbers(told["forward_thread"]))),
            "external_id": self._integers(told["external_id"]),
        }

    def allocations(self, told: Lists) -> Columns:
        """Return the columns of [memory] events."""
        at = times.starts(told["ts"])
        self._tally.untimed += int(np.count_nonzero(at == UNKNOWN))
        types = self._numbers(told["device_type"])
        device = self._numbers(told["device_id"])
        device = np.where((device == -1) | (types == 0) | (types == UNKNOWN), UNKNOWN, device)
        return {
            "process_index": self._process(told["pid"]), "thread": self._integers(told["tid"]),
            "at_ns": times.column(times.since(at, self._origin_ns)),
            "bytes": self._integers(told["allocated"]),
            "address": values.integers([_signed(address) for address in told["address"]]),
            "device_type": values.mapped(times.column(types).dictionary_encode(), _device_type),
            "device": _int32(device),
            "total_allocated_bytes": self._integers(told["total_allocated"]),
            "total_reserved_bytes": self._integers(told["total_reserved"]),
        }

    def _numbers(self, told: list[Any]) -> Ns:
        return values.numbers(told, are_integers=self._are_integers)

    def _integers(self, told: list[Any]) -> pa.Array:
        return times.column(self._numbers(told))

    def _process(self, pids: list[Any]) -> pa.Array:
        number = {raw: self._process_numbers.get(values.process_id(raw) or 0, -1) for raw in set(pids)}
        if len(number) == 1:
            return _same(number[pids[0]], len(pids))
        return pa.array([number[pid] for pid in pids], _INT32)

    def _times(self, told: Lists) -> Columns:
        start = times.starts(told["ts"])
        duration = times.nanoseconds(told["dur"])
        self._tally.untimed += int(np.count_nonzero((start == UNKNOWN) | (duration == UNKNOWN)))
        duration, impossible = times.possible(duration)
        self._tally.impossible += impossible
        return {"start_ns": times.column(times.since(start, self._origin_ns)), "duration_ns": times.column(duration)}

    def _on_device(self, told: Lists) -> Columns:
        """Return device, context and stream: arguments, and pid and tid of GPU events mean the same."""
        device = _int32(self._told_or("device", told, "pid"))
        self._tally.devices.update(number for number in device.unique().to_pylist() if number is not None)
        self._tally.gpu_rows += len(device)
        return {"process_index": _same(-1, len(device)), "device": device,
                "stream": times.column(self._told_or("stream", told, "tid")), "context": self._integers(told["context"])}

    def _told_or(self, name: str, told: Lists, track: str) -> Ns:
        """Return the numbers of an argument, and of the track where the argument is absent (not: where it is odd)."""
        found, said = self._numbers(told[name]), told[name]
        absent = [row for row in np.flatnonzero(found == UNKNOWN).tolist() if said[row] is None or said[row] == UNKNOWN]
        if absent:
            found = found.copy()
            found[absent] = self._numbers(told[track])[absent]
        return found

    def _links(self, told: Lists) -> Columns:
        """Return correlation id and External id, the latter only where it is a link.

        Kineto of 2022 to early 2024, which wrote whole microseconds, put the correlation id there a second time.
        """
        correlation, ids = self._numbers(told["correlation"]), self._numbers(told["external_id"])
        lacks = ids == UNKNOWN
        ids = _not_zero(np.where(lacks, self._numbers(told["external_id_g1"]), ids) if lacks.any() else ids)
        if set(map(type, told["ts"])) != {float}:
            whole = np.fromiter(map(times.is_whole, told["ts"]), np.bool_, len(ids))
            borrowed = whole & (ids == correlation) & (ids != UNKNOWN)
            self._tally.borrowed_ids += int(np.count_nonzero(borrowed))
            ids = np.where(borrowed, UNKNOWN, ids)
        self._tally.own_ids += int(np.count_nonzero(ids != UNKNOWN))
        return {"correlation_id": times.column(correlation), "external_id": times.column(ids)}

    def _tracks(self, told: Lists, kind: pa.DictionaryArray) -> Columns:
        """Return process and thread of ranges; for those that the tool drew on the GPU track, device and stream instead."""
        thread = self._numbers(told["tid"])
        on_gpu = _is(kind, "gpu_annotation")
        if not on_gpu.any():
            return {"process_index": self._process(told["pid"]), "thread": times.column(thread)}
        process = np.where(on_gpu, np.int32(-1), self._process(told["pid"]).to_numpy())
        device = np.where(on_gpu, self._told_or("device", told, "pid"), UNKNOWN)
        stream = np.where(on_gpu, self._told_or("stream", told, "tid"), UNKNOWN)
        return {"process_index": pa.array(process), "thread": times.column(np.where(on_gpu, UNKNOWN, thread)),
                "device": _int32(device), "stream": times.column(stream)}


def _int32(numbers: Ns) -> pa.Array:
    """Return an int32 column, NULL for what is UNKNOWN or does not fit."""
    unknown = (numbers < -(1 << 31)) | (numbers >= 1 << 31)
    return pa.array(numbers.astype(np.int32), mask=unknown if unknown.any() else None)


def _not_zero(numbers: Ns) -> Ns:
    """Return the numbers with 0, which stands for none, as UNKNOWN."""
    zero = numbers == 0
    return np.where(zero, UNKNOWN, numbers) if zero.any() else numbers


def _device_type(number: int | None) -> str | None:
    return None if number is None else words.DEVICE_TYPES.get(number, str(number))


def _same(number: int, count: int) -> pa.Array:
    return pa.array(np.full(count, number, dtype=np.int32))


def _dimensions(what: str, sizes: list[Any]) -> Columns:
    """Return <what>_x, _y and _z."""
    return {f"{what}_{axis}": column for axis, column in zip("xyz", values.triples(sizes), strict=True)}


def _collectives(told: Lists) -> Columns:
    group = [number if name is None else name for name, number in zip(told["group_name"], told["group_id"], strict=True)]
    size = [_message_bytes(elements, kind) for elements, kind in zip(told["elements"], told["element_type"], strict=True)]
    return {
        "collective": values.texts(told["collective"]),
        "message_bytes": values.integers(size),
        "group_size": values.integers(told["group_size"], _INT32),
        "group_name": values.texts(group),
        "group_seq": values.integers(told["group_seq"]),
    }


def _message_bytes(elements: Any, element_type: Any) -> int | None:
    if elements is None:
        return None
    count = values.integer(elements)
    size = words.ELEMENT_BYTES.get(element_type) if isinstance(element_type, str) else None
    return None if count is None or size is None else count * size


def _is(column: pa.DictionaryArray, text: str) -> npt.NDArray[np.bool_]:
    """Return which rows of a column without NULL hold `text`."""
    place = column.dictionary.index(text).as_py()
    return np.asarray(column.indices.to_numpy() == place)


def _kinds_and_steps(name: pa.DictionaryArray, kind: pa.DictionaryArray) -> Columns:
    """Return the kinds with "step" for host-side ProfilerStep#N, and N per row where there is one."""
    numbers = [None if text is None else words.step_number(text) for text in name.dictionary.to_pylist()]
    if not any(number is not None for number in numbers):
        return {"kind": kind}
    kinds = kind.to_pylist()
    steps = [numbers[i] if i is not None and k in ("operator", "annotation") else None
             for i, k in zip(name.indices.to_pylist(), kinds, strict=True)]
    return {"kind": values.texts(["step" if step is not None else k for step, k in zip(steps, kinds, strict=True)]),
            "step": values.integers(steps)}


def _signed(address: Any) -> Any:
    """Return an unsigned 64-bit address in two's complement."""
    return address - (1 << 64) if isinstance(address, int) and 1 << 63 <= address < 1 << 64 else address
