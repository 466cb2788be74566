"""What the shell completes, by the protocol that the printed scripts speak."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete, ZshComplete

from nsightlens.cli import root
from tests.cli.command_line import run

RUN, GEMM = "simulated_resnet18_ddp", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nt"


def completed(words: list[str], begun: str, kind: type[BashComplete] | type[ZshComplete] = ZshComplete) -> list[str]:
    shell = kind(root, {}, "nsightlens", "_NSIGHTLENS_COMPLETE")
    return [item.value for item in shell.get_completions(words, begun)]


@pytest.mark.parametrize(("words", "begun", "expected"), [
    (["show"], "get_temp", ["get_temporal_breakdown"]),
    (["views"], "kernel_sum", ["kernel_summary"]),
    (["show", "top_kernels"], "how", ["how_many="]),
    (["show", "kernel_by_rank"], "only_ra", ["only_rank="]),
    (["show", "kernel_by_rank"], "only_tool=n", ["only_tool=ncu", "only_tool=nsys"]),
    (["show", "kernel_by_rank", "only_tool", "="], "n", ["ncu", "nsys"]),
    (["show", "kernel_by_rank", "only_tool"], "=", ["kineto", "ncu", "nsys"]),
    (["show", "kernel_by_rank", "only_tool", "=", "nsys"], "only_ra", ["only_rank="]),
    (["show", "step_timeline"], "which_step=", [f"which_step={step}" for step in range(5)]),
    (["show", "kernel_by_rank", "--rank"], "", ["0", "1"]),
    (["summary", "--run"], "sim", [RUN]),
    (["compare", "runs"], "", [RUN]),
    (["check", "--base"], "", [RUN]),
    (["roofline", "--kernel"], GEMM[:36], [GEMM]),
    (["show", "no_such_view"], "", []),
    (["help"], "fil", ["filters"]),
])
def test_words_of_the_views_and_of_the_store(
    bundled_store: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], begun: str, expected: list[str],
) -> None:
    monkeypatch.setenv("NSIGHTLENS_STORE", str(bundled_store))
    assert completed(words, begun) == expected


def test_the_store_of_the_line_is_asked(bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert completed(["show", "--store", str(bundled_store), "busy_time", "--run"], "") == [RUN]
    assert completed(["show", "busy_time", "--run"], "") == [], "no store here: nothing, and no error"


def test_plots() -> None:
    assert "step_breakdown" in completed(["plot"], "step") and "kernel_summary" not in completed(["plot"], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_it_reads(shell: str, tmp_path: Path) -> None:
    done = run("completion", shell)
    assert done.returncode == 0 and "_NSIGHTLENS_COMPLETE" in done.stdout
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.parametrize(("asked", "told"), [
    ([], "Topics for nsightlens help: start, filters"), (["start"], "nsightlens ingest RUN_DIR"),
    (["show"], "Usage: nsightlens show"),
    (["compare", "runs"], "Usage: nsightlens compare runs"), (["osrt_sum"], "os_call_summary"),
    (["exit-codes"], "130 interrupted"),
])
def test_help_explains(asked: list[str], told: str) -> None:
    done = run("help", *asked)
    assert done.returncode == 0 and told in done.stdout


@pytest.mark.parametrize(("asked", "told"), [
    (["filter"], "did you mean filters"), (["compare", "rans"], "did you mean ranks"),
    (["xylophone"], "views xylophone"),
    (["show", "more"], "there is no topic nsightlens show more"),
    (["idle"], "did you mean idle_breakdown or idle_by_range or idle_causes"),
])
def test_help_on_what_there_is_not(asked: list[str], told: str) -> None:
    done = run("help", *asked)
    assert done.returncode == 2 and told in done.stderr and len(done.stderr) < 300


def test_every_option_that_names_a_run_completes_it() -> None:
    """But for those of commands that read captures: there the run is named for the first time."""
    context = click.Context(root)
    without = [(name, param.name) for name in root.list_commands(context) if name not in ("scan", "ingest")
               for command in [root.get_command(context, name)] if command is not None
               for one in (command.commands.values() if isinstance(command, click.Group) else [command])
               for param in one.params if "--run" in param.opts and param._custom_shell_complete is None]
    assert not without
