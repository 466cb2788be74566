"""More reports of nsys and its expert rules, against plain SQL on the SQLite files of all real captures."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nsightlens.store.store import Store
from tests.places import sqlite_captures
from tests.sql.test_nsys_reports import PID, Capture, approximately, listed, summed

pytestmark = [pytest.mark.captures, pytest.mark.skipif(not sqlite_captures(), reason="the real captures are not here")]
CAPTURES = [path for path in sqlite_captures() if "healthy" not in path.name]
"""All but a file that was made by hand, without processes: plain joins on it say nothing."""
HOLDING = {"osrt_sum": "NTHU-SC__ISC25-ICON-C__gpu", "cuda_memcpy_sync": "wenscarl", "nvtx_startend_sum": "YoonKyonghwan",
           "um_sum": "NTHU-SC__ISC25-ICON-C__gpu", "um_total_sum": "NTHU-SC__ISC25-ICON-C__gpu",
           "migration_summary": "NTHU-SC__ISC25-ICON-C__gpu",
           "gpu_time_util": "bwyogatama__Mordred-Deprecated__report1_2021-12"}
"""The capture that holds rows of a report, where it is not the usual one."""
NONE = (1 << 32) - 1
"""What CUPTI writes for a stream or event where there is none."""
WAITING = {"StreamWaitEvent": "stream_wait_event", "StreamSynchronize": "stream", "EventSynchronize": "event",
           "EventQuery": "event", "DeviceSynchronize": "context", "CtxSynchronize": "context"}
MEMORY = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device_static", 6: "managed_static", 7: None}


@pytest.fixture(scope="module", params=CAPTURES, ids=[path.stem for path in CAPTURES])
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    path: Path = request.param
    return Capture(path, tmp_path_factory.mktemp("rules") / "store")


def columns(capture: Capture, table: str) -> set[str]:
    return {row[1] for row in capture.ask(f"PRAGMA table_info({table})")}


def rows_of(capture: Capture, view: str, *names: str, **parameters: object) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in capture.store.view(view, **parameters).to_pylist()]


def same(found: list[tuple[Any, ...]], expected: list[Any]) -> None:
    def order(row: Any) -> tuple[Any, ...]:
        return tuple((value is None, value if value is not None else 0) for value in row)

    assert sorted(found, key=order) == sorted((tuple(row) for row in expected), key=order)


def without_version(name: str) -> str:
    stem, _, version = name.rpartition("_v")
    return stem if stem and version.isdigit() else name


def calls(capture: Capture) -> list[tuple[Any, ...]]:
    """Return start, end, pid, thread, name, correlation id, process of each API call."""
    if not capture.has("CUPTI_ACTIVITY_KIND_RUNTIME"):
        return []
    where = "WHERE r.eventClass IN (0, 1)" if "eventClass" in columns(capture, "CUPTI_ACTIVITY_KIND_RUNTIME") else ""
    return [(*row[:4], without_version(row[4]), *row[5:]) for row in capture.ask(
        f"SELECT r.start, r.\"end\", r.globalTid >> 24 & 16777215, r.globalTid & 16777215, s.value, r.correlationId, "
        f"r.globalTid & {PID} FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON r.nameId = s.id {where}")]


def test_cuda_api_trace(capture: Capture) -> None:
    expected = [(start, end - start, pid, thread, name, correlation)
                for start, end, pid, thread, name, correlation, _ in calls(capture)]
    names = ("start_ns", "duration_ns", "pid", "thread", "name", "correlation_id")
    same(rows_of(capture, "cuda_api_trace", *names), expected)


def gpu_rows(capture: Capture) -> list[tuple[Any, ...]]:
    """Return category, name, duration, start, device, stream, bytes and correlation id of all work of the GPUs."""
    found = []
    if capture.has("CUPTI_ACTIVITY_KIND_KERNEL"):
        found += capture.ask("SELECT 'kernel', s.value, k.\"end\" - k.start, k.start, k.deviceId, k.streamId, NULL, "
                             "k.correlationId "
                             "FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON k.demangledName = s.id")
    labels = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 10: "Peer-to-Peer", 11: "Unified Host-to-Device",
              12: "Unified Device-to-Host"}
    if capture.has("CUPTI_ACTIVITY_KIND_MEMCPY"):
        found += [("memory", f"[CUDA memcpy {labels[kind]}]", duration, start, device, None if kind > 10 else stream, size,
                   None if kind > 10 else correlation)
                  for kind, duration, start, device, stream, size, correlation in capture.ask(
            "SELECT copyKind, \"end\" - start, start, deviceId, streamId, bytes, correlationId "
            "FROM CUPTI_ACTIVITY_KIND_MEMCPY")]
    if capture.has("CUPTI_ACTIVITY_KIND_MEMSET"):
        found += capture.ask("SELECT 'memory', '[CUDA memset]', \"end\" - start, start, deviceId, streamId, bytes, correlationId "
                             "FROM CUPTI_ACTIVITY_KIND_MEMSET")
    return found


def test_cuda_gpu_trace(capture: Capture) -> None:
    expected = [(name, start, duration, device, stream, size, correlation)
                for _, name, duration, start, device, stream, size, correlation in gpu_rows(capture)]
    names = ("name", "start_ns", "duration_ns", "device", "stream", "bytes", "correlation_id")
    same(rows_of(capture, "cuda_gpu_trace", *names), expected)


@pytest.mark.parametrize("report", ["cuda_gpu_sum", "cuda_api_gpu_sum"])
def test_cuda_gpu_sum_and_cuda_api_gpu_sum(capture: Capture, report: str) -> None:
    durations = defaultdict(list)
    for category, name, duration, *_ in gpu_rows(capture):
        durations[category, name].append(duration)
    if report == "cuda_api_gpu_sum":
        for start, end, _, _, name, *_ in calls(capture):
            durations["call", name].append(end - start)
    approximately(listed(capture, report, ["category", "name"], "ns", "instances"),
                  {key: summed(values) for key, values in durations.items()})
    total = sum(map(sum, durations.values()))
    shares = {row["name"]: row["time_pct"] for row in capture.store.view(report, only_category="kernel").to_pylist()}
    for (category, name), values in durations.items():
        if category == "kernel" and total:
            assert shares[name] == pytest.approx(100 * sum(values) / total, abs=0.051)


def test_cuda_gpu_mem_time_sum(capture: Capture) -> None:
    expected: Counter[str] = Counter()
    for category, name, duration, *_ in gpu_rows(capture):
        if category == "memory":
            expected[name] += duration
    found: Counter[str] = Counter()
    ways = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device", "PtoP": "Peer-to-Peer"}
    for row in capture.store.view("cuda_gpu_mem_time_sum").to_pylist():
        unified = "Unified " if row["kind"] == "migration" else ""
        label = "[CUDA memset]" if row["kind"] == "memset" else f"[CUDA memcpy {unified}{ways[row['direction']]}]"
        found[label] += row["total_ns"]
    assert found == expected


@pytest.mark.parametrize("report", ["cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum"])
def test_cuda_gpu_kern_sum(capture: Capture, report: str) -> None:
    key = ["name"] if report == "cuda_gpu_kern_sum" else [
        "name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
    if not capture.has("CUPTI_ACTIVITY_KIND_KERNEL"):
        pytest.skip("no kernels were recorded")
    grid = "" if len(key) == 1 or not {"gridX", "blockZ"} <= columns(capture, "CUPTI_ACTIVITY_KIND_KERNEL") else (
        ", gridX, gridY, gridZ, blockX, blockY, blockZ")
    expected = {tuple(row[:-2]): row[-2:] for row in capture.ask(
        f"SELECT s.value{grid}, count(*), sum(k.\"end\" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k "
        f"JOIN StringIds AS s ON k.demangledName = s.id GROUP BY s.value{grid}")}
    found: dict[tuple[Any, ...], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in capture.store.view(report).to_pylist():
        one = tuple(row[name] for name in (key if grid or len(key) == 1 else ["name"]))
        found[one] = found[one][0] + row["instances"], found[one][1] + row["total_ns"]
    assert dict(found) == expected


@pytest.mark.parametrize(("report", "types"), [("nvtx_pushpop_sum", (59, 70)), ("nvtx_startend_sum", (60, 71))])
def test_nvtx_sums_by_style(capture: Capture, report: str, types: tuple[int, int]) -> None:
    durations = defaultdict(list)
    if capture.has("NVTX_EVENTS"):
        for text, duration in capture.ask(
                "SELECT coalesce(n.text, s.value), n.\"end\" - n.start FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s "
                f"ON n.textId = s.id WHERE n.eventType IN {types} AND n.\"end\" IS NOT NULL"):
            durations[text.partition(", op_id = ")[0].partition(", seq = ")[0]].append(duration)
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in capture.store.view(report).to_pylist():
        if row["total_ns"] is not None:
            found[row["name"]][0] += row["total_ns"]
            found[row["name"]][1] += row["instances"]
    closed = {name: [sum(values), len(values)] for name, values in durations.items()}
    assert {name: total for name, (total, _) in found.items()} == {name: total for name, (total, _) in closed.items()}


def push_pops(capture: Capture) -> list[tuple[Any, ...]]:
    if not capture.has("NVTX_EVENTS"):
        return []
    return capture.ask("SELECT globalTid, start, \"end\" FROM NVTX_EVENTS WHERE eventType IN (59, 70) AND \"end\" IS NOT NULL "
                       "ORDER BY globalTid, start, \"end\" DESC")


def test_nvtx_pushpop_trace(capture: Capture) -> None:
    """A stack per thread, as push and pop make one."""
    expected = []
    stack: list[list[Any]] = []
    spans: list[list[Any]] = []
    for thread, start, end in push_pops(capture):
        while stack and (stack[-1][0] != thread or stack[-1][2] < end):
            stack.pop()
        span = [thread, start, end, len(stack), 0, 0]
        if stack:
            stack[-1][4] += 1
            stack[-1][5] += end - start
        spans.append(span)
        stack.append(span)
    expected = [(start, end - start, thread >> 24 & 16777215, thread & 16777215, level, children, within)
                for thread, start, end, level, children, within in spans]
    names = ("start_ns", "duration_ns", "pid", "thread", "level", "children", "children_ns")
    same(rows_of(capture, "nvtx_pushpop_trace", *names), expected)


def test_nvtx_kern_sum(capture: Capture) -> None:
    if not capture.has("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
        pytest.skip("no ranges, kernels or calls were recorded")
    capture.ask("CREATE TEMP TABLE IF NOT EXISTS pairs AS SELECT DISTINCT k.rowid AS kernel, r.globalTid AS tid, r.start, "
                "r.\"end\" AS stop, k.\"end\" - k.start AS duration, k.demangledName AS name "
                "FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r "
                f"ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid & {PID} AND r.eventClass IN (0, 1)")
    capture.ask("CREATE INDEX IF NOT EXISTS temp.pairs_by_start ON pairs (tid, start)")
    totals: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for thread, text, name, count, total in capture.ask("""
            SELECT n.globalTid & 16777215, coalesce(n.text, s.value), kn.value, count(DISTINCT p.kernel), sum(p.duration)
            FROM NVTX_EVENTS AS n
            CROSS JOIN pairs AS p ON p.tid = n.globalTid AND p.start BETWEEN n.start AND n."end" AND p.stop <= n."end"
            LEFT JOIN StringIds AS s ON n.textId = s.id
            JOIN StringIds AS kn ON kn.id = p.name
            WHERE n.eventType IN (59, 60, 70, 71) AND n."end" IS NOT NULL AND n.endGlobalTid IS NULL
            GROUP BY n.rowid, p.name"""):
        one = totals[thread, text.partition(", op_id = ")[0].partition(", seq = ")[0], name]
        one[0] += count
        one[1] += total
    found: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in capture.store.view("nvtx_kern_sum").to_pylist():
        if row["name"] is not None:
            one = found[row["thread"], row["name"], row["kernel"]]
            one[0] += row["instances"]
            one[1] += row["total_ns"]
    assert dict(found) == dict(totals)


def ranges_by_text(capture: Capture) -> dict[Any, list[tuple[int, int]]]:
    """Return start and duration of the push/pop ranges of each process, domain and text, by start."""
    text = "coalesce(n.text, s.value)" if "textId" in columns(capture, "NVTX_EVENTS") else "n.text"
    join = "LEFT JOIN StringIds AS s ON n.textId = s.id" if "textId" in columns(capture, "NVTX_EVENTS") else ""
    found: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for *key, start, end in capture.ask(
            f"SELECT n.globalTid & {PID}, n.domainId, {text}, n.start, n.\"end\" FROM NVTX_EVENTS AS n {join} "
            "WHERE n.eventType IN (59, 70) AND n.\"end\" IS NOT NULL ORDER BY n.start, n.rowid"):
        found[tuple(key)].append((start, end - start))
    return found


def test_nvtx_pace(capture: Capture) -> None:
    """Of texts that are a name and nothing else: what differs in PyTorch's or DLProf's numbers only is one name here."""
    if not capture.has("NVTX_EVENTS"):
        pytest.skip("no NVTX was recorded")
    expected = Counter((text, number, *row, row[0] - rows[number - 1][0] if number else None)
                       for (_, _, text), rows in ranges_by_text(capture).items() for number, row in enumerate(rows))
    names = ("name", "nth", "start_ns", "duration_ns", "period_ns")
    mine = {text for text, *_ in expected if text and not re.search(r"seq = |op_id|^{", text)}
    kinds = ["nvtx_push_pop", "operator", "module", "step"]
    rows = rows_of(capture, "nvtx_pace", *names, only_kind=kinds)
    found = Counter(row for row in rows if row[0] in mine and row[3] is not None)
    assert found == Counter({row: number for row, number in expected.items() if row[0] in mine})


def test_nccl_sum(capture: Capture) -> None:
    """NCCL's ranges are known by their names here: its domain has one in no capture."""
    if not capture.has("NVTX_EVENTS"):
        pytest.skip("no NVTX was recorded")
    expected: Counter[str] = Counter()
    for (_, _, text), rows in ranges_by_text(capture).items():
        if re.fullmatch("nccl[A-Z].*", text or ""):
            expected[text] += sum(duration for _, duration in rows)
    assert dict(rows_of(capture, "nccl_sum", "name", "total_ns")) == expected


