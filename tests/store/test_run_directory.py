"""A run directory where a store is asked for: the message says how to read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import StoreError, UsageError
from tests.captures import kineto
from tests.cli.command_line import run


def test_captures_are_no_store(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "a.json")
    for place in (tmp_path / "run", tmp_path / "run" / "a.json"):
        with pytest.raises(UsageError, match=r"holds captures and is no store: nsightlens ingest .* nl\.open\(.*, ingest=True\)"):
            nl.open(place)
    assert run("summary", "--store", tmp_path / "run").returncode == 2


def test_where_nothing_can_be_read_there_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    for place in (tmp_path, tmp_path / "gone"):
        with pytest.raises(StoreError, match="no store here"):
            nl.open(place)
