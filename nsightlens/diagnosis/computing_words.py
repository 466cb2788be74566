"""The words for what a GPU computed: the kernel that takes most, what is known against it, and who issues it."""

from __future__ import annotations

from collections.abc import Iterable

from nsightlens.diagnosis.busy_time import BusyItem
from nsightlens.diagnosis.capture_words import short
from nsightlens.diagnosis.findings import Issuers, issuer_of, plain_ns, units_of
from nsightlens.diagnosis.tree import by_process
from nsightlens.diagnosis.verdict import COMPUTING, Sums, TimeShare
from nsightlens.views.figures import counted, number, share

_WORTH_PCT = 5
_UNEVEN_PCT = 60
"""Share of computing from which on one of the processes that share a GPU is named."""


def kernels(sums: Sums, part: TimeShare, first: bool) -> str:
    """Return what computing consists of: products without tensor cores, else the kernel that takes most."""
    pieces = sums.pieces[COMPUTING]
    whole = part.of_ns or sums.whole_ns
    plain = plain_ns(sums)
    if 4 * plain > part.ns:
        return f", {'of it ' if not first else ''}FP32 kernels without tensor cores {share(100 * plain / whole)}"
    graphs = sum(tree.graphs_ns for tree in sums.trees)
    if 2 * graphs > part.ns:
        return f", CUDA graphs recorded whole {share(100 * graphs / whole)}"
    if not pieces:
        return ""
    top = pieces[0]
    count = len([piece for piece in pieces if piece.ns])
    if 100 * top.ns < _WORTH_PCT * part.ns or (not first and 2 * top.ns < part.ns):
        issued = (each for piece in pieces for each in piece.issued)
        return f" in {number(count)} kernels{issued_by(issued, part.ns)}" if first else ""
    known = f"{_faults(sums, top)}{_fill(sums, part.ns)}"
    return f", {short(top.name)} {share(100 * top.ns / whole)}{known}{_process(sums, part.ns) if first else ''}"


def _faults(sums: Sums, kernel: BusyItem) -> str:
    """Return that a kernel spends most of its time on page faults."""
    met = [(tree.faults, piece.ns) for tree in sums.trees for piece in tree.faulting if piece.key == kernel.key]
    ns = sum(ns for _, ns in met)
    return f", {share(100 * ns / kernel.ns)} of that in {met[0][0]}" if met and 2 * ns > kernel.ns else ""


def _process(sums: Sums, computing_ns: int) -> str:
    """Return which process of a shared GPU computes most of the time, where one does."""
    shared = by_process(piece for tree in sums.trees if tree.processes > 1 for piece in tree.computing)
    name, own = next(((name, sum(piece.ns for piece in pieces)) for name, pieces in shared.items()), ("", 0))
    return f"; {name} has {share(100 * own / computing_ns)} of it" if _UNEVEN_PCT * computing_ns < 100 * own else ""


def _fill(sums: Sums, computing_ns: int) -> str:
    """Return how few blocks the kernels have that hold half of computing, where they cannot fill the GPU."""
    small = [tree.low_fill for tree in sums.trees if tree.low_fill]
    if 2 * sum(ns for _, ns, _ in small) < computing_ns:
        return ""
    units = units_of(sums)
    return f" with at most {counted(max(blocks for *_, blocks in small), 'block')} on {sums.trees[0].sms} {units}"


def issued_by(issued: Iterable[tuple[str, int]], ns: int) -> str:
    """Return who issues work of so many ns, as a clause."""
    who = issuer_of(issued, ns)
    return f", {within(who)}" if who.names else ""


def within(who: Issuers) -> str:
    """Return in what something was issued, or most of it."""
    return f"{'' if who.most else 'mostly '}in {short(who.names)}"