def test_osrt_sum(capture: Capture) -> None:
    durations = defaultdict(list)
    if capture.has("OSRT_API"):
        for name, duration in capture.ask("SELECT s.value, o.\"end\" - o.start FROM OSRT_API AS o "
                                          "JOIN StringIds AS s ON o.nameId = s.id WHERE o.eventClass = 27"):
            durations[name,].append(duration)
    approximately(listed(capture, "osrt_sum", ["name"], "ns", "calls"), {key: summed(v) for key, v in durations.items()})


def test_waits_and_overhead_sum_to_those_of_the_file(capture: Capture) -> None:
    tables = {"synchronization_summary": ["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"],
              "overhead_summary": ["PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"]}
    for view, names in tables.items():
        expected = [capture.ask(f'SELECT count(*), coalesce(sum("end" - start), 0) FROM {name}')[0]
                    for name in names if capture.has(name)]
        found = capture.store.view(view).to_pylist()
        number = "waits" if "waits" in (found[0] if found else ()) else "instances"
        assert (sum(row[number] for row in found), sum(row["total_ns"] for row in found)) == (
            sum(count for count, _ in expected), sum(total for _, total in expected))


def test_each_wait_and_the_record_of_its_event(capture: Capture) -> None:
    waits, records = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
    expected: list[Any] = []
    if capture.has(waits):
        streams, called = {}, {(process, correlation): start for start, *_, correlation, process in calls(capture)}
        recorded = defaultdict(list)
        if {"eventSyncId", "timestamp"} <= columns(capture, records):
            streams = {tuple(key): stream for *key, stream in capture.ask(
                f"SELECT globalPid, eventId, eventSyncId, streamId FROM {records} WHERE eventSyncId <> 0")}
        elif capture.has(records):
            for process, event, correlation, stream in capture.ask(
                    f"SELECT globalPid, eventId, correlationId, streamId FROM {records}"):
                if (process, correlation) in called:
                    recorded[process, event].append((called[process, correlation], stream))
        record = "eventSyncId" if "eventSyncId" in columns(capture, waits) else "NULL"
        for start, end, stream, process, event, correlation, number in capture.ask(
                f"SELECT start, \"end\", streamId, globalPid, eventId, correlationId, {record} FROM {waits}"):
            before = [each for each in recorded[process, event] if each[0] < called.get((process, correlation), 0)]
            of_event = streams.get((process, event, number), max(before)[1] if before else None)
            awaited = of_event if event != NONE else None if stream == NONE else stream
            expected.append((start, end - start, awaited))
    same(rows_of(capture, "synchronization_trace", "start_ns", "duration_ns", "awaited_stream"), expected)


