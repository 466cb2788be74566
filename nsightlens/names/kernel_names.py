"""Kernel name -> short name, kernel_key, family, tensor cores: pure functions of strings, cached, linear in its length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from nsightlens.names.demangle import demangle
from nsightlens.names.distinct import distinct
from nsightlens.names.families import classified, classify
from nsightlens.names.key import ParsedName, parse
from nsightlens.names.label import shorten
from nsightlens.names.tensor_cores import used, uses

_LAUNCHED = "  grid "
"""What is between a kernel and its launch configuration, where an item of a view is both."""
_TOGETHER = 1 << 13
"""So many names are asked of the tables of patterns at once: each name is read once, and stays in the cache meanwhile."""


class Facts(NamedTuple):
    """What follows from each of the distinct names of one profile."""

    short_name: list[str]
    kernel_key: list[str]
    family: list[str]
    tensor_cores: list[bool | None]


_readable = lru_cache(maxsize=2 * _TOGETHER)(demangle)


@lru_cache(maxsize=2 * _TOGETHER)
def _cached(name: str, repair: bool) -> ParsedName:
    return parse(_readable(name), repair)


def _parsed(name: str, tool: str | None = None) -> ParsedName:
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


def facts(recorded: Sequence[str], tool: str) -> Facts:
    """Return what the other functions do of the distinct names of one profile: many cost less at once.

    No two keys are the same. Names that share one (kernels that differ in their namespaces only) get these behind it,
    `f<A> [one::cuda]`; what even they do not tell apart is its own key.
    """
    found = Facts([], [], [], [])
    for begin in range(0, len(recorded), _TOGETHER):
        names = recorded[begin : begin + _TOGETHER]
        read, keys = [_parsed(name) for name in names], [kernel_key(name, tool) for name in names]
        shorts = [parsed.short for parsed in read]
        families = classified([key or parsed.key for key, parsed in zip(keys, read, strict=True)],
                              [parsed.scope for parsed in read])
        found.short_name.extend(shorts)
        found.kernel_key.extend(keys)
        found.family.extend(families)
        found.tensor_cores.extend(uses([_readable(name) for name in names], shorts, families))
    return found._replace(kernel_key=_disambiguate(recorded, found.kernel_key, tool))


def _disambiguate(recorded: Sequence[str], keys: list[str], tool: str) -> list[str]:
    """Return the keys of names, and for names that share a key what differs."""
    for fuller in (lambda name, key: f"{key} [{' '.join(_parsed(name, tool).dropped)}]", lambda name, _: name):
        count = Counter(keys)
        if len(count) == len(keys):
            break
        keys = [fuller(name, key) if count[key] > 1 else key for name, key in zip(recorded, keys, strict=True)]
    return keys


def family(name: str, key: str | None = None) -> str:
    """Return the family of a kernel: gemm, convolution, attention, ... or "other" where its name does not say.

    `key`: its kernel_key, where it is known already.
    """
    parsed = _parsed(name)
    return classify(key or parsed.key, parsed.scope)


def tensor_cores(name: str, family: str) -> bool | None:
    """Return whether a kernel of that name and family runs on tensor cores; None where its name does not say."""
    return used(_readable(name), _parsed(name).short, family)


def is_launch(text: str) -> bool:
    """Return whether an item of a view is a kernel with its launch configuration."""
    return _LAUNCHED in text


def labels(names: Iterable[str], longest: int = 60) -> dict[str, str]:
    """Return {name: label}: names as people want them in a narrow column, without parameters and plumbing, no two the same.

    Labels have at most `longest` characters. Kernels that would share one have behind it the word in which their kernel_keys
    differ, else that of their namespaces, else a number. A launch configuration behind a name ("f  grid 2x1x1 block 64x1x1")
    counts where labels would be the same without it.
    """
    forms = {}
    for name in names:
        kernel, _, launch = name.partition(_LAUNCHED)
        part = _parsed(kernel)
        forms[name] = (shorten(part.key), part.key, " ".join(part.dropped), kernel, launch)
    return distinct(forms, longest)
