"""What is said of a run that only ncu measured: kernels by time, their limits, and what curing them would win."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.diagnosis.busy_time import has_tensor_cores
from nsightlens.diagnosis.counter_words import limit
from nsightlens.diagnosis.counters import Counters, Measured, Rule
from nsightlens.diagnosis.findings import Finding, counter_findings
from tests.readers.ncu_text import IDS, METRIC, RULE, SOL, ids, line

_SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def _kernel(name: str = "k", ns: int | None = 100, limit: str = "", unit: str = "", *, stall: str = "", occupancy_limit: str = "",
            is_plain: bool = False, capability: float | None = None, **figures: float) -> Measured:
    return Measured(name, ns, 1, limit, unit, figures, 8, 64, None, occupancy_limit, stall, is_plain, capability)


def _store(folder: Path, *launches: tuple[str, str, dict[str, str]], rules: tuple[tuple[str, ...], ...] = ()) -> nl.Store:
    """Return a store of a details CSV. launches: name, grid, {metric: value}; rules: ncu's ID, name, then the cells of a rule."""
    rows = [line((*IDS, *METRIC, *RULE))]
    for number, (name, grid, metrics) in enumerate(launches):
        of = ids(number, name, grid=grid)
        units = {"gpu__time_duration.sum": "ns"}
        rows += [line((*of, SOL, metric, units.get(metric, "%"), value)) + "," for metric, value in metrics.items()]
    rows += [line((*ids(int(launch), name), "SourceCounters", "", "", "", *rule)) for launch, name, *rule in rules]
    folder.mkdir()
    (folder / "a.csv").write_text("\n".join(rows) + "\n")
    return nl.ingest(folder, store=folder / "store", jobs=1)


def _times(ns: int, sm: int, memory: int) -> dict[str, str]:
    return {"gpu__time_duration.sum": str(ns), _SM: str(sm), _MEMORY: str(memory)}


def test_the_kernel_that_takes_most_time_leads_with_its_limit(tmp_path: Path) -> None:
    """f runs 3 times, mostly in a configuration that memory limits: it takes 600 of 800 ns, and its figures are of that one."""
    launches = (("f(int)", "(9, 1, 1)", _times(250, 10, 80)), ("f(int)", "(9, 1, 1)", _times(250, 10, 90)),
                ("f(int)", "(3, 1, 1)", _times(100, 75, 20)), ("g(int)", "(9, 1, 1)", _times(200, 20, 30)))
    with _store(tmp_path / "run", *launches) as store:
        rows = store.view("verdict").to_pylist()
    assert [(row["kind"], row["cause"], row["subject"], row["total_ns"], row["of_ns"], row["share_pct"]) for row in rows] == [
        ("verdict", "kernel", "f", 600, 800, 75.0), ("finding", "memory", "f", 600, 800, 75.0),
        ("finding", "latency", "g", 200, 800, 25.0)]
    assert "85.0 % of its peak" in rows[0]["text"]


def test_what_was_not_collected_is_unknown(tmp_path: Path) -> None:
    launches = (("f(int)", "(9, 1, 1)", {_SM: "20"}), ("g(int)", "(9, 1, 1)", {"gpu__time_duration.sum": "50"}))
    with _store(tmp_path / "run", *launches) as store:
        rows = store.view("verdict").to_pylist()
    assert [(row["kind"], row["cause"], row["subject"], row["total_ns"]) for row in rows] == [
        ("verdict", "kernel", "g", 50), ("finding", "not measured", "g", 50)]
    assert "1 other kernel is not known" in rows[0]["text"]


def test_a_unit_that_is_idle_is_not_the_busiest() -> None:
    """Of all others nothing is known then."""
    assert "0.0 %" not in limit(_kernel(unit="tensor", unit_pct=0)) and "unknown" in limit(_kernel(unit="tensor", unit_pct=0))
    assert "busiest" in limit(_kernel(unit="tensor", unit_pct=1))


def test_without_times_no_kernel_has_a_share(tmp_path: Path) -> None:
    with _store(tmp_path / "run", ("f(int)", "(9, 1, 1)", {_SM: "90", _MEMORY: "10"})) as store:
        row, = store.view("verdict").to_pylist()
    assert (row["subject"], row["total_ns"], row["of_ns"], row["share_pct"]) == ("f", None, None, None)
    assert "no times" in row["text"]


