"""The parts of a store at a URL as DuckDB reads them: through a filesystem that asks the server for little more than their bytes.

A part never changes: its name holds a random number. So DuckDB, which asks for the size and the time of a file each time that
it opens it, is answered from one list.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb

from nsightlens.discovery import remote
from nsightlens.discovery.remote import RemotePath

_ANY_TIME = datetime(2020, 1, 1, tzinfo=UTC)


def let_read(connection: duckdb.DuckDBPyConnection, store: RemotePath) -> None:
    """Let a connection read the parts of a store at a URL. Raises UsageError where the package for its scheme is missing."""
    remote.system_of(store)
    from fsspec import AbstractFileSystem

    scheme = store.parts[0].rstrip(":")

    class PartFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
        """The parts of one store, for reading."""

        protocol = scheme
        cachable = False
        _sizes: Mapping[str, int] | None = None

        def glob(self, path: str, **_: Any) -> list[str]:
            """Return the path itself: the catalog names each part."""
            return [path]

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            """Return size and kind. Raises OSError."""
            if self._sizes is None:
                with remote.asking(store):
                    self._sizes = {str(part): status.st_size for part, status in remote.files_below(store / "parts").items()}
            if (name := str(_path(path))) not in self._sizes:
                raise FileNotFoundError(f"\"{name}\"")
            return {"name": path, "size": self._sizes[name], "type": "file"}

        def modified(self, path: str) -> datetime:
            """Return the same time for all: no part is written twice."""
            return _ANY_TIME

        def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
            self.info(path)
            return _path(path).open(mode)

    def _path(path: str) -> RemotePath:
        return RemotePath(f"{scheme}://{path.removeprefix(f'{scheme}://').lstrip('/')}")

    connection.register_filesystem(PartFiles())
