"""A command of ours as a value: on a command line and in Python it says the same."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import click
import pytest

from nsightlens.cli import root
from nsightlens.terminal.command import Command
from nsightlens.terminal.quoting import Verbatim
from nsightlens.terminal.text import joined, written
from tests.terminal.pasted import NAMES, every_name, every_shell, paste


def _called(text: str) -> tuple[str, list[object], dict[str, object]]:
    """Return the function, arguments and keywords of a call, as Python reads them."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    keywords: dict[str, object] = {}
    for keyword in call.keywords:
        value = ast.literal_eval(keyword.value)
        keywords |= value if keyword.arg is None else {keyword.arg: value}
    return ast.unparse(call.func), [one.id if isinstance(one, ast.Name) else ast.literal_eval(one) for one in call.args], keywords


@every_shell
def test_every_name_arrives_in_every_place(tmp_path: Path, shell: str) -> None:
    lines, meant = [], []
    for name in NAMES:
        lines.append(Command("show", ("headroom", f"base={name}", ("--run", name))).shell(Path(name)))
        option = ["--run", name] if not name.startswith("-") else [f"--run={name}"]
        place = name if (name[0].isalnum() or name[0] in "_./") and ":" not in name else f"./{name}"
        meant.append(["nsightlens", "show", "headroom", f"base={name}", *option, "--store", place])
    assert paste("\n".join(lines), tmp_path, shell) == meant


def test_our_command_line_understands_every_name(tmp_path: Path) -> None:
    """What a shell gives nsightlens is parsed as it was meant: names that begin with - are no options."""
    ours: Any = root.get_command(click.Context(root), "compare")
    runs, show = ours.get_command(click.Context(ours), "runs"), root.get_command(click.Context(root), "show")
    assert show is not None
    lines = [Command("compare runs", (name, "other", ("--by", "op"))).shell() for name in NAMES]
    given = [runs.make_context("runs", words).params for _, _, _, *words in paste("\n".join(lines), tmp_path, "sh")]
    assert [(one["runs"], one["by"]) for one in given] == [((name, "other"), "op") for name in NAMES]
    lines = [Command("show", ("busy_time", ("--run", name))).shell() for name in NAMES]
    given = [show.make_context("show", words).params for _, _, *words in paste("\n".join(lines), tmp_path, "sh")]
    assert [one["only_run"] for one in given] == [(name,) for name in NAMES]


@every_name
def test_a_call_of_python_holds_every_name(name: str) -> None:
    asked = Command("show", ("memory_op_summary", f"base={name}", "alike=true", "top=5", ("--run", name), ("--rank", "3")))
    assert _called(asked.python()) == ("store.view", ["memory_op_summary"],
                                      {"base": name, "alike": True, "top": 5, "only_run": name, "only_rank": 3})
    assert _called(Command("compare runs", (name, "b")).python()) == ("nl.compare", ["store", name, "b"], {})
    assert _called(Command("ingest", (Path(name), ("--run", name))).python()) == ("nl.ingest", [str(Path(name))], {"run": name})
    assert _called(Command("sql", (name,)).python()) == ("store.sql", [name], {})
    key, _, value = f"{name}=true".partition("=")
    expected = {key: True if value == "true" else value}
    assert _called(Command("show", ("x", f"{key}={value}")).python()) == ("store.view", ["x"], expected)


def test_several_runs_are_a_list() -> None:
    assert Command("summary", (("--run", "a"), ("--run", "1"))).python() == 'nl.summary(store, run=["a", "1"])'


@every_name
def test_a_table_holds_a_command(name: str) -> None:
    asked = Command("show", ("memory_op_summary", f"base={name}", ("--run", name), ("--sort", f"-{name}"), ("--open",)))
    assert Command.of(asked.fields) == asked


@pytest.mark.parametrize(("command", "call"), [
    (Command("show", ("critical_path", "only_rank=3", ("--sort", "-duration_ns"))),
     'store.view("critical_path", only_rank=3).sort_by([("duration_ns", "descending")])'),
    (Command("show", ("kernel_by_rank", "how=x", ("--rank", "0"))), 'store.view("kernel_by_rank", how="x", only_rank=0)'),
    (Command("compare ranks", (("--run", "base"),)), 'nl.compare(store, ranks=True, run="base")'),
    (Command("compare runs", ("base", "fused")), 'nl.compare(store, "base", "fused")'),
    (Command("roofline", (("--time", "nsys"),)), 'nl.plots.roofline(store.view("true_roofline", time="nsys"))'),
    (Command("plot", ("step_breakdown", ("--output", "steps.png"))),
     'nl.plots.save(nl.plots.step_breakdown(store.view("step_breakdown")), "steps.png")'),
    (Command("sql", ("FROM files",)), 'store.sql("FROM files")'),
    (Command("ingest", ("CAPTURE", ("--run", "NAME"))), 'nl.ingest("CAPTURE", run="NAME")'),
    (Command("remove", (("--run", "base"),)), 'nl.remove(store, run="base")'),
])
def test_the_call_that_does_the_same(command: Command, call: str) -> None:
    assert command.python() == call


@every_name
def test_names_in_a_sentence_are_no_commands(name: str) -> None:
    """A name may read like a command of ours: a renderer writes the commands of a sentence, and nothing else of it."""
    like = f"{name} nsightlens show x --run y"
    text = joined("; ", [(like, Command("show", (name,))), Verbatim(like)])
    assert written(text, lambda command: "?") == f"{like}?; {like}"


@pytest.mark.parametrize("command", ["plan-ncu", "refresh"])
def test_what_has_no_call_stays_a_command(command: str) -> None:
    assert Command(command).python() == f"nsightlens {command}"
