"""The real launchers of this machine, for the tests that need one; where it is absent or does not work here, the test skips."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest

_OPENMPI = ("--oversubscribe", "--allow-run-as-root")


def launcher(name: str, ranks: int) -> list[str]:
    """Return the words that start `ranks` ranks: of openmpi, torchrun or srun. Skips the test where that is not at hand."""
    if name == "torchrun":
        words = [*_found("torchrun"), "--standalone", "--no-python", "--nproc-per-node"]
    elif name == "openmpi":
        words = [*_found("mpiexec"), *_OPENMPI, "-n"]
    else:
        words = [*_found("srun"), "--overcommit", "-n"]
    words.append(str(ranks))
    if not _works(tuple(words)):
        pytest.skip(f"{name} cannot start a process here: {' '.join(words)}")
    return words


def _found(program: str) -> list[str]:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return [path]


@functools.cache
def _works(words: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run([*words, "true"], capture_output=True, timeout=60, check=False, env=environment())
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def environment() -> dict[str, str]:
    """Return the variables that a launcher needs, without those of a job around the tests."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
