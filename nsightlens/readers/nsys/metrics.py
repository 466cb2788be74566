"""GPU_METRICS, what nsys sampled on the GPUs: a batch of nsys's table -> a batch of ours.

Its rows name a metric and a type of event; the low 32 bits of the type are the GPU's number in TARGET_INFO_GPU. They name no
process: a row belongs to a process that used the GPU, under the ordinal that the GPU has there, so that its device is that of
the kernels; where none did, to the report's first process, if that has an ordinal for the GPU.
"""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.nsys.columns import batch_of, moments, raw
from nsightlens.readers.nsys.devices import Devices
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.report import text
from nsightlens.readers.nsys.source import GPU_METRIC_NAMES, Kind, Source

COLUMNS: dict[str, Kind] = dict.fromkeys(("timestamp", "typeId", "metricId", "value"), "integer")
_WITH_UNIT = re.compile(r"(.*\S)\s*\[(.+)\]")
_UNITS = {"Throughput %": "%", "MHz": "hz"}
_GPU = (1 << 32) - 1
_LEAST_HZ = 1_000_000
"""Clocks called [MHz] are stored in Hz by the exporters seen; a value below this is taken as MHz: no GPU runs at 1,000 GHz."""


class Metrics:
    """What the metrics of a report are called, and which GPUs they are of."""

    def __init__(self, source: Source, processes: Processes, devices: Devices) -> None:
        self._processes = processes
        self._devices = devices
        rows = source.rows(GPU_METRIC_NAMES, ("typeId", "metricId", "metricName"))
        self._names = {(type_, metric): _metric(text(name)) for type_, metric, name in rows}
        self._places: dict[int, tuple[int, int | None]] = {}

    def samples(self, batch: pa.RecordBatch, base_ns: int, tally: Counter[str]) -> pa.RecordBatch:
        """Return rows of `device_samples` from GPU_METRICS."""
        code, kinds = _coded(raw(batch, "typeId"), raw(batch, "metricId"))
        known = [self._names.get(kind, (f"metric {kind[1]}", None)) for kind in kinds]
        tally["unnamed_metric"] += _count(code, [kind not in self._names for kind in kinds])
        places = [self._place(type_) for type_, _ in kinds]
        tally["unplaced_sample"] += _count(code, [device is None for _, device in places])
        return batch_of({
            "process_index": pa.array([process for process, _ in places], pa.int32()).take(code),
            "device": pa.array([device for _, device in places], pa.int32()).take(code),
            "at_ns": moments(raw(batch, "timestamp"), base_ns, tally),
            "metric": pa.array([name for name, _ in known], pa.string()).dictionary_encode().take(code),
            "value": _in_hz(raw(batch, "value").cast(pa.float64()), pa.array([unit == "hz" for _, unit in known]).take(code)),
            "unit": pa.array([unit for _, unit in known], pa.string()).dictionary_encode().take(code),
        })

    def _place(self, type_: int | None) -> tuple[int, int | None]:
        """Return the process number and the ordinal of the GPU that a type of event is of."""
        gpu = -1 if type_ is None else type_ & _GPU
        if gpu not in self._places:
            self._processes.index(pa.nulls(0 if self._processes.keys else 1, pa.int64()))  # a report without any process
            self._places[gpu] = self._devices.place_of(gpu, self._processes.pids())
        return self._places[gpu]


def _coded(types: pa.Array, metrics: pa.Array) -> tuple[pa.Array, list[tuple[int | None, int | None]]]:
    """Return a number per row, and the pair of values that each number stands for."""
    type_, metric = (array.dictionary_encode(null_encoding="encode") for array in (types, metrics))
    width = max(1, len(metric.dictionary))
    pairs = pc.add(pc.multiply(type_.indices.cast(pa.int64()), width), metric.indices).dictionary_encode()
    found = [(type_.dictionary[pair // width].as_py(), metric.dictionary[pair % width].as_py())
             for pair in pairs.dictionary.to_pylist()]
    return pairs.indices, found


def _count(code: pa.Array, chosen: list[bool]) -> int:
    """Return how many rows have a number that is chosen."""
    return int(pc.sum(pa.array(chosen, pa.bool_()).take(code)).as_py() or 0) if any(chosen) else 0


def _metric(name: str | None) -> tuple[str | None, str | None]:
    """Return name and unit of 'SMs Active [Throughput %]'."""
    found = _WITH_UNIT.fullmatch(name or "")
    return (found[1], _UNITS.get(found[2], found[2])) if found else (name, None)


def _in_hz(value: pa.Array, is_clock: pa.Array) -> pa.Array:
    small = pc.and_(is_clock, pc.less(value, _LEAST_HZ))
    return pc.if_else(small, pc.multiply(value, 1e6), value)
