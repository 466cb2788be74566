"""Files at URLs (s3://, gs://, hf://, all that fsspec knows) with the face of a path: listed and read where they lie.

A folder is listed once, with the size, the time and the ETag of all below it; what is asked of these afterwards costs no
request. Credentials are those that the cloud's own tools find: a URL that holds any is refused, and none is ever stored.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path, PosixPath
from typing import Any

from nsightlens.errors import ReadError, UsageError
from nsightlens.terminal.quoting import shell_line
from nsightlens.terminal.text import parts

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_QUERY = re.compile(r"(://[^\s'\"?]*)\?[^\s'\"]*")
_CONTAINER_BEFORE_AT = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes (of Azure) in which what stands before @ is the container."""
_FIRST, _MOST = 1 << 17, 1 << 23
"""Bytes that a request asks for: the first, which often is all that is wanted, and those of a file that is read on and on."""
_VERSIONS = ("ETag", "etag", "VersionId", "generation", "md5Hash", "md5", "oid", "blob_id", "sha256")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")
_JOURNALS = ("-wal", "-journal")
_MOST_SAID = 200
_CHANGED, _NO_ANSWER = "it was changed or deleted while it was read", "no answer from its server"
_NO_CREDENTIALS = "there are no credentials for it"
_TELLING = {"FileExpired": (errno.ESTALE, _CHANGED),
            "ParamValidationError": (errno.ENOENT, "not a valid name of a bucket or file"),
            "NoCredentialsError": (errno.EACCES, _NO_CREDENTIALS),
            "PartialCredentialsError": (errno.EACCES, _NO_CREDENTIALS),
            "DefaultCredentialsError": (errno.EACCES, _NO_CREDENTIALS),
            "EndpointConnectionError": (errno.EHOSTUNREACH, _NO_ANSWER),
            "ConnectTimeoutError": (errno.EHOSTUNREACH, _NO_ANSWER),
            "ReadTimeoutError": (errno.EHOSTUNREACH, _NO_ANSWER),
            "ConnectionClosedError": (errno.EHOSTUNREACH, "the connection broke"),
            "HTTPClientError": (errno.EHOSTUNREACH, "the connection broke"),
            "ResponseStreamingError": (errno.EHOSTUNREACH, "the connection broke"),
            "ClientConnectorError": (errno.EHOSTUNREACH, _NO_ANSWER)}
"""Exceptions of libraries that need not be installed, by name: what they mean."""
_NEXT = {errno.ENOENT: "Check the URL",
         errno.EACCES: "Give credentials as for the cloud's own tools (for S3: AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                       "AWS_SECRET_ACCESS_KEY), and check what they may do",
         errno.EHOSTUNREACH: "Check the network and the endpoint (for S3: AWS_ENDPOINT_URL), and try again"}


