"""NVTX: push/pop and start/end ranges, marks, domains, thread names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.nsys import framework
from nsightlens.readers.nsys.columns import batch_of, coded, raw, threads, times
from nsightlens.readers.nsys.payloads import Payloads
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.ranks import PID_MASK
from nsightlens.readers.nsys.source import NVTX, Kind, Source

COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("start", "end", "eventType", "globalTid", "endGlobalTid", "domainId", "textId"), "integer"), "text": "text",
}

_RANGE_KIND = {34: "nvtx_mark", 59: "nvtx_push_pop", 60: "nvtx_start_end", 70: "nvtx_push_pop", 71: "nvtx_start_end"}
_LABEL_TYPES = (33, 39, 75, 76)
"""Categories, thread names, domains created and destroyed: they name things, they are no spans."""
_THREAD_NAME, _DOMAIN_CREATED = 39, 75
_NCCL = r"^nccl[A-Z]"


@dataclass(frozen=True, slots=True)
class Labels:
    """What NVTX named: (globalTid, name) of threads, and (globalPid, domainId) -> name of domains."""

    threads: tuple[tuple[int, str], ...]
    domains: dict[tuple[int, int], str]


def labels(source: Source) -> Labels:
    """Return the threads and domains that NVTX named. Looks at the whole table."""
    rows = source.rows(NVTX, ("eventType", "globalTid", "domainId", "textId", "text"),
                       ("eventType", (_THREAD_NAME, _DOMAIN_CREATED)))
    ids = pa.array([row[3] if isinstance(row[3], int) else None for row in rows], pa.int64())
    threads_, domains = [], {}
    for (event_type, tid, domain, _, text), registered in zip(rows, source.strings(ids).to_pylist(), strict=True):
        name = text if isinstance(text, str) else registered
        if not isinstance(tid, int) or not isinstance(name, str):
            continue
        if event_type == _THREAD_NAME:
            threads_.append((tid, name))
        elif isinstance(domain, int):
            domains[tid & PID_MASK, domain] = name
    return Labels(tuple(threads_), domains)


def ranges(
    batch: pa.RecordBatch, source: Source, processes: Processes, named: Labels, payloads: Payloads, base_ns: int,
    tally: Counter[str],
) -> pa.RecordBatch:
    """Return rows of `ranges` from NVTX_EVENTS. Their text is `text`, or the registered string where there is none."""
    batch = _spans(batch, tally)
    global_tid, end_tid = raw(batch, "globalTid"), raw(batch, "endGlobalTid")
    kind = coded(raw(batch, "eventType"), _RANGE_KIND)
    columns = times(batch, base_ns, tally)
    mark = pc.equal(raw(batch, "eventType"), 34)
    columns["duration_ns"] = pc.if_else(pc.fill_null(mark, False), None, columns["duration_ns"])
    tally["unclosed_range"] += pc.sum(pc.and_(pc.is_null(raw(batch, "end")), pc.invert(pc.fill_null(mark, False)))).as_py() or 0
    text = _texts(batch, source, tally)
    domain = _domains(pc.bit_wise_and(global_tid, PID_MASK), raw(batch, "domainId"), text, named, tally)
    thread, end_thread = threads(global_tid), threads(end_tid)
    return batch_of({
        "process_index": processes.index(global_tid),
        "thread": thread,
        "end_thread": pc.if_else(pc.equal(thread, end_thread), None, end_thread),
        **columns,
        **framework.recognised(kind, text, domain),
        "domain": domain,
        **payloads.of(batch),
    })


def _spans(batch: pa.RecordBatch, tally: Counter[str]) -> pa.RecordBatch:
    """Return the rows that are ranges or marks; an event type nobody knows is counted."""
    event_type = raw(batch, "eventType")
    wanted = pc.or_(pc.is_null(event_type), pc.is_in(event_type, value_set=pa.array(list(_RANGE_KIND), pa.int64())))
    if pc.all(wanted).as_py():
        return batch
    label = pc.is_in(event_type, value_set=pa.array(_LABEL_TYPES, pa.int64()))
    tally["unknown_nvtx"] += batch.num_rows - (pc.sum(pc.or_(wanted, label)).as_py() or 0)
    return batch.filter(wanted)


def _texts(batch: pa.RecordBatch, source: Source, tally: Counter[str]) -> pa.Array:
    text, text_id = raw(batch, "text", pa.string()), raw(batch, "textId")
    if text_id.null_count == batch.num_rows:
        return text
    encoded = text_id.dictionary_encode()
    registered = source.strings(encoded.dictionary).take(encoded.indices)
    name = pc.coalesce(text, registered)
    tally["missing_name"] += pc.sum(pc.and_(pc.is_null(name), pc.is_valid(text_id))).as_py() or 0
    return name


def _domains(owner: pa.Array, domain: pa.Array, name: pa.Array, named: Labels, tally: Counter[str]) -> pa.DictionaryArray:
    """Return the name of the domain of each row, NULL for the default domain (0).

    A slice of a report has lost the rows that name domains: NCCL's is known by its function names, another keeps its number.
    """
    if not pc.any(pc.not_equal(domain, 0)).as_py():
        return pa.nulls(len(domain), pa.dictionary(pa.int32(), pa.string()))
    pids, numbers = owner.dictionary_encode(), domain.dictionary_encode()
    pair = pc.add(pc.multiply(pids.indices, len(numbers.dictionary)), numbers.indices).dictionary_encode()
    texts: list[str | None] = []
    inferred: list[bool] = []
    for value in pair.dictionary.to_pylist():  # no NULL among them
        at, which = divmod(value, len(numbers.dictionary))
        id_ = numbers.dictionary[which].as_py()
        known = named.domains.get((pids.dictionary[at].as_py(), id_))
        texts.append((known or f"domain {id_}") if id_ else None)
        inferred.append(bool(id_) and known is None)
    found = pa.array(texts, pa.string()).take(pair.indices)
    if any(inferred):
        is_nccl = pc.and_(pa.array(inferred).take(pair.indices), pc.match_substring_regex(name, _NCCL))
        is_nccl = pc.fill_null(is_nccl, False)
        tally["inferred_domain"] += pc.sum(is_nccl).as_py() or 0
        found = pc.if_else(is_nccl, "NCCL", found)
    return found.dictionary_encode()
