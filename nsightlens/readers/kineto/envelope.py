"""The top-level object of a trace -> where its events begin, and the few keys that we take; no other key is kept or copied.

Metadata may hold anything (environments, secrets, unescaped quotes), stands before or after the events, in any order.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from nsightlens.readers.kineto.events import REFUSED
from nsightlens.readers.kineto.repair import Repairer, Unrepairable
from nsightlens.readers.kineto.times import MAX_START_US
from nsightlens.readers.kineto.values import integer

BOM = b"\xef\xbb\xbf"
HEADER_LIMIT = 1 << 26
_VALUE_LIMIT = 1 << 24
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(?:(\[)|null)')
_OFFSET = re.compile(r"\(byte (\d+)\)")
_EPOCH_US = range(10**15, 41 * 10**14)  # years 2001 to 2099
_TIME = re.compile(rb'"ts"\s*:\s*"?(\d+)(\.\d+)?')
_TELLING = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|trace_id|traceName|'
                      rb'record_shapes|with_stack|profile_memory|with_flops|with_modules)"\s*:')



class TraceHeader(msgspec.Struct):
    """The top-level keys that we take, as they were decoded: any of them may be of any type."""

    deviceProperties: Any = None
    distributedInfo: Any = None
    baseTimeNanoseconds: Any = None
    host_name: Any = None
    cupti_version: Any = None
    cuda_runtime_version: Any = None
    cuda_driver_version: Any = None
    roctracer_version: Any = None
    rocprofiler_version: Any = None
    hip_runtime_version: Any = None
    hip_driver_version: Any = None

    def filled_from(self, other: TraceHeader) -> TraceHeader:
        """Return this header with what it lacks taken from `other`."""
        return TraceHeader(*(a if a is not None else b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def base_ns(self) -> int | None:
        """Return the epoch to which the times are relative."""
        base = integer(self.baseTimeNanoseconds)
        return base if base is not None and 0 < base < 1 << 62 else None

    @property
    def host(self) -> str | None:
        """Return the host's name."""
        return self.host_name if isinstance(self.host_name, str) and self.host_name else None

    def distributed(self, key: Literal["rank", "world_size"]) -> int | None:
        """Return rank or world size from distributedInfo, where it has them."""
        value = integer(self.distributedInfo.get(key)) if isinstance(self.distributedInfo, dict) else None
        return value if value is not None and 0 <= value < 1 << 31 else None

    def process_groups(self, used: Iterable[tuple[str | int, str | None, str]]) -> list[dict[str, object]]:
        """Return the process groups of distributedInfo, each with its size and the place of this rank in it; then those of
        `used`, which kernels name with their descriptions and ranks, that it lacks."""
        listed = self.distributedInfo.get("pg_config") if isinstance(self.distributedInfo, dict) else None
        rank = self.distributed("rank")
        named = [group for group in (listed if isinstance(listed, list) else [])
                 if isinstance(group, dict) and isinstance(group.get("pg_name"), str | int)]
        known = {str(group["pg_name"]) for group in named}
        others = {str(name): {"pg_name": name, "pg_desc": description, "ranks": ranks} for name, description, ranks in used}
        return [_process_group(group, rank) for group in (*named, *(others[name] for name in others if name not in known))]

    @property
    def devices(self) -> dict[int, dict[str, Any]]:
        """Return the properties of each device by its ordinal."""
        listed = self.deviceProperties if isinstance(self.deviceProperties, list) else []
        found = {integer(d.get("id")): d for d in listed if isinstance(d, dict)}
        return {ordinal: properties for ordinal, properties in found.items() if ordinal is not None}

    @property
    def capture_version(self) -> str | None:
        """Return which activity library recorded the GPU, such as "cupti 22"."""
        for tool in ("cupti", "rocprofiler", "roctracer"):
            version = getattr(self, f"{tool}_version")
            if isinstance(version, int | float | str):
                return f"{tool} {version}"
        return None


astuple = msgspec.structs.astuple


def _process_group(group: dict[str, Any], rank: int | None) -> dict[str, object]:
    """Return what pg_config says of a process group. Its ranks are a list, of an on-demand trace the text of one."""
    ranks, description = group.get("ranks"), group.get("pg_desc")
    if isinstance(ranks, str):
        try:
            ranks = msgspec.json.decode(ranks)
        except REFUSED:
            ranks = None
    members = [integer(member) for member in ranks] if isinstance(ranks, list) else []
    size = len(members) or integer(group.get("pg_size"))
    said = isinstance(description, str) and description not in ("", "undefined")
    return {"process_index": 0, "group_name": str(group["pg_name"]), "description": description if said else None,
            "group_size": size if size is not None and 0 < size < 1 << 31 else None,
            "group_rank": members.index(rank) if rank is not None and rank in members else None}


