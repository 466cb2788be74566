"""Captures of different GPUs or programs in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nsightlens.discovery.files import find
from nsightlens.discovery.mixed_workloads import Capture, mixed_runs, mixtures
from nsightlens.doctor.fitness import NOTE, capture_findings
from nsightlens.pipeline.ingest import ingest
from nsightlens.readers.reader import Origin
from nsightlens.store.store import Store
from tests.captures import GEMM, kineto, ncu
from tests.cli.command_line import run
from tests.places import NSYS_CAPTURES, ROOT
from tests.readers.nsys_report import base, global_pid, strings, write
from tests.readers.test_nsys_devices import gpu

DATA = NSYS_CAPTURES.parent
HOUR = 3_600_000_000_000
COUNTERS = {"gpu__time_duration.sum": ("nsecond", "5")}


def capture(text: str, **others: Any) -> Capture:
    """Return a capture from `tool | GPUs | compute capabilities | programs`."""
    tool, *facts = (part.strip() for part in text.split("|"))
    origin = Origin(*(frozenset(fact.split(",")) if fact else frozenset() for fact in facts))
    return Capture(f"/r/{tool}.x", "base", tool, origin, **others)


def different(one: str, other: str, **others: Any) -> tuple[str, ...]:
    """Return what differs between two captures. others: ranks and first_ns, each of both."""
    mine, theirs = ({name: values[at] for name, values in others.items()} for at in (0, 1))
    found = mixtures([capture(one, **mine), capture(other, **theirs)])
    return found[0].what if found else ()


@pytest.mark.parametrize(("one", "other", "what"), [
    ("nsys | NVIDIA A100-SXM4-80GB | 8.0 |", "ncu | NVIDIA H100 80GB HBM3 | 9.0 |", ("GPUs",)),
    ("nsys | NVIDIA A100-SXM4-80GB | 8.0 |", "ncu | | 9.0 |", ("GPUs",)),                    # a CSV has no product name
    ("nsys | NVIDIA A100-SXM4-80GB | 8.0 |", "kineto | NVIDIA A100-PCIE-40GB | 8.0 |", ("GPUs",)),
    ("nsys | NVIDIA A100-SXM4-80GB | 8.0 |", "ncu | | 8.0 |", ()),
    ("nsys | A100-SXM4-80GB | 8.0 |", "ncu | NVIDIA A100-SXM4-80GB | 8.0 |", ()),            # an older driver
    ("nsys | NVIDIA A100-SXM4-80GB | 8.0 |", "ncu | NVIDIA A100-SXM4-80GB MIG 1g.10gb | 8.0 |", ()),
    ("nsys | NVIDIA T400,NVIDIA A100-SXM4-80GB | 7.5,8.0 |", "ncu | NVIDIA A100-SXM4-80GB | 8.0 |", ()),  # the display's
    ("nsys | NVIDIA H100 | |", "ncu | | 9.0 |", ()),                                         # nothing to compare
    ("nsys | | | train", "ncu | | | bench", ("programs",)),
    ("nsys | T4 | | train", "ncu | L4 | | bench", ("GPUs", "programs")),
    ("nsys | | | train", "ncu | | | train.exe", ()),
    ("nsys | | | python3.10", "ncu | | | python3.10", ()),
    ("nsys | | | python", "ncu | | | python3.12", ()),
    ("nsys | | | pt_main_thread", "ncu | | | python3.12", ()),
    ("nsys | | | vllm", "ncu | | | python3.12", ()),                                         # a script, by its own name
    ("nsys | | | python3", "ncu | | | bench", ("programs",)),
    ("ncu | | | python3", "ncu | | | bench", ("programs",)),
    ("nsys | | | bash", "ncu | | | bench", ()),                                              # what started it
    ("nsys | | | run.sh", "ncu | | | bench", ()),
    ("nsys | | | ", "ncu | | | bench", ()),
    ("nsys | | | a_name_that_linux_cuts", "ncu | | | a_name_that_lin", ()),
    ("nsys | | | ocean,atmosphere", "ncu | | | ocean", ()),
    ("kineto | | | pyper:trainer:0:0", "nsys | | | app", ()),
])
def test_what_differs(one: str, other: str, what: tuple[str, ...]) -> None:
    assert different(one, other) == different(other, one) == what


@pytest.mark.parametrize(("facts", "what"), [
    ({"ranks": ({0}, {1})}, ()),                                           # one job, of two kinds of nodes
    ({"ranks": ({0}, {1}), "first_ns": (0, HOUR - 1)}, ()),
    ({"ranks": ({0}, {1}), "first_ns": (0, HOUR)}, ("GPUs", "programs")),  # another day
    ({"ranks": ({0, 1}, {1})}, ("GPUs", "programs")),                      # one rank twice
    ({"ranks": (set(), {1})}, ("GPUs", "programs")),
])
def test_ranks_of_one_job_may_differ(facts: dict[str, Any], what: tuple[str, ...]) -> None:
    facts["ranks"] = tuple(frozenset(ranks) for ranks in facts["ranks"])
    assert different("nsys | T4 | 7.5 | ocean", "nsys | L4 | 8.9 | atmosphere", **facts) == what


def test_the_sentence_names_the_first_of_each_kind() -> None:
    kinds = [capture(f"kineto | GPU {number % 5} | |", host="node1", first_ns=1_700_000_000_000_000_000) for number in range(9)]
    (found,) = mixtures(kinds)
    assert found.message == "run base combines captures of different GPUs: " + "; ".join(
        f"kineto.x (kineto, GPU {number}, host node1, 2023-11-14 22:13 UTC)" for number in range(3)) + "; and 2 more kinds"


def mixed(folder: Path) -> Path:
    """Return a folder with an nsys report of `train` on an H100 and a CSV of ncu of python on compute capability 8.0."""
    (folder / "down").mkdir()
    write(folder / "down" / "a.sqlite", base(
        StringIds=strings(GEMM, GEMM, "cudaLaunchKernel"), TARGET_INFO_GPU=[gpu(0, 0)],
        PROCESSES=[{"globalPid": global_pid(7), "name": "/home/me/train"}]))
    ncu(folder / "down" / "b.csv", COUNTERS)
    return folder / "down"


def test_scan_ingest_and_doctor_say_it(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    said = run("scan", folder).stderr
    assert "warning: run down combines captures of different GPUs: a.sqlite (nsys, NVIDIA H100, train" in said, said
    assert "b.csv (ncu, compute capability 8.0, python)" in said and "--run NAME" in said
    done = run("ingest", folder, "--store", tmp_path / "store")
    assert "captures_differ" in done.stderr and "NVIDIA H100" in done.stderr and done.returncode == 0, done.stderr
    notes = [finding for finding in capture_findings(folder) if "different GPUs" in finding.found]
    assert [finding.state for finding in notes] == [NOTE] and "--run NAME" in notes[0].fix


def told(store: Path) -> list[str]:
    with Store(store) as opened:
        query = "SELECT code FROM diagnostics WHERE code IN ('captures_differ', 'no_kernel_in_common') ORDER BY code"
        return [row["code"] for row in opened.sql(query).to_pylist()]


def test_runs_of_their_own_are_no_mixture(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    for name in ("a.sqlite", "b.csv"):
        ingest([folder / name], tmp_path / "store", run=name)
    assert told(tmp_path / "store") == []
    ingest([folder], tmp_path / "other")
    assert told(tmp_path / "other") == ["captures_differ"]


def test_tools_without_a_kernel_in_common(tmp_path: Path) -> None:
    kineto(tmp_path / "base" / "a.json")
    ncu(tmp_path / "base" / "b.csv", COUNTERS, name="another_kernel")
    ingest([tmp_path / "base"], tmp_path / "store")
    assert told(tmp_path / "store") == ["no_kernel_in_common"]
    with Store(tmp_path / "store") as store:
        (row,) = store.sql("SELECT message FROM diagnostics WHERE code = 'no_kernel_in_common'").to_pylist()
    assert row["message"].startswith(f"run base combines captures without a kernel name in common: kineto ({GEMM}) and "
                                     "ncu (another_kernel). ")
    ncu(tmp_path / "base" / "c.csv", COUNTERS, pid=6)
    ingest([tmp_path / "base"], tmp_path / "store")
    assert told(tmp_path / "store") == []


def test_the_bundled_runs_are_no_mixtures() -> None:
    assert mixed_runs(find(sorted((ROOT / "fixtures").glob("*/")))) == []


@pytest.mark.captures
@pytest.mark.skipif(not NSYS_CAPTURES.is_dir(), reason="the real captures are not here")
def test_real_folders() -> None:
    """Each folder of one job is quiet; of the folders that hold captures of many repositories it is said, truly."""
    folders = sorted(folder for folder in DATA.rglob("*") if folder.is_dir() and DATA / "cases" not in (folder, *folder.parents))
    assert {folder.relative_to(DATA).as_posix() for folder in folders if mixed_runs(find([folder]))} == {
        "kineto", "kineto/derived", "nsys", "ncu", "ncu/rep"}
    for tool in ("kineto", "nsys", "ncu"):  # captures of one repository that are one workload
        pairs: dict[str, list[Path]] = {}
        for path in sorted((DATA / tool).iterdir()):
            pairs.setdefault("__".join(path.name.split("__")[:3])[:60], []).append(path)
        for paths in (paths for paths in pairs.values() if len(paths) > 1):
            assert mixed_runs(find(paths, run="one")) == [], paths


def test_what_was_not_looked_into_differs_from_nothing(tmp_path: Path) -> None:
    """A damaged report of nsys, a file that is refused and one that is no capture, beside a trace."""
    kineto(tmp_path / "rank0.json")
    (tmp_path / "a.nsys-rep").write_bytes(b"a report of nsys")
    (tmp_path / "b.sqlite").write_bytes(b"SQLite format 3\0 cut")
    (tmp_path / "notes.txt").write_text("what I ran")
    files = find([tmp_path])
    assert {file.path.name: (bool(file.probe), bool(file.refused)) for file in files} == {
        "rank0.json": (True, False), "a.nsys-rep": (False, True), "b.sqlite": (False, True), "notes.txt": (False, False)}
    assert mixed_runs(files) == []
