"""The busy time of a GPU by kernel and sort of copy: the leaves of computing, communication and copies, which sum to each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from nsightlens.columns.arrays import Int, Mask, Places, numbered
from nsightlens.diagnosis.branches import Branches
from nsightlens.diagnosis.profile_arrays import COMMUNICATION, COMPUTING, COPIES, GpuWork, ProfileArrays
from nsightlens.diagnosis.window import Window
from nsightlens.intervals.coverage import Union, union
from nsightlens.intervals.disjoint import cut
from nsightlens.intervals.intersection import intersection
from nsightlens.intervals.order import one_track
from nsightlens.names.label import title
from nsightlens.names.process_label import process_label

_CONTRACTIONS = ("gemm", "convolution")
_FP32 = re.compile(r"sgemm|scudnn|f32f32_f32|<float|float, float|_fp32|ffma", re.I)
_NO_FP32 = re.compile(r"double|half|bfloat|bf16|f16|fp16|int8|gemv|gemmk1|dgemm|hgemm", re.I)
_FIRST_TENSOR_CORES = 7.0
"""Compute capability from which on a GPU has tensor cores."""
_TURING = 7.5


class OtherEnd(NamedTuple):
    """Whom a rank waits for in a send or receive: a pipeline stage where that is known, else a rank."""

    kind: Literal["stage", "rank"]
    number: int

    def __str__(self) -> str:
        """Return what people call it."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True, slots=True)
class BusyItem:
    """One kernel or sort of copy in a branch: its ns there, how many times it ran, what is known against it.

    name: as people call it; key: the whole name. blocks: the largest grid, -1 unknown. memory: pageable, pinned, managed or ''.
    issued: its ns by who issues it (issuers.py), where that is known. process: whose it is, where several share the GPU.
    hidden_ns: of copies, what more of them ran while kernels computed.
    """

    name: str
    key: str
    ns: int
    count: int
    family: str = ""
    plain: bool = False
    """Whether it is a product or convolution of FP32 numbers without tensor cores, by its name."""
    blocks: int = -1
    memory: str = ""
    issued: tuple[tuple[str, int], ...] = ()
    awaited: tuple[tuple[OtherEnd, int], ...] = ()
    """Its ns in which a send or receive waits for the other end."""
    process: str = ""
    hidden_ns: int = 0


def computing(recorded: ProfileArrays, work: GpuWork, by: Int, window: Window, branches: Branches) -> list[BusyItem]:
    """Return the kernels that computed, the largest first; the time of two at once is that of the first to begin.

    by: who issues each piece of work, as a code of `texts`. Where processes share the GPU, each has kernels of its own.
    """
    return _pieces(recorded, work, by, window, branches.computing, work.branch == COMPUTING)


def communication(recorded: ProfileArrays, work: GpuWork, by: Int, window: Window, branches: Branches) -> list[BusyItem]:
    """Return the kernels and copies of exposed communication."""
    return _pieces(recorded, work, by, window, branches.communication, work.branch == COMMUNICATION)


def copies(recorded: ProfileArrays, work: GpuWork, by: Int, window: Window, branches: Branches) -> list[BusyItem]:
    """Return the exposed copies by direction and kind of memory, with what kernels hide of each."""
    mask = work.branch == COPIES
    exposed = _pieces(recorded, work, by, window, branches.copies, mask)
    hidden = {(piece.key, piece.memory, piece.process): piece.ns
              for piece in _pieces(recorded, work, by, window, branches.computing, mask)}
    return [replace(piece, hidden_ns=hidden[piece.key, piece.memory, piece.process]) for piece in exposed]


def faulting(recorded: ProfileArrays, work: GpuWork, by: Int, window: Window, branches: Branches) -> list[BusyItem]:
    """Return the kernels that computed while their GPU handled page faults of managed memory: the time of that alone."""
    on_device = recorded.faults.device == work.device[0]
    handled = union(recorded.faults.start[on_device], recorded.faults.end[on_device])
    shared = intersection(handled.start, handled.end, branches.computing.start, branches.computing.end)
    if not len(shared.start):
        return []
    times = Union(shared.start, shared.end, np.zeros(len(shared.start), np.int64))
    return [piece for piece in _pieces(recorded, work, by, window, times, work.branch == COMPUTING) if piece.ns]


