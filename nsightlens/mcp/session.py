"""What a server answers from: a store that it never changes, or one of its own that is filled from the folders it may read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nsightlens.errors import NsightlensError, UsageError
from nsightlens.store.store import Store, is_store, locate
from nsightlens.views import folder

if TYPE_CHECKING:
    from nsightlens.pipeline.ingest import IngestReport
    from nsightlens.pipeline.workers import Pool

_MEMORY = "1GB"
"""What DuckDB may take for a question; the rest goes to disk, as long as there is time."""
_LOOKED_AT = 100_000


class Session:
    """The store of a server. store: its place, None: that of the environment. allowed: folders that `ingest` may read.

    With folders the store is the server's own: in a temporary folder, or at `store`, where there must be none yet.
    Raises StoreError where there is no store, UsageError where one stands in the way.
    """

    def __init__(self, store: Path | None, allowed: Sequence[Path], views: Path | None) -> None:
        self.allowed = [path.resolve() for path in allowed]
        self._views = folder.locate(views)
        self._temporary = TemporaryDirectory(prefix="nsightlens-") if allowed and store is None else None
        self.path = Path(self._temporary.name) / "store" if self._temporary else locate(store)
        if allowed and is_store(self.path):
            raise UsageError(f"{self.path}: a store that is there is never changed: with --allow give --store another place, or "
                             "none", subject="store", value=str(self.path))
        self._store = None if allowed else Store(self.path, self._views, _MEMORY)
        self._reading: Pool | None = None

    @property
    def store(self) -> Store:
        """Return the open store. Raises NsightlensError where nothing was read into it yet."""
        if self._store is None:
            raise NsightlensError(f"nothing was read yet: call ingest with a path below {', '.join(map(str, self.allowed))}")
        return self._store

    def ingest(self, path: str, run: str | None) -> IngestReport:
        """Read captures at a path into the store of the server, in a process of its own. Raises UsageError for a path that it may
        not read, NsightlensError where that process was ended: then the store is as it was.
        """
        from nsightlens.pipeline.ingest import ingest
        from nsightlens.pipeline.workers import Pool

        place = self._confirmed(path)
        run = run or (place.name.partition(".")[0] if place.is_file() else None)
        try:
            with Pool(1) as self._reading:
                report = self._reading.submit(ingest, [place], self.path, run=run, jobs=1).result()
        except BrokenProcessPool as exc:
            raise NsightlensError(f"{path}: the process that read it ended too early; the store is as it was. Try a part of it, "
                                  "or a machine with more memory") from exc
        finally:
            self._reading = None
        if is_store(self.path):
            if self._store is not None:
                self._store.close()
            self._store = Store(self.path, self._views, _MEMORY)
        return report

    def _confirmed(self, path: str) -> Path:
        """Return a path below the folders that are allowed, of which no link leads out of them."""
        if not self.allowed:
            raise UsageError("this server reads no captures: it was started without --allow DIR", subject="path", value=path)
        if not path or "\0" in path:
            raise UsageError(f"path is of a file or folder below {', '.join(map(str, self.allowed))}", subject="path", value=path)
        below = [base / path for base in self.allowed]
        place = next((each for each in below if each.exists()), below[0])
        for file in (place, *islice(place.rglob("*"), _LOOKED_AT)):
            if not any(file.resolve().is_relative_to(base) for base in self.allowed):
                raise UsageError(f"{file}: not below {', '.join(map(str, self.allowed))}", subject="path", value=path)
        return place.resolve()

    def interrupt(self) -> None:
        """End the query or the ingest at work."""
        if (reading := self._reading) is not None:
            reading.terminate()
        if self._store is not None:
            self._store.interrupt()

    def close(self) -> None:
        """Close the store; one of the server's own in a temporary folder is gone."""
        if self._store is not None:
            self._store.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
