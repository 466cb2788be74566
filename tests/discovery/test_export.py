from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from nsightlens.discovery.export import PACKED_SQLITE, REPORTS, advice, advice_for_all, convert, recognise
from nsightlens.errors import ReadError
from nsightlens.terminal.text import written
from tests.launchers import stand_ins

(NSYS,) = REPORTS


def _stub(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)


@pytest.fixture()
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return folder


def test_recognised_by_content() -> None:
    assert recognise(b"NVIDIA Tegra Profiler Report 1.2") is NSYS
    assert recognise(b"NVR\0\2\0\0\0") is None
    assert recognise(b"SQLite format 3\0") is None


def test_nsys_writes_into_the_cache_and_only_once(tools: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    _stub(tools, "nsys", f'echo "$@" >> "{log}"\nfor word; do case $word in --output=*) echo db > "${{word#*=}}" ;; esac; done')
    output = tmp_path / "converted" / "abc.sqlite"
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"x")
    assert convert(NSYS, report, output).read_text() == "db\n"
    assert convert(NSYS, report, output) == output
    assert len(log.read_text().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.nsys-rep", "bin", "converted", "log"]


def test_the_command_is_in_the_documented_grammar(tools: Path, tmp_path: Path) -> None:
    stand_ins.install(tools)
    (tmp_path / "a b.nsys-rep").write_bytes(b"x")
    assert convert(NSYS, tmp_path / "a b.nsys-rep", tmp_path / "c" / "a b.sqlite").read_text() == "an export\n"


def test_a_failing_tool_leaves_nothing_and_says_what_it_said(tools: Path, tmp_path: Path) -> None:
    _stub(tools, "nsys", "echo 'version too old' >&2; exit 3")
    with pytest.raises(ReadError, match="version too old") as caught:
        convert(NSYS, tmp_path / "a.nsys-rep", tmp_path / "c" / "x.sqlite")
    assert caught.value.code == "export_failed"
    assert list((tmp_path / "c").iterdir()) == []


def test_without_the_tool_the_command_is_told(tools: Path, tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        convert(NSYS, Path("/d/my run.nsys-rep"), tmp_path / "c" / "x.sqlite")
    assert "'--output=/d/my run.sqlite' '/d/my run.nsys-rep'" in str(caught.value)
    assert written(advice(NSYS, Path("/d/a.nsys-rep"))).startswith("Run where nsys is installed: nsys export --type=sqlite")


def test_reports_of_two_endings_are_found_by_one_command() -> None:
    one, other = Path("/d/a.nsys-rep"), Path("/d/e/b.qdrep")
    assert "find /d '(' -name '*.nsys-rep' -o -name '*.qdrep' ')' -exec" in written(advice_for_all([one, other]))
    assert "find /d -name '*.nsys-rep' -exec" in written(advice_for_all([one]))


def test_no_more_is_unpacked_than_the_header_states(tmp_path: Path) -> None:
    """A header that states 512 pages of 4 KiB, and 3 MiB behind it."""
    header = PACKED_SQLITE.magic + (4096).to_bytes(2, "big") + bytes(10) + (512).to_bytes(4, "big")
    (tmp_path / "a.sqlite.gz").write_bytes(gzip.compress(header + bytes(3 << 20)))
    assert convert(PACKED_SQLITE, tmp_path / "a.sqlite.gz", tmp_path / "a.sqlite").stat().st_size == 512 * 4096


def test_a_link_beside_an_export_is_not_written_through(tmp_path: Path) -> None:
    """A name that can be guessed can be taken, where a group writes into one folder."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".{os.getpid()}.a.sqlite").symlink_to(victim)
    (tmp_path / "a.sqlite.gz").write_bytes(gzip.compress(PACKED_SQLITE.magic + bytes(100)))
    made = convert(PACKED_SQLITE, tmp_path / "a.sqlite.gz", tmp_path / "a.sqlite")
    assert victim.read_text() == "mine" and made.is_file() and not made.is_symlink()
