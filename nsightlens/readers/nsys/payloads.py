"""NCCL's NVTX payloads -> columns of `ranges`: communicator and its size, bytes of the message, rank, root, peer, reduction.

nsys exports it as bytes (--include-blobs=true: a header of four numbers, domain, schema, size and offset, then the payload, whose
fields NVTX_PAYLOAD_SCHEMA_ENTRIES describes) or decoded, in a table per schema with a row per event (--dynamic-tables=all, nsys
2026.4). What the exporter decoded comes first. NCCL's fields are known by their labels.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens import schema
from nsightlens.readers.nsys.columns import raw
from nsightlens.readers.nsys.source import (
    NVTX,
    PAYLOAD_ENTRIES,
    PAYLOAD_ENUM_ENTRIES,
    PAYLOAD_NAMES,
    Kind,
    Source,
)

_FIELDS = {
    "ncclcommunicatorid": "communicator", "messagesizebytes": "message_bytes", "noofranks": "group_size", "rank": "group_rank",
    "root": "root_rank", "peerrank": "peer_rank", "reductionoperation": "reduction",
}
"""Labels of NCCL's fields, by their letters and digits alone -> column."""
_OF_NCCL = {"communicator", "message_bytes"}
"""Columns one of which every schema of NCCL has."""
_HEADER = struct.Struct("<4Q")
_FORMATS = {5: "<i", 6: "<I", 9: "<q", 10: "<Q", 15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q"}
"""Types of entries (NVTX_PAYLOAD_ENTRY_TYPE_...): int and long long, of fixed size, size_t."""
_ENUM = "<i"
"""Types that are no number are enumerations, as wide as C's int."""
_REDUCTIONS = {0: "sum", 1: "prod", 2: "max", 3: "min", 4: "avg"}
_LONGEST = 1 << 20
"""Bytes within which a field must begin."""
_HEX = re.compile(rb"[0-9a-fA-F]+")
_NO_EVENT = np.zeros(0, np.int64)
Ints = npt.NDArray[np.int64]


class Payload(NamedTuple):
    """What one range carries; None where it does not say."""

    communicator: str | None = None
    message_bytes: int | None = None
    group_size: int | None = None
    group_rank: int | None = None
    root_rank: int | None = None
    peer_rank: int | None = None
    reduction: str | None = None


class _Field(NamedTuple):
    """A field of a payload: its column, where it lies, how it is written, and the enumeration that it is of."""

    column: str
    offset: int
    format: str
    enum: int


class Payloads:
    """The payloads of a report: which columns of NVTX_EVENTS tell them, and what they say."""

    def __init__(self, source: Source, tally: Counter[str], jobs: int) -> None:
        self._tally = tally
        self._schemas = _schemas(source)
        self._enums = {(enum, value): str(name).lower() for enum, name, value in
                       source.rows(PAYLOAD_ENUM_ENTRIES, ("schemaId", "name", "value"))}
        self._found: dict[Payload, int] = {}
        self._sizes: dict[str, int] = {}
        self._decoded: dict[str, int] = {}
        self._event, self._code = self._from_tables(source, jobs)
        self.are_described = any("message_bytes" in {field.column for field in fields} for fields in self._schemas.values())
        self.columns: dict[str, Kind] = {}
        """Columns of NVTX_EVENTS to read."""
        if self._schemas and "binaryData" in source.columns(NVTX):
            self.columns["binaryData"] = "hex"
        if len(self._event):
            self.columns["eventId"] = "integer"

    def of(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of `ranges` that the payloads of some rows of NVTX_EVENTS give; none where there are no payloads."""
        if not self.columns:
            return {}
        code = np.full(batch.num_rows, -1)
        if "binaryData" in self.columns:
            written = raw(batch, "binaryData", pa.string()).dictionary_encode()
            codes = np.array([*map(self._read, written.dictionary.to_pylist()), -1])
            code = codes[pc.fill_null(written.indices, len(codes) - 1).to_numpy()]
        if len(self._event):
            event = pc.fill_null(raw(batch, "eventId"), -1).to_numpy()
            place = np.minimum(np.searchsorted(self._event, event), len(self._event) - 1)
            code = np.where(self._event[place] == event, self._code[place], code)
        self._tally["payloads"] += int((code >= 0).sum())
        return self._columns(code)

    def _columns(self, code: Ints) -> dict[str, pa.Array]:
        """Return a column for each field; of a communicator the size that any payload of it told so far."""
        known = [payload._replace(group_size=payload.group_size or self._sizes.get(payload.communicator or ""))
                 for payload in self._found]
        which = pa.array(code, mask=code < 0)
        types = schema.RANGES.reader_schema
        found = {}
        for name, values in zip(Payload._fields, zip(*known, strict=True) if known else [()] * len(Payload._fields), strict=True):
            type_ = types.field(name).type
            text = pa.types.is_dictionary(type_)
            column = pa.array(values, pa.string() if text else type_).take(which)
            found[name] = column.dictionary_encode() if text else column
        return found

    def _number(self, fields: Mapping[str, Any]) -> int:
        """Return the number of a payload with these fields."""
        payload = Payload(**{name: _valid(name, value) for name, value in fields.items()})
        if payload.communicator and payload.group_size:
            self._sizes[payload.communicator] = payload.group_size
        return self._found.setdefault(payload, len(self._found))

    # -- bytes -------------------------------------------------------------------------------------------------

    def _read(self, written: str) -> int:
        """Return the number of the payload in bytes that are written as hexadecimal digits; -1 where NCCL wrote none."""
        if written not in self._decoded:
            self._decoded[written] = self._payload_number(_bytes(written)) if written else -1
        return self._decoded[written]

    def _payload_number(self, data: bytes) -> int:
        if len(data) < _HEADER.size:
            self._tally["bad_payload"] += 1
            return -1
        domain, schema_, size, offset = _HEADER.unpack_from(data)
        fields = self._schemas.get((domain, schema_))
        if fields is None:
            return -1
        payload = data[offset:offset + size]
        if offset < _HEADER.size or len(payload) < max(field.offset + struct.calcsize(field.format) for field in fields):
            self._tally["bad_payload"] += 1
            return -1
        values = {field.column: struct.unpack_from(field.format, payload, field.offset)[0] for field in fields}
        return self._number(values | {field.column: self._named(field.enum, values[field.column])
                                      for field in fields if field.column == "reduction"})

    def _named(self, enum: int | None, value: int) -> str:
        """Return the name of a value of an enumeration."""
        return self._enums.get((enum, value)) or _REDUCTIONS.get(value, f"operation {value}")

    # -- tables ------------------------------------------------------------------------------------------------

    def _from_tables(self, source: Source, jobs: int) -> tuple[Ints, Ints]:
        """Return the events of all tables that hold payloads of NCCL, ascending, and the number of the payload of each."""
        named = {str(short): str(name) for name, short in source.rows(PAYLOAD_NAMES, ("originalName", "sanitizedName"))}
        events, codes = [_NO_EVENT], [_NO_EVENT]
        for table in source.decoded():
            labels = {name: _FIELDS.get(_letters(named.get(name, name))) for name in source.columns(table)}
            fields = {name: column for name, column in labels.items() if column}
            if not _OF_NCCL & set(fields.values()):
                continue
            *_, domain, schema_ = table.split("_")
            described = self._schemas.get((int(domain), int(schema_)), ())
            enum = next((field.enum for field in described if field.column == "reduction"), None)
            kinds: dict[str, Kind] = {name: "name" if column == "reduction" else "integer" for name, column in fields.items()}
            for batch in source.batches(table, {"eventId": "integer", **kinds}, jobs):
                rows = [self._number(self._with_reduction(dict(zip(fields.values(), row, strict=True)), enum))
                        for row in zip(*(raw(batch, name).to_pylist() for name in fields), strict=True)]
                event = raw(batch, "eventId")
                events.append(event.drop_null().to_numpy())
                codes.append(np.array(rows, np.int64)[event.is_valid().to_numpy(zero_copy_only=False)])
        event, first = np.unique(np.concatenate(events), return_index=True)
        return event, np.concatenate(codes)[first]

    def _with_reduction(self, values: dict[str, Any], enum: int | None) -> dict[str, Any]:
        """Return the values of a row, with the reduction by its name."""
        value = values.get("reduction")
        if isinstance(value, str):
            return values | {"reduction": value.lower()}
        return values if value is None else values | {"reduction": self._named(enum, value)}


def _schemas(source: Source) -> dict[tuple[int, int], list[_Field]]:
    """Return the fields of NCCL's schemas by domain and schema; none of one that processes describe differently."""
    entries: dict[tuple[int, int], dict[int, set[tuple[Any, ...]]]] = {}
    for domain, schema_, index, type_, name, offset in source.rows(
            PAYLOAD_ENTRIES, ("domainId", "schemaId", "idx", "type", "name", "offset")):
        if isinstance(domain, int) and isinstance(schema_, int) and isinstance(index, int):
            described = entries.setdefault((domain, schema_), {}).setdefault(index, set())
            described.add((type_, name, offset or 0))
    found = {}
    for key, by_index in entries.items():
        if any(len(described) != 1 for described in by_index.values()):
            continue
        if not all(isinstance(offset, int) and 0 <= offset < _LONGEST for ((_, _, offset),) in by_index.values()):
            continue
        fields = [_Field(column, offset, _FORMATS.get(type_, _ENUM), type_)
                  for ((type_, name, offset),) in by_index.values() if (column := _FIELDS.get(_letters(str(name))))]
        if _OF_NCCL & {field.column for field in fields}:
            found[key] = fields
    return found


def _letters(label: str) -> str:
    """Return the letters and digits of a label, in small letters: a label and its name in a table have the same."""
    return re.sub(r"[^a-z0-9]", "", label.lower())


def _bytes(written: str) -> bytes:
    """Return the bytes that hexadecimal digits stand for: those of a blob, or of a text of such digits."""
    data = bytes.fromhex(written)
    return bytes.fromhex(data.decode()) if len(data) % 2 == 0 and _HEX.fullmatch(data) else data


def _valid(name: str, value: Any) -> Any:
    """Return a value as the column holds it, None for one that it cannot hold: a communicator of 0 is none."""
    if name == "communicator":
        return f"0x{value % (1 << 64):x}" if isinstance(value, int) and value else None
    if name == "reduction":
        return value if isinstance(value, str) else None
    most = 1 << 63 if name == "message_bytes" else 1 << 31
    return value if isinstance(value, int) and 0 <= value < most else None
