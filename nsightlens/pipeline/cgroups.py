"""How many processors the control group of this process may use, from cgroup v2 and v1."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_MOUNT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def cpu_quota(mount: Path = _MOUNT, membership: Path = _MEMBERSHIP) -> int | None:
    """Return the least quota of the group and those above it, in processors, rounded up; None where there is no limit.

    mount: where the groups are mounted. membership: the file that names the groups of the process. In a container the named
    group may not be there: its own is mounted as the root then, and is the last that is looked at.
    """
    quotas = [quota for folder in _groups(mount, membership) for quota in _quotas(folder)]
    return max(1, math.ceil(min(quotas))) if quotas else None


def _groups(mount: Path, membership: Path) -> Iterator[Path]:
    """Yield the folders of the group that limits the processor time of this process, and of those above it."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for _, controllers, group in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "cpu" not in controllers.split(","):
            continue
        roots = [mount / name for name in ("cpu", "cpu,cpuacct", "cpuacct,cpu")] if controllers else [mount, mount / "unified"]
        inside = PurePosixPath(*[part for part in PurePosixPath(group).parts if part not in ("/", "..")])
        for root in roots:
            for folder in [inside, *inside.parents]:
                yield root / folder


def _quotas(folder: Path) -> Iterator[float]:
    """Yield the limit that a group has, in processors: `cpu.max` of v2, `cpu.cfs_quota_us` of v1."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (folder / "cpu.max").read_text().split()  # "max" is no number: no limit
        yield int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        used = int((folder / "cpu.cfs_quota_us").read_text())
        if used > 0:  # -1: no limit
            yield used / int((folder / "cpu.cfs_period_us").read_text())
