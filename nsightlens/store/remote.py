"""A store at a URL: its parts and its catalog lie there; what reads or writes it works on a copy of the catalog in the cache.

At the URL are

    parts/                            as in a store on a disk
    catalogs/TOKEN.duckdb             the catalog of one commit
    nsightlens-commits/NUMBER.json    which catalog that is; the one with the highest number is the store
    nsightlens-commits/TOKEN.journal  what a writer is about to write or to delete; it goes with the commit

A commit is made by one request that creates its file, and fails where it is there already: of two writers that began with the
same store one wins, and the other changes nothing. Nothing needs a lock, and a writer that is killed leaves none.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from nsightlens.discovery import remote
from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import StoreError, no_store
from nsightlens.store import user_cache
from nsightlens.store.lock import marked
from nsightlens.store.no_links import is_made
from nsightlens.terminal.quoting import Verbatim, quoted

CATALOG = "nsightlens.duckdb"
COMMITS = "nsightlens-commits"
_CATALOGS = "catalogs"
_CATALOG = re.compile(rf"{_CATALOGS}/[0-9a-f]{{16}}\.duckdb")
_DIGITS = 10
_KEPT = 2
"""Catalogs of one store in the cache: a reader may be about to open the last but one."""
_REQUESTS = 8
_ORPHAN_SECONDS = 86_400
"""Age from which on a journal is of a writer that was killed, and of none that is about to commit."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A state of the store: its number (0: there is none yet), and what its catalog is called."""

    number: int
    token: str


@contextmanager
def _as_store_error(store: RemotePath, what_failed: str = "") -> Iterator[None]:
    """Let what could not be done at a URL end in a StoreError."""
    try:
        yield
    except OSError as exc:
        raise StoreError(str(remote.refusal(store, exc, what_failed)), store) from exc


def newest(store: RemotePath) -> Commit:
    """Return the last commit. Raises StoreError where the URL does not answer."""
    folder = store / COMMITS
    with _as_store_error(store):
        try:
            with remote.asking(folder):
                system, name = remote.system_of(folder)
                system.invalidate_cache()
                names = [each["name"] for each in system.ls(name, detail=True)]
            numbers = [int(stem) for name in names if (stem := Path(name).stem).isdecimal() and name.endswith(".json")]
            if not numbers:
                return Commit(0, "")
            token = json.loads(_file(store, max(numbers)).read_bytes())["catalog"]
        except FileNotFoundError:
            return Commit(0, "")
        except (ValueError, TypeError, KeyError) as exc:
            raise _damaged(store) from exc
    if not isinstance(token, str) or not token.isalnum():
        raise _damaged(store)
    return Commit(max(numbers), token)


def _damaged(store: RemotePath) -> StoreError:
    return StoreError(f"{store / COMMITS}: its last commit is damaged", store, "Delete it to have the store as it was before")


def _file(store: RemotePath, number: int) -> RemotePath:
    return store / COMMITS / f"{number:0{_DIGITS}}.json"


def _catalog(store: RemotePath, token: str) -> RemotePath:
    return store / _CATALOGS / f"{token}.duckdb"


def folder_of(store: Path) -> Path:
    """Return the folder in which a store is written: itself; of a store at a URL, one in the cache, for this user alone."""
    if not isinstance(store, RemotePath):
        return store
    folder = user_cache.folder("stores", blake2b(str(store).encode(), digest_size=8).hexdigest())
    try:
        if folder is None:
            raise FileNotFoundError("there is no home, or a link where the cache would be")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        marked(folder).close()
    except OSError as exc:
        what_to_do = "Set XDG_CACHE_HOME to one you can write"
        raise StoreError(f"{store}: no folder here for its catalog ({exc})", store, what_to_do) from exc
    return folder


