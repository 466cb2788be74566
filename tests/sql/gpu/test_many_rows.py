"""Sweeps that rely on the order in which rows stream: many rows, several threads, no insertion order kept."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from tests.catalogs import catalog

ROWS = 400_000
"""Some row groups of DuckDB (122,880 each), so that threads share them."""
Ints = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def many() -> Iterator[duckdb.DuckDBPyConnection]:
    """Kernels of two GPUs in no order of time, one in seven a collective, several at once; of no known call."""
    connection = catalog()
    connection.execute("SET threads = 4")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"""INSERT INTO kernels BY NAME
        SELECT 'r' AS run, 'nsys' AS tool, 'p' AS profile_id, 'p:0' AS process_id, 0 AS window_index, i AS kernel_id,
            'gpu' || i % 2 AS device_id, 1 AS context, 7 AS stream, i * 2654435761 % 900000007 AS start_ns,
            i * 40503 % 5000 AS duration_ns, i AS launch_id, CASE WHEN i % 7 = 0 THEN 'collective' ELSE 'gemm' END AS family,
            CASE WHEN i % 7 = 0 THEN 'talk' ELSE 'k' END || i % 3 AS name
        FROM range({ROWS}) AS t(i)""")
    yield connection
    connection.close()


def _intervals(connection: duckdb.DuckDBPyConnection, device: str, where: str = "true") -> tuple[Ints, Ints]:
    found = connection.execute(f"SELECT start_ns, start_ns + duration_ns AS end_ns FROM kernels WHERE device_id = ? AND {where} "
                               "ORDER BY start_ns", [device]).fetchnumpy()
    return np.asarray(found["start_ns"]), np.asarray(found["end_ns"])


def _union(starts: Ints, ends: Ints) -> int:
    reached = np.maximum.accumulate(ends)
    begin = np.maximum(starts, np.concatenate([starts[:1], reached[:-1]]))
    return int(np.maximum(ends - begin, 0).sum())


def test_busy_time(many: duckdb.DuckDBPyConnection) -> None:
    rows = many.execute("SELECT device_id, busy_ns, compute_ns, communication_ns, overlap_ns FROM busy_time()").fetchall()
    assert len(rows) == 2
    for device, busy, compute, communication, overlap in rows:
        alone = {name: _union(*_intervals(many, device, condition))
                 for name, condition in (("all", "true"), ("compute", "family = 'gemm'"), ("talk", "family = 'collective'"))}
        assert (busy, compute, communication) == (alone["all"], alone["compute"], alone["talk"])
        assert overlap == compute + communication - busy > 0


def test_idle_time(many: duckdb.DuckDBPyConnection) -> None:
    rows = many.execute("SELECT device_id, busy_ns, unlinked_ns, idle_ns FROM idle_breakdown(per := 'device')").fetchall()
    assert {(device, busy) for device, busy, *_ in rows} == {
        (device, _union(*_intervals(many, device))) for device in ("gpu0", "gpu1")}
    assert all(unlinked == idle > 0 for _, _, unlinked, idle in rows)


def test_overlap_by_name(many: duckdb.DuckDBPyConnection) -> None:
    """What computed beside each collective is what had computed by its end less what had by its start."""
    found = many.execute("SELECT device_id, overlapped_ns FROM exposed_communication() WHERE name = 'talk1'").fetchall()
    assert [device for device, _ in found] == ["gpu0", "gpu1"]
    for device, overlapped in found:
        first, last = _intervals(many, device, "name = 'talk1'")
        computing = _intervals(many, device, "family = 'gemm'")
        assert overlapped == int((_busy_until(*computing, last) - _busy_until(*computing, first)).sum()) > 0


def _busy_until(starts: Ints, ends: Ints, at: Ints) -> Ints:
    """Return how long the union of intervals, sorted by start, had lasted at each time."""
    reached = np.maximum.accumulate(ends)
    begin = np.maximum(starts, np.concatenate([starts[:1], reached[:-1]]))
    begin, until = begin[ends > begin], ends[ends > begin]
    before = np.concatenate([[0], np.cumsum(until - begin)])
    place = np.searchsorted(begin, at, side="right")
    last = np.maximum(place - 1, 0)
    lasted: Ints = np.where(place > 0, before[last] + np.minimum(at, until[last]) - begin[last], 0)
    return lasted
