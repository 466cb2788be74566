"""NVTX of small nsys reports."""

from __future__ import annotations

from pathlib import Path

from tests.readers.nsys_report import codes, global_pid, report, span, strings


def test_ranges_marks_and_what_is_neither(tmp_path: Path) -> None:
    tid = global_pid(7) + 70
    found = report(
        tmp_path,
        StringIds=strings("a", "b", "c", "registered", "Domain"),
        NVTX_EVENTS=[
            span(0, None, eventType=75, domainId=3, textId=5),
            span(0, None, eventType=33, text="category"),
            span(0, None, eventType=39, text="worker"),
            span(0, None, eventType=76, domainId=3),
            span(10, 30, text="aten::mm"),
            span(12, 20, textId=4, domainId=3),
            span(13, 50, eventType=60, text="both", textId=4, endGlobalTid=tid + 1),
            span(14, 15, eventType=60, textId=4, endGlobalTid=tid),
            span(16, None, eventType=34, text="mark"),
            span(17, None, text="open"),
            span(18, 19, eventType=71, text="old"),
            span(18, 19, eventType=999, text="new"),
        ],
    )
    shown = [
        (
            row["kind"],
            row["name"],
            row.get("domain"),
            row["start_ns"],
            row.get("duration_ns"),
            row["thread"],
            row.get("end_thread"),
        )
        for row in found["ranges"]
    ]
    assert shown == [
        ("nvtx_push_pop", "aten::mm", None, 10, 20, 70, None),
        ("nvtx_push_pop", "registered", "Domain", 12, 8, 70, None),
        ("nvtx_start_end", "both", None, 13, 37, 70, 71),
        ("nvtx_start_end", "registered", None, 14, 1, 70, None),
        ("nvtx_mark", "mark", None, 16, None, 70, None),
        ("nvtx_push_pop", "open", None, 17, None, 70, None),
        ("nvtx_start_end", "old", None, 18, 1, 70, None),
    ]
    assert codes(found)["never_closed"] == 1
    assert codes(found)["unknown_nvtx"] == 1


def test_domains_are_numbered_per_process(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        NVTX_EVENTS=[
            span(0, None, pid=7, eventType=75, domainId=1, text="MPI"),
            span(0, None, pid=8, eventType=75, domainId=1, text="CCCL"),
            span(1, 2, pid=8, domainId=1, text="x"),
            span(1, 2, pid=7, domainId=1, text="y"),
            span(1, 2, pid=9, domainId=1, text="z"),
            span(1, 2, pid=9, domainId=1, text="ncclAllReduce"),
            span(1, 2, pid=9, domainId=0, text="ncclAllReduce"),
        ],
    )
    assert [row.get("domain") for row in found["ranges"]] == ["CCCL", "MPI", "domain 1", "NCCL", None]
    assert codes(found)["inferred_domain"] == 1


def test_ranges_of_a_table_without_types(tmp_path: Path) -> None:
    (row,) = report(tmp_path, NVTX_EVENTS=[{"start": 1, "end": 2, "text": "t", "globalTid": global_pid(7) + 1}])["ranges"]
    assert row == {"process_index": 0, "thread": 1, "start_ns": 1, "duration_ns": 1, "name": "t"}
