"""Real reports of ncu 2020 to 2025: every launch and every counter, against what was written down of them and other decoders."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers import ncu
from tests.fuzz import ncu_rep as fuzz
from tests.fuzz.campaign import verdict
from tests.fuzz.mutation import mutation
from tests.places import NCU_REPORTS
from tests.readers.ncu_reports import printed
from tests.readers.ncu_text import Tables, codes, read, save

pytestmark = [pytest.mark.captures, pytest.mark.skipif(not NCU_REPORTS, reason="no ../shared/data/ncu/rep")]
each_report = pytest.mark.parametrize("path", NCU_REPORTS, ids=[path.stem for path in NCU_REPORTS])


@cache
def _expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((NCU_REPORTS[0].parent / "expected.json").read_text())
    return found


@cache
def _tables(path: Path) -> Tables:
    return read(path)


def test_every_report_is_written_down() -> None:
    assert len(NCU_REPORTS) == 14 and {path.name for path in NCU_REPORTS} <= _expected().keys()


@each_report
def test_launches_are_those_written_down(path: Path) -> None:
    tables, expected = _tables(path), _expected()[path.name]
    assert len(tables["kernels"]) == len(expected["launches"])
    for kernel, launch in zip(tables["kernels"], expected["launches"], strict=True):
        assert kernel["name"] == (launch["demangled"] or kernel["mangled_name"] or launch["name"])
        assert launch["name"] in kernel["name"]
        assert [kernel[f"grid_{axis}"] for axis in "xyz"] == launch["grid_blocks"]
        assert [kernel[f"block_{axis}"] for axis in "xyz"] == launch["block"]
        assert (kernel["context"], kernel["stream"]) == (launch["context"], launch["stream"])
        assert tables["processes"][kernel["process_index"]]["pid"] == launch["pid"]
        assert kernel["duration_ns"] == launch["duration_ns"] == kernel["metrics"]["gpu__time_duration.sum"]
        assert {name: kernel["metrics"][name] for name in launch["metrics"]} == launch["metrics"]
        assert kernel["passes"] == kernel["metrics"]["profiler__replayer_passes"] and kernel["section_set"]


@each_report
def test_the_gpu_and_the_version_are_known(path: Path) -> None:
    tables, expected = _tables(path), _expected()[path.name]
    assert [device["name"] for device in tables["devices"]] == expected["gpu"]
    for device in tables["devices"]:
        assert device["sm_count"] and device["compute_capability"] and device["device"] is not None
    (profile,) = tables["profiles"]
    assert (profile["tool_version"], profile["truncated"], profile["format"]) == (expected["ncu"], False, "ncu report")


@each_report
def test_every_counter_is_that_of_another_decoder(path: Path) -> None:
    launches, whole = fuzz.expected(path.read_bytes())
    assert whole and all(launches.values())
    for number, kernel in enumerate(_tables(path)["kernels"]):
        decoded = launches[number]
        assert decoded and kernel["metrics"] == dict(list(decoded[1]))


@each_report
def test_every_metric_is_a_number_a_text_or_nothing(path: Path) -> None:
    tables = _tables(path)
    entries = sum(launch["metric_entries"] for launch in _expected()[path.name]["launches"])
    absent = codes(tables).get("metric_not_available", 0)
    assert entries == sum(len(kernel["metrics"]) for kernel in tables["kernels"]) + len(tables["metric_texts"]) + absent


@each_report
def test_nothing_warns_of_a_whole_report(path: Path) -> None:
    tables = _tables(path)
    assert not [row for row in tables["diagnostics"] if row["severity"] != "info"]
    for kernel in tables["kernels"]:
        counters = kernel["metrics"]
        assert counters["launch__block_size"] == kernel["block_x"] * kernel["block_y"] * kernel["block_z"]
        assert counters["launch__grid_size"] == kernel["grid_x"] * kernel["grid_y"] * kernel["grid_z"]


@each_report
def test_pages_printed_of_a_report_agree_with_it(path: Path, tmp_path: Path) -> None:
    tables = _tables(path)
    (process,) = tables["processes"]
    page = save(tmp_path, printed(tables["kernels"], process["pid"]), "page.csv")
    assert ncu.probe(page).identity <= ncu.probe(path).identity and ncu.mergeable([path, page])
    both = read(path, page)
    assert both["kernels"] == tables["kernels"]
    assert codes(both)["pages_beside_report"] == len(tables["kernels"])


@each_report
def test_nvidias_own_reader_says_the_same(path: Path) -> None:
    oracle = pytest.importorskip("ncu_report")
    actions = [range_.action_by_idx(at) for range_ in oracle.load_report(str(path)) for at in range(range_.num_actions())]
    kernels = _tables(path)["kernels"]
    assert len(actions) == len(kernels)
    for action, kernel in zip(actions, kernels, strict=True):
        assert action.name(action.NameBase_FUNCTION) in kernel["name"]
        theirs = {name: action.metric_by_name(name) for name in action.metric_names()}
        values = {name: metric.value() for name, metric in theirs.items() if metric.has_value()}
        assert kernel["metrics"] == {name: value for name, value in values.items() if not isinstance(value, str)}


def test_mutated_reports_end_in_rows_or_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the campaign (make fuzz) does with small reports of the writer's own."""
    bases = {path.stem: path.read_bytes() for path in NCU_REPORTS if path.stat().st_size < 100_000}
    monkeypatch.setattr(fuzz, "bases", lambda: bases)
    seen = [verdict(fuzz, mutation(fuzz, seed), tmp_path) for seed in range(300)]
    assert {kind for kind, _ in seen} == {"ok", "refused"}, [one for one in seen if one[0] not in ("ok", "refused")][:3]


def test_cut_reports_give_the_launches_before_the_cut(tmp_path: Path) -> None:
    dice, path, refused = random.Random(21), tmp_path / "cut.ncu-rep", 0
    for _ in range(200):
        whole = dice.choice(NCU_REPORTS)
        data = whole.read_bytes()
        path.write_bytes(data[: dice.randrange(4, len(data))])
        try:
            found = read(path)["kernels"]
        except ReadError as error:
            assert error.code == "truncated"
            refused += 1
            continue
        expected = _tables(whole)["kernels"][: len(found)]
        assert [(one["name"], one["grid_x"], one["metrics"]) for one in found] == [
            (one["name"], one["grid_x"], one["metrics"]) for one in expected]
    assert 0 < refused < 200
