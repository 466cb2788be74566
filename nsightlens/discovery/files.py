"""A run directory -> its files, each with what it is, which reader takes it, and which rank it is of."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from isal import isal_zlib

from nsightlens.discovery import orphan_sidecars, remote, unsupported
from nsightlens.discovery.export import VendorReport, packed, recognise
from nsightlens.discovery.ranks import (
    MAX_NAME,
    SIDECAR_SUFFIX,
    Sidecar,
    natural_key,
    rank_from_name,
    read_sidecar,
    sidecar_of,
    sidecar_path,
)
from nsightlens.discovery.remote import RemotePath
from nsightlens.discovery.sniff_cache import Fingerprint, SniffCache, Stamp, probe_without_secrets, stamp_of
from nsightlens.errors import ReadError, UsageError
from nsightlens.readers.formats import READERS
from nsightlens.readers.ncu import recognise_foreign_csv
from nsightlens.readers.ncu_rep.stream import MAGIC, codec_of, unpacked_head
from nsightlens.readers.reader import HEAD_BYTES, Probe, Reader
from nsightlens.terminal.printable import printable

_GZIP = b"\x1f\x8b"
_APPLE_DOUBLE = b"\x00\x05\x16\x07"
_LFS_POINTER = b"version https://git-lfs"
_BLOCK = 1 << 20
_CAPTURE_SUFFIXES = (".json", ".json.gz", ".csv", ".sqlite", ".sqlite3", ".db", ".nsys-rep", ".qdrep", ".ncu-rep", ".ncu-repz")
_CATALOG, _COMMITS = "nsightlens.duckdb", "nsightlens-commits"
_NCU_LOG = ".ncu.log"
_SIDECAR = "sidecar"


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One file (or nsys parquet directory) of a run.

    tool: the reader that takes it, None where none does; `refused` then says why, unless the file is simply none of ours.
    """

    path: Path
    root: Path
    run: str
    bytes: int
    modified_ns: int
    kind: str
    tool: str | None = None
    probe: Probe | None = None
    report: VendorReport | None = None
    refused: ReadError | None = None
    sidecar: Sidecar | None = None
    sidecar_problem: str | None = None
    rank_hint: tuple[int | None, str | None] = (None, None)
    fingerprint: Fingerprint | None = None
    """Of an earlier look, where the file has not changed since."""
    stamps: tuple[Stamp, ...] = ()
    """Of the file, or of each file of the directory, from before it was looked at."""

    @property
    def rank(self) -> tuple[int | None, str | None]:
        """Return (rank, source) as far as a quick look shows: the user's pattern, else sidecar, else content, else name."""
        if self.rank_hint[1] == "pattern":
            return self.rank_hint
        if self.sidecar and self.sidecar.rank is not None:
            return self.sidecar.rank, "sidecar"
        stated = [(p.rank, p.rank_source) for p in (self.probe.processes if self.probe else ()) if p.rank is not None]
        if len(stated) == 1:
            return stated[0]
        return self.rank_hint if not stated else (None, None)


def path_text(path: str | Path) -> str:
    """Return a path as text that can be stored and printed: bytes that are no UTF-8 stand as \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def walk(root: Path) -> Iterator[Path]:
    """Yield the files below `root` in natural order; nsys parquet directories, and folders that cannot be listed, as one; stores
    and hidden folders not at all. Links to folders are followed, but no folder is entered twice: a loop of links ends.
    """
    yield from _below(root, set())


def _below(path: Path, entered: set[tuple[int, int]]) -> Iterator[Path]:
    try:
        is_folder = path.is_dir() and not _is_parquet_export(path)
        status = path.stat()
        entries = sorted(_entries(path), key=lambda e: (e.is_symlink(), natural_key(e.name))) if is_folder else []
    except OSError:
        is_folder = False
    if not is_folder:
        yield path
        return
    if (status.st_dev, status.st_ino) in entered and not isinstance(path, RemotePath):
        return
    entered.add((status.st_dev, status.st_ino))
    for entry in entries:
        inner = path / entry.name
        if _is_folder(entry):
            if not entry.name.startswith(".") and not _is_store(inner):
                yield from _below(inner, entered)
        elif entry.name.startswith("._") or not entry.name.startswith("."):
            yield inner


def _entries(path: Path) -> Iterator[os.DirEntry[str] | RemotePath]:
    return path.iterdir() if isinstance(path, RemotePath) else os.scandir(path)


def _is_store(path: Path) -> bool:
    try:
        return (path / _CATALOG).exists() or (path / _COMMITS).exists()
    except OSError:  # it may not be searched, as `walk` will find
        return False


def _is_folder(entry: os.DirEntry[str] | RemotePath) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_parquet_export(path: Path) -> bool:
    return any(reader.sniff(path, b"") for reader in READERS)


def run_names(roots: Sequence[Path], given: str | None = None, taken: dict[str, str] | None = None) -> dict[Path, str]:
    """Return a run name per root: `given`, else the name it has in the store, else the folder's name, lengthened by parent
    folders until each has its own.

    taken: the runs in the store (name -> folder).
    """
    if given is not None:
        return dict.fromkeys(roots, given)
    folders = {root: (root if root.is_dir() else root.parent).resolve() for root in roots}
    earlier: dict[Path, list[str]] = {}
    for name, where in (taken or {}).items():
        earlier.setdefault(remote.path_of(where).resolve(), []).append(name)
    names: dict[Path, str] = {}
    for root, folder in folders.items():
        known = [name for name in earlier.get(folder, ()) if len(earlier[folder]) == 1 or f"/{folder}".endswith(f"/{name}")]
        if known:
            names[root] = known[0]
            continue
        others = {f for f in [*folders.values(), *earlier] if f != folder}
        depth = 1
        while depth < len(folder.parts) and any(_tail(folder, depth) == _tail(other, depth) for other in others):
            depth += 1
        names[root] = _tail(folder, depth)
    return names


def _tail(folder: Path, depth: int) -> str:
    return printable(path_text("/".join(folder.parts[-depth:]).strip("/"))) or "root"


def find(
    roots: Iterable[str | Path], *, run: str | None = None, rank_pattern: str | None = None,
    taken: dict[str, str] | None = None, held: Mapping[str, set[str]] | None = None,
    looks: SniffCache | None = None, progress: Callable[[Path], None] | None = None,
) -> list[CaptureFile]:
    """Return every file below `roots`, classified.

    taken: the runs in the store (name -> folder). held: the runs that hold the capture at a path in the store.
    looks: what earlier ingests saw.
    Raises UsageError for a path that does not exist, a bad pattern, and a folder that the store has under several names;
    ReadError for a URL that cannot be listed.
    """
    remote.forget()
    listed = [remote.path_given(root) for root in roots]
    listed = [root if isinstance(root, RemotePath) else Path(os.path.abspath(root)) for root in listed]
    for root in listed:
        if isinstance(root, RemotePath):
            remote.list_below(root)
        elif not root.exists():
            raise UsageError(f"{root}: no such file or directory", subject="path", value=path_text(root))
    try:
        pattern = re.compile(rank_pattern) if rank_pattern else None
    except re.error as exc:
        raise UsageError(f"--rank-pattern {rank_pattern!r} is not a regular expression: {exc}",
                         subject="rank_pattern", value=rank_pattern) from exc
    if run is not None and not 0 < len(quote(run, safe="")) <= MAX_NAME:
        raise UsageError("--run needs a name of at most 240 characters", subject="run", value=run)
    names = run_names(listed, run, taken)
    found: list[CaptureFile] = []
    seen: set[Path] = set()
    for root in listed:
        here = []
        for path in walk(root):
            if path not in seen:
                seen.add(path)
                if progress:
                    progress(path)
                here.append(look_at(path, root if root.is_dir() else root.parent, names[root], pattern, run is not None, looks))
        found += here if run is not None else _share_run(_as_held(here, root, taken or {}, held or {}))
    return _refuse_lost(found)


def _refuse_lost(files: list[CaptureFile]) -> list[CaptureFile]:
    """Refuse the sidecars whose capture is not there."""
    there = orphan_sidecars.stems(f.path for f in files if f.tool or f.refused)
    return [_refuse_if_lost(f) if f.kind == _SIDECAR and _stem(f.path) not in there else f for f in files]


def _stem(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(SIDECAR_SUFFIX))


def _refuse_if_lost(file: CaptureFile) -> CaptureFile:
    rank, refused = orphan_sidecars.why_lost(file.path) or (None, None)
    return replace(file, refused=refused, rank_hint=file.rank_hint if rank is None else (rank, "sidecar")) if refused else file


def _as_held(files: list[CaptureFile], root: Path, taken: Mapping[str, str], held: Mapping[str, set[str]]) -> list[CaptureFile]:
    """Give the files without a sidecar the run that holds them in the store, where the folder has several names there."""
    bare = [f for f in files if not (f.sidecar and f.sidecar.run)]
    folder = (root if root.is_dir() else root.parent).resolve()
    holders = {run for f in bare for run in held.get(path_text(f.path), ())}
    runs = {run for run in holders if remote.path_of(taken.get(run, "")).resolve() == folder}
    if not runs or bare[0].run in runs:
        return files
    if len(runs) > 1:
        raise UsageError(f"{root}: in the store this is the runs {', '.join(sorted(runs))}. Name the one you mean with --run",
                         subject="run", choices=sorted(runs))
    run = runs.pop()
    return [f if f.sidecar and f.sidecar.run else replace(f, run=run) for f in files]


def _share_run(files: list[CaptureFile]) -> list[CaptureFile]:
    """Give the files without a sidecar the run that all sidecars of the folder name, if they name one."""
    named = {f.sidecar.run for f in files if f.sidecar and f.sidecar.run}
    if len(named) != 1:
        return files
    run = str(named.pop())
    return [f if f.sidecar and f.sidecar.run else replace(f, run=run) for f in files]


def look_at(
    path: Path, root: Path, run: str, pattern: re.Pattern[str] | None = None, run_is_given: bool = False,
    looks: SniffCache | None = None,
) -> CaptureFile:
    """Return what one file is. Never raises for a bad file: what is wrong stands in `refused`."""
    try:
        status = path.stat()
        seen = looks.of(path, status) if looks else None
        if not stat.S_ISREG(status.st_mode) and not path.is_dir():
            return CaptureFile(path, root, run, 0, status.st_mtime_ns, "not a regular file (pipe, socket or device)")
        stamps = _stamps(path, status)
        size = sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else status.st_size
        head = b"" if seen or path.is_dir() else _head(path)
    except OSError as exc:
        closed = ReadError(path, f"it cannot be opened ({exc.strerror})", "Check the permissions and the disk", "unreadable")
        return CaptureFile(path, root, run, 0, 0, "unreadable", refused=closed)
    hint = rank_from_name(path, root, pattern)
    known = (seen.probe.kind, seen.tool, seen.probe, None, None) if seen else None
    kind, tool, probe, report, refused = known or _classify(path, head, size)
    sidecar, problem = _sidecar(path, probe)
    if sidecar and sidecar.run and not run_is_given:
        run = sidecar.run
    return CaptureFile(path, root, run, size, status.st_mtime_ns, kind, tool, probe, report, refused, sidecar, problem, hint,
                       seen.fingerprint if seen else None, stamps)


def _stamps(path: Path, status: os.stat_result) -> tuple[Stamp, ...]:
    """Return what differs between two states of a file, or of the files of a directory. Raises OSError."""
    if isinstance(path, RemotePath):  # not all ways of asking tell the version
        return ((status.st_size, status.st_mtime_ns, 0, 0, 0),)
    return tuple(map(stamp_of, [p.stat() for p in sorted(path.iterdir())] if stat.S_ISDIR(status.st_mode) else [status]))


def has_changed(file: CaptureFile) -> bool:
    """Return whether a file has changed since it was looked at: grown, cut, rewritten, replaced by another, or gone."""
    try:
        return _stamps(file.path, remote.stat_now(file.path)) != file.stamps
    except OSError:
        return True


def still_written(file: CaptureFile) -> ReadError:
    """Return the refusal of a file that has changed since it was looked at: its rows could be of two states of it."""
    return ReadError(file.path, "it is still being written: it changed, or was replaced, while it was read",
                     "Ingest it again once it is complete", "changed_while_read")


def _sidecar(path: Path, probe: Probe | None) -> tuple[Sidecar | None, str | None]:
    stated = {"run": probe.run, "execution_id": probe.execution} if probe else {}
    where = path if any(stated.values()) else None if path.name.endswith(SIDECAR_SUFFIX) else sidecar_path(path)
    if where is None:
        return None, None
    try:
        return (sidecar_of(path, stated) if where is path else read_sidecar(where)), None
    except (OSError, ValueError, RecursionError) as exc:
        return None, f"the sidecar {path_text(where.name)} is ignored: {exc}"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(_GZIP):
        try:
            return isal_zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except isal_zlib.error:  # type: ignore[misc]  # its stub says it is an instance
            return head
    if codec_of(head) == "zstd" and (unpacked := unpacked_head(path, HEAD_BYTES)).startswith(MAGIC):
        return unpacked
    return head


_Class = tuple[str, str | None, Probe | None, VendorReport | None, ReadError | None]


def _classify(path: Path, head: bytes, size: int) -> _Class:
    if path.name.endswith(SIDECAR_SUFFIX):
        return _SIDECAR, None, None, None, None
    is_capture = path.name.lower().endswith(_CAPTURE_SUFFIXES)
    if not head and not path.is_dir():
        empty = ReadError(path, "it is empty", "Record or copy it again", "empty_file")
        return "empty file", None, None, None, empty if is_capture else None
    if head.startswith(_APPLE_DOUBLE):
        return "AppleDouble file (macOS metadata, no capture)", None, None, None, None
    if head.startswith(_LFS_POINTER):
        pointer = ReadError(path, "it is a Git LFS pointer, not the file itself",
                            "Run git lfs pull in its repository, and ingest again", "lfs_pointer")
        return "Git LFS pointer", None, None, None, pointer if is_capture else None
    report = recognise(head) or packed(path, head)
    if report:
        return report.kind, report.tool, None, report, None
    other = unsupported.recognise(path, head)
    if other:
        return other.kind, None, None, None, other.error(path) if other.is_capture or is_capture else None
    for reader in READERS:
        if reader.sniff(path, head):
            return _probe(reader, path)
    other = unsupported.recognise_text(head)
    if other:
        return other.kind, None, None, None, other.error(path) if other.is_capture or is_capture else None
    foreign = recognise_foreign_csv(head.decode("utf-8", "replace"))
    if foreign:
        kind, why, what_to_do = foreign
        return kind, None, None, None, ReadError(path, why, what_to_do, "foreign_format")
    if is_capture:
        why = "it is not an nsys export, ncu report or CSV, PyTorch-profiler trace or log of step times"
        return "unknown", None, None, None, ReadError(path, why, "Leave it, or see docs/formats.md", "unknown_format")
    return "other", None, None, None, None


def _probe(reader: Reader, path: Path) -> _Class:
    try:
        with remote.on_disk([path], reader.NEEDS_FILES) as (here,):
            probe = reader.probe(here)
    except ReadError as exc:
        if path.name.endswith(_NCU_LOG):   # the wrapper's own, beside the report; where it holds a table it is read
            return "ncu log", None, None, None, None
        return exc.reason.split(":")[0][:60], None, None, None, exc
    return probe.kind, reader.TOOL, probe_without_secrets(probe), None, None



def fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of a file's or parquet directory's content; reads all of it. Raises OSError."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    digest = blake2b(digest_size=16)
    size = crc = 0
    gzip_tail = None
    for file in files:
        digest.update(file.name.encode() if path.is_dir() else b"")
        crc, size, head, tail = _checksum(file, digest.update)
        if head == _GZIP:
            gzip_tail = int.from_bytes(tail[-4:], "little"), int.from_bytes(tail[-8:-4], "little")
    return Fingerprint(digest.hexdigest(), gzip_tail or (size & 0xFFFFFFFF, crc))


def _checksum(file: Path, update: Callable[[bytes], object]) -> tuple[int, int, bytes, bytes]:
    """Feed the running CRC-32 at the end of each block to `update`; return CRC, size, first 2 and last 8 bytes."""
    crc = size = 0
    head = tail = b""
    buffer = bytearray(_BLOCK)
    view = memoryview(buffer)
    with file.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            crc = isal_zlib.crc32(view[:count], crc)
            head = head or bytes(view[:2])
            tail = (tail + bytes(view[max(0, count - 8) : count]))[-8:]
            size += count
            update(crc.to_bytes(4, "little"))
    update(size.to_bytes(8, "little"))
    return crc, size, head, tail
