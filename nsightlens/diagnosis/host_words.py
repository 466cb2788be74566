"""The words for what the host did: the clauses of sentences about idle time, start-up and wind-down."""

from __future__ import annotations

from nsightlens.diagnosis.capture_words import short
from nsightlens.diagnosis.computing_words import within
from nsightlens.diagnosis.findings import issuer_of
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.os_calls import DRIVER, MEMORY, MESSAGES, OTHERS, PROGRAMS, READS, SLEEPS, THREADS, WRITES, by_sort
from nsightlens.views.figures import share

_DOES = {
    "recording graphs": "while the host records graphs",
    "first use": "in the first launch of kernels",
    "another GPU": "while another GPU works",
    "context creation": "while the context is created",
    "compiling": "while the host compiles",
    "data loader": "while the host waits for the data loader",
    "profiler": "while the profiler holds the host",
    "fence": "while the host waits for work from before the capture",
    "waiting": "while the host waits",
    "pause": "in pauses of the host",
    "API calls": "while the host is in API calls",
    "launching": "while the host launches",
    "MPI": "while the host communicates",
    "ranges": "while the host is in ranges",
    "operators": "while the host is in operators",
    "between kernels": "between kernels launched in time",
    "unknown": "while the host is outside of recorded calls",
    "no launches": "for unknown reasons (no launch calls were recorded)",
}
OS_CALLS = {
    READS: "reads files", WRITES: "writes files", SLEEPS: "sleeps", THREADS: "waits for another thread",
    MESSAGES: "waits for messages", PROGRAMS: "waits for another program", MEMORY: "maps memory", DRIVER: "is in a driver",
    OTHERS: "is in OS calls",
}
"""What a host does in calls of the operating system."""


def during(leaf: Leaf) -> str:
    """Return what the host did in idle time, as a clause with the names that hold half of it."""
    if leaf.cause == "OS calls":
        return f"while the host {_os_calls(leaf)}"
    if leaf.cause == "unknown" and leaf.sampled and leaf.sampled.where:
        if leaf.sampled.is_profiler:
            return f"{_DOES['profiler']} ({short(leaf.sampled.where)}, by CPU samples)"
        return f"while the host is in {short(leaf.sampled.where)} (by CPU samples)"
    return f"{_DOES[leaf.cause]}{_named(leaf)}"


def outside(leaf: Leaf, *, is_named: bool) -> str:
    """Return the cause of start-up or wind-down. is_named: with the call that it is."""
    if leaf.cause == "unknown":
        where = leaf.sampled.where if leaf.sampled else ""
        return f"the host in {short(where)}, by CPU samples" if where else "the host, outside of recorded calls"
    if leaf.cause == "OS calls":
        return f"the host {_os_calls(leaf)}"
    names = ", ".join(short(name) for name, _ in leaf.main) if is_named else ""
    return f"{leaf.cause} in {names}" if names else leaf.cause


def _os_calls(leaf: Leaf) -> str:
    sort, calls = by_sort(leaf.names)[0]
    if 2 * sum(ns for _, ns in calls) < leaf.ns:
        return f"is in OS calls{_named(leaf)}"
    return f"{OS_CALLS[sort]} ({short(calls[0][0])})"


def _named(leaf: Leaf) -> str:
    """Return the name that holds half of a leaf, or the two that do, and who issues them; else the largest with its share.

    One below a fifth says nothing of the others.
    """
    largest, ns = next(((name, ns) for name, ns in leaf.names if name), ("", 0))
    if leaf.cause == "data loader" or 5 * ns < leaf.ns or not largest:
        return ""
    several = leaf.main
    if not several:
        return f" ({short(largest)} {share(100 * ns / leaf.ns)} of that)"
    by = issuer_of([(by, ns) for name, by, ns in leaf.issued if name in dict(several)], sum(ns for _, ns in several))
    return f" ({', '.join(short(name) for name, _ in several)}{f' {within(by)}' if by.names else ''})"
