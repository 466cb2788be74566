"""Processes and ranks of small nsys reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.nsys_report import Row, call, codes, global_pid, kernel, report, span, strings


def environment(*settings: str) -> dict[str, list[Row]]:
    return {"META_DATA_CAPTURE": [{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": setting} for setting in settings]}


def test_high_hardware_ids_make_negative_numbers(tmp_path: Path) -> None:
    key = global_pid(16_777_215, hardware=200)
    assert key < 0
    found = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, globalPid=key)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1, globalTid=key + 16_777_214)],
        PROCESSES=[{"globalPid": key, "pid": 1, "name": "python3"}],
    )
    assert [(row["pid"], row["name"]) for row in found["processes"]] == [(16_777_215, "python3")]
    assert found["api_calls"][0]["thread"] == 16_777_214


def test_one_pid_on_two_virtual_machines_is_two_processes(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(3, 4, globalPid=global_pid(7) + (1 << 48))])
    assert [row["process_index"] for row in found["kernels"]] == [0, 1]
    assert [row["pid"] for row in found["processes"]] == [7, 7]


def test_only_processes_with_rows_are_told(tmp_path: Path) -> None:
    found = report(tmp_path, PROCESSES=[{"globalPid": global_pid(pid), "pid": pid, "name": f"p{pid}"} for pid in range(1, 400)])
    assert [row["name"] for row in found["processes"]] == ["p7"]


@pytest.mark.parametrize(("told", "name"), [
    ("/usr/bin/python3 train.py --token s3cret", "python3"), ("python3\t--token=s3cret", "python3"),
    (r"C:\Python\python.exe -m x", "python.exe"), ("TOKEN=s3/cret python3", None), ("python3", "python3"), ("  ", None),
    ("/data/run=7/python3", "python3"), ("/usr/bin/", None), ('"/opt/a" s3cret', "a"),
])
def test_a_process_has_the_name_of_its_program(tmp_path: Path, told: str, name: str | None) -> None:
    found = report(tmp_path, PROCESSES=[{"globalPid": global_pid(7), "pid": 7, "name": told}])
    assert [row.get("name") for row in found["processes"]] == [name]


def test_kernels_without_a_process_belong_to_the_only_caller(tmp_path: Path) -> None:
    row = kernel(1, 2)
    del row["globalPid"]
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[row])
    assert [process["pid"] for process in found["processes"]] == [7]
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[row], CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1, pid=7), call(0, 1, pid=8)])
    assert [process.get("pid") for process in found["processes"]] == [None, 7, 8]


def rank_of(found: dict[str, list[Row]]) -> list[tuple[Any, ...]]:
    return [
        tuple(row.get(name) for name in ("pid", "rank", "rank_source", "local_rank", "world_size")) for row in found["processes"]
    ]


def test_the_environment_of_a_single_process(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        **environment(
            'SLURM_PROCID="0"',
            'SLURM_NTASKS="1"',
            'OMPI_COMM_WORLD_RANK="5"',
            'OMPI_COMM_WORLD_SIZE="8"',
            'OMPI_COMM_WORLD_LOCAL_RANK="1"',
            'PMI_INSTALL_PREFIX="3"',
            'API_TOKEN="s3cret"',
        ),
    )
    assert rank_of(found) == [(7, 5, "content:OMPI_COMM_WORLD_RANK", 1, 8)]


def test_a_variable_without_its_size_takes_it_from_one_that_agrees(tmp_path: Path) -> None:
    found = report(tmp_path, **environment('PMIX_RANK="3"', 'SLURM_PROCID="3"', 'SLURM_NTASKS="4"', 'SLURM_LOCALID="1"'))
    assert rank_of(found) == [(7, 3, "content:PMIX_RANK", 1, 4)]


def test_a_rank_beyond_its_size_is_none(tmp_path: Path) -> None:
    assert rank_of(report(tmp_path, **environment('RANK="4"', 'WORLD_SIZE="4"'))) == [(7, None, None, None, None)]


@pytest.mark.parametrize("separator", ["\0", ";"])
def test_the_environment_as_one_string(tmp_path: Path, separator: str) -> None:
    block = separator.join(
        ["LS_COLORS=*.a=1;*.b=2", "MY_RANK=9", "RANK=2", "WORLD_SIZE=4", "BASH_FUNC=() {\n echo; }", "TOKEN=s3cret"]
    )
    found = report(tmp_path, TARGET_INFO_SYSTEM_ENV=[{"name": "DeviceEnvironment", "value": block}])
    assert rank_of(found) == [(7, 2, "content:RANK", None, 4)]


def test_a_variable_with_two_values_tells_nothing(tmp_path: Path) -> None:
    found = report(tmp_path, TARGET_INFO_SYSTEM_ENV=[{"name": "DeviceEnvironment", "value": "A=1;RANK=7;RANK=2"}])
    assert rank_of(found)[0][1] is None


def test_the_environment_is_not_of_every_process(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, pid=7), kernel(1, 2, pid=8)],
        **environment('RANK="0"', 'WORLD_SIZE="2"'),
    )
    assert [row[1:] for row in rank_of(found)] == [(None, None, None, None)] * 2
    assert codes(found)["rank_of_several_processes"] == 1


def test_the_environment_goes_to_the_process_that_used_the_gpu(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1, pid=8), call(0, 1)], **environment('RANK="1"'))
    assert rank_of(found) == [(7, 1, "content:RANK", None, None), (8, None, None, None, None)]


def test_mpi_records_tell_each_process(tmp_path: Path) -> None:
    kernels = [kernel(1, 2, pid=7), kernel(1, 2, pid=8), kernel(1, 2, pid=9)]
    ranks = [
        {"globalTid": global_pid(7) + 1, "rank": 1},
        {"globalTid": global_pid(8) + 1, "rank": 0},
        {"globalTid": global_pid(9) + 1, "rank": 2},
        {"globalTid": global_pid(9) + 2, "rank": 3},
    ]
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=kernels, MPI_RANKS=ranks)
    assert rank_of(found) == [
        (7, 1, "content:MPI_RANKS", None, None),
        (8, 0, "content:MPI_RANKS", None, None),
        (9, None, None, None, None),
    ]
    assert codes(found)["rank_contradictory"] == 1


def test_thread_names_tell_each_process(tmp_path: Path) -> None:
    texts = strings("k", "k", "c", "MPI Rank 11", "MPI Rank 4", "worker")
    found = report(
        tmp_path,
        StringIds=texts,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, pid=7), kernel(1, 2, pid=8)],
        ThreadNames=[
            {"nameId": 4, "priority": 0, "globalTid": global_pid(7) + 7},
            {"nameId": 6, "priority": 0, "globalTid": global_pid(7) + 7},
        ],
        NVTX_EVENTS=[span(0, None, pid=8, eventType=39, textId=5)],
    )
    assert [row[1:3] for row in rank_of(found)] == [(11, "content:thread name"), (4, "content:thread name")]


@pytest.mark.parametrize(("others", "expected"), [((), (6, "content:thread name", 2)), ((7,), (None, None, None))])
def test_jax_names_its_launchers(tmp_path: Path, others: tuple[int, ...], expected: tuple[Any, ...]) -> None:
    names = [f"XlaLauncher:#global={rank},local=2,process=0,slice=0#" for rank in (6, *others)]
    found = report(
        tmp_path,
        StringIds=strings("k", "k", "c", *names),
        ThreadNames=[{"nameId": 4 + at, "priority": 0, "globalTid": global_pid(7) + at} for at in range(len(names))],
    )
    assert rank_of(found)[0][1:4] == expected


def test_secrets_of_the_environment_reach_nothing(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        TARGET_INFO_SYSTEM_ENV=[{"name": "DeviceEnvironment", "value": "TOKEN=s3cret;RANK=0"}],
        ProcessStreams=[{"globalPid": global_pid(7), "filenameId": 1, "contentId": 1}],
        **environment('API_KEY="s3cret"'),
    )
    assert "s3cret" not in repr(found)
