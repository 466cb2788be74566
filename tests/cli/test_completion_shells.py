"""Completion in bash, zsh and fish themselves: Tab is typed, and the shell says which words stand on the line then."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.places import ROOT

RUN, GEMM = "simulated_resnet18_ddp", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nt"
TYPED = [
    ("show top_ker\t", "show top_kernels"),
    ("show top_kernels how\t5", "show top_kernels how_many=5"),
    ("show kernel_by_rank only_tool=k\t", "show kernel_by_rank only_tool=kineto"),
    ("summary --run sim\t", f"summary --run {RUN}"),
    ("show busy_time --rank \t", "show busy_time --rank 0"),
    ("show busy_time --tool k\t", "show busy_time --tool kineto"),
    ("plot step_b\t", "plot step_breakdown"),
    (f"roofline --kernel {GEMM[:36]}\t", f"roofline --kernel {GEMM}"),
    ("comp\t", "compare"),
]
"""What is typed, and the line then; of several words the first is taken."""
SHELLS = {
    "bash": (["bash", "--norc", "-i"], "bind 'TAB:menu-complete'"),
    "zsh": (["zsh", "-f", "-i"], "bindkey -e; autoload -Uz compinit && compinit -u -D; setopt MENU_COMPLETE"),
}
pytestmark = pytest.mark.long
TO_THE_START, SECONDS = "\x01", 60


@pytest.fixture
def environment(bundled_store: Path, tmp_path: Path) -> dict[str, str]:
    """Return variables for a shell that finds this nsightlens, and the bundled run as its store."""
    command = tmp_path / "bin" / "nsightlens"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsightlens "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "TERM": "dumb",
            "NSIGHTLENS_STORE": str(bundled_store), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_the_line(environment: dict[str, str], tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    words, setup = SHELLS[shell]
    (tmp_path / "setup").write_text(f'{setup}\neval "$(nsightlens completion {shell})"\n')
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, env=environment, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs,
                          start_new_session=True) as process:
        os.close(theirs)
        try:
            _type(ours, ". ./setup; printf 'rea%s\\n' dy\r", "ready")
            for typed, line in TYPED:
                said = _type(ours, f"nsightlens {typed}{TO_THE_START}printf '<%s>' \r", "<nsightlens>.*>")
                found = re.findall(r"<([^<>\s]*)>", said[said.rindex("<nsightlens>"):])
                assert " ".join(found) == f"nsightlens {line}", typed
        finally:
            process.kill()
            os.close(ours)


def _type(terminal: int, keys: str, until: str) -> str:
    """Type into a terminal, and return what it shows until a pattern is there."""
    os.write(terminal, keys.encode())
    said, deadline = "", time.monotonic() + SECONDS
    while not re.search(until, said) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            said += os.read(terminal, 65536).decode(errors="replace")
    assert re.search(until, said), said
    return said


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed here")
@pytest.mark.parametrize(("typed", "line"), [(typed, line) for typed, line in TYPED if typed.endswith("\t")])
def test_fish_offers_the_word(environment: dict[str, str], typed: str, line: str) -> None:
    done = subprocess.run(["fish", "-c", f"nsightlens completion fish | source; complete -C 'nsightlens {typed.strip(chr(9))}'"],
                          env=environment, capture_output=True, text=True, check=True)
    assert line.split(" ")[-1] in [offered.partition("\t")[0] for offered in done.stdout.splitlines()], done.stderr
