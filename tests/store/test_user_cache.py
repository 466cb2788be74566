"""The files in the user's cache, which other processes write and delete at the same time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nsightlens.store import user_cache


def test_a_file_that_is_deleted_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "nsightlens" / "views"
    cache.mkdir(parents=True)
    for name in ("gone", "kept"):
        (cache / name).write_bytes(b"12345")
    plain = Path.stat

    def stat(path: Path, **options: Any) -> os.stat_result:
        if path.name == "gone":
            path.unlink(missing_ok=True)
        return plain(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert user_cache.files() == {cache / "kept": 5}


def test_the_newest_stays_where_the_clock_was_set_back(tmp_path: Path) -> None:
    """The files from before are dated after it."""
    for number in range(3):
        (tmp_path / f"{number}.arrow").write_bytes(b"12345")
        os.utime(tmp_path / f"{number}.arrow", (4e9 + number, 4e9 + number))
    user_cache.keep(tmp_path / "new.arrow", lambda path: path.write_bytes(b"12345"), 2, 100)
    assert {path.name for path in tmp_path.iterdir()} == {"2.arrow", "new.arrow"}
