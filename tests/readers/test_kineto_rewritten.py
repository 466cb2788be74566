"""Traces that another program has rewritten: read, or each loss is a diagnostic with its count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import UnknownFormatError
from nsightlens.readers.kineto.repair import Repairer
from tests.captures import kineto


def _events(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(kineto(path, [("gemm", 1000.0 + 10 * n, 5.0) for n in range(3)]).read_text())[
        "traceEvents"]
    return events


def _said(capture: dict[str, Any]) -> dict[str, int]:
    return {row["code"]: row["count"] for row in capture["diagnostics"].to_pylist()}


def test_times_as_text_are_the_same_times(tmp_path: Path) -> None:
    events = _events(tmp_path / "t.json")
    for event in events:
        event["ts"] = f"{1_747_028_000_000_000 + int(event['ts'])}.250"
    (tmp_path / "t.json").write_text(json.dumps(events))
    capture = nl.read(tmp_path / "t.json")
    assert capture["profiles"]["origin_epoch_ns"].to_pylist() == [1_747_028_000_000_000_000]
    assert capture["kernels"]["start_ns"].to_pylist() == [1_000_250, 1_010_250, 1_020_250]


def test_another_trace_behind_the_end_is_counted(tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json")
    path.write_text(path.read_text() + "\n" + kineto(tmp_path / "u.json", [("gemm", 1.0, 1.0)] * 3).read_text())
    capture = nl.read(path)
    assert (capture["kernels"].num_rows, _said(capture)["second_trace"]) == (1, 7)


def test_events_of_a_begin_and_an_end_are_counted(tmp_path: Path) -> None:
    events = _events(tmp_path / "t.json")
    halves = [half for event in events if event["ph"] == "X" for half in ({**event, "ph": "B"}, {**event, "ph": "E"})]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": halves}))
    assert _said(nl.read(tmp_path / "t.json"))["begin_end_events"] == 6


def test_processes_whose_ids_are_texts_are_not_one(tmp_path: Path) -> None:
    events = [{**event, "pid": f"trace-{n}"} for n in (1, 2) for event in _events(tmp_path / "t.json")]
    (tmp_path / "t.json").write_text(json.dumps(events))
    with pytest.raises(UnknownFormatError, match="merged"):
        nl.read(tmp_path / "t.json")


@pytest.mark.parametrize("name", ['{"device": "cpu", "dtype": "float32"}(12): run', 'a "b", "c": d', '"'])
def test_a_name_with_quotes_stays_whole(name: str) -> None:
    repairer = Repairer(f'{{"ph": "X", "cat": "python_function", "name": "{name}", "pid": 1, "args": {{"a": 1}}}}')
    assert json.loads(repairer.value())["name"] == name


@pytest.mark.parametrize(("member", "text", "count"), [
    ("correlation", "1e-400", 1), ("stream", "7.5", 1), ("context", '"one"', 1), ("correlation", str(1 << 70), 1),
    ("block", "[2e6, 1, 1]", 1), ("stream", '"7"', 0), ("blocks per SM", '"inf"', 0), ("shared memory", "null", 0),
])
def test_a_value_that_cannot_be_kept_is_counted_whatever_its_column(
    tmp_path: Path, member: str, text: str, count: int,
) -> None:
    events = _events(tmp_path / "t.json")
    kernel = next(event for event in events if event.get("cat") == "kernel")
    kernel["args"][member], kernel["tid"] = "HERE", "stream 7"
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}).replace('"HERE"', text))
    assert _said(nl.read(tmp_path / "t.json")).get("odd_values", 0) == count
