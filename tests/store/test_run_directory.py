"""A run directory where a store is asked for: the message says how to read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.discovery import files
from nsightlens.discovery.files import CaptureFile
from nsightlens.errors import StoreError, UsageError
from nsightlens.store import store
from tests.captures import kineto
from tests.cli.command_line import run


def test_captures_are_no_store(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "a.json")
    for place in (tmp_path / "run", tmp_path / "run" / "a.json"):
        with pytest.raises(UsageError, match=r"and is not a store: nsightlens ingest .* nl\.open\(.*, ingest=True\)"):
            nl.open(place)
    assert run("summary", "--store", tmp_path / "run").returncode == 2


def test_where_nothing_can_be_read_there_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    for place in (tmp_path, tmp_path / "gone"):
        with pytest.raises(StoreError, match="no store here"):
            nl.open(place)


def test_a_large_directory_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a mistaken path, such as a home directory, only the first files are looked at."""
    seen: list[Path] = []

    def look_at(path: Path, root: Path, run: str) -> CaptureFile:
        seen.append(path)
        return CaptureFile(path, root, run, 0, 0, "foreign")

    monkeypatch.setattr(store, "_FIRST_FILES", 5)
    monkeypatch.setattr(files, "look_at", look_at)
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("none")
    with pytest.raises(StoreError, match="no store here"):
        nl.open(tmp_path)
    assert len(seen) == 5
