"""Durations that no GPU has, but a file may hold, must not take a view down: what does not fit into 63 bits is unknown."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from nsightlens.readers.nsys.columns import MAX_DURATION_NS
from nsightlens.views import registry
from tests.catalogs import catalog

ROWS = 1 + (1 << 63) // MAX_DURATION_NS


@pytest.fixture(scope="module")
def absurd() -> Iterator[duckdb.DuckDBPyConnection]:
    where = {"run": "base", "tool": "nsys", "profile_id": "p", "process_id": "p/0", "window_index": 0}
    work = {**where, "rank": 0, "device": 0, "device_id": "g", "stream": 7, "duration_ns": MAX_DURATION_NS}
    kernel = {**work, "name": "k", "short_name": "k", "kernel_key": "k", "family": "gemm", "op": "op", "module": "m"}
    call = {**where, "thread": 1, "duration_ns": MAX_DURATION_NS, "name": "cudaLaunchKernel", "api": "runtime"}
    span = {**where, "thread": 1, "duration_ns": MAX_DURATION_NS, "kind": "nvtx_push_pop", "name": "r"}
    yield catalog(
        kernels=[{**kernel, "kernel_id": i, "start_ns": i, "launch_id": i, "correlation_id": i} for i in range(ROWS)],
        memory_ops=[{**work, "memory_op_id": i, "start_ns": i, "kind": "memcpy", "direction": "HtoD", "bytes": 1 << 62}
                    for i in range(ROWS)],
        api_calls=[{**call, "launch_id": i, "start_ns": i, "correlation_id": i} for i in range(ROWS)],
        ranges=[{**span, "range_id": i, "start_ns": i} for i in range(ROWS)],
    )


@pytest.mark.parametrize("name", registry.public(registry.load()))
def test_sums_beyond_63_bits_stop_no_view(absurd: duckdb.DuckDBPyConnection, name: str) -> None:
    absurd.execute(*registry.query(registry.load()[name], {})).fetchall()


def test_a_sum_beyond_63_bits_is_unknown(absurd: duckdb.DuckDBPyConnection) -> None:
    assert absurd.execute("SELECT instances, total_ns FROM kernel_summary").fetchall() == [(ROWS, None)]
