"""The gate end to end on simulated recordings: ok, slower with the kernel's name, undecided, not comparable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import nsightlens as nl
from tests.captures import ncu
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.gate.made import jobs

BATCH_NORM = "batchnorm_bwtr"


def _made(folder: Path) -> None:
    jobs(folder / "runs")
    for name in ("base", "again", "slower", "other"):
        nl.ingest(folder / "runs" / name, store=folder / "store", run=name, jobs=1).close()


@pytest.fixture(scope="module")
def made(shared: Shared) -> Path:
    return shared("gate-jobs", _made)


@pytest.fixture(scope="module")
def store(made: Path) -> Iterator[nl.Store]:
    with nl.open(made / "store") as opened:
        yield opened


@pytest.mark.parametrize(("candidate", "code", "verdict"), [("again", 0, "OK: "), ("slower", 3, "Slower: "),
                                                            ("other", 5, "Not comparable: ")])
def test_five_of_each(made: Path, candidate: str, code: int, verdict: str) -> None:
    done = run("check", "--base", "base", "--candidate", candidate, "--store", made / "store", "-f", "markdown")
    first = done.stdout.splitlines()[0].replace("\\", "")
    assert (done.returncode, first.startswith(f"**{verdict}A step takes ")) == (code, True), done.stdout
    assert (BATCH_NORM in first) is (candidate == "slower")


def test_what_became_faster_is_ok(store: nl.Store) -> None:
    found = nl.check("slower", "base", store=store)
    assert found.verdict == "ok" and BATCH_NORM in found.sentences[0]


def test_the_page_begins_with_the_verdict(made: Path) -> None:
    done = run("check", "--base", "base", "--candidate", "slower", "--store", made / "store")
    assert done.returncode == 3 and done.stdout.startswith("Slower: ") and "\nRecordings" in done.stdout


def test_one_recording_of_each_is_undecided_and_says_the_difference_first(made: Path) -> None:
    captures: list[str | Path] = ["--base", made / "runs" / "base" / "0", "--candidate", made / "runs" / "slower" / "0"]
    done = run("check", *captures, "-f", "markdown")
    first = done.stdout.splitlines()[0]
    assert done.returncode == 4 and first.startswith("**Undecided: A step takes ") and BATCH_NORM in first.replace("\\", "")


@pytest.mark.parametrize(("choice", "code"), [("pass", 0), ("fail", 3)])
def test_what_undecided_means_can_be_said(made: Path, choice: str, code: int) -> None:
    asked = ["--base", "other", "--candidate", "other", "--force", "--on-undecided", choice]
    done = run("check", *asked, "--store", made / "store")
    assert done.returncode == code and done.stdout.startswith("Undecided: ")


def test_what_changed_beyond_chance_is_that_kernel_alone(store: nl.Store) -> None:
    found = nl.check("base", "slower", store=store)
    (row,) = found["kernels"].to_pylist()
    assert row["kernel_key"].startswith(BATCH_NORM) and 55 < row["change_pct"] < 65
    assert (row["base_recordings"], row["candidate_recordings"]) == (5, 5)
    assert not nl.check("base", "again", store=store).kernels
    assert (found.verdict, found.exit_code) == ("slower", 3)


def test_a_limit_of_its_own_is_a_question_of_its_own(made: Path) -> None:
    """The step grows by 8 %: accepted here, not for the family that is named."""
    limits = ["--limit", "20", "--max-regression", "normalization=5%", "--max-regression", "exposed_communication=1"]
    done = run("check", "--base", "base", "--candidate", "slower", *limits, "--store", made / "store", "-f", "json")
    tables = json.loads(done.stdout)["tables"]
    assert done.returncode == 3 == tables["verdict"][0]["exit_code"]
    assert {row["item"]: row["verdict"] for row in tables["questions"]} == {
        "step": "ok", "slow_steps": "ok", "normalization": "slower", "exposed_communication": "ok"}
    assert len(tables["recordings"]) == 10 and tables["tree"] and tables["kernels"]


def test_junit_has_a_case_for_each_question(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "check.xml"
    done = run("check", "--base", "base", "--candidate", "slower", "--store", made / "store", "-o", out)
    suite = ElementTree.parse(out).getroot()
    assert done.returncode == 3 and suite.attrib["failures"] == "1"
    assert [[part.tag for part in case] for case in suite.iter("testcase")] == [["failure"], []]


def test_other_work_is_judged_where_it_is_forced(store: nl.Store) -> None:
    found = nl.check("base", "other", store=store)
    assert [each.what for each in found.obstacles] == ["work"] and found.verdict == "not comparable"
    assert nl.check("base", "other", store=store, force=True).verdict in ("ok", "slower"), "one against five decides"


def test_looks_are_stricter_each_time(store: nl.Store) -> None:
    """The first look has half of the level, the second a quarter: the interval grows."""
    widths = [row["high"] - row["low"] for look in (None, 1, 2)
              for row in nl.check("base", "again", store=store, look=look)["questions"].to_pylist() if row["item"] == "step"]
    assert widths == sorted(widths) and len(set(widths)) == 3


@pytest.mark.parametrize(("asked", "told"), [
    (["--base", "base"], "name the candidate"), (["--base", "base", "--candidate", "nowhere"], "nowhere: no such file"),
    (["--base", "base", "--candidate", "again", "--max-regression", "gem=5%"], "gem: neither a family"),
    (["--base", "base", "--candidate", "again", "--max-regression", "gemm"], "ITEM=5%"),
    (["--base", "base", "--candidate", "again", "--max-regression", "gemm=nan"], "a limit is"),
    (["--base", "base", "--candidate", "again", "--limit", "-1"], "a limit is"),
    (["--base", "base", "--candidate", "again", "--look", "0"], "look is 1"),
])
def test_what_is_asked_wrongly_is_a_usage_error(made: Path, asked: list[str], told: str) -> None:
    done = run("check", *asked, "--store", made / "store")
    assert done.returncode == 2 and told in done.stderr


def test_a_run_that_has_no_times_is_not_left_out_without_a_word(made: Path, tmp_path: Path) -> None:
    ncu(tmp_path / "counters" / "ncu.csv", {"gpu__time_duration.sum": ("ns", "100")})
    sides: list[str | Path] = ["--base", made / "runs" / "base" / "0", "--candidate", made / "runs" / "slower" / "0"]
    done = run("check", *sides, "--candidate", tmp_path / "counters")
    assert done.returncode == 1 and "counters: no GPU work" in done.stderr


def test_an_unknown_extension_names_those_that_there_are(made: Path, tmp_path: Path) -> None:
    done = run("check", "--base", "base", "--candidate", "again", "--store", made / "store", "-o", tmp_path / "x.bmp")
    assert done.returncode == 2 and ".txt, .json, .md, .xml" in done.stderr


