"""Which conditions a capture fails, and what is said then: fragments, launches that wait, the program's last line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.diagnosis.conditions import BLOCKING, FRAGMENT, Linked, check, fragment
from tests.diagnosis.made import Piece, recorded
from tests.readers.nsys_report import Row, base, call, global_pid, kernel, strings, write

_MS = 1_000_000


def _verdict(folder: Path, **tables: Any) -> tuple[list[Row], list[Row]]:
    """Return the rows of verdict and time_tree of a report with these tables; those without rows are not there."""
    filled = {name: rows for name, rows in base(**tables).items() if rows}
    with nl.ingest(write(folder / "a.sqlite", filled), store=folder / "store", jobs=1) as store:
        return store.view("verdict").to_pylist(), store.view("time_tree").to_pylist()


@pytest.mark.parametrize(("profiles", "is_it"), [
    ([(10, 6, True)], True), ([(10, 5, True)], False), ([(10, 10, False)], False), ([(1000, 900, True)], False),
    ([(10, 9, True), (10, 0, True)], False), ([(10, 9, True), (10, 2, True)], True),
    ([(600, 599, True), (600, 599, True)], False),
])
def test_a_fragment_has_few_kernels_most_of_them_without_a_launch(profiles: list[tuple[int, int, bool]], is_it: bool) -> None:
    """Of a run, not of one of its ranks; where no launches are recorded, none is missing; a long capture was cut at its start."""
    assert [each.code for each in fragment([Linked(*each) for each in profiles])] == [FRAGMENT] * is_it


def test_no_share_is_said_of_a_fragment(tmp_path: Path) -> None:
    kernels = [kernel(number * _MS, number * _MS + _MS // 2, correlationId=100 + number) for number in range(1, 13)]
    launched = [call(number * _MS - 9000, number * _MS - 1000, correlationId=100 + number) for number in (11, 12)]
    said, tree = _verdict(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=kernels, CUPTI_ACTIVITY_KIND_RUNTIME=launched,
                          StringIds=strings("k", "k", "cudaLaunchKernel_v7000"))
    assert [row["cause"] for row in said] == ["none", FRAGMENT, "kernels without a launch"]
    assert "fragment of 12 kernels" in said[0]["text"] and "%" not in said[0]["text"]
    assert tree == []


@pytest.mark.parametrize(("pieces", "late", "is_it"), [(6, 0, True), (5, 0, False), (20, 1, True), (20, 2, False)])
def test_launches_that_last_as_long_as_their_kernels_wait(pieces: int, late: int, is_it: bool) -> None:
    """late: launches of them all that return while their kernel runs."""
    work = [Piece(100 * number + 10, 100 * number + 50, (100 * number, 100 * number + (20 if number < late else 60)))
            for number in range(pieces)]
    found = [each for each in check(recorded(work), pieces, recorded([]).work.call) if each.code == BLOCKING]
    assert [(each.count, each.of) for each in found] == [(pieces - late, pieces)] * is_it


@pytest.mark.parametrize(("waits", "is_said"), [(True, True), (False, False)])
def test_a_host_that_waits_in_each_launch_is_said_to(tmp_path: Path, waits: bool, is_said: bool) -> None:
    began = [number * _MS for number in range(1, 13)]
    said, _ = _verdict(
        tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(start, start + 400_000, correlationId=start) for start in began],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(start - 9000, start + 410_000 * waits - 1000, correlationId=start) for start in began],
        StringIds=strings("k", "k", "cudaLaunchKernel_v7000"))
    assert said[0]["cause"] == "host"
    assert ("CUDA_LAUNCH_BLOCKING" in said[0]["text"]) == is_said
    assert (BLOCKING in [row["cause"] for row in said]) == is_said


def _streams(*contents: tuple[str, str]) -> dict[str, Any]:
    texts = [text for name, content in contents for text in (f"/tmp/streams/pid_7_{name}.log", content)]
    rows = [{"globalPid": global_pid(7), "filenameId": 4 + 2 * at, "contentId": 5 + 2 * at} for at in range(len(contents))]
    return {"StringIds": strings("k", "k", "cudaFree_v3020", *texts), "ProcessStreams": rows}


@pytest.mark.parametrize(("streams", "line"), [
    ([("stderr", "Traceback\n  python3: can't open file 'benchmark.py'\n\n")], "python3: can't open file 'benchmark.py'"),
    ([("stdout", "done\n"), ("stderr", "a warning\n")], "a warning"),
    ([("stderr", "refused: TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345\n")], "refused: TOKEN=***"),
    ([("stderr", "x" * 300)], "x" * 199 + "…"),
    ([("stderr", f"{'x ' * 495}ghp_0123456789abcdefghijABCDEFGHIJ012345")], "x " * 99 + "x…"),
    ([("stdout", "done\n"), ("stderr", " \n")], None),
    ([], None),
])
def test_the_last_error_line_of_a_program_that_launched_nothing(
    tmp_path: Path, streams: list[tuple[str, str]], line: str | None,
) -> None:
    said, _ = _verdict(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=[], **_streams(*streams))
    assert said[0]["cause"] == "none"
    assert said[0]["text"].partition("error line: ")[2] == (line or "")


def test_a_program_that_used_the_gpu_is_not_judged_by_what_it_wrote(tmp_path: Path) -> None:
    kernels = [kernel(number * _MS, number * _MS + 900_000, correlationId=number) for number in range(1, 13)]
    calls = [call(number * _MS - 9000, number * _MS - 1000, correlationId=number) for number in range(1, 13)]
    said, _ = _verdict(tmp_path, CUPTI_ACTIVITY_KIND_KERNEL=kernels, CUPTI_ACTIVITY_KIND_RUNTIME=calls,
                       **_streams(("stderr", "a warning\n")))
    assert all("a warning" not in row["text"] for row in said)