def test_what_a_wait_is_for_is_what_its_function_says(capture: Capture) -> None:
    """The numbers of types differ between exporters; the function that waits does not."""
    for row in capture.store.view("synchronization_trace").to_pylist():
        if row["name"] is not None:
            expected = [kind for part, kind in WAITING.items() if part in row["name"]]
            assert [row["kind"]] == expected, row["name"]


def test_the_profilers_share(capture: Capture) -> None:
    """Instant by instant, in a plain loop over the stretches of each process."""
    stretches = defaultdict(list)
    if capture.has("PROFILER_OVERHEAD"):
        for start, end, process in capture.ask(f"SELECT start, \"end\", globalTid & {PID} FROM PROFILER_OVERHEAD"):
            stretches[process >> 24 & 16777215].append((start, end))
    if capture.has("CUPTI_ACTIVITY_KIND_OVERHEAD"):
        for start, end, process in capture.ask(f"SELECT start, \"end\", globalTid & {PID} FROM CUPTI_ACTIVITY_KIND_OVERHEAD "
                                               "WHERE overheadType IN (3, 4, 5)"):
            stretches[process >> 24 & 16777215].append((start, end))
    expected: Counter[int] = Counter()
    for pid, found in stretches.items():
        reach = 0
        for start, end in sorted(found):
            expected[pid] += max(0, end - max(start, reach))
            reach = max(reach, end)
    pids = {row["process_id"]: row["pid"] for row in capture.store.sql("SELECT process_id, pid FROM processes").to_pylist()}
    shares = capture.store.view("profiler_share").to_pylist()
    assert {pids[row["process_id"]]: row["profiler_ns"] for row in shares if row["profiler_ns"]} == +expected
    assert all(0 <= row["profiler_ns"] <= row["span_ns"] for row in shares)


