"""--views DIR: every command that asks views takes a folder of one's own, and says what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nsightlens.cli import COMMANDS, root
from nsightlens.errors import ViewError

_ASKING = {
    "summary": [], "show": ["kernel_summary"], "sql": ["SELECT 1"], "plot": ["top_kernels", "-o", "{}.svg"],
    "compare ranks": [], "compare runs": ["base", "base"], "plan-ncu": [], "export perfetto": ["-o", "{}.json"],
    "export flamegraph": [],
    "roofline": [],
    "report": ["-o", "{}.html"],
    "mcp": [],
    "check": ["--base", "base", "--candidate", "base"], "history": ["base"], "baseline set": ["main", "base"],
}
# these ask no view of a store
_OTHERS = {"export-reports", "open", "doctor", "wrappers", "ingest", "refresh", "remove", "compact", "cache",
           "baseline list", "baseline rm",
           "scan", "views", "reconcile",
           "hta", "help", "completion"}


def _leaves() -> dict[str, click.Command]:
    context = click.Context(root)
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        inner = command.commands if isinstance(command, click.Group) else {}
        found |= {f"{name} {other}": leaf for other, leaf in inner.items()} or {name: command}
    return found


def test_every_command_that_asks_views_takes_a_folder() -> None:
    leaves = _leaves()
    assert set(_ASKING) == set(leaves) - _OTHERS
    assert all(any("--views" in option.opts for option in leaves[name].params) for name in _ASKING)


@pytest.mark.parametrize("name", _ASKING)
def test_a_mistake_in_the_folder_is_reported_by_every_command(name: str, bundled_store: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.sql").write_text("no header\n")
    arguments = [text.format(tmp_path / "out") for text in _ASKING[name]]
    done = CliRunner().invoke(root, [*name.split(), *arguments, "--store", str(bundled_store), "--views", str(tmp_path)])
    assert isinstance(done.exception, ViewError) and "broken.sql" in str(done.exception)
