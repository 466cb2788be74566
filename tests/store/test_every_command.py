"""Every command, by the examples of its help, leaves what is not ours as it is, whether the store is one or somebody's folder."""

from __future__ import annotations

import random
import re
import shlex
import shutil
from pathlib import Path

import pytest

from nsightlens.cli import COMMANDS
from nsightlens.pipeline.ingest import ingest
from tests.captures import kineto
from tests.cli.command_line import run
from tests.cli.test_examples import EXAMPLES
from tests.conftest import Shared
from tests.store.test_store_folder import confirm_only_ours, plant, tree

STORE = "nsightlens-store"
ELSEWHERE = ("s3://", "--executor", "my_views")
"""What tells examples that ask other machines, or for files that are made in an example before."""
REPLACED = re.compile(r"(?:-o|--output|--points)[ =](\S+)")


def lines(name: str) -> list[list[str]]:
    """Return the arguments of each example of a command that this machine can run, so far as it is ours."""
    found = [line for line in EXAMPLES[name] if line.startswith("nsightlens ") and not any(word in line for word in ELSEWHERE)]
    return [shlex.split(re.split(r" (?:>>|>|\||2>) |;", line)[0])[1:] for line in found]


def _small(folder: Path) -> None:
    for name in ("base", "fused"):
        for rank in range(2):
            kineto(folder / "runs" / name / f"{rank}.json", [(f"{name}_gemm{i}", 1e3 + 20 * i, 9.0) for i in range(9)], rank=rank)
    ingest([folder / "runs" / "base", folder / "runs" / "fused"], folder / STORE, jobs=1)


@pytest.fixture
def place(shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the examples have it, as the current one, with captures and a small store."""
    folder = tmp_path / "place"
    shutil.copytree(shared("every-command", _small), folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NSIGHTLENS_STORE", raising=False)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    return folder


def test_every_command_is_met() -> None:
    """Those of the table, and no other list: a new command comes with examples."""
    assert [name for name in COMMANDS if not lines(name)] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_folder_of_somebody_stays_as_it_is(place: Path, name: str) -> None:
    chance = random.Random(name)
    shutil.rmtree(place / STORE)
    (place / STORE).mkdir()
    plant(chance, place / STORE, place.parent / "beside")
    (place / STORE / "notes.txt").touch()
    before = tree(place.parent)
    for words in lines(name):
        done = run(*words)
        assert "Traceback" not in done.stderr, done.stderr
        _confirm_stays(place, before, words)
        assert tree(place / STORE).keys() == {path.removeprefix(f"place/{STORE}/") for path in before
                                              if path.startswith(f"place/{STORE}/")}, words


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in ("cache", "remove", "plot") else pytest.mark.long)
                                  for name in EXAMPLES])
def test_what_lies_in_and_beside_a_store_stays_as_it_is(place: Path, name: str) -> None:
    chance = random.Random(f"store {name}")
    ours = tree(place / STORE)
    theirs = plant(chance, place / STORE, place.parent / "beside")
    before = {path: entry for path, entry in tree(place.parent).items() if path.removeprefix(f"place/{STORE}/") not in ours}
    for words in lines(name):
        done = run(*words)
        assert "Traceback" not in done.stderr, done.stderr
        _confirm_stays(place, before, words)
        confirm_only_ours(place / STORE, theirs)


def _confirm_stays(place: Path, before: dict[str, tuple[int, str | bytes]], words: list[str]) -> None:
    """Raise AssertionError unless all is there as before, but for the file that a command was told to write."""
    named = {f"place/{path}" for path in REPLACED.findall(" ".join(words))}
    after = tree(place.parent)
    assert {path: after.get(path) for path in before if path not in named} == {
        path: entry for path, entry in before.items() if path not in named}, words
    assert [path for path in after.keys() - before.keys() if path.startswith("beside/")] == [], words
