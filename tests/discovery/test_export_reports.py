"""nsightlens export-reports: the exports that a killed job could not make."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nsightlens.cli import root as command_line
from tests.places import ROOT

EXPORT = ROOT / "fixtures/simulated_resnet18_ddp/nsys/rank0.sqlite"
NSYS = f"""#!/bin/sh
echo "$@" >>"$(dirname "$0")/log"
[ "$*" != "${{*%bad.nsys-rep}}" ] && {{ echo "the report is damaged" >&2; exit 3; }}
for word; do case $word in --output=*) cp "{EXPORT}" "${{word#*=}}" ;; esac; done
"""


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for nsys, on PATH."""
    program = tmp_path / "bin/nsys"
    program.parent.mkdir()
    program.write_text(NSYS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return program


def report(folder: Path, name: str) -> Path:
    path = folder / "nsys" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"NVIDIA Tegra Profiler Report 1.2")
    return path


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(command_line, ["export-reports", *map(str, words)])


def calls(nsys: Path) -> list[str]:
    log = nsys.with_name("log")
    return log.read_text().splitlines() if log.exists() else []


def test_what_has_no_export_gets_one_beside_it_and_only_once(tmp_path: Path, nsys: Path) -> None:
    run_dir = tmp_path / "run"
    done_before = report(run_dir, "rank0000.nsys-rep").with_suffix(".sqlite")
    shutil.copy(EXPORT, done_before)
    lone = [report(run_dir, f"rank000{rank}.nsys-rep") for rank in (1, 2)]
    first = run(run_dir, "--jobs", "2")
    assert first.exit_code == 0 and "2 reports exported" in first.stderr and "[2/2] rank000" in first.stderr, first.stderr
    assert all(path.with_suffix(".sqlite").read_bytes() == EXPORT.read_bytes() for path in lone)
    assert not any("rank0000" in call for call in calls(nsys)) and len(calls(nsys)) == 2
    second = run(run_dir)
    assert second.exit_code == 0 and "every report has its export" in second.stderr and len(calls(nsys)) == 2
    assert sorted(p.name for p in (run_dir / "nsys").iterdir() if p.name.startswith(".")) == []


def test_half_an_export_is_made_again(tmp_path: Path, nsys: Path) -> None:
    half = report(tmp_path / "run", "rank0000.nsys-rep").with_suffix(".sqlite")
    half.write_bytes(b"")
    assert run(tmp_path / "run").exit_code == 0
    assert half.read_bytes() == EXPORT.read_bytes()


def test_what_is_no_export_is_not_replaced(tmp_path: Path, nsys: Path) -> None:
    """A job may have a database of its own by the name of its report."""
    mine, linked, text = (report(tmp_path / "run", f"rank000{rank}.nsys-rep").with_suffix(".sqlite") for rank in range(3))
    with closing(sqlite3.connect(mine)) as connection:
        connection.execute("CREATE TABLE losses (step INTEGER, loss REAL)")
    linked.symlink_to(tmp_path / "gone.sqlite")
    text.write_text("notes")
    before = mine.read_bytes()
    done = run(tmp_path / "run")
    assert done.exit_code == 1 and done.stderr.count("in the place of its export") == 3 and not calls(nsys)
    assert mine.read_bytes() == before and linked.is_symlink() and text.read_text() == "notes"


def test_a_report_that_fails_stops_no_other_and_leaves_nothing(tmp_path: Path, nsys: Path) -> None:
    for name in ("bad.nsys-rep", "good.nsys-rep"):
        report(tmp_path / "run", name)
    done = run(tmp_path / "run")
    assert done.exit_code == 1 and "1 report exported, 1 failed" in done.stderr
    assert "bad.nsys-rep: nsys could not convert it (exit code 3): the report is damaged" in done.stderr
    assert sorted(p.name for p in (tmp_path / "run/nsys").iterdir()) == ["bad.nsys-rep", "good.nsys-rep", "good.sqlite"]


def test_nsys_by_its_path(tmp_path: Path, nsys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    report(tmp_path / "run", "rank0000.nsys-rep")
    assert run(tmp_path / "run", "--nsys", nsys).exit_code == 0
    assert (tmp_path / "run/nsys/rank0000.sqlite").exists()


@pytest.mark.parametrize("options", [[], ["--nsys", "/nowhere/nsys"]])
def test_without_nsys_it_says_so_before_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    report(tmp_path / "run", "rank0000.nsys-rep")
    done = run(tmp_path / "run", *options)
    said = str(done.exception)
    assert done.exit_code == 1 and f"{[*options, 'nsys'][1 if options else 0]} is not here" in said and "--nsys" in said


def test_a_folder_without_reports_needs_no_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.json").write_text(json.dumps({}))
    assert run(tmp_path).exit_code == 0


def test_what_was_exported_is_ingested(tmp_path: Path, nsys: Path) -> None:
    report(tmp_path / "run", "rank0000.nsys-rep")
    assert run(tmp_path / "run").exit_code == 0
    done = CliRunner().invoke(command_line, ["ingest", str(tmp_path / "run"), "--store", str(tmp_path / "store"), "--no-answers"])
    assert done.exit_code == 0 and "1 new" in done.stderr and len(calls(nsys)) == 1, done.stderr
