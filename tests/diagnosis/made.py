"""Profiles made by hand for the tests of the diagnosis: GPU work with its launches, and ranges, in ns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nsightlens.diagnosis.profile_arrays import KERNEL, MEMORY, GpuWork, HostCalls, ProfileArrays, Ranges, Spans


class Piece(NamedTuple):
    """A piece of GPU work. launch: start and end of its call, None for none recorded; branch: as in recorded."""

    start: int
    end: int
    launch: tuple[int, int] | None = None
    branch: int = 0
    name: str = "k"
    process: str = "p"
    device: str = "gpu0"
    kind: int = KERNEL


class Range(NamedTuple):
    """A range of the one thread of process p. parent: the place of the range around it; depth: how many are around it."""

    start: int
    end: int
    name: str
    kind: str = "nvtx_push_pop"
    parent: int = -1
    depth: int = 0


class Call(NamedTuple):
    """An API call of the one thread of a process."""

    start: int
    end: int
    name: str
    process: str = "p"


def recorded(pieces: Sequence[Piece], calls: Sequence[Call] = (), ranges: Sequence[Range] = ()) -> ProfileArrays:
    """Return a profile that holds these: each launch is a call of its own, cudaLaunchKernel."""
    texts: dict[str, int] = {}

    def codes(names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([texts.setdefault(name, len(texts)) for name in names], np.int64)

    pieces = sorted(pieces)
    launches = [Call(*piece.launch, "cudaLaunchKernel", piece.process) for piece in pieces if piece.launch]
    every = sorted([*launches, *calls])
    place = {call: number for number, call in enumerate(every)}
    of = [place[Call(*piece.launch, "cudaLaunchKernel", piece.process)] if piece.launch else -1 for piece in pieces]
    none, zero = np.full(len(pieces), -1), np.zeros(len(pieces), np.int64)
    start, end, kind, branch = (np.array([getattr(piece, name) for piece in pieces], np.int64) for name in (
        "start", "end", "kind", "branch"))
    process, device, name = (codes([getattr(piece, name) for piece in pieces]) for name in ("process", "device", "name"))
    work = GpuWork(start, end, kind, branch, process, zero, device, zero, name, name, none, none, np.array(of, np.int64), none,
                   np.where(kind == MEMORY, name, -1), none)
    api = _spans(every, codes)
    names = [call.name for call in every]
    launching, copying, waiting = (np.array([word in name for name in names], np.bool_) for word in (
        "Launch", "Memcpy", "Synchronize"))
    none_of = _spans((), codes)
    return ProfileArrays(
        {"run": "r", "tool": "nsys", "profile_id": "x", "vendor": "cuda", "origin_epoch_ns": 0}, {}, work,
        HostCalls(api, launching, launching, copying, waiting, np.ones(len(every), np.bool_)),
        Ranges(_spans(ranges, codes), codes([one.kind for one in ranges]),
               np.array([one.parent for one in ranges], np.int64), np.array([one.depth for one in ranges], np.int64),
               np.arange(len(ranges)), np.zeros(len(ranges), np.bool_)),
        none_of, none_of, none_of, list(texts), texts)


def _spans(rows: Sequence[Call] | Sequence[Range], codes: object) -> Spans:
    assert callable(codes)
    process = codes([getattr(row, "process", "p") for row in rows])
    start, end = (np.array([getattr(row, name) for row in rows], np.int64) for name in ("start", "end"))
    return Spans(start, end, codes([row.name for row in rows]), process, np.zeros(len(rows), np.int64), process.copy())
