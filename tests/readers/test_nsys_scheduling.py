"""Thread scheduling of nsys reports: stretches of small reports, and of real ones against plain SQL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from nsightlens.readers import nsys
from nsightlens.readers.nsys import cpu_samples, scheduling
from tests.places import sqlite_captures
from tests.readers.nsys_report import Row, base, codes, global_pid, read, report, strings, write, write_parquetdir

CALLER = global_pid(7) + 70
"""The thread that launches, in the report of `base`."""


def event(start: int | None, runs: int | None, thread: int | None = CALLER, cpu: int | None = 3, state: int | None = 0) -> Row:
    return {"start": start, "cpu": cpu, "isSchedIn": runs, "globalTid": thread, "threadState": state, "threadBlock": 0}


def stretches(found: dict[str, list[Row]]) -> list[tuple[object, ...]]:
    return [tuple(row.get(name) for name in ("thread", "start_ns", "duration_ns", "state", "cpu", "reason"))
            for row in found.get("thread_states", [])]


def test_a_stretch_lasts_to_the_next_event_of_its_thread(tmp_path: Path) -> None:
    found = report(tmp_path, SCHED_EVENTS=[
        event(500, 1), event(90, 0, CALLER + 1, 5, 3), event(800, 0, state=5), event(700, 1, CALLER + 1, 4), event(800, 1, cpu=6),
        event(850, 1, cpu=7), event(900, 0, cpu=None, state=99)])
    assert stretches(found) == [
        (70, 500, 300, "running", 3, None), (70, 800, 0, "off_cpu", 3, "terminated"), (70, 800, 50, "running", 6, None),
        (70, 850, 50, "running", 7, None), (70, 900, None, "off_cpu", None, None),
        (71, 90, 610, "off_cpu", 5, "uninterruptible"), (71, 700, None, "running", 4, None)]
    assert "unread" not in found["profiles"][0]


def test_debris_and_strangers_are_counted(tmp_path: Path) -> None:
    found = report(tmp_path, SCHED_EVENTS=[
        event(1, 1), event(None, 1), event(3, None), event(4, 1, None), event(5, 1, global_pid(9) + 9), event(1 << 62, 0),
        event(7, 2, cpu=1 << 40)])
    assert stretches(found) == [(70, 1, 6, "running", 3, None), (70, 7, None, "running", None, None)]
    assert (codes(found)["foreign_threads"], codes(found)["no_start"]) == (2, 3)
    tables = {"StringIds": strings("name"), "SCHED_EVENTS": [event(5, 1, global_pid(9) + 9)]}
    alone = read(write(tmp_path / "alone.sqlite", tables))
    assert stretches(alone) == [(9, 5, None, "running", 3, None)]


@pytest.mark.parametrize(("most", "threads", "left_out"), [(9, [70, 71, 72], 0), (8, [70, 72], 3), (4, [70], 5), (3, [72], 7)])
def test_of_too_many_events_whole_threads_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, threads: list[int], left_out: int,
) -> None:
    """The thread that launches has 4 events, the others have 3 and 2: it comes first, then those with few, where they fit."""
    monkeypatch.setattr(scheduling, "MOST_EVENTS", most)
    rows = [event(at, at % 2, CALLER + thread) for thread, number in enumerate((4, 3, 2)) for at in range(number)]
    found = report(tmp_path, SCHED_EVENTS=rows)
    assert sorted({row["thread"] for row in found["thread_states"]}) == threads
    assert codes(found).get("scheduling_left_out", 0) == left_out == 9 - len(found["thread_states"])


def test_pieces_and_batches_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [event(10 * at, at // 3 % 2, CALLER + at % 3) for at in range(60)]
    plain = write(tmp_path / "report.sqlite", base(SCHED_EVENTS=rows))
    expected = stretches(read(plain))
    monkeypatch.setattr(scheduling, "PIECE_ROWS", 7)
    assert stretches(read(write_parquetdir(tmp_path / "parquet", plain, group_rows=11))) == expected
    assert len(expected) == 60 and sum(row[2] is None for row in expected) == 3


def test_of_too_many_samples_a_fair_part_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread keeps about its share, also where one sample in four is of the same thread, in turn."""
    monkeypatch.setattr(cpu_samples, "MOST_SAMPLES", 1000)
    rows = [{"id": at, "start": 1000 * at, "cpu": at % 4, "threadState": 1, "globalTid": CALLER + at % 4, "cpuCycles": 1}
            for at in range(4000)]
    found = report(tmp_path, COMPOSITE_EVENTS=rows)
    kept = Counter(row["thread"] for row in found["cpu_samples"])
    assert set(kept) == {70, 71, 72, 73} and all(200 < number < 300 for number in kept.values())
    assert codes(found)["samples_thinned"] == 4000 - kept.total()


SQL = """
SELECT globalTid & 16777215, count(*), sum(isSchedIn <> 0), sum(CASE WHEN isSchedIn <> 0 THEN then_ - start END),
    sum(CASE WHEN isSchedIn = 0 THEN then_ - start END)
FROM (SELECT *, lead(start) OVER (PARTITION BY globalTid ORDER BY start, rowid) AS then_ FROM SCHED_EVENTS) GROUP BY globalTid"""


@pytest.mark.captures
@pytest.mark.parametrize("path", sqlite_captures(), ids=[path.stem for path in sqlite_captures()])
def test_running_and_waiting_times_of_every_thread(path: Path) -> None:
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'SCHED_EVENTS'").fetchall():
            pytest.skip("no scheduling was recorded")
        expected = Counter(database.execute(SQL).fetchall())
    found: dict[tuple[int, int], list[Row]] = {}
    for name, batch in nsys.read([path]):
        for row in batch.to_pylist() if name == "thread_states" else ():
            found.setdefault((row["process_index"], row["thread"]), []).append(row)

    def total(rows: list[Row], state: str) -> int | None:
        known = [row["duration_ns"] for row in rows if row["state"] == state and row["duration_ns"] is not None]
        return sum(known) if known else None

    assert Counter((thread, len(rows), sum(row["state"] == "running" for row in rows), total(rows, "running"),
                    total(rows, "off_cpu")) for (_, thread), rows in found.items()) == expected
