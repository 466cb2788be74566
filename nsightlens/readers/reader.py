"""What a reader is: its protocol, and what a cheap look at a file returns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nsightlens.readers.batches import Batch

HEAD_BYTES = 1 << 16

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class ProcessHint:
    """What a quick look at a file shows of one process in it; None where it is unknown."""

    pid: int | None = None
    host: str | None = None
    rank: int | None = None
    rank_source: str | None = None
    local_rank: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """What a capture says of the GPUs and programs that it is of; empty where it says nothing. It may list more than took part.

    gpus: product names. compute_capabilities: such as '9.0'. programs: base names of what used the GPU.
    """

    gpus: frozenset[str] = frozenset()
    compute_capabilities: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Probe:
    """What a quick look (no full parse) shows of a file: enough for `scan`, and to group files into profiles.

    kind: what the file is, such as 'nsys sqlite', 'ncu details csv', 'kineto json'.
    identity: names of what was captured. Two files of one run that share a member may belong to one profile (ncu: the
        launches, nsys: the session); empty where nothing certain is known.
    window_of: names the OS process, so that files of one process in one run that do not overlap are its windows.
    first_epoch_ns: rough epoch of its first event, to order windows.
    unread: tables in it that hold events and that ingest does not read, with their rows.
    note: what else is to be known of it before it is read.
    origin: the GPUs and programs that it is of.
    run, execution: what it calls the run and the execution that it is of; a sidecar beside it is then not asked: it may be stale.
    """

    kind: str
    tool_version: str | None = None
    processes: tuple[ProcessHint, ...] = ()
    identity: frozenset[str] = field(default_factory=frozenset)
    window_of: str | None = None
    first_epoch_ns: int | None = None
    unread: Mapping[str, int] = field(default_factory=dict)
    note: str | None = None
    origin: Origin = Origin()
    run: str | None = None
    execution: str | None = None


class Reader(Protocol):
    """What a reader module offers."""

    TOOL: str
    """nsys, ncu, kineto, steps, nccl_inspector or flight_recorder."""

    NEEDS_FILES: bool
    """Whether it wants files of the operating system: SQLite reads no other. Else it opens a path only by `open`, and reads
    it from the beginning to the end."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether this reader should try `path` (a file, or a directory for parquetdir: then head is b"").

        `head` holds the first HEAD_BYTES bytes, already decompressed for gzip content. Cheap; never raises.
        """

    def probe(self, path: Path) -> Probe:
        """Return what a quick look at the file shows. Raises ReadError (or UnknownFormatError) for unreadable files."""

    def read(self, paths: Sequence[Path], *, jobs: int = 1) -> Iterator[Batch]:
        """Yield (table name, batch) in any order, each batch with columns of that table's `reader_schema` only.

        `paths`: the files of one window of one profile (more than one only for ncu: pages of one report).
        Every row of a table with `process_index` names the position of its process among the rows of `processes`.
        Exactly one row of `profiles` is yielded. `kernel_row` counts the rows of `kernels` in the order yielded.
        Partial data is yielded with diagnostics; ReadError is raised only where nothing can be read.
        `jobs`: processes or threads it may use.
        """


def program_name(command: str | None) -> str | None:
    """Return the base name of the program of a command line: its arguments may hold secrets. None where it has none."""
    program = next(iter((command or "").split()), "").strip("\"'")
    return None if _ASSIGNMENT.match(program) else re.split(r"[/\\]", program)[-1] or None
