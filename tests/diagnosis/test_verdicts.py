"""What is said of real captures, against expert readings of them: the cause, the words, and the branches to the ns."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError
from tests.cli.command_line import run
from tests.diagnosis.first_sentences import Row, capture, details, faults, first_sentences, forbidden, is_counted, rows, unsaid

pytestmark = [pytest.mark.captures, pytest.mark.long]

_BRANCHES = {"computing": "computing_ns", "communication": "communication_ns", "copies": "copies_ns", "idle": "idle_ns",
             "not recorded": "not_recorded_ns"}
_ARGUED = {
    "kineto/deepseek-ai__profile-data__train.json": 28_000,  # get_dispatch_layout counts tokens; it sends nothing
}
"""Captures whose branches differ, and by how many ns."""
_UNSAID = {
    "nsys/brycelelbach__nsightful__power_iteration__baseline.sqlite",  # no counters, no shapes: the limit of gemv is not recorded
    "kineto/pytorch__kineto__tb_plugin__resnet50_autograd_api_num_workers_0__worker0.pt.trace.json.gz",  # no GPU named
    "ncu/Olajide-Badejo__GPU-Roofline-Profiler__saxpy.csv",  # the bytes, but neither a GPU's name nor a peak
}
"""Captures that do not hold what the detail of their row says."""


def _names(row: Row) -> str:
    return row["capture"]


ROWS = rows()
REFUSED = ("nsys-jax",)
"""Tools whose captures are refused, though an expert can read them."""


@pytest.mark.parametrize("row", [row for row in ROWS if row["tool"] not in REFUSED], ids=_names)
def test_the_first_sentence_is_what_an_expert_reads(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not capture(row).exists():
        pytest.skip("the capture is not here")
    monkeypatch.setenv("COLUMNS", "80")
    try:
        with nl.ingest(capture(row), store=tmp_path / "store", jobs=1) as store:
            told = store.view("verdict").to_pylist()
            trees = store.view("time_tree").to_pylist()
    except NsightlensError as exc:
        assert row["cause"] == "none", exc
        return
    done = run("summary", "--store", tmp_path / "store")
    page = done.stdout if done.stdout.strip() else done.stderr
    wrong = list(faults(row, page, told[0]["cause"] if told else "none"))
    if row["certainty"] != "sure":
        wrong = list(forbidden(row, first_sentences(page), " ".join(page.split())))
    assert not wrong, first_sentences(page)
    if is_counted(row) and row["capture"] not in _UNSAID:
        of_tool = [line for line in told if line["tool"] == told[0]["tool"]]
        assert not unsaid(row, {line["cause"] for line in of_tool if line["kind"] != "condition"})
    for branch, column in _BRANCHES.items() if row["computing_ns"] else ():
        expected = sorted(int(part.rpartition(":")[2]) for part in row[column].split(";"))
        found = sorted(line["total_ns"] for line in trees if line["depth"] == 1 and line["node"] == branch)
        differs = max(abs(a - b) for a, b in zip(expected, found, strict=True))
        assert differs <= _ARGUED.get(row["capture"], 0), f"{branch}: {found}, not {expected}"


def test_the_rows_that_count_are_there() -> None:
    if not ROWS:
        pytest.skip("no captures are here")
    counted = [row for row in ROWS if is_counted(row)]
    assert (len(counted), sum(row["tool"].startswith("ncu") for row in counted)) == (49, 14)
    told = [row["capture"] for row in counted if details(row)]
    assert len(told) == 35 and len(_UNSAID & set(told)) == len(_UNSAID) <= 0.1 * len(told)
