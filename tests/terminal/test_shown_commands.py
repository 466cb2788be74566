"""Every command that an output shows, pasted: for each name it does what it says, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.cli import messages, plan_ncu, summary, wrappers
from nsightlens.cli.show import _instead_of_kernel
from nsightlens.discovery import export, unsupported
from nsightlens.doctor import fitness
from nsightlens.errors import OldRulesWarning, no_store, other_schema
from nsightlens.html_report.questions import PageView
from nsightlens.pages import runs_page
from nsightlens.store.filter_values import listed
from nsightlens.terminal.command import Command
from nsightlens.terminal.text import joined, written
from nsightlens.views.run_command import command_of
from tests.captures import kineto
from tests.cli.command_line import run
from tests.terminal.pasted import CANARY, NAMES, SHELLS, between, every_shell, paste

PERFETTO = b"\n\x08" + b"\x01" * 8
XZ, ZIP, PICKLE = b"\xfd7zXZ\x00", b"PK\x03\x04", b"\x80\x04pg_config"
FILES = [name for name in NAMES if name not in ("~",)]
HARD = f"-y $(touch {CANARY}) `touch {CANARY}`;'\"*\\ nsightlens show x --run y --store z!"
"""All of it in one name, for what costs an ingest."""


@pytest.fixture(autouse=True)
def of_no_command() -> None:
    """Forget the --store of the command that another test ran in this process."""
    messages.begin()


def plain(name: str) -> str:
    """Return how a file of this name is given to a program: never as an option."""
    return name if (name[0].isalnum() or name[0] in "_./") and ":" not in name else f"./{name}"


def unpacked(head: bytes) -> Callable[[str], str]:
    """Return what makes of a name the advice for a file with this beginning, as a command."""
    def command(name: str) -> str:
        found = unsupported.recognise(Path(name), head)
        assert found is not None
        if head == XZ:
            return between(written(found.advice), "what is in it: ")
        return between(written(found.advice), {ZIP: "captures: ", PICKLE: "ingest that: "}.get(head, "traceconv: "))

    return command


def globbed(name: str) -> str:
    return re.sub(r"[*?[\\]", r"\\\g<0>", name)


def _line(name: str) -> str:
    row = {"rank": 0, "run": name, "kernel": name, "name_base": "demangled", "launch_skip": 1, "launch_count": 2}
    return plan_ncu._line(1, row, "unxz", name, "full", ("python", name))


CASES: dict[str, tuple[Callable[[str], str], Callable[[str], list[str]]]] = {
    "xz": (unpacked(XZ), lambda name: ["unxz", "-k", plain(name)]),
    "zip": (unpacked(ZIP), lambda name: ["unzip", plain(globbed(name)), "-d", plain(f"{name}.unpacked")]),
    "pickle": (unpacked(PICKLE), lambda name: ["python", "-c", "…", plain(name), plain(f"{name}.json")]),
    "nsys report": (lambda name: between(written(export.advice(export.REPORTS[0], Path(name))), "installed: ",
                                            "   and ingest again"),
                    lambda name: ["nsys", "export", "--type=sqlite", "--force-overwrite=true",
                                  f"--output={Path(name).with_suffix('.sqlite')}", plain(name)]),
    "no store": (lambda name: between(str(no_store(name)), "Make one with: "),
                 lambda name: ["nsightlens", "ingest", "RUN_DIR", *_option("--store", name)]),
    "other schema": (lambda name: between(str(other_schema(Path(name), 3, 4)), "captures first: "),
                     lambda name: ["nsightlens", "refresh", *_option("--store", name)]),
    "old rules": (lambda name: OldRulesWarning(name, 2).what_to_do,
                  lambda name: ["nsightlens", "refresh", *_option("--store", name)]),
    "plan-ncu": (_line, lambda name: [
        "unxz", "--ranks", "0", "--run-dir", f"{plain(name)}/01", "--run-id", name, "--set", "full", "-k", name,
        "--kernel-name-base", "demangled", "--launch-skip", "1", "--launch-count", "2", "--",
        "python", name]),
    "finding": (lambda name: command_of({"run": name, "command": ["show", "idle_causes", "--sort=-x"]}, ["a", name]).shell(),
                lambda name: ["nsightlens", "show", "idle_causes", *_option("--run", name), "--sort=-x"]),
    "differences": (lambda name: runs_page.all_of("op", name, name).shell(),
                    lambda name: ["nsightlens", "show", "run_difference", "by=op", f"base={name}", f"other={name}"]),
    "--kernel": (lambda name: between(str(_instead_of_kernel(name, "kernel_view", ["kernel"])), "by name: "),
                 lambda name: ["nsightlens", "show", "kernel_view", f"only_kernel=*{name}*"]),
    "summary of files": (lambda name: between(written(summary._more((Path(name), Path("b")), set())), "Next: "),
                         lambda name: ["nsightlens", "ingest", plain(name), "b"]),
    "summary of a file": (lambda name: between(written(summary._more((Path(name),), set())), "Next: "),
                          lambda name: ["nsightlens", "report", plain(name), "--open"]),
    "scan": (lambda name: fitness_scan(name), lambda name: ["nsightlens", "scan", plain(name)]),
    "values": (lambda name: f"show {listed([name], name)}", lambda name: ["show", shown(name)]),
}


def _option(option: str, value: str) -> list[str]:
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def shown(name: str) -> str:
    from nsightlens.terminal.printable import printable

    return printable(name)


def fitness_scan(name: str) -> str:
    class File:
        tool, refused, path, root, rank, sidecar = "nsys", True, Path("x"), Path(), (None,), None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsightlens.discovery.files.find", lambda _: [type("Capture", (File,), {"refused": None})()] + [File()] * 9)
        patch.setattr("nsightlens.discovery.mixed_workloads.mixed_runs", lambda _: [])
        patch.setattr(fitness, "_MOST_REFUSED", 0)
        patch.setattr(Path, "exists", lambda _: True)
        return [finding.fix for finding in fitness.capture_findings(Path(name))][-1]


@every_shell
@pytest.mark.parametrize("case", CASES)
def test_it_does_what_it_says(tmp_path: Path, case: str, shell: str) -> None:
    command, meant = CASES[case]
    names = [name for name in FILES if name.strip("./")]
    calls = paste("\n".join(map(command, names)), tmp_path, shell)
    expected = [meant(name) for name in names]
    if case == "pickle":
        calls = [[*words[:2], "…", *words[3:]] for words in calls]
    assert calls == expected


@every_shell
def test_what_unpacks_a_tar_archive(tmp_path: Path, shell: str) -> None:
    """tar takes host:name for a file on another host, unless a / stands before the colon."""
    names = [f"{name}.tar" for name in NAMES]
    head = bytes(257) + b"ustar"
    advice = [written(found.advice) for name in names if (found := unsupported.recognise(Path(name), head))]
    calls = paste("\n".join(text[text.index("mkdir"):] for text in advice), tmp_path, shell)
    assert [words[2] for words in calls if words[0] == "tar"] == [f"./{name}" for name in names]


@pytest.mark.parametrize("name", [name for name in NAMES if "/" not in name], ids=ascii)
def test_a_packed_trace_is_unpacked_and_converted(tmp_path: Path, name: str) -> None:
    found = unsupported._perfetto(Path(f"{name}.gz"), PERFETTO)
    if found is None:
        pytest.skip("no Perfetto trace")
    calls = paste(between(written(found.advice), "traceconv: "), tmp_path, "sh")
    assert calls[0] == ["gunzip", "-k", plain(f"{name}.gz")]
    assert calls[1][:3] == ["traceconv", "json", plain(name)] and len(calls[1]) == 4


@every_shell
def test_what_finds_all_files_of_a_kind_finds_those(tmp_path: Path, shell: str) -> None:
    """Folders and endings, too, are names: the real find gives each file to the program, and no other file."""
    commands, meant = [], []
    for name in NAMES:
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        for ending in (".xz", ".x", f".{name}"):
            (folder / f"a{ending}").touch()
        commands.append(between(written(unsupported.advice_for_all([folder / "a.xz", folder / "b.xz"])),
                                "Run ", "   and ingest again"))
        meant.append(str(folder / "a.xz"))
        report = folder / f"a.{name}"
        commands.append(between(written(export.advice_for_all([report, report])), "installed: ", "   and ingest again"))
        meant.append(str(report))
    assert [words[-1] for words in paste("\n".join(commands), tmp_path, shell)] == meant


def test_the_part_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """The store, its run and its captures have hostile names: the command that the error shows names them all."""
    capture, store = kineto(tmp_path / HARD / "a.json"), tmp_path / re.sub(r"[\\*'\"]", "", HARD)
    nl.ingest(capture, store, run=HARD, jobs=1, materialise=False).close()
    with nl.open(store) as opened:
        part = next((store / "parts" / "kernels").rglob("*.parquet"))
        part.unlink()
        said = opened._broken_part(OSError(f'No files found that match the pattern "{part}"'))
    command = between(written(said or ""), "Make it again: ")
    for shell in SHELLS:
        assert paste(command, tmp_path, shell) == [["nsightlens", "ingest", str(capture), f"--run={HARD}", "--store", str(store)]]


@pytest.mark.parametrize(("words", "before", "behind", "meant"), [
    (["show", "{name}"], "read it with ", ", then nsightlens show top_kernels (nsightlens views lists the views)",
     ["nsightlens", "ingest", "{plain}"]),
    (["--wide", "show", "x", "only_name={name}"], "after the command: ", "",
     ["nsightlens", "show", "x", "only_name={name}", "--wide"]),
    (["help", "{name}"], "the commands and the views (", ")", ["nsightlens", "views", "{name}"]),
    (["show", "busy_time", "--run", "{name}", "--store", "no {name}"], "Make one with: ", "",
     ["nsightlens", "ingest", "RUN_DIR", "--store", "no {name}"]),
])
def test_errors_of_the_command_line(
    bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], before: str, behind: str,
    meant: list[str],
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("NSIGHTLENS_STORE", str(bundled_store))
    for name in (HARD.removeprefix("-y "), f"a\ntouch {CANARY}"):
        (tmp_path / "work" / name).touch()
        printed = run(*(word.format(name=name, plain=plain(name)) for word in words)).stderr
        command = between(printed.removesuffix("\n"), before, behind)
        for shell in SHELLS:
            assert paste(command, tmp_path, shell) == [[word.format(name=name, plain=plain(name)) for word in meant]], printed


def test_hints_name_the_store_that_was_given(bundled_store: Path, tmp_path: Path) -> None:
    store = tmp_path / f"{HARD} 'b"
    store.symlink_to(bundled_store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages._State, "store", str(store))
        text = joined("; ", [(Command("show", ("x",)),), plain_command(HARD), (Command("compare ranks"),)])
        pasted = [part for shell in SHELLS for part in paste(written(text, messages.with_store), tmp_path, shell)]
    assert pasted == [["nsightlens", "show", "x", "--store", str(store)], ["unxz", HARD],
                      ["nsightlens", "compare", "ranks", "--store", str(store)]] * len(SHELLS)


def plain_command(name: str) -> str:
    from nsightlens.terminal.quoting import shell_line

    return shell_line("unxz", name)


@pytest.mark.long
def test_the_commands_of_the_report_and_of_python(tmp_path: Path) -> None:
    capture = kineto(tmp_path / "a.json", [("k", 1000.0, 5000.0), ("k", 20_000.0, 5000.0)])
    with nl.ingest(capture, tmp_path / "store", run=HARD, jobs=1) as store:
        command = PageView("kernel_summary", parameters={"x": HARD}).command(store, [HARD, "b"])
        assert paste(command, tmp_path, "sh") == [
            ["nsightlens", "show", "kernel_summary", f"x={HARD}", f"--run={HARD}", "--run", "b"]]
    nl.ingest(kineto(tmp_path / "c" / "b.json"), tmp_path / "store", run="b", jobs=1).close()
    with nl.open(tmp_path / "store") as store:
        calls = [text for text in nl.findings(store, only_run=HARD)["more"].to_pylist() if text.startswith("store.")]
        assert calls
        for call in calls:
            asked: dict[str, Any] = eval(call.partition(".sort_by")[0], {"store": _Asked})
            assert asked["only_run"] == HARD
        page = nl.summary(store, run=HARD).text
        assert f"touch {CANARY}" in page


class _Asked:
    @staticmethod
    def view(name: str, **parameters: object) -> dict[str, object]:
        return parameters


@every_shell
def test_the_lines_of_wrappers(tmp_path: Path, shell: str) -> None:
    folder = tmp_path / "here" / HARD
    done = run("wrappers", folder)
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert len(lines) == len(wrappers._EXAMPLES) == 3
    found = paste(lines[1], tmp_path, shell)
    assert found[0][:5] == ["torchrun", "--standalone", "--nproc-per-node", "4", str(folder / "torch_profiler.py")]


@every_shell
def test_the_command_that_says_why_torch_does_not_import(tmp_path: Path, shell: str) -> None:
    python = tmp_path / "bin" / HARD
    paste("true", tmp_path, shell, (HARD,))  # writes the program
    finding = fitness.torch_finding(fitness.Machine(python=str(python)))
    assert paste(between(finding.fix, "Run "), tmp_path, shell, (HARD,)) == [[HARD, "-c", "import torch"]]


def test_where_else_a_store_may_be(tmp_path: Path) -> None:
    """The option that an error proposes can be put behind a command as it stands."""
    folder = tmp_path / HARD
    folder.mkdir()
    (folder / "mine").touch()
    done = run("ingest", kineto(tmp_path / "a.json"), "--store", folder)
    option = between(done.stderr.removesuffix("\n"), "is new: ")
    assert paste(f"show {option}", tmp_path, "sh") == [["show", "--store", str(folder / "nsightlens-store")]]