def fetched(store: Path) -> Path:
    """Return the folder with the catalog of a store: itself; of a store at a URL, one in the cache, to which it is fetched.

    Raises StoreError where there is no store, or it cannot be fetched.
    """
    if not isinstance(store, RemotePath):
        return store
    last = newest(store)
    if not last.number:
        raise no_store(store)
    folder = folder_of(store) / "catalogs" / last.token
    if not (folder / CATALOG).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{secrets.token_hex(4)}"
        try:
            with _as_store_error(store, "its catalog cannot be fetched"), remote.asking(_catalog(store, last.token)):
                system, name = remote.system_of(_catalog(store, last.token))
                system.get_file(name, str(draft))
            draft.replace(folder / CATALOG)
        except StoreError:
            if newest(store) == last:
                raise
            return fetched(store)  # an ingest has replaced it meanwhile
        finally:
            draft.unlink(missing_ok=True)
        _drop_older(folder)
    return folder


def _drop_older(folder: Path) -> None:
    with contextlib.suppress(OSError):  # another process removes some, too
        others = sorted(set(folder.parent.iterdir()) - {folder}, key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for stale in others[_KEPT - 1:]:
            shutil.rmtree(stale, ignore_errors=True)


class Far:
    """What a writer does at the URL of its store."""

    def __init__(self, store: RemotePath) -> None:
        self._store = store
        self._before = Commit(0, "")
        self._token = ""
        self._may_be_made = False

    def pull(self, catalog: Path) -> None:
        """Put the catalog of the last commit at `catalog`; nothing where there is none.

        Raises StoreError where there is something else than a store, too.
        """
        self._before = newest(self._store)
        if not self._before.number:
            self._confirm_empty()
        catalog.unlink(missing_ok=True)
        if self._before.number:
            _link(fetched(self._store) / CATALOG, catalog)

    def _confirm_empty(self) -> None:
        """Raise StoreError where there is something, and no writer has left its journal there."""
        with _as_store_error(self._store), contextlib.suppress(FileNotFoundError), remote.asking(self._store):
            system, name = remote.system_of(self._store)
            names = {each["name"].rstrip("/").rpartition("/")[2] for each in system.ls(name, detail=True)}
            if names - {"", self._store.name} and COMMITS not in names:
                raise StoreError(f"{self._store}: not a store, and not empty: a store takes a place of its own", self._store,
                                 ("Choose one that is new: ", Verbatim(f"--store {quoted(self._store / 'nsightlens-store')}")))

    def parts(self) -> set[str]:
        """Return the parts that lie there, as paths below the store. Raises StoreError."""
        return set(self._times("parts"))

    def _times(self, folder: str) -> dict[str, float]:
        """Return when each file that is not empty was written, of those below a folder."""
        with _as_store_error(self._store):
            try:
                files = remote.files_below(self._store / folder)
            except FileNotFoundError:
                return {}
        return {str(path.relative_to(self._store)): status.st_mtime for path, status in files.items() if status.st_size}

    def download(self, folder: Path, parts: Collection[Path]) -> None:
        """Bring parts to their places below `folder`; those that are not there are left out. Raises StoreError."""
        parts_there = self.parts() if parts else set()
        _side_by_side(lambda part: self._get(self._store / part, folder / part),
                      parts_there & {part.relative_to(folder).as_posix() for part in parts})

    def _get(self, source: RemotePath, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _as_store_error(self._store, "its parts cannot be fetched"), remote.asking(source):
            system, name = remote.system_of(source)
            system.get_file(name, str(target))

    def upload(self, folder: Path, parts: Collection[str], gone: Collection[str]) -> None:
        """Put parts there, which lie below `folder`. Raises StoreError; those that came through are then gone again.

        gone: the parts that the commit to come names no more.
        """
        self._token = secrets.token_hex(8)
        journal = folder / "journal"
        journal.write_text(json.dumps([*parts, *gone, _catalog(self._store, self._token).relative_to(self._store).as_posix()]))
        try:
            self._put(journal, self._journal)
            _side_by_side(lambda part: self._put(folder / part, self._store / part), parts)
        except StoreError:
            self.discard(parts)
            raise

    @property
    def _journal(self) -> RemotePath:
        return self._store / COMMITS / f"{self._token}.journal"

    def _put(self, source: Path, target: RemotePath) -> None:
        with _as_store_error(self._store, "it cannot be written, and is as it was before"), remote.asking(target):
            system, name = remote.system_of(target)
            system.put_file(str(source), name)

    def discard(self, parts: Collection[str]) -> None:
        """Delete parts of a commit that failed, as far as that is possible; not where it may have come through."""
        if not self._may_be_made and self._token:
            _side_by_side(lambda part: self._delete(self._store / part), parts)
            self._delete(self._journal)

    def _delete(self, path: RemotePath) -> None:
        with contextlib.suppress(OSError), remote.asking(path):
            system, name = remote.system_of(path)
            system.rm_file(name)

    def commit(self, catalog: Path) -> None:
        """Make the catalog, whose parts lie there, that of the store. Raises StoreError where that failed."""
        made = Commit(self._before.number + 1, self._token)
        self._put(catalog, _catalog(self._store, made.token))
        content = {"catalog": made.token, "bytes": catalog.stat().st_size}
        path = _file(self._store, made.number)
        self._may_be_made = True
        try:
            with remote.asking(path):
                system, name = remote.system_of(path)
                system.pipe_file(name, json.dumps(content).encode(), mode="create")
        except OSError as exc:
            if newest(self._store) != made:  # it may have come through, and the answer to it not
                self._may_be_made = False
                self._delete(_catalog(self._store, made.token))
                raise StoreError(self._why(exc), self._store) from exc
        self._keep(catalog, made)
        if self._before.number:
            self._delete(_catalog(self._store, self._before.token))
        self._before = made

    def _why(self, error: OSError) -> str:
        if error.errno == errno.EEXIST:
            return (f"{self._store}: another ingest into this store ended meanwhile, and this one would undo it: nothing was "
                    "changed. Run it again")
        return str(remote.refusal(self._store, error, "it cannot be written, and is as it was before"))

    def _keep(self, catalog: Path, made: Commit) -> None:
        """Put the catalog into the cache of readers."""
        kept = folder_of(self._store) / "catalogs" / made.token / CATALOG
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            _link(catalog, kept)
            _drop_older(kept.parent)

    def clean(self, live: Collection[str], before: Collection[str]) -> None:
        """Delete the parts of `before` that are no longer `live`, and what a killed writer's journal of a day ago names.

        A day by the server's clock, which has dated the catalog just now: by this machine's, a journal that another writer has
        just brought may seem old.
        """
        own_catalog = _catalog(self._store, self._before.token).relative_to(self._store).as_posix()
        gone = set(before)
        with contextlib.suppress(StoreError):
            long_ago = self._times(_CATALOGS).get(own_catalog, 0) - _ORPHAN_SECONDS
            journals = [name for name, written in self._times(COMMITS).items()
                        if name.endswith(".journal") and written < long_ago]
            for name in journals:
                gone |= _named(self._store / name)
            _side_by_side(lambda path: self._delete(self._store / path), [*(gone - {*live, own_catalog}), *journals])
            self._delete(self._journal)


def _named(journal: RemotePath) -> set[str]:
    """Return the parts and catalogs that a journal names; nothing where it is damaged."""
    with contextlib.suppress(OSError, ValueError), remote.asking(journal):
        names = json.loads(journal.read_bytes())
        return {name for name in names if isinstance(name, str) and (is_made(name) or _CATALOG.fullmatch(name))}
    return set()


def _side_by_side(call: Callable[[str], None], parts: Collection[str]) -> None:
    """Call it for each part, several at a time: each is a request or two."""
    with ThreadPoolExecutor(_REQUESTS) as threads:
        for _ in threads.map(call, parts):
            pass


def _link(source: Path, target: Path) -> None:
    """Let `target` be the same file, which nobody writes to; a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
