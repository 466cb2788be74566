"""CPU samples of small nsys reports: their call chains as a tree per thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nsightlens.readers.nsys import cpu_samples
from tests.readers.nsys_report import Row, base, codes, global_pid, read, report, strings, write, write_parquetdir

THREAD = global_pid(7) + 70
NAMES = ("void gemm<float>(float*)", "gemm", "cudaLaunchKernel_v7000", "_Z4gemmIfEvPT_", "main", "step(int)", "/home/me/app",
         "/usr/lib/libc.so.6", "0x7f00deadbeef", "0x7f00deadbee0", "[Max depth]", "[kernel.kallsyms]")
APP, LIBC, KERNEL = 7, 8, 12


def sample(id_: int, thread: int | None = THREAD, start: int | None = None) -> Row:
    return {"id": id_, "start": 1000 + id_ if start is None else start, "cpu": 1, "threadState": 1, "globalTid": thread,
            "cpuCycles": 1}


def chain(id_: int, *frames: tuple[int, int]) -> list[Row]:
    """A stack of (symbol, module), from the innermost outwards."""
    return [{"id": id_, "symbol": symbol, "module": module, "kernelMode": 0, "unresolved": int(symbol in (9, 10)),
             "stackDepth": depth} for depth, (symbol, module) in enumerate(frames)]


def sampled(folder: Path, samples: list[Row], chains: list[list[Row]]) -> dict[str, list[Row]]:
    rows: dict[str, Any] = {"COMPOSITE_EVENTS": samples}
    if chains:
        rows["SAMPLING_CALLCHAINS"] = [row for one in chains for row in one]
    return report(folder, StringIds=strings(*NAMES), **rows)


def paths(found: dict[str, list[Row]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return thread, time and frames from the outermost of each sample."""
    frames = found.get("sampled_frames", [])
    whole: list[tuple[str, ...]] = []
    for row in frames:
        whole.append((*(whole[row["parent_row"]] if "parent_row" in row else ()), row["name"]))
    return [(row["thread"], row["at_ns"], whole[row["frame_row"]] if "frame_row" in row else ())
            for row in found.get("cpu_samples", [])]


def test_chains_become_a_tree_depth_first(tmp_path: Path) -> None:
    found = sampled(tmp_path, [sample(1), sample(2), sample(3), sample(4, THREAD + 1), sample(5)], [
        chain(1, (6, APP), (5, APP)), chain(2, (5, APP)), chain(3, (3, LIBC), (6, APP), (6, APP), (5, APP)), chain(4, (5, APP))])
    assert paths(found) == [
        (70, 1001, ("main", "step(int)")), (70, 1002, ("main",)),
        (70, 1003, ("main", "step(int)", "step(int)", "cudaLaunchKernel_v7000")), (71, 1004, ("main",)), (70, 1005, ())]
    frames = found["sampled_frames"]
    assert [(row["depth"], row["last_row"], row["recursive"]) for row in frames] == [
        (0, 3, False), (1, 3, False), (2, 3, True), (3, 3, False), (0, 4, False)]
    assert [row["module"] for row in frames] == ["app", "app", "app", "libc.so.6", "app"]


def test_functions_without_a_name_are_their_module(tmp_path: Path) -> None:
    """Addresses of one module that follow each other are one frame; what stands between them keeps them apart."""
    found = sampled(tmp_path, [sample(1), sample(2), sample(3)], [
        chain(1, (9, LIBC), (10, LIBC), (5, APP), (10, LIBC), (11, 11)), chain(2, (10, LIBC), (5, APP), (9, LIBC), (11, 11)),
        chain(3, (9, KERNEL), (99, 98))])
    assert [path for *_, path in paths(found)] == [
        ("[Max depth]", "[libc.so.6]", "main", "[libc.so.6]")] * 2 + [("[unknown]", "[kernel.kallsyms]")]
    assert len(found["sampled_frames"]) == 6


def test_rows_of_a_chain_may_stand_in_any_order(tmp_path: Path) -> None:
    found = sampled(tmp_path, [sample(2), sample(1)], [chain(2, (6, APP), (5, APP))[::-1], chain(1, (5, APP))])
    assert [path for *_, path in paths(found)] == [("main", "step(int)"), ("main",)]
    assert "split_stacks" not in codes(found)


def test_chains_go_on_in_the_next_batch(tmp_path: Path) -> None:
    """In a Parquet export of small row groups, a stack begins in one and ends in another."""
    chains = [row for id_ in range(1, 40) for row in chain(id_, (6, APP), *([(3, LIBC)] * (id_ % 3)), (5, APP))]
    rows: dict[str, Any] = {"COMPOSITE_EVENTS": [sample(id_) for id_ in range(1, 40)], "SAMPLING_CALLCHAINS": chains}
    plain = write(tmp_path / "report.sqlite", base(StringIds=strings(*NAMES), **rows))
    expected = read(plain)
    folder = write_parquetdir(tmp_path / "parquet", plain, group_rows=7)
    found = read(folder)
    assert paths(found) == paths(expected) and len(paths(found)) == 39
    assert {len(path) for *_, path in paths(found)} == {2, 3, 4}


def test_samples_of_strangers_and_debris_are_counted(tmp_path: Path) -> None:
    found = sampled(tmp_path, [sample(1), sample(2, global_pid(9) + 9), sample(3, None)], [chain(2, (5, APP))])
    assert paths(found) == [(70, 1001, ())] and "sampled_frames" not in found
    assert codes(found)["foreign_samples"] == 2 and [row["pid"] for row in found["processes"]] == [7]
    alone = read(write(tmp_path / "alone.sqlite", {
        "StringIds": strings(*NAMES), "COMPOSITE_EVENTS": [sample(1, global_pid(9) + 9)]}))
    assert [row["thread"] for row in alone["cpu_samples"]] == [9]


def test_parts_of_a_chain_that_stand_apart_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_samples, "_MOST_ROWS", 0)
    rows: dict[str, Any] = {"COMPOSITE_EVENTS": [sample(1)], "SAMPLING_CALLCHAINS": chain(1, (6, APP), (5, APP))}
    plain = write(tmp_path / "report.sqlite", base(StringIds=strings(*NAMES), **rows))
    found = read(write_parquetdir(tmp_path / "parquet", plain, group_rows=1))
    assert codes(found)["split_stacks"] == 1 and [path for *_, path in paths(found)] == [("step(int)",)]


def test_deep_and_many_chains_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_samples, "DEEPEST", 3)
    monkeypatch.setattr(cpu_samples, "MOST_FRAMES", 4)
    found = sampled(tmp_path, [sample(1), sample(2)], [
        chain(1, (6, APP), (5, APP), (6, APP), (5, APP)), chain(2, (3, LIBC), (5, APP))])
    assert [path for *_, path in paths(found)] == [("step(int)", "main", "step(int)"), ("cudaLaunchKernel_v7000",)]
    assert codes(found)["cut_stacks"] == 2
