"""Process id -> what people call the process among others."""

from __future__ import annotations

from collections.abc import Collection


def process_label(process_id: str, among: Collection[str]) -> str:
    """Return a label for a process: its number in its profile, plus what distinguishes profiles where needed.

    Of 'kineto-fa89dc55b09c:0' it is '0', or 'fa89dc:0' where another profile of `among` has a process 0 too.
    """
    profile, _, tail = process_id.rpartition(":")
    if sum(other.rpartition(":")[2] == tail for other in set(among)) < 2:
        return tail
    return f"{profile.rpartition('-')[2][:6]}:{tail}"
