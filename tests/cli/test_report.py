"""nsightlens report: a file, what it says of it, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.captures import kineto
from tests.cli.command_line import run


def test_the_store_becomes_a_file(bundled_store: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    done = run("report", "--store", bundled_store, "-o", target)
    assert done.returncode == 0 and done.stdout == ""
    assert f"written: {target} ({target.stat().st_size / 1e6:.1f} MB)" in done.stderr
    assert target.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.long
def test_a_run_directory_needs_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kineto(tmp_path / "job" / "a.json")
    assert run("report", tmp_path / "job").returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"job", "report.html"}
    assert "job" in (tmp_path / "report.html").read_text()


@pytest.mark.long
def test_open_shows_it_in_the_browser(bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    assert run("report", "--store", bundled_store, "-o", tmp_path / "r.html", "--open").returncode == 0
    assert shown == [(tmp_path / "r.html").as_uri()]


def test_what_it_refuses(bundled_store: Path, tmp_path: Path) -> None:
    for arguments, said in ((["--run", "nope"], "no run nope"), (["--base", "simulated_resnet18_ddp"], "two runs"),
                            ([tmp_path], "captures or --store"), (["--max-mb", "0"], "max-mb")):
        done = run("report", "--store", bundled_store, "-o", tmp_path / "r.html", *arguments)
        assert done.returncode == 2 and said in done.stderr, arguments
    assert not (tmp_path / "r.html").exists()
