"""What PyTorch's flight recorder knows of the last collectives of a rank, dumped as JSON -> collective_records.

`torch._C._distributed_c10d._dump_nccl_trace_json()` (and `_dump_fr_trace_json`) make such a dump; the files that PyTorch writes
by itself are pickles, which are not read. No real file was seen: they are read after the code that writes them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nsightlens.readers import whole_file
from nsightlens.readers.batches import Batch, batch_of, diagnostic
from nsightlens.readers.kineto.categories import ELEMENT_BYTES
from nsightlens.readers.reader import Probe, ProcessHint
from nsightlens.readers.settings import setting

TOOL = "flight_recorder"
NEEDS_FILES = False
KIND = "flight recorder json"

MAX_BYTES = 256 << 20
"""Some 400,000 entries; the recorder keeps 2,000 by default."""
_BATCH = 1 << 15
_BEGINS = re.compile(rb"^(?:\xef\xbb\xbf)?\s*\{")
_TESTED = re.compile(r"2\.\d+")
_RANKS = re.compile(r"\[\s*\d*(?:\s*,\s*\d+)*\s*\]")
_WORLD = "default_pg"
_STATES = ("scheduled", "started", "completed")
_LONGEST_NS = 10**16
_AGAIN = "Dump it again: torch._C._distributed_c10d._dump_nccl_trace_json()"


class _Entry(msgspec.Struct):
    profiling_name: str
    process_group: list[str] | str | None = None
    collective_seq_id: int | None = None
    seq_id: int | None = None
    is_p2p: bool = False
    time_created_ns: int | None = None
    duration_ms: float | None = None
    state: str | None = None
    input_sizes: list[list[int]] | None = None
    input_dtypes: list[str] | None = None


class _Dump(msgspec.Struct):
    entries: list[msgspec.Raw] = []
    version: str | None = None
    comm_lib_version: str | None = None
    nccl_version: str | None = None
    pg_config: dict[str, Any] = {}


_DECODER, _ENTRY = msgspec.json.Decoder(_Dump), msgspec.json.Decoder(_Entry)


def sniff(path: Path, head: bytes) -> bool:
    """Return whether the head is that of such a dump."""
    pairs = ((b'"profiling_name"', b'seq_id"'), (b'"pg_config"', b'"pg_status"'))
    named = any(all(name in head for name in pair) for pair in pairs)
    return named and b'"traceEvents"' not in head and _BEGINS.match(head) is not None


def probe(path: Path) -> Probe:
    """Return what the dump says of itself: not its rank, which only its name may hold. Raises ReadError."""
    dump = _decode(path)
    hints = (ProcessHint(world_size=_world(dump)),)
    return Probe(KIND, tool_version=dump.version, processes=hints, first_epoch_ns=_origin(_entries(dump, Counter())))


def read(paths: Sequence[Path], *, jobs: int = 1) -> Iterator[Batch]:
    """Yield a row per collective, one process and one profile. Raises ReadError for what is no whole dump."""
    (path,) = paths
    dump = _decode(path)
    tally: Counter[str] = Counter()
    entries = _entries(dump, tally)
    origin = _origin(entries)
    library = setting(dump.comm_lib_version or dump.nccl_version)
    yield "profiles", batch_of("profiles", [{
        "tool_version": setting(dump.version), "format": KIND, "origin_epoch_ns": origin, "events": len(entries),
        "events_lost": tally["entries_damaged"], "truncated": False, "link_method": "none",
        "settings": [("communication library", library)] if library else []}])
    yield "processes", batch_of("processes", [{"process_index": 0, "world_size": _world(dump)}])
    sizes = {name: _size(config) for name, config in dump.pg_config.items()}
    for first in range(0, len(entries), _BATCH):
        yield "collective_records", batch_of("collective_records", [
            _row(entry, origin, sizes) for entry in entries[first : first + _BATCH]])
    yield from _diagnostics(dump, entries, tally)


def _diagnostics(dump: _Dump, entries: Sequence[_Entry], tally: Mapping[str, int]) -> Iterator[Batch]:
    untimed = sum(entry.state == "completed" and _duration(entry) is None for entry in entries)
    for severity, code, count, message in (
            ("warning", "entries_damaged", tally["entries_damaged"], "entries that are not records, or have impossible numbers; "
             "they are left out"),
            ("warning", "untested_version", int(not _TESTED.fullmatch(dump.version or "")), f"written in version "
             f"{dump.version} of the format; read as far as it matches version 2"),
            ("warning", "no_collectives", int(not entries), "the recorder has no collective: set TORCH_FR_BUFFER_SIZE=2000 "
             "(TORCH_NCCL_TRACE_BUFFER_SIZE before PyTorch 2.9)"),
            ("warning", "no_durations", untimed, "completed collectives have no duration, so no rank can be found late: set "
             "TORCH_NCCL_ENABLE_TIMING=1"),
            ("info", "point_to_point", tally["point_to_point"], "sends and receives are not read: their numbers match no "
             "counterpart")):
        if count:
            yield diagnostic(severity, code, message, count)


def _entries(dump: _Dump, tally: Counter[str]) -> list[_Entry]:
    """Return the collectives of a dump; what is none is counted. Of a coalesced group, which has one number, the last stands for
    all."""
    found: dict[object, _Entry] = {}
    for raw in dump.entries:
        try:
            entry = _ENTRY.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            tally["entries_damaged"] += 1
            continue
        if entry.is_p2p:
            tally["point_to_point"] += 1
        elif all(0 <= (number or 0) < 1 << 63 for number in (entry.collective_seq_id, entry.seq_id, entry.time_created_ns)):
            found[str(entry.process_group), _number(entry, len(found))] = entry
        else:
            tally["entries_damaged"] += 1
    return list(found.values())


def _number(entry: _Entry, otherwise: int | None = None) -> int | None:
    """Return the number of a collective within its group; `otherwise`, as a negative one, where it has none."""
    stated = entry.seq_id if entry.collective_seq_id is None else entry.collective_seq_id
    return stated if stated is not None or otherwise is None else -1 - otherwise


def _row(entry: _Entry, origin: int | None, sizes: Mapping[str, int | None]) -> dict[str, object]:
    group = [entry.process_group] if isinstance(entry.process_group, str) else entry.process_group or []
    duration = _duration(entry)
    return {
        "process_index": 0, "communicator": group[0] if group else None,
        "communicator_name": group[1] if len(group) > 1 else None,
        "group_size": sizes.get(group[0]) if group else None,
        "sequence": _number(entry),
        "collective": entry.profiling_name.rpartition(":")[2], "message_bytes": _bytes(entry),
        "start_ns": None if origin is None or not entry.time_created_ns else entry.time_created_ns - origin,
        "duration_ns": duration, "duration_clock": "gpu" if duration is not None else None,
        "state": entry.state if entry.state in _STATES else None}


def _duration(entry: _Entry) -> int | None:
    nanoseconds = (entry.duration_ms or 0) * 1e6
    return round(nanoseconds) if 0 < nanoseconds < _LONGEST_NS else None


def _bytes(entry: _Entry) -> int | None:
    """Return the bytes of all inputs; None where a size or type is not known."""
    sizes, types = entry.input_sizes, entry.input_dtypes
    if not sizes or not types or len(sizes) != len(types) or not all(kind in ELEMENT_BYTES for kind in types):
        return None
    total = sum(math.prod(size) * ELEMENT_BYTES[kind] for size, kind in zip(sizes, types, strict=True))
    return total if 0 <= total < 1 << 63 else None


def _size(config: object) -> int | None:
    """Return how many ranks a process group has: its ranks stand in a text ('[0, 1]'), or in a list."""
    ranks = config.get("ranks") if isinstance(config, Mapping) else config
    if isinstance(ranks, str) and _RANKS.fullmatch(ranks):
        ranks = re.findall(r"\d+", ranks)
    return len(ranks) or None if isinstance(ranks, list) else None


def _world(dump: _Dump) -> int | None:
    """Return the number of ranks of the job."""
    return next((_size(config) for config in dump.pg_config.values()
                 if isinstance(config, Mapping) and config.get("desc") == _WORLD), None)


def _origin(entries: Sequence[_Entry]) -> int | None:
    return min((entry.time_created_ns for entry in entries if entry.time_created_ns), default=None)


def _decode(path: Path) -> _Dump:
    """Return the content. Raises ReadError for what is no whole dump."""
    return whole_file.decode(path, _DECODER, MAX_BYTES, "dump of the flight recorder", _AGAIN, "Record with a smaller buffer")
