"""The journal of a store: what its writer has made or will delete, so that the next one can clean up after a kill.

Nothing in a store is deleted because of where it lies or how it is called. A writer names a file here before it makes it, and
before it commits a catalog that no longer names it. What the journal of a killed writer names and no catalog does is deleted by
the next; all else in the folder is left as it is. Lines that no writer would write are ignored: a journal may be forged, or come
with somebody's store.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from nsightlens.errors import StoreError
from nsightlens.store import no_links
from nsightlens.terminal.quoting import Verbatim, quoted

FILE = ".nsightlens-journal"
HEADER = "journal of a writer of this nsightlens store"
_SCRATCH = re.compile(r"\.nsightlens-scratch-[0-9a-f]{16}")


class Journal:
    """The journal of the writer that holds the lock of the store at `path`, from `begin` to `end`.

    scratch: a folder in the store that is this writer's alone: nobody had it before, and it goes with all in it.
    check: called before the store is changed; raises StoreError where it is no longer there.
    """

    def __init__(self, path: Path, check: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._check = check
        self._left: set[str] = set()
        self._is_ours = False
        self.scratch = path / f".nsightlens-scratch-{secrets.token_hex(8)}"

    def begin(self) -> set[str]:
        """Make the scratch folder; return the parts that a killed writer has named. Raises StoreError, OSError."""
        noted_lines = self._lines_on_disk()
        self._is_ours = True
        parts = {line for line in noted_lines if no_links.is_made(line)}
        folders = {line for line in noted_lines if _SCRATCH.fullmatch(line)}
        leftovers = {name for name in folders if not _is_removed(self._path / name)}
        self._left = leftovers | parts
        self.note([self.scratch.name])
        self.scratch.mkdir()
        return parts

    def _lines_on_disk(self) -> list[str]:
        """Return the lines of the journal that is there."""
        try:
            descriptor = no_links.open_file(self._path / FILE, os.O_RDONLY)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            header, *lines = file.read().split("\n")
        if not HEADER.startswith(header):  # where the disk was full there may be a part of it
            raise StoreError(f"{self._path / FILE}: not the journal of a store", self._path,
                             ("Move it away, or name another folder with ",
                              Verbatim(f"--store {quoted(self._path / 'nsightlens-store')}")))
        return lines

    def note(self, paths: Iterable[str]) -> None:
        """Name paths below the store that are about to be made, or to be named by no catalog any more. Raises OSError."""
        self._check()
        named = list(paths)
        self._left |= set(filter(no_links.is_part, named))
        descriptor = no_links.open_file(self._path / FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "ab") as file:
            if is_new := os.fstat(descriptor).st_size <= len(HEADER):
                file.truncate(0)
            file.write("".join(f"{line}\n" for line in [HEADER if is_new else "", *named]).encode())

    def remove(self, parts: Collection[str], live: Collection[str]) -> None:
        """Delete those parts that are not live; what cannot be deleted is left to the next writer, as what an interrupt keeps
        from this call is: the journal stays until each part that it names was passed here."""
        self._check()
        for part in parts:
            if part in live or not no_links.is_part(part) or no_links.remove(self._path, part):
                self._left.discard(part)
            else:
                self._left.add(part)

    def end(self) -> None:
        """Remove the scratch folder, and the journal where nothing that it names is left. A file that a failed reading has
        open still gives its room back."""
        for file in self.scratch.glob("*/*"):
            with contextlib.suppress(OSError, StoreError):
                descriptor = no_links.open_file(file, os.O_WRONLY)
                os.ftruncate(descriptor, 0)
                os.close(descriptor)
        if _is_removed(self.scratch) and self._is_ours and not self._left:
            with contextlib.suppress(OSError):
                (self._path / FILE).unlink()


def _is_removed(scratch: Path) -> bool:
    """Remove a folder with all in it, no link followed; return whether it is gone. A link in its place is none of ours."""
    if not scratch.is_symlink():
        shutil.rmtree(scratch, ignore_errors=True)
    return scratch.is_symlink() or not scratch.exists()
