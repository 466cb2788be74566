"""Sidecars whose capture is not there: scan, ingest and doctor say what was lost, and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nsightlens.cli import root as command_line
from nsightlens.discovery.files import find
from nsightlens.doctor.fitness import capture_findings
from tests.captures import kineto

BEGAN = 1_795_000_000_000_000_000


def sidecar(folder: Path, rank: int = 0, tool: str = "nsys", **more: Any) -> Path:
    path = folder / tool / f"rank{rank:04d}.run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"run": "base", "rank": rank, "host": "n7", "tool": tool, "started_epoch_ns": BEGAN, "exit_code": None, "report": None}
    path.write_text(json.dumps(told | more))
    return path


def reasons(folder: Path) -> dict[str, str]:
    """Return what is said of each refused file: reason and what to do."""
    return {f.path.name: f"{f.refused.reason}. {f.refused.what_to_do}" for f in find([folder]) if f.refused}


@pytest.mark.parametrize(("tool", "more", "words"), [
    ("nsys", {}, ["nsys left no report", "killed, or still runs", "rank 0 on n7", "2026-11-18", "no exit code", "more time"]),
    ("nsys", {"exit_code": 1}, ["the program failed", "exit code 1", "job's log"]),
    ("nsys", {"exit_code": 0}, ["nothing was recorded", "exit code 0", "--capture-range"]),
    ("ncu", {"exit_code": 0}, ["ncu left no report", ".ncu.log", "--launch-skip"]),
    ("torch", {"exit_code": 0, "steps": 3, "windows": 0}, ["torch.profiler left no trace", "Run more steps"]),
    ("torch", {"exit_code": 0, "steps": 0, "windows": 0}, ["recording never began", "--steps-from dataloader"]),
])
def test_a_sidecar_without_a_capture_says_how_it_ended_and_what_to_do(
    tmp_path: Path, tool: str, more: dict[str, Any], words: list[str],
) -> None:
    sidecar(tmp_path, tool=tool, **more)
    said = reasons(tmp_path)["rank0000.run.json"]
    assert all(word in said for word in words), said


def test_a_script_that_failed_before_its_first_step_is_not_told_to_run_more(tmp_path: Path) -> None:
    sidecar(tmp_path, tool="torch", exit_code=1, steps=0, windows=0)
    said = reasons(tmp_path)["rank0000.run.json"]
    assert "the program failed" in said and "more steps" not in said and "--steps-from" not in said


@pytest.mark.parametrize("more", [{"tool": "plain"}, {"tool": None}, {"tool": ["nsys"]}, {"report": "rank0000.nsys-rep"},
                                  {"windows": 1}])
def test_no_capture_is_missed_where_none_was_to_be_expected_or_it_was_there_once(tmp_path: Path, more: dict[str, Any]) -> None:
    path = sidecar(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    assert reasons(tmp_path) == {}


@pytest.mark.parametrize("name", ["rank0000.pt.trace.json", "rank0000.window1.pt.trace.json", "rank0000_2.json"])
def test_a_capture_of_any_ending_is_there(tmp_path: Path, name: str) -> None:
    kineto(sidecar(tmp_path, tool="torch").with_name(name))
    assert reasons(tmp_path) == {}


def test_a_capture_of_another_rank_or_a_log_is_none_of_this_one(tmp_path: Path) -> None:
    folder = sidecar(tmp_path, 1, "torch").parent
    kineto(folder / "rank0002.pt.trace.json")
    (folder / "rank0001.steps.json").write_text("{}")
    (folder / "rank0001.ncu.log").write_text("==PROF== Connected\n")
    assert "rank0001.run.json" in reasons(tmp_path)


def test_a_report_that_cannot_be_read_is_refused_itself(tmp_path: Path) -> None:
    sidecar(tmp_path).with_name("rank0000.nsys-rep").touch()
    assert set(reasons(tmp_path)) == {"rank0000.nsys-rep"}


def test_what_nsys_collected_can_still_be_made_a_report(tmp_path: Path) -> None:
    sidecar(tmp_path).with_name("rank0000.qdstrm").write_bytes(b"x")
    assert "QdstrmImporter" in reasons(tmp_path)["rank0000.run.json"]


def test_doctor_names_the_lost_capture(tmp_path: Path) -> None:
    sidecar(tmp_path)
    (found,) = (f for f in capture_findings(tmp_path) if "left no report" in f.found)
    assert "nsys/rank0000.run.json" in found.found and "leave more time" in found.fix


def test_scan_shows_the_rank_and_ingest_groups_the_ranks(tmp_path: Path) -> None:
    for rank in range(5):
        sidecar(tmp_path / "run", rank)
    kineto(tmp_path / "run/torch/rank0000.pt.trace.json")
    run = CliRunner().invoke
    shown = run(command_line, ["scan", str(tmp_path / "run"), "--format", "json"])
    rows = [row for row in json.loads(shown.stdout)["rows"] if row["verdict"] == "refused"]
    assert [(row["rank"], row["rank_source"]) for row in rows] == [(rank, "sidecar") for rank in range(5)]
    done = run(command_line, ["ingest", str(tmp_path / "run"), "--store", str(tmp_path / "store"), "--no-answers"])
    lines = [line for line in done.stderr.splitlines() if "refused  " in line]
    assert done.exit_code == 0 and len(lines) == 1, done.stderr
    assert re.search(r"rank0000.*, rank0001.*, rank0002.run.json and 2 more: nsys left no report: it was killed", lines[0])
    assert "rank 0 on" not in lines[0]


def test_a_capture_that_comes_later_is_read_and_nothing_is_refused_any_more(tmp_path: Path) -> None:
    path = sidecar(tmp_path / "run", tool="torch")
    arguments = ["ingest", str(tmp_path / "run"), "--store", str(tmp_path / "store"), "--no-answers"]
    first = CliRunner().invoke(command_line, arguments)
    assert first.exit_code == 1 and "left no trace" in first.stderr
    kineto(path.with_name("rank0000.pt.trace.json"))
    second = CliRunner().invoke(command_line, arguments)
    assert second.exit_code == 0 and "refused" not in second.stderr, second.stderr
