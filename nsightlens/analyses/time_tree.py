"""Where the time of each GPU went: one window, five branches that sum to it to the ns, and their leaves, a row for each.

The window is the steady steps, from the GPU end of the step before the first of them to the GPU end of the last; without two
of them, first to last GPU work. Each ns of it goes to the first that applies: computing (kernels that do not communicate, and
CUDA graphs recorded whole), communication, copies, not recorded (launched, and not started for another reason than the queue:
in gaps over 50 µs, from 20 µs after the return of the launch call; or next to launches without a kernel), idle. Idle is
divided by what the thread did that launched the work after each gap; start-up (first call of the process to its first GPU
work) and wind-down (last GPU work to the end of the last call) likewise: they are no part of the window. Where processes share
a GPU, each has work, start-up and wind-down of its own.
@scope run
@topic steps
@needs gpu_work
@requires _bounded_kernels, _collective_kernels, _gpu_work, _profile_executions, _serving_names, api_calls, devices, kernels
@requires memory_ops
@requires _process_groups, advice, diagnostics, synchronizations, _ncu_by_config, _tensor_core_counters, speed_of_light
@requires _device_links, collective_summary, cpu_samples, frames, sampled_frames
@requires mpi_calls, os_calls, overheads, page_faults, processes, profiles, range_projections, ranges
@assumes The tool put host and GPU on one clock, and a call launched the work that has its correlation id.
@assumes A thread that does nothing recorded waits for another one of its process that launches work, where that does something.
@assumes Kernels of communication are those of NCCL, RCCL, MSCCL, DeepEP, NVSHMEM and of custom collectives, by their names.
@first node, depth, total_ns, share_pct, count
@column run           Run (one workload in one configuration).
@column tool          nsys or kineto. Never add them up: they saw the same work.
@column rank          Rank of the process whose window it is; NULL where unknown.
@column profile_id    Profile; key of `profiles`.
@column process_id    OS process whose start-up or wind-down it is; else the one whose work began first on the GPU.
@column window_index  Capture window of the process, from 0.
@column device_id     The physical GPU.
@column row_index     Place of the row in its tree, from 0: the window.
@column parent_index  row_index of the row that it is a part of; NULL for the window, start-up and wind-down.
@column depth         0 for the window, start-up and wind-down; 1 for branches; then leaves.
@column node          window, a branch, a cause, or the name of a process, kernel, call, range or direction.
@column count         Kernels, copies or gaps that have some of it; of the window its steady steps; NULL where not counted.
@column start_ns      Start of the window, relative to the profile's origin; NULL but for the window.
@column total_ns      How long.
@column share_pct     total_ns as a share of the window, to one decimal; NULL for what is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._run_judgements import judgements
from nsightlens.diagnosis.tree import Tree, nodes

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("rank", pa.int32()), ("profile_id", pa.string()), ("process_id", pa.string()),
    ("window_index", pa.int32()), ("device_id", pa.string()), ("row_index", pa.int32()), ("parent_index", pa.int32()),
    ("depth", pa.int32()), ("node", pa.string()), ("count", pa.int64()), ("start_ns", pa.int64()), ("total_ns", pa.int64()),
    ("share_pct", pa.float64())])
_WHERE = ("run", "tool", "rank", "profile_id", "process_id", "window_index", "device_id")
_OUTSIDE = ("start-up", "wind-down", "queued before the first GPU work")


def analyse(ask: Ask) -> pa.Table:
    """Return the trees of all runs, ranks and devices."""
    return pa.Table.from_pylist([row for found in judgements(ask) for tree in found.trees for row in _rows(tree)], schema=_SCHEMA)


def _rows(tree: Tree) -> Iterator[dict[str, Any]]:
    where = {name: getattr(tree, name) for name in _WHERE}
    whole = tree.window.length
    yield where | {"row_index": 0, "parent_index": None, "depth": 0, "node": "window", "count": tree.window.steps or None,
                   "start_ns": tree.window.start, "total_ns": whole, "share_pct": 100.0 if whole else None}
    places: dict[tuple[str, ...], int] = {}
    for place, node in enumerate(nodes(tree), 1):
        places[node.path] = place
        is_outside = node.path[0] in _OUTSIDE
        parent = places.get(node.path[:-1]) if len(node.path) > 1 else None if is_outside else 0
        yield where | {"process_id": node.process_id or tree.process_id} | {
            "row_index": place, "parent_index": parent, "depth": len(node.path) - is_outside, "node": node.path[-1],
            "count": node.count, "start_ns": None, "total_ns": node.ns,
            "share_pct": None if is_outside or not whole else round(100 * node.ns / whole, 1)}
