"""The benchmarks' machinery at tiny sizes: inputs hold what they say, programs are measured and checked, bars are judged."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks import inputs, kineto_input, ncu_input, nsys_input, peers, report, tables
from benchmarks.measure import Candidate, CommandError, Run, measure, run_once

TRACE = """{
  "schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1760000000000000000,
  "deviceProperties": [ { "id": 0, "name": "GPU 100%", "numSms": 108 } ],
  "traceEvents": [
  {
    "name": "process_name", "ph": "M", "ts": 1000.000, "pid": 0, "tid": 0, "args": { "name": "python" }
  },
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 9, "tid": 9, "ts": 1000.250, "dur": 90.000,
    "args": { "External id": 1 }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm \\"ts\\": 7", "pid": 9, "tid": 9, "ts": 1001.125, "dur": 20.000,
    "args": { "External id": 2, "Ev Idx": 0 }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1003.001, "dur": 4.999,
    "args": { "External id": 2, "cbid": 211, "correlation": 30 }
  },
  {
    "ph": "s", "id": 30, "pid": 9, "tid": 9, "ts": 1003.001, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "gemm<128>", "pid": 0, "tid": 7, "ts": 1010.001, "dur": 12.345,
    "args": { "External id": 2, "device": 0, "stream": 7, "correlation": 30, "est. achieved occupancy %": 31 }
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1100.500
  }
  ],
  "traceName": "x.json"
}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "source.json.gz"
    path.write_bytes(gzip.compress(TRACE.encode()))
    return path


