"""Windows and macOS, simulated: Pythons without what these systems lack, in every process that a command starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Shared
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
_ABSENT = """import os, signal, sys
for name in {modules}:
    sys.modules[name] = None
for name in {functions}:
    if hasattr(os, name): delattr(os, name)
for name in {signals}:
    if hasattr(signal, name): delattr(signal, name)
"""
# uname and statvfs stay: numpy and shutil want them of a Python whose sys.platform is linux.
_WINDOWS = _ABSENT.format(
    modules=["fcntl", "resource", "termios", "pwd", "grp", "pty", "curses"],
    functions=["fork", "forkpty", "getuid", "geteuid", "getloadavg", "killpg", "mkfifo", "pread", "preadv", "pwrite", "pwritev",
               "posix_fadvise", "sched_getaffinity", "sched_setaffinity", "setsid", "sysconf"],
    signals=["SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer"])
_MACOS = _ABSENT.format(modules=[], functions=["posix_fadvise", "sched_getaffinity", "sched_setaffinity"], signals=[]) + """
import fcntl, pathlib
del fcntl.F_SETPIPE_SZ
def without_proc(function):
    def called(path, *more, **named):
        if str(path).startswith(("/proc", "/sys/fs")): raise FileNotFoundError(2, "No such file or directory", str(path))
        return function(path, *more, **named)
    return called
pathlib.Path.read_text, pathlib.Path.readlink = without_proc(pathlib.Path.read_text), without_proc(pathlib.Path.readlink)
"""


def _run(system: str, folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run nsightlens in `folder` where every Python starts with the code `system`."""
    start = folder / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(system)
    environment = {**os.environ, "PYTHONPATH": f"{start}{os.pathsep}{ROOT}", "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("NSIGHTLENS_STORE", None)
    return subprocess.run([sys.executable, "-m", "nsightlens", *map(str, words)], cwd=folder, env=environment,
                          capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("words", [
    ("scan", RUN), ("summary",), ("show", "kernel_summary"), ("sql", "SELECT count(*) FROM kernels"), ("compare", "ranks"),
    ("report", "-o", "report.html"), ("plot", "top_kernels", "-o", "top.png"), ("export", "perfetto", "-o", "trace.json.gz"),
    ("plan-ncu", "--", "python", "train.py"), ("views",), ("doctor",), ("wrappers", "out"), ("cache",),
], ids=lambda words: words[0])
def test_what_reads_works_on_windows(tmp_path: Path, bundled_store: Path, words: tuple[str | Path, ...]) -> None:
    (tmp_path / "nsightlens-store").symlink_to(bundled_store)
    done = _run(_WINDOWS, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert _run("", tmp_path, *words).stdout == done.stdout or words[0] in ("doctor", "cache")


@pytest.mark.long
@pytest.mark.parametrize("words", [("ingest", RUN), ("refresh",), ("compact",), ("summary", RUN / "nsys" / "rank0.sqlite")],
                         ids=lambda words: words[0])
def test_what_writes_a_store_says_on_windows_where_it_works(
    tmp_path: Path, bundled_store: Path, words: tuple[str | Path, ...],
) -> None:
    (tmp_path / "nsightlens-store").symlink_to(bundled_store)
    done = _run(_WINDOWS, tmp_path, *words)
    assert (done.returncode, "Ingest on Linux, macOS or WSL" in done.stderr) == (1, True), done.stderr


@pytest.mark.long
def test_macos_reads_and_writes(tmp_path: Path, bundled_store: Path, shared: Shared) -> None:
    done = _run(_MACOS, tmp_path, "ingest", RUN, "--store", "store", "--jobs", "2")
    assert done.returncode == 0 and "5 new" in done.stderr + done.stdout, done.stderr
    (tmp_path / "nsightlens-store").symlink_to(bundled_store)
    there = _run("", tmp_path, "show", "kernel_summary", "-f", "csv")
    assert _run(_MACOS, tmp_path, "show", "kernel_summary", "-f", "csv", "--store", "store").stdout == there.stdout
    assert len(there.stdout.splitlines()) > 10
