"""A figure per recording: warm-up is cut and counted, cycles of a process are one, the workload's own steps come first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.gate import recordings
from nsightlens.gate.check import Asked, Check
from nsightlens.gate.places import checked, read_quietly
from nsightlens.gate.recordings import Recording
from nsightlens.store.comparison import RunPlace
from tests.gate.made import stepped, timed


def check(base: list[Path], candidate: list[Path]) -> Check:
    return checked([str(path) for path in base], [str(path) for path in candidate], None, None, Asked(), read_quietly)


def traced(folder: Path, *sides: list[str]) -> list[list[Recording]]:
    """Return the recordings of each side, of runs below a folder, which are read once."""
    runs = dict.fromkeys(run for side in sides for run in side)
    with nl.ingest([folder / run for run in runs], store=folder / "store", jobs=1) as store:
        return [recordings.traced([RunPlace(store, run, run) for run in side], "kineto", per_step=True) for side in sides]


def test_the_first_step_and_slow_ones_behind_it_are_warm_up(tmp_path: Path) -> None:
    stepped(tmp_path / "a" / "0.json", [900, 500, *[100.0] * 20, 300])
    stepped(tmp_path / "b" / "0.json", [100.0] * 12)
    (one,), (other,) = traced(tmp_path, ["a"], ["b"])
    assert (one.steps, one.dropped, one.trimmed_ns) == (21, 2, 100_000)
    assert one.mean_ns == pytest.approx(100_000 + 200_000 / 21) and one.slow_pct == pytest.approx(100 * 100 / 2300)
    assert (other.steps, other.dropped, other.slow_pct) == (11, 1, 0)


def test_cycles_of_one_process_are_one_recording(tmp_path: Path) -> None:
    cycles = [stepped(tmp_path / f"{number}.json", [100.0] * 6, first=first, at=1000 + 10**7 * number)
              for number, first in enumerate((5, 16))]
    other = stepped(tmp_path / "other.json", [100.0] * 6)
    for side in (cycles, [tmp_path / "both"]):
        if not side[0].exists():
            side[0].mkdir()
            for path in cycles:
                path.rename(side[0] / path.name)
        found = check(side, [other])
        ((one,), _) = found.sides
        assert (one.windows, one.steps) == (2, 10)
        assert any("cycles of one process" in line for line in found.sentences)


def test_starts_of_a_program_are_recordings_of_their_own_and_a_file_counts_once(tmp_path: Path) -> None:
    """Containers give each start the same pid: starts record the same steps."""
    stepped(tmp_path / "one" / "0.json", [100.0] * 6, first=5, host="here")
    stepped(tmp_path / "same steps" / "0.json", [101.0] * 6, at=10**7, first=5, host="here")
    stepped(tmp_path / "other pid" / "0.json", [102.0] * 6, at=10**7, first=16, host="here", pid=78)
    stepped(tmp_path / "elsewhere" / "0.json", [103.0] * 6, at=10**7, first=16, host="elsewhere")
    stepped(tmp_path / "same process" / "0.json", [104.0] * 6, at=10**7, first=16, host="here")
    shutil.copytree(tmp_path / "one", tmp_path / "again")
    others = ["same steps", "other pid", "elsewhere", "same process", "again"]
    found = traced(tmp_path, *(["one", other] for other in others))
    assert [len(side) for side in found] == [2, 2, 2, 1, 1]


def test_the_workloads_own_steps_come_first_and_warm_up_is_not_among_them(tmp_path: Path) -> None:
    places = []
    for name, ns in (("base", 1000), ("candidate", 1100)):
        folder = tmp_path / name
        stepped(folder / "torch" / "rank0.json", [150.0] * 8)
        timed(folder / "plain" / "rank0.steps.json", {"warmup": [9000, 8000], "measure": [ns] * 20}, f"{name}-plain")
        places.append(folder)
    found = check(places[:1], places[1:])
    ((one,), (other,)) = found.sides
    assert (one.tool, one.steps, one.dropped, one.trimmed_ns, other.trimmed_ns) == ("plain", 20, 2, 1000, 1100)
    assert found.sentences[0].startswith("Undecided: A step takes 1.100 instead of 1.000 µs (+10.0 %).")
    assert "tree" in found and any("PyTorch profiler" in line for line in found.sentences), "the cause is that of the traces"


def test_where_the_host_runs_ahead_only_the_mean_of_a_segment_is_true(tmp_path: Path) -> None:
    paths = [timed(tmp_path / f"{name}.steps.json", {"measure": [100] * 10}, name, drain=9000) for name in "ab"]
    ((one,), _) = check(paths[:1], paths[1:]).sides
    assert (one.trimmed_ns, one.mean_ns, one.slow_pct) == (1000, 1000, None)
