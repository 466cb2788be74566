"""Colour in a pseudo-terminal: on words that ask for attention, and off where the environment or a pipe says so."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nsightlens.pages.tables import Style, render
from nsightlens.terminal import colour
from tests.places import ROOT

_SETTINGS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM")
RED, YELLOW = "\x1b[31m", "\x1b[33m"


def _environment(**settings: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name not in (*_SETTINGS, "NSIGHTLENS_STORE")},
            "TERM": "xterm", "PAGER": "", "COLUMNS": "120", "PYTHONPATH": str(ROOT), **settings}


def in_terminal(*words: str, **settings: str) -> str:
    """Return what a command prints, standard error included, into a pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "nsightlens", *words], env=_environment(**settings), stdin=theirs,
                               stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal is closed at the other end
            break
        if not part:
            break
        printed += part
    os.close(ours)
    process.wait()
    return printed.decode()


def test_a_terminal_has_colour(bundled_store: Path) -> None:
    store = ("--store", str(bundled_store))
    assert f"{RED}straggler" in in_terminal("show", "straggler", "--columns", "rank,verdict", *store)
    assert f"{YELLOW}warning" in in_terminal("show", "diagnostic_summary", *store)
    assert f"{RED}nsightlens:" in in_terminal("show", "no_such_view", *store)


def test_a_terminal_has_none_where_the_environment_says_so(bundled_store: Path) -> None:
    printed = in_terminal("compare", "ranks", "--store", str(bundled_store), NO_COLOR="1")
    assert "straggler" in printed and not re.search(r"\x1b\[[0-9;]*m", printed)   # a bar, where it takes long, has no colour


def test_a_pipe_has_none_unless_it_is_forced(bundled_store: Path) -> None:
    asked = ["show", "straggler", "--columns", "rank,verdict", "--store", str(bundled_store)]
    words = [sys.executable, "-m", "nsightlens", *asked]
    for form, forced, coloured in (("table", "", False), ("table", "1", True), ("csv", "1", False)):
        environment = _environment(FORCE_COLOR=forced)
        done = subprocess.run([*words, "-f", form], env=environment, capture_output=True, text=True, check=True)
        assert "straggler" in done.stdout and ("\x1b[" in done.stdout) == coloured


@pytest.mark.parametrize(("settings", "wanted"), [
    ({}, None), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, None), ({"TERM": "dumb"}, False), ({"CLICOLOR": "0"}, False),
    ({"CLICOLOR": "1"}, None), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, None), ({"CLICOLOR_FORCE": "1"}, True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False), ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
], ids=str)
def test_what_the_environment_wants(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], wanted: bool | None) -> None:
    for name in _SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert colour.colour_setting() is wanted


def test_colour_changes_nothing_else() -> None:
    rows = [["a", "straggler", 1], ["b", "late", 22]]
    names, text = ["name", "verdict", "times"], [True, True, False]
    plain, coloured = (render(names, rows, text, Style(80, colour=on)) for on in (False, True))
    assert coloured.count(RED) == coloured.count(YELLOW) == 1
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_a_name_cannot_steer_a_terminal_with_colour() -> None:
    rows = [["b\x1b[2J", "late"]]
    assert "\x1b[2J" not in render(["na\x1b[1mme", "verdict"], rows, [True, True], Style(80, colour=True))
    assert "\x1b[1m" not in render(["na\x1b[1mme", "verdict"], rows, [True, True], Style(80, colour=True))


def test_only_whole_words_of_these_columns() -> None:
    assert colour.painted("name", "error", "error") == "error"
    assert colour.painted("severity", "errors", "errors") == "errors"
    assert colour.painted("severity", "error", "  error") == f"  {RED}error\x1b[0m"
