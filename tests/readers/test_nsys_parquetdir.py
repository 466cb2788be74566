"""A parquetdir export gives the rows of the SQLite export of the same report."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsightlens.errors import ReadError, UnknownFormatError
from nsightlens.readers import nsys
from tests.places import sqlite_captures
from tests.readers.nsys_report import (
    SESSION,
    Row,
    base,
    call,
    codes,
    global_pid,
    kernel,
    read,
    span,
    strings,
    write,
    write_parquetdir,
)

CAPTURES = sqlite_captures()
EVENTS = ("kernels", "memory_ops", "graph_executions", "api_calls", "ranges", "processes", "devices")


def told(found: dict[str, list[Row]]) -> list[tuple[object, ...]]:
    return [(row["code"], row["count"], row["message"]) for row in found["diagnostics"]]


@pytest.mark.captures
@pytest.mark.skipif(not CAPTURES, reason="the real captures are not here")
@pytest.mark.parametrize("path", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_the_same_rows_as_sqlite(path: Path, tmp_path: Path) -> None:
    directory = write_parquetdir(tmp_path / "report_pqtdir", path, unsigned=("globalPid", "globalTid", "correlationId"))
    assert nsys.sniff(directory, b"")
    ours, theirs = read(directory, jobs=2), read(path)
    for table in EVENTS:
        assert ours[table] == theirs[table], table
    assert told(ours) == told(theirs)
    profile, expected = ours["profiles"][0], theirs["profiles"][0]
    assert profile.pop("format") == "nsys parquetdir"
    assert expected.pop("format").startswith("nsys sqlite")
    assert profile == expected
    probe, expected_probe = nsys.probe(directory), nsys.probe(path)
    assert (probe.kind, expected_probe.kind) == ("nsys parquetdir", "nsys sqlite")
    assert (probe.identity, probe.processes, probe.tool_version, probe.first_epoch_ns) == (
        expected_probe.identity,
        expected_probe.processes,
        expected_probe.tool_version,
        expected_probe.first_epoch_ns,
    )


def report(tmp_path: Path) -> Path:
    sqlite = write(
        tmp_path / "report.sqlite",
        base(
            StringIds=strings("gemm()", "gemm", "cudaLaunchKernel_v7000", "registered"),
            CUPTI_ACTIVITY_KIND_KERNEL=[
                kernel(at, at + 1, globalPid=global_pid(7, hardware=200), correlationId=at) for at in range(300)
            ],
            CUPTI_ACTIVITY_KIND_RUNTIME=[call(at, at + 1, correlationId=at) for at in range(300)],
            NVTX_EVENTS=[span(1, 2, text="text"), span(3, 4, textId=4)],
        ),
    )
    return write_parquetdir(tmp_path / "pqtdir", sqlite, unsigned=("globalTid",), group_rows=100)


def test_arrow_types_of_other_exporters(tmp_path: Path) -> None:
    directory = report(tmp_path)
    path = directory / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    table = pq.read_table(path)
    as_types = {"start": pa.timestamp("ns"), "end": pa.timestamp("ns"), "gridX": pa.uint16(), "deviceId": pa.int8()}
    for name, type_ in as_types.items():
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(type_))
    pq.write_table(table.append_column("name", pa.array(["mine"] * len(table))), path)
    texts = directory / "StringIds.parquet"
    table = pq.read_table(texts)
    pq.write_table(table.set_column(1, "value", table["value"].dictionary_encode()), texts)
    found = read(directory)
    assert [row["start_ns"] for row in found["kernels"]] == list(range(300))
    assert {(row["name"], row["grid_x"], row["device"], row["duration_ns"]) for row in found["kernels"]} == {("gemm()", 4, 0, 1)}
    assert [row["name"] for row in found["ranges"]] == ["text", "registered"]
    assert found["processes"][0]["pid"] == 7
    assert found["profiles"][0]["origin_epoch_ns"] == SESSION


def test_a_column_of_the_wrong_kind(tmp_path: Path) -> None:
    directory = report(tmp_path)
    path = directory / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.get_field_index("gridX"), "gridX", pa.array(["four"] * len(table))), path)
    found = read(directory)
    assert not any("grid_x" in row for row in found["kernels"])
    assert codes(found)["bad_value"] == 300


def test_a_damaged_row_group_costs_itself(tmp_path: Path) -> None:
    directory = report(tmp_path)
    path = directory / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    chunk = pq.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset : chunk.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(data)
    found = read(directory)
    assert {row["start_ns"] for row in found["kernels"]} <= {*range(100), *range(200, 300)}
    assert len(found["kernels"]) == 200
    assert len(found["api_calls"]) == 300
    assert codes(found)["damaged"] >= 1


def test_a_damaged_file_costs_its_table(tmp_path: Path) -> None:
    directory = report(tmp_path)
    (directory / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").write_bytes(b"PAR1 and no more")
    found = read(directory)
    assert not found["kernels"]
    assert len(found["api_calls"]) == 300
    assert codes(found)["damaged"] >= 1


def test_only_damaged_files(tmp_path: Path) -> None:
    directory = report(tmp_path)
    for path in directory.iterdir():
        path.write_bytes(b"")
    with pytest.raises(ReadError) as caught:
        list(nsys.read([directory]))
    assert caught.value.code == "damaged"


def test_other_directories(tmp_path: Path) -> None:
    assert not nsys.sniff(tmp_path, b"")
    assert not nsys.sniff(tmp_path / "gone", b"")
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    (tmp_path / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").mkdir()
    assert not nsys.sniff(tmp_path, b"")
    with pytest.raises(UnknownFormatError):
        nsys.probe(tmp_path)