UNIFIED = "SELECT %s FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind IN (11, 12)"
CAUSES = {0: "unknown", 1: "prefetch", 2: "page_fault", 3: "speculative_prefetch", 4: "eviction", 5: "access_counters"}


def test_um_sum_and_um_total_sum(capture: Capture) -> None:
    """The captures have migrations only: of page faults there are none."""
    memcpy = columns(capture, "CUPTI_ACTIVITY_KIND_MEMCPY")
    address = "virtualAddress" if "virtualAddress" in memcpy else "NULL"
    sums = "sum(CASE copyKind WHEN 11 THEN bytes END), sum(CASE copyKind WHEN 12 THEN bytes END)"
    rate = "round(1e9 * sum(bytes) / sum(\"end\" - start))"
    expected = capture.ask(UNIFIED % f"{address}, {sums}, {rate}" + " GROUP BY 1") if memcpy else []
    found = rows_of(capture, "um_sum", "address", "htod_bytes", "dtoh_bytes", "bytes_per_s")
    same([(*row[:3], round(row[3])) for row in found], expected)
    total = capture.ask(UNIFIED % f"{sums}, min({address}), max({address})" + " GROUP BY copyKind > 0") if memcpy else []
    same(rows_of(capture, "um_total_sum", "htod_bytes", "dtoh_bytes", "first_address", "last_address"), total)


