"""--quiet, --verbose, --log-file, --debug, and hints that repeat --store."""

from __future__ import annotations

import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import click
import pytest

from nsightlens.cli import COMMANDS, messages, root
from nsightlens.terminal.command import Command
from tests.captures import kineto
from tests.cli.command_line import run


def test_quiet_leaves_data_and_errors(bundled_store: Path) -> None:
    empty: list[str | Path] = ["show", "kernel_overruns", "--store", bundled_store, "-f", "csv"]
    loud, quiet = run(*empty), run("--quiet", *empty)
    assert loud.stderr and not quiet.stderr and quiet.stdout == loud.stdout
    assert "did you mean kernel_overruns" in run("--quiet", "show", "kernel_overrun", "--store", bundled_store).stderr


@pytest.mark.parametrize("asked", [["show", "-q", "kernel_overruns"], ["-q", "show", "kernel_overruns", "--quiet"]])
def test_options_of_the_command_line_may_stand_behind_the_command(
    bundled_store: Path, tmp_path: Path, asked: list[str | Path],
) -> None:
    assert not run(*asked, "--store", bundled_store).stderr
    assert "there is no view x" in run("show", "x", "-q", "--store", bundled_store).stderr
    done = run("compare", "ranks", "-v", "--log-file", tmp_path / "log", "--store", bundled_store)
    assert "view straggler" in done.stderr and "view straggler" in (tmp_path / "log").read_text()


def test_a_quiet_ingest_names_what_is_refused(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "a.json")
    (tmp_path / "run" / "b.json").write_text("{")
    done = run("--quiet", "ingest", tmp_path / "run", "--store", tmp_path / "store")
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1 and "b.json" in done.stderr


def test_verbose_says_what_was_read_and_computed(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "a.json")
    asked: list[str | Path] = ["ingest", tmp_path / "run", "--store", tmp_path / "store", "--jobs", "1"]
    said = run("--verbose", "--log-file", tmp_path / "log", *asked).stderr
    assert f"read {tmp_path / 'run' / 'a.json'}: " in said
    assert "1 files found; 1 of them are captures" in said and " ms  done" in said
    shown = run("--verbose", "show", "busy_time", "--store", tmp_path / "store").stderr
    assert "view busy_time : 1 rows in " in shown and "read " not in shown, "an earlier command's log is closed"
    assert "SQL:" not in shown and "a.json: kineto" in (tmp_path / "log").read_text()


def test_debug_says_versions_and_where_an_error_came_from(bundled_store: Path) -> None:
    said = run("--debug", "show", "nothing", "--store", bundled_store).stderr
    assert "Python 3." in said and "duckdb " in said and "Traceback" in said and "there is no view nothing" in said
    assert "Traceback" not in run("show", "nothing", "--store", bundled_store).stderr


def test_no_secret_reaches_the_log(bundled_store: Path, tmp_path: Path) -> None:
    run("--log-file", tmp_path / "log", "sql", "SELECT 'https://me:hunter2@host/'", "--store", bundled_store)
    assert "SELECT" in (tmp_path / "log").read_text() and "hunter2" not in (tmp_path / "log").read_text()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    done = run("--log-file", tmp_path / "none" / "log", "views")
    assert done.returncode == 1 and "the log cannot be written (No such file or directory)" in done.stderr


@pytest.mark.parametrize(("command", "takes_it"), [("show", True), ("compare ranks", True), ("views", False), ("scan", False)])
def test_commands_repeat_the_store(bundled_store: Path, command: str, takes_it: bool) -> None:
    run("sql", "SELECT 1", "--store", bundled_store)
    option = f" --store {shlex.quote(str(bundled_store))}" if takes_it else ""
    assert messages.with_store(Command(command)) == f"nsightlens {command}{option}"
    messages.begin()
    assert messages.with_store(Command(command)) == f"nsightlens {command}"


def test_the_commands_without_a_store_are_known() -> None:
    """Of every other command --store is an option."""
    context = click.Context(root)
    commands = {name: root.get_command(context, name) for name in COMMANDS}
    there = {name for name, command in commands.items() if command and "--store" in str(
        [option.opts for part in (command, *getattr(command, "commands", {}).values()) for option in part.params])}
    assert set(messages._OF_NO_STORE) == COMMANDS.keys() - there | {"views"}


def test_the_page_repeats_the_store(bundled_store: Path) -> None:
    done = run("summary", "--store", bundled_store)
    assert f"nsightlens show cuda_api_summary --store {bundled_store} " in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("columns", ["48", None])
def test_messages_on_a_terminal_break_between_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None,
) -> None:
    """A path stays whole, also where it is longer than a line; into a pipe a message is one line."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "cut.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 3000)
    run("ingest", tmp_path / "run", "--store", tmp_path / "store")
    command = [sys.executable, "-m", "nsightlens", "summary", "--store", str(tmp_path / "store")]
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
    assert subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, check=False).returncode == 1
    shown = os.read(ours, 8192).decode().replace("\r\n", "\n")
    os.close(ours)
    os.close(theirs)
    assert max(map(len, whole.splitlines())) > 100 and shown.split() == whole.split()
    width = int(columns or 70)
    assert all(len(line) <= width or " " not in line.strip() for line in shown.splitlines()), shown
    assert len(shown.splitlines()) > 3


@pytest.mark.parametrize("width", [44, 80, 130])
@pytest.mark.parametrize("topic", ["start", "filters", "output", "store", "environment", "exit-codes"])
def test_topics_fit_the_width(monkeypatch: pytest.MonkeyPatch, topic: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = run("help", topic).stdout
    examples = [line for line in text.splitlines() if re.match(r"nsightlens [^ ]+ (?!RUN_DIR  )[^ ]", line)]
    others = [line for line in text.splitlines() if line not in examples]
    assert max(map(len, others)) <= max(width, 58)
    monkeypatch.setenv("COLUMNS", "160")
    assert text.split() == run("help", topic).stdout.split()
    if topic == "filters":
        assert max(map(len, others)) > width - 16 and "nsightlens show kernel_by_rank --rank 0-1 --tool nsys" in examples


@pytest.mark.parametrize(("given", "meant"), [
    (("--store", "my store", "show", "top_kernels", "how_many=3"), "show top_kernels how_many=3 --store 'my store'"),
    (("--store", "show", "show", "top_kernels"), "show top_kernels --store show"),
    (("--store=x", "compare", "ranks"), "compare ranks --store=x"),
    (("compare", "--rank", "0,1", "ranks"), "compare ranks --rank 0,1"),
    (("--wide", "show", "top_kernels"), "show top_kernels --wide"),
])
def test_an_option_before_its_command_is_answered_with_the_line_that_works(given: tuple[str, ...], meant: str) -> None:
    done = run(*given)
    option = given[given[0] == "compare"].partition("=")[0]
    assert (done.returncode, done.stderr) == (2, f"nsightlens: {option} comes after the command: nsightlens {meant}\n")


@pytest.mark.parametrize("given", [("--nosuch", "show", "top_kernels"), ("--store", "show")])
def test_an_option_that_the_command_lacks_or_without_a_command_is_no_such_option(given: tuple[str, ...]) -> None:
    done = run(*given)
    assert done.returncode == 2 and f"No such option '{given[0]}'" in done.stderr
