"""Collectives matched over ranks, as arrays: a row per rank that takes part."""

from __future__ import annotations

from typing import NamedTuple

from nsightlens.columns.arrays import Int


class Exchanges(NamedTuple):
    """Matched communication kernels, or calls of MPI: an element for each call and rank.

    start, end: ns since the epoch, or of one clock; call: a number for each matched call; group: a number for its communicator.
    """

    call: Int
    group: Int
    rank: Int
    start: Int
    end: Int


class SlowLink(NamedTuple):
    """Large messages of collectives that reach less than half of the link that they cross: reached, peak: bytes per second."""

    operation: str
    reached: float
    peak: float
