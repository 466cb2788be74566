"""The rules that shape the stored columns of a profile, each with its version, and the signature that holds them.

A room raises the RULES_VERSION of its rule when it answers differently. The profiles for which that rule matters are then older
than the rules: an ingest or refresh reads them again, or, where only the matching changed, makes their matches again.
"""

from __future__ import annotations

from nsightlens import names
from nsightlens.attribution import attribute, launch_correlation, overruns
from nsightlens.matching import cross_tool
from nsightlens.readers import READERS

_TIMELINES = ("nsys", "kineto")
_KERNELS = (*_TIMELINES, "ncu")


def _reading(tool: str) -> str:
    """Return the versions of the rules that rows of `tool` follow from when a file is read."""
    versions = {"reader": next((reader.RULES_VERSION for reader in READERS if tool == reader.TOOL), 0)}
    if tool in _KERNELS:
        versions |= {"names": names.RULES_VERSION, "launches": launch_correlation.RULES_VERSION}
    if tool in _TIMELINES:
        versions |= {"attribution": attribute.RULES_VERSION, "overruns": overruns.RULES_VERSION}
    return " ".join(f"{rule}={version}" for rule, version in versions.items())


def _matching(tool: str) -> str:
    return f"matching={cross_tool.RULES_VERSION}" if tool in _KERNELS else ""


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