@dataclass(frozen=True, slots=True)
class Opening:
    """Where the array of events begins. header: the bytes before it, from byte header_at. empty: there is null in its place."""

    at: int
    header: bytes
    header_at: int = 0
    bare_list: bool = False
    empty: bool = False


def find_events(buffer: bytes) -> Opening | None:
    """Return where the events begin in a file whose first bytes are `buffer`; None where they do not show yet."""
    skipped = len(BOM) if buffer.startswith(BOM) else 0
    text = buffer[skipped:].lstrip()
    begin = len(buffer) - len(text)
    if text.startswith(b"["):
        return Opening(begin + 1, b"", bare_list=True) if re.match(rb"\[\s*[{\]]", text) else None
    if not text.startswith(b"{"):
        return None
    found = list(itertools.islice(_unescaped(_EVENTS, buffer, begin), 8))
    for match in found:
        if parsed(buffer[begin : match.start()] + b'"":0}') is not None:
            return _opening(match, buffer, begin)
    return _opening(found[0], buffer, begin) if found else None


def _opening(match: re.Match[bytes], buffer: bytes, begin: int) -> Opening:
    return Opening(match.end(), buffer[begin : match.start()], begin, empty=match[1] is None)


def parsed(text: bytes) -> TraceHeader | None:
    """Return the header that is all of `text`, None where it is no valid object."""
    try:
        return msgspec.json.decode(text, type=TraceHeader)
    except REFUSED:
        return None


def bad_byte(text: bytes) -> int:
    """Return the offset of the first byte for which `text` is no valid JSON; 0 where it does not show."""
    try:
        msgspec.json.decode(text, type=TraceHeader)
    except REFUSED as exc:
        offset = _OFFSET.search(str(exc))
        return int(offset[1]) if offset else 0
    return len(text)


def is_json(text: bytes) -> bool:
    """Return whether `text` begins as JSON's objects and lists do."""
    return text.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")


def is_cut(text: bytes) -> bool:
    """Return whether `text`, which begins with an object, ends before that object does."""
    try:
        msgspec.json.decode(text.removeprefix(BOM), type=TraceHeader)
    except REFUSED as exc:
        return "truncated" in str(exc) or not text.rstrip().endswith(b"}")
    return False


def _unescaped(pattern: re.Pattern[bytes], text: bytes, start: int = 0) -> Iterator[re.Match[bytes]]:
    """Yield the matches that no backslash precedes; as part of the pattern that would cost its fast search."""
    return (found for found in pattern.finditer(text, start) if text[found.start() - 1 : found.start()] != b"\\")


def searched(text: bytes) -> TraceHeader:
    """Return the values of single keys in text that does not parse as a whole."""
    values = {}
    for name in TraceHeader.__struct_fields__:
        key = b'"%b"' % name.encode()
        at = text.find(key)  # ten times as fast as the pattern, and few of the keys are there
        found = None if at < 0 else next(_unescaped(re.compile(key + rb"\s*:"), text, at), None)
        if found:
            repairer = Repairer(text[found.end() : found.end() + _VALUE_LIMIT].decode("utf-8", "replace"))
            try:
                values[name] = msgspec.json.decode(repairer.value().encode("utf-8", "replace"))
            except (Unrepairable, *REFUSED):
                continue
    return TraceHeader(**values)


def is_kineto(text: bytes) -> bool:
    """Return whether a top-level key that only Kineto writes seems to stand in `text`."""
    return next(_unescaped(_TELLING, text), None) is not None


@dataclass(frozen=True, slots=True)
class Clock:
    """How to read the times. origin_us: whole second before the first event. exact: they need their decimal text."""

    origin_us: int
    exact: bool

    @property
    def origin_ns(self) -> int:
        """Return the origin on the file's clock."""
        return self.origin_us * 1000

    def epoch_ns(self, base_ns: int | None) -> int | None:
        """Return the epoch of the origin: absolute times contain it, relative ones need the base."""
        if self.origin_us in _EPOCH_US:
            return self.origin_ns
        return None if base_ns is None else base_ns + self.origin_ns


def clock(events: bytes) -> Clock:
    """Return how to read the times of a file whose first events are `events`."""
    seen = [(int(whole), bool(fraction)) for whole, fraction in _TIME.findall(events, 0, 1 << 18) if len(whole) < 17
            and int(whole) <= MAX_START_US]
    first = next((whole for whole, _ in seen if whole), 0)
    return Clock(first - first % 1_000_000, any(fraction and whole >= 1 << 43 for whole, fraction in seen))
