"""Bus bandwidths of 1,000 floats on each of 8 ranks in 100 us, as nccl-tests computes them by hand."""

from __future__ import annotations

import pytest

from tests.catalogs import asking, catalog

MB_PER_S = {
    "allreduce": 70, "allreduce_coalesced": 70, "_allgather_base": 280, "allgather_into_tensor_coalesced": 280, "all_gather": 280,
    "_reduce_scatter_base": 280, "reduce_scatter_tensor_coalesced": 280, "gather": 280, "scatter": 280, "alltoall_base": 280,
    "broadcast": 40, "_broadcast_oop": 40, "reduce": 40, "_reduce_oop": 40,
}
_ALL = ("reduce_scatter", "scatter", "alltoall")
"""Operations whose input is that of all ranks."""


@pytest.mark.parametrize("collective", MB_PER_S)
def test_each_operation_has_its_factor_whatever_its_suffixes(collective: str) -> None:
    size = 4000 * (8 if any(name in collective for name in _ALL) and "allgather" not in collective else 1)
    kernel = {"kernel_id": 1, "run": "r", "tool": "kineto", "profile_id": "p", "process_id": "p:0", "window_index": 0, "rank": 0,
              "family": "collective", "name": "ncclDevKernel_SendRecv", "start_ns": 0, "duration_ns": 100_000,
              "collective": collective, "message_bytes": size, "group_size": 8, "group_name": "0", "group_seq": 1}
    (row,) = asking(catalog(kernels=[kernel]))("SELECT bus_bytes_per_s FROM collective_summary", []).to_pylist()
    assert row["bus_bytes_per_s"] == MB_PER_S[collective] * 1e6
