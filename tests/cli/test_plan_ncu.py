"""nsightlens plan-ncu: its lines run through the real wrapper, and what it says where it cannot plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.plan_ncu import command, seconds
from nsightlens.discovery.ranks import Selection, read_sidecar
from nsightlens.errors import NsightlensError, UsageError
from tests.captures import GEMM, kineto
from tests.fixtures.simulated_run import RUN
from tests.wrappers.stage import WRAPPERS, Stage


def asked(store: Path, *words: str) -> Result:
    return CliRunner().invoke(command, ["--store", str(store), *words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def store(bundled_store: Path) -> Path:
    return bundled_store


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_lines_run_through_the_wrapper(store: Path, stage: Stage) -> None:
    done = asked(store, "--wrapper", str(WRAPPERS / "ncu_wrapper.sh"), "--lines", "--cover", "20", "--set", "full")
    (stage.path / "plan.sh").write_text(done.stdout)
    ran = stage.run("/bin/bash", "plan.sh", "sh", "-c", "exit 0", "two words")
    assert ran.returncode == 0, ran.stderr
    plan = nl.open(store).view("ncu_plan", cover=20, metric_set="full").to_pylist()
    calls = stage.calls("ncu.--set")
    assert len(calls) == len(plan) > 2
    for call, row in zip(calls, plan, strict=True):
        given = {name: call[call.index(name) + 1] for name in ("--set", "--kernel-name", "--kernel-name-base", "--launch-skip",
                                                               "--launch-count")}
        assert given == {"--set": "full", "--kernel-name": row["kernel"], "--kernel-name-base": row["name_base"],
                         "--launch-skip": str(row["launch_skip"]), "--launch-count": str(row["launch_count"])}
        assert call[-4:] == ["sh", "-c", "exit 0", "two words"] and "--nvtx" in call
    sidecars = sorted(stage.path.glob("ncu-plan/*/ncu/rank0000.run.json"))
    assert [read_sidecar(path).selection for path in sidecars] == [
        Selection(f"{row['name_base']} {row['kernel']}", row["launch_skip"], row["launch_count"]) for row in plan]
    assert {json.loads(path.read_bytes())["run"] for path in sidecars} == {"simulated_resnet18_ddp"}


def test_the_page_ends_in_the_lines(store: Path) -> None:
    done = asked(store, "--set", "full", "--budget", "5min", "--run-dir", "to count", "--", "python", "a b.py", "--steps", "5")
    table, _, lines = done.stdout.partition("\n\n")
    assert done.exit_code == 0 and "vectorized_elementwise_kernel" in table
    first = lines.splitlines()[0]
    assert first.startswith("wrappers/ncu_wrapper.sh --ranks 0 --run-dir 'to count/01' --run-id simulated_resnet18_ddp "
                            "--set full -k ")
    assert first.endswith("-- python 'a b.py' --steps 5")
    assert "of the GPU time without collectives" in done.stderr
    assert "regex:" in lines and "regex:" not in table and "cutlass_tensorop_bf16_s16816" in table, "people read names"


def test_a_start_without_a_filter_is_a_line_without_one(store: Path, stage: Stage) -> None:
    done = asked(store, "--wrapper", str(WRAPPERS / "ncu_wrapper.sh"), "--lines")
    (stage.path / "plan.sh").write_text(done.stdout)
    assert stage.run("/bin/bash", "plan.sh", "true").returncode == 0
    (call,) = stage.calls("ncu.--set")
    (row,) = nl.open(store).view("ncu_plan").to_pylist()
    given = {name: call[call.index(name) + 1] for name in ("--kernel-name", "--launch-skip", "--launch-count")}
    assert given.pop("--kernel-name").startswith("regex:^($|[^n"), "the wrapper's own: all but collectives"
    assert given == {"--launch-skip": str(row["launch_skip"]), "--launch-count": str(row["launch_count"])}
    assert "all but collectives" in asked(store).stdout


def test_json_holds_the_lines(store: Path) -> None:
    rows = json.loads(asked(store, "--format", "json", "--rank", "1", "--cover", "20").stdout)["rows"]
    assert [row["start"] for row in rows] == list(range(1, len(rows) + 1)) and all(row["rank"] == 1 for row in rows)
    assert all("--ranks 1 " in row["line"] and row["line"].endswith('"$@"') for row in rows)


def test_a_budget_leaves_out_and_says_so(store: Path) -> None:
    done = asked(store, "--budget", "2min", "--lines")
    assert 0 < len(done.stdout.splitlines()) <= 3 and "more do not fit into 2min" in done.stderr


def test_a_trace_alone_says_what_it_does_not_know(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "t.json", [(GEMM, 1000.0 * i, 10.0) for i in range(1, 4)])
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    done = asked(tmp_path / "store")
    assert f"-k {GEMM} " in done.stdout and "the trace does not show what ran before it" in done.stderr


@pytest.mark.parametrize(("words", "error", "message"), [
    (("--budget", "1s"), NsightlensError, "nothing fits into 1s"),
    (("--budget", "soon"), UsageError, "give a time such as"),
    (("--run", "other"), UsageError, "there are simulated_resnet18_ddp"),
    (("--rank", "7"), UsageError, "--rank 7: the store has ranks 0-1"),
    (("--cover", "0"), UsageError, "cover is a share"),
    (("--lines", "--format", "json"), UsageError, "--lines goes with neither --format nor --output"),
])
def test_what_cannot_be_planned(store: Path, words: tuple[str, ...], error: type[Exception], message: str) -> None:
    done = asked(store, *words)
    assert isinstance(done.exception, error) and message in str(done.exception)


def test_several_runs_and_none(tmp_path: Path) -> None:
    for name in ("one", "two"):
        kineto(tmp_path / name / "t.json")
    nl.ingest([tmp_path / "one", tmp_path / "two"], store=tmp_path / "store", jobs=1).close()
    assert "--run one or --run two" in str(asked(tmp_path / "store").exception)
    nl.ingest(RUN / "ncu", store=tmp_path / "counted", jobs=1).close()
    assert "no kernel timeline" in str(asked(tmp_path / "counted").exception)


def test_times_as_people_write_them() -> None:
    assert [seconds(text) for text in ("90", "90s", "10min", "1.5h", "2 m")] == [90, 90, 600, 5400, 120]