def test_a_rule_wins_its_share_of_the_launches_that_it_is_about(tmp_path: Path) -> None:
    """Launch 0 takes 300 of 400 ns: 50 % of it are 37.5 % of the kernel. Local estimates are about a unit, not about time."""
    launches = tuple(("f(int)", "(4, 1, 1)", _times(ns, 10, 80)) for ns in (300, 100))
    rules = (("0", "f(int)", "Uncoalesced", "OPT", "Half of it. More.", "global", "50"),
             ("0", "f(int)", "Uncoalesced", "OPT", "Less.", "global", "20"),
             ("0", "f(int)", "IssueSlotUtilization", "OPT", "All of it.", "local", "99"))
    with _store(tmp_path / "run", *launches, rules=rules) as store:
        rows = store.view("verdict").to_pylist()
    assert [(row["cause"], row["subject"], row["winnable_ns"]) for row in rows[1:]] == [
        ("memory", "f", None), ("ncu rule", "Uncoalesced", 150)]
    assert "37.5 %" in rows[0]["text"] and "Half of it." in rows[0]["text"] and "Issue" not in rows[0]["text"]


@pytest.mark.parametrize(("kernel", "cause", "action"), [
    (_kernel(limit="small grid"), "low fill", "more blocks"),
    (_kernel(limit="small blocks"), "small blocks", "larger blocks"),
    (_kernel(limit="memory", unit="DRAM"), "memory", "fewer bytes"),
    (_kernel(limit="memory and compute", unit="LSU"), "memory", "wider loads"),
    (_kernel(limit="compute", unit="FP64"), "compute", "single precision"),
    (_kernel(limit="compute", unit="FMA"), "compute", "fewer instructions"),
    (_kernel(limit="latency", stall="barrier"), "latency", "barriers"),
    (_kernel(limit="latency", occupancy_limit="registers", max_occupancy_pct=50), "latency", "registers"),
    (_kernel(limit="latency", occupancy_limit="registers", max_occupancy_pct=75, stall="wait"), "latency", "hide"),
    (_kernel(limit="latency"), "latency", "stalls"),
    (_kernel(), "not measured", "collect"),
])
def test_the_action_fits_the_limit(kernel: Measured, cause: str, action: str) -> None:
    assert counter_findings(Counters((kernel,), None)) == [Finding(cause, "k", 100, action)]


def test_kernels_alike_are_one_finding() -> None:
    kernels = (_kernel("a", 60, "small grid"), _kernel("b", 50, "latency"), _kernel("c", 40, "small grid"),
               _kernel("too short", 1, "small grid"))
    assert counter_findings(Counters(kernels, Rule("R", "", 10))) == [
        Finding("low fill", "a", 100, "more blocks", others=1), Finding("latency", "b", 50, "stalls"),
        Finding("ncu rule", "R", 60, "rule", 6)]


@pytest.mark.parametrize(("capability", "action"), [(7.5, "fp16"), (8.0, "tf32 or fp16"), (None, "fp16")])
def test_tensor_cores_take_tf32_from_ampere_on(capability: float | None, action: str) -> None:
    kernel = _kernel(limit="compute", unit="FMA", is_plain=True, capability=capability)
    assert Finding("tensor cores", "k", 100, action) in counter_findings(Counters((kernel,), None))


@pytest.mark.parametrize(("vendor", "name", "capability", "has"), [
    ("cuda", "NVIDIA A100", "8.0", True), ("cuda", None, "8.0", True), ("cuda", "Tesla P100", "6.0", False),
    ("cuda", "Tesla T4", "7.5", True), ("cuda", "NVIDIA GeForce GTX 1660 Ti", "7.5", False), ("cuda", None, "7.5", False),
    ("cuda", "?", None, False), ("cuda", "?", "?", False), ("rocm", "MI300", "9.4", False),
])
def test_only_gpus_with_tensor_cores_have_some(vendor: str, name: str | None, capability: str | None, has: bool) -> None:
    assert has_tensor_cores(vendor, name, capability) == has


def test_dram_that_no_counter_saw_is_no_limit() -> None:
    """A part whose memory is the host's, or a report without the section: what it is busiest with is said, and no limit."""
    said = limit(_kernel(unit="SM", unit_pct=20.0))
    assert "not collected" in said and "latency" not in said and "limited" not in said


def test_of_a_whole_sm_it_is_said_that_no_pipe_is_known(tmp_path: Path) -> None:
    """sm__throughput is that of the busiest pipe: loads and stores, shared memory, issue slots or arithmetic."""
    with _store(tmp_path / "run", ("f(int)", "(9, 1, 1)", {_SM: "97", "gpu__time_duration.sum": "50",
                                                           "dram__bytes.sum.per_second": "8,000,000,000"})) as store:
        verdict, finding = store.view("verdict").to_pylist()
    assert (finding["cause"], finding["subject"]) == ("SM", "f")
    assert "which one was not collected" in verdict["text"] and "nstructions" not in verdict["text"] + finding["text"]