class RemotePath(PosixPath):
    """A file or folder at a URL. What is asked of it raises OSError, with the reason as its strerror."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the URL; of a relative path, the path."""
        first, *rest = self.parts or ("",)
        return f"{first}//{'/'.join(rest)}" if first.endswith(":") else "/".join((first, *rest)) or "."

    def __fspath__(self) -> str:
        return str(self)

    def absolute(self) -> RemotePath:
        """Return the path itself."""
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        """Return the path itself: there are no links."""
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return size, time and kind, as last listed where that was done; st_ino stands for the version (its ETag)."""
        tree = _tree_of(self)
        if tree is None:
            return stat_now(self)
        if self not in tree.status:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", str(self))
        return tree.status[self]

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is there."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is there and a folder."""
        return self.exists() and stat.S_ISDIR(self.stat().st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is there and a file."""
        return self.exists() and stat.S_ISREG(self.stat().st_mode)

    def iterdir(self) -> Generator[RemotePath, None, None]:
        """Yield what lies in the folder."""
        tree = _tree_of(self) or _listed(self)
        yield from tree.inside.get(self, ())

    def open(self, mode: str = "rb", buffering: int = -1, *_: Any) -> Any:
        """Return the file, opened for reading bytes."""
        if mode != "rb":
            raise OSError(errno.EROFS, "files at URLs are only read", str(self))
        stream = _Stream(self)
        return stream if buffering == 0 else io.BufferedReader(stream, io.DEFAULT_BUFFER_SIZE)

    def read_bytes(self) -> bytes:
        """Return the content."""
        with self.open() as file:
            content: bytes = file.read()
        return content


@dataclass(slots=True)
class _Tree:
    """What lies below a folder: the status of each path, and the paths in each folder."""

    status: dict[RemotePath, os.stat_result] = field(default_factory=dict)
    inside: dict[RemotePath, list[RemotePath]] = field(default_factory=dict)

    def add(self, path: RemotePath, status: os.stat_result, root: RemotePath) -> None:
        """Take in a path, and the folders between it and `root`."""
        while path not in self.status:
            self.status[path] = status
            if path == root:
                return
            self.inside.setdefault(path.parent, []).append(path)
            path, status = path.parent, _status(stat.S_IFDIR, {})


_TREES: dict[RemotePath, _Tree] = {}
"""What was listed last, by the folder that was asked for."""


def _tree_of(path: RemotePath) -> _Tree | None:
    return next((tree for root, tree in _TREES.items() if path.is_relative_to(root)), None)


def is_url(text: str) -> bool:
    """Return whether a text is a URL, and no path."""
    return _URL.match(text) is not None


def path_of(text: str | Path) -> Path:
    """Return the path that a text names: a RemotePath for a URL."""
    if isinstance(text, RemotePath) or not (url := _URL.match(str(text))):
        return Path(text) if isinstance(text, str) else text
    scheme, rest = url[1].lower(), url[2]
    return Path(rest) if scheme == "file" else RemotePath(f"{scheme}://{rest}")


def path_given(text: str | Path) -> Path:
    """Return the path that a person gives. Raises UsageError for a URL that holds credentials, without naming them."""
    path = path_of(text)
    if url := _URL.match(str(path if isinstance(path, RemotePath) else text)):
        scheme, rest = url[1].lower(), url[2]
        first, has_query = rest.partition("/")[0], "?" in rest and scheme != "file"
        if has_query or (":" in first and "@" in rest) or ("@" in first and scheme not in _CONTAINER_BEFORE_AT):
            bucket = rest.partition("?")[0].rpartition("@")[2].partition("/")[0]
            shown = f"{scheme}://{'' if ':' in bucket else bucket}…"
            raise UsageError(f"{shown}: a URL must hold no credentials and no query: they end up in logs. {_NEXT[errno.EACCES]}")
    return path


def list_below(root: RemotePath) -> None:
    """List a folder with all below it, and remember that. Raises ReadError where it is not there or cannot be listed."""
    try:
        _TREES[root] = _listed(root, deep=True)
    except OSError as exc:
        raise refusal(root, exc) from exc
    if root not in _TREES[root].status:
        raise refusal(root, FileNotFoundError(errno.ENOENT, "no such file or folder"))


def forget() -> None:
    """Forget what was listed."""
    _TREES.clear()


def refusal(path: RemotePath, error: OSError, what_failed: str = "") -> ReadError:
    """Return the error that says why a URL could not be used, and what to do."""
    reason = error.strerror or type(error).__name__
    return ReadError(path, f"{what_failed} ({reason})" if what_failed else reason,
                     _NEXT.get(error.errno or 0, "Check the URL, and try again"), "unreadable")


def _listed(root: RemotePath, *, deep: bool = False) -> _Tree:
    tree = _Tree()
    with asking(root):
        system, base = system_of(root)
        system.invalidate_cache()
        found = system.find(base, detail=True) if deep else {each["name"]: each for each in system.ls(base, detail=True)}
    for name, info in sorted(found.items()):
        below = name.removeprefix(base).strip("/")
        is_folder = info["type"] == "directory"
        if not (deep and is_folder):
            tree.add(root / below if below else root, _status(stat.S_IFDIR if is_folder else stat.S_IFREG, info), root)
    return tree


def files_below(folder: RemotePath) -> dict[RemotePath, os.stat_result]:
    """Return all files below a folder with their status, as they are now. Raises OSError."""
    return {path: status for path, status in _listed(folder, deep=True).status.items() if stat.S_ISREG(status.st_mode)}


def stat_now(path: Path) -> os.stat_result:
    """Return the status of a path as it is now, whatever was listed before. Raises OSError."""
    if not isinstance(path, RemotePath):
        return path.stat()
    with asking(path):
        system, name = system_of(path)
        system.invalidate_cache()
        info = system.info(name)
    return _status(stat.S_IFDIR if info["type"] == "directory" else stat.S_IFREG, info)


def _status(kind: int, info: Mapping[str, Any]) -> os.stat_result:
    """Return what fsspec says of a file as a status: st_ino is a digest of its version; random where it has none, nor a time."""
    version = [f"{key}={info[key]}" for key in _VERSIONS if info.get(key)]
    modified = next((ns for key in _TIMES if (ns := _nanoseconds(info.get(key)))), 0)
    digest = blake2b(repr(version).encode(), digest_size=7).digest() if version or modified else secrets.token_bytes(7)
    seconds = modified // 10**9
    size = int(info.get("size") or 0)
    return os.stat_result((kind | 0o444, int.from_bytes(digest), 0, 1, 0, 0, size, seconds, seconds, seconds),
                          {"st_mtime_ns": modified, "st_ctime_ns": modified, "st_atime_ns": modified})


def _nanoseconds(time: object) -> int:
    """Return a time of fsspec (a datetime, its text, or seconds) since the epoch; 0 where it is none."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            return 0
    seconds = time.timestamp() if isinstance(time, datetime) else time
    return int(seconds * 1_000_000) * 1000 if isinstance(seconds, int | float) else 0


def system_of(path: RemotePath) -> tuple[Any, str]:
    """Return the filesystem of a URL and what the path is called there. Raises UsageError where no package knows it."""
    try:
        import fsspec
    except ImportError as exc:
        raise UsageError((f"{path}: files at URLs need fsspec: ", shell_line("pip", "install", "nsightlens[remote]"))) from exc
    try:
        system, name = fsspec.core.url_to_fs(str(path))
    except (ImportError, ValueError) as exc:
        scheme = path.parts[0].rstrip(":")
        package = {"s3": "nsightlens[remote]", "s3a": "nsightlens[remote]", "gs": "gcsfs", "gcs": "gcsfs",
                   "hf": "huggingface_hub", "abfs": "adlfs", "abfss": "adlfs"}.get(scheme)
        hint = shell_line("pip", "install", package) if package else "Known are the schemes of fsspec: s3, gs, hf and others"
        raise UsageError((f"{path}: no package that reads {scheme}:// is installed. ", hint)) from exc
    return system, name


@contextmanager
def asking(path: RemotePath) -> Iterator[None]:
    """Turn what a filesystem raises into an OSError that says what happened, without secrets.

    Each package has exceptions of its own, and some are those of the libraries below it: all of them are of the request.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as exc:
        number, reason = _meaning(exc)
        raise OSError(number, reason, str(path)) from exc


def _meaning(error: BaseException) -> tuple[int, str]:
    if isinstance(error, FileExistsError):
        return errno.EEXIST, "it is there already"
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT, "no such file, folder or bucket"
    if isinstance(error, PermissionError):
        return errno.EACCES, "access denied"
    told = next((_TELLING[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _TELLING), None)
    if told:
        return told
    if isinstance(error, TimeoutError | ConnectionError):
        return errno.EHOSTUNREACH, _NO_ANSWER
    first = (str(error).splitlines() or [""])[0][:_MOST_SAID]
    from nsightlens.discovery.secrets import struck  # its patterns take 20 ms to make, and every store is opened through here

    said = _QUERY.sub(r"\1", struck(first))
    number = error.errno if isinstance(error, OSError) else None
    return number or errno.EIO, f"{type(error).__name__}: {said}" if said else type(error).__name__


class _Stream(io.RawIOBase):
    """A file at a URL, read in blocks that grow as long as it is read from the beginning to the end."""

    def __init__(self, path: RemotePath) -> None:
        super().__init__()
        self._path = path
        self._at = self._begin = 0
        self._held = b""
        self._block = _FIRST
        self._opened: Any = None

    @property
    def _file(self) -> Any:
        """Return the file of fsspec, opened when it is first wanted: that is a request."""
        if self._opened is None:
            with asking(self._path):
                system, name = system_of(self._path)
                self._opened = system.open(name, "rb", cache_type="none")
        return self._opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = self._file.size if whence == os.SEEK_END else self._at if whence == os.SEEK_CUR else 0
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if not self._begin <= self._at < self._begin + len(self._held):
            self._fetch(len(view))
        data = memoryview(self._held)[self._at - self._begin :][: len(view)]
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _fetch(self, wanted: int) -> None:
        """Hold what begins where the next read does."""
        goes_on = self._held and self._at == self._begin + len(self._held)
        self._block = min(4 * self._block, _MOST) if goes_on else _FIRST
        self._begin, self._held = self._at, b""
        if self._at < self._file.size:
            with asking(self._path):
                self._file.seek(self._at)
                self._held = self._file.read(max(wanted, self._block))

    def close(self) -> None:
        if self._opened is not None and not self.closed:
            self._opened.close()
        super().close()


@contextmanager
def on_disk(paths: Sequence[Path], wanted: bool = True) -> Iterator[list[Path]]:
    """Yield the paths; where `wanted`, those at URLs as copies in a private temporary folder, which goes when the block ends.

    Raises ReadError where one cannot be copied; one that the block raises names the URL in the place of the copy.
    """
    with ExitStack() as stack:
        copies: dict[str, Path] = {}
        for path in paths:
            if wanted and isinstance(path, RemotePath):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nsightlens-"))
                copies[str(_copy(path, Path(folder)))] = path
            else:
                copies[str(path)] = path
        try:
            yield [path if str(path) == here else Path(here) for here, path in copies.items()]
        except ReadError as exc:
            if (where := copies.get(exc.path)) is None or str(where) == exc.path:
                raise
            reason, *advice = (type(part)(part.replace(exc.path, str(where))) if isinstance(part, str) else part
                               for part in (exc.reason, *parts(exc.advice)))
            raise type(exc)(where, str(reason), tuple(advice), exc.code) from exc


def _copy(path: RemotePath, folder: Path) -> Path:
    """Copy a file (with its journals, if it is SQLite's) or a folder of files; return the copy. Raises ReadError."""
    copy = folder / path.name
    try:
        if path.is_dir():
            copy.mkdir()
            pairs = [(inner, copy / inner.name) for inner in path.iterdir() if inner.is_file()]
        else:
            journals = [path.with_name(path.name + ending) for ending in _JOURNALS]
            pairs = [(each, folder / each.name) for each in (path, *journals) if each.exists()]
        for source, target in pairs:
            with asking(source):
                system, name = system_of(source)
                system.get_file(name, str(target))
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            raise ReadError(path, f"no room for a copy of it in {folder.parent}", "Free space there, or set TMPDIR") from exc
        raise refusal(path, exc, "it cannot be copied") from exc
    return copy
