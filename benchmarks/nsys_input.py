"""An nsys SQLite export of any size: two ranks in one report, or one of a job; a launch per kernel, some copies, NVTX ranges."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from benchmarks.names import kernel_names

_PIDS = (4001, 4002)
_APIS = ("cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020")
_UTC_EPOCH_NS = 1_760_000_000_000_000_000
_PERIOD_NS = 12_000

_SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT
  NULL, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER,
  l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, uuid TEXT, cuDevice
  INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT,
  numMultiprocessors INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid
  INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId
  INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName
  INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread
  INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY
  INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
  localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted
  INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER,
  qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy
  INTEGER, maxPotentialClusterSize INTEGER, maxActiveClusters INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId
  INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER
  NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER,
  srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, graphNodeId INTEGER, virtualAddress
  INTEGER, copyCount INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
  color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
  int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText
  TEXT, binaryData TEXT);
"""

# Row number i; `u` and `v` are two well-mixed 16-bit numbers of it; odd rows are the second process's, if two.
# Low names are frequent.
_ROWS = """
WITH RECURSIVE
counted(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM counted WHERE i + 1 < :rows),
mixed AS (SELECT i, i % :processes AS p, i / :processes AS n, (i * 2654435761 % 4294967296) >> 16 AS u,
                 (i * 2246822519 % 4294967296) >> 16 AS v FROM counted),
launched AS (SELECT i, p, n, u, v, (u * u >> 16) * :names >> 16 AS name, :first_ns + n * :period + v % 4000 AS start FROM mixed)
"""

_KERNELS = _ROWS + """
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
SELECT start, start + 900 + name % 97 * 60 + u % 700, p, 1, 0, CASE WHEN v % 8 THEN 7 ELSE 20 END, 1000 + n,
  CASE p WHEN 0 THEN :pid0 ELSE :pid1 END, 10 + name, 10 + :names + name, NULL, 1, 0, 16 + name % 200,
  1 + name * 37 % 4096, 1 + name % 3, 1, 128 << (name % 3), 1, 1, name % 5 * 1024, name % 7 * 4096, 0, 0, 1 + i, 102400, NULL, 0,
  0, 0, 0, NULL, 0, 0, 0, 0, 0, 0
FROM launched
"""

_LAUNCHES = _ROWS + """
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
SELECT start - 9000 - u % 2000, start - 5000 - u % 3000, 0, CASE p WHEN 0 THEN :tid0 ELSE :tid1 END, 1000 + n, 1, 0, NULL
FROM launched
"""

_COPIES = _ROWS + """
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY
SELECT start + 6500, start + 7000 + u % 900, p, 1, 0, 7, 1000 + :kernels + n, CASE p WHEN 0 THEN :pid0 ELSE :pid1 END,
  4096 + u, 1 + v % 2, 0, 1, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1
FROM launched
"""

_COPY_CALLS = _ROWS + """
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
SELECT start + 4000, start + 5500, 0, CASE p WHEN 0 THEN :tid0 ELSE :tid1 END, 1000 + :kernels + n, 2, 0, NULL FROM launched
"""

_RANGES = _ROWS + """
INSERT INTO NVTX_EVENTS
SELECT start, start + :period - 4100, 59, NULL, NULL, NULL, 'step ' || n, CASE p WHEN 0 THEN :tid0 ELSE :tid1 END, NULL, NULL, 0,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM launched
"""


def write(target: Path, kernels: int, names: int, launches: bool = True, rank: int | None = None) -> dict[str, int]:
    """Write an export with so many kernels (and as many RUNTIME rows, if `launches`); return what a reader must find.

    rank: of a job with a host for each, whose exports are of one process each; their names are to say it (rank3.sqlite).
    """
    with contextlib.closing(sqlite3.connect(target)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(_SCHEMA)
        _write_info(connection, names, rank)
        few = max(1, kernels // 100)
        every = {"processes": len(_PIDS) if rank is None else 1, "first_ns": 2_000_000_000 + 1000 * (rank or 0)}
        spread = every | {"rows": few, "period": _PERIOD_NS * 100}
        _insert(connection, _KERNELS, kernels, names, every)
        if launches:
            _insert(connection, _LAUNCHES, kernels, names, every)
        _insert(connection, _COPIES, kernels, names, spread)
        _insert(connection, _COPY_CALLS, kernels, names, spread)
        _insert(connection, _RANGES, kernels, names, spread)
        connection.commit()
        total = connection.execute('SELECT sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()[0]
        calls = connection.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()[0]
    return {"bytes": target.stat().st_size, "kernels": kernels, "kernel_ns": total, "calls": calls, "copies": few}


def _insert(connection: sqlite3.Connection, statement: str, kernels: int, names: int, overrides: dict[str, int]) -> None:
    values = {"rows": kernels, "kernels": kernels, "names": names, "period": _PERIOD_NS}
    for number, pid in enumerate(_PIDS):
        values |= {f"pid{number}": _global_pid(pid), f"tid{number}": _global_pid(pid) | pid}
    values |= overrides
    connection.execute(statement, values)


def _global_pid(pid: int) -> int:
    return (1 << 48) | (pid << 24)


def _write_info(connection: sqlite3.Connection, names: int, rank: int | None) -> None:
    made = kernel_names(names)
    strings = [(1 + i, api) for i, api in enumerate(_APIS)]
    strings += [(10 + i, name) for i, (name, _) in enumerate(made)]
    strings += [(10 + names + i, short) for i, (_, short) in enumerate(made)]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", strings)
    connection.executemany("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"), ("EXPORT_PRODUCT_VERSION", "2025.6.1.190"),
        ("EXPORT_SCHEMA_VERSION", "3.24.7"), ("EXPORT_PARAM_TIME_NORMALIZE", "false"), ("EXPORT_PARAM_TIME_SHIFT", "0")])
    connection.execute("INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node')")
    connection.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, NULL, NULL)", [_UTC_EPOCH_NS])
    connection.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (?, 'TargetInfo', 'Hostname', 1, ?)",
                       [1 << 48, "bench" if rank is None else f"bench{rank}"])
    for device, pid in enumerate(_PIDS if rank is None else _PIDS[:1]):
        uuid = f"{rank or 0:030}0{device + 1}"
        connection.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, ?, 'NVIDIA A100-SXM4-80GB', ?, 1, 41943040, 85899345920, "
                           "2039000000000, 1410000000, 108, ?, ?, 8, 0)", [device, f"0000:0{device + 1}:00.0", uuid, device])
        connection.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, ?, ?, ?, 108)", [device, device, pid, uuid])
        connection.execute("INSERT INTO PROCESSES VALUES (?, ?, 'python3')", [_global_pid(pid), pid])
