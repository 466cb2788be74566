"""One width for all that is printed: COLUMNS, else the terminal's, else 120."""

from __future__ import annotations

import os
import pty
import select
import struct
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.pages.page import page_width
from nsightlens.pages.tables import output_width
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.places import ROOT
from tests.terminal.whole_commands import recorded, too_long

FIXTURE = ROOT / "fixtures" / "simulated_resnet18_ddp"
PAGES = (
    ["summary"], ["compare", "ranks"], ["compare", "runs", "base", "fused"], ["views"], ["views", "busy_time"], ["doctor"],
    ["views", "idle"],
)
TABLES = (
    ["show", "recommendations"], ["show", "straggler"], ["show", "step_breakdown"], ["show", "kernel_by_rank"],
    ["show", "diagnostic_summary"], ["scan", str(FIXTURE)], ["sql", "FROM kernels LIMIT 3"],
)
WITHOUT_STORE = ("doctor", "views", "scan")


@pytest.fixture(scope="module")
def store(shared: Shared) -> Path:
    """Two runs with the same captures."""
    def make(folder: Path) -> None:
        for name in ("base", "fused"):
            nl.ingest(FIXTURE, store=folder, run=name, jobs=1).close()
    return shared("base-and-fused", make)


def printed(asked: list[str], store: Path, fits: int | None = None) -> list[str]:
    """Return the lines that a command prints, but for those of a definition in SQL, which are no prose.

    fits: columns that each takes at most, one command alone aside.
    """
    of_store = [] if asked[0] in WITHOUT_STORE else ["--store", str(store)]
    with recorded() as made:
        done = run(*asked, *of_store)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition("\nDefinition\n")[0].splitlines()
    long = [] if fits is None else too_long(lines, fits, made)
    assert all(" " not in line.strip() for line in long), long
    return lines


@pytest.mark.parametrize("asked", [*PAGES, *TABLES], ids=" ".join)
def test_columns_rules_every_command(store: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed(asked, store, fits=80)


@pytest.mark.parametrize("asked", [["views", "busy_time"], ["show", "recommendations"], ["scan", str(FIXTURE)]], ids=" ".join)
def test_a_pipe_has_120_columns(store: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    given = printed(asked, store)
    monkeypatch.delenv("COLUMNS")
    assert printed(asked, store) == given and max(map(len, given)) > 80


@pytest.mark.parametrize(("columns", "output", "page"), [
    ("90", 90, 90), ("300", 300, 160), ("20", 20, 40), ("", 120, 120), ("0", 120, 120), ("wide", 120, 120)])
def test_what_columns_may_say(columns: str, output: int, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert (output_width(), page_width()) == (output, page)


def test_without_columns_the_terminal_says(bundled_store: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ.pop("COLUMNS", None)
        os.execv(sys.executable, [sys.executable, "-c", "input()\nfrom nsightlens.pages import page, tables\n"
                                  "print(tables.output_width(), page.page_width())"])
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 93, 0, 0))
    os.write(terminal, b"\n")
    said = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            said += os.read(terminal, 1024)
        except OSError:  # the other end is closed
            break
    assert os.waitpid(child, 0)[1] == 0 and said.split() == [b"93", b"93"], said
