"""A table longer than the terminal goes through the pager; a short one, a pipe, and a terminal without a pager do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import run
from tests.cli.test_colour import in_terminal

LONG, SHORT = "SELECT range AS a FROM range(150)", "SELECT 1 AS a"


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that says that it was asked, and what it got."""
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\necho PAGED\nexec cat\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(("query", "paged"), [(LONG, True), (SHORT, False)])
def test_a_long_table_on_a_terminal(bundled_store: Path, pager: str, query: str, paged: bool) -> None:
    text = in_terminal("sql", query, "--store", str(bundled_store), PAGER=pager, LINES="40")
    assert ("PAGED" in text) is paged and ("149" in text) is paged


@pytest.mark.parametrize("settings", [{"PAGER": ""}, {"PAGER": "cat"}, {"PAGER": "/no/such/pager"}, {"TERM": "dumb"}])
def test_no_pager_where_there_is_none(bundled_store: Path, pager: str, settings: dict[str, str]) -> None:
    text = in_terminal("sql", LONG, "--store", str(bundled_store), **{"PAGER": pager, "LINES": "40", **settings})
    assert "PAGED" not in text and "149" in text


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_programs_read_is_not_paged(bundled_store: Path, pager: str, form: str) -> None:
    assert "PAGED" not in in_terminal("sql", LONG, "--store", str(bundled_store), "-f", form, PAGER=pager, LINES="40")


def test_a_pipe_is_not_paged(bundled_store: Path, pager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", pager)
    assert "PAGED" not in run("sql", LONG, "--store", bundled_store).stdout
