"""A simulated job of many ranks under the PyTorch profiler: tensor- and data-parallel groups, and faults whose truth is known.

Each step of each rank: a GEMM and an all-reduce over its tensor-parallel group (8 neighbours), and at its end an all-reduce over
its data-parallel group (the ranks of the same place in every tensor-parallel group). A collective begins on a rank when that is
ready, and ends on all of a group together. The faults: the host of one rank is late in every step, the link of one data-parallel
group is slow, the clocks of the nodes (8 ranks each) are off and drift, and some ranks have no trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Times = np.ndarray[Any, np.dtype[np.float64]]

_NODE = 8
_GEMM_US, _TENSOR_US, _DATA_US = 90.0, 20.0, 60.0
_LATE_US, _SLOW_US = 250.0, 180.0
_LAUNCH_US = 6.0
_BASE_NS = 7_889_238_000_000_000 * 222
_PROPERTIES = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000, "computeMajor": 9, "computeMinor": 0,
               "numSms": 132, "maxThreadsPerMultiprocessor": 2048}


@dataclass(frozen=True, slots=True)
class Job:
    """What is simulated. late_us of rank `late` in every step; `slow`: the data-parallel group whose link is slow."""

    ranks: int
    steps: int
    late: int
    slow: int
    missing: tuple[int, ...]


def job(ranks: int, steps: int) -> Job:
    """Return a job of so many ranks (a multiple of 8, 32 or more) with its faults in their middle."""
    return Job(ranks, steps, ranks // 2 + 3, 5, (1, ranks // 3 + 1, ranks - 2))


def write(folder: Path, what: Job, seed: int = 1) -> dict[str, int]:
    """Write a trace per rank that is not missing, and truth.json; return the counts of it."""
    folder.mkdir(parents=True, exist_ok=True)
    begins, ends = _simulated(what, np.random.default_rng(seed))
    clocks = np.random.default_rng(seed + 1)
    offset_us = clocks.uniform(-400, 400, what.ranks // _NODE)
    drift = clocks.uniform(-2e-6, 2e-6, what.ranks // _NODE)
    there = [rank for rank in range(what.ranks) if rank not in what.missing]
    for rank in there:
        node = rank // _NODE

        def local(us: Times, node: int = node) -> Times:
            return np.asarray(us * (1 + drift[node]) + offset_us[node] + 10_000)

        _write_trace(folder / f"rank{rank}.json", what, rank, local(begins[:, :, rank]), local(ends[:, :, rank]))
    late = begins[1, :, what.late]
    truth = {"late_rank": what.late, "slow_group": what.slow, "missing": list(what.missing), "late_us_per_step": _LATE_US,
             "node_offset_us": [round(float(value), 3) for value in offset_us], "last_step_us": round(float(late[-1]), 3)}
    (folder / "truth.json").write_text(json.dumps(truth))
    return {"ranks": len(there), "kernels": len(there) * what.steps * 3, "collectives_of_a_rank": 2 * what.steps}


def _simulated(what: Job, dice: np.random.Generator) -> tuple[Times, Times]:
    """Return when each kernel (GEMM, tensor-parallel, data-parallel) of each step begins and ends on each rank, in true us."""
    shape = (3, what.steps, what.ranks)
    begins, ends = np.zeros(shape), np.zeros(shape)
    groups = np.arange(what.ranks).reshape(-1, _NODE)
    ready = np.zeros(what.ranks)
    for step in range(what.steps):
        late = np.where(np.arange(what.ranks) == what.late, _LATE_US, 0.0)
        begins[0, step] = ready + late + 5
        ends[0, step] = begins[0, step] + _GEMM_US + dice.uniform(0, 2, what.ranks)
        begins[1, step] = ends[0, step] + 1
        ends[1, step] = (begins[1, step].reshape(-1, _NODE).max(axis=1) + _TENSOR_US).repeat(_NODE)
        begins[2, step] = ends[1, step] + 1 + dice.uniform(0, 1, what.ranks)
        last = begins[2, step][groups].max(axis=0)
        ends[2, step] = np.tile(last + _DATA_US + np.where(np.arange(_NODE) == what.slow, _SLOW_US, 0.0), len(groups))
        ready = ends[2, step]
    return begins, ends


def _write_trace(path: Path, what: Job, rank: int, begins: Times, ends: Times) -> None:
    place, group = rank % _NODE, rank // _NODE
    tensor = {"name": f"{group + 1}", "desc": "tensor", "ranks": list(range(group * _NODE, (group + 1) * _NODE))}
    data = {"name": f"{what.ranks // _NODE + place + 1}", "desc": "data", "ranks": list(range(place, what.ranks, _NODE))}
    events = [event for step in range(what.steps)
              for event in _of_a_step(step, rank, begins[:, step], ends[:, step], tensor, data)]
    config = [{"pg_name": one["name"], "pg_desc": one["desc"], "backend_config": "cuda:nccl", "pg_size": len(one["ranks"]),
               "ranks": one["ranks"]} for one in (tensor, data)]
    trace = {"schemaVersion": 1, "deviceProperties": [_PROPERTIES], "cupti_version": 24, "displayTimeUnit": "ms",
             "baseTimeNanoseconds": _BASE_NS, "host_name": f"node{group}",
             "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": what.ranks, "pg_count": 2, "pg_config": config},
             "traceEvents": events}
    path.write_text(json.dumps(trace))


def _of_a_step(
    step: int, rank: int, begins: Times, ends: Times, tensor: dict[str, Any], data: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    kernels = (("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", None),
               ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", tensor),
               ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", data))
    for at, (name, group) in enumerate(kernels):
        number = 3 * step + at + 1
        yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1000 + rank, "tid": 1000 + rank,
               "ts": round(float(begins[at]) - _LAUNCH_US, 3), "dur": 3.0,
               "args": {"External id": number, "cbid": 211, "correlation": number}}
        said = {} if group is None else {
            "Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
            "Group size": len(group["ranks"]),
            "dtype": "BFloat16" if group is tensor else "Float", "Process Group Name": group["name"],
            "Process Group Description": group["desc"], "Process Group Ranks": str(group["ranks"]), "Seq": step + 1}
        yield {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": round(float(begins[at]), 3),
               "dur": round(float(ends[at] - begins[at]), 3),
               "args": {"device": 0, "context": 1, "stream": 7, "correlation": number, "registers per thread": 96,
                        "shared memory": 0, "grid": [24, 1, 1], "block": [512, 1, 1], **said}}
