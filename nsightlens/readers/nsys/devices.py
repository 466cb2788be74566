"""Which GPU a device ordinal of a process was.

TARGET_INFO_CUDA_DEVICE maps (pid, ordinal) to an entry of TARGET_INFO_GPU. Without it, the ordinal is looked for among the
`cuDevice` of NVIDIA's GPUs, at last among the `id` (nsys's own enumeration): both may be wrong under CUDA_VISIBLE_DEVICES,
so where the report lists several GPUs that is an assumption, counted in `assumed`. So is the only GPU of a report that gives
it no number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.batches import batch_of
from nsightlens.readers.nsys.report import number, text
from nsightlens.readers.nsys.source import Source
from nsightlens.schema import DEVICES

_GPU_COLUMNS = (
    "id", "cuDevice", "name", "uuid", "busLocation", "computeMajor", "computeMinor", "smCount", "totalMemory", "memoryBandwidth",
    "clockRate", "l2CacheSize", "maxWarpsPerSm", "threadsPerWarp",
)
_CUDA_COLUMNS = ("gpuId", "cudaId", "pid", "uuid", "numMultiprocessors")
_OTHER_VENDOR = re.compile(r"\b(intel|amd|radeon|microsoft|llvmpipe)\b", re.IGNORECASE)

Row = Mapping[str, object]


class Devices:
    """The devices of the report. `fresh` gives the rows of those not yielded yet."""

    def __init__(self, source: Source, tally: Counter[str]) -> None:
        gpus = [dict(zip(_GPU_COLUMNS, row, strict=True)) for row in source.rows("TARGET_INFO_GPU", _GPU_COLUMNS)]
        self._gpus = [gpu for gpu in gpus if _is_nvidia(gpu)]
        self._cuda = [dict(zip(_CUDA_COLUMNS, row, strict=True)) for row in source.rows("TARGET_INFO_CUDA_DEVICE", _CUDA_COLUMNS)]
        self._seen: dict[tuple[int, int], Row | None] = {}
        self._tally = tally
        self.assumed = 0
        self.unknown = 0

    def fresh(self, batch: pa.RecordBatch, pids: list[int | None]) -> pa.RecordBatch | None:
        """Return the rows of `devices` for the (process_index, device) pairs of `batch` that are new. `pids`: of each process."""
        process, device = (batch.column(name).cast(pa.int64()) for name in ("process_index", "device"))
        pairs = pc.add(pc.shift_left(process, 32), pc.add(device, 1 << 31)).unique().drop_null().to_pylist()
        new = [pair for value in pairs if (pair := (value >> 32, (value & 0xFFFFFFFF) - (1 << 31))) not in self._seen]
        rows = [self._fitting(self._row(process, device, pids[process])) for process, device in new]
        return batch_of("devices", rows) if rows else None

    def _fitting(self, row: Row) -> dict[str, object]:
        """Return a row without the numbers that are too large for their column, which are counted."""
        fitting = dict(row)
        for name, value in row.items():
            type_ = DEVICES.reader_schema.field(name).type
            if isinstance(value, int) and pa.types.is_floating(type_):
                fitting[name] = float(value)
            elif isinstance(value, int) and not 0 <= value < 1 << (type_.bit_width - 1):
                fitting[name] = None
                self._tally["out_of_range"] += 1
        return fitting

    def place_of(self, gpu_id: int, pids: list[int | None]) -> tuple[int, int | None]:
        """Return a process that used the GPU with this `id`, and its ordinal there.

        Else the first process, and the ordinal that it has for the GPU: None where it has none. pids: of each process.
        """
        for place, gpu in self._seen.items():
            if gpu is not None and gpu["id"] == gpu_id:
                return place
        asked = [row["cudaId"] for row in self._cuda if row["gpuId"] == gpu_id]
        asked += [gpu["cuDevice"] for gpu in self._gpus if gpu["id"] == gpu_id] + [gpu_id]
        for device in (each for each in asked if isinstance(each, int)):
            gpu, _ = self._gpu(self._cuda_device(pids[0], device), device)
            if gpu is not None and gpu["id"] == gpu_id:
                return 0, device
        return 0, None

    def _row(self, process: int, device: int, pid: int | None) -> dict[str, object]:
        cuda = self._cuda_device(pid, device)
        gpu, certain = self._gpu(cuda, device)
        self._seen[process, device] = gpu
        if gpu is None:
            self.unknown += 1
        elif not certain:
            self.assumed += 1
        row = {} if gpu is None else _facts(gpu)
        if not certain and len(self._gpus) > 1 and not any(number(each["cuDevice"]) is not None for each in self._gpus):
            row |= {"uuid": None, "pci": None}  # nsys's enumeration gives the GPU model, not which GPU
        sms = number(cuda.get("numMultiprocessors"))
        if sms and sms < (number(gpu and gpu["smCount"]) or sms):  # a slice: what the whole GPU has is not the slice's
            row |= dict.fromkeys(("memory_bytes", "memory_bandwidth_bytes_per_s", "l2_bytes"))
        row |= {key: value for key, value in (("sm_count", sms), ("uuid", _uuid(cuda.get("uuid")))) if value}
        return {"process_index": process, "device": device, **row}

    def _cuda_device(self, pid: int | None, device: int) -> Row:
        """Return the entry of (pid, ordinal); where the pid has none, that of the ordinal if all processes agree on it."""
        same = [row for row in self._cuda if number(row["cudaId"]) == device]
        own = [row for row in same if number(row["pid"]) == pid]
        if own:
            return own[0]
        return same[0] if len({row["gpuId"] for row in same}) == 1 else {}

    def _gpu(self, cuda: Row, device: int) -> tuple[Row | None, bool]:
        """Return the GPU and whether that is certain."""
        if cuda:
            matched = [gpu for gpu in self._gpus if gpu["id"] == cuda["gpuId"]]
            if len(matched) == 1:
                return matched[0], True
        alone = len(self._gpus) == 1
        for column in ("cuDevice", "id"):
            matched = [gpu for gpu in self._gpus if number(gpu[column]) == device]
            if len(matched) == 1:
                return matched[0], alone
        unnumbered = alone and number(self._gpus[0]["cuDevice"]) is None and number(self._gpus[0]["id"]) is None
        return (self._gpus[0] if unnumbered else None), False


def listed(source: Source) -> tuple[frozenset[str], frozenset[str]]:
    """Return the product names and compute capabilities of NVIDIA's GPUs that the report lists, those without work too."""
    gpus = [dict(zip(_GPU_COLUMNS, row, strict=True)) for row in source.rows("TARGET_INFO_GPU", _GPU_COLUMNS)]
    facts = [_facts(gpu) for gpu in gpus if _is_nvidia(gpu)]
    names, capabilities = ({str(each[key]) for each in facts if each[key]} for key in ("name", "compute_capability"))
    return frozenset(names), frozenset(capabilities)


