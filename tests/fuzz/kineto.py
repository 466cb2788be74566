"""Mutated Kineto traces: every kernel and its times, to the nanosecond, against Python's json with Decimal."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from pathlib import Path
from typing import Any

from nsightlens.readers import kineto
from nsightlens.readers.kineto.times import MAX_DURATION_NS, MAX_START_US
from tests.fuzz.mutation import Dice, Edit
from tests.readers.kineto_text import event, kernel, trace

NAME, SUFFIX = "kineto", ".json"
_VALUES = (b"true", b"false", b"null", b"{}", b"[]", b'{"a": 1}', b"[1, 2]", b'"7"', b'"x"', b"-1", b"-0.0", b"0", b"1e3",
           b"1e400", b"0.0005", b"0.0015", b"NaN", b"-inf", b"9223372036854775807", b"9223372036854775808", b"1" + b"0" * 40,
           b"1.5e-7", b"123456789012.3456789", b"", b"N/A", b"\xff", b'"a\xc3"', b'{"\xe2\x82": "\xf0\x9f"}',
           b'"\\', b'"\\ud800"', b"1751410836000001.5", b"[" * 200)
_TOKENS = (b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\0", b"}, {", b'"ph": "X"', b"/*", b"e", b"-")
_BETWEEN = re.compile(r"(?<=\},)[\v\f](?=\s*\{)")
"""White space that JSON does not know, between two events: it costs neither of them."""
_DAMAGE = {"malformed_json", "events_lost", "truncated", "text_replaced"}

Row = tuple[str, int | None, int | None, int | None]


@cache
def bases() -> dict[str, bytes]:
    """Return traces of relative and of absolute times, with events of several categories, spaced and compact."""
    found = {}
    for name, begin, step in (("relative", "2000000.125", Decimal("10.001")), ("whole", "1751410836000000", Decimal(7)),
                              ("absolute", "1751410836000000.125", Decimal("10.001"))):
        events = []
        for at in range(16):
            ts = Decimal(begin) + step * at
            events.append(event("cpu_op", "aten::mm", str(ts), "4.5", {"External id": at + 1, "Input Dims": [[2, 3], [3, 4]]}))
            events.append(event("cuda_runtime", "cudaLaunchKernel", str(ts + 1), "1.25", {"correlation": at + 1}))
            events.append(kernel(str(ts + 2), str(Decimal("3.25") * at), f'k<"{at % 3}">', correlation=at + 1))
        found[name] = trace(*events).encode()
        found[f"{name}-compact"] = re.sub(rb"(?<=[,:{}\[\]])\s+", b"", found[name])
    return found


def edits(data: bytes, dice: Dice) -> list[Edit]:
    """Return an edit of a value, of a number's digit, of the punctuation, or of a whole event."""
    kind = dice.choice(("value", "value", "value", "digit", "token", "untoken", "drop", "double", "key"))
    if kind in ("value", "key"):
        pattern = rb'"\s*:\s*("(?:[^"\\]|\\.)*"|[-\d.]+|\{|\[)' if kind == "value" else rb'"(\w+)"\s*:'
        start, end = dice.choice([found.span(1) for found in re.finditer(pattern, data)])
        return [Edit(start, end - start, dice.choice(_VALUES if kind == "value" else (b"dur", b"ts", b"x", b"ph", b"")))]
    if kind == "digit":
        at = dice.choice([found.start() for found in re.finditer(rb"\d", data)])
        return [Edit(at, 1, dice.choice((b"9", b"0", b".", b"-", b"e", b"", b"00")))]
    if kind == "untoken":
        at = dice.choice([found.start() for found in re.finditer(rb'[{}\[\],:"]', data)])
        return [Edit(at, 1, b"")]
    if kind == "token":
        return [Edit(dice.randrange(len(data)), 0, dice.choice(_TOKENS))]
    starts = [found.start() for found in re.finditer(rb'\{\s*"ph"', data)]
    at = dice.randrange(len(starts) - 1)
    start, end = starts[at], starts[at + 1]
    return [Edit(start, end - start, b"") if kind == "drop" else Edit(start, 0, data[start:end] * dice.choice((1, 3)))]


def differences(path: Path) -> list[str]:
    """Return how the kernels differ from those that json finds, beyond the events that the reader counts as lost; or that it
    read what is no JSON without a word. Raises ReadError."""
    kineto.probe(path)
    dice = Dice(path.stat().st_size)
    rows: list[Row] = []
    told: Counter[str] = Counter()
    for table, batch in kineto.read([path], piece_bytes=dice.choice((None, 700, 4000))):
        if table == "kernels":
            rows += [(row["name"], row["start_ns"], row["duration_ns"], row["correlation_id"]) for row in batch.to_pylist()]
        elif table == "diagnostics":
            told.update({row["code"]: row["count"] for row in batch.to_pylist()})
    data = path.read_bytes()
    if not _is_text(data) and not {"text_replaced", "truncated"} & told.keys():
        return ["bytes that are no UTF-8 went unsaid"]
    try:
        text = _BETWEEN.sub("\n", data.decode("utf-8", "replace"))
        expected = _expected(json.loads(text, parse_float=Decimal, parse_constant=_refused))
    except (ValueError, RecursionError):
        return [] if _DAMAGE & told.keys() else ["read as if it were JSON"]
    return [] if expected is None else _compared(rows, expected, told["events_lost"])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _compared(rows: list[Row], expected: list[Row], lost: int) -> list[str]:
    """Return what differs; times of ours are relative to one origin, which the first rows with a time tell."""
    pairs = ((one[1], other[1]) for one, other in zip(rows, expected, strict=False))
    origins = {other - one for one, other in pairs if one is not None and other is not None} if not lost else set()
    ours, theirs = ([one for row in table if (one := row[1]) is not None] for table in (rows, expected))
    times = {other - one for one in ours[:1] for other in theirs[:1 + lost]}
    for origin in origins | times or {0}:
        moved = Counter((name, None if start is None else start - origin, length, link) for name, start, length, link in expected)
        found = Counter(rows)
        if not found - moved and (moved - found).total() <= lost:
            return []
    return [f"{len(rows)} kernels for {len(expected)}, {lost} lost: {next(iter(Counter(rows) - Counter(expected)), None)}"]


def _expected(found: Any) -> list[Row] | None:
    """Return the kernels of a trace; None for what is none, or where a kernel has no name."""
    events = found.get("traceEvents") if isinstance(found, dict) else found
    if not isinstance(events, list):
        return None
    rows: list[Row] = []
    for one in events:
        if isinstance(one, dict) and one.get("ph") == "X" and one.get("cat") == "kernel":
            if not isinstance(one.get("name"), str):
                return None
            length = _nanoseconds(one.get("dur"))
            start = _nanoseconds(one.get("ts"))
            args = one.get("args")
            rows.append((one["name"].encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
                         None if start is None or abs(start) > MAX_START_US * 1000 else start,
                         length if length is not None and 0 <= length < MAX_DURATION_NS else None,
                         _integer(args.get("correlation")) if isinstance(args, dict) else None))
    return rows


def _nanoseconds(us: Any) -> int | None:
    if isinstance(us, bool) or not isinstance(us, int | Decimal | str):
        return None
    try:
        ns = int((Decimal(us) * 1000).to_integral_value(ROUND_HALF_EVEN))
    except (ArithmeticError, ValueError):
        return None
    return ns if abs(ns) < 1 << 63 else None


def _integer(value: Any) -> int | None:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,20}", value.strip(), re.ASCII):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _refused(constant: str) -> None:
    raise ValueError(constant)
