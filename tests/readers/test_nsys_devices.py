"""Devices of small nsys reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.places import sqlite_captures
from tests.readers.nsys_report import Row, codes, kernel, read, report


def gpu(id_: int, cuda: int | None, name: str = "NVIDIA H100", **others: Any) -> Row:
    return {
        "id": id_,
        "cuDevice": cuda,
        "name": name,
        "uuid": f"{id_}{cuda}aa-00",
        "busLocation": f"0000:0{id_}:00.0",
        "smCount": 132,
        "totalMemory": 80,
        "memoryBandwidth": 3,
        "clockRate": 2,
        "l2CacheSize": 50,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxWarpsPerSm": 64,
        "threadsPerWarp": 32,
    } | others


def test_the_map_of_devices_comes_first(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(1, 2, deviceId=1), kernel(1, 2, pid=8)],
        TARGET_INFO_GPU=[gpu(0, 1), gpu(1, 0, name="NVIDIA A100")],
        TARGET_INFO_CUDA_DEVICE=[
            {"gpuId": 1, "cudaId": 0, "pid": 7},
            {"gpuId": 0, "cudaId": 1, "pid": 7},
            {"gpuId": 0, "cudaId": 0, "pid": 8},
        ],
    )
    assert [(row["process_index"], row["device"], row["name"]) for row in found["devices"]] == [
        (0, 0, "NVIDIA A100"),
        (0, 1, "NVIDIA H100"),
        (1, 0, "NVIDIA H100"),
    ]
    assert found["devices"][0] == {
        "process_index": 0,
        "device": 0,
        "name": "NVIDIA A100",
        "uuid": "10aa-00",
        "pci": "0000:01:00.0",
        "compute_capability": "9.0",
        "sm_count": 132,
        "memory_bytes": 80,
        "memory_bandwidth_bytes_per_s": 3.0,
        "core_clock_hz": 2.0,
        "l2_bytes": 50,
        "threads_per_sm": 2048,
    }
    assert "device_assumed" not in codes(found)


def test_cuda_numbers_of_nvidia_gpus_come_second(tmp_path: Path) -> None:
    zero = "00000000-0000-0000-0000-000000000000"
    found = report(
        tmp_path,
        TARGET_INFO_GPU=[
            gpu(0, 0, name="Intel(R) UHD Graphics", uuid=zero),
            gpu(1, 0, name="NVIDIA RTX"),
            gpu(2, 0, name="Microsoft Basic Render Driver", uuid=zero),
        ],
    )
    assert [row["name"] for row in found["devices"]] == ["NVIDIA RTX"]
    assert "device_assumed" not in codes(found)  # the only one
    found = report(tmp_path, TARGET_INFO_GPU=[gpu(0, 1), gpu(1, 0)])
    assert [row["pci"] for row in found["devices"]] == ["0000:01:00.0"]
    assert codes(found)["device_assumed"] == 1


def test_the_tools_own_numbers_tell_the_kind_of_gpu_only(tmp_path: Path) -> None:
    found = report(tmp_path, TARGET_INFO_GPU=[gpu(0, None), gpu(1, None)])["devices"]
    assert found[0]["name"] == "NVIDIA H100"
    assert not {"uuid", "pci"} & set(found[0])


def test_a_slice_has_its_own_uuid_and_processors(tmp_path: Path) -> None:
    (row,) = report(
        tmp_path,
        TARGET_INFO_GPU=[gpu(0, 0)],
        TARGET_INFO_CUDA_DEVICE=[{"gpuId": 0, "cudaId": 0, "pid": 7, "uuid": "MIG-1f", "numMultiprocessors": 16}],
    )["devices"]
    assert (row["uuid"], row["sm_count"], row["name"]) == ("MIG-1f", 16, "NVIDIA H100")
    assert not {"memory_bytes", "l2_bytes", "memory_bandwidth_bytes_per_s"} & set(row)


def test_a_gpu_that_the_report_does_not_describe(tmp_path: Path) -> None:
    found = report(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, deviceId=3)])
    assert found["devices"] == [{"process_index": 0, "device": 3}]
    assert codes(found)["device_unknown"] == 1


def test_the_only_gpu_without_a_number_is_taken_and_marked(tmp_path: Path) -> None:
    found = report(tmp_path, TARGET_INFO_GPU=[gpu(0, None) | {"id": None}])
    assert [row["name"] for row in found["devices"]] == ["NVIDIA H100"]
    assert codes(found)["device_assumed"] == 1
    two = report(tmp_path, TARGET_INFO_GPU=[gpu(0, None) | {"id": None}, gpu(1, None) | {"id": None}])
    assert "name" not in two["devices"][0]


def test_a_uuid_of_zeros_is_no_reason_to_drop_a_gpu_with_processors(tmp_path: Path) -> None:
    zero = "00000000-0000-0000-0000-000000000000"
    (row,) = report(tmp_path, TARGET_INFO_GPU=[gpu(0, 0, name="Quadro RTX 6000", uuid=zero, smCount=72)])["devices"]
    assert (row["name"], row["sm_count"]) == ("Quadro RTX 6000", 72)
    assert "uuid" not in row
    (row,) = report(tmp_path, TARGET_INFO_GPU=[gpu(0, 0, name="Parallels Display Adapter", uuid=zero, smCount=0)])["devices"]
    assert "name" not in row


@pytest.mark.parametrize(("name", "product"), [
    ("Mordred-Deprecated__report1_2021-07", "Quadro RTX 6000"), ("OpenACC_Project_PolPuig__report2", "NVIDIA GeForce RTX 3080")])
def test_real_gpus_of_2021_have_their_names(name: str, product: str) -> None:
    paths = [path for path in sqlite_captures() if path.stem.endswith(name)]
    if not paths:
        pytest.skip("the real captures are not here")
    assert {row["name"] for row in read(paths[0])["devices"]} == {product}
