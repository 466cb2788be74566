"""A cheap look at a file: whether it may be a trace, and whose. Reads its first and last MiB (gzip: only the first)."""

from __future__ import annotations

import itertools
import re
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from nsightlens.errors import ReadError
from nsightlens.readers.kineto import envelope, unsupported
from nsightlens.readers.kineto.counts import Tally
from nsightlens.readers.kineto.digest import decoder, whole
from nsightlens.readers.kineto.envelope import Clock, TraceHeader
from nsightlens.readers.kineto.events import Decoder
from nsightlens.readers.kineto.fields import Fields
from nsightlens.readers.kineto.generation import generation
from nsightlens.readers.kineto.identity import host_in_name
from nsightlens.readers.kineto.reading import find_opening
from nsightlens.readers.kineto.report import properties
from nsightlens.readers.kineto.salvage import Salvage
from nsightlens.readers.kineto.stream import BLOCK, Frame, TraceFile, last_cut, read_at
from nsightlens.readers.kineto.times import InexactTime
from nsightlens.readers.reader import HEAD_BYTES, Origin, Probe, ProcessHint

_HEADER_LIMIT = 1 << 24
_TIME = re.compile(rb'"(?:ts|dur)"\s*:\s*"?(-?[0-9.]+)')
_TIMES = 64
_LIST_OF_EVENTS = re.compile(rb'\[\s*(?:\]|\{\s*"[^"]*"\s*:)')


def sniff(path: Path, head: bytes) -> bool:
    """Return whether the file may be a trace, or JSON of a neighbouring kind that `probe` names."""
    text = head.removeprefix(envelope.BOM).lstrip()
    if unsupported.is_foreign(head):
        return path.name.endswith((".json", ".json.gz")) or text.startswith((b"{", b"["))
    if text.startswith(b"["):
        return _LIST_OF_EVENTS.match(text) is not None and b'"ph"' in text
    if not re.match(rb'\{\s*"', text):
        return False
    return b'"traceEvents"' in text or envelope.is_kineto(text) or len(head) >= HEAD_BYTES


def probe(path: Path) -> Probe:
    """Return what a quick look at the file shows. Raises ReadError, or UnknownFormatError for JSON of another kind."""
    try:
        with closing(TraceFile(path)) as source:
            return _probe(path, source)
    except OSError as exc:
        raise ReadError(path, f"it cannot be read ({exc.strerror or exc})", "Check the disk and the permissions") from exc


def _probe(path: Path, source: TraceFile) -> Probe:
    begun, opening = find_opening(path, source, _HEADER_LIMIT)
    begin = begun[opening.at :]
    clock = envelope.clock(begin)
    tally = _first_events(begin[:BLOCK], clock, opening.at)
    end = begin if source.zipped else read_at(source.file, max(opening.at, source.size - BLOCK), BLOCK)
    header = (envelope.parsed(opening.header + b'"":0}') or envelope.searched(opening.header)).filled_from(envelope.searched(end))
    known = tally.marks or any(envelope.is_kineto(text) for text in (opening.header, end))
    if not known and (tally.complete or tally.passed or tally.samples):
        raise unsupported.refusal(path, begun)
    if len(tally.labels) > 1 or len(tally.callers) > 1:
        raise unsupported.merged(path, tally.labels if len(tally.labels) > 1 else tally.callers)
    name = generation(header, clock, tally.marks, begin[: 1 << 16])
    pid = next(iter(tally.pids or tally.cpu_pids), None)
    host = header.host or host_in_name(path, pid)
    return Probe(
        kind=f"kineto json {name}" if name else "kineto json",
        processes=_hints(header, tally, host, pid),
        identity=_identity(begin, header.distributed("rank"), pid),
        window_of=f"{host}:{pid}" if host and pid else None,
        first_epoch_ns=clock.epoch_ns(header.base_ns),
        origin=_origin(header),
    )


def _origin(header: TraceHeader) -> Origin:
    """Return the GPUs that the trace lists, those without work too."""
    listed = [properties(device) for device in header.devices.values()]
    names, capabilities = ({str(device[key]) for device in listed if device[key]} for key in ("name", "compute_capability"))
    return Origin(frozenset(names), frozenset(capabilities))


def _identity(begin: bytes, rank: object, pid: object) -> frozenset[str]:
    """Name the capture by its first times and durations: the same however the file was re-saved, or where it was cut."""
    times = [found[1] for found in itertools.islice(_TIME.finditer(begin[:BLOCK]), _TIMES)]
    if len(times) < _TIMES:
        return frozenset()
    digest = blake2b(b" ".join(times), digest_size=16).hexdigest()
    return frozenset((f"kineto:{rank}:{pid}:{digest}",))


def _first_events(begin: bytes, clock: Clock, at: int) -> Tally:
    try:
        return _tally(begin, at, decoder(clock.exact))
    except InexactTime:
        return _tally(begin, at, decoder(True))


def _tally(begin: bytes, at: int, reader: Decoder) -> Tally:
    fields = Fields(Tally())
    found = whole(Frame().around(begin[: last_cut(begin)]), reader) or Salvage(begin, at, False, reader).run()
    fields.take(found.events)
    fields.tables()
    return fields.tally


def _hints(header: TraceHeader, tally: Tally, host: str | None, pid: int | None) -> tuple[ProcessHint, ...]:
    rank = header.distributed("rank")
    source = None if rank is None else "content:distributedInfo"
    pids: list[int | None] = [*tally.pids] or [pid]
    return tuple(ProcessHint(one, host, rank, source, None, header.distributed("world_size")) for one in pids)