def _pieces(recorded: ProfileArrays, work: GpuWork, by: Int, window: Window, times: Union, mask: Mask) -> list[BusyItem]:
    in_window = np.flatnonzero(mask & (work.end > window.start) & (work.start < window.end))
    end, direction = work.end[in_window], work.direction[in_window]
    start = cut(work.start[in_window], end, one_track(len(in_window)))
    shared = intersection(start, np.maximum(end, start), times.start, times.end)
    process = work.process[in_window]
    what = numbered(numbered(direction, np.where(direction >= 0, work.memory[in_window], work.name[in_window])), process)
    kinds = int(what.max(initial=-1)) + 1
    ns = np.zeros(len(in_window), np.int64)
    np.add.at(ns, shared.place, shared.end - shared.start)
    sums, counts, first = np.zeros(kinds, np.int64), np.bincount(what, minlength=kinds), np.zeros(kinds, np.int64)
    np.add.at(sums, what, ns)
    first[what[::-1]] = in_window[::-1]
    issued = _issued(recorded, what, by[in_window], ns)
    items = [_piece(recorded, work, place, int(total), int(count), issued.get(number, ()))
             for number, (place, total, count) in enumerate(zip(first.tolist(), sums, counts, strict=True))]
    if (work.process != work.process[0]).any():
        items = [replace(piece, process=_label(recorded, int(work.process[place])))
                 for piece, place in zip(items, first.tolist(), strict=True)]
    return sorted(items, key=lambda piece: (-piece.ns, piece.key))


def _label(recorded: ProfileArrays, process: int) -> str:
    """Return what a process of a shared GPU is called: its rank, else its number."""
    rank = recorded.ranks.get(process)
    return f"rank {rank}" if rank is not None else f"process {process_label(recorded.text(process), ())}"


def _issued(recorded: ProfileArrays, what: Places, by: Int, ns: Int) -> dict[int, tuple[tuple[str, int], ...]]:
    """Return of each sort of work who issues it, with the ns of that."""
    pair = numbered(what, by)
    _, first = np.unique(pair, return_index=True)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, pair, ns)
    issuers: dict[int, tuple[tuple[str, int], ...]] = {}
    for place, total in zip(first.tolist(), sums.tolist(), strict=True):
        number = int(what[place])
        if by[place] >= 0:
            issuers[number] = (*issuers.get(number, ()), (recorded.text(int(by[place])), total))
    return issuers


def _piece(recorded: ProfileArrays, work: GpuWork, place: int, ns: int, count: int,
           issued: tuple[tuple[str, int], ...]) -> BusyItem:
    if work.direction[place] >= 0:
        direction, memory = recorded.text(int(work.direction[place])), recorded.text(int(work.memory[place]))
        return BusyItem(direction, direction, ns, count, "memory", memory=memory, issued=issued)
    family = recorded.text(int(work.family[place]))
    name = recorded.text(int(work.name[place]))
    return BusyItem(title(name), name, ns, count, family,
                    family in _CONTRACTIONS and work.tensor_cores[place] == 0 and _is_fp32(name), int(work.blocks[place]),
                    issued=issued)


def _is_fp32(name: str) -> bool:
    """Return whether the name of a kernel says that it multiplies FP32 numbers, and no others."""
    return bool(_FP32.search(name)) and not _NO_FP32.search(name)


def has_tensor_cores(vendor: str | None, name: str | None, capability: str | None) -> bool:
    """Return whether a GPU is known to have tensor cores; nothing is said of GPUs of others than NVIDIA.

    Turing (compute capability 7.5) has them, but for the GTX 16, which only its name shows.
    """
    number = as_number(capability)
    if vendor != "cuda" or number is None or number < _FIRST_TENSOR_CORES:
        return False
    return number != _TURING or (name is not None and "GTX 16" not in name)


def as_number(capability: str | None) -> float | None:
    """Return a compute capability as a number; None where it is unknown."""
    try:
        return None if capability is None else float(capability)
    except ValueError:
        return None


def low_fill(work: GpuWork, window: Window, sms: int) -> Int:
    """Return the places of kernels whose grid has fewer blocks than half of the SMs."""
    inside = (work.branch == COMPUTING) & (work.blocks > 0) & (work.end > window.start) & (work.start < window.end)
    return np.flatnonzero(inside & (2 * work.blocks < sms))
