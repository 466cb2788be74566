"""NCCL's Inspector: rows are exact, ranks are known or NULL, and damage and mixtures are counted. All files are made."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.discovery.files import find
from nsightlens.errors import ReadError
from nsightlens.readers import nccl_inspector

BEGAN = 1_748_030_377_748_202
COLUMNS = ("communicator", "communicator_rank", "group_size", "sequence", "collective", "message_bytes", "duration_ns",
           "duration_clock", "state", "rank")


def header(rank: int = 2, ranks: int = 8, communicator: str = "0x7f8c", name: str | None = None, version: str = "v4.0",
           pid: int = 77) -> dict[str, Any]:
    named = {} if name is None else {"comm_name": name}
    return {"header": {"id": communicator, **named, "rank": rank, "n_ranks": ranks, "nnodes": 1},
            "metadata": {"inspector_output_format_version": version, "git_rev": "", "rec_mechanism": "profiler_plugin",
                         "dump_timestamp_us": BEGAN, "hostname": "n1", "pid": pid}}


def collective(number: int = 5, took_us: float = 61974, source: str | None = "kernel_gpu", **more: Any) -> dict[str, Any]:
    timed = {} if source is None else {"coll_timing_source": source}
    return {"coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1 << 34, "coll_exec_time_us": took_us,
                          **timed, "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1, **more}}


def marker(records: int, dropped: int = 0, **of: Any) -> dict[str, Any]:
    return {**header(version="v4.3", **of), "dump_stats": {
        "coll_records": records, "coll_dropped_total": dropped, "coll_dropped_since_last_dump": dropped, "p2p_records": 0}}


def write(path: Path, *lines: dict[str, Any] | str, end: str = "\n") -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line, separators=(",", ":")) for line in lines]
    path.write_text("\n".join(texts) + end)
    return path


def codes(tables: dict[str, Any]) -> dict[str, int]:
    return {row["code"]: row["count"] for row in tables["diagnostics"].to_pylist()}


def test_rows_are_exact(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "n1-pid77.log", header() | collective(), header() | collective(6, 12.5, None)))
    rows = tables["collective_records"].to_pylist()
    assert [tuple(row[c] for c in COLUMNS) for row in rows] == [
        ("0x7f8c", 2, 8, 5, "AllReduce", 1 << 34, 61_974_000, "gpu", "completed", 2),
        ("0x7f8c", 2, 8, 6, "AllReduce", 1 << 34, 12_500, None, "completed", 2)]
    (process,) = tables["processes"].to_pylist()
    assert [process[c] for c in ("host", "pid", "rank", "rank_source", "world_size")] == [
        "n1", 77, 2, "content:largest communicator", None]
    assert codes(tables) == {"rank_of_communicator": 1}


def test_verbose_records_say_when_the_host_issued_them(tmp_path: Path) -> None:
    verbose = collective(event_trace_sn={"coll_start_sn": 1}, event_trace_ts={"coll_start_ts": BEGAN - 3, "kernel_events": []})
    tables = nl.read(write(tmp_path / "a.log", header() | verbose))
    assert tables["collective_records"]["start_ns"].to_pylist() == [-3000]
    assert tables["profiles"]["origin_epoch_ns"].to_pylist() == [BEGAN * 1000]


def test_records_belong_to_the_dump_that_they_stand_in(tmp_path: Path) -> None:
    """Format 4.3: the beginning of a dump names communicator and process for as many lines as it announces."""
    tables = nl.read(write(tmp_path / "a.log", collective(1), marker(2), collective(2), {"p2p_perf": {"p2p": "Send"}},
                           collective(3), collective(4), marker(3, 7, rank=0, ranks=2, communicator="0xtp"), collective(0)))
    assert [(r["communicator"], r["sequence"]) for r in tables["collective_records"].to_pylist()] == [
        ("0x7f8c", 2), ("0x7f8c", 3), ("0xtp", 0)]
    assert codes(tables) == {"lines_damaged": 2, "records_dropped": 7, "records_missing": 2, "point_to_point": 1,
                             "rank_of_communicator": 1}
    assert tables["profiles"]["events_lost"].to_pylist() == [11]


@pytest.mark.parametrize(("lines", "rank", "source", "world"), [
    ([header(3, 4, "0xa", "default_pg"), header(1, 8, "0xb", "other")], 3, "content:default_pg", 4),
    ([header(3, 4, "0xa"), header(5, 8, "0xb")], 5, "content:largest communicator", None),
    ([header(3, 8, "0xa"), header(5, 8, "0xb")], None, None, None),    # which of the two has all ranks?
    ([header(0, 8, "0xa"), header(1, 8, "0xa")], None, None, None),    # a process with two GPUs
    ([header(0, 1, "0xa")], None, None, None),                         # a communicator of one says nothing
])
def test_the_rank_is_known_or_null(tmp_path: Path, lines: list[dict[str, Any]], rank: int | None, source: str | None,
                                   world: int | None) -> None:
    tables = nl.read(write(tmp_path / "a.log", *(line | collective(n) for n, line in enumerate(lines))))
    (process,) = tables["processes"].to_pylist()
    assert (process["rank"], process["rank_source"], process["world_size"]) == (rank, source, world)


def test_files_put_together_keep_their_processes(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "all.log", *(header(rank, pid=70 + rank) | collective() for rank in range(3))))
    assert sorted((r["pid"], r["rank"]) for r in tables["processes"].to_pylist()) == [(70, 0), (71, 1), (72, 2)]
    assert tables["collective_records"]["rank"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(("took", "source", "row"), [
    (0, "kernel_gpu", (None, None)), (-1, "kernel_gpu", (None, None)), (1e300, "kernel_gpu", (None, None)),
    (1 << 70, "kernel_gpu", (None, None)), (7, "collective_cpu", (7000, "host")), (7, "new", (7000, None)),
])
def test_times(tmp_path: Path, took: float, source: str, row: tuple[int | None, str | None]) -> None:
    table = nl.read(write(tmp_path / "a.log", header() | collective(5, took, source)))["collective_records"]
    assert [(r["duration_ns"], r["duration_clock"]) for r in table.to_pylist()] == [row]


def test_cut_damaged_and_hostile_lines_are_left_out(tmp_path: Path) -> None:
    good = header() | collective()
    bad = ['{"header":', "[1]", '"coll_sn"', "{" * 2000, json.dumps(header() | collective(-1)),
           json.dumps(header(9) | collective()), json.dumps(header() | {"coll_perf": {"coll": 5, "coll_sn": 1}}),
           "\0" * 50, "x" * (1 << 21)]
    tables = nl.read(write(tmp_path / "a.log", good, *bad, good, json.dumps(good)[:90], end=""))
    assert tables["collective_records"].num_rows == 2
    found = codes(tables)
    assert found["lines_damaged"] >= len(bad) + 1 and found["truncated"] == 1
    assert tables["profiles"]["truncated"].to_pylist() == [True]


def test_gzip_cut_and_whole(tmp_path: Path) -> None:
    packed = gzip.compress("".join(json.dumps(header() | collective(n)) + "\n" for n in range(3000)).encode())
    (tmp_path / "whole.log.gz").write_bytes(packed)
    (tmp_path / "cut.log.gz").write_bytes(packed[: len(packed) // 2])
    assert nl.read(tmp_path / "whole.log.gz")["collective_records"].num_rows == 3000
    cut = nl.read(tmp_path / "cut.log.gz")
    assert 0 < cut["collective_records"].num_rows < 3000 and "truncated" in codes(cut)


def test_another_version_is_read_and_said(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "a.log", header(version="v9.1") | collective()))
    assert tables["collective_records"].num_rows == 1 and "untested_version" in codes(tables)


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    write(tmp_path / "n1-pid77.log", header() | collective())
    write(tmp_path / "v43.txt", marker(1), collective())
    (tmp_path / "README").write_text(json.dumps(header() | collective(), indent=2))   # what the documentation prints
    (tmp_path / "other.log").write_text("coll_sn and coll_perf\n")
    found = {f.path.name: f.tool for f in find([tmp_path])}
    assert found == {"n1-pid77.log": "nccl_inspector", "v43.txt": "nccl_inspector", "README": None, "other.log": None}


def test_a_file_without_a_collective_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", marker(0))
    with pytest.raises(ReadError, match="NCCL_INSPECTOR_ENABLE=1"):
        nl.read(path)
    with pytest.raises(ReadError, match="no collective"):
        list(nccl_inspector.read([path]))
