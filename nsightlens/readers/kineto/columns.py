"""Rows of one chunk, as events -> a batch per table.

`process_index` numbers the processes of the chunk (the order of `Tally.pids`); -1 stands for work on a GPU, whose pid is
the device, and for a pid that no process has. Whoever puts the chunks together renumbers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.batches import Batch
from nsightlens.readers.kineto import categories, sorting, times, values
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.fields import Fields, Mask, Parsed
from nsightlens.readers.kineto.times import UNKNOWN, Ns

Columns = dict[str, pa.Array]

_INT32 = pa.int32()
_ALL = slice(None)
_NOT_APPLICABLE = (1 << 32) - 1


def batches(fields: Fields, origin_ns: int) -> list[Batch]:
    """Return a batch per table that has rows, times relative to `origin_ns`."""
    tables = fields.tables()
    builder = Builder(fields.tally, origin_ns)
    makers = {
        "kernels": builder.kernels, "memory_ops": builder.memory_ops, "api_calls": builder.api_calls,
        "ranges": builder.ranges, "frame_calls": builder.frame_calls, "allocations": builder.allocations,
        "device_samples": builder.device_samples, "synchronizations": builder.synchronizations,
        "cuda_events": builder.cuda_events, "overheads": builder.overheads,
    }
    table_batches = [(table, pa.RecordBatch.from_pydict(make(tables[table])))
                     for table, make in makers.items() if table in tables]
    if "synchronizations" in tables:
        table_batches.append(("cuda_events", pa.RecordBatch.from_pydict(builder.awaited_records(tables["synchronizations"]))))
    if "ranges" in tables and any(tables["ranges"]["call_stack"]):
        table_batches.append(("call_stacks", pa.RecordBatch.from_pydict(builder.call_stacks(tables["ranges"]))))
    return table_batches


class Builder:
    """Makes the columns of one chunk's rows, and counts in `tally` what the values show besides."""

    def __init__(self, tally: Tally, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._tally = tally
        self._numbers = {pid: number for number, pid in enumerate(tally.pids)}

    def kernels(self, parsed: Parsed) -> Columns:
        """Return the columns of GPU kernels."""
        self._tally.marks.update(mark for mark in ("registers", "graph_node_id") if bool((parsed[mark] != UNKNOWN).any()))
        return {
            "name": values.texts(parsed["name"]),
            **self._times(parsed), **self._on_device(parsed), **self._links(parsed),
            **_dimensions("grid", parsed["grid"]), **_dimensions("block", parsed["block"]),
            "registers_per_thread": _int32(parsed["registers"]),
            "shared_bytes": times.column(parsed["shared_bytes"]),
            "blocks_per_sm": values.floats(parsed["blocks_per_sm"]),
            "warps_per_sm": values.floats(parsed["warps_per_sm"]),
            "estimated_occupancy_pct": values.floats(parsed["occupancy"]),
            "graph_id": times.column(_not_zero(parsed["graph_id"])),
            "graph_node_id": times.column(_not_zero(parsed["graph_node_id"])),
            **(self._collectives(parsed) if any(one is not None for one in parsed["collective"]) else {}),
            **_annotations(parsed),
        }

    def _collectives(self, parsed: Parsed) -> Columns:
        group = [number if name is None else name for name, number in zip(parsed["group_name"], parsed["group_id"], strict=True)]
        self._tally.groups.update(dict.fromkeys(
            each for each in zip(group, parsed["group_description"], parsed["group_ranks"], strict=True)
            if isinstance(each[0], str | int) and isinstance(each[1], str | None) and isinstance(each[2], str)))
        size = [_message_bytes(elements, kind) for elements, kind in zip(parsed["elements"], parsed["element_type"], strict=True)]
        peer = [to if source is None else source
                for source, to in zip(parsed["source_rank"], parsed["destination_rank"], strict=True)]
        return {
            "collective": values.texts(parsed["collective"]),
            "message_bytes": values.integers(size),
            "group_size": values.integers(parsed["group_size"], _INT32),
            "group_name": values.texts(group),
            "group_seq": values.integers(parsed["group_seq"]),
            "peer_rank": values.integers(peer, _INT32),
        }

    def memory_ops(self, parsed: Parsed) -> Columns:
        """Return the columns of copies and sets; direction and memories stand in the name, ROCm's also in `kind`."""
        name = values.texts(parsed["name"])
        kind = [categories.KIND_OF[cat] for cat in parsed["cat"]]
        label = [f"{n} {k}" if one == "memcpy" else None for n, k, one in zip(parsed["name"], parsed["kind"], kind, strict=True)]
        return {
            "kind": values.repeated(kind), "name": name,
            **self._times(parsed), **self._on_device(parsed), **self._links(parsed),
            "direction": values.mapped(values.texts(label), categories.direction),
            "source_memory": values.mapped(name, categories.source_memory),
            "destination_memory": values.mapped(name, categories.destination_memory),
            "bytes": values.integers(parsed["bytes"]),
            "bandwidth_duration_ns": times.column(parsed["bandwidth_duration"]),
            "graph_node_id": times.column(_not_zero(parsed["graph_node_id"])),
        }

    def api_calls(self, parsed: Parsed) -> Columns:
        """Return the columns of runtime and driver calls."""
        name = values.mapped(values.texts(parsed["name"]), categories.api_name)
        if any(one is not None and one.startswith("hip") for one in name.dictionary.to_pylist()):
            self._tally.marks.add("hip")
        return {
            "name": name, "api": values.mapped(values.repeated(parsed["cat"]), categories.KIND_OF.get),
            "process_index": pa.array(self._process(parsed["pid"])), "thread": times.column(parsed["tid"]),
            **self._times(parsed), **self._links(parsed),
        }

    def ranges(self, parsed: Parsed) -> Columns:
        """Return the columns of operators, annotations, modules and steps."""
        name = values.texts(parsed["name"])
        kind = values.mapped(values.repeated(parsed["cat"]), categories.KIND_OF.get)
        self._tally.operators += int(np.count_nonzero(_is(kind, "operator")))
        shapes = parsed["shapes"]
        if any(parsed["shapes_old"]):
            shapes = [old if new is None else new for new, old in zip(shapes, parsed["shapes_old"], strict=True)]
        return {
            "name": name, **_kinds_and_steps(name, kind), **self._tracks(parsed), **self._times(parsed),
            "shapes": values.scalar_texts(shapes),
            "types": values.type_texts(parsed["types"]),
            "concrete_inputs": values.scalar_texts(parsed["concrete_inputs"]),
            "sequence": times.column(parsed["sequence"]),
            "forward_thread": times.column(_not_zero(parsed["forward_thread"])),
            "external_id": times.column(parsed["external_id"]),
        }

    def frame_calls(self, parsed: Parsed) -> Columns:
        """Return the columns of calls of Python functions. Modules among them are ranges too, and were counted there."""
        name = values.texts(parsed["name"])
        modules = [text is not None and sorting.is_module(text) for text in name.dictionary.to_pylist()]
        others = ~np.array([*modules, False])[pc.fill_null(name.indices, len(modules)).to_numpy(zero_copy_only=False)]
        return {
            "name": values.mapped(name, categories.frame_name),
            "process_index": pa.array(self._process(parsed["pid"])), "thread": times.column(parsed["tid"]),
            **self._times(parsed, others),
        }

    def call_stacks(self, ranges: Parsed) -> Columns:
        """Return the columns of operators that carry their Python stack. A step's own is that of the profiler which begins it."""
        texts = [text if isinstance(text, str) and categories.KIND_OF[cat] == "operator" and not _is_step(name) else None
                 for text, cat, name in zip(ranges["call_stack"], ranges["cat"], ranges["name"], strict=True)]
        stack = values.mapped(values.texts(texts), categories.call_stack)
        known = pc.is_valid(stack).to_numpy(zero_copy_only=False)
        kept = np.flatnonzero(known)
        self._tally.odd_stacks += sum(bool(texts[row]) for row in np.flatnonzero(~known).tolist())
        start, duration = (ranges[name][kept] for name in ("start", "duration"))
        return {
            "process_index": pa.array(self._process(ranges["pid"][kept])), "thread": times.column(ranges["tid"][kept]),
            "start_ns": times.column(times.since(start, self._origin_ns)), "duration_ns": times.column(times.possible(duration)),
            "name": stack.take(pa.array(kept)),
        }

    def allocations(self, parsed: Parsed) -> Columns:
        """Return the columns of [memory] events."""
        at, types, device = parsed["at"], parsed["device_type"], parsed["device_id"]
        self._tally.untimed += int(np.count_nonzero(at == UNKNOWN))
        return {
            "process_index": pa.array(self._process(parsed["pid"])), "thread": times.column(parsed["tid"]),
            "at_ns": times.column(times.since(at, self._origin_ns)),
            "bytes": times.column(parsed["allocated"]),
            "address": values.integers([_signed(address) for address in parsed["address"]]),
            "device_type": values.mapped(times.column(types).dictionary_encode(), _device_type),
            "device": _int32(np.where((device == -1) | (types == 0) | (types == UNKNOWN), UNKNOWN, device)),
            "total_allocated_bytes": times.column(parsed["total_allocated"]),
            "total_reserved_bytes": times.column(parsed["total_reserved"]),
        }

    def device_samples(self, parsed: Parsed) -> Columns:
        """Return the columns of counters."""
        at, device = parsed["at"], parsed["device"]
        self._tally.samples += len(at)
        self._tally.untimed += int(np.count_nonzero(at == UNKNOWN))
        self._tally.devices.update(number for number in _int32(device).unique().to_pylist() if number is not None)
        value = values.floats(parsed["value"])
        unit_of = {pair: categories.metric_and_unit(*pair) for pair in set(parsed["metric"])}
        named = [unit_of[pair] for pair in parsed["metric"]]
        is_mhz = np.fromiter((unit == "MHz" for _, unit in named), np.bool_, len(named))
        return {
            "process_index": pa.array(np.where(device == UNKNOWN, self._process(parsed["pid"]), np.int32(-1))),
            "device": _int32(device), "at_ns": times.column(times.since(at, self._origin_ns)),
            "metric": values.texts([name for name, _ in named]),
            "value": pc.if_else(pa.array(is_mhz), pc.multiply(value, 1e6), value),
            "unit": values.texts(["hz" if unit == "MHz" else unit for _, unit in named]),
        }

    def synchronizations(self, parsed: Parsed) -> Columns:
        """Return the columns of waits for the GPU. The record of an event is known by the correlation id of its call."""
        kind = [name if said is None else said for said, name in zip(parsed["kind"], parsed["name"], strict=True)]
        return {
            **self._times(parsed), **_call_columns(parsed),
            "kind": values.mapped(values.texts(kind), lambda name: categories.WAIT_OF.get(name, "unknown")),
            "event_id": times.column(_applicable(parsed["event_id"])),
            "event_record_id": times.column(_not_zero(_applicable(parsed["event_record_id"]))),
        }

    def cuda_events(self, parsed: Parsed) -> Columns:
        """Return the columns of records of CUDA events; when the GPU reached them the trace does not say."""
        return {**_call_columns(parsed), "event_id": times.column(_applicable(parsed["event_id"])),
                "event_record_id": times.column(_not_zero(parsed["correlation"]))}

    def awaited_records(self, waits: Parsed) -> Columns:
        """Return the columns of those records of CUDA events that waits name: Kineto finds them in the context of the wait."""
        known = np.flatnonzero((waits["event_record_id"] > 0) & (_applicable(waits["awaited_stream"]) != UNKNOWN))
        named = {"device": "device", "context": "context", "stream": "awaited_stream", "correlation": "event_record_id",
                 "event_id": "event_id"}
        return self.cuda_events({name: waits[column][known] for name, column in named.items()})

    def overheads(self, parsed: Parsed) -> Columns:
        """Return the columns of overhead. Kineto writes it with pid -1 and tid 0: no process, no thread."""
        name = values.texts(parsed["name"])
        thread = np.where(parsed["tid"] > 0, parsed["tid"], UNKNOWN)
        return {
            "process_index": pa.array(self._process(parsed["pid"])), "thread": times.column(thread), **self._times(parsed),
            "name": name, "correlation_id": times.column(_not_zero(parsed["correlation"])),
            "source": values.mapped(name, lambda text: categories.OVERHEAD_OF.get(text, (None, None))[0]),
            "kind": values.mapped(name, lambda text: categories.OVERHEAD_OF.get(text, (None, "unknown"))[1]),
        }

    def _process(self, pids: Ns) -> npt.NDArray[np.int32]:
        """Return the number of each row's process, -1 for a pid that no process has."""
        found = np.full(len(pids), -1, dtype=np.int32)
        for pid, number in self._numbers.items():
            found[pids == pid] = number
        return found

    def _times(self, parsed: Parsed, counted: Mask | slice = _ALL) -> Columns:
        """Return start and duration; note how many of those in `counted` are unknown or impossible."""
        start, duration = parsed["start"], parsed["duration"]
        self._tally.untimed += int(np.count_nonzero(((start == UNKNOWN) | (duration == UNKNOWN))[counted]))
        possible = times.possible(duration)
        self._tally.impossible += int(np.count_nonzero((possible != duration)[counted]))
        return {"start_ns": times.column(times.since(start, self._origin_ns)), "duration_ns": times.column(possible)}

    def _on_device(self, parsed: Parsed) -> Columns:
        device = _int32(parsed["device"])
        self._tally.devices.update(number for number in device.unique().to_pylist() if number is not None)
        self._tally.gpu_rows += len(device)
        return {"process_index": pa.array(np.full(len(device), -1, dtype=np.int32)), "device": device,
                "stream": times.column(parsed["stream"]), "context": times.column(parsed["context"])}

    def _links(self, parsed: Parsed) -> Columns:
        """Return correlation id and External id, the latter only where it is a link.

        Kineto of 2022 to early 2024, which wrote whole microseconds, put the correlation id there a second time.
        """
        correlation, ids = parsed["correlation"], _not_zero(parsed["external_id"])
        borrowed = parsed["is_whole"] & (ids == correlation) & (ids != UNKNOWN)
        self._tally.borrowed_ids += int(np.count_nonzero(borrowed))
        ids = np.where(borrowed, UNKNOWN, ids)
        self._tally.own_ids += int(np.count_nonzero(ids != UNKNOWN))
        return {"correlation_id": times.column(correlation), "external_id": times.column(ids)}

    def _tracks(self, parsed: Parsed) -> Columns:
        """Return process and thread of ranges; for those that the tool drew on the GPU track, device and stream instead."""
        on_gpu, process, thread = parsed["on_gpu"], self._process(parsed["pid"]), parsed["tid"]
        if not on_gpu.any():
            return {"process_index": pa.array(process), "thread": times.column(thread)}
        return {"process_index": pa.array(np.where(on_gpu, np.int32(-1), process)),
                "thread": times.column(np.where(on_gpu, UNKNOWN, thread)),
                "device": _int32(parsed["device"]), "stream": times.column(parsed["stream"])}


def _is_step(name: Any) -> bool:
    return isinstance(name, str) and categories.step_number(name) is not None


def _int32(numbers: Ns) -> pa.Array:
    """Return an int32 column, NULL for what is UNKNOWN or does not fit."""
    unknown = (numbers < -(1 << 31)) | (numbers >= 1 << 31)
    return pa.array(numbers.astype(np.int32), mask=unknown if unknown.any() else None)


def _call_columns(parsed: Parsed) -> Columns:
    """Return device, context, stream and correlation id of what is part of a call."""
    return {
        "process_index": pa.array(np.full(len(parsed["device"]), -1, dtype=np.int32)), "device": _int32(parsed["device"]),
        "context": times.column(parsed["context"]), "stream": times.column(_applicable(parsed["stream"])),
        "correlation_id": times.column(_not_zero(parsed["correlation"])),
    }


def _applicable(numbers: Ns) -> Ns:
    """Return the numbers, UNKNOWN for what CUPTI writes where there is none: the highest of 32 bits, signed or not."""
    return np.where((numbers < 0) | (numbers == _NOT_APPLICABLE), UNKNOWN, numbers)


def _not_zero(numbers: Ns) -> Ns:
    """Return the numbers with 0, which stands for none, as UNKNOWN."""
    zero = numbers == 0
    return np.where(zero, UNKNOWN, numbers) if zero.any() else numbers


def _device_type(number: int | None) -> str | None:
    return None if number is None else categories.DEVICE_TYPES.get(number, str(number))


def _dimensions(what: str, sizes: list[Any]) -> Columns:
    """Return <what>_x, _y and _z."""
    return {f"{what}_{axis}": column for axis, column in zip("xyz", values.triples(sizes), strict=True)}


def _annotations(parsed: Parsed) -> Columns:
    """Return what the program said of nodes of CUDA graphs when it captured them: name and module, those that there are."""
    in_graph = ~np.isin(parsed["graph_node_id"], (0, UNKNOWN))
    found = {name: [one if known else None for one, known in zip(parsed[name], in_graph.tolist(), strict=True)]
             for name in ("annotation", "annotated_module") if any(one is not None for one in parsed[name])}
    return {name: values.texts(texts) for name, texts in found.items()}


def _message_bytes(elements: Any, element_type: Any) -> int | None:
    if elements is None:
        return None
    count = values.integer(elements)
    size = categories.ELEMENT_BYTES.get(element_type) if isinstance(element_type, str) else None
    return None if count is None or size is None else count * size


def _is(column: pa.DictionaryArray, text: str) -> Mask:
    """Return which rows of a column without NULL hold `text`."""
    place = column.dictionary.index(text).as_py()
    return np.asarray(column.indices.to_numpy() == place)


def _kinds_and_steps(name: pa.DictionaryArray, kind: pa.DictionaryArray) -> Columns:
    """Return the kinds with "step" for host-side ProfilerStep#N, and N per row where there is one."""
    numbers = [None if text is None else categories.step_number(text) for text in name.dictionary.to_pylist()]
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
