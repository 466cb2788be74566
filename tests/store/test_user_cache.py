"""The files in the user's cache, which other processes write and delete at the same time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from nsightlens.store import user_cache
from tests.places import OWN_CACHE


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


def test_the_cache_of_tests_is_of_their_session_alone() -> None:
    folder = user_cache.folder()
    assert os.environ.get(OWN_CACHE) and folder is not None and Path(tempfile.gettempdir()) in folder.parents
    assert Path.home() / ".cache" not in folder.parents
