"""The nsys reader and the file itself: paths, journals, rowids, threads, identity."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nsightlens.readers import nsys
from nsightlens.readers.nsys import source as tables
from tests.readers.nsys_report import SESSION, Row, base, codes, kernel, read, write


def environment(*settings: str) -> dict[str, list[Row]]:
    return {"META_DATA_CAPTURE": [{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": setting} for setting in settings]}


@pytest.mark.parametrize("name", ["a b.sqlite", "what?mode=rwc.sqlite", "50%25.sqlite", "#1.sqlite", "é漢.sqlite", "noext"])
def test_any_path(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "run #1?" / name, base())
    assert len(read(path, jobs=2)["kernels"]) == 1
    assert [each.name for each in path.parent.iterdir()] == [name]


def test_a_journal_beside_the_report_is_said_and_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "report.sqlite", base())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute('INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, "end") VALUES (1, 2)')
        before = {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")}
        found = read(path)
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")} == before
    assert len(found["kernels"]) == 1
    assert codes(found)["unfinished_export"] == 1


def test_an_index_of_another_tool_changes_nothing(tmp_path: Path) -> None:
    rows = [kernel(start, start + 1, correlationId=100 - start) for start in range(50)]
    path = write(tmp_path / "report.sqlite", base(CUPTI_ACTIVITY_KIND_KERNEL=rows))
    before = read(path)["kernels"]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE INDEX _nsysai_k ON CUPTI_ACTIVITY_KIND_KERNEL (correlationId)")
        connection.execute("ANALYZE")
    assert read(path)["kernels"] == before


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("step", [1, 1 << 40])
def test_long_tables_come_in_order_whatever_their_rowids(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jobs: int,
    step: int,
) -> None:
    monkeypatch.setattr("nsightlens.readers.nsys.scan.PIECE_ROWS", 100)
    rows = [kernel(start, start + 1, demangledName=1 + start // 400) for start in range(1234)]
    path = write(tmp_path / "report.sqlite", base(CUPTI_ACTIVITY_KIND_KERNEL=rows))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = -1 - rowid")
        connection.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = (-1 - rowid) * {step} - 5000")
        connection.commit()
    found = read(path, jobs)["kernels"]
    assert [row["start_ns"] for row in found] == list(range(1234))
    dictionaries = [
        batch.column("name").dictionary.to_pylist() for table, batch in nsys.read([path], jobs=jobs) if table == "kernels"
    ]
    assert 13 <= len(dictionaries) <= 30
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(dictionaries))


def test_a_reading_may_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsightlens.readers.nsys.scan.PIECE_ROWS", 10)
    path = write(tmp_path / "report.sqlite", base(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(start, start + 1) for start in range(500)]))
    reading = nsys.read([path], jobs=2)
    assert next(iter(reading))[0] == "processes"
    reading.close()  # type: ignore[attr-defined]


def test_two_slices_of_a_session_are_two_captures(tmp_path: Path) -> None:
    def identity(name: str, **others: Any) -> frozenset[str]:
        return nsys.probe(write(tmp_path / f"{name}.sqlite", base(**others))).identity

    assert identity("a") == identity("b") != frozenset()
    assert identity("a2", CUPTI_ACTIVITY_KIND_KERNEL=[kernel(2000, 2500)]) != identity("a3")
    assert identity("c", TARGET_INFO_SYSTEM_ENV=[{"name": "Hostname", "value": "node8"}]) != identity("d")


def test_a_probe_tells_the_ranks(tmp_path: Path) -> None:
    probe = nsys.probe(write(tmp_path / "report.sqlite", base(**environment('RANK="3"', 'WORLD_SIZE="4"', 'LOCAL_RANK="1"'))))
    (hint,) = probe.processes
    assert (hint.pid, hint.host, hint.rank, hint.rank_source, hint.local_rank, hint.world_size) == (
        7,
        "node7",
        3,
        "content:RANK",
        1,
        4,
    )
    assert probe.first_epoch_ns == SESSION + 900


def test_names_of_tables() -> None:
    assert tables.is_report(["StringIds", "PROCESSES"])
    assert not tables.is_report(["PROCESSES"])
    assert not tables.is_report(["StringTable", "CUPTI_ACTIVITY_KIND_KERNEL"])
    assert tables.canonical(["NVTX_EVENTS_V2", "NVTX_EVENTS", "NVTX_EVENTS_V12", "SCHED_EVENTS", "NIC_ID_MAP"]) == {
        "NVTX_EVENTS": "NVTX_EVENTS_V12", "SCHED_EVENTS": "SCHED_EVENTS"
    }
