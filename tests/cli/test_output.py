"""Tables for programs, on their way to a file and to a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import pyarrow as pa
import pytest

from nsightlens.cli.output import emit

NAME = "\x1b]0;owned\x07\x1b[31mred\x9b2J\r\x00\ttab\nline, \u202ereversed"


@pytest.fixture(autouse=True)
def at_work() -> Iterator[None]:
    with click.Context(click.Command("show"), info_name="show"):
        yield


@pytest.mark.parametrize("form", ["csv", "json"])
def test_no_name_steers_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    emit(pa.table({"name": [NAME]}), form, None)
    text = capsys.readouterr().out
    assert all(c.isprintable() or c in "\n\t" for c in text)
    assert "owned" in text and "red" in text


def test_a_pipe_gets_the_name_as_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    emit(pa.table({"name": [NAME]}), "csv", None)
    assert NAME in capsys.readouterr().out
