"""The nsys reader on real exports, counted independently with plain SQL."""

from __future__ import annotations

import csv
import hashlib
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nsightlens.errors import UnknownFormatError, UsageError
from nsightlens.readers import nsys
from nsightlens.readers.nsys.identity import is_first_kernel
from nsightlens.readers.nsys.source import EVENT_TABLES
from nsightlens.readers.reader import HEAD_BYTES, Probe
from tests.places import NSYS_CAPTURES as DATA
from tests.places import sqlite_captures
from tests.readers.nsys_report import codes, read

CAPTURES = sqlite_captures()
K, R = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"

pytestmark = [pytest.mark.captures, pytest.mark.skipif(not CAPTURES, reason="the real captures are not here")]


def capture(part: str) -> Path:
    return next(path for path in CAPTURES if part in path.name)


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a plain query, or [(0, None)] where the table is absent."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.OperationalError as exc:
            if "no such table" in str(exc):
                return [(0, None)]
            raise


@pytest.mark.parametrize("path", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_counts_and_total_durations(path: Path) -> None:
    found = read(path, jobs=2)

    def total(table: str) -> tuple[int, int]:
        return len(found[table]), sum(row["duration_ns"] for row in found[table] if "duration_ns" in row)

    def expected(*queries: str) -> tuple[int, int]:
        rows = [query(path, sql)[0] for sql in queries]
        return sum(count for count, _ in rows), sum(ns for _, ns in rows if ns is not None)

    summed = 'SELECT count(*), sum("end" - start) FROM '
    classes = "" if "healthy" in path.name else " WHERE eventClass IN (0, 1)"
    assert total("kernels") == expected(summed + K)
    assert total("memory_ops") == expected(summed + "CUPTI_ACTIVITY_KIND_MEMCPY", summed + "CUPTI_ACTIVITY_KIND_MEMSET")
    assert total("api_calls") == expected(summed + R + classes)
    assert total("ranges") == expected(summed + "NVTX_EVENTS WHERE eventType IN (34, 59, 60)")
    others = {"processes", "devices", "profiles", "diagnostics"}
    assert found["profiles"][0]["events"] == sum(len(rows) for table, rows in found.items() if table not in others)
    assert found["profiles"][0]["truncated"] is False
    assert not [row for row in found["diagnostics"] if row["severity"] == "error"]


@pytest.mark.parametrize("path", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_kernel_rows_are_those_of_the_file(path: Path) -> None:
    """Names, launch configurations and the join to the launching call agree with SQL's own joins, process by process."""
    if not query(path, f"SELECT count(*) FROM {K}")[0][0]:
        pytest.skip("no kernels")
    found = read(path)
    names = query(path, f"SELECT s.value, count(*) FROM {K} k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1")
    assert Counter(row["name"] for row in found["kernels"]) == dict(names)
    columns = "start, deviceId, streamId, correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ"
    ours = ("start_ns", "device", "stream", "correlation_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    assert [tuple(row[name] for name in ours) for row in found["kernels"]] == query(
        path, f"SELECT {columns} FROM {K} ORDER BY rowid"
    )
    if "healthy" in path.name:  # a file by hand without globalPid
        return
    launches = {(row["process_index"], row["correlation_id"]): row["name"] for row in found["api_calls"]}
    joined = Counter(launches.get((row["process_index"], row["correlation_id"])) for row in found["kernels"])
    sql = query(
        path,
        f"""
        SELECT s.value, count(*) FROM {K} k LEFT JOIN {R} r ON r.correlationId = k.correlationId AND r.eventClass IN (0, 1)
        AND (r.globalTid & -16777216) = k.globalPid LEFT JOIN StringIds s ON s.id = r.nameId GROUP BY 1""",
    )
    assert joined == {re.sub(r"_v\d+$", "", name) if name else None: count for name, count in sql}


def test_two_workers_are_two_processes_with_correlations_of_their_own() -> None:
    path = capture("mfu_2gpu_after")
    found = read(path)
    assert [row["pid"] for row in found["processes"]] == [149, 148]
    assert {row["name"] for row in found["processes"]} == {"python3"}
    assert not any("rank" in row for row in found["processes"])
    per_process = dict(query(path, f"SELECT (globalPid >> 24) & 0xFFFFFF, count(*) FROM {K} GROUP BY 1"))
    pids = [row["pid"] for row in found["processes"]]
    assert Counter(pids[row["process_index"]] for row in found["kernels"]) == per_process
    calls = Counter(row["correlation_id"] for row in found["api_calls"])
    assert sum(calls[row["correlation_id"]] for row in found["kernels"]) > len(found["kernels"])  # without the process: too many


def test_nccl_ranges_of_a_slice_that_lost_the_domain_name() -> None:
    found = read(capture("mfu_2gpu_before"))
    expected = query(capture("mfu_2gpu_before"), "SELECT count(*) FROM NVTX_EVENTS WHERE domainId = 1")[0][0]
    assert sum(row.get("domain") == "NCCL" for row in found["ranges"]) == expected == codes(found)["inferred_domain"]
    assert all(bool(re.match("nccl[A-Z]", row["name"])) == ("domain" in row) for row in found["ranges"])


def test_registered_domain_and_its_text_ids() -> None:
    path = capture("power_iteration")
    found = read(path)
    sql = """SELECT s.value, count(*) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId
             WHERE domainId = 1 AND eventType = 59 GROUP BY 1"""
    assert Counter(row["name"] for row in found["ranges"] if row.get("domain") == "CCCL") == dict(query(path, sql))
    assert codes(found)["tool_message"] == 1


def test_migrations_lie_outside_streams() -> None:
    path = capture("ICON-C__gpu")
    found = read(path)
    migrations = [row for row in found["memory_ops"] if row["kind"] == "migration"]
    by_way = Counter((row["direction"], row["name"]) for row in migrations)
    counts = dict(query(path, "SELECT copyKind, count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY 1"))
    assert by_way == {
        ("HtoD", "[CUDA memcpy Unified Host-to-Device]"): counts[11],
        ("DtoH", "[CUDA memcpy Unified Device-to-Host]"): counts[12],
    }
    assert not any({"stream", "context", "correlation_id"} & set(row) for row in migrations)
    assert (
        sum(row["bytes"] for row in migrations)
        == query(path, "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind > 10")[0][0]
    )
    ordinary = [row for row in found["memory_ops"] if row["kind"] == "memcpy"]
    assert [(row["stream"], row["source_memory"], row["destination_memory"]) for row in ordinary] == [(7, "device", "pageable")]


def test_rank_and_device_of_an_mpi_rank() -> None:
    (process,) = read(capture("saxpy"))["processes"]
    assert (process["rank"], process["rank_source"], process["local_rank"], process["world_size"]) == (
        0,
        "content:thread name",
        0,
        2,
    )
    found = read(capture("cloverleaf"))
    (process,) = found["processes"]
    assert (process["rank"], process["rank_source"], process["world_size"]) == (0, "content:PMI_RANK", 1)
    assert process["host"] == "nid008553"
    assert found["profiles"][0]["capture_version"] == "2022.2.1"
    (device,) = found["devices"]  # CUDA device 0 is nsys's GPU 3 there
    assert device["uuid"] == "b17c6502-716a-c2c7-0f65-854136d5f79f"
    assert device["pci"] == "0000:03:00.0"
    assert "device_assumed" in codes(found)


def test_backtraces_repeat_calls() -> None:
    found = read(capture("saxpy"))
    assert codes(found)["duplicate_calls"] == 38
    assert Counter(row["name"] for row in found["api_calls"])["cudaLaunchKernel"] == 5
    assert Counter(row["api"] for row in found["api_calls"]) == {"runtime": 56, "driver": 1}


@pytest.mark.parametrize(("name", "code", "said"), [
    ("rank_", "no_launches", ["421 CUDA calls", "none was launched", "Number of CUDA events collected: 421"]),
    ("tutorial_vqe", "no_launches", ["11 CUDA calls", "ended or failed before"]),
    ("qcu__test_report1", "no_kernels", ["none of 2,085 successful launches was recorded", "WSL"]),
    ("ICON-C__cpu", "no_cuda", ["only 4 NVTX ranges, which were read", "CUDA profiling might have not been started correctly."]),
    ("JACC", "no_cuda", ["CUDA profiling might have not been started correctly.", "No CUDA events collected."]),
    ("poolformer", "no_cuda", ["only 21,996 NVTX ranges, which were read (the view nvtx_summary)"]),
])
def test_a_report_without_kernels_says_why(name: str, code: str, said: list[str]) -> None:
    found = read(capture(name))
    (row,) = [row for row in found["diagnostics"] if row["code"] in ("no_cuda", "no_launches", "no_kernels")]
    assert (row["code"], row["severity"]) == (code, "warning")
    assert [text for text in said if text not in row["message"]] == []


def test_the_2021_export_has_no_epoch_and_no_version() -> None:
    (profile,) = read(capture("2021-12"))["profiles"]
    assert profile["format"] == "nsys sqlite"
    assert "tool_version" not in profile
    assert "origin_epoch_ns" not in profile


def test_times_and_streams_agree_with_another_reader() -> None:
    """pipit's event table of the same capture, made by other people's code, lists starts and ends per stream."""
    with (DATA / "hpcgroup__pipit__cloverleaf_gpu_trace.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["type"] == "kernel" and row["Event Type"] == "Enter"]
    theirs = sorted(
        (int(float(row["Timestamp (ns)"])), int(float(row["_matching_timestamp"])), int(row["streamId"])) for row in rows
    )
    kernels = read(capture("cloverleaf"))["kernels"]
    ours = sorted((row["start_ns"], row["start_ns"] + row["duration_ns"], row["stream"]) for row in kernels)
    assert len(theirs) == 1312
    assert ours == theirs


@pytest.mark.parametrize("path", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_probe_agrees_with_what_is_read(path: Path) -> None:
    head = path.open("rb").read(HEAD_BYTES)
    assert nsys.sniff(path, head)
    probe, found = nsys.probe(path), read(path)
    assert probe.kind == "nsys sqlite"
    (profile,) = found["profiles"]
    assert probe.tool_version == profile.get("tool_version")
    by_pid = {row.get("pid"): row for row in found["processes"]}
    for hint in probe.processes:
        assert hint.rank == by_pid[hint.pid].get("rank")
    starts = [query(path, f"SELECT count(*), min(start) FROM {table}")[0] for table in EVENT_TABLES]
    assert bool(_sessions(probe)) == ("origin_epoch_ns" in profile and any(count for count, _ in starts))
    if probe.first_epoch_ns is not None:
        shown = probe.first_epoch_ns - profile["origin_epoch_ns"]
        overhead = query(path, "SELECT count(*), min(start) FROM PROFILER_OVERHEAD")
        firsts = [first for _, first in starts if first is not None] or [first for _, first in overhead]
        assert abs(shown - min(firsts)) < 2 * 10**9


def _sessions(probe: Probe) -> frozenset[str]:
    """Return the names of a report without that of its first kernel, which ties only printed tables to it."""
    return frozenset(name for name in probe.identity if not is_first_kernel(name))


def test_identities_differ() -> None:
    identities = [found for found in map(_sessions, map(nsys.probe, CAPTURES)) if found]
    sessions = [path for path in CAPTURES if query(path, "SELECT count(*), NULL FROM TARGET_INFO_SESSION_START_TIME")[0][0]
                and any(query(path, f"SELECT count(*), NULL FROM {table}")[0][0] for table in EVENT_TABLES)]
    assert len(identities) == len(set(identities)) == len(sessions)


def test_nothing_beside_or_in_the_file_changes() -> None:
    def state() -> dict[str, tuple[int, str]]:
        return {
            path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in DATA.glob("*.sqlite*")
        }

    before = state()
    for path in CAPTURES:
        nsys.probe(path)
        read(path, jobs=2)
    assert state() == before


def test_one_report_at_a_time() -> None:
    with pytest.raises(UsageError):
        list(nsys.read(CAPTURES[:2]))


def test_not_every_sqlite_file_is_a_report(tmp_path: Path) -> None:
    for statement, code in (
        ("CREATE TABLE albums (id INTEGER)", "foreign_database"),
        ("CREATE TABLE dl (id INTEGER); CREATE VIEW view_op_nodes AS SELECT * FROM dl", "dlprof_database"),
        (
            "CREATE TABLE StringTable (_id_ INTEGER, value TEXT); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (_id_ INTEGER)",
            "nvprof_database",
        ),
        ("CREATE TABLE rocpd_kernel (id INTEGER)", "rocprof_database"),
        ("CREATE TABLE gone (id INTEGER); DROP TABLE gone", "empty_database"),
    ):
        path = tmp_path / f"{code}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(statement)
        assert nsys.sniff(path, path.read_bytes())
        with pytest.raises(UnknownFormatError) as caught:
            nsys.probe(path)
        assert caught.value.code == code
        assert caught.value.what_to_do
        with pytest.raises(UnknownFormatError):
            list(nsys.read([path]))
