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
    r'Python parent id|Python module id|wait_on_cuda_event_record_corr_id)":\s*)(?P<value>\d+)')
_TIME = re.compile(r'("(ts|dur)":\s*)[\d.]+')
_STEP = "ProfilerStep"
_DECODER = json.JSONDecoder(parse_float=Decimal, strict=False)


@dataclass(frozen=True, slots=True)
class _Strides:
    """What one more copy adds: to times (whole microseconds, so that decimals stay) and to ids."""

    time_us: int
    ids: int


@dataclass(slots=True)
class _Template:
    """Text with holes; each hole has a number and what a copy adds to it."""

    text: str
    values: list[int]
    strides: list[int]

    def render(self, copy: int) -> str:
        return self.text % tuple(value + copy * stride for value, stride in zip(self.values, self.strides, strict=True))


def replicate(source: Path, target: Path, size_bytes: int) -> dict[str, int]:
    """Write the events of `source` (JSON or gz) to `target` as often as gives `size_bytes`; return what a reader must find.

    The training steps are not repeated but stretched over all copies, as if each step did that much more: a large trace is one
    of large steps, and HolisticTraceAnalysis compares every event with every step.
    """
    head, events, tail = _split(_load(source))
    repeated = [event for event in events if _repeats(event[1])]
    first = next(i for i, event in enumerate(events) if _repeats(event[1]))
    before = [text for text, event in events[:first] if not _is_step(event)]
    after = [text for text, event in events[first:] if not _repeats(event) and not _is_step(event)]
    steps = [event for event in events if _is_step(event[1])]
    strides = _strides(repeated)
    body = _template([text for text, _ in repeated], strides)
    copies = max(1, round((size_bytes - sum(len(text) for text in [head, *before, *after, tail])) / len(body.render(0).encode())))
    origin = min(event["ts"] for _, event in repeated)
    before += [_stretch(text, event, origin, copies) for text, event in steps]
    with target.open("w", encoding="utf-8") as out:
        out.write(head + "".join(f"{text},\n  " for text in before))
        for copy in range(copies):
            out.write((",\n  " if copy else "") + body.render(copy))
        if after:
            out.write(",\n  " + _template(after, _Strides(strides.time_us, 0)).render(copies - 1))
        out.write("\n  " + tail)
    kernels = [event for _, event in repeated if str(event.get("cat", "")).lower() == "kernel"]
    return {
        "bytes": target.stat().st_size,
        "copies": copies,
        "events": copies * len(repeated) + len(steps),
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
    return "ts" in event and event.get("ph") != "M" and "cat" in event and event["cat"] != "Trace" and not _is_step(event)


def _is_step(event: dict[str, Any]) -> bool:
    return event.get("ph") == "X" and str(event.get("name")).startswith(_STEP)


def _stretch(text: str, event: dict[str, Any], origin: Decimal, factor: int) -> str:
    """Return the event `factor` times as long and as far from the origin."""
    times = {"ts": origin + (event["ts"] - origin) * factor, "dur": event["dur"] * factor}
    return _TIME.sub(lambda found: f"{found[1]}{times[found[2]]}", text)


def _strides(events: list[tuple[str, dict[str, Any]]]) -> _Strides:
    starts = [event["ts"] for _, event in events]
    ends = [event["ts"] + event.get("dur", 0) for _, event in events]
    ids = [int(found["value"]) for text, _ in events for found in _SHIFTED.finditer(text) if found["key"] != "ts"]
    return _Strides(int(max(ends) - min(starts)) + _GAP_US, max([*ids, _LEAST_ID_STRIDE]) + 1)


def _template(texts: list[str], strides: _Strides) -> _Template:
    template = _Template("", [], [])
    parts: list[str] = []
    text = ",\n  ".join(texts)
    at = 0
    for found in _SHIFTED.finditer(text):
        parts += [text[at:found.start("value")].replace("%", "%%"), "%d"]
        at = found.end("value")
        value, stride = _hole(found, strides)
        template.values.append(value)
        template.strides.append(stride)
    parts.append(text[at:].replace("%", "%%"))
    template.text = "".join(parts)
    return template


def _hole(found: re.Match[str], strides: _Strides) -> tuple[int, int]:
    """Return the number as the first copy has it, and what each further copy adds."""
    value = int(found["value"])
    if found["key"] == "ts":
        return value, strides.time_us
    if found["key"] == "correlation" and not value:
        return 0, 0  # means that there is no link, in every copy
    return value + strides.ids, strides.ids
