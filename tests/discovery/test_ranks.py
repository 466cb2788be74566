from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nsightlens.discovery.ranks import Selection, Sidecar, natural_key, rank_from_name, read_sidecar, sidecar_of, sidecar_path
from nsightlens.pipeline.processes import Process, identify_devices, merge, resolve_ranks
from nsightlens.schema import PROCESSES


@pytest.mark.parametrize(("name", "rank"), [
    ("rank0.sqlite", 0), ("rank_3.json", 3), ("cpu_only_rank-34_of_300.json.gz", 34), ("node1_rank3.nsys-rep", 3),
    ("trace_r3.sqlite", 3), ("RANK12.csv", 12), ("rank=7.json", 7), ("df_index_resolver_rank1.json.gz", 1),
    ("rank0003.pt.trace.json.gz", 3), ("job.rank10.sqlite", 10), ("sampled_rank-0.json.gz", 0),
    ("rank_.sqlite", None), ("frank3.json", None), ("ranking2.json", None), ("report1.sqlite", None), ("gpu_3.json", None),
    ("rank0_vs_rank1.json", None), ("par3.json", None), ("resnet18.json", None), ("llama_r2d2.json", None),
    ("rank99999999999999999999.json", None),
])
def test_rank_from_file_name(name: str, rank: int | None) -> None:
    root = Path("/runs/a")
    assert rank_from_name(root / name, root) == (rank, None if rank is None else "filename")


def test_rank_from_the_nearest_folder() -> None:
    root = Path("/runs/rank9")
    assert rank_from_name(root / "rank1" / "rank2" / "trace.json", root) == (2, "filename")
    assert rank_from_name(root / "trace.json", root) == (None, None), "the run's own folder is not searched"


def test_the_users_pattern() -> None:
    root = Path("/r")
    assert rank_from_name(root / "gpu_5.json", root, re.compile(r"gpu_(\d+)")) == (5, "pattern")
    assert rank_from_name(root / "x-6-y.json", root, re.compile(r"x-(?P<rank>\d+)-(y)")) == (6, "pattern")
    assert rank_from_name(root / "rank1.json", root, re.compile(r"gpu_(\d+)")) == (None, None)


def test_natural_order() -> None:
    names = ["rank10", "rank9", "rank1", "a2b10", "a2b9", "a"]
    assert sorted(names, key=natural_key) == ["a", "a2b9", "a2b10", "rank1", "rank9", "rank10"]


def test_sidecar_is_found_by_stem(tmp_path: Path) -> None:
    (tmp_path / "rank0.run.json").write_text(json.dumps({
        "run": "base", "rank": 0, "world_size": 2, "local_rank": 0, "host": "n1", "execution_id": "e", "simulated": True,
        "environment": {"SECRET": "x"}}))
    for name in ("rank0.sqlite", "rank0.pt.trace.json.gz", "rank0.details.csv"):
        path = sidecar_path(tmp_path / name)
        assert path is not None
        assert read_sidecar(path) == Sidecar(path, "base", "e", 0, 2, 0, "n1", True)
    assert sidecar_path(tmp_path / "rank1.sqlite") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"rank": "0"}', '{"rank": -1}', '{"rank": true}', '{"rank": 1.5}', "\xff"])
def test_bad_sidecars_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.run.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError):
        read_sidecar(path)


@pytest.mark.parametrize(("number", "is_one"), [(0, True), (1000, True), ((1 << 31) - 1, True), (1 << 31, False), (-1, False)])
def test_numbers_of_a_sidecar_fit_their_column(number: int, is_one: bool) -> None:
    if is_one:
        assert sidecar_of(Path("a"), {"rank": number}).rank == number
    else:
        with pytest.raises(ValueError, match="its rank is"):
            sidecar_of(Path("a"), {"rank": number})


@pytest.mark.parametrize(("code", "read"), [
    (1, 1), (-9, -9), (0, 0), (139, 139), (1 << 31, None), (True, None), ("1", None), (None, None)])
def test_the_exit_code_of_a_sidecar(code: object, read: int | None) -> None:
    sidecar = sidecar_of(Path("a"), {"exit_code": code})
    assert sidecar.exit_code == read and bool(sidecar.complaints()) == bool(read)


def _row(**values: object) -> dict[str, object]:
    return dict.fromkeys(PROCESSES.reader_schema.names) | values


def test_windows_of_one_process_are_one_process() -> None:
    processes, places = merge("p", [[_row(host="h", pid=7)], [_row(host="h", pid=8), _row(host="h", pid=7)], []])
    assert [p.process_id for p in processes] == ["p:0", "p:1", "p:2"]
    assert places == [[0], [1, 0], [2]]


@pytest.mark.parametrize(("content", "sidecar", "named", "rank", "source", "code"), [
    (None, None, None, None, None, None),
    (None, None, 4, 4, "filename", None),
    (3, None, 4, 3, "content:PMI_RANK", "rank_disagrees"),
    (3, 5, 4, 5, "sidecar", "rank_disagrees"),
    (5, 5, 4, 5, "sidecar", None),
    (None, 5, None, 5, "sidecar", None),
])
def test_the_ladder(
    content: int | None, sidecar: int | None, named: int | None, rank: int | None, source: str | None, code: str | None,
) -> None:
    row = _row(rank=content, rank_source="content:PMI_RANK" if content is not None else None)
    hint = (named, "filename" if named else None)
    (process,), warnings = resolve_ranks([Process("p:0", row)], set(), set(), Sidecar(Path("x"), rank=sidecar), hint)
    assert (process.row["rank"], process.row["rank_source"]) == (rank, source)
    assert [c for c, _ in warnings] == ([code] if code else [])


