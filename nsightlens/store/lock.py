"""The lock of a store: at most one writer at a time, also on file systems without file locks.

Its file is the first that is made in a store, and says so: a folder with it is a store, also where an ingest was killed before
there was a catalog. It is never emptied, and of a file of that name that we did not write no byte is changed.

Where the file system has flock, the kernel holds the lock and drops it when the writer dies. Where it has none (Lustre mounted
without `flock`, some FUSE and NFS mounts), the lock is a folder with one entry, whose name says who the holder is:

- A writer takes a free lock by renaming a folder with its own entry to the lock's name. A rename replaces no folder that has an
  entry, so one writer wins.
- A lock is taken from another writer only where that writer is known to be dead: it ran in this boot of this machine, in this
  PID namespace, and no process has its id. The entry is renamed to the new holder's: the old name holds for that writer only, so
  one successor wins, and none can take a lock that lives.
- Everywhere else nothing is taken away. The holder touches its entry; one that has been silent for long is an error that says
  what to delete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

from nsightlens.errors import StoreError
from nsightlens.store import no_links

FILE = "lock"
FOLDER = "lock-holder"
MARK = b"nsightlens store\n"
"""How the lock's file begins; after it stands who holds the lock."""
_OF_EARLIER_VERSIONS = b"process "
_CONTENTION = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP}
_POLL_SECONDS = 0.5
_BEAT_SECONDS = 10.0
_SILENT_SECONDS = 180.0
"""A holder that has not touched its entry for so long is taken for lost: longer than NFS keeps a file's times in its cache."""


def _fcntl() -> Any:
    """Return the module fcntl, None where the system has none (Windows)."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def has_locks(path: Path) -> bool:
    """Return False where the file system of the file at `path` is known to have no POSIX locks, which DuckDB asks for."""
    fcntl = _fcntl()
    if fcntl is None:
        return True
    with path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as exc:
            return exc.errno not in _NO_LOCKS
    return True


@dataclass(frozen=True, slots=True)
class Holder:
    """A writer: which process of which machine, and since when. `boot` and `namespace` are empty where the system has none."""

    token: str
    pid: int
    namespace: str
    boot: str
    since: int
    host: str

    @classmethod
    def here(cls) -> Holder:
        """Return this process as a holder, with a token of its own."""
        return cls(secrets.token_hex(8), os.getpid(), _namespace(), _boot(), int(time.time()), socket.gethostname())

    @classmethod
    def named(cls, name: str) -> Holder | None:
        """Return the holder whose entry has this name; None where it is no such name."""
        try:
            token, pid, namespace, boot, since, host = name.split(",")
            return cls(token, int(pid), namespace, boot, int(since), unquote(host))
        except ValueError:
            return None

    @property
    def name(self) -> str:
        """Return the name of the holder's entry."""
        return ",".join([self.token, str(self.pid), self.namespace, self.boot, str(self.since), quote(self.host, safe="")])

    @property
    def is_dead(self) -> bool:
        """Return True if the process certainly runs no more; False where that cannot be known from here."""
        if not self.boot or not self.namespace or (self.boot, self.namespace) != (_boot(), _namespace()):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return _is_zombie(self.pid)

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} since {since}"


def _is_zombie(pid: int) -> bool:
    """Return True if the process has ended with all its threads, and only its parent has not asked for its exit code yet."""
    process = Path(f"/proc/{pid}")
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state == "Z" and len(list((process / "task").iterdir())) <= 1
    except (OSError, IndexError):
        return False


def _boot() -> str:
    """Return the id of this boot of this machine, empty where the system has none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _namespace() -> str:
    """Return the number of the PID namespace that this process sees, empty where the system has none."""
    with contextlib.suppress(OSError):
        return "".join(c for c in str(Path("/proc/self/ns/pid").readlink()) if c.isdigit())
    return ""


def marked(store: Path) -> IO[bytes]:
    """Return the file of a store's lock, open, and made where there is none. Raises StoreError where it is a link, OSError."""
    file = os.fdopen(no_links.open_file(store / FILE, os.O_RDWR | os.O_CREAT), "r+b", buffering=0)
    if not os.fstat(file.fileno()).st_size:
        try:
            os.pwrite(file.fileno(), MARK, 0)
        except OSError:
            file.close()
            raise
    return file


