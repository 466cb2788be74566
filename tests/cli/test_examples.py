"""Every command's help has examples, and they run: on two runs, base and fused, with their captures in runs/."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import nsightlens as nl
from nsightlens.cli import COMMANDS, root
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.places import ROOT

FIXTURE = ROOT / "fixtures" / "simulated_resnet18_ddp"
NEEDS_MORE = ("s3://", "--executor", "my_views", "/opt/nvidia", "ncu-plan", "parts.csv", "nsightlens hta base\n", "; bash",
              "before.json.gz", "g1 g2")
"""What tells examples that need a URL, a cluster, a vendor's tool, HTA, or files that no example here makes."""


def _parts(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command, and those within it."""
    yield name, command
    for part, one in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _parts(one, f"{name} {part}")


def _examples() -> dict[str, list[str]]:
    """Return {command: the lines of its help that are examples, without the remarks beside them}; root is ''."""
    commands: list[tuple[str, click.Command]] = [("", root)]
    for name in COMMANDS:
        commands += _parts(importlib.import_module(f"nsightlens.cli.{name.replace('-', '_')}").command, name)
    found = {}
    for path, command in commands:
        blocks = [block.partition("\n\n")[0] for block in (command.help or "").split("\b\n")[1:]]
        found[path] = [line.strip().partition("  ")[0] for block in blocks for line in block.splitlines() if line.strip()]
    return found


EXAMPLES = _examples()


def _runnable(line: str) -> bool:
    return line.startswith("nsightlens ") and not any(word in f"{line}\n" for word in NEEDS_MORE)


def _two_runs(folder: Path) -> None:
    for name in ("base", "fused"):
        nl.ingest(FIXTURE, store=folder, run=name, jobs=1).close()


def _baselines(folder: Path) -> None:
    store = folder / "store"
    nl.ingest(FIXTURE, store=store, run="base", jobs=1).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSIGHTLENS_BASELINES", str(folder / "baselines"))
        assert run("baseline", "set", "main", "base", "--store", store).returncode == 0
    shutil.copy(folder / "baselines" / "main.json", folder / "baselines" / "nightly-2026-11-27.json")


@pytest.fixture
def place(shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the examples have it, as the current one."""
    shutil.copytree(shared("base-and-fused", _two_runs), tmp_path / "nsightlens-store")
    shutil.copytree(shared("example-baselines", _baselines) / "baselines", tmp_path / "nsightlens-baselines")
    (tmp_path / "runs").mkdir()
    for name in ("base", "fused"):
        (tmp_path / "runs" / name).symlink_to(FIXTURE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NSIGHTLENS_STORE", raising=False)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    return tmp_path


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_has_an_example_that_can_run(name: str) -> None:
    lines = EXAMPLES[name]
    assert any(_runnable(line) and line.startswith(f"nsightlens {name}".rstrip()) for line in lines), \
        f"nsightlens/cli: {name}: {lines}"


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(place: Path, name: str) -> None:
    for line in filter(_runnable, EXAMPLES[name]):
        words = [name for word in shlex.split(re.split(r" (?:>>|>|\||2>) ", line)[0])
                 for name in (sorted(map(str, place.glob(word))) if word.endswith("*.json") else [word])]
        done = run(*words[1:])
        assert done.returncode == 0, f"$ {line}\n{done.stdout[-500:]}{done.stderr}"
        if "-o" in words or "--output" in words:
            written = words[words.index("-o" if "-o" in words else "--output") + 1]
            assert (place / written).stat().st_size > 0
