"""A Slurm of one node on loopback, for as long as the tests need one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
KillWait={kill_wait}
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:64
"""
_NEEDED = ("slurmctld", "slurmd", "srun", "scancel", "sinfo")


def lacks() -> str:
    """Return why no Slurm can be started here; empty where one can."""
    missing = [name for name in _NEEDED if _program(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    return "" if os.geteuid() == 0 else "only root can start slurmd"


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")


@contextmanager
def running(folder: Path, kill_wait_s: int = 30) -> Iterator[dict[str, str]]:
    """Yield the variables that let srun find it. kill_wait_s: between SIGTERM and SIGKILL, Slurm's own default.

    Raises RuntimeError, with the logs' ends, where its node does not come up.
    """
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    conf = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    conf.write_text(_CONF.format(host=host, folder=folder, controller=_free_port(), daemon=_free_port(), kill_wait=kill_wait_s))
    variables = {"SLURM_CONF": str(conf)}
    environment = {**os.environ, **variables}
    daemons = [subprocess.Popen([str(_program(name)), "-D", *more], env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for name, more in (("slurmctld", ["-c"]), ("slurmd", []))]
    try:
        _wait_for_node(folder, environment)
        yield variables
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:   # slurmd at times, after a srun that was killed
                daemon.kill()
                daemon.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_node(folder: Path, environment: dict[str, str]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        asked = ["sinfo", "--noheader", "--format=%T"]
        said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
        if said.stdout.strip() in ("idle", "mixed"):
            return
        time.sleep(0.5)
    logs = "\n".join("\n".join(log.read_text().splitlines()[-5:]) for log in folder.glob("*.log"))
    raise RuntimeError(f"Slurm's node did not come up:\n{logs}")
