"""What ncu prints of NVTX with a launch -> the step and the ranges around it.

A cell of push/pop ranges is the thread that launched and its open ranges, outermost first. Each stands in quotes: domain, name,
and six fields (type and value of the payload, type and value of the colour, type and text of the message):

    4711  "<default domain>:step 3:none:none:none:none:none:none"  "<default domain>:forward:none:none:none:none:none:none"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from nsightlens.readers.nsys import framework

DEFAULT_DOMAIN = "<default domain>"
_RANGE = r'"([^":]+):([^"]*)(?::[^":]*){6}"'
_EACH = re.compile(_RANGE)
_CELL = re.compile(rf"\s*\d+(?:\s+{_RANGE})+\s*(?:\|.*)?", re.DOTALL)
_LONGEST = 1 << 14
"""Characters of a cell that are looked at: its expression takes the square of them."""


@dataclass(frozen=True, slots=True)
class State:
    """The number of the step around a launch (None: no step), and (domain or None, name) of its other ranges, outermost first."""

    step: int | None
    ranges: tuple[tuple[str | None, str], ...]


def states(texts: Sequence[str | None]) -> list[State | None]:
    """Return the content of each nvtx_range; None where there is none or it is not of the known form."""
    distinct = {text: _split(text) for text in set(texts) if text}
    ranges = list({one for some in distinct.values() for one in some or ()})
    domains = pa.array([domain for domain, _ in ranges], pa.string()).dictionary_encode()
    kind = pa.array(["nvtx_push_pop"] * len(ranges), pa.string()).dictionary_encode()
    recognised = framework.recognised(kind, pa.array([name for _, name in ranges], pa.string()), domains)
    meaning = dict(zip(ranges, zip(recognised["name"].to_pylist(), recognised["step"].to_pylist(), strict=True), strict=True))
    found = {text: _state(some, meaning) if some else None for text, some in distinct.items()}
    return [found[text] if text else None for text in texts]


def _split(text: str) -> list[tuple[str | None, str]] | None:
    if len(text) > _LONGEST or not _CELL.fullmatch(text):
        return None
    return [(None if domain == DEFAULT_DOMAIN else domain, name) for domain, name in _EACH.findall(text)]


def _state(ranges: list[tuple[str | None, str]], meaning: dict[tuple[str | None, str], tuple[str, int | None]]) -> State:
    """Return the state; a step inside another step is a range like others."""
    step, others = None, []
    for domain, text in ranges:
        name, number = meaning[domain, text]
        if number is not None and step is None:
            step = number
        else:
            others.append((domain, name))
    return State(step, tuple(others))
