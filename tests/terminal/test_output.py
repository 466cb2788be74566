"""Whatever a name holds, it does not steer a terminal: in no command, on neither stream; files and pipes have it exactly."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.cli import messages
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable
from tests.captures import kineto
from tests.cli.command_line import Done, run
from tests.cli.test_colour import in_terminal

NAME = "k\x1b]0;owned\x07\x1b[31mred\x9b2J\x7f\u202e\x08\x00\r\u2028"
RUN = NAME.replace("\x00", "").replace("\r", "") + "\nrm -rf"
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r(?=\x1b|$)", re.MULTILINE)
"""Colours, and what draws the bar of a long command."""
COMMANDS = [
    ["plan-ncu"], ["plan-ncu", "--lines"], ["plan-ncu", "--", "python", NAME[:-4]], ["summary"],
    ["show", "kernel_summary"], ["show", "kernel_summary", "--wide"], ["show", "kernel_summary", "-f", "csv"],
    ["show", "kernel_summary", "-f", "json"],
    ["show", "kernel_summary", "-f", "csv", "--run", RUN], ["sql", "SELECT name, run FROM kernels"], ["show", RUN],
    ["show", "kernel_summary", "--run", f"{RUN} x"], ["show", "kernel_summary", f"only_name={RUN}"],
    ["compare", "runs", RUN, "x"],
    ["compare", "ranks"], ["sql", f"SELECT '{RUN}' FROM nothing"], ["sql", f"SELECT '{RUN}'"], ["remove", "--run", f"{RUN} x"],
    ["roofline", "--kernel", RUN],
    ["views", RUN], ["help", RUN], [RUN], ["show", f"--{RUN}"],
    ["--debug", "show", RUN], ["--verbose", "show", "busy_time", "--run", RUN], ["plot", RUN, "-o", "x.png"],
    ["show", "busy_time", "--limit", RUN], ["ingest", f"no {RUN}"], ["export", "perfetto", "-o", f"no {RUN}/x.json.gz"],
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in whose captures every name is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    capture = kineto(folder / RUN / f"{RUN}.json", [(NAME, 1000.0, 10.0), (f"{NAME} 2", 1020.0, 30.0)], rank=0, host=RUN)
    nl.ingest(capture, folder / "store", run=RUN, jobs=1).close()
    return folder / "store"


def on_terminal(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Done:
    """Run a command whose streams say that they are a terminal."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("COLUMNS", "200")
    return run(*words)


def harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in OURS.sub("", text)) and not re.search(r"\x1b\[31m *red", text)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words))[:40])
def test_no_command_lets_a_name_steer_the_terminal(hostile: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setenv("NSIGHTLENS_STORE", str(hostile))
    done = on_terminal(monkeypatch, *words)
    assert (done.stdout or done.stderr) and harmless(done.stdout) and harmless(done.stderr), ascii(done.stdout + done.stderr)


def test_refused_files_and_what_scan_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / RUN
    folder.mkdir()
    (folder / f"{RUN}.sqlite.xz").write_bytes(b"\xfd7zXZ\x00")
    asked: list[list[str | Path]] = [["scan", folder], ["ingest", folder, "--store", tmp_path / "store", "--quiet"],
                                     ["summary", folder], ["export-reports", folder]]
    for words in asked:
        done = on_terminal(monkeypatch, *words)
        assert harmless(done.stdout) and harmless(done.stderr), ascii(done.stdout + done.stderr)


def test_a_defect_and_a_warning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    messages.begin()
    messages.defect(ValueError, ValueError(RUN), None)
    messages.warn(RUN)
    messages.say(RUN)
    messages.complain(RUN)
    printed = capsys.readouterr().err
    assert harmless(printed) and printed.count(r"\x1b]0;owned\x07") == 4


def test_a_pipe_gets_what_machines_read_exactly(hostile: Path) -> None:
    printed = run("show", "kernel_summary", "-f", "json", "--store", hostile).stdout
    assert {row["run"] for row in json.loads(printed)["rows"]} == {RUN}
    assert RUN in run("sql", "SELECT DISTINCT run FROM kernels", "-f", "csv", "--store", hostile).stdout


def test_no_name_begins_a_line_of_a_message(hostile: Path, tmp_path: Path) -> None:
    """Also in a pipe: names of runs, of folders and files, of a sidecar and of what was asked for."""
    folder, store = tmp_path / RUN, tmp_path / f"s {RUN}"
    capture = kineto(folder / "t.json", [(NAME, 1000.0, 10.0)])
    (folder / "t.run.json").write_text(json.dumps({"run": RUN, "host": RUN, "rank": 0, "problems": [RUN]}))
    (folder / f"{RUN}.sqlite.xz").write_bytes(b"\xfd7zXZ\x00")
    other = kineto(tmp_path / f"other {RUN}" / "t.json", [(NAME, 1000.0, 10.0)])
    asked: list[list[str | Path]] = [
        ["ingest", folder, other.parent, "--store", store], ["show", "kernel_summary", "--run", "no", "--store", store],
        ["compare", "runs", "no", "neither", "--store", store], ["show", "kernel_summary", "--run", "no", "--store", hostile],
        ["compare", "runs", "no", "neither", "--store", hostile], ["show", "kernel_summary", "--run", RUN, "--store", store],
        ["hta", "--store", hostile], ["refresh", "--store", store], ["summary", "--store", f"no {RUN}"], ["show", RUN],
        ["remove", "--run", f"no {RUN}", "--store", hostile], ["ingest", f"no {RUN}"]]
    for words in asked:
        if words[0] == "refresh":
            capture.unlink()
        said = run(*words).stderr
        assert said and not re.search(r"^ *rm -rf", said, re.MULTILINE), (words, said)


def test_styles_are_ours_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    echo("\x1b[31mred\x1b[0m \x1b[2J", styled=True)
    echo("\x1b[31mred\x1b[0m")
    assert capsys.readouterr().out == "\x1b[31mred\x1b[0m \\x1b[2J\n\\x1b[31mred\\x1b[0m\n"


def test_what_has_a_sign_stays() -> None:
    assert printable("µs é 漢 🙂 a b …") == "µs é 漢 🙂 a b …"
    assert printable("\x1b\x00\n\x7f\x9b\xa0\u202e\udcff\u2028\ue000") == r"\x1b\x00\n\x7f\x9b\xa0\u202e\udcff\u2028\ue000"
    assert printable("a\nb\x1b", "\n") == "a\nb\\x1b"


@pytest.mark.long
def test_a_real_terminal(hostile: Path, tmp_path: Path) -> None:
    """The bar of an ingest is drawn by escapes of its own: those of the name are not among them."""
    store = ("--store", str(hostile))
    for words in (("plan-ncu", *store), ("summary", *store), ("show", RUN, *store)):
        printed = in_terminal(*words).replace("\r\n", "\n")
        assert harmless(printed), ascii(printed)
    capture = kineto(tmp_path / RUN / f"{RUN}.json", [(NAME, 1000.0, 10.0)])
    printed = in_terminal("ingest", str(capture), "--store", str(tmp_path / "store"))
    assert "\x1b]0;" not in printed and "\x1b[31mred" not in printed and "\x9b" not in printed and "\u202e" not in printed


def test_names_of_files_steer_neither_lines_of_progress_nor_a_log(tmp_path: Path) -> None:
    """Lines of progress go into a pipe, and from there, through tee or tail -f, to a terminal; a log has a line per message."""
    name = RUN.replace("/", "")
    kineto(tmp_path / "job" / f"{name}.json")
    done = run("--log-file", tmp_path / "log", "ingest", tmp_path / "job", "--store", tmp_path / "store")
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert done.returncode == 0 and f"[1/1] {printable(name)}" in done.stderr
    for text in (done.stderr, log):
        assert all(character.isprintable() or character == "\n" for character in text)
        assert not [line for line in text.splitlines() if line.startswith("rm -rf")]
