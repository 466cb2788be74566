"""The matrix itself: its stand-ins refuse what the vendor does not document, and it finds what is wrong."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.launchers import matrix, stand_ins
from tests.launchers.matrix import Case, Launcher, Outcome, play

ALONE = Launcher("none", lambda _: [], "", ranks=1)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    stand_ins.install(folder)
    return folder


@pytest.mark.parametrize("words", [
    ["nsys", "profile", "--trace=cuda,nvtx", "--output=r", "true"], ["nsys", "profile", "--help"],
    ["ncu", "--set", "full", "--launch-count", "5", "--export", "r", "--log-file", "l", "true"],
])
def test_the_stand_ins_take_what_is_documented(tools: Path, tmp_path: Path, words: list[str]) -> None:
    assert subprocess.run([str(tools / words[0]), *words[1:]], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.parametrize("words", [
    ["nsys", "profile", "--trace=cuda,everything", "--output=r", "true"], ["nsys", "profile", "--trace", "cuda", "true"],
    ["nsys", "profile", "--colour=blue", "true"], ["nsys", "profile", "--output=100%", "true"], ["nsys", "profile", "--output=r"],
    ["ncu", "--set", "everything", "true"], ["ncu", "--launch-count", "0", "true"], ["ncu", "--nonsense", "true"],
])
def test_the_stand_ins_refuse_what_is_not(tools: Path, tmp_path: Path, words: list[str]) -> None:
    assert subprocess.run([str(tools / words[0]), *words[1:]], cwd=tmp_path, check=False).returncode == 1


@pytest.mark.parametrize("tool", ["plain", "nsys", "ncu"])
@pytest.mark.parametrize(("how", "number"), [("7", None), ("wait", signal.SIGTERM)])
def test_a_rank_alone_is_right(tools: Path, tmp_path: Path, tool: str, how: str, number: signal.Signals | None) -> None:
    assert str(play(Case(ALONE, tool, how, number), tmp_path / "case", tools)) == "right"


def test_what_is_left_behind_is_found(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "LEFT_S", 0.1)
    leaves = Launcher("leaves", lambda _: ["bash", "-c", 'sleep 60 & exec "$@"', "-"], "", ranks=1)
    assert play(Case(leaves, "plain"), tmp_path / "case", tools).wrong == ["1 processes left"]


def test_a_launcher_that_starts_nothing_is_wrong(tools: Path, tmp_path: Path) -> None:
    nothing = Launcher("nothing", lambda _: ["true"], "", ranks=1)
    assert "**a rank never started" in str(play(Case(nothing, "nsys"), tmp_path / "case", tools))


@pytest.mark.parametrize(("codes", "whole", "said"), [
    ([(55, 55), (55, 55)], 2, "right"), ([(55, 55), (55, None)], 1, "1 of 2 codes, 1 captures"), ([(None, None)], 1, "killed")])
def test_an_outcome_in_words(codes: list[tuple[int | None, int | None]], whole: int, said: str) -> None:
    assert str(Outcome(codes, whole)) == said