def test_migrations_by_cause(capture: Capture) -> None:
    expected = []
    if "migrationCause" in columns(capture, "CUPTI_ACTIVITY_KIND_MEMCPY"):
        expected = [("HtoD" if kind == 11 else "DtoH", CAUSES.get(cause), *sums) for kind, cause, *sums in capture.ask(
            UNIFIED % "copyKind, migrationCause, count(*), sum(bytes), sum(\"end\" - start)" + " GROUP BY 1, 2")]
    found = rows_of(capture, "migration_summary", "direction", "cause", "migrations", "total_bytes", "total_ns")
    same([row for row in found if row[0] != "DtoD"], expected)


def test_cuda_api_sync(capture: Capture) -> None:
    expected = [(end - start, start, pid, thread, name) for start, end, pid, thread, name, *_ in calls(capture)
                if name.startswith(("cudaDeviceSynchronize", "cudaStreamSynchronize"))]
    same(rows_of(capture, "cuda_api_sync", "duration_ns", "start_ns", "pid", "thread", "name"), expected)


@pytest.mark.parametrize("rule", ["cuda_memcpy_async", "cuda_memcpy_sync"])
def test_copies(capture: Capture, rule: str) -> None:
    expected = []
    if capture.has("CUPTI_ACTIVITY_KIND_MEMCPY"):
        functions: dict[tuple[int, int], list[str]] = defaultdict(list)
        for *_, name, correlation, process in calls(capture):
            functions[process, correlation].append(name)
        for start, end, kind, source, target, size, correlation, process in capture.ask(
                "SELECT start, \"end\", copyKind, srcKind, dstKind, bytes, correlationId, globalPid "
                "FROM CUPTI_ACTIVITY_KIND_MEMCPY"):
            for name in functions[process, correlation]:
                asynchronous = name.startswith("cudaMemcpy") and "Async" in name
                wanted = asynchronous and 0 in (source, target) if rule == "cuda_memcpy_async" else (
                    name.startswith("cudaMemcpy") and not asynchronous and not (kind == 1 and size <= 64000))
                if wanted:
                    expected.append((end - start, start, MEMORY[source], MEMORY[target], size, name))
    names = ("duration_ns", "start_ns", "source_memory", "destination_memory", "bytes", "function")
    same(rows_of(capture, rule, *names), expected)


