"""Mutated reports of ncu: every whole launch and its counters against a decoder that knows nothing of the reader's."""

from __future__ import annotations

import importlib
import math
import re
import struct
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from nsightlens.readers import ncu
from tests.fuzz.mutation import Dice, Edit
from tests.places import ROOT

sys.path.insert(0, str(ROOT / "fixtures"))
writer = importlib.import_module("simulated.ncu_rep")

NAME, SUFFIX = "ncu_rep", ".ncu-rep"
_LENGTHS = (0, 1, 2, 3, 255, 65_536, 2**31 - 1, 2**31, 2**32 - 1)
_BYTES = (b"\xff" * 10, b"\xff" * 9 + b"\x01", b"\x80", b"\x00", b"\x7f", b"\xc3\x28", b'"', b":", b"NVR\0", b"\x0b", b"")
_INTEGER = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]")
_DAMAGE = {"report_damaged", "launch_damaged"}

Span = tuple[int, int]


@cache
def bases() -> dict[str, bytes]:
    """Return reports of the writer's own: one launch, several, and several whose names stand behind them."""
    metrics = {"gpu__time_duration.sum": 1234.5, "launch__grid_size": 8, "launch__block_size": 64, "launch__thread_count": 512,
               "dram__bytes.sum": 2**40, "launch__func_cache_config": "CachePreferNone", "a__absent.sum": None}
    ranges = (("<default domain>", "step 3"), ("mine", 'a "b": c'))
    rules = (writer.Rule("Sol", "R", "OPT", "see @section:Sol:Speed@", ("local", 12.5)),)
    several = [writer.Reported(f"k{at}(int)", (8, 1, 1), (64, 1, 1), metrics, f"_Z1k{at}i", f"k{at}", pid=7 + at % 2,
                               ranges=ranges, sections=(("Sol", "Speed"),), rules=rules, instances=at)
               for at in range(5)]
    command = "ncu --clock-control none -o r app"
    return {"one": writer.report(several[:1]), "several": writer.report(several, command=command),
            "names-last": writer.report(several, names_last=True, version=None)}


def edits(data: bytes, dice: Dice) -> list[Edit]:
    """Return an edit of a length, of a value, or of a whole block or field: dropped, doubled, moved, made another type."""
    lengths, spans = _structure(data)
    kind = dice.choice(("length", "value", "value", "key", "drop", "double", "cut"))
    if kind == "length":
        at = dice.choice(lengths)
        near = (struct.unpack_from("<I", data, at)[0] + dice.choice((-4, -1, 1, 4))) & 0xFFFFFFFF
        return [Edit(at, 4, struct.pack("<I", dice.choice((*_LENGTHS, near, near))))]
    start, end = dice.choice(spans)
    if kind == "key":
        return [Edit(start, 1, bytes([data[start] ^ dice.choice((1, 2, 3, 4, 5, 6, 7, 8, 16))]))]
    if kind == "drop":
        return [Edit(start, end - start, b"")]
    if kind == "double":
        other = dice.choice(spans)
        return [Edit(other[0], 0, data[start:end] * dice.choice((1, 3)))]
    at = dice.randrange(start, end)
    return [Edit(at, len(data) - at, b"")] if kind == "cut" else [Edit(at, dice.choice((0, 1, end - at)), dice.choice(_BYTES))]


@cache
def _structure(data: bytes) -> tuple[list[int], list[Span]]:
    """Return where the lengths of four bytes stand, and the spans of blocks, entries and fields, four levels deep."""
    lengths, spans = [4], list[Span]()
    at = 8 + int(struct.unpack_from("<I", data, 4)[0])
    while at < len(data):
        begin, size = at, int(struct.unpack_from("<I", data, at)[0])
        lengths.append(at)
        _fields(data, at + 4, at + 4 + size, 3, spans)
        payload = next((int(value) for key, value in _message(data[at + 4 : at + 4 + size]) if key == _whole(5)), 0)
        at += 4 + size
        end = at + payload
        while at < end:
            lengths.append(at)
            size = int(struct.unpack_from("<I", data, at)[0])
            _fields(data, at + 4, at + 4 + size, 4, spans)
            spans.append((at, at + 4 + size))
            at += 4 + size
        spans.append((begin, end))
    return lengths, spans


def _fields(data: bytes, start: int, stop: int, depth: int, spans: list[Span]) -> None:
    found, at = [], start
    try:
        while at < stop:
            begin, (_, inner, at) = at, _field(data, at, stop)
            found.append((begin, at, inner))
    except ValueError:
        return  # a text
    for begin, end, inner in found[:200]:
        spans.append((begin, end))
        if isinstance(inner, tuple) and depth:
            _fields(data, *inner, depth - 1, spans)


def _whole(number: int) -> int:
    """Return the key of a field that is an integer."""
    return number << 3


def _part(number: int) -> int:
    """Return the key of a field that is a text or a message."""
    return number << 3 | 2


def _field(data: bytes, at: int, stop: int) -> tuple[int, int | Span, int]:
    """Return key, value (an integer, or the span of what is none) and end of the field at an offset."""
    key, at = _integer(data, at, stop)
    if key & 7 == 0:
        value, at = _integer(data, at, stop)
        return key, value, at
    size, at = _integer(data, at, stop) if key & 7 == 2 else ({1: 8, 5: 4}.get(key & 7, stop), at)
    if at + size > stop:
        raise ValueError
    return key, (at, at + size), at + size


