"""An answer without rows is no error, and says why it is empty."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import nsightlens as nl
from nsightlens.errors import ViewError
from nsightlens.pages.why_empty import why_empty
from nsightlens.views import header, registry
from nsightlens.views.requirements import REQUIREMENTS
from tests.captures import kineto
from tests.catalogs import catalog
from tests.cli.command_line import run
from tests.conftest import Shared

RUN = "simulated_resnet18_ddp"


@pytest.fixture(scope="module")
def plain(shared: Shared) -> Path:
    """A store of one PyTorch trace with two kernels and nothing else."""
    def make(folder: Path) -> None:
        kineto(folder / "base" / "trace.json")
        nl.ingest(folder / "base", store=folder / "store", jobs=1).close()
    return shared("one-plain-trace", make) / "store"


@pytest.mark.parametrize(("asked", "why"), [
    (["module_summary"], "module_summary is empty: no modules were recorded: record with the PyTorch profiler and with_stack="),
    (["memory_curve"], "no allocations were recorded: record with the PyTorch profiler and profile_memory=True"),
    (["roofline"], "roofline is empty: no counters were captured: record with ncu"),
    (["straggler"], "straggler is empty: only one rank is known"),
    (["kernel_overruns"], "these captures hold nothing that it lists. Kernels whose duration cannot be true"),
])
def test_what_was_not_recorded(plain: Path, asked: list[str], why: str) -> None:
    done = run("show", *asked, "--store", plain)
    assert done.returncode == 0 and why in done.stderr


@pytest.mark.parametrize(("view", "tables", "why"), [
    ("module_summary", {"frames": [{"run": "r", "tool": "kineto", "frame_id": 0, "name": "a.py(1): f"}]},
     "the trace has Python stacks, but no modules: that version of PyTorch wrote none, or no nn.Module ran"),
    ("mpi_call_summary", {"ranges": [{"run": "r", "tool": "nsys", "kind": "nvtx_push_pop", "domain": "MPI", "name": "MPI_Send"}]},
     "calls of MPI were recorded as NVTX ranges: the view nvtx_summary has them"),
])
def test_what_was_recorded_in_another_form_is_said(view: str, tables: dict[str, list[dict[str, Any]]], why: str) -> None:
    with catalog(**tables) as connection:
        store = cast("nl.Store", SimpleNamespace(sql=lambda query, values: connection.sql(query, params=values).to_arrow_table()))
        assert why_empty(store, registry.known()[view], {}) == [f"{view} is empty: {why}"]
        assert why_empty(store, registry.known()[view], {"only_run": "other"}) == [
            f"{view} is empty: {REQUIREMENTS[need].missing}: {REQUIREMENTS[need].remedy}"
            for need in registry.known()[view].needs]


@pytest.mark.parametrize(("asked", "why"), [
    (["diagnostic_summary", "only_severity=error"], f"{RUN} has severity info, warning, not error"),
    (["true_roofline", "only_work_source=shape"], f"{RUN} has work_source shapes, counters, not shape"),
    (["kernel_by_rank", "--family", "memory", "--tool", "ncu"], "no row with tool ncu, family memory together"),
    (["kernel_by_rank", "--tool", "ncu", "--rank", "1"], "no row with rank 1, tool ncu together; it has rows with each alone"),
])
def test_a_filter_that_leaves_nothing(bundled_store: Path, asked: list[str], why: str) -> None:
    done = run("show", *asked, "--store", bundled_store, "-f", "csv")
    assert done.returncode == 0 and why in done.stderr and len(done.stdout.splitlines()) == 1


def test_a_run_without_rows_beside_one_with_some(tmp_path: Path) -> None:
    """One filter has no other that it could be together with."""
    (tmp_path / "busy.sql").write_text(
        "-- Runs of ten kernels or more.\n-- @scope run\n-- @requires kernels\n-- @column run  Run.\n-- @column n    Kernels.\n"
        "CREATE VIEW busy AS SELECT run, count(*) AS n FROM kernels GROUP BY run HAVING count(*) >= 10 ORDER BY run;\n")
    for name, kernels in (("few", 1), ("many", 40)):
        kineto(tmp_path / f"{name}.json", [(f"k{at}", 1000.0 + 20 * at, 10.0) for at in range(kernels)])
        run("ingest", tmp_path / f"{name}.json", "--run", name, "--store", tmp_path / "store")
    done = run("show", "busy", "--run", "few", "--views", tmp_path, "--store", tmp_path / "store")
    assert done.returncode == 0
    said = " ".join(done.stderr.split())
    assert "busy has no row of run few: what it lists is in other runs. Runs of ten kernels or more." in said


@pytest.mark.parametrize(("asked", "why"), [
    (["cuda_gpu_trace", "only_name=nothing"], "only_name nothing: cuda_gpu_trace has "),
    (["top_kernels", "only_name=nothing", "--tool", "nsys"], "only_name nothing: top_kernels with tool nsys has "),
    (["gpu_summary", "only_device=7"], "only_device 7: gpu_summary has 0"),
    (["operator_summary", "only_name=aten::cudnn_convolutoin"], "operator_summary has aten::cudnn_convolution, "),
])
def test_a_name_that_is_nowhere_is_refused_and_the_closest_come_first(bundled_store: Path, asked: list[str], why: str) -> None:
    done = run("show", *asked, "--store", bundled_store)
    assert done.returncode == 2 and why in done.stderr and not done.stdout


def test_of_long_and_many_values_enough_is_said(tmp_path: Path) -> None:
    kernels = [(f"void kernel_{number:02}<{'int, ' * 40}int>()", 1000.0 + 20 * number, 10.0) for number in range(14)]
    kineto(tmp_path / "base" / "trace.json", kernels)
    nl.ingest(tmp_path / "base", store=tmp_path / "store", jobs=1).close()
    done = run("show", "top_kernels", "only_name=kernel_12", "--store", tmp_path / "store")
    assert done.returncode == 2 and "only_name kernel_12: top_kernels has 'kernel_12<" in done.stderr
    assert " and 4 more" in done.stderr and len(done.stderr) < 10 * 64 + 110


def test_no_rows_were_asked_for(plain: Path) -> None:
    done = run("show", "top_kernels", "--limit", "0", "--store", plain, "-f", "csv")
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, "")


@pytest.mark.parametrize(("view", "asked", "why"), [
    ("step_breakdown", {"only_step": [16]}, [f"{RUN} has steps 0 to 4, not 16"]),
    ("step_breakdown", {"only_step": "16", "only_run": RUN}, [f"{RUN} has steps 0 to 4, not 16"]),
    ("step_timeline", {"which_step": 16, "only_run": RUN}, [f"{RUN} has steps 0 to 4, not 16"]),
])
def test_a_step_that_only_another_run_has(bundled_store: Path, view: str, asked: dict[str, object], why: list[str]) -> None:
    """Of a step that no run has, the command line says so first."""
    with nl.open(bundled_store) as store:
        assert why_empty(store, registry.known()[view], asked) == why


@pytest.mark.parametrize(("asked", "why"), [
    (["module_summary", "--tool", "nsys"], "module_summary has no rows of nsys: no modules were recorded: open NVTX ranges"),
    (["memory_curve", "only_tool=ncu"], "memory_curve has no rows of ncu, which does not record this: record with the"),
    (["step_breakdown", "--tool", "ncu"], "no rows of ncu, which does not record this: record with nsys or the PyTorch profiler"),
    (["memory_curve", "--tool", "nsys", "--tool", "ncu"], "has no rows of ncu, which does not record this"),
])
@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_what_a_tool_does_not_record(bundled_store: Path, tmp_path: Path, asked: list[str], why: str, form: str) -> None:
    done = run("show", *asked, "--store", bundled_store, "-f", form, "-o", tmp_path / "x")
    assert done.returncode == 0 and why in done.stderr and (tmp_path / "x").stat().st_size > 0


def test_every_need_depends_on_the_tool_only_where_its_rows_have_one(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        for need in REQUIREMENTS.values():
            if need.by:
                store.sql(f"SELECT tool FROM (FROM {need.rows}) LIMIT 0")


def test_where_there_are_rows_every_need_is_met(bundled_store: Path) -> None:
    """So no need is named that a view does not have: its rows would be there without."""
    with nl.open(bundled_store) as store:
        for need in REQUIREMENTS:
            store.sql(f"SELECT run FROM (FROM {REQUIREMENTS[need].rows}) LIMIT 0")
        for name in (
            "module_summary", "straggler", "nvtx_style_summary",
            "roofline", "true_roofline",
            "shape_agreement",
        ):
            view = registry.known()[name]
            assert view.needs and not any("is empty: no" in line for line in why_empty(store, view, {"only_run": RUN})), name


def test_every_need_is_one_that_is_known_and_asked_for() -> None:
    with pytest.raises(ViewError, match="@needs magic: there are timeline"):
        header.parse("-- Doc.\n-- @scope run\n-- @needs magic\n-- @column a  A.\nCREATE VIEW v AS SELECT 1 AS a;")
    assert {need for view in registry.known().values() for need in view.needs} == set(REQUIREMENTS)
