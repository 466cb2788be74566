"""Page faults, MPI and GPU metrics of small nsys reports.

No public capture holds rows of these tables: the rows here have the columns that the exports of 2022 to 2026 are documented with.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.pipeline.ingest import ingest
from nsightlens.readers import nsys
from tests.places import sqlite_captures
from tests.readers.nsys_report import Row, base, codes, global_pid, kernel, report, strings, write

NAMES = ("void gemm<float>(float*)", "gemm", "cudaLaunchKernel_v7000", "_Z4gemmIfEvPT_", "MPI_Send", "MPI_Allreduce",
         "MPI_Waitall", "MPI_Init", "fill(float*)", "/opt/app", "fill.c")
METRICS = 0x1_0001_0000_0000
"""What the exporter adds to the number of a GPU to name its type of metrics."""


def migration(kind: int, cause: int | None, **others: Any) -> Row:
    row: Row = {
        "start": 2000, "end": 2400, "deviceId": 0, "contextId": 0, "streamId": 0, "correlationId": 0, "globalPid": global_pid(7),
        "bytes": 4096, "copyKind": kind, "srcKind": 7, "dstKind": 7, "migrationCause": cause, "virtualAddress": 0x7F00_0000,
    }
    return row | others


def test_causes_and_addresses_of_migrations(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_MEMCPY=[
        migration(11, 2), migration(12, 4), migration(11, 9, virtualAddress=-8), migration(1, 0, streamId=7)])["memory_ops"]
    assert [(row["kind"], row.get("migration_cause"), row.get("address")) for row in found] == [
        ("migration", "page_fault", 0x7F00_0000), ("migration", "eviction", 0x7F00_0000), ("migration", "cause 9", -8),
        ("memcpy", None, None)]


def test_copies_alone_have_neither(tmp_path: Path) -> None:
    (found,) = report(tmp_path, CUPTI_ACTIVITY_KIND_MEMCPY=[migration(1, None)])["memory_ops"]
    assert not {"migration_cause", "address"} & set(found)


def test_page_faults(tmp_path: Path) -> None:
    cpu = {"start": 1200, "globalPid": global_pid(7), "address": 4096, "originalFaultPc": 1, "CpuInstruction": 9, "module": 10,
           "unresolvedFaultPc": 0}
    gpu = {"start": 1300, "end": 1350, "globalPid": global_pid(7), "deviceId": 0, "address": 8192, "numberOfPageFaults": 5,
           "faultAccessType": 2}
    found = report(tmp_path, StringIds=strings(*NAMES), CUDA_UM_CPU_PAGE_FAULT_EVENTS=[cpu, cpu | {"CpuInstruction": 1000}],
                   CUDA_UM_GPU_PAGE_FAULT_EVENTS=[gpu, gpu | {"faultAccessType": 7}])["page_faults"]
    own = {"process_index": 0, "start_ns": 1200, "kind": "cpu", "address": 4096, "faults": 1, "module": "/opt/app"}
    on_gpu = {"process_index": 0, "device": 0, "start_ns": 1300, "duration_ns": 50, "kind": "gpu", "address": 8192, "faults": 5}
    assert found == [own | {"function": "fill(float*)"}, own, on_gpu | {"access": "write"}, on_gpu | {"access": "type 7"}]


def test_page_faults_of_2026_have_a_source_line(tmp_path: Path) -> None:
    (found,) = report(tmp_path, StringIds=strings(*NAMES), CUDA_UM_CPU_PAGE_FAULT_EVENTS=[
        {"start": 1200, "globalPid": global_pid(7), "address": 4096, "CpuInstruction": 9, "module": 10, "sourceFile": 11,
         "sourceLine": 42}])["page_faults"]
    assert (found["source_file"], found["source_line"]) == ("fill.c", 42)


def test_mpi_calls(tmp_path: Path) -> None:
    own = {"start": 1000, "end": 1700, "globalTid": global_pid(7) + 70}
    found = report(
        tmp_path, StringIds=strings(*NAMES),
        MPI_P2P_EVENTS=[own | {"textId": 5, "commHandle": 3, "tag": 9, "remoteRank": 1, "size": 80, "requestHandle": None}],
        MPI_COLLECTIVES_EVENTS=[own | {"textId": 6, "commHandle": 3, "commUid": 77, "rootRank": None, "size": 16, "recvSize": 32,
                                       "requestHandle": 5}],
        MPI_START_WAIT_EVENTS=[own | {"textId": 7, "requestHandle": request} for request in (5, 6)],
        MPI_OTHER_EVENTS=[own | {"end": None, "textId": 8}])["mpi_calls"]
    row = {"process_index": 0, "thread": 70, "start_ns": 1000, "duration_ns": 700}
    assert found == [
        row | {"name": "MPI_Send", "kind": "p2p", "peer_rank": 1, "tag": 9, "bytes": 80, "communicator": 3},
        row | {"name": "MPI_Allreduce", "kind": "collective", "bytes": 16, "receive_bytes": 32, "communicator": 3,
               "communicator_uid": 77, "request": 5},
        row | {"name": "MPI_Waitall", "kind": "start_wait", "request": 5},
        row | {"name": "MPI_Waitall", "kind": "start_wait", "request": 6},
        {"process_index": 0, "thread": 70, "start_ns": 1000, "name": "MPI_Init", "kind": "other"},
    ]


def gpus(*ordinals: int | None) -> list[Row]:
    """TARGET_INFO_GPU: GPUs 0, 1, ... with these CUDA ordinals."""
    return [{"id": id_, "cuDevice": ordinal, "name": "NVIDIA H100", "uuid": f"GPU-{id_ + 1}", "smCount": 132}
            for id_, ordinal in enumerate(ordinals)]


def named(gpu: int, *names: str) -> list[Row]:
    return [{"typeId": METRICS + gpu, "sourceId": 1, "typeName": "GPU Metrics", "metricId": id_, "metricName": name}
            for id_, name in enumerate(names)]


def sample(at: int, value: int, gpu: int = 0, metric: int = 0) -> Row:
    return {"timestamp": at, "typeId": METRICS + gpu, "metricId": metric, "value": value}


def test_samples_and_their_units(tmp_path: Path) -> None:
    """A clock [MHz] is stored in Hz by the exporters seen, and is Hz here whichever it is."""
    names = ("GPC Clock Frequency [MHz]", "SMs Active [Throughput %]", "Compute Warps in Flight [Avg]", "Odd")
    found = report(tmp_path, TARGET_INFO_GPU=gpus(0), TARGET_INFO_GPU_METRICS=named(0, *names), GPU_METRICS=[
        sample(1100, 1_980_000_000), sample(1200, 1980), sample(1100, 75, metric=1), sample(1100, 9, metric=2),
        sample(-50, 4, metric=3), sample(0, 5, metric=8)])
    row = {"process_index": 0, "device": 0}
    assert found["device_samples"] == [
        row | {"at_ns": 1100, "metric": "GPC Clock Frequency", "value": 1.98e9, "unit": "hz"},
        row | {"at_ns": 1200, "metric": "GPC Clock Frequency", "value": 1.98e9, "unit": "hz"},
        row | {"at_ns": 1100, "metric": "SMs Active", "value": 75.0, "unit": "%"},
        row | {"at_ns": 1100, "metric": "Compute Warps in Flight", "value": 9.0, "unit": "Avg"},
        row | {"at_ns": -50, "metric": "Odd", "value": 4.0},
        row | {"at_ns": 0, "metric": "metric 8", "value": 5.0},
    ]
    assert codes(found)["unnamed_metric"] == 1


def test_samples_are_of_the_gpu_of_the_kernels(tmp_path: Path) -> None:
    """GPU 1 is ordinal 0 of process 7, GPU 0 that of process 8. No process used GPU 2, nor GPU 3: 3 is the ordinal of GPU 2."""
    found = report(
        tmp_path, TARGET_INFO_GPU=gpus(1, 0, 3, None),
        TARGET_INFO_GPU_METRICS=[row for gpu in range(4) for row in named(gpu, "SMs")],
        TARGET_INFO_CUDA_DEVICE=[{"gpuId": 1, "cudaId": 0, "pid": 7}, {"gpuId": 0, "cudaId": 0, "pid": 8}],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1000, 1500), kernel(1000, 1500, pid=8)],
        GPU_METRICS=[sample(1100, 10 + gpu, gpu) for gpu in range(4)])
    assert [(row["value"], row["process_index"], row.get("device")) for row in found["device_samples"]] == [
        (10.0, 1, 0), (11.0, 0, 0), (12.0, 0, 3), (13.0, 0, None)]
    assert [(row["process_index"], row["device"], row["uuid"]) for row in found["devices"]] == [
        (0, 0, "2"), (1, 0, "1"), (0, 3, "3")]
    assert codes(found)["unplaced_sample"] == 1


def test_a_report_of_nothing_but_samples(tmp_path: Path) -> None:
    tables = {name: rows for name, rows in base().items() if not name.startswith("CUPTI_")}
    names = named(0, "SMs Active [Throughput %]")
    found = report(tmp_path, tables | {
        "TARGET_INFO_GPU": gpus(0), "TARGET_INFO_GPU_METRICS": names, "GPU_METRICS": [sample(5, 50)]})
    assert found["device_samples"] == [
        {"process_index": 0, "device": 0, "at_ns": 5, "metric": "SMs Active", "value": 50.0, "unit": "%"}]


def test_they_are_stored(tmp_path: Path) -> None:
    write(tmp_path / "run" / "report.sqlite", base(
        StringIds=strings(*NAMES), TARGET_INFO_GPU=gpus(0), TARGET_INFO_GPU_METRICS=named(0, "SMs Active [Throughput %]"),
        GPU_METRICS=[sample(1100, 40), sample(1200, 60)], CUPTI_ACTIVITY_KIND_MEMCPY=[migration(11, 2)],
        MPI_OTHER_EVENTS=[{"start": 1, "end": 5, "globalTid": global_pid(7) + 70, "textId": 8}],
        CUDA_UM_CPU_PAGE_FAULT_EVENTS=[{"start": 1200, "globalPid": global_pid(7), "address": 4096, "CpuInstruction": 9,
                                        "module": 10}]))
    ingest([tmp_path / "run"], tmp_path / "store", jobs=1)
    with nl.open(tmp_path / "store") as store:
        def rows(query: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = store.sql(query).to_pylist()
            return found

        assert rows("SELECT k.device_id = s.device_id AS same, s.gpu, at_ns, value FROM device_samples AS s, kernels AS k "
                    "ORDER BY at_ns") == [
            {"same": True, "gpu": "NVIDIA H100", "at_ns": 1100, "value": 40.0},
            {"same": True, "gpu": "NVIDIA H100", "at_ns": 1200, "value": 60.0}]
        assert rows("SELECT name, duration_ns FROM mpi_calls") == [{"name": "MPI_Init", "duration_ns": 4}]
        assert rows("SELECT kind, function FROM page_faults") == [{"kind": "cpu", "function": "fill(float*)"}]
        assert rows("SELECT migration_cause, address FROM memory_ops") == [
            {"migration_cause": "page_fault", "address": 0x7F00_0000}]


TABLES = {"CUDA_UM_CPU_PAGE_FAULT_EVENTS": "page_faults", "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "page_faults",
          "GPU_METRICS": "device_samples", "MPI_P2P_EVENTS": "mpi_calls", "MPI_COLLECTIVES_EVENTS": "mpi_calls",
          "MPI_START_WAIT_EVENTS": "mpi_calls", "MPI_OTHER_EVENTS": "mpi_calls"}
CAUSES = {1: "prefetch", 2: "page_fault", 3: "speculative_prefetch", 4: "eviction", 5: "access_counters", 0: "unknown"}


@pytest.mark.captures
@pytest.mark.parametrize("path", sqlite_captures(), ids=[path.stem for path in sqlite_captures()])
def test_every_row_of_every_capture_is_read(path: Path) -> None:
    expected: Counter[str] = Counter()
    causes: Counter[tuple[str, int | None]] = Counter()
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        held = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name in held & set(TABLES):
            expected[TABLES[name]] += database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        memcpy = "CUPTI_ACTIVITY_KIND_MEMCPY"
        columns = {row[1] for row in database.execute(f"PRAGMA table_info({memcpy})")}
        if {"migrationCause", "virtualAddress"} <= columns:
            causes.update({(CAUSES[cause], address): count for cause, address, count in database.execute(
                f"SELECT migrationCause, virtualAddress, count(*) FROM {memcpy} WHERE copyKind IN (11, 12, 13) GROUP BY 1, 2")})
    rows: Counter[str] = Counter()
    found: Counter[tuple[str, int | None]] = Counter()
    for table, batch in nsys.read([path]):
        rows[table] += batch.num_rows
        if table == "memory_ops":
            found.update((row["migration_cause"], row["address"]) for row in batch.to_pylist() if row.get("migration_cause"))
    assert {table: rows[table] for table in set(TABLES.values())} == {table: expected[table] for table in set(TABLES.values())}
    assert found == causes
