"""nsightlens wrappers: out of a checkout. Out of a wheel: tests/long/test_wheel.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsightlens.cli.wrappers import command
from nsightlens.errors import NsightlensError
from tests.places import ROOT


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


def test_all_files_come_out_and_scripts_can_be_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / "my wrappers")])
    assert done.exit_code == 0, done.output
    out = tmp_path / "my wrappers"
    assert _files(out) == _files(ROOT / "wrappers")
    for path in out.rglob("*"):
        if path.is_file():
            assert os.access(path, os.X_OK) == path.read_bytes().startswith(b"#!"), path
    assert f"'{out}/capture_all.sh'" in done.output


def test_an_edited_file_is_kept_unless_forced(tmp_path: Path) -> None:
    CliRunner().invoke(command, [str(tmp_path)])
    edited = tmp_path / "README.md"
    edited.write_text("mine")
    refused = CliRunner().invoke(command, [str(tmp_path)])
    assert refused.exit_code == 1
    assert "README.md" in str(refused.exception)
    assert edited.read_text() == "mine"
    assert CliRunner().invoke(command, [str(tmp_path), "--force"]).exit_code == 0
    assert edited.read_text() != "mine"


@pytest.mark.parametrize("words", [[], ["--force"]])
@pytest.mark.parametrize("name", ["nsys_wrapper.sh", "jobs", "jobs/README.md", "hard"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str, words: list[str]) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "w"
    outside.mkdir()
    (folder / "jobs").mkdir(parents=True)
    (outside / "mine").write_text("mine")
    if name == "jobs":
        (folder / "jobs").rmdir()
        (folder / "jobs").symlink_to(outside)
    elif name == "hard":
        (folder / "README.md").hardlink_to(outside / "mine")
    else:
        (folder / name).symlink_to(outside / "new")
    done = CliRunner().invoke(command, [str(folder), *words])
    assert done.exit_code == (1 if name == "jobs" or not words else 0) or name == "jobs/README.md"
    assert isinstance(done.exception, NsightlensError | SystemExit | None)
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"mine": "mine"}


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run([sys.executable, "-m", "nsightlens", "wrappers", str(tmp_path / "file" / "x")], capture_output=True,
                          text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr
