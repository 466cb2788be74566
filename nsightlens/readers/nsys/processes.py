"""The processes of a report that own rows, numbered as they are met, each with its rank where the report has it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.batches import batch_of
from nsightlens.readers.nsys.ranks import PID_MASK, RankEvidence, gather
from nsightlens.readers.nsys.report import ReportFacts, text
from nsightlens.readers.nsys.source import GPU_TABLES, NVTX, RUNTIME, Source
from nsightlens.readers.reader import ProcessHint, program_name

_SAMPLE_ROWS = 20_000


def pid_of(key: int | None) -> int | None:
    """Return the OS process id in a globalPid (or globalTid); None where it holds none."""
    return ((key >> 24) & 0xFFFFFF) or None if key is not None else None


class Processes:
    """The processes met so far. `index` gives their numbers, `fresh` the rows of those not yielded yet."""

    def __init__(self, source: Source, report: ReportFacts, evidence: RankEvidence) -> None:
        self._host = report.host
        self._names = _named(source)
        self._evidence = evidence
        self._users = gpu_users(source, 2) if evidence.environment.rank is not None else []
        # Rows without a globalPid belong to the only process that calls CUDA, where there is only one.
        callers = [] if "globalPid" in source.columns(GPU_TABLES[0]) else source.owners(RUNTIME, "globalTid", PID_MASK, 2)
        self._default = callers[0] if len(callers) == 1 else None
        self.keys: dict[int | None, int] = {}
        self._told = 0

    @property
    def shared_environment(self) -> bool:
        """Whether the environment has a rank that cannot be assigned, because several processes used the GPU."""
        return len(self._users) > 1

    def owner(self, global_ids: pa.Array) -> pa.Array:
        """Return the globalPid in each globalPid or globalTid (int64)."""
        return pc.bit_wise_and(global_ids, PID_MASK)

    def index(self, global_ids: pa.Array) -> pa.Array:
        """Return the number of the process (int32) of each globalPid or globalTid (int64, NULL where not recorded)."""
        encoded = self.owner(global_ids).dictionary_encode(null_encoding="encode")
        numbers = [self._number(key) for key in encoded.dictionary.to_pylist()]
        return pa.array(numbers, pa.int32()).take(encoded.indices)

    def pids(self) -> list[int | None]:
        """Return the OS process id of each process."""
        return [pid_of(key) for key in self.keys]

    def fresh(self) -> pa.RecordBatch | None:
        """Return the rows of `processes` for those met since the last call."""
        new = list(self.keys)[self._told:]
        self._told = len(self.keys)
        return batch_of("processes", [self._row(key) for key in new]) if new else None

    def _number(self, key: int | None) -> int:
        return self.keys.setdefault(self._default if key is None else key, len(self.keys))

    def _row(self, key: int | None) -> dict[str, object]:
        rank = self._evidence.of(key, self._users == [key])
        return {"host": self._host, "pid": pid_of(key), "name": self._names.get(key) if key is not None else None,
                "rank": rank.rank, "rank_source": rank.source, "local_rank": rank.local_rank, "world_size": rank.world_size}


def gpu_users(source: Source, at_most: int, within: int | None = None) -> list[int | None]:
    """Return the globalPids that own GPU work; without any GPU work those that call CUDA, else those with NVTX ranges."""
    for tables, column in ((GPU_TABLES, "globalPid"), ((RUNTIME,), "globalTid"), ((NVTX,), "globalTid")):
        found: dict[int | None, None] = {}
        for table in tables:
            found.update(dict.fromkeys(source.owners(table, column, PID_MASK, at_most, within)))
        if found:
            return list(found)[:at_most]
    return []


def programs(source: Source) -> frozenset[str]:
    """Return the names of the processes that used the GPU, from the first rows; empty where one has no name."""
    names = _named(source)
    found = {names.get(key) if key is not None else None for key in gpu_users(source, 64, _SAMPLE_ROWS)}
    return frozenset() if None in found else frozenset(str(name) for name in found)


def _named(source: Source) -> dict[int, str | None]:
    """Return the program of each globalPid."""
    named = source.rows("PROCESSES", ("globalPid", "name"))
    return {key: program_name(text(name)) for key, name in named if isinstance(key, int)}


def hints(source: Source, report: ReportFacts) -> tuple[ProcessHint, ...]:
    """Return what the first rows show about the processes."""
    evidence = gather(source)
    users = gpu_users(source, 64, _SAMPLE_ROWS)
    found = []
    for key in users:
        rank = evidence.of(key, len(users) == 1)
        found.append(ProcessHint(pid_of(key), report.host, rank.rank, rank.source, rank.local_rank, rank.world_size))
    return tuple(found)
