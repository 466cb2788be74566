"""What names the process behind a trace: host and pid from content and from the default file name."""

from __future__ import annotations

import re
from pathlib import Path

# <worker>.<13 digits of ms or 19 of ns>.pt.trace.json[.gz]; the default worker is <host>_<pid>
_WORKER = re.compile(r"(?P<host>.+)_(?P<pid>\d+)\.(?:\d{13}|\d{19})\.pt\.trace\.json(?:\.gz)?")


def host_in_name(path: Path, pid: int | None) -> str | None:
    """Return the host of a default file name. The pid of the content must agree: names such as rank_0 look the same."""
    worker = _WORKER.fullmatch(path.name)
    return worker["host"] if worker and int(worker["pid"]) == pid else None
