"""Sentences in lines: words are wrapped, and no command is broken, at any width and for any name."""

from __future__ import annotations

import lzma
import re
import shutil
from pathlib import Path

import pytest

from nsightlens.terminal.command import Command
from nsightlens.terminal.quoting import Verbatim, shell_line
from nsightlens.terminal.text import written
from nsightlens.terminal.wrapping import wrapped
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.terminal.whole_commands import broken, recorded, too_long

FOLDER = "it's a \"run\" of $(x)"
NAME = "a b's.json.xz"
WORDS = "it takes 12.5 ms of the step, so see "
SHOWN = Command("show", ("idle_causes", ("--run", "a b's")))


@pytest.fixture(scope="module")
def store(shared: Shared, bundled_store: Path) -> Path:
    """The bundled run below a folder whose name needs quotes."""
    return shared("a store to quote", lambda folder: shutil.copytree(bundled_store, folder / FOLDER / "store")) / FOLDER / "store"


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / NAME).write_bytes(lzma.compress(b"{}"))
    return folder


@pytest.mark.parametrize("width", range(12, 120))
def test_a_command_is_whole_and_alone_where_it_does_not_fit(width: int) -> None:
    text = (WORDS, SHOWN, ", or ", Verbatim("pip install x"), ".")
    lines = wrapped(text, width, indent="  ")
    assert re.sub(r"[\s,.]", "", "".join(lines)) == re.sub(r"[\s,.]", "", written(text))
    commands = {str(SHOWN), "pip install x"}
    assert not too_long(lines, width, commands) and not broken("\n".join(lines), commands)
    assert width < 20 or any("12.5 ms" in line for line in lines)


def test_words_longer_than_a_line_are_cut_only_where_it_is_asked_for() -> None:
    assert wrapped("see /a/long/path now", 8) == ["see", "/a/long/", "path now"]
    assert wrapped("see /a/long/path now", 8, cuts=False) == ["see", "/a/long/path", "now"]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("asked", [["summary"], ["compare", "ranks"]], ids=" ".join)
def test_commands_of_pages_stand_whole(store: Path, asked: list[str], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with recorded() as made:
        shown = run(*asked, "--store", store).stdout
    of_store = {command for command in made if shell_line("--store", store) in command}
    assert sum(command in shown for command in of_store) > 2 or asked != ["summary"]
    assert not broken(shown, made) and not too_long(shown.splitlines(), min(width, 160), made)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("asked", ["doctor", "scan"])
def test_commands_for_files_stand_whole(captures: Path, asked: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with recorded() as made:
        shown = run(asked, captures).stdout
    assert str(shell_line("unxz", "-k", captures / NAME)) in [line.strip() for line in shown.splitlines()] or (
        shell_line("unxz", "-k", captures / NAME) in shown and width == 200) or (asked, width) == ("scan", 60)
    assert not broken(shown, made)