def _facts(gpu: Row) -> dict[str, object]:
    """Return the columns of `devices` from TARGET_INFO_GPU. The tool writes 0 where it does not know."""
    warps, threads = number(gpu["maxWarpsPerSm"]), number(gpu["threadsPerWarp"])
    major, minor = number(gpu["computeMajor"]), number(gpu["computeMinor"])
    return {
        "name": text(gpu["name"]),
        "uuid": _uuid(gpu["uuid"]),
        "pci": text(gpu["busLocation"]),
        "compute_capability": f"{major}.{minor or 0}" if major else None,
        "sm_count": number(gpu["smCount"]) or None,
        "memory_bytes": number(gpu["totalMemory"]) or None,
        "memory_bandwidth_bytes_per_s": number(gpu["memoryBandwidth"]) or None,
        "core_clock_hz": number(gpu["clockRate"]) or None,
        "l2_bytes": number(gpu["l2CacheSize"]) or None,
        "threads_per_sm": warps * threads if warps and threads else None,
    }


def _uuid(value: object) -> str | None:
    """Return a UUID in one spelling: lower case without NVIDIA's prefix `GPU-` (a slice keeps its `MIG-`)."""
    written = text(value)
    if written is None or not written.replace("-", "").strip("0"):
        return None
    return written.removeprefix("GPU-").lower() if not written.startswith("MIG-") else written


def _is_nvidia(gpu: Row) -> bool:
    """Windows lists every adapter, other vendors' with a UUID of zeros and cuDevice 0; exports of 2021 have such UUIDs anyway."""
    written = text(gpu["uuid"])
    no_uuid = written is not None and not written.replace("-", "").strip("0")
    return not _OTHER_VENDOR.search(text(gpu["name"]) or "") and (not no_uuid or bool(number(gpu["smCount"])))
