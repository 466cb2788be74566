"""nl.recording without torch: what it loads, what it refuses, whose functions it has. With torch: tests/workloads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import nsl_annotate
import pytest

import nsightlens as nl
from nsightlens.recording.wrappers import launching, profiler, source
from tests.places import ROOT


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)


def test_ranges_are_those_of_the_wrappers() -> None:
    assert nl.recording.annotate is nsl_annotate.annotate and nl.recording.step_range is nsl_annotate.step_range
    assert set(nl.recording.__all__) == set(dir(nl.recording))
    with pytest.raises(AttributeError, match="no attribute 'anotate'"):
        _ = nl.recording.anotate


def test_it_comes_from_the_wrappers_that_are_installed_and_leaves_the_module_path_alone(tmp_path: Path) -> None:
    program = ("import sys; before = list(sys.path); import nsightlens as nl; nl.recording.annotate; "
               "assert sys.path == before; print(sys.modules['torch_profiler'].__file__); "
               "print(*{'torch', 'numpy', 'pyarrow', 'duckdb'} & set(sys.modules))")
    env = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(source() / "torch_profiler.py"), ""]


@pytest.mark.parametrize(("option", "hint"), [("activ", "did you mean active"), ("steps_from", "its options are run_id"),
                                              ("zzz", "its options are run_id")])
def test_unknown_options_are_refused_with_the_choices(tmp_path: Path, option: str, hint: str) -> None:
    options: dict[str, Any] = {option: 3}
    with pytest.raises(nl.UsageError, match=hint), nl.recording.torch_profile(tmp_path, **options):
        pass


@pytest.mark.usefixtures("no_torch")
def test_without_torch_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(nl.NsightlensError, match="pip install torch"), nl.recording.torch_profile(tmp_path):
        pass
    assert not list(tmp_path.rglob("*.pt.trace*"))


@pytest.mark.parametrize(("variables", "ranks", "says"), [
    ({"RANK": "1"}, "all", "environment is only partly set"), ({}, "first", "^ranks first: give all, numbers"),
])
def test_what_the_wrappers_refuse_is_an_error_and_no_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], ranks: str, says: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(nl.UsageError, match=says), nl.recording.torch_profile(tmp_path, ranks=ranks):
        pass


def test_a_rank_that_is_not_chosen_runs_its_block_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_torch: None,
) -> None:
    for name, value in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2"), ("TORCHELASTIC_RUN_ID", "x")):
        monkeypatch.setenv(name, value)
    with nl.recording.torch_profile(tmp_path, ranks="0", active=1) as recording:
        recording.step()
    assert (recording.run_dir, recording.store) == (tmp_path, None)
    assert not list(tmp_path.iterdir())


def test_one_recording_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler(), "_active", object())
    with pytest.raises(nl.UsageError, match="end it before the next begins"), nl.recording.torch_profile(tmp_path):
        pass


def test_refusals_still_end_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    refused = launching().refused("no ", launching().Option("--run-dir"), code=1)
    assert isinstance(refused, SystemExit) and (refused.code, vars(refused)["reason"]) == (1, ("no ", "--run-dir"))
    assert capsys.readouterr().err == "nsightlens: error: no --run-dir\n"


def test_only_options_are_called_as_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_torch: None) -> None:
    def start(_: object) -> NoReturn:
        raise launching().refused(f"{tmp_path}--of-before: choose another ", launching().Option("--run-dir"), code=1)

    monkeypatch.setattr(profiler().Profiling, "start", start)
    with pytest.raises(nl.NsightlensError) as caught, nl.recording.torch_profile(tmp_path):
        pass
    assert str(caught.value) == f"{tmp_path}--of-before: choose another run_dir"
