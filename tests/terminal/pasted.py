"""A command as people paste it: run by a real shell, in which the programs that it names only record what they were given."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = ("nsightlens", "unxz", "bunzip2", "unzstd", "7z", "unzip", "gunzip", "tar", "mkdir", "traceconv", "nsys",
            "python", "pip", "mpiexec", "torchrun", "show")
SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]
CANARY = "PWN"
NAMES = [
    f"$(touch {CANARY})", f"`touch {CANARY}`", f";touch {CANARY};", f"|touch {CANARY}", f"&touch {CANARY}&", f"a>{CANARY}",
    "-y", "--run", "a b", "a  b", "a'b", '"q"', "a'\"'b", ";ls", "a\nb", f"a\ntouch {CANARY}\nb", "\ttab", "a*b", "[ab]?", "~",
    "~root", "a\\b", "a\\nb", "a\\", "!x", "#x", "{a,b}", "$HOME", "${x}", "a=b", "%s%n", "-%s\n", "\x1b]0;x\x07", "\x7f",
    "a\x1b[31mb", "\x9b2J", "\u202ereversed", "\udcff", "ü\n", "\N{NO-BREAK SPACE}", "nsightlens show x", "a --store b",
    "--run x", "@x", "+x", "end\n", "host:x",
]
_RECORD = '#!/bin/sh\n{ printf "%s\\0" "${0##*/}" "$@"; printf "\\1end\\1\\0"; } >> "$RECORDED"\n'


def paste(command: str, folder: Path, shell: str, programs: tuple[str, ...] = PROGRAMS) -> list[list[str]]:
    """Run a command line in an empty folder; return what each program was given. Fails where anything else happened."""
    place, bin_, recorded = folder / "here", folder / "bin", folder / "recorded"
    place.mkdir(exist_ok=True)
    bin_.mkdir(exist_ok=True)
    for name in programs:
        (bin_ / name).write_text(_RECORD)
        (bin_ / name).chmod(0o755)
    recorded.write_bytes(b"")
    before = sorted(os.listdir(place))
    environment = {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "RECORDED": str(recorded), "HOME": str(folder)}
    (folder / "script").write_bytes(os.fsencode(command + "\n"))
    done = subprocess.run([shell, str(folder / "script")], cwd=place, env=environment, capture_output=True, check=False)
    assert sorted(os.listdir(place)) == before, f"{shell}: {command!r} made {sorted(os.listdir(place))}"
    assert (done.returncode, done.stderr) == (0, b""), f"{shell}: {command!r}: {done.stderr!r}"
    calls = recorded.read_bytes().split(b"\0\1end\1\0")[:-1]
    return [os.fsdecode(call).split("\0") for call in calls]


def between(text: str, before: str, behind: str = "") -> str:
    """Return the command that stands in a message between two texts."""
    assert before in text and text.endswith(behind), text
    return text[text.index(before) + len(before):len(text) - len(behind)]


every_name = pytest.mark.parametrize("name", NAMES, ids=ascii)
every_shell = pytest.mark.parametrize("shell", SHELLS)
