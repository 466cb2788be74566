"""Step times: exact, told apart, and hostile files refused with a reason and a next step."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.discovery.files import find
from nsightlens.errors import ReadError
from nsightlens.readers import steps

BEGAN = 1_795_267_079_116_923_327  # no double holds it
LOG: dict[str, Any] = {
    "run": "base", "rank": 3, "world_size": 4, "local_rank": 1, "host": "n1", "launcher": "srun", "execution_id": "e-plain",
    "command": ["train.py"], "git_commit": None, "tool": "plain", "workload": {"name": "resnet18", "batch_size": 2},
    "windows": [
        {"name": "warmup", "start_epoch_ns": BEGAN, "end_epoch_ns": BEGAN + 101,
         "steps": [{"step": 0, "start_epoch_ns": BEGAN + 1, "end_epoch_ns": BEGAN + 100}]},
        {"name": "measure", "start_epoch_ns": BEGAN + 200, "end_epoch_ns": BEGAN + 260,
         "steps": [{"step": 1, "start_epoch_ns": BEGAN + 201, "end_epoch_ns": BEGAN + 221},
                   {"step": 2, "start_epoch_ns": BEGAN + 222, "end_epoch_ns": BEGAN + 251}]},
    ],
}
ROWS = [("warmup", 0, 0, 101, 0, 1, 99), ("measure", 1, 200, 60, 1, 201, 20), ("measure", 1, 200, 60, 2, 222, 29)]
COLUMNS = ("segment_name", "segment_number", "segment_start_ns", "segment_duration_ns", "step", "start_ns", "duration_ns")


def write(path: Path, content: Any = LOG) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


def test_rows_are_exact(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "rank0003.steps.json"))
    rows = tables["step_times"].to_pylist()
    assert [tuple(row[c] for c in COLUMNS) for row in rows] == ROWS
    common = {tuple(row[c] for c in ("profiler", "workload", "rank", "tool")) for row in rows}
    assert common == {("none", "resnet18", 3, "steps")}
    assert tables["profiles"].to_pylist()[0]["origin_epoch_ns"] == BEGAN
    assert tables["profiles"].to_pylist()[0]["execution_id"] == "e-plain"
    assert tables["profiles"].to_pylist()[0]["settings"] == [("workload.name", "resnet18"), ("workload.batch_size", "2")]
    (process,) = tables["processes"].to_pylist()
    assert [process[c] for c in ("host", "rank", "rank_source", "local_rank", "world_size")] == ["n1", 3, "content:steps", 1, 4]


@pytest.mark.parametrize(("tool", "under"), [("plain", "none"), ("torch", "kineto"), ("nsys", "nsys"), ("x", "x")])
def test_what_it_ran_under(tmp_path: Path, tool: str, under: str) -> None:
    table = nl.read(write(tmp_path / "a.json", {**LOG, "tool": tool}))["step_times"]
    assert set(table["profiler"].to_pylist()) == {under}


def test_it_is_known_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(gzip.compress(json.dumps(LOG).encode()))
    write(tmp_path / "other.txt", "\ufeff" + json.dumps(LOG))
    write(tmp_path / "no.steps.json", {"steps": []})
    write(tmp_path / "trace.json", {"tool": "x", "windows": [], "traceEvents": []})
    found = {f.path.name: f for f in find([tmp_path])}
    assert {n for n, f in found.items() if f.tool == "steps"} == {"packed", "other.txt"}
    assert found["no.steps.json"].refused
    assert nl.read(tmp_path / "packed")["step_times"].num_rows == nl.read(tmp_path / "other.txt")["step_times"].num_rows == 3


def test_what_it_says_of_itself_wins_over_a_stale_sidecar(tmp_path: Path) -> None:
    write(tmp_path / "rank0003.steps.json")
    write(tmp_path / "rank0003.run.json", {"run": "other", "execution_id": "e-later", "rank": 0})
    write(tmp_path / "rank0001.steps.json", {k: v for k, v in LOG.items() if k not in ("run", "execution_id", "rank")})
    write(tmp_path / "rank0001.run.json", {"run": "base", "execution_id": "e-1", "rank": 1})
    found = {f.path.name: f for f in find([tmp_path]) if f.tool}
    told, beside = found["rank0003.steps.json"], found["rank0001.steps.json"]
    assert told.sidecar and (told.run, told.sidecar.execution, told.rank) == ("base", "e-plain", (3, "content:steps"))
    assert beside.sidecar and (beside.run, beside.sidecar.execution, beside.rank) == ("base", "e-1", (1, "sidecar"))


def test_times_that_cannot_be_are_null_and_said(tmp_path: Path) -> None:
    odd = [{"step": 1, "start_epoch_ns": BEGAN + 9, "end_epoch_ns": BEGAN + 8}, {"step": 2, "start_epoch_ns": BEGAN}]
    tables = nl.read(write(tmp_path / "a.json", {"tool": "plain", "windows": [{"steps": odd}]}))
    assert [(r["start_ns"], r["duration_ns"], r["segment_duration_ns"], r["rank"]) for r in tables["step_times"].to_pylist()] == [
        (9, None, None, None), (0, None, None, None)]
    assert [(d["code"], d["count"]) for d in tables["diagnostics"].to_pylist()] == [("negative_duration", 1)]


def test_no_step_is_said(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "a.json", {"tool": "plain", "windows": []}))
    assert "step_times" not in tables and [d["code"] for d in tables["diagnostics"].to_pylist()] == ["no_steps"]


WHOLE = json.dumps(LOG)
TIME = str(BEGAN)


@pytest.mark.parametrize("content", [
    WHOLE[:-30], WHOLE[: WHOLE.index('"steps"') - 40], WHOLE.replace(TIME, '"soon"'),
    WHOLE.replace(TIME, "1e400"), WHOLE.replace(TIME, "99999999999999999999"),
    WHOLE.replace(TIME, "-5"), WHOLE.replace(TIME, "1.5"), WHOLE.replace('"rank": 3', '"rank": -1'),
    WHOLE.replace('"rank": 3', '"rank": true'), WHOLE.replace('"windows": [', '"windows": [' * 5000), WHOLE + "x",
    WHOLE.replace('"windows": [', '"windows": [null, '), WHOLE.replace('{"step": 0', '{"stop": 0'),
])
def test_damaged_files_are_refused(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "rank0003.steps.json", content)
    (file,) = find([path])
    assert file.refused and file.tool is None
    assert file.refused.code == "damaged" and "damaged step times" in file.refused.reason
    assert "Record it again" in file.refused.what_to_do
    with pytest.raises(ReadError):
        nl.read(path)


def test_bytes_that_are_no_text_and_broken_gzip_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(WHOLE.encode().replace(b"resnet18", b"\xff\xfe"))
    packed = gzip.compress(WHOLE.encode())
    (tmp_path / "cut.json").write_bytes(packed[:-20])
    (tmp_path / "flipped.json").write_bytes(packed[:60] + bytes([packed[60] ^ 255]) + packed[61:])
    for file in find([tmp_path]):
        assert file.refused, file.path


def test_a_file_too_large_is_refused_before_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_BYTES", 500)
    (file,) = find([write(tmp_path / "a.json")])
    assert file.refused and file.refused.code == "too_large"


def test_ingest_counts_them_once_replaces_what_changed_and_keeps_them_out_of_timelines(tmp_path: Path) -> None:
    folder = tmp_path / "base" / "plain"
    folder.mkdir(parents=True)
    log = write(folder / "rank0003.steps.json")
    (folder / "same.json.gz").write_bytes(gzip.compress(log.read_bytes()))
    with nl.ingest([tmp_path / "base"], store=tmp_path / "store") as store:
        (first,) = store.sql("SELECT DISTINCT profile_id FROM profiles").column(0).to_pylist()
        assert store.sql("SELECT count(*) FROM step_times").column(0).to_pylist() == [3]
        assert store.sql("SELECT outcome FROM files ORDER BY path").column(0).to_pylist() == ["read", "duplicate"]
        assert store.view("timeline_kernels").num_rows == store.view("busy_time").num_rows == 0
        summary = store.view("step_time_summary").to_pylist()
    assert [(r["segment_name"], r["steps"], r["step_ns"], r["median_ns"], r["rank"]) for r in summary] == [
        ("warmup", 1, 101.0, 99.0, 3), ("measure", 2, 30.0, 24.5, 3)]
    (folder / "same.json.gz").unlink()
    write(log, {**LOG, "windows": LOG["windows"][:1]})
    with nl.ingest([tmp_path / "base"], store=tmp_path / "store") as store:
        assert store.sql("SELECT DISTINCT run, profile_id FROM step_times").num_rows == 1
        assert store.sql("SELECT count(*) FROM step_times").column(0).to_pylist() == [1]
        assert store.sql("SELECT profile_id FROM profiles").column(0).to_pylist() != [first]
