"""Which rank a process was, by what the report holds: MPI's own records, thread names, the launcher's environment.

The environment is that of the nsys process. It gives the rank of a process only where one process used the GPU.
Only the variables named here are ever looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from nsightlens.readers.nsys.source import Source

PID_MASK = -(1 << 24)
"""globalTid & PID_MASK is the globalPid."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """One launcher's variables: rank, local rank, number of ranks."""

    rank: str
    local_rank: str | None = None
    world_size: str | None = None


# The innermost launcher first: torchrun under mpirun under a batch step of Slurm sets all of them, and RANK is the process's own.
LAUNCHERS = (
    Launcher("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    Launcher("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    Launcher("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    Launcher("PMIX_RANK"),
    Launcher("PMI_RANK", "PMI_LOCAL_RANK", "PMI_SIZE"),
    Launcher("PALS_RANKID", "PALS_LOCAL_RANKID"),
    Launcher("FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"),
    Launcher("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
_VARIABLES = frozenset(name for launcher in LAUNCHERS
                       for name in (launcher.rank, launcher.local_rank, launcher.world_size) if name)
_IN_ENVIRONMENT = re.compile(rf"(?:^|[;\0\n])({'|'.join(sorted(_VARIABLES))})=(\d{{1,9}})(?=[;\0\n]|$)")
_IN_CAPTURE = re.compile(rf"({'|'.join(sorted(_VARIABLES))})=\"?(\d{{1,9}})\"?")
_MPI_THREAD = re.compile(r"MPI Rank (\d{1,9})")
_JAX_THREAD = re.compile(r"XlaLauncher:#global=(\d{1,9}),local=(\d{1,9})\b.*")


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank and where it came from; local rank and number of ranks where known."""

    rank: int | None = None
    source: str | None = None
    local_rank: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class RankEvidence:
    """The evidence for ranks: globalPid -> Rank, the environment's Rank, and the globalPids whose evidence contradicts itself."""

    by_process: dict[int, Rank]
    environment: Rank
    contradictory: frozenset[int]

    def of(self, key: int | None, alone: bool) -> Rank:
        """Return the rank of a process. `alone`: it is the one that used the GPU, so that the environment speaks of it."""
        own = self.by_process.get(key) if key is not None else None
        if key in self.contradictory:
            return Rank()
        around = self.environment if alone else Rank()
        if own is None:
            return around
        if around.rank != own.rank:
            return own
        return Rank(own.rank, own.source, around.local_rank if own.local_rank is None else own.local_rank, around.world_size)


def gather(source: Source, nvtx_thread_names: Iterable[tuple[int, str]] = ()) -> RankEvidence:
    """Return all evidence of ranks that the report holds. `nvtx_thread_names`: globalTid and name, those that NVTX recorded."""
    found: dict[int, set[Rank]] = defaultdict(set)
    for global_tid, rank in source.rows("MPI_RANKS", ("globalTid", "rank")):
        if isinstance(global_tid, int) and isinstance(rank, int) and rank >= 0:
            found[global_tid & PID_MASK].add(Rank(rank, "content:MPI_RANKS"))
    if not found:
        named = [*_thread_names(source), *nvtx_thread_names]
        found = _named(_MPI_THREAD, named) or _named(_JAX_THREAD, named)
    return RankEvidence(
        by_process={key: next(iter(ranks)) for key, ranks in found.items() if len(ranks) == 1},
        environment=_from_environment(_environment(source)),
        contradictory=frozenset(key for key, ranks in found.items() if len(ranks) > 1),
    )


def _thread_names(source: Source) -> list[tuple[int, str]]:
    """Return globalTid and name of ThreadNames (a thread may have several)."""
    rows = source.rows("ThreadNames", ("globalTid", "nameId"))
    ids = pa.array([id_ if isinstance(id_, int) else None for _, id_ in rows], pa.int64())
    names = [text or id_ for (_, id_), text in zip(rows, source.strings(ids).to_pylist(), strict=True)]
    return [(tid, name) for (tid, _), name in zip(rows, names, strict=True) if isinstance(tid, int) and isinstance(name, str)]


def _named(pattern: re.Pattern[str], named: Iterable[tuple[int, str]]) -> dict[int, set[Rank]]:
    """Return globalPid -> the ranks (and local ranks) in thread names of this pattern."""
    found: dict[int, set[Rank]] = defaultdict(set)
    for global_tid, name in named:
        if match := pattern.fullmatch(name):
            local = int(match[2]) if pattern.groups > 1 else None
            found[global_tid & PID_MASK].add(Rank(int(match[1]), "content:thread name", local))
    return found


def _environment(source: Source) -> dict[str, int]:
    """Return the launchers' variables that were set when nsys started; one that is there with two values is left out."""
    values: dict[str, set[int]] = defaultdict(set)
    for (setting,) in source.rows("META_DATA_CAPTURE", ("value",), ("name", _ENVIRONMENT_NAMES)):
        if match := _IN_CAPTURE.fullmatch(setting if isinstance(setting, str) else ""):
            values[match[1]].add(int(match[2]))
    if not values:
        for (block,) in source.rows("TARGET_INFO_SYSTEM_ENV", ("value",), ("name", ("DeviceEnvironment",))):
            for name, value in _IN_ENVIRONMENT.findall(block if isinstance(block, str) else ""):
                values[name].add(int(value))
    return {name: next(iter(some)) for name, some in values.items() if len(some) == 1}


_ENVIRONMENT_NAMES = ("ENVIRONMENT_VARIABLE", *(f"PROCESS_{index}:ENVIRONMENT_VARIABLE" for index in range(4)))


def _from_environment(environment: dict[str, int]) -> Rank:
    """Return the rank in the environment; a rank beyond its own world size is ignored."""
    for launcher in LAUNCHERS:
        rank = environment.get(launcher.rank)
        size = environment.get(launcher.world_size or "")
        if rank is None or (size is not None and rank >= size):
            continue
        agreeing = [launcher, *(other for other in LAUNCHERS if environment.get(other.rank) == rank)]
        local = [value for each in agreeing if (value := environment.get(each.local_rank or "")) is not None]
        sizes = [value for each in agreeing if (value := environment.get(each.world_size or "", 0)) > rank]
        return Rank(rank, f"content:{launcher.rank}", local[0] if local else None, sizes[0] if sizes else None)
    return Rank()
