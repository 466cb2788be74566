"""Name of a range, operator, function or kernel -> the collective operation that it names: a pure function of strings."""

from __future__ import annotations

import re

OPERATIONS = ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce", "gather", "scatter", "barrier",
              "send", "recv")
POINT_TO_POINT = frozenset(("send", "recv"))
"""Operations of two ranks: no collectives."""
UNEVEN = frozenset(("alltoall", "allgather", "reducescatter", "gather", "scatter"))
"""Operations whose payload may differ from rank to rank."""

NAMING = r"^(?:nccl|rccl|xccl|hccl|ucc|gloo|mpi):|^_?c10d(?:_functional)?::|^symm_mem::|^p?nccl[A-Z][A-Za-z]*$"
"""Names of ranges that may name one: PyTorch's process groups (nccl:all_to_all), its operators, also those that communicate
through symmetric memory, NCCL's functions."""

UNNAMED = "unnamed"
"""What a range says that communicates, without saying how."""
COMMUNICATING = r"^(?:nccl|rccl|xccl|hccl|ucc|gloo|mpi):|^record_param_comms$|^p?ncclGroupEnd$"
"""Names of ranges in which work is launched that communicates, whether or not they say how."""

_PREFIX = re.compile(r"^(?:[nr]ccl\w*?Kernel_|[a-z]+:(?!:)|_?c10d(?:_functional)?::"
                     r"|symm_mem::\w*?(?=all_(?:reduce|gather|to_all)|reduce_scatter|broadcast)|p?nccl(?=[A-Z]))")
_UNITED = re.compile(r"[^a-z]+")
_STEMS = (
    ("barrier", "barrier"), ("allreducebarrier", "barrier"), ("allreduce", "allreduce"), ("reducescatter", "reducescatter"),
    ("allgather", "allgather"), ("alltoall", "alltoall"), ("broadcast", "broadcast"), ("bcast", "broadcast"),
    ("reduce", "reduce"), ("gather", "gather"), ("scatter", "scatter"), ("sendrecv", None), ("isend", "send"), ("send", "send"),
    ("irecv", "recv"), ("recv", "recv"),
)
"""(beginning of a name in small letters alone, operation), the first that fits; None: it may be any."""


def operation(name: str) -> str | None:
    """Return which of OPERATIONS a name says (`nccl:_all_gather_base`, `all_to_allv`, `ncclAllReduce`), None for none."""
    stem = _UNITED.sub("", _PREFIX.sub("", name).lower())
    return next((operation for beginning, operation in _STEMS if stem.startswith(beginning)), None)
