"""A result is written whole, under its own name, into what was named, and over nothing that is no result."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens import perfetto
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.html_report.report import Report
from nsightlens.store.outputs import whole
from tests.cli.command_line import run

PAGE = Report("a page", ())


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "p.html", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    PAGE.save(pipe)
    reader.join(20)
    assert read == ["a page"] and stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["p.html"]


def test_no_link_that_lies_beside_it_is_followed(tmp_path: Path) -> None:
    """A name that can be guessed can be taken: by somebody else, in a folder that a group shares."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in ("x.html", "x.json", "x.json.gz", "x.svg"):
        (folder / f".{name}.{os.getpid()}").symlink_to(victim)
    PAGE.save(folder / "x.html")
    for name in ("x.json", "x.json.gz", "x.svg"):
        with whole(folder / name) as file:
            file.write(b"a trace")
    assert victim.read_text() == "mine" and not (folder / "x.html").is_symlink()
    assert (folder / f".x.html.{os.getpid()}").is_symlink()


def test_a_link_is_written_through_and_permissions_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    page.chmod(0o600)
    (tmp_path / "link.html").symlink_to(page)
    PAGE.save(tmp_path / "link.html")
    assert page.read_text() == "a page" and stat.S_IMODE(page.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["train.py", "y.nsys-rep", "caps.tar", "looks.msgpack", "page"])
def test_a_page_is_called_html(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=r"unknown extension; use \.html or \.htm"):
        PAGE.save(tmp_path / name)
    assert (tmp_path / name).read_text() == "mine"


def test_a_capture_is_no_place_for_a_trace(tmp_path: Path, bundled_store: Path) -> None:
    capture = tmp_path / "rank0.json"
    capture.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}]}')
    before = capture.read_bytes()
    with nl.open(bundled_store) as store, pytest.raises(UsageError, match="a capture"):
        perfetto.export(store, capture)
    assert capture.read_bytes() == before


def test_an_error_names_what_was_given_and_leaves_nothing(
        tmp_path: Path, bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["report", "-o", "none/x.html"], ["export", "perfetto", "-o", "none/x.json"],
                      ["plot", "top_kernels", "-o", "none/x.svg"]):
        done = run(*arguments, "--store", bundled_store)
        name = arguments[arguments.index("-o") + 1]
        assert done.returncode == 1 and f"{name}: cannot be written (No such file or directory)" in done.stderr, done.stderr
    (tmp_path / "x.html").write_text("old")
    with pytest.raises(NsightlensError, match=r"x\.html: cannot be written"), whole(tmp_path / "x.html"):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == ["x.html"] and (tmp_path / "x.html").read_text() == "old"
    with pytest.raises(KeyboardInterrupt), whole(tmp_path / "x.html") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["x.html"] and (tmp_path / "x.html").read_text() == "old"
