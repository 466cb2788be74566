"""The rules that shape the stored columns of a profile, each with its version, and the signature that holds them.

A version is raised when its rule answers differently. The profiles for which that rule matters are then older than the rules:
an ingest or refresh reads them again, or, where only the matching changed, makes their matches again. The versions stand here
and not with their rules, so that a store opens without loading a reader.
"""

from __future__ import annotations

VERSIONS = {
    "names": 7,
    "launches": 2,
    "attribution": 3,
    "overruns": 1,
    "matching": 4,
    "nsys": 14,
    "ncu": 5,
    "kineto": 13,
    "steps": 1,
    "nccl_inspector": 1,
    "flight_recorder": 1,
}
"""Rule -> version.

names: short_name, kernel_key, family or tensor_cores of a name. launches: the launching call of GPU work, its queue delay or its
place in the order of launches. attribution: its operator, range, module, phase, step or collective. overruns: which kernel
outlasts what its stream allows. matching: which launches are paired; `matches` alone are then made again, and no file is read.
All others are readers, by their TOOL: other rows of the same file.
"""
_TIMELINES = ("nsys", "kineto")
_KERNELS = (*_TIMELINES, "ncu")


def _reading(tool: str) -> str:
    """Return the versions of the rules that rows of `tool` follow from when a file is read."""
    rules = (("names", "launches") if tool in _KERNELS else ()) + (("attribution", "overruns") if tool in _TIMELINES else ())
    return " ".join((f"reader={VERSIONS.get(tool, 0)}", *(f"{rule}={VERSIONS[rule]}" for rule in rules)))


def _matching(tool: str) -> str:
    return f"matching={VERSIONS['matching']}" if tool in _KERNELS else ""


def signature(content: str, tool: str) -> str:
    """Return the signature of a profile of `tool` that is read now. content: a digest of its files."""
    return f"{content}|{_reading(tool)}|{_matching(tool)}"


def matched_now(signature: str, tool: str) -> str:
    """Return the signature of a profile that was read before and whose matches are made now."""
    return f"{rows_of(signature)}|{_matching(tool)}"


def rows_of(signature: str) -> str:
    """Return the part of a signature that its rows follow from: all but the matching."""
    return signature.rpartition("|")[0]


def is_read_by_older(signature: str, tool: str) -> bool:
    """Return whether a profile must be read again to follow the rules."""
    return rows_of(signature).partition("|")[2] != _reading(tool)


def is_older(signature: str, tool: str) -> bool:
    """Return whether the profile does not follow the rules of this version, in its rows or in its matches."""
    return signature.partition("|")[2] != f"{_reading(tool)}|{_matching(tool)}"
