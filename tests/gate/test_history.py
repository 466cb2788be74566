"""The history of runs: in the order of their times, with where their level changed, from baselines, stores and captures."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nsightlens.errors import NsightlensError, UsageError
from nsightlens.gate import baselines
from nsightlens.gate.history import History, item_history
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.gate.made import timed
from tests.gate.test_baselines import ONE

NOISE = (0.0, 0.4, -0.3, 0.1, -0.5, 0.2)


def made(values: Sequence[float], recordings: int = 1, **others: object) -> list[tuple[str, baselines.Saved]]:
    """Return runs of so many ns a step, a day apart."""
    return [(f"day{day}", baselines.Saved({"kineto": [replace(
        ONE, number=n, trimmed_ns=ns, commit=f"c{day}", begun_ns=(day + 1) * 86_400 * 10**9 + n, **others)  # type: ignore[arg-type]
        for n in range(recordings)]}, {})) for day, ns in enumerate(values)]


def noisy(*levels: float) -> list[float]:
    return [level * (1 + NOISE[place % len(NOISE)] / 100) for place, level in enumerate(levels)]


def test_a_change_is_named_with_its_run_and_commit() -> None:
    found = item_history(made(noisy(*[1e6] * 8, *[1.05e6] * 6)), "step")
    (change,) = found["changes"].to_pylist()
    assert (change["run"], change["commit"], change["base_runs"], change["candidate_runs"]) == ("day8", "c8", 8, 6)
    assert change["change"] == pytest.approx(5, abs=0.3) and change["base"] == pytest.approx(1e6, rel=3e-3)
    assert "day8" in found.sentences[0] and "c8" in found.sentences[0]
    rows = found["runs"].to_pylist()
    assert [row["level"] for row in rows] == [0] * 8 + [1] * 6 and [row["run"] for row in rows if row["has_changed"]] == ["day8"]


def test_runs_stand_in_the_order_of_their_times_if_all_have_one() -> None:
    sides = made(noisy(*[1e6] * 4))
    assert [point.run for point in item_history(sides[::-1], "step").points] == ["day0", "day1", "day2", "day3"]
    undated = sides[::-1]
    name, saved = undated[0]
    undated[0] = name, baselines.Saved({"kineto": [replace(saved.best[0], begun_ns=None)]}, {})
    found = item_history(undated, "step")
    assert [point.run for point in found.points] == ["day3", "day2", "day1", "day0"] and not found.is_dated


def test_shares_change_in_points_and_a_run_without_the_figure_is_left_out() -> None:
    sides = made([1e6] * 14)
    for place, (name, saved) in enumerate(sides):
        pct = None if place == 3 else NOISE[place % 6] + (20.0 if place > 7 else 10.0)
        sides[place] = name, baselines.Saved({"kineto": [replace(saved.best[0], communication_pct=pct)]}, {})
    found = item_history(sides, "exposed_communication")
    (change,) = found.changes
    assert found.left_out == ("day3",) and change.change == pytest.approx(10, abs=0.5) and change.base_runs == 7


def test_what_the_runs_do_not_have_in_common_is_refused() -> None:
    one, other = made([1e6, 1e6])
    with pytest.raises(NsightlensError, match="no tool in common"):
        item_history([one, ("x", baselines.Saved({"nsys": [replace(ONE, tool="nsys")]}, {}))], "step")
    with pytest.raises(NsightlensError, match="some have steps"):
        item_history([one, ("x", baselines.Saved({"kineto": [replace(ONE, steps=0)]}, {}))], "step")
    with pytest.raises(UsageError, match="gem: neither"):
        item_history([one, other], "gem")
    with pytest.raises(UsageError, match="no run has it"):
        item_history([one, other], "exposed_communication")


def _days(folder: Path) -> None:
    for day in range(12):
        for number in range(2):
            ns = round((1.0 if day < 6 else 1.1) * (100_000 + 300 * NOISE[(day + number) % 6]))
            timed(folder / f"day{day:02}" / str(number) / "rank0.steps.json", {"measure": [ns] * 20}, f"{day}-{number}",
                  run=f"day{day:02}")


def test_captures_stores_and_baselines_have_the_same_history(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    days = sorted(shared("history-days", _days).iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NSIGHTLENS_STORE", raising=False)
    run("ingest", *days)
    for day in days:
        run("baseline", "set", day.name, day.name)
    files = sorted((tmp_path / baselines.FOLDER).iterdir())
    stored, kept, few = (json.loads(run("history", *names, "-f", "json").stdout)["tables"] for names in ([], files, days[:2]))
    assert stored == kept and [row["value"] for row in few["runs"]] == [row["value"] for row in stored["runs"][:2]]
    assert [row["run"] for row in stored["changes"]] == ["day06"] and len(stored["runs"]) == 12
    page = run("history").stdout
    assert "day06" in page.splitlines()[0] and "\nRuns" in page


def test_without_a_store_or_names_there_is_nothing_to_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NSIGHTLENS_STORE", raising=False)
    done = run("history")
    assert done.returncode == 1 and "nsightlens-store" in done.stderr


def test_a_year_of_five_recordings_a_day_is_all_there(tmp_path: Path) -> None:
    kernels = {f"kernel_{n}": 1e4 + n for n in range(60)}
    for name, saved in made(noisy(*[1e6] * 200, *[1.02e6] * 165), 5, kernels=kernels):
        baselines.write(tmp_path / f"{name}.json", saved, "1")
    begun = time.process_time()
    sides = [(path.stem, baselines.read(path)) for path in sorted(tmp_path.iterdir())]
    found = item_history(sides, "step")
    print(f"{time.process_time() - begun:.2f} CPU s for a year")
    assert isinstance(found, History) and len(found.points) == 365 and [each.run for each in found.changes] == ["day200"]
