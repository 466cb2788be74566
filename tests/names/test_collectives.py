"""Operations: what ranges of PyTorch, functions and kernels of NCCL say."""

from __future__ import annotations

import re

import pytest

from nsightlens.names.collectives import NAMING, OPERATIONS, operation


@pytest.mark.parametrize(("name", "expected"), [
    ("nccl:all_to_all", "alltoall"), ("nccl:_all_gather_base", "allgather"), ("nccl:all_reduce_barrier", "barrier"),
    ("nccl:send 0->1", "send"), ("nccl:recv 0<-1", "recv"), ("nccl:coalesced", None), ("rccl:all_reduce", "allreduce"),
    ("c10d::alltoall_base_", "alltoall"), ("c10d::_reduce_scatter_base_", "reducescatter"), ("c10d::reduce_", "reduce"),
    ("_c10d_functional::all_gather_into_tensor", "allgather"), ("_c10d_functional::wait_tensor", None),
    ("ncclAllReduce", "allreduce"), ("pncclBcast", "broadcast"), ("ncclSend", "send"), ("ncclGroupEnd", None),
    ("ncclCommCount", None), ("ncclRedOpCreatePreMulSum", None),
])
def test_ranges_name_operations(name: str, expected: str | None) -> None:
    assert re.search(NAMING, name)
    assert operation(name) == expected


@pytest.mark.parametrize(("name", "expected"), [
    ("ncclDevKernel_AllReduce_Sum_f16_RING_LL", "allreduce"), ("ncclKernel_AllGather_RING_LL_Sum_int8_t", "allgather"),
    ("ncclSymkDevKernel_ReduceScatter_LL", "reducescatter"), ("ncclDevKernel_Generic_4", None), ("rccl_main_kernel", None),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", None), ("_allgather_base", "allgather"), ("all_to_allv", "alltoall"),
    ("allreduce_coalesced", "allreduce"), ("coalesced", None), ("dispatch", None),
])
def test_kernels_and_the_words_of_tools(name: str, expected: str | None) -> None:
    assert operation(name) == expected


@pytest.mark.parametrize("name", [
    "aten::sum", "record_param_comms", "ncclient", "## alltoall_fwd_single ##", "c10d_helper", "a nccl:b"])
def test_other_ranges_name_none(name: str) -> None:
    assert not re.search(NAMING, name)


def test_all_operations_are_known() -> None:
    assert {operation(name) for name in OPERATIONS} == set(OPERATIONS)