def test_cuda_memset_sync(capture: Capture) -> None:
    """No capture has such a set: a made one is in tests/sql/memory/cuda_memset_sync.toml."""
    if capture.has("CUPTI_ACTIVITY_KIND_MEMSET"):
        assert capture.ask("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET WHERE memKind IN (1, 4)") == [(0,)]
    assert capture.store.view("cuda_memset_sync").num_rows == 0


def skip_unless_plain(capture: Capture) -> None:
    """Skip where work is not what the file says: kernels that outlast their stream are cut, graphs are work as a whole."""
    if capture.store.sql("SELECT count(*) AS n FROM kernels WHERE overrun_ns > 0").to_pylist()[0]["n"]:
        pytest.skip("kernels outlast their stream")
    if capture.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE") or "globalPid" not in columns(capture, "CUPTI_ACTIVITY_KIND_KERNEL"):
        pytest.skip("no kernels with their process, or CUDA graphs as a whole")


def low_stretches(capture: Capture) -> list[list[Any]]:
    """Return process, device, start, end and work of each stretch in which a GPU works for less than half of the time."""
    found: list[list[Any]] = []
    for process, device in capture.ask(f"SELECT DISTINCT process, device FROM ({capture.gpu_work()})"):
        work = capture.ask(f"SELECT start, stop FROM ({capture.gpu_work()}) WHERE process IS {process} AND device = {device}")
        first, last = min(start for start, _ in work), max(stop for _, stop in work)
        size, before = -(-(last - first) // 30), -2
        for number in range(30):
            begin, end = first + number * size, min(first + (number + 1) * size, last)
            if begin >= end:
                break
            used = sum(max(0, min(stop, end) - max(start, begin)) for start, stop in work)
            if 100 * used / (end - begin) < 50:
                if before == number - 1:
                    found[-1][3] = end
                    found[-1][4] += used
                else:
                    found.append([process, device, begin, end, used])
                before = number
    return found


def test_gpu_time_util(capture: Capture) -> None:
    """Chunk by chunk, in a plain loop."""
    skip_unless_plain(capture)
    expected = low_stretches(capture)
    names = ("start_ns", "duration_ns", "in_use_pct")
    found = sorted(rows_of(capture, "gpu_time_util", *names))
    assert [row[:2] for row in found] == sorted((begin, end - begin) for *_, begin, end, _ in expected)
    shares = {begin: 100 * used / (end - begin) for *_, begin, end, used in expected}
    assert all(share == pytest.approx(shares[start], abs=0.051) for start, _, share in found)


def test_gpu_use_over_time(capture: Capture) -> None:
    """Bin by bin, in a plain loop."""
    skip_unless_plain(capture)
    expected = {}
    for process, device in capture.ask(f"SELECT DISTINCT process, device FROM ({capture.gpu_work()})"):
        work = union(capture.ask(
            f"SELECT start, stop FROM ({capture.gpu_work()}) WHERE process IS {process} AND device = {device}"))
        first, last = work[0][0], work[-1][1]
        size = -(-(last - first) // 50)
        for begin in range(first, last, size):
            end = min(begin + size, last)
            expected[begin, end - begin, sum(max(0, min(stop, end) - max(start, begin)) for start, stop in work)] = True
    assert sorted(rows_of(capture, "gpu_use_over_time", "start_ns", "duration_ns", "work_ns", bins=50)) == sorted(expected)


def union(work: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return stretches that hold the same instants and do not touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(work):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def idle_waits(capture: Capture, busy: dict[int, list[tuple[int, int]]]) -> Counter[tuple[Any, ...]]:
    """Return how long the GPU of each process idled in synchronising calls that are part of no other call. busy: its work."""
    reach: Counter[tuple[int, int]] = Counter()
    total: Counter[tuple[Any, ...]] = Counter()
    for start, end, _, thread, name, _, process in sorted(calls(capture), key=lambda call: (call[0], -call[1])):
        outermost = reach[process, thread] <= start
        reach[process, thread] = max(reach[process, thread], end)
        if outermost and name.startswith(("cudaDeviceSync", "cudaStreamSync", "cuCtxSync", "cuStreamSync")):
            used = sum(max(0, min(stop, end) - max(begin, start)) for begin, stop in busy[process])
            total[process, None, "cuda_api_sync"] += end - start - used
    return total


def copying_calls(capture: Capture) -> Counter[tuple[Any, ...]]:
    """Return how long the calls of the copies took that the rules about copies are about."""
    total: Counter[tuple[Any, ...]] = Counter()
    took = {(process, correlation): (name, end - start) for start, end, *_, name, correlation, process in calls(capture)}
    for kind, source, target, size, correlation, process in capture.ask(
            "SELECT copyKind, srcKind, dstKind, bytes, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY"
            if capture.has("CUPTI_ACTIVITY_KIND_MEMCPY") else "SELECT 1, 1, 1, 1, 1, 1 WHERE 0"):
        name, length = took.get((process, correlation), ("", 0))
        if name.startswith("cudaMemcpy") and "Async" in name:
            total[process, None, "cuda_memcpy_async"] += length if 0 in (source, target) else 0
        elif name.startswith("cudaMemcpy"):
            total[process, None, "cuda_memcpy_sync"] += 0 if kind == 1 and size <= 64000 else length
    return total


def shares_of_rules(capture: Capture) -> dict[tuple[Any, ...], float]:
    """Return the share of time, in %, of each rule of nsys above its limit: by process, GPU and rule."""
    by_process, by_gpu = defaultdict(list), defaultdict(list)
    for start, stop, process, device in capture.ask(f"SELECT start, stop, process, device FROM ({capture.gpu_work()})"):
        by_process[process].append((start, stop))
        by_gpu[process, device].append((start, stop))
    total = copying_calls(capture)
    total += idle_waits(capture, defaultdict(list, {process: union(work) for process, work in by_process.items()}))
    for (process, device), work in by_gpu.items():
        busy = union(work)
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(busy)]
        total[process, device, "gpu_gaps"] += sum(gap for gap in gaps if gap >= 500_000_000)
    for process, device, begin, end, _ in low_stretches(capture):
        total[process, device, "gpu_time_util"] += end - begin
    found = {}
    for (process, device, rule), length in total.items():
        work = by_process.get(process, [(0, 0)])
        span = max(stop for _, stop in work) - min(start for start, _ in work)
        if span and 100 * length > RULES[rule] * span:
            found[process >> 24 & 16777215, device, rule] = 100 * length / span
    return found


RULES = {"cuda_memcpy_async": 1, "cuda_memcpy_sync": 1, "cuda_memset_sync": 1, "cuda_api_sync": 1, "gpu_gaps": 0,
         "gpu_time_util": 10}
"""The rules of nsys and the limits, in %, above which recommendations lists them."""


def shown(store: Store) -> dict[tuple[Any, ...], float]:
    """Return what recommendations says of the rules of nsys: by pid, GPU and rule."""
    pids = {row["process_id"]: row["pid"] for row in store.sql("SELECT process_id, pid FROM processes").to_pylist()}
    return {(pids[row["process_id"]], int(row["subject"].removeprefix("GPU ")) if row["subject"] else None, row["rule"]):
            row["value_pct"] for row in store.view("recommendations").to_pylist() if row["rule"] in RULES}


def test_shares_of_the_rules(capture: Capture) -> None:
    skip_unless_plain(capture)
    assert shown(capture.store) == pytest.approx(shares_of_rules(capture), abs=0.0051)


def test_the_captures_break_most_rules(tmp_path: Path) -> None:
    """No capture sets memory of the host: a made one is in tests/sql/steps/recommendations.toml."""
    broken = {rule for number, path in enumerate(CAPTURES)
              for *_, rule in shown(Capture(path, tmp_path / str(number)).store)}
    assert broken == RULES.keys() - {"cuda_memset_sync"}


@pytest.mark.parametrize("report", [
    "cuda_api_trace", "cuda_gpu_trace", "cuda_gpu_sum", "cuda_api_gpu_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_kern_sum",
    "cuda_gpu_kern_gb_sum", "nvtx_pushpop_sum", "nvtx_pushpop_trace", "nvtx_kern_sum", "osrt_sum", "synchronization_summary",
    "overhead_summary", "cuda_api_sync", "cuda_memcpy_async", "cuda_memcpy_sync", "gpu_time_util", "nvtx_startend_sum", "um_sum",
    "cuda_gpu_time_util_map", "nvtx_pace", "nvtx_gpu_proj_pace", "nccl_sum", "nccl_gpu_proj_sum",
    "um_total_sum", "migration_summary", "profiler_share", "synchronization_trace"])
def test_the_captures_hold_what_the_tests_need(report: str, tmp_path: Path) -> None:
    """Were a report empty of every capture, the tests above would hold for nothing."""
    for path in (path for path in CAPTURES if path.stem.startswith(HOLDING.get(report, "GindaChen__nsys-ai__mfu_2gpu_before"))):
        assert Capture(path, tmp_path / "store").store.view(report).num_rows > 0