def test_one_file_name_gives_no_rank_to_two_workers() -> None:
    processes = [Process("p:0", _row(rank=None)), Process("p:1", _row(rank=1, rank_source="content:x"))]
    ranked, warnings = resolve_ranks(processes, {0, 1}, set(), None, (0, "filename"))
    assert [p.row["rank"] for p in ranked] == [None, 1]
    assert [c for c, _ in warnings] == ["rank_of_several_processes"]


def test_the_worker_gets_the_rank_and_not_its_helper_process() -> None:
    processes = [Process("p:0", _row(rank=None)), Process("p:1", _row(rank=None))]
    ranked, warnings = resolve_ranks(processes, {1}, set(), None, (2, "filename"))
    assert [p.row["rank"] for p in ranked] == [None, 2]
    assert warnings == ()


@pytest.mark.parametrize("sidecar", [None, 5])
def test_the_pattern_of_a_person_outranks_what_files_say(sidecar: int | None) -> None:
    row = _row(rank=3, rank_source="content:PMI_RANK")
    stated = Sidecar(Path("x"), rank=sidecar) if sidecar else None
    (process,), warnings = resolve_ranks([Process("p:0", row)], set(), set(), stated, (4, "pattern"))
    assert (process.row["rank"], process.row["rank_source"], warnings) == (4, "pattern", ())


def test_processes_of_one_report_that_communicate_are_ranks_in_the_order_of_their_ids() -> None:
    processes = [Process(f"p:{n}", _row(pid=pid)) for n, pid in enumerate((12, 10, 11, 9))]
    ranked, warnings = resolve_ranks(processes, {0, 1, 2}, {0, 1, 2}, None, (None, None))
    assert [p.row["rank"] for p in ranked] == [2, 0, 1, None]
    assert [code for code, _ in warnings] == ["ranks_in_order"]
    unlike, warnings = resolve_ranks(processes, {0, 1, 2}, {0, 1}, None, (None, None))
    assert [p.row["rank"] for p in unlike] == [None] * 4 and not warnings, "one works alone: these are no ranks of one job"


def test_device_identity() -> None:
    processes = [Process("p:0", _row(host="h")), Process("p:1", _row(host=None))]
    device: dict[str, object] = {"device": 0, "uuid": None, "pci": None}
    rows = [device | {"process_index": 0, "uuid": "GPU-1"}, device | {"process_index": 1, "device": 3, "pci": "0:1"},
            device | {"process_index": 0, "device": 1, "pci": "0:2"}, device | {"process_index": 0, "device": 0}]
    found = identify_devices(processes, [list(rows)], [[0, 1]])
    assert {key: row["device_id"] for key, row in found.items()} == {(0, 0): "h/GPU-1", (1, 3): "p:1/gpu3", (0, 1): "h/0:2"}


_NCU = {"kernel_filter": "regex:gemm", "kernel_name_base": "function", "launch_skip": "20", "launch_count": "5",
        "replay_mode": "kernel", "ncu_options": None}
_NSYS = {"capture_range": None, "nsys_options": "--sample=none"}


@pytest.mark.parametrize(("tool", "options", "expected"), [
    ("ncu", _NCU, Selection("function regex:gemm", 20, 5)),
    ("ncu", _NCU | {"ncu_options": "--nvtx --set=full"}, Selection("function regex:gemm", 20, 5)),
    ("ncu", _NCU | {"ncu_options": "--nvtx-include step/"}, Selection()),    # measures less than the filter finds
    ("ncu", _NCU | {"replay_mode": "range"}, Selection()),
    ("ncu", _NCU | {"launch_skip": "many"}, Selection()),
    ("ncu", _NCU | {"launch_skip": 20}, Selection()),   # the wrapper writes texts
    ("nsys", _NSYS, Selection(from_start=True)),
    ("nsys", _NSYS | {"capture_range": "cudaProfilerApi"}, Selection(from_start=False)),
    ("nsys", _NSYS | {"nsys_options": "--delay=20"}, Selection(from_start=False)),
    ("nsys", _NSYS | {"output": "x"}, Selection(from_start=True)),
    ("nsys", {}, Selection()),
    ("torch", _NSYS, Selection()),
])
def test_a_sidecar_tells_the_selection(tmp_path: Path, tool: str, options: dict[str, object], expected: Selection) -> None:
    path = tmp_path / "a.run.json"
    path.write_text(json.dumps({"tool": tool, "options": options}))
    assert read_sidecar(path).selection == expected


def test_a_sidecar_tells_how_the_run_was_made(tmp_path: Path) -> None:
    gpus = [{"index": 0, "max_sm_clock_mhz": 1980, "power_limit_w": 700.0}, {"max_sm_clock_mhz": 1980, "power_limit_w": None}, 7]
    told = {"command": ["train.py", "--batch", "32\n"], "driver_version": "550.1", "git_commit": None, "torch_version": {},
            "options": {"secret": 1}, "gpus": gpus}
    assert sidecar_of(tmp_path, told).settings == (
        ("command", "train.py --batch 32?"), ("driver_version", "550.1"), ("gpu max_sm_clock_mhz", "1980"),
        ("gpu power_limit_w", "700.0"))
    assert sidecar_of(tmp_path, {"gpus": "none", "command": [1]}).settings == ()
