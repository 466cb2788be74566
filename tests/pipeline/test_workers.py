"""Worker processes: no more than affinity, control group and Slurm task allow, and gone with all that was temporary of them."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from nsightlens.pipeline import cgroups, workers

SLURM = ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE")


def _tree(folder: Path, membership: str, files: dict[str, str]) -> int | None:
    """Return the quota of a process with this /proc/self/cgroup, where these files lie below /sys/fs/cgroup."""
    (folder / "cgroup").write_text(membership)
    for name, text in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cgroups.cpu_quota(folder / "fs", folder / "cgroup")


V1 = "5:cpuset:/box\n4:cpu,cpuacct:/slurm/job_7\n1:name=systemd:/x\n0::/x\n"


@pytest.mark.parametrize(("membership", "files", "quota"), [
    pytest.param("0::/\n", {"cpu.max": "200000 100000\n"}, 2, id="v2, a container that sees its group as the root"),
    pytest.param("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}, 3, id="v2, the limit is above"),
    pytest.param("0::/a/b\n", {"a/b/cpu.max": "50000 100000\n", "a/cpu.max": "300000 100000\n"}, 1, id="v2, half a processor"),
    pytest.param("0::/a\n", {"a/cpu.max": "150000 100000\n"}, 2, id="v2, one and a half"),
    pytest.param("0::/a\n", {"a/cpu.max": "max 100000\n"}, None, id="v2, no limit"),
    pytest.param("0::/docker/77\n", {"cpu.max": "400000 100000\n"}, 4, id="v2, a group that is named but not mounted"),
    pytest.param("0::/../../b\n", {"b/cpu.max": "100000 100000\n"}, 1, id="v2, a group outside of the namespace"),
    pytest.param("0::/a\n", {"unified/a/cpu.max": "100000 100000\n"}, 1, id="v2 beside v1"),
    pytest.param(V1, {"cpu,cpuacct/slurm/job_7/cpu.cfs_quota_us": "600000\n",
                      "cpu,cpuacct/slurm/job_7/cpu.cfs_period_us": "100000\n"}, 6, id="v1"),
    pytest.param(V1, {"cpu/slurm/job_7/cpu.cfs_quota_us": "-1\n", "cpu/slurm/job_7/cpu.cfs_period_us": "100000\n",
                      "cpu/slurm/cpu.cfs_quota_us": "250000\n", "cpu/slurm/cpu.cfs_period_us": "50000\n"}, 5, id="v1, above"),
    pytest.param(V1, {"cpu/slurm/job_7/cpu.cfs_quota_us": "-1\n", "cpu/slurm/job_7/cpu.cfs_period_us": "100000\n"}, None,
                 id="v1, no limit"),
    pytest.param(V1, {"cpuset/box/cpu.cfs_quota_us": "100000\n", "cpuset/box/cpu.cfs_period_us": "100000\n"}, None,
                 id="v1, another controller"),
    pytest.param("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "no number", "cpu.max": "1 0"}, None, id="nonsense"),
    pytest.param("nonsense\n\n", {"cpu.max": "100000 100000\n"}, None, id="no groups"),
])
def test_the_quota_of_a_control_group(tmp_path: Path, membership: str, files: dict[str, str], quota: int | None) -> None:
    assert _tree(tmp_path, membership, files) == quota


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert cgroups.cpu_quota(tmp_path / "absent", tmp_path / "absent") is None


@pytest.mark.parametrize(("affinity", "quota", "slurm", "processors"), [
    (16, None, {}, 16),
    (16, 4, {}, 4),
    (2, 4, {}, 2),
    (16, None, {"SLURM_CPUS_PER_TASK": "6", "SLURM_CPUS_ON_NODE": "12"}, 6),
    (16, None, {"SLURM_CPUS_ON_NODE": "12"}, 12),
    (4, None, {"SLURM_CPUS_PER_TASK": "6"}, 4),
    (16, 3, {"SLURM_CPUS_PER_TASK": "6"}, 3),
    (16, None, {"SLURM_CPUS_PER_TASK": "", "SLURM_CPUS_ON_NODE": "many"}, 16),
    (16, None, {"SLURM_CPUS_PER_TASK": "0"}, 16),
])
def test_the_fewest_count(
    monkeypatch: pytest.MonkeyPatch, affinity: int, quota: int | None, slurm: dict[str, str], processors: int,
) -> None:
    for name in SLURM:
        monkeypatch.delenv(name, raising=False)
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)), raising=False)
    monkeypatch.setattr(cgroups, "cpu_quota", lambda: quota)
    assert workers.available() == processors


def _work_for_ever() -> None:
    tempfile.mkdtemp(prefix="of-a-worker-")
    time.sleep(3600)


def test_after_an_interrupt_workers_end_at_once_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal need not reach them: `kill` of one process does not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), workers.Pool(1) as pool:
        future = pool.submit(_work_for_ever)
        while not list(tmp_path.rglob("of-a-worker-*")):
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert future.done() and not list(tmp_path.iterdir())
