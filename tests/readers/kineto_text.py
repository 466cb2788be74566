"""Small traces as text, for the tests: an event as Kineto writes it, an envelope around events, and what reading gives."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from nsightlens.readers import kineto
from nsightlens.readers.batches import conform
from nsightlens.schema import READ

BASE = 1751410836000000000
Tables = dict[str, list[dict[str, Any]]]


def event(cat: str | None, name: str, ts: str | float, dur: str | float | None = 5, args: str | dict[str, Any] | None = None,
          pid: Any = 100, tid: Any = 100, ph: str = "X") -> str:
    """Return the JSON text of one event; times given as text stand there as they are."""
    fields = [f'"ph": "{ph}"']
    if cat is not None:
        fields.append(f'"cat": "{cat}"')
    fields += [f'"name": {json.dumps(name)}', f'"pid": {json.dumps(pid)}', f'"tid": {json.dumps(tid)}', f'"ts": {ts}']
    if dur is not None:
        fields.append(f'"dur": {dur}')
    if args is not None:
        fields.append(f'"args": {args if isinstance(args, str) else json.dumps(args)}')
    return "{\n    " + ", ".join(fields) + "\n  }"


def kernel(ts: Any = "2000001.500", dur: Any = "3.250", name: Any = "k", **args: Any) -> str:
    """Return a GPU kernel on device 0, stream 7."""
    told = {"device": 0, "context": 1, "stream": 7, "correlation": 9, "grid": [4, 2, 1], "block": [128, 1, 1], **args}
    return event("kernel", name, ts, dur, told, pid=0, tid=7)


def trace(*events: str, head: str = f'"schemaVersion": 1, "baseTimeNanoseconds": {BASE},', tail: str = "") -> str:
    """Return a trace with these events."""
    return "{" + head + '\n  "traceEvents": [\n  ' + ",\n  ".join(events) + "\n  ]" + (", " + tail if tail else "") + "\n}"


def read(path: Path, content: str | bytes, **options: Any) -> Tables:
    """Write `content` to `path`, and return the rows of every table."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found: Tables = defaultdict(list)
    for table, batch in kineto.read([path], **options):
        found[table] += conform(batch, READ[table].reader_schema, table).to_pylist()
    return found


def codes(found: Tables) -> set[str]:
    """Return the codes of all diagnostics."""
    return {d["code"] for d in found["diagnostics"]}