def _integer(data: bytes, at: int, stop: int) -> tuple[int, int]:
    if at < stop and data[at] < 128:
        return data[at], at + 1
    found = _INTEGER.match(data, at, stop)
    if found is None:
        raise ValueError
    return sum((byte & 127) << 7 * i for i, byte in enumerate(found[0])) & 2**64 - 1, found.end()


def _message(data: bytes) -> list[tuple[int, Any]]:
    """Return key and value of all fields: an integer, or bytes. Raises ValueError."""
    found, at = list[tuple[int, Any]](), 0
    while at < len(data):
        key, value, at = _field(data, at, len(data))
        found.append((key, data[slice(*value)] if isinstance(value, tuple) else value))
    return found


def differences(path: Path) -> list[str]:
    """Return how launches and counters differ from those decoded here, beyond told damage. Raises ReadError."""
    ncu.probe(path)
    rows: dict[int, dict[str, Any]] = {}
    told: set[str] = set()
    for table, batch in ncu.read([path]):
        if table == "kernels":
            rows |= {row["ncu_id"]: row for row in batch.to_pylist()}
        elif table == "diagnostics":
            told.update(row["code"] for row in batch.to_pylist())
    decoded, whole = expected(path.read_bytes())
    missing = [at for at, one in decoded.items() if one and at not in rows]
    found = [f"launches {missing} are missing"] if missing and not told & _DAMAGE else []
    found += [] if whole or told & _DAMAGE else ["a damaged report is read without a word"]
    for at, one in decoded.items():
        if one and at in rows:
            found += _compared(at, one, rows[at], told)
    return found


def _compared(at: int, expected: tuple[str, Counter[tuple[str, float]]], row: dict[str, Any], told: set[str]) -> list[str]:
    name, counters = expected
    ours = dict(row["metrics"] or ())
    several = {metric for metric, times in Counter(metric for metric, _ in counters).items() if times > 1}
    wrong = [metric for metric, value in counters
             if metric not in several and ours.get(metric, value if told & _DAMAGE else None) != value]
    more = ours.keys() - {metric for metric, _ in counters}
    found = [f"launch {at} is {row['name']!r}, not {name!r}"] if row["name"] != name else []
    return found + ([f"launch {at}: {sorted(wrong)[:2]} differ, {sorted(more)[:2]} are none"] if wrong or more else [])


def expected(data: bytes) -> tuple[dict[int, tuple[str, Counter[tuple[str, float]]] | None], bool]:
    """Return name and counters of each launch by its number (None: it cannot be decoded), and whether the file is whole."""
    names: list[str] = []
    results: list[bytes | None] = []
    whole = True
    at = 8 + int(struct.unpack_from("<I", data, 4)[0])
    while at < len(data):
        header, begin = _sized(data, at, len(data))
        try:
            fields = _message(header or b"\x0f")
            tables = [_message(value) for key, value in fields if key == _part(4)]
        except ValueError:
            whole = False
            break
        stated = {key: value for key, value in fields if key & 7 == 0 and value < 2**63}
        names += [_text(value) for table in tables for key, value in table if key == _part(1)]
        at = begin + stated.get(_whole(5), 0)
        whole = whole and at <= len(data)
        count = min(stated.get(_whole(2), 0), stated.get(_whole(5), 0) // 4)
        if count > len(data):
            return {}, whole
        results += _entries(data, begin, min(at, len(data)), stated.get(_whole(1), 0), count)
    return {number: _launch(one, names) for number, one in enumerate(results)}, whole


def _entries(data: bytes, begin: int, end: int, sources: int, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    for _ in range(min(sources, len(data)) + count):
        entry, begin = _sized(data, begin, end)
        found.append(entry)
        if entry is None:
            break
    return (found[sources:] + [None] * count)[:count]


def _sized(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    stop = at + 4 + int(struct.unpack_from("<I", data, at)[0]) if at + 4 <= end else end + 1
    return (data[at + 4 : stop], stop) if stop <= end else (None, end)


def _launch(data: bytes | None, names: list[str]) -> tuple[str, Counter[tuple[str, float]]] | None:
    try:
        fields = _message(data) if data else []
        metrics = [_message(value) for key, value in fields if key == _part(13)]
        values: list[list[tuple[int, Any]]] = [
            [(key, _message(value) if key == _part(2) else value) for key, value in one if key in (_whole(1), _part(2))]
            for one in metrics]
    except ValueError:
        return None
    texts = {key: _text(value) for key, value in fields if key in map(_part, (5, 6, 7))}
    name = texts.get(_part(7)) or texts.get(_part(5)) or texts.get(_part(6))
    if not name or any([key for key, _ in one] not in ([_whole(1)], [_whole(1), _part(2)]) for one in values):
        return None
    counters: Counter[tuple[str, float]] = Counter()
    for one in values:
        value = [_double(*field) for field in one[1][1]] if len(one) == 2 else []
        if len(value) > 1:
            return None
        if value and value[0] is not None and math.isfinite(value[0]) and one[0][1] < len(names):
            counters[names[one[0][1]], value[0]] += 1
    return name, counters


def _double(key: int, value: int | bytes) -> float | None:
    if isinstance(value, int):
        return float(value) if key in (_whole(4), _whole(5)) else None
    form = {3 << 3 | 1: "<d", 2 << 3 | 5: "<f"}.get(key)
    return float(struct.unpack(form, value)[0]) if form else None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "")