def replicated(trace: Path, copies: int, tmp_path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    target = tmp_path / "out.json"
    truth = kineto_input.replicate(trace, target, len(TRACE) * copies)
    return json.loads(target.read_text(), parse_float=Decimal), truth


def test_replicated_trace_holds_its_truth(trace: Path, tmp_path: Path) -> None:
    content, truth = replicated(trace, 5, tmp_path)
    kernels = [e for e in content["traceEvents"] if e.get("cat") == "kernel"]
    assert truth["copies"] > 2
    assert len(kernels) == truth["kernels"] == truth["copies"]
    assert sum(int(e["dur"] * 1000) for e in kernels) == truth["kernel_ns"] == 12_345 * truth["copies"]
    assert sum("cat" in e for e in content["traceEvents"]) == truth["events"]


def test_copies_are_apart_in_time_and_ids_and_keep_their_links(trace: Path, tmp_path: Path) -> None:
    content, truth = replicated(trace, 4, tmp_path)
    by_cat: dict[str, list[dict[str, Any]]] = {}
    for event in content["traceEvents"]:
        by_cat.setdefault(event.get("cat", ""), []).append(event)
    copies = truth["copies"]
    for op, call, kernel, flow in zip(by_cat["cpu_op"], by_cat["cuda_runtime"], by_cat["kernel"], by_cat["ac2g"], strict=True):
        assert call["args"]["correlation"] == kernel["args"]["correlation"] == flow["id"]
        assert op["args"]["External id"] == call["args"]["External id"] == kernel["args"]["External id"]
        assert op["ts"] < call["ts"] < kernel["ts"]
        assert str(kernel["ts"]).endswith(".001")
    assert len({e["args"]["correlation"] for e in by_cat["kernel"]}) == copies
    starts = [e["ts"] for e in by_cat["cpu_op"]]
    assert all(later >= first + 20 for first, later in pairwise(starts))


def test_steps_are_stretched_over_all_copies(trace: Path, tmp_path: Path) -> None:
    content, truth = replicated(trace, 4, tmp_path)
    (step,) = [e for e in content["traceEvents"] if e["name"] == "ProfilerStep#4"]
    kernels = [e for e in content["traceEvents"] if e.get("cat") == "kernel"]
    assert step["dur"] == 90 * truth["copies"]
    assert step["ts"] < min(e["ts"] for e in kernels)
    assert max(e["ts"] + e["dur"] for e in kernels) < step["ts"] + step["dur"]


def test_labels_and_markers_stand_once_and_text_is_untouched(trace: Path, tmp_path: Path) -> None:
    content, truth = replicated(trace, 3, tmp_path)
    once = [e for e in content["traceEvents"] if "cat" not in e]
    assert [e["name"] for e in once] == ["process_name", "Record Window End"]
    assert content["traceEvents"][-1]["ts"] >= max(e["ts"] for e in content["traceEvents"])
    assert {e["name"] for e in content["traceEvents"] if e.get("cat") == "cpu_op"} == {'aten::mm "ts": 7'}
    assert content["deviceProperties"][0]["name"] == "GPU 100%"
    assert content["baseTimeNanoseconds"] == 1760000000000000000
    assert truth["bytes"] == (tmp_path / "out.json").stat().st_size


def test_nsys_export_holds_its_truth(tmp_path: Path) -> None:
    truth = nsys_input.write(tmp_path / "r.sqlite", 500, 40)
    connection = sqlite3.connect(tmp_path / "r.sqlite")
    rows = connection.execute(
        'SELECT k.start, k."end", c."end", s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME c '
        "ON c.correlationId = k.correlationId AND c.globalTid >> 24 = k.globalPid >> 24 "
        "JOIN StringIds s ON s.id = k.demangledName",
    ).fetchall()
    connection.close()
    assert len(rows) == truth["kernels"] == 500
    assert sum(end - start for start, end, _, _ in rows) == truth["kernel_ns"]
    assert all(called < start < end for start, end, called, _ in rows)
    assert len({name for _, _, _, name in rows}) == 40


def test_ncu_pages_hold_their_truth(tmp_path: Path) -> None:
    wide = ncu_input.write_wide(tmp_path / "raw.csv", 7)
    with (tmp_path / "raw.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    column = rows[0].index("gpu__time_duration.sum")
    assert {len(row) for row in rows} == {ncu_input.WIDE_COLUMNS}
    assert len(set(rows[0])) == ncu_input.WIDE_COLUMNS
    assert (len(rows) - 2, sum(int(row[column]) for row in rows[2:])) == (wide["kernels"], wide["kernel_ns"])

    details = ncu_input.write_details(tmp_path / "details.csv", 7)
    with (tmp_path / "details.csv").open(newline="") as file:
        header, *body = csv.reader(file)
    durations = [Decimal(row[14].replace(",", "")) for row in body if row[12] == "Duration"]
    assert {row[13] for row in body if row[12] == "Duration"} == {"us"}
    assert (len(body), len(durations)) == (details["rows"], details["kernels"])
    assert sum(durations) * 1000 == details["kernel_ns"]
    assert {len(row) for row in body} == {16, len(header)}


def test_inputs_are_made_once(trace: Path, tmp_path: Path) -> None:
    first = inputs.kineto(tmp_path / "kept", trace, 5000)
    changed = first.file.stat().st_mtime_ns
    again = inputs.kineto(tmp_path / "kept", trace, 5000)
    other = inputs.kineto(tmp_path / "kept", trace, 9000)
    assert again == first
    assert again.file.stat().st_mtime_ns == changed
    assert other.file != first.file
    assert not list((tmp_path / "kept").glob(".*"))


def test_a_run_counts_the_memory_and_time_of_all_its_processes() -> None:
    hog = "import sys; block = bytearray(60_000_000); print(flush=True); sys.stdin.read()"
    both = f"""if True:
        import subprocess, sys, time
        pipe = subprocess.PIPE
        two = [subprocess.Popen([sys.executable, '-c', {hog!r}], stdin=pipe, stdout=pipe) for _ in range(2)]
        for one in two:
            one.stdout.readline()
        time.sleep(1)  # both hold their memory now
        for one in two:
            one.communicate()
        print('ok')"""
    run = run_once([sys.executable, "-c", both])
    assert run.output == "ok\n"
    assert run.cpu_s > 0
    assert run.wall_s > 0
    if Path("/proc/self/statm").exists():
        assert run.peak_rss_bytes is not None and run.peak_rss_bytes > 120_000_000
    if Path("/proc/self/smaps_rollup").exists():
        assert run.peak_pss_bytes is not None and run.peak_pss_bytes > 120_000_000


def test_a_failing_command_is_told() -> None:
    with pytest.raises(CommandError, match=r"ended with 3: no such luck"):
        run_once([sys.executable, "-c", "import sys; print('no such luck', file=sys.stderr); sys.exit(3)"])


def test_programs_take_turns_and_are_checked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    candidates = [
        Candidate(name, [sys.executable, "-c", f"open({str(log)!r}, 'a').write({name!r})"], lambda: None) for name in ("a", "b")]
    measure(candidates, 2, warm=True)
    assert log.read_text() == "ababab"
    assert [len(c.runs) for c in candidates] == [2, 2]

    def refuse(run: Run) -> None:
        raise tables.WrongResultError("wrong")

    with pytest.raises(tables.WrongResultError):
        measure([Candidate("c", [sys.executable, "-c", ""], check=refuse)], 1)


def measured(name: str, *walls: float, rss: int | None = 100 * report.MB) -> Candidate:
    return Candidate(name, [], runs=[Run(wall, wall, rss, rss, "") for wall in walls])


def test_bars_are_judged_by_medians() -> None:
    ours, peer = measured("ours", 1.0, 2.0, 9.0), measured("peer", 30.0, 20.0, 1.0)
    assert report.faster(10, ours, peer, "peer").met is True
    assert report.faster(11, ours, peer, "peer").met is False
    assert report.faster(10, ours, None, "peer").met is None
    assert report.smaller(100, ours).met is True
    assert report.smaller(99, ours).met is False
    assert report.smaller(99, measured("blind", 1.0, rss=None)).met is None
    assert report.quicker(0.5, 0.6, "x").met is False


def test_page_names_programs_ratios_and_missed_bars() -> None:
    ours, peer = measured("ours", 2.0), measured("peer", 5.0)
    page = report.page([report.Table("T", "note", [ours, peer], [report.faster(3, ours, peer, "peer")])], "how")
    assert "| peer | 5 (5 to 5) | 5 | 100 | 100 | 2.50 |" in page
    assert "**missed**: at least 3x as fast as peer: 2.50x" in page


def test_a_table_of_several_comparisons_sets_each_program_beside_its_own() -> None:
    first, second, peer = measured("first", 1.0), measured("second", 4.0), measured("peer", 6.0)
    rows = report.page([report.Table("T", "note", [first, second, peer], base_of={"second": second, "peer": second})], "how")
    assert [row.split("|")[-2].strip() for row in rows.splitlines() if row.startswith(("| first", "| second", "| peer"))] == [
        "1.00", "1.00", "1.50"]


def test_a_wrong_store_or_peer_is_not_accepted(tmp_path: Path) -> None:
    made = inputs.nsys(tmp_path, 300, 20)
    run = run_once(peers.command("pandas-group-by", made.file))
    assert peers.found(run.output) == {"rows": 300, "kernel_ns": made.truth["kernel_ns"]}
    peer = tables._peer("p", "pandas-join", made.file, inputs.Input(made.run_dir, made.file, {**made.truth, "kernel_ns": 1}))
    with pytest.raises(tables.WrongResultError, match="kernel_ns"):
        measure([peer], 1)
    store = tmp_path / "store"
    run_once(tables.ingest_command(made.run_dir, store))
    tables.check_store(store, made.truth)
    with pytest.raises(tables.WrongResultError):
        tables.check_store(store, {**made.truth, "kernels": 299})
