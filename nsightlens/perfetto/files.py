"""The file of a trace: written beside its place and put there when it is whole."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, cast

from nsightlens.discovery.unsupported import OWN_TIMELINE
from nsightlens.errors import UsageError
from nsightlens.store.outputs import whole


def check_name(path: Path) -> None:
    """Refuse a name whose ending is neither .json nor .json.gz, before any work is done."""
    if not path.name.endswith((".json", ".json.gz")):
        raise UsageError(f"{path}: the name must end in .json or .json.gz")


class TraceFile:
    """A trace in the making: a JSON object with `traceEvents`, one event per line.

    events: how many it holds so far.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.events = 0

    def write(self, events: Iterable[str]) -> None:
        """Append events, each the text of a JSON object."""
        listed = list(events)
        if listed:
            self._file.write((",\n" if self.events else "\n").encode() + ",\n".join(listed).encode())
            self.events += len(listed)


@contextmanager
def trace_file(path: Path, executions: Sequence[dict[str, object]]) -> Iterator[TraceFile]:
    """Provide a trace that is at `path`, compressed where that ends in .gz, once the block has ended without an error.

    Raises NsightlensError where the disk does not take it.
    """
    with whole(path) as raw, _packed(raw) if path.suffix == ".gz" else nullcontext(raw) as file:
        said = json.dumps(executions, ensure_ascii=False)
        file.write(OWN_TIMELINE + f'{said}}},"traceEvents":['.encode())
        yield TraceFile(file)
        file.write(b"\n]}\n")


def _packed(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile("", "wb", 6, file))
