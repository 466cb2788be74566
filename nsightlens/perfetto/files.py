"""The file of a trace: written beside its place and put there when it is whole."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from nsightlens.discovery.unsupported import OWN_TIMELINE
from nsightlens.errors import NsightlensError, UsageError


def check_name(path: Path) -> None:
    """Refuse a name whose ending is neither .json nor .json.gz, before any work is done."""
    if not path.name.endswith((".json", ".json.gz")):
        raise UsageError(f"{path}: the name must end in .json or .json.gz")


class TraceFile:
    """A trace in the making: a JSON object with `traceEvents`, one event per line. A context manager.

    events: how many it holds so far.
    """

    def __init__(self, path: Path, executions: Sequence[dict[str, object]]) -> None:
        self._path = path
        self._target = path.resolve()
        self._partial = self._target.with_name(f".{path.name}.{os.getpid()}")
        self._executions = executions
        self._file: IO[bytes] | None = None
        self.events = 0

    def __enter__(self) -> TraceFile:
        said = json.dumps(self._executions, ensure_ascii=False)
        try:
            file: IO[bytes] = self._partial.open("wb") if self._path.suffix != ".gz" else _gzipped(self._partial)
            self._file = file
            file.write(OWN_TIMELINE + f'{said}}},"traceEvents":['.encode())
        except OSError as exc:
            self._discard()
            raise self._error(exc) from exc
        return self

    def write(self, events: Iterable[str]) -> None:
        """Append events, each the text of a JSON object. Raises NsightlensError where the disk does not take them."""
        listed = list(events)
        if not listed or self._file is None:
            return
        try:
            self._file.write((",\n" if self.events else "\n").encode() + ",\n".join(listed).encode())
        except OSError as exc:
            raise self._error(exc) from exc
        self.events += len(listed)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._discard()
            return
        assert self._file
        try:
            self._file.write(b"\n]}\n")
            self._file.close()
            self._partial.replace(self._target)
        except OSError as exc:
            self._discard()
            raise self._error(exc) from exc

    def _discard(self) -> None:
        try:
            if self._file:
                self._file.close()
        except OSError:
            pass  # the first error is reported; the rest of the file is thrown away
        self._partial.unlink(missing_ok=True)

    def _error(self, exc: OSError) -> NsightlensError:
        return NsightlensError(f"{self._path}: cannot be written ({exc.strerror})")


def _gzipped(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "wb", 6))
