"""A Kineto trace of any size: the events of a real trace, replicated with shifted times and ids, its text otherwise untouched."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

_GAP_US = 20
_LEAST_ID_STRIDE = 100_000
"""Ids begin above this, as late in a real job: HolisticTraceAnalysis 0.5 keeps lower ones in 16 bits, and event numbers with
them, and fails under pandas 3 where those need more."""
_SHIFTED = re.compile(
    r'("(?P<key>ts|correlation|[Ee]xternal id|id|Ev Idx|Profiler Event Index|Record function id|Sequence number|Python id|'
    r'Python parent id|Python module id|wait_on_cuda_event_record_corr_id)":\s*)(?P<value>\d+)'
    r'|(?P<step>ProfilerStep#)(?P<number>\d+)')
_DECODER = json.JSONDecoder(parse_float=Decimal, strict=False)


@dataclass(frozen=True, slots=True)
class _Strides:
    """What one more copy adds: to times (whole microseconds, so that decimals stay), to ids, to step numbers."""

    time_us: int
    ids: int
    steps: int


@dataclass(slots=True)
class _Template:
    """Text with holes; each hole has a number and what a copy adds to it."""

    text: str
    values: list[int]
    strides: list[int]

    def render(self, copy: int) -> str:
        return self.text % tuple(value + copy * stride for value, stride in zip(self.values, self.strides, strict=True))


def replicate(source: Path, target: Path, size_bytes: int) -> dict[str, int]:
    """Write the events of `source` (JSON or gz) to `target` as often as gives `size_bytes`; return what a reader must find."""
    head, events, tail = _split(_load(source))
    repeated = [event for event in events if _repeats(event[1])]
    first = next(i for i, event in enumerate(events) if _repeats(event[1]))
    before = [text for text, event in events[:first]]
    after = [text for text, event in events[first:] if not _repeats(event)]
    strides = _strides(repeated)
    body = _template([text for text, _ in repeated], strides)
    fixed = len(head) + len(tail) + sum(map(len, before)) + sum(map(len, after))
    copies = max(1, round((size_bytes - fixed) / len(body.render(0).encode())))
    with target.open("w", encoding="utf-8") as out:
        out.write(head + "".join(f"{text},\n  " for text in before))
        for copy in range(copies):
            out.write((",\n  " if copy else "") + body.render(copy))
        if after:
            out.write(",\n  " + _template(after, _Strides(strides.time_us, 0, 0)).render(copies - 1))
        out.write("\n  " + tail)
    kernels = [event for _, event in repeated if str(event.get("cat", "")).lower() == "kernel"]
    return {
        "bytes": target.stat().st_size,
        "copies": copies,
        "events": copies * len(repeated),
        "kernels": copies * len(kernels),
        "kernel_ns": copies * sum(int(event["dur"] * 1000) for event in kernels),
    }


def _load(source: Path) -> str:
    raw = source.read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")


def _split(text: str) -> tuple[str, list[tuple[str, dict[str, Any]]], str]:
    """Return the text up to the first event, each event as (its text, its content), and the text from the closing bracket."""
    opening = re.search(r'"traceEvents"\s*:\s*\[\s*', text)
    if opening is None:
        raise ValueError("no traceEvents array")
    at = opening.end()
    head = text[:at]
    separator = re.compile(r"[\s,]*")
    events = []
    while text[at] != "]":
        event, end = _DECODER.raw_decode(text, at)
        events.append((text[at:end], event))
        matched = separator.match(text, end)
        assert matched is not None
        at = matched.end()
    return head, events, text[at:]


def _repeats(event: dict[str, Any]) -> bool:
    """Say whether an event belongs to the workload: labels, the window's own span and its markers stand once in a trace."""
    return "ts" in event and event.get("ph") != "M" and "cat" in event and event["cat"] != "Trace"


def _strides(events: list[tuple[str, dict[str, Any]]]) -> _Strides:
    starts = [event["ts"] for _, event in events]
    ends = [event["ts"] + event.get("dur", 0) for _, event in events]
    ids, steps = [0], [0]
    for text, _ in events:
        for found in _SHIFTED.finditer(text):
            if found["step"]:
                steps.append(int(found["number"]))
            elif found["key"] != "ts":
                ids.append(int(found["value"]))
    numbers = steps[1:] or [0]
    return _Strides(int(max(ends) - min(starts)) + _GAP_US, max(max(ids) + 1, _LEAST_ID_STRIDE), max(numbers) - min(numbers) + 1)


def _template(texts: list[str], strides: _Strides) -> _Template:
    template = _Template("", [], [])
    parts: list[str] = []
    text = ",\n  ".join(texts)
    at = 0
    for found in _SHIFTED.finditer(text):
        hole = "number" if found["step"] else "value"
        parts += [text[at:found.start(hole)].replace("%", "%%"), "%d"]
        at = found.end(hole)
        value, stride = _hole(found, strides)
        template.values.append(value)
        template.strides.append(stride)
    parts.append(text[at:].replace("%", "%%"))
    template.text = "".join(parts)
    return template


def _hole(found: re.Match[str], strides: _Strides) -> tuple[int, int]:
    """Return the number as the first copy has it, and what each further copy adds."""
    if found["step"]:
        return int(found["number"]), strides.steps
    value = int(found["value"])
    if found["key"] == "ts":
        return value, strides.time_us
    if found["key"] == "correlation" and not value:
        return 0, 0  # means that there is no link, in every copy
    return value + strides.ids, strides.ids
