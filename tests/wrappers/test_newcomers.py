"""What a newcomer does to the wrappers on a cluster: typing errors, full disks, wrappers in wrappers."""

from __future__ import annotations

import pytest

from tests.wrappers.stage import WRAPPERS, Stage, leftovers

FULL = 'mkdir "$TMPDIR"/nsl*/exit "$TMPDIR"/nsl*/tool; exit 5'   # as a full TMPDIR has it: the code cannot be kept


@pytest.mark.parametrize("tool", ["nsys", "ncu", "plain"])
def test_the_exit_code_survives_a_full_disk_for_temporary_files(stage: Stage, tool: str) -> None:
    done = stage.run(f"{tool}_wrapper.sh", "--run-dir", "r", "sh", "-c", FULL, STUB_NSYS_CODE="5", STUB_NCU_CODE="5")
    assert done.returncode == 5, done.stderr
    assert stage.sidecar(f"r/{tool}/rank0000.run.json")["exit_code"] == 5 and leftovers(stage) == []


@pytest.mark.parametrize("command", ["no-such-program", "./train.py", "/tmp"])
@pytest.mark.parametrize("tool", ["nsys", "ncu", "plain"])
def test_a_command_that_cannot_run_leaves_nothing_in_the_way(stage: Stage, tool: str, command: str) -> None:
    (stage.path / "train.py").write_text("")   # not executable
    done = stage.run(f"{tool}_wrapper.sh", "--run-dir", "r", command)
    assert done.returncode == 127 and f"{command} cannot be run" in done.stderr and "Nothing was started" in done.stderr
    assert not (stage.path / "r").exists()
    assert stage.run(f"{tool}_wrapper.sh", "--run-dir", "r", "true").returncode == 0


@pytest.mark.parametrize(("outer", "inner", "code"), [
    ("nsys", "ncu", 2), ("ncu", "nsys", 2), ("nsys", "nsys", 2), ("plain", "nsys", 0), ("nsys", "plain", 0)])
def test_two_profilers_at_once_are_refused(stage: Stage, outer: str, inner: str, code: int) -> None:
    inside = [str(WRAPPERS / f"{inner}_wrapper.sh"), "--run-dir", "inner", "true"]
    done = stage.run(f"{outer}_wrapper.sh", "--run-dir", "outer", *inside)
    assert done.returncode == code and (f"under the {outer} wrapper already" in done.stderr) == (code == 2)


@pytest.mark.parametrize("folder", ["a b", "it's \"quoted\" $HOME; *", "日本é", "d" * 200 + "/" + "e" * 200, "back\\slash", "-x"])
def test_a_run_directory_may_have_any_name(stage: Stage, folder: str) -> None:
    done = stage.run("nsys_wrapper.sh", f"--run-dir={folder}", "sh", "-c", '[ "$1" = "x  y" ]', "-", "x  y")
    assert done.returncode == 0, done.stderr
    assert stage.sidecar(f"{folder}/nsys/rank0000.run.json")["run"] == folder.split("/")[-1]


def test_a_relative_run_directory_is_that_of_the_start(stage: Stage) -> None:
    (stage.path / "elsewhere").mkdir()
    done = stage.run("plain_wrapper.sh", "--run-dir", "r", "sh", "-c", 'cd elsewhere; echo "$NSIGHTLENS_RUN_DIR"')
    assert done.stdout.strip() == str(stage.path / "r") and (stage.path / "r/plain/rank0000.run.json").exists()
