"""The page for CI: its shell part runs, its YAML is what it should be, and its table is that of rates.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Shared
from tests.gate.made import recordings
from tests.gate.rates import PAGE, ROWS, SPREADS, Row, rates

TEXT = PAGE.read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def _rows() -> dict[tuple[str, str], list[list[float]]]:
    """Return the figures of the table: by row and recordings, of slower and of ok."""
    lines = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in TEXT.splitlines() if line.count(" / ") >= 4]
    return {(line[0], line[1]): [[float(figure) for figure in cell.split(" / ")] for cell in line[2:]]
            for line in lines if "/" in line[-1] and "truth" not in line[0]}


def test_the_table_has_the_rows_that_are_simulated() -> None:
    assert list(_rows()) == [(row.name, f"{row.counts[0]} and {row.counts[1]}") for row in ROWS], "run: make check-rates"


def test_the_table_keeps_what_is_promised() -> None:
    """No change is called slower in 1 % at most; a change at the limit is called either in 3 %, whichever side varies more."""
    noise = 0.75  # two standard deviations of 2.7 % of 2,000
    for (name, _), (slower, ok) in _rows().items():
        if name.startswith("no change"):
            assert max(slower) <= 1, name
        elif name.startswith("3 % slower, limit 3 %") and "added" not in name:
            assert max(*slower, *ok) <= 3 + noise, name


@pytest.mark.parametrize("row", [row for row in ROWS if (row.counts == (5, 5) and row.limit == 1.5) or row.nodes],
                         ids=lambda row: row.name)
def test_a_few_simulations_give_what_the_table_says(row: Row) -> None:
    slower, ok = _rows()[row.name, f"{row.counts[0]} and {row.counts[1]}"]
    found = rates(row, SPREADS[1], 100)
    assert abs(found["slower"] - slower[1]) <= 18 and abs(found["ok"] - ok[1]) <= 18


@pytest.mark.parametrize(("block", "schema"), [(0, "github-workflows"), (1, "gitlab-ci")])
def test_the_yaml_is_valid(block: int, schema: str, tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(_blocks("yaml")[block])
    done = subprocess.run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}",
                           tmp_path / "job.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_the_shell_part_runs(shared: Shared, tmp_path: Path) -> None:
    made = shared("ci-page", lambda folder: [recordings(folder / "base", 2, 1), recordings(folder / "candidate", 5, 50)])
    shutil.copytree(made / "base", tmp_path / "runs" / "base")
    (tmp_path / "record.sh").write_text(f'#!/bin/sh\nmkdir -p "$1" && cp "{made}/candidate/$(($(basename "$1") - 1))"/* "$1"\n')
    (tmp_path / "record.sh").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nsightlens").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsightlens "$@"\n')
    (tmp_path / "bin" / "nsightlens").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
                   "PYTHONPATH": str(PAGE.parent.parent)}
    (script,) = _blocks("sh")
    done = subprocess.run(["bash", "-eu", "-c", script], cwd=tmp_path, env=environment, text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0 and done.stdout.startswith("**OK: "), done.stdout + done.stderr
    assert (tmp_path / "check.json").stat().st_size > 0
