"""The files in the user's cache, which other processes write and delete at the same time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsightlens as nl
from nsightlens.cli.cache import command as cache_command
from nsightlens.store import user_cache
from tests.places import OWN_CACHE

DIGEST = "0123456789abcdef" * 2


def test_a_file_that_is_deleted_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "nsightlens" / "views"
    cache.mkdir(parents=True)
    gone, kept = (cache / f"{name}-{DIGEST}.arrow" for name in ("gone", "kept"))
    for path in (gone, kept):
        path.write_bytes(b"12345")
    plain = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        if path == gone:
            path.unlink(missing_ok=True)
        return plain(path)

    monkeypatch.setattr(Path, "lstat", lstat)
    assert user_cache.files() == {kept: 5}


def test_files_that_are_not_ours_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME may be a folder with a checkout of this project: nsightlens/, where we would have our cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    checkout = tmp_path / "nsightlens"
    theirs = [checkout / name for name in ("pyproject.toml", "views/a.arrow", "rows/b.parquet", "stores/c/d", "mine.duckdb")]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs")
    (tmp_path / "elsewhere" / "x").mkdir(parents=True)
    (tmp_path / "elsewhere" / f"linked-{DIGEST}.arrow").write_text("theirs")
    (checkout / "stores" / DIGEST[:16]).symlink_to(tmp_path / "elsewhere")
    for number in range(3):
        user_cache.keep(checkout / f"blank-{DIGEST}-{number}.duckdb", lambda path: path.write_bytes(b"ours"), 1, 1 << 20)
        assert len(user_cache.files()) == 1
    user_cache.clear()
    assert not user_cache.files() and all(path.read_text() == "theirs" for path in theirs)
    assert (tmp_path / "elsewhere" / f"linked-{DIGEST}.arrow").exists()


@pytest.mark.parametrize("linked", ["nsightlens", "nsightlens/views", "nsightlens/stores"])
def test_what_lies_behind_a_link_is_not_the_caches(linked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    theirs = tmp_path / "theirs" / f"busy_time-{DIGEST}.arrow"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    (tmp_path / linked).parent.mkdir(exist_ok=True)
    (tmp_path / linked).symlink_to(theirs.parent)
    assert user_cache.folder(*Path(linked).parts[1:]) is None and theirs not in user_cache.files()
    said = CliRunner().invoke(cache_command, ["clear"])
    assert said.exit_code == 0 and theirs.read_text() == "theirs"


@pytest.mark.parametrize("linked", ["nsightlens", "nsightlens/views"])
def test_nothing_is_kept_behind_a_link(linked: str, bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / linked).parent.mkdir(exist_ok=True)
    (tmp_path / linked).symlink_to(tmp_path / "theirs")
    with nl.open(bundled_store) as store:
        assert store.view("verdict").num_rows
    assert not list((tmp_path / "theirs").iterdir())


def test_the_cache_of_tests_is_of_their_session_alone() -> None:
    folder = user_cache.folder()
    assert os.environ.get(OWN_CACHE) and folder is not None and Path(tempfile.gettempdir()) in folder.parents
    assert Path.home() / ".cache" not in folder.parents


def test_the_cache_keeps_the_newest(tmp_path: Path) -> None:
    for number in range(5):
        place = tmp_path / f"v{number}-{number:032x}.arrow"
        user_cache.keep(place, lambda path: path.write_bytes(b"12345"), 3, 12)
    assert sorted(file.name[:2] for file in tmp_path.iterdir()) == ["v3", "v4"], "three files at most, of 12 bytes together"


def test_clear_deletes_what_lies_in_the_cache(bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with nl.open(bundled_store) as store:
        store.view("verdict")
    cache = tmp_path / "nsightlens"
    files = len([path for path in cache.rglob("*") if path.is_file()])
    said = CliRunner().invoke(cache_command, [])
    assert said.exit_code == 0 and files and f"{cache}: {files} file" in said.stdout
    assert ", deleted" in CliRunner().invoke(cache_command, ["clear"]).stdout
    assert ": 0 files, 0.0 MB" in CliRunner().invoke(cache_command, []).stdout


def test_the_newest_stays_where_the_clock_was_set_back(tmp_path: Path) -> None:
    """The files from before are dated after it."""
    for number in range(3):
        (tmp_path / f"{number}-{DIGEST}.arrow").write_bytes(b"12345")
        os.utime(tmp_path / f"{number}-{DIGEST}.arrow", (4e9 + number, 4e9 + number))
    user_cache.keep(tmp_path / f"new-{DIGEST}.arrow", lambda path: path.write_bytes(b"12345"), 2, 100)
    assert {path.name for path in tmp_path.iterdir()} == {f"2-{DIGEST}.arrow", f"new-{DIGEST}.arrow"}