class Lock:
    """The lock of the store at `path`, held between acquire() and release().

    on_wait: called once with who holds it, where that is another. confirm: called before anything is made; raises StoreError
    where no store may be. Raises StoreError where the store's folder cannot be written, the system has no file locks at all, or
    the holder is lost.
    """

    def __init__(
        self, path: Path, on_wait: Callable[[str], None] | None = None, confirm: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._on_wait = on_wait
        self._confirm = confirm
        self._is_new = False
        self._file: IO[bytes] | None = None
        self._entry: Path | None = None
        self._folder: tuple[int, int] | None = None
        self._released = threading.Event()

    @property
    def in_kernel(self) -> bool:
        """Return True if the file system has file locks, False if the lock is the folder."""
        return self._file is not None

    def acquire(self) -> None:
        """Wait for the lock, and take it."""
        if _fcntl() is None:
            raise StoreError(f"{self._path}: a store can be read on this system, but not written: that takes POSIX file locks",
                             self._path, "Ingest on Linux, macOS or WSL, and copy the store")
        try:
            while not self._acquire_file():
                pass
        except OSError as exc:
            if exc.errno not in _NO_LOCKS:
                why = f"{self._path}: the store cannot be written ({exc.strerror})"
                raise StoreError(why, self._path, "Choose another with --store") from exc
            self._acquire_folder()
        self._folder = _identity(self._path)

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back. remove: take its file away as well, for no store came to be, and the folder where this made it."""
        if remove:
            with contextlib.suppress(OSError):
                (self._path / FILE).unlink()  # while it is held: whoever waits for this file looks again
        if self._file:
            self._note(self._file, b"")
            self._file.close()
            self._file = None
        if self._entry:
            self._released.set()
            with contextlib.suppress(OSError):
                self._entry.unlink()
                self._entry.parent.rmdir()
            self._entry = None
        if remove and self._is_new:
            with contextlib.suppress(OSError):  # not empty: another writer came
                self._path.rmdir()

    def check(self) -> None:
        """Raise StoreError where the store's folder is no longer the one that was locked, or its lock was taken away."""
        if not self.is_in_place:
            raise StoreError(f"{self._path}: moved or replaced while it was written, and left as it is now", self._path,
                             "Try again once nothing else moves it")

    @property
    def is_in_place(self) -> bool:
        """Return whether the folder at the path is the one that was locked, and the lock is in it."""
        return self._folder == _identity(self._path) and (self._entry is None or self._entry.exists())

    # -- flock -------------------------------------------------------------------------------------------------

    def _acquire_file(self) -> bool:
        """Wait for the lock on the file; False if the file was taken away meanwhile. Raises OSError where there are no locks."""
        file = self._opened()
        try:
            self._flock(file)
            path = self._path / FILE
            if not path.exists() or os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                file.close()
                return False
        except OSError:
            file.close()
            raise
        self._file = file
        self._note(file, str(Holder.here()).encode())
        return True

    def _opened(self) -> IO[bytes]:
        """Return the lock's file, open, made where the folder is a store or may become one."""
        self._confirm()
        try:
            return marked(self._path)
        except FileNotFoundError:
            self._path.mkdir(parents=True, exist_ok=True)
            self._is_new = True
            return self._opened()  # another writer may have removed it already

    def _note(self, file: IO[bytes], holder: bytes) -> None:
        """Write who holds the lock, for those who wait, where the file is ours alone."""
        with contextlib.suppress(OSError):  # a full disk has no room for it
            content = os.pread(file.fileno(), len(MARK), 0)
            if os.fstat(file.fileno()).st_nlink <= 1 and content.startswith((MARK, _OF_EARLIER_VERSIONS)):
                os.pwrite(file.fileno(), MARK + holder, 0)
                os.ftruncate(file.fileno(), len(MARK + holder))

    def _flock(self, file: IO[bytes]) -> None:
        fcntl = _fcntl()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            if exc.errno not in _CONTENTION:
                raise
            text = os.pread(file.fileno(), 1 << 10, 0).removeprefix(MARK)
            self._say(text.decode("utf-8", "replace").strip() or "another ingest")
            fcntl.flock(file, fcntl.LOCK_EX)

    def _say(self, holder: str) -> None:
        if self._on_wait:
            self._on_wait(holder)
            self._on_wait = None

    # -- the folder ----------------------------------------------------------------------------------------------

    def _acquire_folder(self) -> None:
        folder = self._path / FOLDER
        no_links.confirm_folder(folder)
        holder = Holder.here()
        last, heard = _last_beat(folder), time.monotonic()
        try:
            while not self._take(folder, holder):
                beat = _last_beat(folder)
                if beat != last:
                    last, heard = beat, time.monotonic()
                elif beat and time.monotonic() - heard > _SILENT_SECONDS:
                    raise StoreError(f"{folder}: {beat[0]} holds this store, and has given no sign of life for "
                                     f"{_SILENT_SECONDS:.0f} s", self._path,
                                     "If it no longer runs, delete this folder and ingest again")
                if beat:
                    self._say(beat[0])
                    time.sleep(_POLL_SECONDS)
        except OSError as exc:
            why = f"{self._path}: the store cannot be written ({exc.strerror})"
            raise StoreError(why, self._path, "Choose another with --store") from exc
        self._entry = folder / holder.name
        threading.Thread(target=self._touch, args=(self._entry,), daemon=True).start()

    def _take(self, folder: Path, mine: Holder) -> bool:
        """Take the lock where it is free or its holder is dead; return True if it is ours now."""
        names = _entries(folder)
        try:
            if not names:
                self._opened().close()  # it went with the last holder, where that made no store
                with _folder_of(self._path, mine) as own:
                    own.rename(folder)
            elif (holder := Holder.named(names[0])) and holder.is_dead:
                (folder / names[0]).rename(folder / mine.name)
        except OSError as exc:  # another was faster; or the answer of a server that did it was lost
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
        return (folder / mine.name).exists()

    def _touch(self, entry: Path) -> None:
        while not self._released.wait(_BEAT_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(entry)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return device and inode of a folder; None where there is none."""
    with contextlib.suppress(OSError):
        status = folder.stat()
        return status.st_dev, status.st_ino
    return None


def _last_beat(folder: Path) -> tuple[str, int] | None:
    """Return who holds the lock and when it last touched its entry; None where nobody holds it."""
    for name in _entries(folder):
        with contextlib.suppress(FileNotFoundError):
            return str(Holder.named(name) or name), (folder / name).stat().st_mtime_ns
    return None


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _folder_of(store: Path, holder: Holder) -> Iterator[Path]:
    """Provide a folder with the holder's entry, to be renamed; it is removed where it was not."""
    folder = store / f".{FOLDER}.{holder.token}"
    folder.mkdir()
    try:
        (folder / holder.name).touch()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
