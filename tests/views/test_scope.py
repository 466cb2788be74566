"""@scope: what a view's rows depend on. That `profile` is one profile alone is proven, with that profile alone in a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens import analyses
from nsightlens.store.store import Store
from nsightlens.views import registry
from nsightlens.views.header import View
from tests.captures import in_groups, kineto, ncu
from tests.conftest import Shared
from tests.places import ROOT
from tests.readers.kineto_text import event, trace
from tests.readers.kineto_text import kernel as timed
from tests.readers.nsys_report import base, global_pid, write

FIXTURES = ROOT / "fixtures"
EVERY = {**registry.load(), **registry.analyses()}
OF_A_PROFILE = [name for name, view in EVERY.items() if view.scope == "profile"]

Rows = dict[str, list[str]]
"""By profile: its rows as text, sorted."""


def _ingest(folder: Path) -> None:
    """Make the store `full` of the simulated job under three tools, of recordings, and of small captures that share ranks and
    kernels; and in `alone`, by its name, a store of each profile of the full one, with nothing else in it."""
    small = folder / "small"
    overlapping = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1005.0, 20.0)
    for rank in range(2):
        kineto(small / f"rank{rank}.json", [("gemm_kernel", 1000.0, 10.0), overlapping], rank=rank, pid=70 + rank)
    kineto(small / "later.json", [("gemm_kernel", 3000.0 + 40 * i, 10.0) for i in range(9)], rank=0, pid=70)
    counters = {"dram__bytes.sum": ("byte", "64"), "sm__inst_executed_pipe_tensor.sum": ("inst", "5")}
    samples = [event(None, "SM Active (%)", 2000002 + i, None, {"": 10 * i}, pid="GPU 0 Counters", ph="C") for i in range(3)]
    served = event("user_annotation", "step[DECODE bs=1]", "2000000.500")
    (small / "sampled.json").write_text(trace(timed(ts="2000001.500"), served, *samples), encoding="utf-8")
    ncu(small / "counters.csv", counters, name="gemm_kernel")
    overhead = {"start": 10, "end": 30, "globalTid": global_pid(7) + 70, "nameId": 1, "overheadType": 0}
    sampled = {"id": 1, "start": 1100, "globalTid": global_pid(7) + 70}
    report = write(folder / "overhead" / "report.sqlite", base(PROFILER_OVERHEAD=[overhead], COMPOSITE_EVENTS=[sampled],
                   SAMPLING_CALLCHAINS=[{"id": 1, "symbol": 2, "module": 4, "unresolved": 0, "stackDepth": 0}]))
    stage = kineto(folder / "stage" / "a.json", [("ncclDevKernel_SendRecv", 1000.0, 10.0)], rank=0)
    in_groups(stage, [("5", "mesh_pp", [0, 1])], {"ncclDevKernel_SendRecv": "5"})
    runs = {
        "stage": [stage],
        "simulated": (FIXTURES / "simulated_resnet18_ddp").glob("*/rank*.*"),
        "cpu": (FIXTURES / "resnet18_cpu" / "torch").iterdir(),
        "cpu_ddp": (FIXTURES / "resnet18_cpu_ddp" / "torch").iterdir(),
        "small": small.iterdir(),
        "overhead": [report],
    }
    for run, captures in runs.items():
        full = nl.ingest(sorted(captures), store=folder / "full", run=run, jobs=1)
    files = defaultdict(list)
    for row in full.sql("SELECT profile_id, run, path FROM files WHERE profile_id IS NOT NULL ORDER BY path").to_pylist():
        files[row["profile_id"], row["run"]].append(row["path"])
    for (name, run), paths in files.items():
        nl.ingest(paths, store=folder / "alone" / name, run=run, jobs=1).close()


@pytest.fixture(scope="module")
def stores(shared: Shared) -> Path:
    return shared("scope", _ingest)


@pytest.fixture(scope="module")
def full(stores: Path) -> Store:
    return nl.open(stores / "full")


@pytest.fixture(scope="module")
def alone(stores: Path) -> dict[str, Store]:
    found = {path.name: nl.open(path) for path in (stores / "alone").iterdir()}
    for name, store in found.items():
        assert store.sql("SELECT profile_id FROM profiles").to_pylist() == [{"profile_id": name}]
    assert len(found) > 10
    return found


def _arguments(view: View, store: Store) -> Iterator[dict[str, object]]:
    """Yield the parameters to ask with: none, or where a view must be told its run and tool, each that there is."""
    if not {"of_run", "under_tool"} <= {param.name for param in view.params}:
        yield {}
        return
    for row in store.sql("SELECT DISTINCT run, tool FROM profiles ORDER BY run, tool").to_pylist():
        yield {"of_run": row["run"], "under_tool": row["tool"]}


def _rows(store: Store, view: View) -> Rows:
    found: Rows = defaultdict(list)
    for arguments in _arguments(view, store):
        table = store._ask(*registry.query(view, arguments)) if view.sql else analyses.run(view, arguments, store._ask)
        for row in table.to_pylist():
            found[row["profile_id"]].append(repr(row))
    return {profile: sorted(rows) for profile, rows in found.items()}


def _differing(view: View, full: Store, alone: dict[str, Store]) -> list[str]:
    together = _rows(full, view)
    return [name for name, store in alone.items() if _rows(store, view) != ({name: together[name]} if name in together else {})]


@pytest.mark.parametrize("name", OF_A_PROFILE)
@pytest.mark.long
def test_rows_of_a_profile_are_the_same_alone_and_among_others(name: str, full: Store, alone: dict[str, Store]) -> None:
    assert _rows(full, EVERY[name]), f"no row at all: {EVERY[name].place} is not tested by these captures"
    assert _differing(EVERY[name], full, alone) == [], f"{EVERY[name].place}: its rows depend on other profiles: @scope run"


@pytest.mark.parametrize("name", ["distributed_overview", "collective_summary", "kernel_view"])
@pytest.mark.long
def test_the_captures_show_what_depends_on_others(name: str, full: Store, alone: dict[str, Store]) -> None:
    """Ranks that wait for each other, counters of another tool: so the test above can fail."""
    assert EVERY[name].scope == "run"
    assert _differing(EVERY[name], full, alone)


def _below(name: str) -> set[str]:
    return {name}.union(*(_below(other) for other in EVERY[name].requires if other in EVERY))


@pytest.mark.parametrize("name", OF_A_PROFILE)
def test_what_is_of_a_profile_names_it_and_stands_on_nothing_that_crosses_profiles(name: str) -> None:
    assert "profile_id" in dict(EVERY[name].columns)
    assert [other for other in _below(name) if EVERY[other].scope == "run"] == []
