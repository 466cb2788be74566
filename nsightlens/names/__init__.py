"""Kernel name -> short name, kernel_key and family: pure functions of strings, cached, linear in the length of the name."""

from __future__ import annotations

from functools import lru_cache

from nsightlens.names.demangle import demangle
from nsightlens.names.families import FAMILIES, OTHER, classify
from nsightlens.names.key import Parsed, parse

__all__ = ["FAMILIES", "OTHER", "RULES_VERSION", "demangle", "family", "kernel_key", "short_name"]

RULES_VERSION = 1
"""Version of the rules behind short_name, kernel_key and family: raised whenever one of them answers differently."""


@lru_cache(maxsize=1 << 14)
def _cached(name: str, repair: bool) -> Parsed:
    return parse(demangle(name), repair)


def _parsed(name: str, tool: str | None = None) -> Parsed:
    """Return the parts of a name; only one that shows ncu's marks can be damaged, so that most are read once."""
    damaged = tool in (None, "ncu") and ("unnamed>" in name or " lambda(" in name)
    return _cached(name, damaged)


def short_name(name: str) -> str:
    """Return the base name: without namespaces, template arguments, return type and parameters."""
    return _parsed(name).short


def kernel_key(name: str, tool: str | None = None) -> str:
    """Return the canonical name, the same for the spellings of nsys, ncu and Kineto (key.py lists what it drops).

    `tool`: who printed the name; what only ncu does to names is undone for "ncu" and where it is not known.
    """
    return _parsed(name, tool).key


def family(name: str, key: str | None = None) -> str:
    """Return the family of a kernel: gemm, convolution, attention, ... or "other" where its name does not tell.

    `key`: its kernel_key, where it is known already.
    """
    parsed = _parsed(name)
    return classify(key or parsed.key, parsed.scope)
