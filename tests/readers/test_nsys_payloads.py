"""Payloads of NCCL's ranges, as bytes and decoded by the exporter: made after the documented schema 3.28, read, and joined to
kernels."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from tests.readers.nsys_2026 import documented
from tests.readers.nsys_report import Row, call, codes, global_pid, kernel, read, span, strings, write_parquetdir

DOMAIN, WORLD = 1, 0xF00D_0000_0000_0007
U64, INT, SIZE, REDOP = 18, 5, 22, (1 << 24) + 14
INIT, ALL_REDUCE, REDUCE_SCATTER, SEND, RECV = ((1 << 24) + at for at in (2, 5, 7, 9, 10))
COMMUNICATOR, BYTES = ("NCCL communicator ID", U64, None, "Q"), ("Message size [bytes]", SIZE, 8, "Q")
REDUCTION, PEER = ("Reduction operation", REDOP, 16, "i"), ("Peer rank", INT, 16, "i")
SCHEMAS = {
    INIT: [COMMUNICATOR, ("No. of ranks", INT, 8, "i"), ("Rank", INT, 12, "i"), ("CUDA device", INT, 16, "i")],
    ALL_REDUCE: [COMMUNICATOR, BYTES, REDUCTION], REDUCE_SCATTER: [COMMUNICATOR, BYTES, REDUCTION],
    SEND: [COMMUNICATOR, BYTES, PEER], RECV: [COMMUNICATOR, BYTES, PEER],
}
"""Schema -> its fields as NCCL 2.27 registers them: label, type, offset (of the first: none), and how the program wrote it."""
EVENTS: list[tuple[str, int, int, int | None, tuple[int, ...]]] = [
    ("ncclCommInitRank", 100, 200, INIT, (WORLD, 4, 2, 0)),
    ("ncclAllReduce", 1000, 1100, ALL_REDUCE, (WORLD, 1 << 20, 0)),
    ("ncclGroupStart", 2000, 2001, None, ()),
    ("ncclSend", 2002, 2003, SEND, (WORLD, 512, 1)),
    ("ncclRecv", 2004, 2005, RECV, (WORLD, 64, 1)),
    ("ncclSend", 2006, 2007, SEND, (WORLD, 256, 3)),
    ("ncclGroupEnd", 2010, 2100, None, ()),
    ("ncclReduceScatter", 3000, 3100, REDUCE_SCATTER, (WORLD, 4096, 4)),
]
NAMES = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
         "cudaLaunchKernel_v7000", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096>)",
         "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)")


def as_blob(schema: int, values: tuple[int, ...]) -> bytes:
    """Return the payload as nsys exports it: a header of four numbers, and what the program wrote."""
    payload = bytearray(24)
    for (_, _, offset, form), value in zip(SCHEMAS[schema], values, strict=True):
        struct.pack_into("<" + form, payload, offset or 0, value)
    return struct.pack("<4Q", DOMAIN, schema, len(payload), 32) + payload


def described() -> dict[str, list[Row]]:
    entries = [{"domainId": DOMAIN, "schemaId": schema, "idx": at, "type": type_, "name": label, "offset": offset}
               for schema, fields in SCHEMAS.items() for at, (label, type_, offset, _) in enumerate(fields)]
    enums = [{"domainId": DOMAIN, "schemaId": REDOP, "idx": at, "name": name, "value": at}
             for at, name in enumerate(("Sum", "Product", "Max", "Min", "Average"))]
    return {"NVTX_PAYLOAD_SCHEMA_ENTRIES": [*entries, *entries], "NVTX_PAYLOAD_ENUM_ENTRIES": enums}


def events(blobs: bool) -> list[Row]:
    ranges = [span(start, end, text=name, domainId=DOMAIN, eventId=at,
                   binaryData=as_blob(schema, values) if blobs and schema else None)
              for at, (name, start, end, schema, values) in enumerate(EVENTS, 1)]
    return [span(0, None, eventType=75, text="NCCL", domainId=DOMAIN, eventId=99, binaryData=None), *ranges]


def decoded() -> dict[str, list[Row]]:
    """Return the tables of --dynamic-tables=all; field names are sanitized, and the report says how."""
    tables: dict[str, list[Row]] = {"NVTX_EVENTS_PAYLOAD_SCHEMAS": []}
    labels = {label: label.replace(" ", "_").replace("[", "").replace("]", "").replace(".", "") for fields in SCHEMAS.values()
              for label, *_ in fields}
    for at, (_, _, _, schema, values) in enumerate(EVENTS, 1):
        if schema:
            signed = [value - (1 << 64) if value >= 1 << 63 else value for value in values]
            row = {labels[label]: value for (label, *_), value in zip(SCHEMAS[schema], signed, strict=True)}
            table = f"DYNAMIC_NVTXPAYLOAD_DATATYPE_{global_pid(7)}_{DOMAIN}_{schema}"
            tables.setdefault(table, []).append({"eventId": at, **row})
            tables["NVTX_EVENTS_PAYLOAD_SCHEMAS"].append(
                {"eventId": at, "globalPid": global_pid(7), "domainId": DOMAIN, "payloadSchemaID": schema})
    tables["NVTX_EXPORT_TRANSLATION"] = [{"originalName": label, "sanitizedName": name} for label, name in labels.items()]
    return tables


def work() -> dict[str, list[Row]]:
    launched = [(1010, 1200, 1400, 1), (2050, 2200, 2300, 4), (3010, 3200, 3300, 5)]
    return {
        "StringIds": strings(*NAMES),
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(start, end, correlationId=at, demangledName=name, shortName=2)
                                       for at, (_, start, end, name) in enumerate(launched, 1)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(at, at + 5, correlationId=number) for number, (at, *_) in enumerate(launched, 1)]}


def made(path: Path, *, blobs: bool, tables: bool, **others: list[Row]) -> Path:
    rows = {"NVTX_EVENTS": events(blobs), **described(), **(decoded() if tables else {}), **others}
    return documented(path, rows, **work())


def carried(found: dict[str, list[Row]]) -> list[dict[str, Any]]:
    columns = ("communicator", "message_bytes", "group_size", "group_rank", "root_rank", "peer_rank", "reduction")
    return [{name: row[name] for name in columns if name in row} for row in found["ranges"] if row["name"] != "NCCL"]


def expected() -> list[dict[str, Any]]:
    """Return what the events carry, by their definition and no reader."""
    world = {"communicator": f"0x{WORLD:x}", "group_size": 4}
    return [world | {"group_rank": 2}, world | {"message_bytes": 1 << 20, "reduction": "sum"}, {},
            world | {"message_bytes": 512, "peer_rank": 1}, world | {"message_bytes": 64, "peer_rank": 1},
            world | {"message_bytes": 256, "peer_rank": 3}, {}, world | {"message_bytes": 4096, "reduction": "average"}]


@pytest.mark.parametrize(("blobs", "tables"), [(True, False), (False, True), (True, True)])
def test_what_ranges_carry_as_bytes_and_decoded(tmp_path: Path, *, blobs: bool, tables: bool) -> None:
    path = made(tmp_path / "report.sqlite", blobs=blobs, tables=tables)
    write_parquetdir(tmp_path / "directory", path)
    for source in (path, tmp_path / "directory"):
        found = read(source)
        assert carried(found) == expected()
        assert not {"payloads_missing", "bad_payload", "unread_tables", "bad_value"} & set(codes(found))


def test_what_the_exporter_decoded_comes_first(tmp_path: Path) -> None:
    path = made(tmp_path / "report.sqlite", blobs=True, tables=True)
    table = f"DYNAMIC_NVTXPAYLOAD_DATATYPE_{global_pid(7)}_{DOMAIN}_{ALL_REDUCE}"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f'UPDATE "{table}" SET "Message_size_bytes" = 77')
    assert carried(read(path))[1]["message_bytes"] == 77


def test_bytes_that_are_written_as_digits(tmp_path: Path) -> None:
    path = made(tmp_path / "report.sqlite", blobs=True, tables=False)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE NVTX_EVENTS SET binaryData = lower(hex(binaryData)) WHERE binaryData IS NOT NULL")
    assert carried(read(path)) == expected()


def test_bytes_that_are_damaged_or_of_others(tmp_path: Path) -> None:
    """Of the all-reduce too short for its field, of the sends without a whole header, and of a schema that nobody described; the
    last schema is described in two ways."""
    path = made(tmp_path / "report.sqlite", blobs=True, tables=False)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE NVTX_EVENTS SET binaryData = substr(binaryData, 1, 50) WHERE text = 'ncclAllReduce'")
        connection.execute("UPDATE NVTX_EVENTS SET binaryData = x'0102' WHERE text = 'ncclSend'")
        connection.execute("UPDATE NVTX_EVENTS SET binaryData = ? WHERE text = 'ncclRecv'", (struct.pack("<5Q", 1, 5, 8, 32, 0),))
        connection.execute(f"UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = 4 WHERE schemaId = {REDUCE_SCATTER} AND idx = 1 "
                           f"AND rowid > {sum(map(len, SCHEMAS.values()))}")
    found = read(path)
    assert carried(found) == [expected()[0], *[{}] * 7]
    assert codes(found)["bad_payload"] == 2


@pytest.mark.parametrize("offset", [-1, 1 << 40, "x"])
def test_a_field_that_cannot_lie_where_its_schema_says(tmp_path: Path, offset: int | str) -> None:
    path = made(tmp_path / "report.sqlite", blobs=True, tables=False)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = ? WHERE schemaId = ? AND idx = 1",
                           (offset, ALL_REDUCE))
    assert carried(read(path)) == [*expected()[:1], {}, *expected()[2:]]


@pytest.mark.usefixtures("cache")
def test_kernels_have_the_messages_of_their_calls(tmp_path: Path) -> None:
    made(tmp_path / "run" / "report.sqlite", blobs=False, tables=True)
    nl.ingest([tmp_path / "run"], store=tmp_path / "store", jobs=1)
    with nl.open(tmp_path / "store") as store:
        kernels = store.sql("SELECT collective, message_bytes, group_name, group_size FROM kernels ORDER BY start_ns").to_pylist()
        assert [tuple(row.values()) for row in kernels] == [
            ("allreduce", 1 << 20, f"0x{WORLD:x}", 4), (None, 512 + 256, f"0x{WORLD:x}", 4),
            ("reducescatter", 4096 * 4, f"0x{WORLD:x}", 4)]
        summed = {row["operation"]: row for row in store.view("collective_summary").to_pylist()}
        reduced, sent = summed["allreduce"], summed["sendrecv"]
        assert (reduced["total_bytes"], sent["total_bytes"]) == (1 << 20, 768)
        assert reduced["bus_bytes_per_s"] == round(2 * 3 / 4 * (1 << 20) / 200e-9)
